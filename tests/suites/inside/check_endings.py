"""Runs inside an environment: `training` with a budget too small, with a rank that is killed, and one without memory.

Arguments: the folder of the workloads, and the framework. Prints a JSON object: for each trial its exit code and last
event; of ranks also whether the others waited for one until their patience ended, and how many processes they left.
Keeps to Python 3.6.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKLOADS, FRAMEWORK = Path(sys.argv[1]), sys.argv[2]
FAILING = Path(__file__).parent / "training_with_a_failing_rank.py"
SETTINGS = {
    "warm_up_steps": 20,
    "warm_up_s": 60,
    "block_s": 0.1,
    "min_blocks": 8,
    "measure_s": 60,
    "max_s": 600,
    "stop_at": 0,
    "epochs": 2,
    "min_epochs": 1,
    "train_images": 64,
    "test_images": 8,
    "learning_rate": 0.01,
    "momentum": 0.9,
    "parts": "",
    "seed": 0,
}
GONE_AFTER_S = 60  # a process still there then stays


def start(script, budget_s=None, stderr=None, **axes):
    """The workload of a script, in a session of its own."""
    case = {
        "protocol": "steady",
        "mode": "training",
        "model": "mlp",
        "layout": "native",
        "strategy": "none",
        "devices": 1,
        "nodes": 1,
        "batch_size": 6,
        "precision": "fp32",
        "execution": "native",
    }
    case.update(axes)
    request = {"experiment": "training", "case": case, "settings": SETTINGS, "budget_s": budget_s}
    request.update(framework=FRAMEWORK, accelerator="cpu")
    command = [sys.executable, "-u", str(script), json.dumps(request)]
    environment = dict(
        os.environ, PYTHONPATH=os.pathsep.join(map(str, (WORKLOADS, FAILING.parent))), PYTHONDONTWRITEBYTECODE="1"
    )
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True, env=environment)


def events_of(process):
    for line in process.stdout:
        _, separator, event = line.partition(b"\x1e")
        if separator:
            yield json.loads(event.decode("ascii"))


def ending(process):
    events = list(events_of(process))
    return {"code": process.wait(), "last": events[-1]}


def processes_of(session):
    """{process: its arguments} of a session, less those that only wait to be reaped."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, of = (process / "stat").read_text().rpartition(")")[2].split()[:4]
            arguments = (process / "cmdline").read_text().split("\0")[:-1]
        except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
            continue
        if int(of) == session and state != "Z":
            found[int(process.name)] = arguments
    return found


def left_by(process):
    """How many processes of its session are left in the end."""
    patience = time.time() + GONE_AFTER_S
    while processes_of(process.pid) and time.time() < patience:
        time.sleep(0.1)
    return len(processes_of(process.pid))


def ranks(script, meanwhile):
    """How a trial of three ranks ends, the last of which fails: the middle one fails with it, as rank 0 does."""
    with tempfile.TemporaryFile() as log:
        process = start(script, strategy="distributed_data_parallel", devices=3, stderr=log)
        meanwhile(process)
        found = dict(ending(process), left=left_by(process))
        log.seek(0)
        told = log.read().decode(errors="replace")  # the traceback of the rank that lost touch, in gloo's words
    return dict(found, lost_touch="RuntimeError" in told, patience_ended="imed out waiting" in told)


def kill_the_last(process):
    next(event for event in events_of(process) if event["event"] == "sample")
    (last,) = [one for one, arguments in processes_of(process.pid).items() if arguments[-1] == "2"]
    os.kill(last, signal.SIGKILL)


def main():
    script = WORKLOADS / "run.py"
    found = {protocol: ending(start(script, budget_s=0.001, protocol=protocol)) for protocol in ("literal", "steady")}
    if FRAMEWORK == "torch":
        found["killed"] = ranks(script, kill_the_last)
        found["without_memory"] = ranks(FAILING, lambda process: None)
        for how in ("early", "waiting"):
            os.environ["FAILING"] = how
            found[how] = ranks(FAILING, lambda process: None)
    print("found: " + json.dumps(found))


if __name__ == "__main__":
    main()
