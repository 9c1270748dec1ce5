"""Asks an environment a question: starts an experiment in it, apart from any run, and returns the answer."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tsuishi.base import threads
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.engines.interface import Built, Launch, ResourceLimits, Starter
from tsuishi.environments.entry import framework_of, start_workload, why_it_failed
from tsuishi.machine.gpus import Gpu
from tsuishi.stream.listener import Timeout, Transcript, listen, why_it_ended


def ask(
    starter: Starter,
    built: Built,
    checkout: Checkout,
    experiment: str,
    argument: Mapping[str, Any],
    timeout_s: float,
    gpus: tuple[Gpu, ...] = (),
    mounts: Mapping[Path, str] | None = None,
    on_log: Callable[[bytes], None] = lambda piece: None,
) -> tuple[Transcript, str]:
    """The transcript of the experiment, and the reason of its failure; the reason is empty where it finished.

    The experiment gets the framework of the environment, too. mounts: as in `Launch`. on_log: gets all other
    output, piece by piece.
    """
    started, transcript = time.monotonic(), Transcript()
    process = start_workload(
        starter,
        built,
        checkout.workloads,
        {"experiment": experiment, "framework": framework_of(built.environment), **argument},
        Launch(
            arguments=(),
            mounts=mounts or {},
            name=f"tsuishi-{experiment}-{built.environment.name}-{time.time_ns()}",
            labels={experiment: built.environment.name},
            limits=ResourceLimits(gpus=gpus, seconds=timeout_s),
        ),
    )
    try:
        with threads.closing(process.stop):
            ended = listen(process, transcript, started, timeout_s, lambda event: None, on_log)
    except threads.Halted:  # `listen`, which cleans up, had not begun
        process.wait()
        raise
    except Timeout:
        return transcript, f"no answer within {timeout_s:.0f} s"
    except UserError as refused:
        return transcript, str(refused)
    if transcript.failure:
        return transcript, why_it_failed(transcript.failure, starter)
    if not transcript.finished:
        return transcript, transcript.last_words or why_it_ended(ended)
    return transcript, ""
