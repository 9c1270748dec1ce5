"""Which cases can be run in this environment on this machine, and why the others cannot: asked of all at once.

An experiment that can be asked has
    possible(request)  raises Unsupported where the case cannot be run; returns what has to be tried to know more, as
                       (function, arguments) of functions that raise Unsupported where it does not work
and its run makes the same checks. Those that need no framework come first: they have their reason also where none is
installed. None of them builds a network, makes data or measures. What has to be tried is tried once, in a forked
process that ends afterwards, as it changes what the framework does from then on. The process that forks has imported
the framework and computed nothing: it has started no device, and no threads but those of OpenBLAS, which knows of
forks. A try that dies or takes too long has told nothing: its cases count as possible, and their trials tell.

The argument: framework and accelerator as of a Request, and groups, each with `workload` (the experiment), `settings`,
the names of its `axes`, and `cases`, for each the values of these axes. The answers are events `possible`; cases are
counted over all groups.
"""

import functools
import importlib
import json
import os
import select
import signal
import sys
import time
import traceback

from common.events import Unsupported
from common.request import Request

LIMIT_S = 20.0  # for one try, which takes less than 5 s on a machine that is not busy


def run(questions, emitter):
    """questions: for each case (experiment's name, Request)."""
    tried = {}
    for index, (name, request) in enumerate(questions):
        experiment = importlib.import_module("experiments." + name)
        # Of an experiment that cannot be asked every case is tried.
        ask = getattr(experiment, "possible", lambda request: [])
        emitter.possible(index, refusal(functools.partial(ask_and_try, ask, tried), request))


def refusal(ask, request):
    """Why a case cannot be run, as the reason of its trial would say it; "" where nothing says so.

    An error is the trial's to fail with. Only a framework that cannot be imported ends the question: there is nobody to
    answer.
    """
    try:
        ask(request)
    except Unsupported as error:
        return in_words(error)
    except ImportError:
        raise
    except Exception:
        traceback.print_exc()
    return ""


def ask_and_try(ask, tried, request):
    """Raises Unsupported where the workload or a try does. tried: reasons by try, which is added to."""
    for one in ask(request):
        if one not in tried:
            tried[one] = try_apart(*one)
        if tried[one]:
            raise Unsupported(tried[one])


def try_apart(function, arguments, limit_s=LIMIT_S):
    """Why a try is refused, by a process of its own; "" where it is not, or where that process dies or hangs."""
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.setsid()  # so that whatever it starts can be ended with it
        os.close(reader)
        try_and_leave(function, arguments, writer)
    os.close(writer)
    reason = read_within(reader, limit_s)
    os.close(reader)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it ended with all it had started
    os.waitpid(child, 0)
    if reason is None:
        print("{}{} gave no answer: its cases are tried".format(function.__name__, arguments), file=sys.stderr)
    return reason or ""


def try_and_leave(function, arguments, writer):
    """In the child: writes the text of an Unsupported, or nothing but an end, and never returns."""
    try:
        try:
            function(*arguments)
            reason = ""
        except Unsupported as error:
            reason = str(error)
        os.write(writer, json.dumps(reason).encode("ascii") + b"\n")
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def read_within(reader, limit_s):
    """The JSON value of a line that comes through a pipe within so many seconds; None where it does not."""
    line, deadline = b"", time.monotonic() + limit_s
    while select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(reader, 1 << 16)
        line += part
        if line.endswith(b"\n"):
            return json.loads(line.decode("ascii"))
        if not part:
            break
    return None


def in_words(error):
    return "{}: {}".format(type(error).__name__, error)


def read(asked):
    """The questions of the JSON object."""
    given = {name: asked[name] for name in ("framework", "accelerator")}
    return [
        (group["workload"], Request(dict(given, case=dict(zip(group["axes"], values)), settings=group["settings"])))
        for group in asked["groups"]
        for values in group["cases"]
    ]
