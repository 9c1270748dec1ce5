"""Deviations: what our experiments do differently from a source's, on purpose or for want of knowledge.

They are part of reports/published/<source>.toml, and each names the lines of code that it stands for.
"""

from pydantic import Field

from tsuishi.base import toml
from tsuishi.specs.selections import Selection


class CodeLine(toml.Spec):
    """A line of code, or a part of a line. `file`: its path in the checkout."""

    file: str
    text: str


class Deviation(toml.Spec):
    """A difference between the cases that `case` selects (every case without it) and the source's experiment."""

    text: toml.Texts
    case: Selection = {}
    code: tuple[CodeLine, ...] = Field(min_length=1)
