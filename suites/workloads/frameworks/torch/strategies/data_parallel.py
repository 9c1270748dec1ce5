"""DataParallel: a single process scatters every batch to the devices, and gathers their results."""

import torch

from common.events import Unsupported
from frameworks.torch.strategies import none
from frameworks.torch.trainer import AMP, nchw


class InPrecision(torch.nn.Module):
    """A network whose forward pass has its own autocast.

    DataParallel runs the copies in threads, to which it hands on that there is an autocast, but not its precision
    (torch/nn/parallel/parallel_apply.py): all would compute in float16.
    """

    def __init__(self, network, autocast):
        super().__init__()
        self.network = network
        self.autocast = autocast

    def forward(self, images):
        with self.autocast():
            return self.network(images)


class Scattered:
    """A Trainer whose network is copied to all devices in every step."""

    def parallel(self, network):
        module = InPrecision(network, self.autocast) if self.job.precision in AMP else network
        return torch.nn.DataParallel(module, device_ids=list(self.job.places))

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


class Single(Scattered, none.Single):
    """Passes that are timed one by one."""


class Literal(Scattered, none.Literal):
    """Epochs over a DataLoader."""


class Strategy(none.Strategy):
    steady = Steady
    literal = Literal
    single = Single

    def check(self, job, protocol):
        super().check(job, protocol)
        if None in job.places or len(set(job.places)) < len(job.places):
            raise Unsupported(
                "strategy 'data_parallel' needs {} GPUs: on a CPU it does nothing; 'distributed_data_parallel' would "
                "run".format(len(job.places))
            )
        if job.execution == "compiled":
            raise Unsupported(
                "execution 'compiled' with strategy 'data_parallel': torch.compile compiles nothing in the threads "
                "that the copies run in; 'distributed_data_parallel' would run"
            )
