"""Submissions: the orders of an array of trials, on the file system that login nodes and compute nodes share.

<run>/.jobs/<name>/orders.sealed    a Submission, sealed with the user's key: a node runs nothing else
<run>/.jobs/<name>/output.txt       the output of the jobs: empty, unless something is wrong

A submission is there from before Slurm knows it until all its trials are in the run. So a later --resume finds
in it all trials that may be waiting, running, or done.
"""

import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from tsuishi.base import seals, toml
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.files import entries
from tsuishi.base.settings import Settings
from tsuishi.results.directory import RunDirectory
from tsuishi.run.trial import TrialOrder

_ORDERS, _OUTPUT = "orders.sealed", "output.txt"
_PURPOSE = "trials for a scheduler"
# The settings that a node needs: to find an environment, and to run a trial in it.
_SETTINGS = {"cache", "host_python", "pythons", "memory_gib", "engine_timeout_s"}


class Submission(BaseModel):
    """An array of trials. Task i runs `orders[i]`, in the checkout, with the settings and the file of data."""

    model_config = ConfigDict(frozen=True)

    name: str
    checkout: Path
    settings: dict[str, Any]
    data: Path | None
    orders: tuple[TrialOrder, ...]

    def settings_for(self, engine: str | None) -> Settings:
        """The settings on a node, for trials in an environment of this engine."""
        return Settings.model_validate({**self.settings, "engine": engine or "auto", "offline": True})


def write(
    run: RunDirectory, checkout: Checkout, settings: Settings, data: Path | None, orders: Iterable[TrialOrder]
) -> Submission:
    """A new submission of a run. Raises OSError where it cannot be written."""
    own = settings.model_dump(mode="json", include=_SETTINGS)
    own["mirrors"] = settings.base_mirrors  # a part of the ids of environments
    name = f"tsuishi-{run.id}-{secrets.token_hex(4)}"
    made = Submission(name=name, checkout=checkout.root, settings=own, data=data, orders=tuple(orders))
    place = folder(run, name)
    place.mkdir(parents=True)
    seals.write(place / _ORDERS, made.model_dump_json().encode(), _PURPOSE)
    return made


def read(place: Path) -> Submission:
    """The submission in a folder. Raises UserError where this user did not write it, for that run."""
    content = seals.read(place / _ORDERS, _PURPOSE)
    if content is None:
        raise UserError(f"{place / _ORDERS}: not written by you: remove the folder")
    try:
        found = Submission.model_validate_json(content)
    except ValidationError as error:
        raise UserError(f"{place / _ORDERS}: {toml.explain(error, Submission)}: remove the folder") from error
    if found.name != place.name or any(order.run_id != place.parents[1].name for order in found.orders):
        raise UserError(f"{place / _ORDERS}: written for another run: remove the folder")
    return found


def submissions(run: RunDirectory) -> Iterator[Submission]:
    """Every submission of a run that is not closed. A folder without orders is the rest of a killed process."""
    for name, is_folder in entries(run.jobs) if run.jobs.is_dir() else ():
        if is_folder and (run.jobs / name / _ORDERS).exists():
            yield read(run.jobs / name)


def close(run: RunDirectory, name: str) -> None:
    """Forget a submission: all its trials are in the run, or Slurm never had it."""
    shutil.rmtree(folder(run, name), ignore_errors=True)
    if not any(run.jobs.iterdir()):
        shutil.rmtree(run.jobs, ignore_errors=True)


def folder(run: RunDirectory, name: str) -> Path:
    """The folder of a submission, by its name."""
    return run.jobs.absolute() / name


def output(run: RunDirectory, name: str) -> Path:
    """The file with the output of a submission's jobs."""
    return folder(run, name) / _OUTPUT


def detached(run: RunDirectory) -> int:
    """How many trials were submitted and are not in the run yet."""
    orders = (order for submission in submissions(run) for order in submission.orders)
    return sum(not (run.trials / str(order.id)).exists() for order in orders)
