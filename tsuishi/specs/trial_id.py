"""The readable name of a trial, `<case slug>.<environment>.r<repetition>.a<attempt>`, and the rules for names."""

import re
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

# A name becomes part of paths: no separator, no "..", nothing that a shell or a terminal reads.
_PATTERN = r"^[A-Za-z0-9]([.]?[A-Za-z0-9_-])*$"
_MOST_CHARACTERS = 230
_NAME = re.compile(_PATTERN)
# The slug ends with the first six digits of the case's id.
_TRIAL = re.compile(
    r"(?P<slug>(?:.*?-)?[0-9a-f]{6})\.(?P<environment>.+)\.r(?P<repetition>[1-9][0-9]{0,15})"
    r"(?:\.a(?P<attempt>[1-9][0-9]{0,3}))?"
)

Name = Annotated[str, Field(pattern=_PATTERN, max_length=_MOST_CHARACTERS)]


def is_name(text: str) -> bool:
    """Whether a text may be the name of a run, a trial or an environment."""
    return len(text) <= _MOST_CHARACTERS and _NAME.fullmatch(text) is not None


@dataclass(frozen=True, order=True)
class TrialId:
    """The name of a trial, and of its folder. Ids are ordered by slug, environment, repetition and attempt.

    `slug`: the case in words; it ends with the first six digits of the case's id. `repetition`: counts the trials of a
    case in an environment, from 1. `attempt`: counts the attempts at a repetition, from 1; 0 while it is only planned.
    """

    slug: str
    environment: str
    repetition: int
    attempt: int = 0

    def __str__(self) -> str:
        planned = f"{self.slug}.{self.environment}.r{self.repetition}"
        return f"{planned}.a{self.attempt}" if self.attempt else planned

    @classmethod
    def parse(cls, text: str) -> "TrialId":
        """The id from its text. Raises ValueError where the text is no id.

        Both slug and environment may have dots. Where this makes several readings possible, the shortest slug counts.
        """
        match = _TRIAL.fullmatch(text) if is_name(text) else None
        if match is None:
            raise ValueError(f"'{text}' is not the name of a trial")
        return cls(match["slug"], match["environment"], int(match["repetition"]), int(match["attempt"] or 0))

    @property
    def planned(self) -> "TrialId":
        """The id in the plan: without an attempt."""
        return replace(self, attempt=0)

    @property
    def next_attempt(self) -> "TrialId":
        """The id of the next attempt at the same trial."""
        return replace(self, attempt=self.attempt + 1)

    def repeated(self, repetition: int) -> "TrialId":
        """The planned id of another repetition."""
        return replace(self, repetition=repetition, attempt=0)

    def is_of(self, case_id: str, environment: str) -> bool:
        """Whether the trial is of this case in this environment."""
        return f"{self.slug}.{self.environment}".endswith(f"{case_id[:6]}.{environment}")
