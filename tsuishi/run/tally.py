"""The tally of a running run: the results of every cell's trials so far, and which questions are still open."""

import math
from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tsuishi.base.errors import UserError
from tsuishi.base.files import read_rows
from tsuishi.results import trial_folders
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import TrialRecord
from tsuishi.specs.questions import LOOKS, MatrixCell, PlannedQuestion
from tsuishi.specs.source import Epochs, Source, epochs_of
from tsuishi.specs.statuses import NO_CASE, OK, is_finding
from tsuishi.specs.trial_id import TrialId
from tsuishi.specs.vocabulary import Vocabulary


@dataclass
class CellTally:
    """The trials of a case in an environment, by repetition: statuses, and values by quantity."""

    statuses: dict[int, str] = field(default_factory=dict)
    values: dict[str, dict[int, float]] = field(default_factory=dict)

    @property
    def trials(self) -> int:
        return len(self.statuses)

    @property
    def last(self) -> str:
        """The status of the last trial; empty without trials."""
        return self.statuses[max(self.statuses)] if self.statuses else ""

    @property
    def is_dead(self) -> bool:
        """Whether more trials would bring no number, as the last trial brought none."""
        return self.last not in ("", OK)


class Judged:
    """Says whether a report of a run, made now, answers a comparison, or has a verdict on a claim."""

    def __init__(self, run: RunDirectory, words: Vocabulary, sources: Sequence[Source]) -> None:
        self._run = run
        self._words = words
        self._sources = sources
        # The number of trials, and by them whether each question of the plan is open.
        self._trials = -1
        self._is_open: Mapping[str, bool] = {}

    def __call__(self, asked: PlannedQuestion) -> bool:
        trials = len(self._run.finished_folders())
        if trials != self._trials or asked.id not in self._is_open:  # the plan may have further questions
            self._trials, self._is_open = trials, self._states()
        return not self._is_open.get(asked.id)

    def _states(self) -> Mapping[str, bool]:
        from tsuishi.verdicts.conclusions import conclude
        from tsuishi.verdicts.evidence import Evidence

        try:
            answers = conclude(Evidence([self._run], tuple(self._sources), self._words)).answers
        except UserError:  # a report says which trial has no numbers; more trials do not help
            return {}
        return {answer.asked.id: answer.state == "open" for answer in answers}


class Tally:
    """The results of every cell of a run so far, read from its trials when they are committed.

    judged: says of a question what `Judged` says of it. sources: contain the length of a whole training. Trials that an
    earlier session left unfinished do not count, nor do those in `excluded`, by their planned ids.
    """

    def __init__(
        self,
        run: RunDirectory,
        words: Vocabulary,
        judged: Callable[[PlannedQuestion], bool] | None = None,
        sources: Sequence[Source] = (),
        excluded: Container[TrialId] = (),
    ) -> None:
        self._run = run
        self._words = words
        self._judged = judged or Judged(run, words, sources)
        self._sources = sources
        self.of: defaultdict[MatrixCell, CellTally] = defaultdict(CellTally)
        for folder, trial in run.finished():
            if is_finding(trial.status) and trial.id.planned not in excluded:
                self._add(folder, trial)

    def read(self, planned: TrialId) -> TrialRecord | None:
        """Add a trial that has just ended. Returns its record; None without a record."""
        folder = trial_folders.last_attempt(self._run.trials, planned)
        for path, trial in trial_folders.read([folder] if folder else []):
            self._add(path, trial)
            return trial
        return None

    def counts(self) -> dict[MatrixCell, int]:
        """The number of trials of every cell; of a cell that no trial can add to, as many as any look takes."""
        return {cell: LOOKS[-1] if tally.is_dead else tally.trials for cell, tally in self.of.items()}

    def fewest(self, asked: PlannedQuestion) -> int:
        """The number of trials of the cell with the fewest, of those of a question that more trials could add to."""
        return min(self.of[cell].trials for cell in self.live(asked) or asked.cells)

    def live(self, asked: PlannedQuestion) -> list[MatrixCell]:
        """The cells of a question that more trials could add to."""
        return [cell for cell in asked.cells if not self.of[cell].is_dead]

    def is_dead(self, asked: PlannedQuestion) -> bool:
        """Whether a question cannot be answered, because a cell brings no number, or a number without a ratio.

        A claim is judged without the cells that a machine has not: too large for its memory, or unsupported. A cell
        that was both ok and too large has too few trials for good.
        """
        live = self.live(asked)
        if not asked.claim:
            return self.has_no_ratio(asked) or len(live) < len(asked.cells)
        dead = [self.of[cell] for cell in asked.cells if cell not in live]
        return not live or any(cell.last not in NO_CASE or OK in cell.statuses.values() for cell in dead)

    def has_no_ratio(self, asked: PlannedQuestion) -> bool:
        """Whether a comparison has a cell with a value of 0 or less, or without the number that its trials should have.

        Quantities that are not a trial's own samples or metrics are known to reports alone.
        """
        if not asked.compares:
            return False
        ended_well = [self.of[cell] for cell in asked.cells if OK in self.of[cell].statuses.values()]
        least = 0.0 if self._words.quantity(asked.quantity).made_of else math.inf
        return any(min(tally.values.get(asked.quantity, {0: least}).values()) <= 0 for tally in ended_well)

    def is_open(self, asked: PlannedQuestion) -> bool:
        """Whether a question has no answer yet, and more trials could answer it."""
        fewest = self.fewest(asked)
        if self.is_dead(asked) or fewest >= asked.most_trials:
            return False
        if fewest < asked.first_look:
            return True
        return (asked.compares or bool(asked.claim)) and not self._judged(asked)

    def _add(self, folder: Path, trial: TrialRecord) -> None:
        tally = self.of[trial.cell]
        tally.statuses[trial.repetition] = trial.status
        if trial.status == OK:
            axes = self._run.case(trial.case_record)
            try:
                values = _values(folder, axes, self._words, epochs_of(self._sources, axes))
            except (KeyError, TypeError, ValueError, ArithmeticError) as error:
                raise UserError(f"{folder}: a table of it holds no numbers: {error}; remove the trial") from error
            for quantity, value in values.items():
                tally.values.setdefault(quantity, {})[trial.repetition] = value


def _values(folder: Path, axes: Mapping[str, Any], words: Vocabulary, whole: Epochs | None) -> dict[str, float]:
    """The quantities of a finished trial of a case with these axes. whole: as for `quantities_of`."""
    from tsuishi.verdicts.answers import quantities_of

    files = folder / "samples.csv", folder / "metrics.csv"
    samples, metrics = (read_rows(file) if file.exists() else [] for file in files)
    return quantities_of(samples, metrics, axes, words, whole)
