"""Whatever a check of a claim asks for, its suite produces, in each protocol, from phases that real trials wrote."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from tests.synthetic_run import WORKLOADS
from tests.words import SUITES_OF_OURS, WORDS, shipped_sources
from tsuishi.base.checkout import Checkout
from tsuishi.estimates.gpu_use import HOST, gpu_quantities
from tsuishi.results import directory
from tsuishi.results.directory import RunDirectory
from tsuishi.results.frames import Results
from tsuishi.results.records import GpuRecord
from tsuishi.specs.case import PROTOCOL, SUITE, Value
from tsuishi.specs.claims import Check, Claim
from tsuishi.specs.statuses import OK
from tsuishi.specs.suite import Suite, read_suite
from tsuishi.verdicts.evidence import Evidence

pytestmark = pytest.mark.engine

GPUS = 4
SOURCES = shipped_sources()
# The quantities of a suite, by protocol and mode.
Produced = dict[tuple[str, str, str | None], set[str]]


def with_gpus(results: Results) -> Results:
    """The same trials on a machine with GPUs: each tick of the host is one of every GPU too, in the same phase."""
    ticks = results.telemetry[results.telemetry["device"] == HOST]
    values = {"utilisation_percent": 50.0, "power_w": 100.0, "memory_used_mib": 8000.0}
    gpus = pd.concat([ticks.assign(device=f"gpu{number}", **values) for number in range(GPUS)], ignore_index=True)
    cards = [GpuRecord(index=number, name="made up", memory_mib=8192.0) for number in range(GPUS)]
    machines = {name: record.model_copy(update={"gpus": cards}) for name, record in results.machines.items()}
    return replace(results, telemetry=gpus, machines=machines)


@pytest.fixture(scope="module")
def produced(done: tuple[Path, str]) -> Produced:
    """The quantities of the main job's trials."""
    runs = [RunDirectory(path) for path in directory.known_runs(done[0] / "results").values()]
    evidence = Evidence(runs, SOURCES, WORDS)
    found: Produced = defaultdict(set)
    rows = evidence.estimates[["case_id", "quantity"]].itertuples(index=False, name=None)
    for case_id, quantity in rows:
        found[_kind(evidence, case_id)].add(quantity)
    trials = evidence.results.trials[["case_id", "status"]]
    for trial, quantities in gpu_quantities(with_gpus(evidence.results)).items():
        case_id, status = (str(trials.loc[trial, name]) for name in ("case_id", "status"))
        if status == OK:
            found[_kind(evidence, case_id)] |= {*quantities}
    return found


def _kind(evidence: Evidence, case_id: str) -> tuple[str, str, str | None]:
    axes = evidence.axes[case_id]
    return axes[SUITE], axes[PROTOCOL], axes.get("mode")


def quantities_of(produced: Produced, suite: str, protocol: str, modes: Collection[Value]) -> set[str]:
    """What a suite produced; of an adopted table, which no job runs, what the suites with its workload produced."""
    of_workload = [other for other in SUITES_OF_OURS if WORKLOADS[other] == WORKLOADS[suite]]
    suites = [suite] if suite in SUITES_OF_OURS else of_workload
    if spec_of(suite).profiles["full"].settings.readings:  # literal passes are emitted as the steps of steady
        protocol = "steady"
    return {
        quantity
        for (other, way, mode), found in produced.items()
        for quantity in found
        if other in suites and way == protocol and (not modes or mode in modes)
    }


@cache
def protocols_of(suite: str) -> set[str]:
    """The protocols of a suite's cases: those of adopted tables have the steady protocol alone, but two."""
    return {str(case.values[PROTOCOL]) for on in ("cpu", "cuda") for case, _ in spec_of(suite).cases("full", on)}


@cache
def spec_of(suite: str) -> Suite:
    return read_suite(Checkout().suites / f"{suite}.toml", WORDS)


def asked(claim: Claim, check: Check) -> Iterator[tuple[str, str, Collection[Value], set[str]]]:
    """By suite, protocol and modes of a check: names of quantities, of which it needs one. No modes: all."""
    protocols = claim.named(PROTOCOL) or {"literal", "steady"}
    for side, name in ((check.of, check.quantity), (check.to, check.to_quantity or check.quantity)):
        needed = {name} if name else {"gpu_imbalance"} if check.kind == "imbalance" else {"step_s", "median_epoch_s"}
        case = {**check.case, **(side or {})}
        for suite in map(str, case[SUITE]):
            for protocol in sorted(protocols_of(suite) & {*map(str, protocols)}):
                yield suite, protocol, case.get("mode", ()), needed


@pytest.mark.parametrize(
    ("claim", "check"),
    [
        pytest.param(claim, check, id=f"{source.name}-{claim.id}-{place}")
        for source in SOURCES
        for claim in source.claims
        for place, check in enumerate(claim.checks)
        if check.kind != "presence"
    ],
)
def test_what_a_check_asks_for_is_produced_by_its_suite(claim: Claim, check: Check, produced: Produced) -> None:
    places = [
        (suite, protocol, names, found)
        for suite, protocol, modes, names in asked(claim, check)
        if (found := quantities_of(produced, suite, protocol, modes))
    ]
    assert places, "a smoke job has a case of the suite in one of the protocols"
    for suite, protocol, names, found in places:
        assert names & found, f"{suite}, {protocol}: none of {sorted(names)}"
