"""The statuses of trials: what each is called, how it is shown, and whether a trial of it is run again."""

from collections.abc import Mapping
from dataclasses import dataclass

OK, OUT_OF_MEMORY, UNSUPPORTED, SKIPPED = "ok", "out_of_memory", "unsupported", "skipped"
TIMEOUT, FAILED, INTERRUPTED, MISSING = "timeout", "failed", "interrupted", "missing"


@dataclass(frozen=True)
class Status:
    """A status, by the name that trial.json has.

    `label`: what it is called, by language. `colour`: on a terminal. `is_finding`: final; a trial of any other status
    is run again, as a new attempt, by --resume. `shows_memory`: it says whether a case fits in memory.
    """

    name: str
    label: Mapping[str, str]
    colour: str = "red"
    is_finding: bool = False
    shows_memory: bool = False


# In the order in which they are listed. A planned trial of which nothing was recorded is `missing`.
STATUSES: Mapping[str, Status] = {
    status.name: status
    for status in (
        Status(OK, {"en": "ok", "ja": "成功"}, "green", is_finding=True, shows_memory=True),
        Status(OUT_OF_MEMORY, {"en": "out of memory", "ja": "メモリ不足"}, "cyan", is_finding=True, shows_memory=True),
        Status(UNSUPPORTED, {"en": "unsupported", "ja": "非対応"}, "cyan", is_finding=True),
        Status(SKIPPED, {"en": "skipped", "ja": "省略"}, "cyan", is_finding=True),
        Status(TIMEOUT, {"en": "timeout", "ja": "時間切れ"}),
        Status(FAILED, {"en": "failed", "ja": "失敗"}),
        Status(INTERRUPTED, {"en": "interrupted", "ja": "中断"}, "yellow"),
        Status(MISSING, {"en": "missing", "ja": "欠測"}),
    )
}
# The statuses that a trial itself can have.
RECORDED = tuple(name for name in STATUSES if name != MISSING)


def is_finding(name: str) -> bool:
    """Whether a trial of this status is not run again."""
    return STATUSES[name].is_finding
