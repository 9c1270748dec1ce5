"""Questions: what a plan names before anything is measured, and a report answers.

A suite file says what it can be asked (`[[questions]]`); the claims of published sources are questions too. Here each
is put to the environments at hand: a comparison needs two cells, an explanation or a claim all of its cells. A cell is
a case in an environment, the unit of which trials are made.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

from packaging.version import Version
from pydantic import Field, ValidationInfo, model_validator

from tsuishi.base import toml
from tsuishi.specs.case import Case
from tsuishi.specs.claims import FRAMEWORK, Claim, Selection, selected
from tsuishi.specs.environment import ANY, Accelerator, Environment, Framework
from tsuishi.specs.source import Source
from tsuishi.specs.vocabulary import Vocabulary

Kind = Literal["environments", "cases", "explanation", "claim", "measurement"]
# A difference within a tenth counts as none.
ALIKE = 1.1
# What a claim that this machine can judge is worth, beside the questions of suites (1 to 10); a case on its own.
_CLAIM_WORTH = 3.0
_CASE_WORTH = 0.1


class MatrixCell(NamedTuple):
    """A case, by its id, in an environment."""

    case_id: str
    environment: str


class Question(toml.Spec):
    """A question that a suite can be asked. `title` names it in a list, in a few words.

    With `of` and `to` it compares these cases within an environment; with `explains` it is answered in words, by what
    the report finds out of all its cases; else it compares the oldest and the newest environment of each framework.
    """

    id: toml.Name
    title: toml.Texts
    # How much the answer is worth to a reader, of 10.
    worth: Annotated[float, Field(gt=0, le=10)] = 1.0
    accelerator: Accelerator | None = None
    frameworks: tuple[Framework, ...] = ()
    quantity: str = ""
    cases: tuple[Selection, ...] = Field(min_length=1)
    of: Selection | None = None
    to: Selection | None = None
    explains: bool = False

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self, info: ValidationInfo) -> "Question":
        words: Vocabulary | None = info.context
        if (self.of is None) != (self.to is None):
            raise ValueError("'of' and 'to' go together: give both, to compare cases, or neither")
        if self.explains == bool(self.quantity):
            raise ValueError("give 'quantity', what is compared, or 'explains = true'")
        if self.quantity and words and self.quantity not in words.quantities:
            raise ValueError(f"unknown quantity '{self.quantity}'; known: {', '.join(words.quantities)}")
        return self

    @property
    def kind(self) -> Kind:
        return "explanation" if self.explains else "cases" if self.of is not None else "environments"


class Asked(toml.Spec):
    """A question put to the environments at hand, as run.json keeps it.

    `of` and `to` are the two sides of a comparison, cell by cell; of what compares nothing all cells are in `of`.
    `main`: named as a main question by the first plan, before anything was measured.
    """

    id: str
    kind: Kind
    title: toml.Texts
    suite: str = ""
    worth: float
    quantity: str = ""
    environments: tuple[str, ...]
    of: tuple[MatrixCell, ...] = Field(min_length=1)
    to: tuple[MatrixCell, ...] = ()
    source: str = ""
    claim: str = ""
    main: bool = False

    @model_validator(mode="after")
    def _compares_two_sides(self) -> "Asked":
        if self.compares and not (self.to and self.quantity):
            raise ValueError("a comparison has two sides and a quantity")
        return self

    @property
    def cells(self) -> tuple[MatrixCell, ...]:
        """Every cell it needs, each once."""
        return tuple(dict.fromkeys((*self.of, *self.to)))

    @property
    def stem(self) -> str:
        """What it asks, whatever the environments."""
        return "/".join(self.id.split("/")[:2])

    @property
    def compares(self) -> bool:
        """Whether it is open until its trials tell the two sides apart."""
        return self.kind in ("environments", "cases")


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
