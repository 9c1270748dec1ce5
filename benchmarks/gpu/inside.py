"""Runs a script of the kit inside the environment, as tsuishi starts workloads: same variables, same sandbox."""

import json
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.gpu.kit import Kit
from tsuishi.base.processes import Process
from tsuishi.engines.interface import Launch, ResourceLimits

_KEPT = 4000


def start(kit: Kit, script: Path, asked: Mapping[str, Any], seconds: float) -> Process:
    """Start a script with one argument, a JSON object that also names the folder of the workloads."""
    starter, built = kit.ready.starter, kit.ready.built
    mounts = {script.parent: "/kit", kit.checkout.workloads.resolve(): "/workloads"}
    inside = {place: starter.inside(path, place) for path, place in mounts.items()}
    argument = json.dumps({**asked, "workloads": inside["/workloads"]})
    limits = ResourceLimits(seconds=seconds, gpus=kit.gpus)
    name = f"tsuishi-kit-{uuid.uuid4().hex}"
    command = ("-B", "-u", f"{inside['/kit']}/{script.name}", argument)
    return starter.start(built, Launch(command, mounts, name, {"run": "kit"}, limits))


def run_inside(kit: Kit, script: Path, asked: Mapping[str, Any], timeout_s: float) -> tuple[dict[str, Any] | None, str]:
    """The JSON object that is the script's last line; or None, and the last line of its log."""
    process = start(kit, script, asked, timeout_s)
    printed = bytearray()
    overdue = threading.Timer(timeout_s, process.stop)
    overdue.start()
    try:
        with kit.until_the_end():
            for _, piece in process.output():
                printed += piece
    finally:
        overdue.cancel()
        process.stop()
        process.wait()
    lines = [text for text in printed.decode(errors="replace").splitlines() if text.strip()]
    try:
        return dict(json.loads(lines[-1])), ""
    except (ValueError, TypeError, IndexError):
        kit.journal.keep("\n".join(lines)[-_KEPT:])
        return None, lines[-1][:300] if lines else f"no answer within {timeout_s:g} s"
