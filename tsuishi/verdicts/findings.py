"""Findings: cases with their numbers and statuses, measured in an environment or published for a hardware."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tsuishi.estimates.intervals import Term
from tsuishi.estimates.terms import case_terms
from tsuishi.results.frames import dict_rows
from tsuishi.results.records import MachineRecord
from tsuishi.specs.case import DEVICES, NODES
from tsuishi.specs.claims import Check
from tsuishi.specs.selections import ENVIRONMENT, FRAMEWORK, Selection
from tsuishi.specs.source import Epochs, Source
from tsuishi.specs.statuses import OK
from tsuishi.verdicts.evidence import Evidence


@dataclass(frozen=True)
class Finding:
    """A case with its numbers, of a series: an environment on a machine, or published hardware.

    `logs`: the terms of logarithms, by quantity; `values`: the terms of the values themselves. `partial`: an axis that
    the source does not state matches any value.
    """

    series: str
    axes: Mapping[str, Any]
    framework: str | None
    logs: dict[str, Term]
    values: dict[str, Term]
    statuses: tuple[str, ...] = ()
    # The smallest value of quantities without a logarithm, as a trial has 0 or less.
    without_ratio: Mapping[str, float] = field(default_factory=dict)
    # The name of the environment, which `series` tells apart where several machines have it.
    environment: str = ""
    on_gpu: bool = True
    # The case computes on the CPU in every environment, as its source did.
    on_cpu: bool = False
    simulated: bool = False
    synthetic: bool = False
    # The whole training of the source; and whether the trials trained for fewer epochs, or on fewer images.
    epochs: Epochs | None = None
    shortened: bool = False
    gpu_memory_gib: float | None = None
    # Whether the GPUs of its trials can reach each other's memory; None where that is not recorded.
    peer_to_peer: bool | None = None
    machine: str = ""
    partial: bool = False

    @cached_property
    def selectable(self) -> Mapping[str, Any]:
        """The axes of the case, its framework and its environment."""
        return {**self.axes, FRAMEWORK: self.framework, ENVIRONMENT: self.environment}


def on_side(findings: Sequence[Finding], check: Check, side: Selection) -> list[Finding]:
    """The findings whose cases are on a side of a check, `of` or `to`."""
    selectors = [check.selector(side, partial) for partial in (False, True)]
    return [finding for finding in findings if selectors[finding.partial](finding.selectable)]


def measured_findings(evidence: Evidence, first: int | None = None) -> list[Finding]:
    """A finding for every case of every environment. first: the numbers are of no more than so many first trials."""
    terms, by_cuda = _terms_by_case(evidence, first), _cuda_memories_mib(evidence)
    trials: dict[tuple[str, str], list[dict[str, Any]]] = {}
    without_ratio: dict[tuple[str, str], dict[str, float]] = {}
    for (case_id, column, quantity), least in evidence.without_ratio.items():
        without_ratio.setdefault((case_id, column), {})[quantity] = least
    names = ["case_id", "column", "environment", "status", "device", "machine_record", "machine"]
    counting = evidence.results.counting[[*names, "simulated", "synthetic"]]
    for place, trial in zip(counting.index.tolist(), dict_rows(counting), strict=True):
        trial["settings"] = evidence.results.details[place].settings
        trials.setdefault((trial["case_id"], trial["column"]), []).append(trial)
    return [
        Finding(
            column,
            evidence.axes[case_id],
            evidence.frameworks.get(column),
            *terms.get((case_id, column), ({}, {})),
            tuple(trial["status"] for trial in of_case),
            without_ratio.get((case_id, column), {}),
            of_case[0]["environment"],
            on_gpu={"cpu"}.isdisjoint(devices := {trial["device"] for trial in of_case} - {""}) and bool(devices),
            on_cpu=evidence.words.is_on_cpu(evidence.axes[case_id]),
            simulated=any(trial["simulated"] is True for trial in of_case),
            synthetic=any(trial["synthetic"] is True for trial in of_case),
            epochs=evidence.epochs.get(case_id),
            shortened=any(_shortened(evidence, trial) for trial in of_case),
            gpu_memory_gib=_memory_gib(machine, gpus, by_cuda.get(of_case[0]["machine_record"])),
            peer_to_peer=machine.reach(gpus) if machine else None,
            machine=of_case[0]["machine"],
        )
        for (case_id, column), of_case in sorted(trials.items())
        for machine in [evidence.results.machines.get(of_case[0]["machine_record"])]
        for gpus in [_gpus_on_a_node(evidence.axes[case_id])]
    ]


def _terms_by_case(
    evidence: Evidence, first: int | None
) -> dict[tuple[str, str], tuple[dict[str, Term], dict[str, Term]]]:
    """The terms of logarithms and the terms of values, each by quantity, by (case id, column).

    Values: those of quantities that some check takes as they are.
    """
    logs = evidence.terms_of_first(first) if first else evidence.terms
    every = evidence.values_of_first(first) if first else evidence.trial_values
    checks = [check for source in evidence.sources for claim in source.claims for check in claim.checks]
    asked = {quantity for check in checks if not check.takes_logarithms for quantity in check.compared}
    values = {key: of_key for key, of_key in every.items() if key[3] in asked}
    by_case: dict[tuple[str, str], tuple[dict[str, Term], dict[str, Term]]] = {}
    for place, terms in enumerate((logs, case_terms(values, logarithmic=False, rounds=evidence.trial_rounds))):
        for (case_id, column, quantity), term in terms.items():
            by_case.setdefault((case_id, column), ({}, {}))[place][quantity] = term
    return by_case


def _gpus_on_a_node(axes: Mapping[str, Any]) -> int:
    return int(axes.get(DEVICES) or 1) // int(axes.get(NODES) or 1)


def _shortened(evidence: Evidence, trial: dict[str, Any]) -> bool:
    settings, whole = trial["settings"], evidence.epochs.get(trial["case_id"])
    if whole is None:
        return bool(settings.get("stop_at", 0) > 0)
    fewer = whole.count is not None and settings.get("epochs", whole.count) < whole.count
    smaller = settings.get("train_images", whole.images) < whole.images
    return bool(fewer or smaller or settings.get("stop_at", 0) > 0)


def _memory_gib(machine: MachineRecord | None, gpus: int, by_cuda_mib: float | None) -> float | None:
    """The memory of the smallest GPU of a trial on so many in GiB, as NVML states it, or else as CUDA does."""
    by_nvml = [gpu.memory_mib for gpu in ((machine and machine.gpus) or [])[:gpus] if gpu.memory_mib]
    smallest = min(by_nvml, default=by_cuda_mib)
    return None if smallest is None else smallest / 1024


def _cuda_memories_mib(evidence: Evidence) -> dict[str, float]:
    """The memory of each machine's smallest GPU, as CUDA states it."""
    by_machine: dict[str, float] = {}
    results = evidence.results
    for machine, details in zip(results.trials["machine_record"].tolist(), results.details, strict=True):
        if memory_mib := details.flags.get("cuda_memory_mib"):
            by_machine[machine] = min(float(memory_mib), by_machine.get(machine, math.inf))
    return by_machine


def published_findings(source: Source) -> dict[str, list[Finding]]:
    """The numbers of a source as findings without scatter, by hardware.

    Hardware that the source prints `beside` other hardware has no entry: its numbers count for the other hardware.
    """
    beside = {hardware.name: hardware.beside for hardware in source.hardware}
    cases: dict[tuple[str, frozenset[tuple[str, Any]]], Finding] = {}
    for number in source.credible():
        key = number.hardware, number.case
        if key not in cases:
            said = number.hardware, number.axes, number.framework
            cases[key] = Finding(*said, {}, {}, (OK,), epochs=number.epochs, partial=True)
        case = cases[key]
        case.values[number.quantity] = Term(number.value, 0, None)
        if number.value > 0:
            case.logs[number.quantity] = Term(math.log(number.value), 0, None)
    by_hardware: dict[str, list[Finding]] = {name: [] for name, others in beside.items() if not others}
    for finding in cases.values():
        for name in beside[finding.series] or (finding.series,):
            by_hardware[name].append(finding)
    return by_hardware
