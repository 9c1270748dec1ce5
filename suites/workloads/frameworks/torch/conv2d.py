"""conv2d in PyTorch, eagerly."""

import numpy as np
import torch
import torch.nn.functional as functional

from common import timing
from common.events import Unsupported
from common.networks import same_padding
from frameworks import parts


class Conv2d(parts.Conv2d):
    def check(self, case):
        if "search" in case:
            raise Unsupported(
                "search 'folding_edge': PyTorch runs eagerly, there is no graph to fold; TensorFlow has one"
            )
        if case["graph_optimizers"] != "default":
            raise Unsupported(
                "graph_optimizers {!r}: PyTorch has no graph to optimise; 'default' would run".format(
                    case["graph_optimizers"]
                )
            )

    def literal(self, problem, emitter):
        """The source's work in PyTorch: split, to the devices, convolve, back, add. All of it is done in every run.

        There is no graph to hold a constant: feed `constant` is a host tensor made before the clock starts, `fed` makes
        it from the NumPy array in every run, `resident` has each tower's share on its device before the clock starts.
        The first run starts the devices, save with `resident`.
        """
        host = None if problem.feed == "fed" else _host_tensor(problem.images)
        shares = _resident(problem) if problem.feed == "resident" else None

        def run():
            towers = shares or (_host_tensor(problem.images) if host is None else host).chunk(len(problem.places))
            convolved = [
                _convolve(images.to(_device(place)), _filter(problem, place), problem)
                for images, place in zip(towers, problem.places)
            ]
            return sum(images.to("cpu") for images in convolved)

        with torch.no_grad():
            runs = problem.settings["later_runs"]
            outputs = timing.first_and_later(emitter, run, runs, len(problem.images), problem.budget)
        return [_nhwc(output) for output in outputs], 1

    def steady(self, problem, emitter):
        """What was meant: host to device, compute, and device to host, each on its own, warm.

        Host memory is pinned where there is a GPU, as a careful program would have it.
        """
        host = [_pinned(images, place) for images, place in zip(_shares(problem), problem.places)]
        inputs = _resident(problem)
        filters = [_filter(problem, place) for place in problem.places]
        results = [torch.empty_like(images) for images in inputs]
        returned = [_pinned(torch.empty_like(images), place) for images, place in zip(host, problem.places)]

        def copy(targets, sources):
            for target, source in zip(targets, sources):
                target.copy_(source, non_blocking=True)

        def compute():
            results[:] = [_convolve(images, weights, problem) for images, weights in zip(inputs, filters)]

        def synchronise():
            for place in set(problem.places) - {None}:
                torch.cuda.synchronize(place)

        steps = (
            ("host_to_device", lambda: copy(inputs, host)),
            ("compute", compute),
            ("device_to_host", lambda: copy(returned, results)),
        )
        with torch.no_grad():
            for phase, step in steps:
                timing.steady(
                    emitter, step, synchronise, len(problem.images), problem.settings, phase, budget=problem.budget
                )
        return [_nhwc(sum(returned))], 1


def _host_tensor(images):
    """NHWC array to NCHW tensor; with one channel, as in the source, no byte moves."""
    return torch.from_numpy(images.transpose(0, 3, 1, 2)).contiguous()


def _nhwc(output):
    return output.numpy().transpose(0, 2, 3, 1)


def _shares(problem):
    return [share.contiguous() for share in _host_tensor(problem.images).chunk(len(problem.places))]


def _resident(problem):
    return [share.to(_device(place), copy=True) for share, place in zip(_shares(problem), problem.places)]


def _pinned(tensor, place):
    return tensor if place is None else tensor.pin_memory()


def _filter(problem, place):
    return torch.from_numpy(np.ascontiguousarray(problem.kernel.transpose(3, 2, 0, 1))).to(_device(place))


def _convolve(images, weights, problem):
    """Padded by hand where the filter is even: conv2d itself pads both sides alike."""
    before, after = same_padding(len(problem.kernel))
    if before != after:
        return functional.conv2d(functional.pad(images, (before, after, before, after)), weights)
    return functional.conv2d(images, weights, padding=before)


def _device(place):
    return "cpu" if place is None else "cuda:%d" % place
