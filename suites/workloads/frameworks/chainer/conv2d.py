"""conv2d in Chainer on NumPy. All towers are in the memory of the CPU, and one runs after the other."""

import chainer
import chainer.functions as functions
import numpy as np

from common import timing
from common.networks import same_padding
from frameworks import parts
from frameworks.chainer import places
from frameworks.chainer.networks import nchw


class Conv2d(parts.Conv2d):
    def check(self, case):
        parts.refuse_graphs(
            case,
            "operations of Chainer run as they are called, there is no graph to fold",
            "they are TensorFlow's, Chainer runs operations as they are called",
            "Chainer calls functions",
        )

    def literal(self, problem, emitter):
        """The source's work in Chainer: every run splits, convolves and adds up.

        An array of the CPU is one of NumPy: feeds `constant` and `fed` are the same, the array as it is; `resident` has
        a copy of each tower's share before the clock starts.
        """
        places.check(problem.places)
        kernel, shares = _filter(problem), _shares(problem) if problem.feed == "resident" else None

        def run():
            return sum(_convolve(images, kernel, problem) for images in shares or _shares(problem))

        with chainer.no_backprop_mode():
            _warm_up(problem)
            runs = problem.settings["later_runs"]
            outputs = timing.first_and_later(emitter, run, runs, len(problem.images), problem.budget)
        return [_nhwc(output) for output in outputs], 1

    def steady(self, problem, emitter):
        places.check(problem.places)
        host, kernel = _shares(problem), _filter(problem)
        inputs = [images.copy() for images in host]
        results = list(inputs)
        returned = [np.empty_like(images) for images in host]

        def copy(targets, sources):
            for target, source in zip(targets, sources):
                np.copyto(target, source)

        def compute():
            results[:] = inputs
            for _ in range(problem.chained):
                results[:] = [_convolve(images, kernel, problem) for images in results]

        with chainer.no_backprop_mode():
            parts.time_apart(
                problem, emitter, _nothing, lambda: copy(inputs, host), compute, lambda: copy(returned, results)
            )
        return [_nhwc(sum(returned))], 1


def _nothing():
    """NumPy returns when it has computed."""


def _shares(problem):
    return np.split(nchw(problem.images), len(problem.places))


def _nhwc(output):
    return output.transpose(0, 2, 3, 1)


def _warm_up(problem):
    """Computes something, on the CPU's only device."""
    image = np.zeros_like(nchw(problem.images[:1]))
    if problem.warmed == "device":
        functions.add(image, image)
    elif problem.warmed == "convolution":
        _convolve(image, _filter(problem), problem)


def _filter(problem):
    return np.ascontiguousarray(problem.kernel.transpose(3, 2, 0, 1))


def _convolve(images, kernel, problem):
    """An array. Pads before the convolution where the filter is even, as the convolution pads both sides alike."""
    before, after = same_padding(len(problem.kernel))
    if before != after:
        margins = ((0, 0), (0, 0), (before, after), (before, after))
        return functions.convolution_2d(functions.pad(images, margins, "constant"), kernel).array
    return functions.convolution_2d(images, kernel, pad=before).array
