"""conv2d by SciPy on all cores: every image is convolved once and every result is kept, as in the frameworks.

Each core has a process, which is forked before the clock starts, and before the import of any library that does not
survive a fork. The processes share the memory of images and results. A byte tells a process to begin, and a byte comes
back when it is done.
"""

import mmap
import multiprocessing
import os

import numpy as np
from scipy.signal import convolve2d

from common import timing


def cores():
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def run(problem, emitter):
    """Times loops over all images; returns the results of the last loop, (N, height, width, channels) float32."""
    # Anonymous memory: a file would need a /dev/shm that exists, is writable and is large enough.
    shared = mmap.mmap(-1, problem.images.nbytes)
    outputs = np.frombuffer(shared, np.float32).reshape(problem.images.shape)
    connections = _start(problem, outputs)

    def loop():
        for connection in connections:
            connection.send_bytes(b"!")
        for connection in connections:
            connection.recv_bytes()

    runs = problem.settings["later_runs"]
    timing.first_and_later(emitter, loop, runs, len(problem.images), problem.budget)
    return outputs


def _start(problem, outputs):
    """Starts the processes, and returns a connection to each. They are daemons: they end with this process."""
    context = multiprocessing.get_context("fork")
    connections = []
    for share in np.array_split(np.arange(len(problem.images)), min(cores(), len(problem.images))):
        ours, theirs = context.Pipe()
        arguments = (problem, outputs, share, theirs, connections + [ours])
        context.Process(target=_serve, args=arguments, daemon=True).start()
        theirs.close()
        connections.append(ours)
    return connections


def _serve(problem, outputs, share, connection, inherited):
    """In a process: convolves its share at every byte that arrives; returns when the parent process is gone."""
    for other in inherited:  # an open copy of the parent's end would hide that the parent is gone
        other.close()
    while True:
        try:
            connection.recv_bytes()
        except EOFError:
            return
        for index in share:
            outputs[index] = convolved(problem.images[index], problem.kernel)
        connection.send_bytes(b".")


def convolved(image, kernel):
    """image (height, width, in) and kernel (size, size, in, out) to (height, width, out), by SciPy's mode 'same'."""
    channels_in, channels_out = kernel.shape[2:]
    return np.stack(
        [
            sum(convolve2d(image[:, :, i], kernel[:, :, i, o], "same") for i in range(channels_in))
            for o in range(channels_out)
        ],
        axis=-1,
    )
