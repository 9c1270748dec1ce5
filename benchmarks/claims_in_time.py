"""How many claims ten and thirty minutes judge on GPUs: `python -m benchmarks.claims_in_time`, with .venv active.

Each row is of runs whose trials are made up (benchmarks/stand_in_cards.py) and whose plan, rounds and verdicts are the
real ones. A verdict is right where it is that of a run without scatter, or says less. prices: the seconds that the plan
expects of a trial, over those that it would expect.
"""

import argparse
import itertools
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import cached_property
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from benchmarks.made_runs import folder
from benchmarks.stand_in_cards import ADA, START_S, TURING, Card, Cards, MadeUpClock, MadeUpTrials, record_of
from tests.sessions import seeing
from tests.words import shipped_sources
from tsuishi.base.checkout import Checkout
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.engines.interface import Built
from tsuishi.engines.subprocesses import ProcessStarter
from tsuishi.environments.entry import Ready
from tsuishi.estimates import contrasts
from tsuishi.machine.history import History
from tsuishi.plan import trials
from tsuishi.plan.choice import Choice
from tsuishi.plan.outline import outline
from tsuishi.plan.planning import Plan, questions
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory
from tsuishi.run import measuring
from tsuishi.run.ledger import create
from tsuishi.run.measuring import Measuring
from tsuishi.specs.claims import DECIDED
from tsuishi.specs.environment import Environment, find_environment
from tsuishi.verdicts.conclusions import conclude
from tsuishi.verdicts.evidence import Evidence

CHECKOUT = Checkout()
RUNS = 20
# The scatter of the truth: none that decides, but an interval has a length.
TRUTH = 1e-4


@dataclass(frozen=True)
class Stand:
    """A machine that nobody has, and the environments that are ready on it, each with its framework."""

    name: str
    card: Card
    count: int
    environments: Mapping[str, str]


OF_2019_AND_TODAY = {
    "tf1.13-cu100-wheels": "tensorflow",
    "tf2-cuda": "tensorflow",
    "torch1.2-cu100": "torch",
    "torch2-cuda": "torch",
}
STANDS = (
    Stand("1 x RTX 2080 Ti", TURING, 1, OF_2019_AND_TODAY),
    Stand("2 x RTX 2080 Ti", TURING, 2, OF_2019_AND_TODAY),
    Stand("RTX 4090, host", ADA, 1, {"host": "torch"}),
)
STRATEGIES = {
    "torch": ("none", "data_parallel", "distributed_data_parallel"),
    "tensorflow": ("none", "towers", "mirrored", "multi_gpu_model"),
}


class Priced(History):
    """No history, on a machine as fast as that of the guesses; it expects `factor` times as much of every trial."""

    factor = 1.0

    @cached_property
    def slowness(self) -> float:
        return 1.0

    def expected_s(self, name: str, guess_s: float, kinds: Any = (), **more: Any) -> float:
        expected_s = super().expected_s(name, guess_s, kinds, **more)
        return expected_s * self.factor if name.startswith("trial") and not self.measured(name) else expected_s

    def keep(self) -> None: ...


def refused(environment: str, framework: str, axes: Mapping[str, Any], card: Card) -> str:
    """Why a case cannot run there, as the environment itself says once it is asked; empty where it can."""
    old = "1.13-" in environment or "1.2-" in environment
    new = ("compiled", "cuda_graph", "amp_fp16", "amp_bf16", "fp16", "bf16", "tf32")
    values = {axes.get("execution"), axes.get("precision")}
    if axes.get("strategy", "none") not in STRATEGIES[framework] or axes.get("batches", "resident") != "resident":
        return "strategy"
    if framework == "tensorflow" and ("cuda_graph" in values or str(axes.get("model")).startswith("torchvision")):
        return "no graph"
    if axes.get("strategy") == "multi_gpu_model" and not old:
        return "removed"
    if card is TURING and values & {"tf32", "amp_bf16", "bf16"}:
        return "no such type"
    if old and (values & {*new} or (framework == "torch" and axes.get("layout") == "channels_last")):
        return "old"
    if axes.get("suite") == "conv2d" and framework == "torch" and axes.get("feed") == "constant":
        return "no graph"
    return ""


def made_run(
    stand: Stand, root: Path, within_s: float, factor: float, seed: int, scatter: float | None = None
) -> RunDirectory:
    """The directory of a run of this many seconds; with a scatter, of the truth: all claims, without a limit."""
    nvml, history = Cards(stand.card, stand.count), Priced(root / "cache", "machine")
    history.factor = factor
    everything = scatter is not None
    clock = MadeUpClock(within_s)
    settings = Settings(cache=root / "cache", results=root / "results", engine="venv")
    environments = [known for name in stand.environments if (known := find_environment(CHECKOUT.images, name))]
    ready = {each.name: _ready(each, stand.environments[each.name]) for each in environments}
    environments = [each.as_built for each in ready.values()]
    choice = Choice(environments=tuple(stand.environments), seed=seed)
    session = Session(settings, choice, Screen(), CHECKOUT, clock=clock)
    seeing(session, nvml=nvml, history=history, data=None, machine="machine")
    matrix = _matrix(session, environments, stand)
    asked = questions(session, matrix)
    executor = MadeUpTrials(stand.card, clock, stand.environments, random.Random(seed))  # noqa: S311
    heat_s = session.heat_s("cuda")

    def heat(*given: Any) -> float:
        clock.passed_s += heat_s + START_S
        return heat_s

    if everything:
        executor.scatter = scatter or 0.0
        asked = [each for each in asked if each.kind == "claim"]
        clock.within_s = 1e9
    left_s = session.left_for_trials_s() - heat_s - START_S
    outlined = outline(choice, matrix, asked, {}, 1, left_s)
    run = create(session, f"made{seed}", Plan(tuple(environments), 0.0, outlined), {})
    with patch.object(measuring, "heat", heat), redirect_stdout(StringIO()):
        Measuring(session, run, ready, executor=executor).deepen(matrix, outlined.asked, outlined.others)
    return run


def _ready(environment: Environment, framework: str) -> Ready:
    built = Built(environment, "venv", "", "spec", "realised", ("python",))
    return Ready(environment, ProcessStarter(), built, record_of(environment, framework))


def _matrix(session: Session, environments: list[Environment], stand: Stand) -> trials.Matrix:
    given = session.choice, CHECKOUT, environments, session.nvml, session.history
    everything = trials.matrix(*given)
    why: dict[str, dict[str, str]] = {}
    for cell, trial in everything.first.items():
        name = cell.environment
        if reason := refused(name, stand.environments[name], trial.case.axes, stand.card):
            why.setdefault(name, {})[cell.case_id] = reason
    return trials.matrix(*given, None, why)


def verdicts(run: RunDirectory) -> dict[tuple[str, str, str], str]:
    """The verdict on each claim, by source, claim and subject."""
    session_words = Session(Settings(), Choice(), Screen(), CHECKOUT).words
    judgements = conclude(Evidence([run], shipped_sources(), session_words)).judgements
    return {(each.source, each.claim.id, str(each.subject)): each.verdict for each in judgements}


def judged(found: Mapping[tuple[str, str, str], str]) -> set[tuple[str, str]]:
    """The claims that have a verdict for some subject."""
    return {key[:2] for key, verdict in found.items() if verdict in DECIDED}


def wrong(found: Mapping[tuple[str, str, str], str], true: Mapping[tuple[str, str, str], str]) -> list[str]:
    """The verdicts that say another thing than the truth."""
    said = {key: verdict for key, verdict in found.items() if verdict in DECIDED}
    less = {("direction only", "reproduced")}
    return [
        f"{key}: {verdict}, truly {true.get(key)}"
        for key, verdict in said.items()
        if key in true and verdict != true[key] and (verdict, true[key]) not in less
    ]


@dataclass
class Row:
    """What runs of a length judged: the number of claims of each run, and how many runs judged each claim.

    possible: the claims that a run without a limit judges.
    """

    stand: Stand
    minutes: int
    factor: float
    possible: set[tuple[str, str]]
    counts: list[int] = field(default_factory=list)
    trials: list[int] = field(default_factory=list)
    runs: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, seed: int, true: Mapping[tuple[str, str, str], str]) -> None:
        """Make a run, and count."""
        with folder() as path:
            run = made_run(self.stand, path, 60.0 * self.minutes, self.factor, seed)
            found = verdicts(run)
            self.trials.append(len(run.run().plan))
        self.counts.append(len(judged(found) & self.possible))
        self.runs.update(judged(found))
        self.wrong += wrong(found, true)

    @property
    def cells(self) -> tuple[object, ...]:
        counted = f"{median(self.counts):g}", min(self.counts), len(self.possible)
        length = f"{self.minutes} min", f"{self.factor:g}"
        return self.stand.name, *length, *counted, len(self.wrong), f"{median(self.trials):g}"


def truth(stand: Stand) -> dict[tuple[str, str, str], str]:
    """The verdicts of a run without scatter, drift or limit."""
    with folder() as path, patch.object(contrasts, "unseen_variance", lambda terms: 0.0):
        return verdicts(made_run(stand, path, 1e9, 1.0, 0, scatter=TRUTH))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each row")
    parser.add_argument("--minutes", default="10,30", help="of a run")
    parser.add_argument("--prices", default="1,0.5,2", help="factors")
    parser.add_argument("--stands", default="0,1,2", help="which of the machines")
    parser.add_argument("--claims", action="store_true", help="name the claims of each row")
    given = parser.parse_args()
    minutes, factors = map(int, given.minutes.split(",")), [*map(float, given.prices.split(","))]
    stands = [STANDS[int(each)] for each in given.stands.split(",")]
    rows = []
    for stand, length in itertools.product(stands, minutes):
        true = truth(stand)
        for factor in factors:
            rows.append(row := Row(stand, length, factor, judged(true)))
            for seed in range(given.runs):
                row.add(seed, true)
            print(*row.cells, sep=" | ", flush=True)
            for fault in row.wrong:
                print("  wrong:", fault)
            for claim in sorted(row.possible) if given.claims else ():
                print(f"  {' '.join(claim)}: {row.runs[claim]} of {given.runs} runs")
    head = ("machine", "time", "prices", "claims, median", "worst", "of", "wrong", "trials, median")
    Screen().table("Claims with a verdict", head, [row.cells for row in rows])
    raise SystemExit(any(row.wrong for row in rows))


if __name__ == "__main__":
    main()
