"""Settings of the process that hold for every experiment; run.py makes them before a framework is imported."""

import ctypes
import os
import sys

from common import launch
from common.events import Unsupported

# A variable of a process that has started anew with the variables of its case.
STARTED_ANEW = "TSUISHI_STARTED_ANEW"
PRELOAD = "LD_PRELOAD"


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
