"""What the kit says about one thing: pass, FAIL with both figures, or not here with the reason. Pure functions."""

import math
from dataclasses import dataclass, replace
from typing import Literal

PASS, FAIL, NOT_HERE = OUTCOMES = ("pass", "FAIL", "not here")
Outcome = Literal["pass", "FAIL", "not here"]


@dataclass(frozen=True)
class Finding:
    """One line of the kit.

    `what` was looked at; `words`: both figures, what was found and what was expected, or the reason of `not here`.
    `of_speed`: the bounds are those of a GPU that nothing else uses, so that they say nothing about a CPU.
    """

    what: str
    outcome: Outcome
    words: str
    of_speed: bool = False

    @property
    def text(self) -> str:
        """The line. A line that passes, or says that something is not here, ends with that word and its reason."""
        return (
            f"{self.what}: {self.words}: pass" if self.outcome == PASS else f"{self.what}: {self.outcome}: {self.words}"
        )


def not_here(what: str, reason: str) -> Finding:
    return Finding(what, "not here", reason)


def is_without_framework(reason: str) -> bool:
    """Whether a case was refused because the interpreter has no framework (suites/workloads/frameworks)."""
    return "is installed in this environment" in reason


def unsupported(what: str, reason: str) -> Finding:
    """A case that cannot run: not here; a failure where the interpreter has no framework, so that no case can."""
    return judged(what, False, f"{reason}; expected one") if is_without_framework(reason) else not_here(what, reason)


def judged(what: str, holds: bool, words: str) -> Finding:
    return Finding(what, "pass" if holds else "FAIL", words)


def within(
    what: str,
    value: float | None,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    unit: str = "",
    more: str = "",
    of_speed: bool = False,
) -> Finding:
    """Whether low <= value <= high. `unit` stands behind the value, `more` behind the bounds. No value is a FAIL."""
    bounds = [f"at least {low:.4g}"] if math.isfinite(low) else []
    bounds += [f"at most {high:.4g}"] if math.isfinite(high) else []
    shown = "no value" if value is None else f"{value:.4g}"
    holds = value is not None and low <= value <= high
    words = f"{shown}{unit and ' ' + unit}, {' and '.join(bounds)}{more and '; ' + more}"
    return replace(judged(what, holds, words), of_speed=of_speed)


def on_a_cpu(finding: Finding) -> Finding:
    """The finding where a CPU stands for the GPU: what is of speed was measured, and is not judged."""
    if finding.of_speed and finding.outcome != NOT_HERE:
        return not_here(finding.what, f"--dry judges no speed: {finding.words}")
    return finding


def equal(what: str, found: object, expected: object, names: tuple[str, str]) -> Finding:
    """Whether two sources say the same."""
    return judged(what, found == expected, f"{names[0]} {found}, {names[1]} {expected}")
