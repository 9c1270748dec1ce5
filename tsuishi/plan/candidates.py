"""Candidates: every question that can be asked about the environments at hand."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from tsuishi.plan.decidable import GpusHere, needs_of_hardware
from tsuishi.specs.case import SUITE, Case
from tsuishi.specs.claims import Claim
from tsuishi.specs.environment import ANY, Accelerator, Environment
from tsuishi.specs.questions import MatrixCell, PlannedQuestion, Question
from tsuishi.specs.selections import ENVIRONMENT, FRAMEWORK, Selection
from tsuishi.specs.source import Source
from tsuishi.specs.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tsuishi.verdicts.findings import Finding

# The worth of a claim that this machine can judge, beside the questions of suites (1 to 10); the worth of a case alone.
_CLAIM_WORTH = 3.0
_CASE_WORTH = 0.1


@dataclass(frozen=True)
class RunnableCases:
    """The cases that can be planned in an environment. `refused`: why a case cannot run there, by its id."""

    environment: Environment
    accelerator: Accelerator
    cases: Mapping[str, Case]
    refused: Mapping[str, str]

    @cached_property
    def axes(self) -> dict[MatrixCell, dict[str, Any]]:
        """The cells of cases that can run, each with the values of its case, the framework and the environment."""
        return {
            MatrixCell(case_id, self.environment.name): {
                **case.values,
                FRAMEWORK: self.environment.framework,
                ENVIRONMENT: self.environment.name,
            }
            for case_id, case in self.cases.items()
            if case_id not in self.refused
        }

    def cells(
        self, suite: str, question: Question | None = None, side: Selection | None = None
    ) -> tuple[MatrixCell, ...]:
        """The cells of a suite that can run; those of a question, those of a side of it (`of` or `to`)."""
        return tuple(
            cell
            for cell, axes in self.axes.items()
            if axes[SUITE] == suite and (question is None or question.selects(axes, side or {}))
        )


def candidates(
    words: Vocabulary,
    suites: Mapping[str, Sequence[Question]],
    sources: Iterable[Source],
    possible: Sequence[RunnableCases],
    hardware: GpusHere,
    accuracy: bool = False,
) -> list[PlannedQuestion]:
    """Every question that the environments at hand can answer, in a fixed order.

    suites: the questions of each suite, by its name. A suite that has no questions, and no case of a claim, is asked
    how long each of its cases takes. hardware: a claim that it cannot judge is not asked. accuracy: whether trainings
    are whole and on real data, as claims about accuracy need.
    """
    from tsuishi.verdicts.planned_cells import planned_findings  # slow to import, and builds need no claims

    sources, every = [*sources], {cell: axes for here in possible for cell, axes in here.axes.items()}
    findings = planned_findings(words, sources, every)
    asked = [claim for source in sources for claim in _claims(source, findings, possible, hardware, accuracy)]
    claimed = {cell for claim in asked for cell in claim.cells}
    for suite, questions in suites.items():
        for question in questions:
            asked += _asked_of_suite(suite, question, possible)
        if not questions and not any(claimed.intersection(here.cells(suite)) for here in possible):
            asked += _measurements(suite, possible)
    return asked


def _asked_of_suite(suite: str, question: Question, possible: Sequence[RunnableCases]) -> Iterator[PlannedQuestion]:
    """A question for every environment, or pair of environments, that can answer it."""
    answering = [
        here
        for here in possible
        if question.accelerator in (None, here.accelerator)
        and (not question.frameworks or here.environment.framework in question.frameworks)
    ]
    if question.kind == "environments":
        yield from _across_environments(suite, question, answering)
        return
    for here in answering:
        of = here.cells(suite, question, question.of)
        to = here.cells(suite, question, question.to) if question.to is not None else ()
        if of and (to or question.explains):
            yield _asked(suite, question, (here.environment.name,), of, to)


def _across_environments(
    suite: str, question: Question, possible: Sequence[RunnableCases]
) -> Iterator[PlannedQuestion]:
    """The oldest release of a framework against the newest, on the cases that both can run."""
    by_framework: dict[str, list[RunnableCases]] = defaultdict(list)
    for here in possible:
        if here.environment.framework != ANY:
            by_framework[here.environment.framework].append(here)
    for releases in by_framework.values():
        ordered = sorted(releases, key=lambda here: Version(here.environment.release))
        old, new = ordered[0], ordered[-1]
        if old.environment.release == new.environment.release:
            continue
        old_cases, new_cases = ({cell.case_id for cell in here.cells(suite, question)} for here in (old, new))
        if both := sorted(old_cases & new_cases):
            names = old.environment.name, new.environment.name
            of, to = (tuple(MatrixCell(case_id, name) for case_id in both) for name in names)
            yield _asked(suite, question, names, of, to)


def _asked(
    suite: str,
    question: Question,
    environments: tuple[str, ...],
    of: tuple[MatrixCell, ...],
    to: tuple[MatrixCell, ...],
) -> PlannedQuestion:
    return PlannedQuestion(
        id="/".join((suite, question.id, *environments)),
        kind=question.kind,
        title=question.title,
        suite=suite,
        worth=question.worth,
        quantity=question.quantity,
        environments=environments,
        of=of,
        to=to,
    )


def _measurements(suite: str, possible: Sequence[RunnableCases]) -> Iterator[PlannedQuestion]:
    """For each case of a suite the question how long it takes in each environment."""
    cells: dict[str, list[MatrixCell]] = defaultdict(list)
    for here in possible:
        for cell in here.cells(suite):
            cells[cell.case_id].append(cell)
    for case_id, of in cells.items():
        yield PlannedQuestion(
            id=f"{suite}/{case_id}",
            kind="measurement",
            title={"en": f"{suite}, case {case_id[:6]}"},
            suite=suite,
            worth=_CASE_WORTH,
            environments=tuple(cell.environment for cell in of),
            of=tuple(of),
        )


def _claims(
    source: Source,
    findings: Mapping[MatrixCell, "Finding"],
    possible: Sequence[RunnableCases],
    hardware: GpusHere,
    accuracy: bool,
) -> Iterator[PlannedQuestion]:
    """The claims of a source, each for every environment here that can judge it; for pairs, if it names frameworks."""
    from tsuishi.verdicts.planned_cells import cells_of

    for claim in source.claims:
        if needs_of_hardware(claim, hardware) or ("accuracy" in claim.about and not accuracy):
            continue
        for judging in _judging(claim, possible):
            cells = cells_of(claim, {cell: findings[cell] for here in judging for cell in here.axes})
            if cells:
                names = tuple(here.environment.name for here in judging)
                yield PlannedQuestion(
                    id="/".join((source.name, claim.id, *names)),
                    kind="claim",
                    title=claim.text,
                    worth=_CLAIM_WORTH,
                    environments=names,
                    of=cells,
                    source=source.name,
                    claim=claim.id,
                    of_statuses=all(check.kind == "presence" for check in claim.checks),
                    last_look=claim.last_look,
                )


def _judging(claim: Claim, possible: Sequence[RunnableCases]) -> Iterator[tuple[RunnableCases, ...]]:
    """The environments that can judge a claim; one of each framework where the claim is about several.

    Those that the claim names, where it names environments.
    """
    able = [here for here in possible if "gpu" not in claim.about or here.accelerator == "cuda"]
    able = [here for here in able if "cpu" not in claim.about or here.accelerator == "cpu"]
    names, frameworks = (sorted(map(str, claim.named(axis))) for axis in (ENVIRONMENT, FRAMEWORK))
    if names:
        yield from itertools.product(*([here for here in able if here.environment.name == name] for name in names))
    elif frameworks:
        yield from itertools.product(
            *([here for here in able if here.environment.framework == name] for name in frameworks)
        )
    else:
        yield from ((here,) for here in able)
