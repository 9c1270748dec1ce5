"""The task of explaining a number."""

from pathlib import Path
from typing import TYPE_CHECKING

from tsuishi.commands.command_line import task

if TYPE_CHECKING:
    from tsuishi.commands.chain import Chain


@task
def explain(chain: "Chain") -> None:
    """Measure what each setting adds between a printed number and yours, and how they work together.

    Both ends and combinations between them are measured here, in random order within rounds: all of up to four
    settings, sixteen of five to eight. Without --mine and --mine-env, the settings are those that the printed number
    does not state. With --beside, two runs are compared: other environments and other numbers of CPUs are measured
    here, and everything else that differs is listed. Beside the folder of a report nothing is measured.
    """
    from tsuishi.extras.explain import beside_report, explaining, two_runs

    beside = Path(chain.options.text("beside"))
    if chain.options.has("beside") and (beside / "report.json").is_file():
        beside_report.explain_report(chain, beside)
    elif chain.options.has("beside"):
        two_runs.explain_runs(chain)
    else:
        explaining.explain(chain)
