"""Suites, workloads and specifications out of an archive, as a checkout: for replays of archives by trusted signers."""

import shutil
from pathlib import Path

from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.extras.handover.archives.member_names import INPUTS
from tsuishi.specs.environment import COMPATIBILITY
from tsuishi.specs.vocabulary import AXES_FILE, QUANTITIES_FILE

# The inputs that are taken. The template of a Dockerfile is not: it would be rendered outside of a container.
_TAKEN = ("suites", "images", "reports/published")
_NEEDED = (f"suites/{AXES_FILE}", f"suites/{QUANTITIES_FILE}", "suites/workloads/run.py")


def archived_checkout(archive: Path, unpacked: Path, run_id: str, into: Path, ours: Checkout) -> Checkout:
    """The inputs of a run as a checkout in the new folder `into`.

    unpacked: the folder into which the archive was unpacked when it was verified. Templates, and the facts about GPUs,
    are those of our checkout. Raises UserError where the archive does not hold all inputs of the run.
    """
    inputs = unpacked / INPUTS / run_id
    if missing := [name for name in _NEEDED if not (inputs / name).is_file()]:
        raise UserError(
            f"{archive}: it does not hold the code of run {run_id} ({', '.join(missing)}); `left_out` in its "
            "archive.json says why"
        )
    for name in _TAKEN:
        (inputs / name).mkdir(parents=True, exist_ok=True)
        # Explanations run outside of containers, too.
        shutil.copytree(inputs / name, into / name, ignore=shutil.ignore_patterns("explanations"))
    shutil.copy(ours.images / COMPATIBILITY, into / "images")
    (into / "templates").symlink_to(ours.templates)
    return Checkout(into)
