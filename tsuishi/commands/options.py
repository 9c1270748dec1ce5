"""The options of a chain, as its tasks read them: names, whole numbers, words, yes or no."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tsuishi.base.errors import UserError


@dataclass(frozen=True)
class Options:
    """The options given to some task of a chain, by the names that tasks have for them (host_python)."""

    given: Mapping[str, Any] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether an option is given, and neither empty nor "no"."""
        return bool(self.given.get(name))

    def text(self, name: str, default: str = "") -> str:
        """An option's value as it was given."""
        return str(self.given.get(name) or default)

    def names(self, name: str) -> tuple[str, ...]:
        """The names in a list with commas, each once."""
        return tuple(dict.fromkeys(part.strip() for part in self.text(name).split(",") if part.strip()))

    def whole_number(self, name: str, least: int) -> int | None:
        """A number; None where none is given. Raises UserError for what is none, or is less than `least`."""
        given = self.given.get(name)
        if given in (None, ""):
            return None
        try:
            number = int(str(given))
        except ValueError:
            number = least - 1
        if number < least:
            raise UserError(f"--{name} takes a whole number from {least}; given: {given}")
        return number

    def word(self, name: str, known: tuple[str, ...]) -> str:
        """One of the known words, the first where none is given. Raises UserError for another word."""
        given = str(self.given.get(name, known[0]))
        if given not in known:
            raise UserError(f"--{name} takes {', '.join(known)}; given: {given}")
        return given
