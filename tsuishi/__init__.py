"""tsuishi (追試): re-run published deep-learning performance experiments in pinned environments."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    from tsuishi.report.output.run_frames import RunFrames

__version__ = "0.1.0"


def load_run(path: "str | os.PathLike[str]") -> "RunFrames":
    """A run as pandas frames for a notebook: trials, samples, metrics, telemetry, estimates, cases, verdicts, meanings.

    path: of its folder, results/<run>. Raises UserError where there is no run.
    """
    from tsuishi.report.output import run_frames

    return run_frames.frames(path)
