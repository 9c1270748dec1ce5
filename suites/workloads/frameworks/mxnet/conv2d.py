"""conv2d in MXNet, imperatively. The devices of several towers on a CPU are MXNet's own: cpu(0), cpu(1), ..."""

import mxnet
import numpy as np

from common import timing
from common.networks import same_padding
from frameworks import parts
from frameworks.mxnet import devices
from frameworks.mxnet.networks import nchw


class Conv2d(parts.Conv2d):
    def check(self, case):
        parts.refuse_graphs(
            case,
            "operations of MXNet run as they are called, there is no graph to fold",
            "they are TensorFlow's, MXNet runs operations as they are called",
            "MXNet calls functions",
        )

    def literal(self, problem, emitter):
        """The source's work in MXNet: every run splits, copies to the devices, convolves, copies back and adds up.

        There is no graph to hold a constant: with feed `constant` an array of MXNet is made in host memory before the
        clock starts, with `fed` in every run from the NumPy array, and with `resident` each tower's share is on its
        device before the clock starts. The first run starts the devices, except with `resident`.
        """
        places = devices.all_of(problem.places)
        host = None if problem.feed == "fed" else _host_array(problem)
        shares = _resident(problem) if problem.feed == "resident" else None

        def run():
            towers = shares or _split(_host_array(problem) if host is None else host, problem)
            convolved = [
                _convolve(images.as_in_context(device), _filter(problem, device), problem)
                for images, device in zip(towers, places)
            ]
            total = sum(images.as_in_context(mxnet.cpu()) for images in convolved)
            total.wait_to_read()
            return total

        _warm_up(problem)
        runs = problem.settings["later_runs"]
        outputs = timing.first_and_later(emitter, run, runs, len(problem.images), problem.budget)
        return [_nhwc(output) for output in outputs], 1

    def steady(self, problem, emitter):
        """Host memory is pinned where there is a GPU, as in a careful program, unless the case says otherwise."""
        places = devices.all_of(problem.places)
        inputs = _resident(problem)
        memory = mxnet.cpu() if problem.host_memory == "pageable" else devices.host_memory(problem.places)
        host = [images.copyto(memory) for images in inputs]
        filters = [_filter(problem, device) for device in places]
        results = list(inputs)
        returned = [images.copyto(memory) for images in host]

        def copy(sources, targets):
            for source, target in zip(sources, targets):
                source.copyto(target)

        def compute():
            results[:] = inputs
            for _ in range(problem.chained):
                results[:] = [_convolve(images, weights, problem) for images, weights in zip(results, filters)]

        parts.time_apart(
            problem, emitter, mxnet.nd.waitall, lambda: copy(host, inputs), compute, lambda: copy(results, returned)
        )
        return [_nhwc(sum(images.as_in_context(mxnet.cpu()) for images in returned))], 1


def _host_array(problem):
    """NHWC array to an NCHW array of MXNet in host memory."""
    return devices.on(nchw(problem.images), mxnet.cpu())


def _split(images, problem):
    size = len(problem.images) // len(problem.places)
    return [images[first : first + size] for first in range(0, len(problem.images), size)]


def _resident(problem):
    shares = np.split(nchw(problem.images), len(problem.places))
    return [devices.on(images, device) for images, device in zip(shares, devices.all_of(problem.places))]


def _nhwc(output):
    return output.asnumpy().transpose(0, 2, 3, 1)


def _warm_up(problem):
    """Computes something on every device, and waits for it."""
    if problem.warmed == "none":
        return
    for device in dict.fromkeys(devices.all_of(problem.places)):
        image = devices.on(np.zeros_like(nchw(problem.images[:1])), device)
        warm = image + 1 if problem.warmed == "device" else _convolve(image, _filter(problem, device), problem)
        warm.wait_to_read()


def _filter(problem, device):
    return devices.on(np.ascontiguousarray(problem.kernel.transpose(3, 2, 0, 1)), device)


def _convolve(images, weights, problem):
    """Pads before the convolution where the filter is even, as the convolution pads both sides alike."""
    size = len(problem.kernel)
    before, after = same_padding(size)
    padding = before
    if before != after:
        margins = (0, 0, 0, 0, before, after, before, after)
        images, padding = mxnet.nd.pad(images, mode="constant", pad_width=margins, constant_value=0), 0
    return mxnet.nd.Convolution(
        images, weights, kernel=(size, size), pad=(padding, padding), num_filter=len(weights), no_bias=True
    )
