"""Candidates: every question that can be put to the environments at hand.

A comparison needs two cells, an explanation or a claim all of its cells.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.version import Version

from tsuishi.specs.case import Case
from tsuishi.specs.claims import FRAMEWORK, Claim, Selection, selected
from tsuishi.specs.environment import ANY, Accelerator, Environment
from tsuishi.specs.questions import Asked, MatrixCell, Question
from tsuishi.specs.source import Source

# What a claim that this machine can judge is worth, beside the questions of suites (1 to 10); a case on its own.
_CLAIM_WORTH = 3.0
_CASE_WORTH = 0.1


class Possible(NamedTuple):
    """The cases that can be planned in an environment. `refused`: why a case cannot run there, by its id."""

    environment: Environment
    accelerator: Accelerator
    cases: Mapping[str, Case]
    refused: Mapping[str, str]


def candidates(
    asked_of: Mapping[str, Sequence[Question]], sources: Iterable[Source], possible: Sequence[Possible], gpus: int
) -> list[Asked]:
    """Every question that the environments at hand can answer, in a fixed order.

    asked_of: the questions of each suite, by its name. A suite without any, and of which no claim asks anything, is
    asked how long each of its cases takes.
    """
    found = [one for source in sources for one in _claims(source, possible, gpus)]
    claimed = {cell for one in found for cell in one.cells}
    for suite, questions in asked_of.items():
        for question in questions:
            found += _put(suite, question, possible)
        if not questions and not claimed & {cell for one in possible for cell in _cells(one, suite, {})}:
            found += _measurements(suite, possible)
    return found


def _put(suite: str, question: Question, possible: Sequence[Possible]) -> Iterator[Asked]:
    """One question to every environment, or pair of environments, that can answer it."""
    answering = [
        one
        for one in possible
        if question.accelerator in (None, one.accelerator)
        and (not question.frameworks or one.environment.framework in question.frameworks)
    ]
    if question.kind == "environments":
        yield from _across_environments(suite, question, answering)
        return
    for one in answering:
        cells = _cells(one, suite, *question.cases)
        of = _cells(one, suite, *question.cases, also=question.of) if question.of is not None else cells
        to = _cells(one, suite, *question.cases, also=question.to) if question.to is not None else ()
        if of and (to or question.explains):
            yield _asked(suite, question, (one.environment.name,), of, to)


def _across_environments(suite: str, question: Question, possible: Sequence[Possible]) -> Iterator[Asked]:
    """The oldest release of a framework against the newest, on the cases that both can run."""
    by_framework: dict[str, list[Possible]] = defaultdict(list)
    for one in possible:
        if one.environment.framework != ANY:
            by_framework[one.environment.framework].append(one)
    for releases in by_framework.values():
        ordered = sorted(releases, key=lambda one: Version(one.environment.release))
        old, new = ordered[0], ordered[-1]
        if old.environment.release == new.environment.release:
            continue
        both = {cell.case_id for cell in _cells(old, suite, *question.cases)} & {
            cell.case_id for cell in _cells(new, suite, *question.cases)
        }
        if both:
            names = old.environment.name, new.environment.name
            of, to = (tuple(MatrixCell(case_id, name) for case_id in sorted(both)) for name in names)
            yield _asked(suite, question, names, of, to)


def _asked(
    suite: str,
    question: Question,
    environments: tuple[str, ...],
    of: tuple[MatrixCell, ...],
    to: tuple[MatrixCell, ...],
) -> Asked:
    return Asked(
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


def _cells(one: Possible, suite: str, *selections: Selection, also: Selection | None = None) -> tuple[MatrixCell, ...]:
    """The cells of an environment that one of the selections chooses, and that can run."""
    return tuple(
        MatrixCell(case_id, one.environment.name)
        for case_id, case in one.cases.items()
        if case.suite == suite
        and case_id not in one.refused
        and any(
            selected({**case.values, FRAMEWORK: one.environment.framework}, each, also or {}) for each in selections
        )
    )


def _measurements(suite: str, possible: Sequence[Possible]) -> Iterator[Asked]:
    """How long a case takes in each environment: what can be asked of a suite that names no questions."""
    cells: dict[str, list[MatrixCell]] = defaultdict(list)
    for one in possible:
        for cell in _cells(one, suite, {}):
            cells[cell.case_id].append(cell)
    for case_id, of in cells.items():
        yield Asked(
            id=f"{suite}/{case_id}",
            kind="measurement",
            title={"en": f"{suite}, case {case_id[:6]}"},
            suite=suite,
            worth=_CASE_WORTH,
            environments=tuple(cell.environment for cell in of),
            of=tuple(of),
        )


def _claims(source: Source, possible: Sequence[Possible], gpus: int) -> Iterator[Asked]:
    """The claims of a source that some environment here can judge, one at a time."""
    for claim in source.claims:
        frameworks = claim.named(FRAMEWORK)
        if claim.untestable or "accuracy" in claim.about or len(frameworks) > 1:
            continue
        for one in possible:
            on_gpu = one.accelerator == "cuda" and gpus > 0
            if (frameworks and one.environment.framework not in frameworks) or ("gpu" in claim.about and not on_gpu):
                continue
            cells = _claim_cells(claim, one)
            if cells:
                yield Asked(
                    id=f"{source.name}/{claim.id}/{one.environment.name}",
                    kind="claim",
                    title=claim.text,
                    worth=_CLAIM_WORTH,
                    environments=(one.environment.name,),
                    of=cells,
                    source=source.name,
                    claim=claim.id,
                )


def _claim_cells(claim: Claim, one: Possible) -> tuple[MatrixCell, ...]:
    """The cells that a claim's checks compare; none where a side of one of them has no case here."""
    found: dict[MatrixCell, None] = {}
    for check in claim.checks:
        for side in (check.of, check.to):
            if side is None:
                continue
            chosen = [
                MatrixCell(case_id, one.environment.name)
                for case_id, case in one.cases.items()
                if case_id not in one.refused
                and selected({**case.values, FRAMEWORK: one.environment.framework}, check.case, side)
            ]
            if not chosen:
                return ()
            found |= dict.fromkeys(chosen)
    return tuple(found)
