"""Whatever a check of a claim asks for, its suite produces, in each protocol, from phases that real trials wrote."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from tests.synthetic_run import WORKLOADS
from tests.words import SUITES_OF_OURS, WORDS, shipped_sources
from tsuishi.estimates.gpu_use import HOST, gpu_quantities
from tsuishi.results import directory
from tsuishi.results.directory import RunDirectory
from tsuishi.results.frames import Results
from tsuishi.results.records import GpuRecord
from tsuishi.specs.case import PROTOCOL, SUITE
from tsuishi.specs.claims import Check, Claim
from tsuishi.specs.statuses import OK
from tsuishi.verdicts.evidence import Evidence

pytestmark = pytest.mark.engine

GPUS = 4
SOURCES = shipped_sources()
Produced = dict[tuple[str, str], set[str]]


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
    """The quantities of the main job's trials, by suite and protocol."""
    runs = [RunDirectory(path) for path in directory.known_runs(done[0] / "results").values()]
    evidence = Evidence(runs, SOURCES, WORDS)
    found: Produced = defaultdict(set)
    rows = evidence.estimates[[SUITE, PROTOCOL, "quantity"]].itertuples(index=False, name=None)
    for suite, protocol, quantity in rows:
        found[suite, protocol].add(quantity)
    trials = evidence.results.trials[[SUITE, PROTOCOL, "status"]]
    for trial, quantities in gpu_quantities(with_gpus(evidence.results)).items():
        suite, protocol, status = (str(trials.loc[trial, name]) for name in (SUITE, PROTOCOL, "status"))
        if status == OK:
            found[suite, protocol] |= {*quantities}
    return found


def quantities_of(produced: Produced, suite: str, protocol: str) -> set[str]:
    """What a suite produced; of an adopted table, which no job runs, what the suites with its workload produced."""
    of_workload = [other for other in SUITES_OF_OURS if WORKLOADS[other] == WORKLOADS[suite]]
    suites = [suite] if suite in SUITES_OF_OURS else of_workload
    return set().union(*(produced[each, protocol] for each in suites))


def asked(claim: Claim, check: Check) -> Iterator[tuple[str, str, set[str]]]:
    """By suite and protocol of a check: names of quantities, of which it needs one."""
    protocols = claim.named(PROTOCOL) or {"literal", "steady"}
    for side, name in ((check.of, check.quantity), (check.to, check.to_quantity or check.quantity)):
        needed = {name} if name else {"gpu_imbalance"} if check.kind == "imbalance" else {"step_s", "median_epoch_s"}
        for suite in {**check.case, **(side or {})}[SUITE]:
            for protocol in protocols:
                yield str(suite), str(protocol), needed


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
        for suite, protocol, names in asked(claim, check)
        if (found := quantities_of(produced, suite, protocol))
    ]
    assert places, "a smoke job has a case of the suite in one of the protocols"
    for suite, protocol, names, found in places:
        assert names & found, f"{suite}, {protocol}: none of {sorted(names)}"
