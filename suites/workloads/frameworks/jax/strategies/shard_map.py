"""shard_map: the same program on all devices, each with its share of the batch; the program averages gradients."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from common.events import Unsupported
from frameworks.jax import devices
from frameworks.jax.strategies import none

AXIS = "devices"
EVERYWHERE, SHARES = PartitionSpec(), PartitionSpec(AXIS)


class Steady(none.Steady):
    """A fixed batch, with a share on each device from the start. The state is the same on all devices."""

    def __init__(self, job):
        self._mesh = Mesh(np.array(devices.all_of(job.places)), (AXIS,))
        super().__init__(job)

    def whole(self):
        return NamedSharding(self._mesh, EVERYWHERE)

    def split(self):
        return NamedSharding(self._mesh, SHARES)

    def shared(self, function):
        """All results are the same on every device, by averaged(). JAX does not check that."""
        return self._mapped(function, (EVERYWHERE, SHARES, SHARES), EVERYWHERE)

    def averaged(self, values):
        return jax.lax.pmean(values, AXIS)

    def run(self, program, images, labels):
        devices.wait_between_steps(self.job.places, (self.last, self.state))
        return super().run(program, images, labels)

    def replicas(self):
        """The number of devices: each adds 1 to a sum."""

        def count(images):
            return jax.lax.psum(jnp.ones(len(images)), AXIS)

        return int(jax.jit(self._mapped(count, (SHARES,), EVERYWHERE))(self.batch[0])[0])

    def _mapped(self, function, given, returned):
        return jax.shard_map(function, mesh=self._mesh, in_specs=given, out_specs=returned, check_vma=False)


class Strategy(none.Strategy):
    steady = Steady
    literal = None

    def check(self, job, protocol):
        super().check(job, protocol)
        if None not in job.places and len(set(job.places)) < len(job.places):
            raise Unsupported(
                "strategy 'shard_map' needs {} GPUs: two shares of a mesh cannot be on one".format(len(job.places))
            )
