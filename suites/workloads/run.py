"""The entry of all experiments: `python run.py ARGUMENT`, a JSON object whose `experiment` is a file of experiments/.

An experiment has
    run(request, emitter)  does what is asked for, and says what it finds by events
and, where it needs them,
    possible(request)      raises Unsupported where the case cannot be run (experiments/possible.py)
    read(values)           makes its request of the JSON object; without it, that is a Request (request.py)
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

from common.request import Fields, Request

HERE = os.path.dirname(os.path.abspath(__file__))


def main(arguments):
    """Runs what the command line's arguments ask for, then exits.

    Exit code 0 when it finished, and when it ran out of memory, is unsupported or skipped (findings); 1 for any other
    exception, whose traceback goes to stderr.
    """
    faulthandler.enable()
    # A duplicate, so that a library that closes or redirects descriptor 1 does not take the events with it.
    emitter = events.Events(os.dup(1))
    # Called after all that is registered from here on, and after threads have been waited for.
    codes = []
    atexit.register(leave, codes)
    try:
        experiment, request = asked(arguments)
        experiment.run(request, emitter)
        emitter.finished()
        codes.append(0)
    except Exception as error:
        kind = events.failure_kind(error)
        if kind not in ("unsupported", "skipped"):
            traceback.print_exc()
        emitter.failed(kind, type(error).__name__, str(error))
        codes.append(1 if kind == "error" else 0)
        sys.exit(codes[0])


def asked(arguments):
    """(module of the experiment, its request); ValueError unless the arguments are one JSON object that names one."""
    if len(arguments) != 1:
        raise ValueError("one JSON argument expected, got {}".format(len(arguments)))
    values = Fields("request", json.loads(arguments[0]))
    experiment = importlib.import_module("experiments." + values.one_of("experiment", experiments()))
    return experiment, getattr(experiment, "read", Request)(values)


def experiments():
    """The names of all experiments: of the files in experiments/."""
    files = os.listdir(os.path.join(HERE, "experiments"))
    return sorted(file[: -len(".py")] for file in files if file.endswith(".py") and file != "__init__.py")


def leave(codes):
    """Ends the process at once with the code in `codes`; where there is none, lets Python end it as it would.

    Nothing is measured any more, and taking interpreter and framework apart takes up to a quarter of a short trial's
    CPU time. Memory and devices are given back by the kernel. Not seen any more: a crash of what would take them apart.
    """
    if not codes:
        return
    with contextlib.suppress(OSError, ValueError, AttributeError):  # standard streams may be closed, or None
        sys.stdout.flush()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)  # what native code has printed
    os._exit(codes[0])


if __name__ == "__main__":
    main(sys.argv[1:])
