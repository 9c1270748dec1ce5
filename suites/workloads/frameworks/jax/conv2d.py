"""conv2d in JAX. The first run compiles the convolution for the device of each tower."""

import jax
import numpy as np
from jax import lax

from common import timing
from common.events import Unsupported
from common.networks import same_padding
from frameworks import parts
from frameworks.jax import devices


class Conv2d(parts.Conv2d):
    def check(self, case):
        parts.refuse_graphs(
            case,
            "a program of JAX gets its arrays as arguments, there is no constant to fold",
            "they are TensorFlow's, XLA has others",
            "JAX calls compiled functions",
        )
        if case["autotune"] != "default":
            raise Unsupported("autotune {!r}: XLA's search, not cuDNN's; 'default' would run".format(case["autotune"]))
        if case["host_memory"] != "default":
            raise Unsupported(
                "host_memory {!r}: arrays of JAX go to pinned memory; 'default' would run".format(case["host_memory"])
            )

    def peak_device_memory_mib(self, places):
        return devices.peak_memory_mib(places)

    def literal(self, problem, emitter):
        """The source's work in JAX. Every run splits, copies to the devices, convolves, copies back and adds.

        A program gets its input as an argument: feed `constant` and `fed` both are a NumPy array in host memory,
        `resident` has each tower's share on its device before the clock starts. The first run compiles, and starts the
        devices, save with `resident`.
        """
        convolve = _program(problem)
        _warm_up(problem, convolve)
        shares = _on_devices(problem) if problem.feed == "resident" else None

        def run():
            towers = shares or _on_devices(problem)
            convolved = [convolve(images, devices.copied(problem.kernel, images.device)) for images in towers]
            host = jax.devices("cpu")[0]
            return jax.block_until_ready(sum(jax.device_put(images, host) for images in convolved))

        runs = problem.settings["later_runs"]
        outputs = timing.first_and_later(emitter, run, runs, len(problem.images), problem.budget)
        return [np.asarray(output) for output in outputs], 1

    def steady(self, problem, emitter):
        """What the source meant: host to device, compute and device to host, each on its own and warm.

        JAX has no arrays to copy into: every copy is a new array, whose memory is part of its time.
        """
        places = devices.all_of(problem.places)
        kernels = [devices.copied(problem.kernel, device) for device in places]
        host = [jax.device_put(images, devices.host_memory(device)) for images, device in zip(_shares(problem), places)]
        convolve, inputs, results, returned = _program(problem), [], [], []

        def to_devices():
            inputs[:] = [devices.copied(images, devices.device_memory(device)) for images, device in zip(host, places)]

        def compute():
            results[:] = [convolve(images, kernel) for images, kernel in zip(inputs, kernels)]

        def to_host():
            returned[:] = [
                devices.copied(images, devices.host_memory(device)) for images, device in zip(results, places)
            ]

        steps = (
            ("host_to_device", to_devices, inputs),
            ("compute", compute, results),
            ("device_to_host", to_host, returned),
        )
        for phase, step, made in steps:
            timing.steady(
                emitter,
                step,
                lambda made=made: jax.block_until_ready(made),
                len(problem.images),
                problem.settings,
                phase,
                budget=problem.budget,
            )
        return [sum(np.asarray(images) for images in returned)], 1


def _program(problem):
    """The compiled function of (images, kernel), both in the problem's layout."""
    padding = 2 * [same_padding(len(problem.kernel))]

    def convolve(images, kernel):
        for _ in range(problem.chained):
            images = lax.conv_general_dilated(
                images, kernel, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
        return images

    return jax.jit(convolve)


def _warm_up(problem, convolve):
    """Computes something on every device, and waits for it. The program of one image is another than that of many."""
    if problem.warmed == "none":
        return
    for device in dict.fromkeys(devices.all_of(problem.places)):
        image = devices.copied(np.zeros_like(problem.images[:1]), device)
        warm = image + 1 if problem.warmed == "device" else convolve(image, devices.copied(problem.kernel, device))
        jax.block_until_ready(warm)


def _shares(problem):
    return np.split(problem.images, len(problem.places))


def _on_devices(problem):
    places = devices.all_of(problem.places)
    return [devices.copied(images, device) for images, device in zip(_shares(problem), places)]
