"""Which of many cases can be run in this environment on this machine, and why the others cannot.

An experiment that can answer has
    possible(request)  raises Unsupported where the case cannot be run; returns the tries that tell more: a list of
                       (function, arguments), whose function raises Unsupported where the try does not work
The experiment's run makes the same checks. Checks that need no framework come first, so that their reason is given even
where no framework is installed. No check builds a network, makes data or measures.

Each try is made once, in a forked process that ends afterwards, because a try changes what the framework does later.
The process that forks has imported the framework and computed nothing: it has started no device, and no threads except
those of OpenBLAS, which supports forks. A try that dies or takes too long has no answer: its cases count as possible,
and their trials show what happens.

The argument has framework and accelerator as in a Request, and `groups`. A group has `workload` (the experiment),
`settings`, the names of its `axes`, and `cases` (for each case the values of these axes). The answers are events
`possible`, whose index counts the cases of all groups.
"""

import importlib
import json
import os
import select
import signal
import sys
import time
import traceback

from common.cuda_devices import GpusMissing
from common.events import Unsupported
from common.request import Request

LIMIT_S = 20.0  # for a try, which takes less than 5 s on a machine that is not busy


def run(questions, emitter):
    """Answers all questions. questions: for each case (experiment's name, Request)."""
    tried = {}
    for index, (name, request) in enumerate(questions):
        experiment = importlib.import_module("experiments." + name)
        # Every case counts as possible where the experiment cannot answer.
        ask = getattr(experiment, "possible", lambda request: [])
        emitter.possible(index, refusal(ask, tried, request))


def refusal(ask, tried, request):
    """Why a case cannot be run, in the words of its trial; "" where it may be possible.

    For any other error the case counts as possible: its trial will fail with that error. An ImportError and GpusMissing
    end all questions: without the framework, or without the GPUs, there are no answers.
    """
    try:
        ask_and_try(ask, tried, request)
    except Unsupported as error:
        return "{}: {}".format(type(error).__name__, error)
    except (ImportError, GpusMissing):
        raise
    except Exception:
        traceback.print_exc()
    return ""


def ask_and_try(ask, tried, request):
    """Raises Unsupported where the experiment or a try does. tried: {try: reason}, to which new tries are added."""
    for attempt in ask(request):
        if attempt not in tried:
            tried[attempt] = try_apart(*attempt)
        if tried[attempt]:
            raise Unsupported(tried[attempt])


def try_apart(function, arguments, limit_s=LIMIT_S):
    """Makes a try in a process of its own. Returns why it is refused; "" where it works, dies or hangs."""
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.setsid()  # so that all processes that it starts can be ended with it
        os.close(reader)
        try_and_leave(function, arguments, writer)
    os.close(writer)
    reason = read_within(reader, limit_s)
    os.close(reader)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended, and so have all processes that it started
    os.waitpid(child, 0)
    if reason is None:
        print("{}{} gave no answer: its cases are tried".format(function.__name__, arguments), file=sys.stderr)
    return reason or ""


def try_and_leave(function, arguments, writer):
    """In the child: writes the text of an Unsupported, or "" where the try works. Never returns."""
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
    """The JSON value of a line from a pipe; None where no whole line arrives within limit_s seconds."""
    line, deadline = b"", time.monotonic() + limit_s
    while select.select([reader], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(reader, 1 << 16)
        line += part
        if line.endswith(b"\n"):
            return json.loads(line.decode("ascii"))
        if not part:
            break
    return None


def read(values):
    """The questions of the JSON object: for each case (experiment's name, Request)."""
    common = {name: values[name] for name in ("framework", "accelerator", "gpus") if name in values}
    return [
        (group["workload"], Request(dict(common, case=dict(zip(group["axes"], case)), settings=group["settings"])))
        for group in values["groups"]
        for case in group["cases"]
    ]
