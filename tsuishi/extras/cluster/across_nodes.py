"""A trial over several nodes, started from its first node: srun starts `member` on each, and prints its output."""

import os
import socket
import sys
from dataclasses import replace
from pathlib import Path

from tsuishi.base import owner
from tsuishi.machine.slurm import AT_THE_LIBRARY, variables
from tsuishi.run.trial import Bench

# Seconds after the first node has ended until Slurm ends the others.
_OTHERS_END_IN_S = 20
_MEMBER = "tsuishi.extras.cluster.member"
# srun is a process of the trial on this node. Other nodes do not know its runner: processes there have their own mark.
_WITHOUT_MARK = ("/usr/bin/env", "-u", owner.MARK)


def across_nodes(bench: Bench, folder: Path, index: int, nodes: int) -> Bench:
    """What this node offers to a trial over several nodes: task `index` of the submission in `folder`.

    Each node makes its own command for the trial, as its paths and GPUs may differ.
    """
    of_job = {name: value for name, value in os.environ.items() if name.startswith("SLURM")}
    member = (sys.executable, "-m", _MEMBER, str(folder), str(index), str(_free_port()))
    command = [*on_each_node(nodes), *_WITHOUT_MARK, *member]
    return replace(bench, ready=bench.ready.started_by(command, {**variables(os.environ), **of_job}))


def on_each_node(nodes: int) -> list[str]:
    """The beginning of a command that Slurm runs once on each node of this job, with all that the job has there."""
    return [
        "/usr/bin/env",
        "srun",
        f"--nodes={nodes}",
        f"--ntasks={nodes}",
        "--ntasks-per-node=1",
        "--cpu-bind=none",
        AT_THE_LIBRARY,
        "--mem=0",
        "--export=ALL",
        f"--wait={_OTHERS_END_IN_S}",
    ]


def _free_port() -> int:
    """A port of this node, the first node, where the processes meet."""
    with socket.socket() as free:
        free.bind(("", 0))
        return int(free.getsockname()[1])
