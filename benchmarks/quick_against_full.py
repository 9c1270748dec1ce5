"""How well trials that stop early predict full trials: `python -m benchmarks.quick_against_full`, with .venv active.

Literal training for all of the source's 100 epochs, and literal training that stops early as `quick` does, in turns, by
the real runner in virtual environments (`invoke build --engine venv` makes them). A reduced data set makes a full trial
take a minute or two. Nothing else should run on the machine meanwhile.

A row is a pair of trials. Totals are sums of epochs, in s; predictions are first + 99 x mean of the later epochs
(docs/method.md, "Steady protocol" 4).

- error: of the early trial's prediction, against the duration of the full trial
- own tenth: the error of a prediction from the full trial's own first tenth, start-up included: it shows the drift
  within a process
- epochs: of the early trial
- share: duration of the early trial over the duration of the full trial, both with start-up
"""

import argparse
import csv
import statistics
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.bench import link_checkout
from tsuishi.base.checkout import Checkout
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory
from tsuishi.run.new_run import run_suite
from tsuishi.specs.suite import Profile

# Start-up and so many epochs must stay within a tenth of a full trial, on any machine.
MOST_EARLY_EPOCHS = 5
# The epochs of a whole training in the sources.
EPOCHS = 100
SUITE = """
title = "literal training on a reduced data set"
workload = "training"
[profiles.full]
repetitions = {{ cpu = 1 }}
timeout_s = 3600.0
settings = {{ epochs = {epochs}, train_images = {images}, test_images = 16 }}
[profiles.quick]
repetitions = {{ cpu = 1 }}
timeout_s = 3600.0
settings = {{ epochs = {early}, stop_at = 0.005, min_epochs = 4, train_images = {images}, test_images = 16 }}
[[groups]]
[groups.axes]
protocol = "literal"
mode = "training"
model = "{model}"
layout = "native"
strategy = "none"
devices = 1
nodes = 1
batch_size = {batch_size}
precision = "fp32"
execution = "native"
"""


class Subject(NamedTuple):
    """A model in an environment, with so many images that an epoch takes about a second on two CPU cores."""

    environment: str
    model: str
    batch_size: int
    images: int

    @property
    def suite(self) -> str:
        return f"{self.model}_{self.environment.partition('-')[0].replace('.', '_')}"


SUBJECTS = (
    Subject("torch2-cpu", "cnn10", 16, 96),
    Subject("tf2-cpu", "cnn10", 16, 144),
    Subject("torch1.1-cu90", "mlp", 128, 8_000),
)


class Trial(NamedTuple):
    """The seconds of every epoch of a trial, and of the whole trial."""

    epochs: list[float]
    duration_s: float


class Row(NamedTuple):
    """A pair of trials, compared; its fields are the columns of the table."""

    case: str
    full_s: float
    predicted_s: float
    error_percent: float
    own_tenth_percent: float
    epochs: int
    share_percent: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="pairs of trials for each case; a round takes 6 minutes")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        checkout = make_checkout(Path(folder))
        rows = []
        for subject in SUBJECTS * rounds:
            row = compared(subject, run(checkout, subject, "quick"), run(checkout, subject, "full"))
            print(*row, sep="; ", flush=True)
            rows.append(row)
    screen = Screen()
    screen.table("Early against full", [name.replace("_", " ") for name in Row._fields], rows)
    for what, errors in (
        ("error", [abs(row.error_percent) for row in rows]),
        ("own tenth", [abs(row.own_tenth_percent) for row in rows]),
    ):
        square = statistics.fmean(error**2 for error in errors) ** 0.5
        median = statistics.median(errors)
        screen.say(f"{what}: median {median:.2f} %, root mean square {square:.2f} %, worst {max(errors):.2f} %")


def make_checkout(root: Path) -> Checkout:
    """A checkout under `root` with the real workloads and environments, and a suite for each subject."""
    checkout = link_checkout(root)
    for subject in SUBJECTS:
        text = SUITE.format(**subject._asdict(), epochs=EPOCHS, early=MOST_EARLY_EPOCHS)
        (checkout.suites / f"{subject.suite}.toml").write_text(text, encoding="utf-8")
    return checkout


def run(checkout: Checkout, subject: Subject, profile: Profile) -> Trial:
    """Run a trial as `invoke run-suite` does."""
    choice = Choice(environments=(subject.environment,), suites=(subject.suite,), profile=profile)
    settings = Settings(engine="venv", results=checkout.root / "results")
    name = f"{subject.suite}-{profile}-{len(list(settings.results.glob('*')))}"
    directory = run_suite(Session(settings, choice, Screen(), checkout), name)
    ((path, trial),) = directory.finished()
    if trial.status != "ok":
        raise SystemExit(f"{path.name}: {trial.status}: {trial.reason}")
    return Trial(epochs_of(directory), trial.duration_s or 0.0)


def epochs_of(directory: RunDirectory) -> list[float]:
    with (directory.path / "samples.csv").open(encoding="utf-8", newline="") as file:
        return [float(sample["seconds"]) for sample in csv.DictReader(file) if sample["phase"] == "epoch"]


def predicted_s(epochs: list[float]) -> float:
    """The seconds of 100 epochs, predicted from a few epochs. The first epoch is unlike the others."""
    return epochs[0] + (EPOCHS - 1) * statistics.fmean(epochs[1:])


def epochs_within(trial: Trial, seconds: float) -> int:
    """The number of epochs that a trial had finished so many seconds after its start."""
    start_s = trial.duration_s - sum(trial.epochs)
    ends_s = [start_s + sum(trial.epochs[: count + 1]) for count in range(len(trial.epochs))]
    return sum(end_s <= seconds for end_s in ends_s)


def compared(subject: Subject, early: Trial, full: Trial) -> Row:
    taken_s = sum(full.epochs)
    # A prediction needs a second epoch, also where that ends a little later.
    own_tenth = full.epochs[: max(2, epochs_within(full, full.duration_s / 10))]
    error, own = (100 * (predicted_s(epochs) / taken_s - 1) for epochs in (early.epochs, own_tenth))
    return Row(
        case=f"{subject.model}, batch {subject.batch_size}, {subject.environment}",
        full_s=round(taken_s, 2),
        predicted_s=round(predicted_s(early.epochs), 2),
        error_percent=round(error, 2),
        own_tenth_percent=round(own, 2),
        epochs=len(early.epochs),
        share_percent=round(100 * early.duration_s / full.duration_s, 1),
    )


if __name__ == "__main__":
    main()
