"""Inference as the test pts/pytorch of OpenBenchmarking times it: by the package pytorch-benchmark 0.3.6.

The test gives the package two images, and the size of a batch that is no more than a label. For a batch of one the
package makes a single image. The settings' later_runs are the runs that it times, after a tenth as many; the test has
1000.
"""

import importlib.util

import torch

from common.events import Unsupported
from frameworks.torch.trainer import Trainer

IMAGES = 2  # of the test's sample, whatever the batch size


class Packaged(Trainer):
    """A network that the package runs."""

    def multiply_adds(self):
        """None: of how many images they would be, only the package knows."""

    def infer(self):
        from pytorch_benchmark import benchmark

        height, width, channels = self.job.network.shape
        sample = torch.randn(IMAGES, channels, height, width)
        size, runs = self.job.batch_size, self.job.settings["later_runs"]
        timing = benchmark(self.model, sample, num_runs=runs, print_details=True, batch_size=size)["timing"]
        # The test reads the last rate of the sorted output: of the label, and on a GPU with the copies ("total").
        (_, last) = max(timing["batch_size_{}".format(size)].items())
        return runs, runs * (1 if size == 1 else IMAGES), runs * last["metrics"]["seconds_per_batch_mean"]


def check(job):
    """Raises Unsupported for a job that the package does not time, and where the package is not installed."""
    if importlib.util.find_spec("pytorch_benchmark") is None:
        raise Unsupported("protocol 'literal' with mode 'inference': no package pytorch-benchmark; 'steady' would run")
    asked = (job.layout, job.precision, job.execution, len(job.places))
    if asked != ("channels_first", "fp32", "native", 1):
        raise Unsupported(
            "protocol 'literal' with mode 'inference': the source had one device, layout 'channels_first', precision "
            "'fp32' and execution 'native'; 'steady' would run"
        )
