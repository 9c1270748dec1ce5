"""DataParallel: a single process scatters every batch to the devices, and gathers their results."""

import torch

from common.events import Unsupported
from frameworks.torch.strategies import none
from frameworks.torch.trainer import nchw


class Scattered:
    """A Trainer whose network is copied to all devices in every step."""

    def parallel(self, network):
        return torch.nn.DataParallel(network, device_ids=list(self.job.places))

    def replicas(self):
        """The number of devices that have a copy of the network while it runs."""
        seen = []
        hook = self.network.register_forward_hook(lambda module, given, output: seen.append(output.device))
        with torch.no_grad():
            self.model(self.to_device(nchw(self.job.train[0][: self.job.batch_size])))
        hook.remove()
        return len(set(seen))


class Steady(Scattered, none.Steady):
    """Batches are on the first device, from the start or from the host in every step."""


class Literal(Scattered, none.Literal):
    """Epochs over a DataLoader."""


class Strategy(none.Strategy):
    steady = Steady
    literal = Literal

    def check(self, job, protocol):
        super().check(job, protocol)
        if None in job.places or len(set(job.places)) < len(job.places):
            raise Unsupported(
                "strategy 'data_parallel' needs {} GPUs: on a CPU it does nothing; 'distributed_data_parallel' would "
                "run".format(len(job.places))
            )
