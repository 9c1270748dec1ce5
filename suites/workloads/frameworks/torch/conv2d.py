"""conv2d in PyTorch, eagerly."""

import numpy as np
import torch
import torch.nn.functional as functional

from common import timing
from common.events import Unsupported
from common.networks import same_padding
from frameworks import parts
from frameworks.torch import devices


class Conv2d(parts.Conv2d):
    def check(self, case):
        parts.refuse_graphs(
            case,
            "PyTorch runs eagerly, there is no graph to fold",
            "PyTorch has no graph to optimise",
            "PyTorch calls functions",
        )
        if case["autotune"] != "default":
            raise Unsupported(
                "autotune {!r}: PyTorch lets cuDNN search only where it is asked to (cudnn.benchmark), and here it is "
                "not; 'default' would run".format(case["autotune"])
            )

    def peak_device_memory_mib(self, places):
        return devices.peak_memory_mib(places)

    def literal(self, problem, emitter):
        """The source's work in PyTorch: every run splits, copies to the devices, convolves, copies back and adds up.

        There is no graph to hold a constant: with feed `constant` a host tensor is made before the clock starts, with
        `fed` in every run from the NumPy array, and with `resident` each tower's share is on its device before the
        clock starts. The first run starts the devices, except with `resident`.
        """
        host = None if problem.feed == "fed" else _host_tensor(problem.images)
        shares = _resident(problem) if problem.feed == "resident" else None

        def run():
            towers = shares or (_host_tensor(problem.images) if host is None else host).chunk(len(problem.places))
            convolved = [
                _convolve(images.to(devices.name(place)), _filter(problem, place), problem)
                for images, place in zip(towers, problem.places)
            ]
            return sum(images.to("cpu") for images in convolved)

        with torch.no_grad():
            _warm_up(problem)
            runs = problem.settings["later_runs"]
            outputs = timing.first_and_later(emitter, run, runs, len(problem.images), problem.budget)
        return [_nhwc(output) for output in outputs], 1

    def steady(self, problem, emitter):
        """Host memory is pinned where there is a GPU, as in a careful program, unless the case says otherwise."""
        host = [_pinned(images, place, problem) for images, place in zip(_shares(problem), problem.places)]
        inputs = _resident(problem)
        filters = [_filter(problem, place) for place in problem.places]
        results = [torch.empty_like(images) for images in inputs]
        returned = [_pinned(torch.empty_like(images), place, problem) for images, place in zip(host, problem.places)]

        def copy(targets, sources):
            for target, source in zip(targets, sources):
                target.copy_(source, non_blocking=True)

        def compute():
            results[:] = inputs
            for _ in range(problem.chained):
                results[:] = [_convolve(images, weights, problem) for images, weights in zip(results, filters)]

        def synchronise():
            devices.synchronise(problem.places)

        with torch.no_grad():
            parts.time_apart(
                problem, emitter, synchronise, lambda: copy(inputs, host), compute, lambda: copy(returned, results)
            )
        return [_nhwc(sum(returned))], 1


def _host_tensor(images):
    """NHWC array to NCHW tensor; with a single channel, as in the source, no byte moves."""
    return torch.from_numpy(images.transpose(0, 3, 1, 2)).contiguous()


def _nhwc(output):
    return output.numpy().transpose(0, 2, 3, 1)


def _shares(problem):
    return [share.contiguous() for share in _host_tensor(problem.images).chunk(len(problem.places))]


def _resident(problem):
    return [share.to(devices.name(place), copy=True) for share, place in zip(_shares(problem), problem.places)]


def _pinned(tensor, place, problem):
    return tensor if place is None or problem.host_memory == "pageable" else tensor.pin_memory()


def _warm_up(problem):
    """Computes something on every device, and waits for it."""
    if problem.warmed == "none":
        return
    for place in dict.fromkeys(problem.places):
        if problem.warmed == "device":
            (torch.zeros(1).to(devices.name(place)) + 1).cpu()
        else:
            image = torch.zeros_like(_host_tensor(problem.images[:1])).to(devices.name(place))
            _convolve(image, _filter(problem, place), problem).cpu()


def _filter(problem, place):
    return torch.from_numpy(np.ascontiguousarray(problem.kernel.transpose(3, 2, 0, 1))).to(devices.name(place))


def _convolve(images, weights, problem):
    """Pads before conv2d where the filter is even, as conv2d pads both sides alike."""
    before, after = same_padding(len(problem.kernel))
    if before != after:
        return functional.conv2d(functional.pad(images, (before, after, before, after)), weights)
    return functional.conv2d(images, weights, padding=before)
