"""conv2d by SciPy on all cores: every image once, all results kept, as the frameworks do it.

One process a core, forked before the clock starts and before anything is imported that does not survive a fork. Images
and results are in memory that the processes share; what goes between them is one byte to begin and one when done.
"""

import mmap
import multiprocessing
import os

import numpy as np
from scipy.signal import convolve2d

from common import timing


def cores():
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def run(problem, emitter):
    """Times loops over all images; returns what the last one left, (N, height, width, channels) float32."""
    # Anonymous: a file in /dev/shm would need it to be there, writable and large enough.
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
    """A connection to each process; daemons, which end with this one."""
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
    """Convolves its share whenever told to; returns when whoever tells it is gone."""
    for other in inherited:  # or the end of the one who holds the other end would go unseen
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
    """image (height, width, in) and kernel (size, size, in, out) to (height, width, out), as SciPy's 'same' has it."""
    channels_in, channels_out = kernel.shape[2:]
    return np.stack(
        [
            sum(convolve2d(image[:, :, i], kernel[:, :, i, o], "same") for i in range(channels_in))
            for o in range(channels_out)
        ],
        axis=-1,
    )
