"""device_limits of the machine itself: how fast it reads its memory and its storage. No framework is imported.

As parts.Limits, with problems of experiments/device_limits.py.
"""

import concurrent.futures
import contextlib
import ctypes
import os
import threading
import time

import numpy as np

from common.events import Unsupported

BLOCK = 4 * 2**20  # bytes of a read from storage
DROPS = 5  # tries to drop a page: the kernel keeps a page for a moment that it is looking at itself


class Limits:
    def host_memory_read(self, problem, measure):
        """Times how fast one core, or all cores that this process may use, read a buffer of problem.buffer_bytes.

        A core reads its share by the C library's memchr, which looks for a byte that is only at the end. It does no
        arithmetic and keeps no result, so the memory's rate is all that limits it, by the same code whatever NumPy is
        installed. (np.sum of float64 adds up at half that rate on one core.) Every thread fills its share itself, so
        that it lies in memory near to it. Returns how many shares were read to their end.
        """
        threads = cores() if problem.cores == "all" else 1
        memchr = ctypes.CDLL(None).memchr  # ctypes lets other threads run meanwhile
        memchr.restype, memchr.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
        shares = np.array_split(np.empty(problem.buffer_bytes, np.uint8), threads)
        everyone, found = threading.Barrier(threads), []

        def fill(share):
            everyone.wait()  # an idle thread would take a second share, and no thread be started for it
            share[:] = 1
            share[-1] = 0

        def read(share):
            return memchr(share.ctypes.data, 0, share.size) == share.ctypes.data + share.size - 1

        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            list(pool.map(fill, shares))

            def step():
                found[:] = pool.map(read, shares)

            measure(step, lambda: None)
        return sum(found)

    def storage_read(self, problem, measure):
        """Times how fast problem.buffer_bytes of files are read, in blocks of BLOCK bytes, one after the other.

        They are the largest files of the packages in this environment, since the only folder that a trial may write to
        is in memory: in a container, and in a sandbox. `cold`: the system drops them from its page cache before every
        step, outside the clock. What is beyond this system keeps its own: the page cache of a hypervisor's host, a
        disk's memory, a file server. Then `cold` is as fast as these. `cached`: they are in the page cache, and a step
        copies them. Every step ends with all of them in the page cache, as it was before. Returns how many bytes a step
        read.
        """
        block = memoryview(bytearray(BLOCK))
        files, read = [], []

        def drop(steps):
            for file, _ in files:
                drop_cached(file)

        def step():
            read[:] = [read_file(file, size, block) for file, size in files]

        with contextlib.ExitStack() as opened:
            for path, size in chosen_files(problem.buffer_bytes):
                files.append((opened.enter_context(open(path, "rb", buffering=0)), size))
            measure(step, lambda: None, drop if problem.cache == "cold" else None)
        return sum(read)


def cores():
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def read_file(file, size, block):
    """Reads the first `size` bytes of an unbuffered file into the memory of `block`; returns how many there were."""
    file.seek(0)
    left = size
    while left:
        count = file.readinto(block[: min(left, len(block))])
        if not count:
            break
        left -= count
    return size - left


def drop_cached(file):
    """Asks the system to drop the pages of an open file from its page cache."""
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def kept_in_cache(path):
    """Whether the first page of a file is in the page cache even after the system was asked to drop it.

    False where nothing says so: before Python 3.7, and on file systems without reads that do not wait.
    """
    with open(path, "rb", buffering=0) as file:
        # A page that is not yet written cannot be dropped; a file system that nobody can write to may refuse.
        with contextlib.suppress(OSError):
            os.fsync(file.fileno())
        read, without_waiting = (getattr(os, name, None) for name in ("preadv", "RWF_NOWAIT"))
        if read is None:
            return False
        with contextlib.suppress(OSError):  # BlockingIOError: it is not there
            for _ in range(DROPS):
                drop_cached(file)
                if read(file.fileno(), [bytearray(1)], 0, without_waiting) != 1:
                    return False
                time.sleep(0.01)
            return True
    return False


def chosen_files(wanted, folder=None):
    """[(path, how many bytes to read)]: the largest files in a folder of packages, until they have `wanted` bytes.

    folder: that of the packages of this environment, without it. Files that a process has mapped are left out, as the
    system keeps them in its page cache: those of this process and, where the system says what it keeps, of any other.
    Raises Unsupported where the files have fewer bytes.
    """
    folder = folder or os.path.dirname(os.path.dirname(np.__file__))
    with open("/proc/self/maps") as lines:
        mapped = {line.split(None, 5)[5].strip() for line in lines if "/" in line}
    paths = [os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names]
    files = [path for path in paths if os.path.isfile(path) and not os.path.islink(path)]
    sizes = sorted(((os.path.getsize(path), path) for path in files), reverse=True)
    chosen, left = [], wanted
    for size, path in sizes:
        if left and os.path.realpath(path) not in mapped and not kept_in_cache(path):
            chosen.append((path, min(size, left)))
            left -= chosen[-1][1]
    if left:
        raise Unsupported(
            "operation 'storage_read': {} MiB asked for, and the page cache can drop {} MiB of the packages of this "
            "environment; a smaller buffer would run".format(wanted // 2**20, (wanted - left) // 2**20)
        )
    return chosen
