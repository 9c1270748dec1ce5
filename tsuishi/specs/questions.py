"""Questions: a plan names them before anything is measured, and a report answers them.

The file of a suite lists its questions (`[[questions]]`). The claims of published sources are questions too. A cell is
a case in an environment; each trial measures a cell.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, ValidationInfo, model_validator

from tsuishi.base import toml
from tsuishi.specs.environment import Accelerator, Framework
from tsuishi.specs.selections import Selecting, Selection, Selector
from tsuishi.specs.vocabulary import Vocabulary

Kind = Literal["environments", "cases", "explanation", "claim", "measurement"]
# The numbers of trials of a cell at which a comparison is judged, and at each further doubling. Between them the last
# verdict stands. A verdict needs at least the first number.
LOOKS = (3, 6, 12, 24, 48, 96)
# After this look a run leaves an open question alone, unless its claim names another.
LAST_LOOK = LOOKS[3]
# The last look of a claim that is measured so long, and never further; 0: it may be measured for ever. Half of its
# error is for looks after a quarter of these trials (see share_of_look).
LastLook = Literal[0, 24, 48, 96]
# The error of all main questions of a report together (docs/certainty.md).
MAIN = 0.025
# Two values are alike where their ratio is at most this.
ALIKE = 1.1


class MatrixCell(NamedTuple):
    """A case, by its id, in an environment."""

    case_id: str
    environment: str


class Question(Selecting):
    """A question of a suite. `title` names it in a list, in a few words.

    With `of` and `to` it compares these cases within an environment. With `explains` the report answers it in words,
    from all of its cases. Else it compares the oldest and the newest environment of each framework.
    """

    id: toml.Name
    title: toml.Texts
    # The worth of the answer to a reader: 10 is the most.
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

    def selects(self, axes: Mapping[str, Any], side: Selection) -> bool:
        """Whether a case is on a side of the question, `of` or `to`; on {}, whether it is one of its cases."""
        return any(Selector(cases, side, usual=self._usual)(axes) for cases in self.cases)

    @property
    def kind(self) -> Kind:
        return "explanation" if self.explains else "cases" if self.of is not None else "environments"


class PlannedQuestion(toml.Spec):
    """A question for certain environments, as run.json keeps it.

    `of` and `to` are the cells of the two sides of a comparison. Questions that compare nothing have all cells in `of`.
    `of_statuses`: it is decided by the statuses of trials alone, which do not scatter. `last_look`: that of its claim,
    0 without one. `main`: the first plan named it
    as a main question, before anything was measured. `plan`: the number of the plan of the run that named it, from 1
    on.
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
    of_statuses: bool = False
    last_look: LastLook = 0
    main: bool = False
    plan: Annotated[int, Field(ge=1, le=10_000)] = 1

    @model_validator(mode="after")
    def _compares_two_sides(self) -> "PlannedQuestion":
        if self.compares and not (self.to and self.quantity):
            raise ValueError("a comparison has two sides and a quantity")
        return self

    @property
    def cells(self) -> tuple[MatrixCell, ...]:
        """The cells that it needs, without repetition."""
        return tuple(dict.fromkeys((*self.of, *self.to)))

    @property
    def stem(self) -> str:
        """The part of its id without the environments."""
        return "/".join(self.id.split("/")[:2])

    @property
    def first_look(self) -> int:
        """The trials of each cell that a first answer needs."""
        return 1 if self.of_statuses else LOOKS[0]

    @property
    def most_trials(self) -> int:
        """The trials of each cell after which a run leaves it alone, though it is open."""
        return self.last_look or LAST_LOOK

    @property
    def compares(self) -> bool:
        """Whether it compares two sides. Such a question is open until its trials tell the sides apart."""
        return self.kind in ("environments", "cases")


def look_at(trials: int, last: int = 0) -> int:
    """The trials that count at the last look: 3, 6, 12, 24, 48 …; 0 for fewer than the first look.

    last: no look follows this look; 0: looks go on for ever.

    >>> [look_at(trials) for trials in (2, 3, 5, 6, 25, 48)], look_at(48, 24)
    ([0, 3, 3, 6, 24, 48], 24)
    """
    look = 0
    following = LOOKS[0]
    while following <= min(trials, last or trials):
        look, following = following, 2 * following
    return look


def share_of_look(trials: int | None, last: int = 0) -> float:
    """The share of its error that a hypothesis spends at its last look: a half at the first, then always a half less.

    0 before the first look, 1 for a hypothesis that needs no trials: it is looked at once. With a `last` look the
    shares up to a look are together the root of its part of the last look's trials: late looks, which see more, have
    more (the power family of Kim and DeMets, Biometrika 74, 1987, 149-154, with the exponent 1/2).

    >>> [share_of_look(trials) for trials in (None, 2, 3, 7, 12)]
    [1.0, 0.0, 0.5, 0.25, 0.125]
    >>> [round(share_of_look(trials, 96), 3) for trials in (2, *LOOKS, 200)]
    [0.0, 0.177, 0.073, 0.104, 0.146, 0.207, 0.293, 0.293]
    """
    if trials is None:
        return 1.0
    look = look_at(trials, last)
    if not look:
        return 0.0
    if not last:
        return 0.5 ** (look // LOOKS[0]).bit_length()
    before = look // 2 if look > LOOKS[0] else 0
    return math.sqrt(look / last) - math.sqrt(before / last)
