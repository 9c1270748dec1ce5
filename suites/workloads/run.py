"""The entry of all experiments: `python run.py ARGUMENT`, a JSON object whose `experiment` is a file of experiments/.

An experiment has
    run(request, emitter)  runs the case of the request, and emits its results as events
and, where it needs them,
    possible(request)      raises Unsupported where the case cannot be run (experiments/possible.py)
    read(values)           makes the request from the JSON object; without it, the request is a Request (request.py)
    OTHER_PROCESS = True   a process of its own computes: facts about the process of run.py say nothing
"""

from common import events  # noqa: I001  first, as its import starts the clock of `t`
import atexit
import contextlib
import ctypes
import faulthandler
import importlib
import json
import os
import sys
import traceback

import frameworks
from common import cuda_devices, launch, process
from common.request import Fields, Request

HERE = os.path.dirname(os.path.abspath(__file__))


def main(arguments):
    """Runs the experiment that the command line's arguments name, then exits.

    The exit code is 0 when the experiment finished, ran out of memory, is unsupported or was skipped (these are
    findings). It is 1 for any other exception, whose traceback goes to stderr.
    """
    faulthandler.enable()
    # A duplicate: events still arrive when a library closes or redirects descriptor 1. Only rank 0 is heard.
    emitter = events.Events(os.open(os.devnull, os.O_WRONLY) if launch.rank() else os.dup(1))
    # Python calls leave() last: after the functions that are registered later, and after all threads have ended.
    codes = []
    atexit.register(leave, codes)
    try:
        experiment, request = asked(arguments)
        compiled = cuda_devices.compiled_mib()
        experiment.run(request, emitter)
        if compiled is not None:
            emitter.metric("cuda_compiled_before_mib", compiled, "MiB")
        flags = {} if getattr(experiment, "OTHER_PROCESS", False) else process.facts()
        loading = cuda_devices.module_loading()
        if loading:
            flags["cuda_module_loading"] = loading
        if flags:
            emitter.environment(flags=flags)
        emitter.finished()
        codes.append(0)
    except Exception as error:
        kind, text = frameworks.failure(error)
        if kind not in ("unsupported", "skipped"):
            traceback.print_exc()
        emitter.failed(kind, type(error).__name__, text)
        codes.append(1 if kind == "error" else 0)
        sys.exit(codes[0])


def asked(arguments):
    """(module of the experiment, its request). ValueError unless the only argument is a JSON object that names it."""
    if len(arguments) != 1:
        raise ValueError("one JSON argument expected, got {}".format(len(arguments)))
    values = Fields("request", json.loads(arguments[0]))
    process.arrange(Fields("process", values.get("process", {})), values.get("framework"))
    experiment = importlib.import_module("experiments." + values.one_of("experiment", experiments()))
    return experiment, getattr(experiment, "read", Request)(values)


def experiments():
    """The names of all experiments: the modules in experiments/."""
    return frameworks.modules(os.path.join(HERE, "experiments"))


def leave(codes):
    """Ends the process at once with the exit code in `codes`; an empty list lets Python end as usual.

    All measurements are done by now, and the clean-up of interpreter and framework takes up to a quarter of a short
    trial's CPU time. The kernel frees memory and devices. A crash during that clean-up is therefore never seen.
    """
    if not codes:
        return
    with contextlib.suppress(OSError, ValueError, AttributeError):  # standard streams may be closed, or None
        sys.stdout.flush()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)  # the output of native code
    os._exit(codes[0])


if __name__ == "__main__":
    main(sys.argv[1:])
