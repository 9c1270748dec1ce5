"""Questions: what a plan names before anything is measured, and a report answers.

A suite file says what it can be asked (`[[questions]]`); the claims of published sources are questions too. A cell is a
case in an environment, the unit of which trials are made.
"""

from typing import Annotated, Literal, NamedTuple

from pydantic import Field, ValidationInfo, model_validator

from tsuishi.base import toml
from tsuishi.specs.claims import Selection
from tsuishi.specs.environment import Accelerator, Framework
from tsuishi.specs.vocabulary import Vocabulary

Kind = Literal["environments", "cases", "explanation", "claim", "measurement"]
# A difference within a tenth counts as none.
ALIKE = 1.1


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
