"""The nodes of Slurm, as a plan has to know them, and their GPUs, as a job of seconds found them on a node.

`python -m tsuishi.extras.cluster.node_gpus` is that job: it prints the GPUs that Slurm gave it, as JSON. Login nodes
often have none, and a plan has to know which GPUs there are, and how many a trial gets.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tsuishi.base import files, toml
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.base.units import counted
from tsuishi.extras.cluster.settings import of_cluster
from tsuishi.extras.cluster.slurm import AT_THE_LIBRARY, NoAnswer, Slurm, wanted
from tsuishi.machine.gpus import Gpu, Nvml

if TYPE_CHECKING:
    from tsuishi.plan.trials import PlannedTrial

# Nodes of a cluster change rarely: the answer is kept for a week.
_KEPT_S = 7 * 86400.0


class NodeGpus(Nvml):
    """The GPUs that a trial gets on a node. A plan can use them; they cannot be examined from here."""

    are_here = False

    def __init__(self, found: dict[str, Any]) -> None:
        self._found: list[dict[str, Any]] = found["gpus"]
        self._driver: str | None = found["driver"]
        self._links: list[dict[str, Any]] = found.get("links", [])
        self.why_not = str(found["why_not"])
        self.unreadable, self._handles = {}, {}

    def __len__(self) -> int:
        return len(self._found)

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        return tuple(Gpu(gpu["index"], gpu["uuid"]) for gpu in self._found)

    def driver(self) -> str | None:
        return self._driver

    def describe(self) -> list[dict[str, Any]]:
        return self._found

    def links(self) -> list[dict[str, Any]]:
        return self._links


class SlurmNodes:
    """The nodes that the settings ask Slurm for."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._own = settings, of_cluster(settings)

    @property
    def id(self) -> str:
        own = self._own
        return f"slurm-{toml.digest([own.slurm_partition, own.slurm_gres, own.slurm_constraint])}"

    def nvml(self, accelerator: str, say: Callable[[str], None]) -> NodeGpus:
        return of_nodes(self._settings, accelerator, say)

    def at_once(self) -> int:
        try:
            return max(1, min(self._own.slurm_at_once, Slurm().nodes(self._own.slurm_partition)))
        except NoAnswer as silent:
            raise UserError(f"Slurm does not answer: {silent}: wait until it does") from silent

    def expected(self, planned: Sequence["PlannedTrial"], gpus: Sequence[Gpu]) -> str:
        """gpus: of a job, whether its case uses them or not."""
        started = [trial for trial in planned if not trial.unsupported]
        node_h = sum(trial.expected_s * trial.case.nodes for trial in started) / 3600
        gpu_h = node_h * len(gpus)
        most_h = sum(trial.timeout_s * trial.case.nodes for trial in started) / 3600
        return (
            f"Slurm: {counted(len(started), 'trial')}, at most {self._own.slurm_at_once} at once: {node_h:.2f} "
            f"node-hours and {gpu_h:.2f} GPU-hours expected, at most {most_h:.1f} node-hours"
        )


def of_nodes(given: Settings, accelerator: str, say: Callable[[str], None]) -> NodeGpus:
    """The GPUs that these settings ask Slurm for; none where they ask for none.

    A job asks a node for them, which waits in the queue like any other; the answer is kept in the cache. Raises
    UserError for a part of a GPU, and where no node answers.
    """
    options, gres = wanted(given), of_cluster(given).slurm_gres  # refuses parts of GPUs
    if "gpu" not in gres or accelerator == "cpu":
        return NodeGpus(_none(given))
    kept = given.cache / "nodes" / f"{toml.digest(options)}.json"
    if kept.exists() and time.time() - kept.stat().st_mtime < _KEPT_S:
        return NodeGpus(files.read_json(kept))
    say(f"asking a node for its GPUs ({gres}), by a job of seconds: it waits in the queue like any other")
    try:
        said = Slurm().answer_of_a_node([*options, AT_THE_LIBRARY], [sys.executable, "-m", __spec__.name])
        found = files.parse_json("the answer of a node", said.encode())
    except NoAnswer as silent:
        raise UserError(f"no node said which GPUs it has: {silent}; plan for CPUs with --accelerator cpu") from silent
    if "MIG" in found["why_not"]:
        raise UserError(f"--gres {gres}: {found['why_not']}")
    kept.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(kept, found)
    return NodeGpus(found)


def _none(given: Settings) -> dict[str, Any]:
    """What a job without GPUs has, and whether its nodes have any that it could ask for."""
    try:
        there = Slurm().gres(of_cluster(given).slurm_partition)
    except (UserError, NoAnswer):
        there = []
    gpus = [name for name in there if name.startswith("gpu")]
    hint = f"; the nodes have {', '.join(gpus)}" if gpus else ""
    why_not = f"no GPU is asked of Slurm: give --gres gpu:1, say{hint}"
    return {"gpus": [], "driver": None, "why_not": why_not}


def main() -> None:
    """Print the GPUs that this process may use."""
    nvml = Nvml()
    found = {"gpus": nvml.describe(), "driver": nvml.driver(), "links": nvml.links()}
    print(json.dumps({**found, "why_not": nvml.why_not}))


if __name__ == "__main__":
    main()
