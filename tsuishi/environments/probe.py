"""A question to an environment: one workload, started in it outside of any run, and heard out."""

import time
from collections.abc import Mapping
from typing import Any

from tsuishi.base import threads, toml
from tsuishi.base.checkout import Rooms
from tsuishi.base.errors import UserError
from tsuishi.engines.interface import Built, Engine, Launch, ResourceLimits
from tsuishi.machine.gpus import Gpu
from tsuishi.stream.events import Event
from tsuishi.stream.listener import Timeout, Transcript, listen, why_it_ended

WORKLOADS_INSIDE = "/workloads"
ENTRY = "run.py"  # of all workloads; its argument names the experiment
_LOG_KEPT = 4000


def ask(
    engine: Engine,
    built: Built,
    rooms: Rooms,
    workload: str,
    argument: Mapping[str, Any],
    timeout_s: float,
    gpus: tuple[Gpu, ...] = (),
) -> tuple[Transcript, str]:
    """What the workload said, and why it came to no good end; empty where it finished."""
    script = f"{engine.inside(rooms.workloads, WORKLOADS_INSIDE)}/{ENTRY}"
    started, transcript, log = time.monotonic(), Transcript(), bytearray()

    def remember(piece: bytes) -> None:
        log.extend(piece)
        del log[:-_LOG_KEPT]

    process = engine.start(
        built,
        Launch(
            arguments=("-u", script, toml.canonical_json({"experiment": workload, **argument})),
            mounts={rooms.workloads: WORKLOADS_INSIDE},
            name=f"tsuishi-{workload}-{built.environment.name}-{time.time_ns()}",
            labels={workload: built.environment.name},
            limits=ResourceLimits(gpus=gpus, seconds=timeout_s),
        ),
    )
    try:
        with threads.closing(process.stop):
            ended = listen(process, transcript, started, timeout_s, _ignore, remember)
    except threads.Halted:  # stopped before anybody listened, and so cleaned up by nobody
        process.wait()
        raise
    except Timeout:
        return transcript, f"no answer within {timeout_s:.0f} s"
    except UserError as refused:
        return transcript, str(refused)
    if transcript.failure:
        return transcript, transcript.failure.text
    if not transcript.finished:
        return transcript, _last_line(bytes(log)) or why_it_ended(ended)
    return transcript, ""


def _ignore(event: Event) -> None:
    """The transcript holds what matters."""


def _last_line(log: bytes) -> str:
    lines = [line for line in log.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""
