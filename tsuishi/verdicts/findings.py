"""Findings: cases as claims see them, measured in an environment or published of some hardware."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tsuishi.estimates.intervals import Term, case_terms
from tsuishi.estimates.samples import EPOCH_IMAGES, EPOCHS
from tsuishi.results.frames import dict_rows
from tsuishi.specs.claims import Selection
from tsuishi.specs.source import Source
from tsuishi.verdicts.evidence import Evidence


@dataclass(frozen=True)
class Finding:
    """A case on one machine in one environment, or on published hardware: its terms by quantity, its statuses.

    A published one may be `partial`: an axis that its source does not say matches whatever is asked for.
    """

    whose: str
    axes: Mapping[str, Any]
    framework: str | None
    logs: dict[str, Term]
    values: dict[str, Term]
    statuses: tuple[str, ...] = ()
    on_gpu: bool = True
    simulated: bool = False
    synthetic: bool = False
    # Trained for fewer epochs, or on fewer images, than the sources did.
    shortened: bool = False
    gpu_memory_gib: float | None = None
    machine: str = ""
    partial: bool = False

    def selected(self, *selections: Selection) -> bool:
        """Whether it has one of the values on every axis that these give."""
        known = {**self.axes, "framework": self.framework}
        return all(
            known.get(axis) in values or (self.partial and known.get(axis) is None)
            for one in selections
            for axis, values in one.items()
        )


def measured(evidence: Evidence) -> list[Finding]:
    """Every case of every environment, with what its trials came to."""
    terms = evidence.terms, case_terms(evidence.trial_values, logarithmic=False)
    by_case: dict[tuple[str, str], tuple[dict[str, Term], dict[str, Term]]] = {}
    for place, of_place in enumerate(terms):
        for (case_id, column, quantity), term in of_place.items():
            by_case.setdefault((case_id, column), ({}, {}))[place][quantity] = term
    trials: dict[tuple[str, str], list[dict[str, Any]]] = {}
    frameworks: dict[str, str] = {}
    told = ["run_id", "trial_id", "case_id", "column", "framework", "status", "device", "machine_record"]
    for trial in dict_rows(evidence.results.counting[[*told, "simulated", "synthetic"]]):
        trials.setdefault((trial["case_id"], trial["column"]), []).append(trial)
        if trial["framework"]:
            frameworks[trial["column"]] = trial["framework"].split(" ")[0]
    return [
        Finding(
            column,
            evidence.axes[case_id],
            frameworks.get(column),
            *by_case.get((case_id, column), ({}, {})),
            tuple(trial["status"] for trial in of_case),
            on_gpu={"cpu"}.isdisjoint(devices := {trial["device"] for trial in of_case} - {""}) and bool(devices),
            simulated=any(trial["simulated"] is True for trial in of_case),
            synthetic=any(trial["synthetic"] is True for trial in of_case),
            shortened=any(_shortened(evidence, trial) for trial in of_case),
            gpu_memory_gib=_gpu_memory_gib(evidence, of_case[0]["machine_record"]),
            machine=of_case[0]["machine_record"],
        )
        for (case_id, column), of_case in sorted(trials.items())
    ]


def _shortened(evidence: Evidence, trial: dict[str, Any]) -> bool:
    settings = evidence.results.details[trial["run_id"], trial["trial_id"]].get("settings") or {}
    length = settings.get("epochs", EPOCHS), settings.get("train_images", EPOCH_IMAGES)
    return bool(length[0] < EPOCHS or length[1] < EPOCH_IMAGES or settings.get("stop_at", 0) > 0)


def _gpu_memory_gib(evidence: Evidence, machine: str) -> float | None:
    """Of the smallest GPU of a machine."""
    gpus = evidence.results.records.get(machine, {}).get("gpus") or []
    sizes = [gpu["memory_mib"] / 1024 for gpu in gpus if gpu.get("memory_mib")]
    return min(sizes) if sizes else None


def published(source: Source) -> dict[str, list[Finding]]:
    """A source's numbers as findings without scatter, by hardware; what is only beside other hardware has no entry."""
    beside = {one.name: one.beside for one in source.hardware}
    cases: dict[tuple[str, frozenset[tuple[str, Any]]], Finding] = {}
    for number in source.flat():
        key = number.hardware, frozenset(number.axes.items())
        one = cases.setdefault(
            key, Finding(number.hardware, number.axes, number.framework, {}, {}, ("ok",), partial=True)
        )
        one.values[number.quantity] = Term(number.value, 0, None)
        if number.value > 0:
            one.logs[number.quantity] = Term(math.log(number.value), 0, None)
    found: dict[str, list[Finding]] = {one.name: [] for one in source.hardware if not one.beside}
    for finding in cases.values():
        for name in beside[finding.whose] or (finding.whose,):
            found[name].append(finding)
    return found
