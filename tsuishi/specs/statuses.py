"""The statuses of trials: their labels and colours, and whether a trial with a status is run again."""

from collections.abc import Mapping
from dataclasses import dataclass

OK, OUT_OF_MEMORY, UNSUPPORTED, SKIPPED = "ok", "out_of_memory", "unsupported", "skipped"
TIMEOUT, FAILED, INTERRUPTED = "timeout", "failed", "interrupted"
MISSING, EXCLUDED = "missing", "excluded"


@dataclass(frozen=True)
class Status:
    """A status. `name` is its name in trial.json, `label` its label by language, `colour` its colour on a terminal.

    `is_finding`: the status is final; --resume runs trials of all other statuses again, as new attempts.
    `shows_memory`: the status says whether a case fits in memory.
    """

    name: str
    label: Mapping[str, str]
    colour: str = "red"
    is_finding: bool = False
    shows_memory: bool = False


# In the order of lists for readers. A planned trial without any record is `missing`; a trial that ended well, with rows
# that cannot be right, is `excluded` from reports.
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
        Status(EXCLUDED, {"en": "excluded", "ja": "除外"}),
    )
}
# The statuses of cases that a machine or an environment has not: claims are judged without them.
NO_CASE = (OUT_OF_MEMORY, UNSUPPORTED)
# The statuses that the record of a trial can have.
RECORDED = tuple(name for name in STATUSES if name not in (MISSING, EXCLUDED))


def is_finding(name: str) -> bool:
    """Whether a status, by its name, is final: the trial is not run again."""
    return STATUSES[name].is_finding
