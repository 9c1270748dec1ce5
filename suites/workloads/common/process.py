"""Settings of the process that hold for every experiment, and facts about it that change its speed.

run.py makes the settings before a framework is imported, and tells the facts after the measurement.
"""

import contextlib
import ctypes
import hashlib
import os
import re
import sys

from common import launch
from common.events import Unsupported

# A variable of a process that has started anew with the variables of its case.
STARTED_ANEW = "TSUISHI_STARTED_ANEW"
PRELOAD = "LD_PRELOAD"
# Libraries whose build and settings decide the speed of a program, by the beginning of a file's name.
LIBRARIES = {
    "BLAS": re.compile(r"lib(scipy_)?(openblas|mkl_(rt|core)|blis|blas|cblas|flexiblas|atlas|nvpl_blas|armpl)"),
    "OpenMP": re.compile(r"lib(gomp|iomp5|omp)[-.]"),
}
DIGESTED = 1 << 20  # bytes of a library: its tables of symbols and its build id are at its beginning


def arrange(settings, framework):
    """Makes the settings of this process, which its threads and children inherit.

    settings: Fields, with `cpus` (the number of CPUs that the process may use, the first of those that it has),
    `variables` ({name of an environment variable: text}) and `read_by` ({axis: frameworks that read its variables}), if
    any. framework: of the request, or None. The dynamic linker, the C library and Python read some variables at their
    start only: the process starts anew with its variables. Raises Unsupported where there are fewer CPUs, where the
    framework reads none of the variables, where the linker does not load a preloaded library, and in one of several
    processes on a node.
    """
    if settings and launch.nodes():
        raise Unsupported("settings of the process: a node of several shares its CPUs among its processes")
    for axis, frameworks in settings.get("read_by", {}).items():
        if framework not in (None, *frameworks):
            raise Unsupported("{}: {} does not read it".format(axis, framework))
    variables = settings.get("variables", {})
    has_started_anew = os.environ.pop(STARTED_ANEW, None)
    if variables and not has_started_anew:
        start_anew(variables)
    check_preloaded(variables.get(PRELOAD, ""))
    if "cpus" in settings:
        wanted, usable = settings.positive("cpus"), sorted(os.sched_getaffinity(0))
        if wanted > len(usable):
            raise Unsupported("{} CPUs: this process may use {}".format(wanted, len(usable)))
        os.sched_setaffinity(0, usable[:wanted])


def start_anew(variables):
    """Replaces this process by a new one of the same command, with these variables too."""
    with open("/proc/self/cmdline", "rb") as file:
        command = file.read().split(b"\0")[:-1]
    sys.stdout.flush()
    given = dict(os.environ, **dict(variables, **{STARTED_ANEW: "1"}))
    os.execve(sys.executable, command, given)  # noqa: S606  without a shell


def check_preloaded(libraries):
    """Raises Unsupported for a library that is not in this process: the linker says so on stderr only, and goes on."""
    for name in libraries.replace(":", " ").split():
        try:
            ctypes.CDLL(name, mode=os.RTLD_NOLOAD)
        except OSError:
            why = "{}: the dynamic linker did not load {}: is it installed here?".format(PRELOAD, name)
            raise Unsupported(why) from None


def facts():
    """Flags of this process: whether it flushes to zero what is smaller than normal numbers, and its libraries.

    `allocator` is the file that gives it malloc. A library has the name of its file and a digest of the file's length
    and beginning; `BLAS` and `OpenMP` are there where the process has loaded any.
    """
    flags = {"flush_to_zero": sys.float_info.min * 0.5 == 0 or 5e-324 * sys.float_info.max == 0}
    try:
        places = mapped()
    except (OSError, ValueError):  # a system that hides it
        return flags
    with contextlib.suppress(AttributeError, TypeError, OSError):  # a program without a dynamic linker
        malloc = ctypes.cast(ctypes.CDLL(None).malloc, ctypes.c_void_p).value
        flags["allocator"] = next((described(path) for begin, end, path in places if begin <= malloc < end), "unknown")
    for kind, pattern in LIBRARIES.items():
        paths = sorted({path for _, _, path in places if pattern.match(os.path.basename(path))}, key=os.path.basename)
        if paths:
            flags[kind] = " ".join(map(described, paths))
    return flags


def mapped():
    """(begin, end, path) of each part of a file in this process."""
    found = []
    with open("/proc/self/maps", "rb") as file:
        for line in file.read().decode("utf-8", "replace").splitlines():
            fields = line.split(None, 5)
            if len(fields) == 6 and fields[5].startswith("/"):
                begin, end = fields[0].split("-")
                found.append((int(begin, 16), int(end, 16), fields[5]))
    return found


def described(path):
    """The name of a file without its folder, with a digest of its length and beginning where it can be read."""
    try:
        with open(path, "rb") as file:
            digest = hashlib.sha256(str(os.fstat(file.fileno()).st_size).encode() + file.read(DIGESTED)).hexdigest()
    except OSError:
        return os.path.basename(path)
    return "{} {}".format(os.path.basename(path), digest[:12])
