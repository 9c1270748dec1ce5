"""Deviations: the differences between a run and a source's experiment, as far as both are known."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from tsuishi.base.language import in_language, in_words, prose, t
from tsuishi.report.parts.blocks import Block, Bullets, Heading, View
from tsuishi.report.sections import descriptions
from tsuishi.results.frames import named_rows
from tsuishi.results.records import EnvironmentRecord
from tsuishi.specs.claims import Claim
from tsuishi.specs.selections import Selector
from tsuishi.specs.source import Source, epochs_of
from tsuishi.verdicts.evidence import Evidence

_OF_A_TRIAL = ("suite", "framework", "synthetic", "device", "environment_record", "case_id", "protocol")
# The names of frameworks: in sources, and in environments.
_FRAMEWORKS = {"pytorch": "torch", "tensorflow": "tensorflow"}


def deviations(evidence: Evidence) -> View:
    """The deviations from every source whose suites ran: hardware, software, length, data, and those it declares."""
    blocks: list[Block] = []
    for source in evidence.sources:
        suites = {number.axes["suite"] for number in source.flat()}
        suites |= {suite for claim in source.claims for suite in claim.named("suite")}
        every = {claim.id for claim in source.claims}
        differences = (*_of_source(evidence, source, suites & set(evidence.suites)), *declared(evidence, source, every))
        if differences:
            blocks.append(Bullets(differences, title=source.name))
    if not blocks:
        return View()
    return View((Heading(t("Deviations from what the sources did")), *blocks))


def declared(evidence: Evidence, source: Source, claims: Collection[str]) -> Iterator[str]:
    """A sentence for each declared deviation of cases that ran, with those of `claims` judged on such cases."""
    ran = evidence.results.trials[["case_id", "column"]].drop_duplicates()
    cases = [{**evidence.axes[row.case_id], **evidence.selectable(row.column)} for row in named_rows(ran)]
    for deviation in source.deviations:
        touched = [*filter(Selector(deviation.case), cases)]
        named = [claim.id for claim in source.claims if claim.id in claims and _is_judged_on(claim, touched)]
        if named:
            yield prose([in_language(deviation.text), t("Claims it touches: {claims}.", claims=in_words(named))])


def _is_judged_on(claim: Claim, cases: Sequence[Mapping[str, Any]]) -> bool:
    return any(selects(case) for selects in claim.selectors() for case in cases)


def _of_source(evidence: Evidence, source: Source, suites: set[Any]) -> Iterator[str]:
    if not suites:
        return
    trials = evidence.results.trials[[*_OF_A_TRIAL]]
    trials = trials[trials["suite"].isin(suites)]
    machines = list(map(descriptions.machine_text, evidence.machine_records.values()))
    theirs = in_words(hardware.title for hardware in source.hardware)
    yield t("Hardware: {ours} instead of {theirs}.", ours=in_words(machines) or t("an unknown machine"), theirs=theirs)
    for name, version in source.software.items():
        framework = _FRAMEWORKS.get(name)
        ours = sorted(
            {title for title in trials["framework"].unique() if framework and title.split(" ")[0] == framework}
        )
        others = [title for title in ours if title.split(" ")[1].split("+")[0] != version]
        if others:
            yield t(
                "Software: {ours} where the source had {theirs}.", ours=in_words(others), theirs=f"{name} {version}"
            )
    used = set(trials.loc[~trials["device"].isin(("", "cpu")), "environment_record"])
    yield from _libraries(source, [record for name, record in evidence.environment_records.items() if name in used])
    yield from _length(evidence, source, trials)
    if bool(trials["synthetic"].fillna(False).any()):
        yield t("Data: made up, of the same shape, in place of the source's.")


def _libraries(source: Source, environments: Sequence[EnvironmentRecord]) -> Iterator[str]:
    """A sentence for CUDA and for cuDNN, where these environments of trials on GPUs have other versions of them."""
    for title, name in (("CUDA", "cuda"), ("cuDNN", "cudnn")):
        theirs = source.software.get(name)
        ours = {version for record in environments if (version := _dotted(getattr(record, name)))}
        others = sorted(version for version in ours if theirs and not _is(version, theirs))
        if others:
            yield t(
                "Software: {ours} where the source had {theirs}.",
                ours=in_words(f"{title} {version}" for version in others), theirs=f"{title} {theirs}",
            )  # fmt: skip


def _is(version: str, stated: str) -> bool:
    """Whether a version is the stated version, of which it may say more digits, or fewer."""
    return all(ours == theirs for ours, theirs in zip(version.split("."), stated.split("."), strict=False))


def _dotted(version: str | None) -> str | None:
    """A version of CUDA or cuDNN with points; cuDNN tells a number: 7602 is 7.6.2, from release 9 on 90100 is 9.1.0."""
    if version is None or not version.isdecimal() or len(version) < len("7602"):
        return version
    major, rest = divmod(int(version), 10_000 if int(version) >= 90_000 else 1_000)
    return f"{major}.{rest // 100}.{rest % 100}"


def _length(evidence: Evidence, source: Source, trials: pd.DataFrame) -> Iterator[str]:
    """A sentence for each length of literal training that differs from the source's."""
    lengths = set()
    wholes = {case_id: epochs_of([source], axes) for case_id, axes in evidence.axes.items()}
    literal = trials.loc[trials["protocol"] == "literal", "case_id"]
    for place, case_id in zip(literal.index.tolist(), literal.tolist(), strict=True):
        whole, trial = wholes[case_id], evidence.results.details[place]
        if whole and whole.count and any(one.name == "epoch" for one in trial.phases):
            own = trial.settings.get("epochs", whole.count), trial.settings.get("train_images", whole.images)
            lengths.add((own, (whole.count, whole.images)))
    for (epochs, images), (all_epochs, all_images) in sorted(pair for pair in lengths if pair[0] != pair[1]):
        yield t(
            "Length: {epochs} epochs at most, of {images} images, instead of {all_epochs} of {all_images}.",
            epochs=epochs, images=f"{images:,}", all_epochs=all_epochs, all_images=f"{all_images:,}",
        )  # fmt: skip
