"""Evidence: all data behind a report, read once. All other parts of a report are views of it."""

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache, cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tsuishi.estimates import roofline
from tsuishi.estimates.intervals import Round, Term
from tsuishi.estimates.samples import case_estimates, trial_estimates
from tsuishi.estimates.steadiness import STEP_TIMES, SessionChange, TrialTime, session_changes
from tsuishi.estimates.terms import Rounds, Terms, Values, case_terms, trial_rounds, trial_values
from tsuishi.estimates.unseen import of_few_trials, seen_scatter
from tsuishi.estimates.variances import Pool
from tsuishi.results.days import days_of_sessions
from tsuishi.results.directory import RunDirectory
from tsuishi.results.frames import Results, named_rows, ok_rows, outcomes, read_runs, runs_by_name
from tsuishi.results.records import EnvironmentRecord, MachineRecord
from tsuishi.specs.case import MODEL, PROTOCOL, SUITE, Value
from tsuishi.specs.data_sheets import DataSheet
from tsuishi.specs.environment import in_order
from tsuishi.specs.numbers_of_cases import numbers_by_network
from tsuishi.specs.printed_table import Asked
from tsuishi.specs.quantities import MOST_OF_OTHERS, is_unit_of_pace
from tsuishi.specs.questions import MatrixCell
from tsuishi.specs.selections import ENVIRONMENT, FRAMEWORK
from tsuishi.specs.source import Number, Source, epochs_of, hardware_by_key, sources_for
from tsuishi.specs.vocabulary import Vocabulary, vocabulary
from tsuishi.verdicts.doubtful import with_impossible


class Evidence:
    """The contents of runs, the estimates that follow from them, and published numbers of the same suites."""

    def __init__(
        self,
        runs: Sequence[RunDirectory],
        sources: tuple[Source, ...],
        words: Vocabulary,
        sheets: Sequence[DataSheet] | None = None,
    ) -> None:
        """sheets: of hardware, where impossible numbers of sources are looked for: above the limit of a sheet, too."""
        # From the records. `environments`: labels of environments (`column` in frames.py). `every_axes`: the axes of
        # each case, measured or published; `words` describes these axes, and no others of the checkout.
        self.directories = runs_by_name(runs)
        self.results = read_runs(runs, words)
        ran = {str(axes.get(SUITE)) for axes in self.results.axes.values()}
        networks = {axes.get(MODEL) for axes in self.results.axes.values()}
        sources = tuple(source.with_tables(ran, _asked(source, sources, networks)) for source in sources)
        if sheets is not None:
            sources = tuple(with_impossible(source, words, sheets) for source in sources)
        published = {number.case: number.axes for source in sources for number in source.flat()}
        self.every_axes = [*self.results.axes.values(), *published.values()]
        self.words = words.of(self.every_axes)
        self.outcomes = outcomes(self.results)
        self.environments = in_order(set(self.outcomes["column"]))
        self.suites = sorted(set(self.outcomes[SUITE]))
        cases = zip(self.outcomes["case_id"].tolist(), self.outcomes["axes"].tolist(), strict=True)
        self.axes: dict[str, dict[str, Any]] = dict(cases)
        self.workloads = _workloads(self.results)

        # What follows from the records. `fractions` has rows without a value, where no limit was measured.
        epochs = {case_id: epochs_of(sources, axes) for case_id, axes in self.axes.items()}
        # The whole training of a source, by the ids of its cases.
        self.epochs = {case_id: whole for case_id, whole in epochs.items() if whole}
        timed = trial_estimates(self.results, self.epochs)
        trials = self.results.trials
        rates = roofline.with_axes(timed, trials.assign(machine_record=trials["machine"]))
        self.limits = roofline.measured_limits(rates)
        self.fractions = roofline.fractions(rates, self.limits)
        known = pd.DataFrame([row for row in self.fractions if row["value"] is not None], columns=timed.columns)
        self.estimates = timed if known.empty else pd.concat([timed, known], ignore_index=True)
        self.cases = case_estimates(self.estimates)

        keys = [SUITE, PROTOCOL]
        # The suites with their protocols.
        self.kinds = sorted(set(zip(self.outcomes[SUITE], self.outcomes[PROTOCOL], strict=True)))
        self._outcomes, self._cases = (dict(iter(frame.groupby(keys))) for frame in (self.outcomes, self.cases))

        # From the sources: the numbers of the suites that ran, apart from those that are impossible and compared with
        # nothing, and their hardware by Number.key.
        self.sources = sources
        every = [number for source in sources for number in source.flat() if number.axes[SUITE] in self.suites]
        self.numbers = [number for number in every if not number.impossible]
        self.impossible = [number for number in every if number.impossible]
        listed = hardware_by_key(sources)
        self.hardware = {number.key: listed[number.key] for number in every}
        self._synthetic = set(self.cases.loc[self.cases["synthetic"], "case_id"])
        self._numbers_of = {
            suite: numbers_by_network(number for number in every if number.axes[SUITE] == suite)
            for suite in self.suites
        }
        self._published: dict[str, dict[tuple[str, str], Number]] = {}
        self._terms_of_first: dict[int, Terms] = {}

    def of(self, suite: str, protocol: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The outcomes and cases of a suite under one protocol."""
        key = suite, protocol
        return self._outcomes.get(key, self.outcomes.iloc[:0]), self._cases.get(key, self.cases.iloc[:0])

    @cached_property
    def simulated(self) -> frozenset[tuple[str, str]]:
        """The cases and environments (labels) of which some devices were not distinct real GPUs."""
        some = self.cases[self.cases["simulated"]]
        return frozenset(zip(some["case_id"], some["column"], strict=True))

    @cached_property
    def of_others(self) -> dict[tuple[str, str], float]:
        """The largest share of the cores that other programs took beside a trial of a case, in percent.

        By case and environment (label): those with a trial in which it was more than MOST_OF_OTHERS.
        """
        trials = ok_rows(self.results.counting)
        touched = trials[trials["others_cpu_percent"] > MOST_OF_OTHERS]
        most: dict[tuple[str, str], float] = {}
        for row in named_rows(touched[["case_id", "column", "others_cpu_percent"]]):
            most[row.case_id, row.column] = max(row.others_cpu_percent, most.get((row.case_id, row.column), 0.0))
        return most

    @cached_property
    def frameworks(self) -> dict[str, str]:
        """The framework of each environment, without its version; an environment that reported none is left out."""
        trials = self.results.counting
        titles = zip(trials["column"].tolist(), trials["framework"].tolist(), strict=True)
        return {column: title.split(" ")[0] for column, title in titles if title}

    @cached_property
    def _names(self) -> dict[str, str]:
        """The name of each environment, which its label tells apart where several machines have it."""
        trials = self.results.trials
        return dict(zip(trials["column"].tolist(), trials["environment"].tolist(), strict=True))

    def selectable(self, column: str) -> dict[str, str | None]:
        """What selections know of an environment, by its label: its framework and its name."""
        return {FRAMEWORK: self.frameworks.get(column), ENVIRONMENT: self._names.get(column)}

    @cached_property
    def devices(self) -> dict[tuple[str, str], str]:
        """The name of the GPU or CPU that computed a case, by case id and environment; empty for an unknown CPU."""
        names = {}
        for row in named_rows(ok_rows(self.results.trials)[["case_id", "column", "device", "machine"]]):
            machine = self.results.machines.get(row.machine)
            cpu = machine.cpu.model if machine and machine.cpu else ""
            names[row.case_id, row.column] = row.device if row.device != "cpu" else cpu or ""
        return names

    @cached_property
    def gpu_names(self) -> frozenset[str]:
        """The names of the GPUs of the machines."""
        return frozenset(gpu.name for record in self.results.machines.values() for gpu in record.gpus or ())

    @cached_property
    def _in_order(self) -> tuple[pd.DataFrame, list[Round]]:
        """The estimates in the order in which the trials began, and the round in which each trial was measured."""
        trials = self.results.trials
        names = ("run_id", "trial_id", "started_at", "repetition", "case_id", "environment")
        begun = {
            (run_id, trial_id): (str(started_at), repetition, MatrixCell(*cell))
            for run_id, trial_id, started_at, repetition, *cell in zip(
                *(trials[name].tolist() for name in names), strict=True
            )
        }
        ranks = {each: rank for rank, each in enumerate(sorted({each[:2] for each in begun.values()}))}
        rounds = self._rounds(begun)
        keys = [*zip(*(self.estimates[name].tolist() for name in names[:2]), strict=True)]
        order = np.argsort([ranks[begun[key][:2]] for key in keys], kind="stable")
        return self.estimates.iloc[order], [rounds[keys[place]] for place in order.tolist()]

    def _rounds(self, begun: Mapping[tuple[str, str], tuple[str, int, MatrixCell]]) -> dict[tuple[str, str], Round]:
        """The round of each trial, from its run and id, its start, its repetition and its cell.

        A run measures its questions one after the other, each in rounds that it numbers anew: the first round of one is
        over when that of the next begins. Two questions of a round each differ in their cells. Where several trials run
        at once, a repetition may begin before all trials of the repetition before have begun.
        """
        rounds: dict[tuple[str, str], Round] = {}
        numbers: dict[tuple[str, int, int], int] = {}
        latest: dict[str, tuple[int, int, MatrixCell | None]] = {}
        for key, (started_at, repetition, cell) in sorted(begun.items(), key=itemgetter(1)):
            run, session = self.results.runs[key[0]], self.session(key[0], started_at)
            question, most, before = latest.get(session, (0, 0, None))
            at_once = run.arguments.get("executor", "auto") not in ("auto", "local")
            is_next = (
                repetition == most == 1 and before is not None and not at_once and not run.asks_together(before, cell)
            )
            anew = is_next or repetition < most - at_once
            question, most = question + anew, repetition if anew else max(most, repetition)
            latest[session] = question, most, cell
            number = numbers.setdefault((session, question, repetition), len(numbers))
            rounds[key] = Round(session, number, self.days[session])
        return rounds

    def session(self, run_id: str, started_at: str) -> str:
        """The session of a run in which a trial began: the last session that began before the trial."""
        began = (session.began_at for session in self.results.runs[run_id].sessions)
        return f"{run_id} {sum(1 for each in began if each and each <= started_at)}"

    @cached_property
    def session_begins(self) -> dict[str, str]:
        """When the first trial of each session began, by the session's name: ISO 8601, UTC."""
        begins: dict[str, str] = {}
        names = ("run_id", "started_at")
        for run_id, started_at in zip(*(self.results.trials[name].tolist() for name in names), strict=True):
            session, began = self.session(run_id, str(started_at)), str(started_at)
            begins[session] = min(began, begins.get(session, began))
        return begins

    @cached_property
    def days(self) -> dict[str, str]:
        """The day of each session, by their names."""
        return days_of_sessions(self.session_begins)

    @cached_property
    def trial_values(self) -> Values:
        """The values behind `terms`, trial by trial, in the order in which the trials began."""
        return trial_values(self._in_order[0])

    @cached_property
    def trial_rounds(self) -> Rounds:
        """The rounds of `trial_values`."""
        return trial_rounds(*self._in_order)

    @cached_property
    def _step_times(self) -> dict[tuple[str, str, str], str]:
        """The quantity that is the time of a step, by suite, protocol and environment."""
        known = {quantity: {key[:3] for key in self.trial_values if key[3] == quantity} for quantity in STEP_TIMES}
        return {place: quantity for quantity in reversed(STEP_TIMES) for place in known[quantity]}

    @cached_property
    def session_changes(self) -> list[SessionChange]:
        """How step times changed over the sessions, by environment."""
        ordered, rounds = self._in_order
        trials = self.results.trials
        keys = zip(trials["run_id"].tolist(), trials["trial_id"].tolist(), strict=True)
        seconds = pd.to_datetime(trials["started_at"], utc=True, format="ISO8601", errors="coerce")
        began_s = dict(zip(keys, (seconds - seconds.min()).dt.total_seconds().tolist(), strict=True))
        names = ("run_id", "trial_id", "suite", "protocol", "column", "case_id", "quantity", "value")
        rows = zip(*(ordered[name].tolist() for name in names), rounds, strict=True)
        return session_changes(
            TrialTime(each.session, column, case_id, began_s[run_id, trial_id], value)
            for run_id, trial_id, suite, protocol, column, case_id, quantity, value, each in rows
            if quantity == self._step_times.get((suite, protocol, column)) and not math.isnan(began_s[run_id, trial_id])
        )

    @cached_property
    def terms(self) -> Terms:
        """Means of logarithms over trials, by case id, column and quantity."""
        return self._with_more_errors(case_terms(self.trial_values, rounds=self.trial_rounds))

    @cached_property
    def without_ratio(self) -> dict[tuple[str, str, str], float]:
        """The smallest value where a trial has 0 or less, by the keys of `terms`: no logarithm, hence no ratio."""
        return {
            (case_id, *key[2:]): least
            for key, of_cases in self.trial_values.items()
            for case_id, values in of_cases.items()
            if (least := min(values)) <= 0
        }

    @cached_property
    def _predictions(self) -> dict[tuple[str, str, str], Pool]:
        """The error of predictions, by the keys of the terms whose trials were too short to measure their values."""
        errors = {
            quantity.name: Pool(quantity.prediction_error**2, quantity.predictions)
            for quantity in self.words.quantities.values()
            if quantity.predictions
        }
        rows = self.estimates[self.estimates["quantity"].isin(errors.keys()) & self.estimates["derived"].eq(True)]
        keys = zip(*(rows[name].tolist() for name in ("case_id", "column", "quantity")), strict=True)
        return {key: errors[key[2]] for key in keys}

    def _with_more_errors(self, terms: Terms) -> Terms:
        """The terms with all errors that the scatter of trials does not show."""
        known = self._predictions
        predicted = {key: terms[key]._replace(prediction=known[key]) for key in known.keys() & terms.keys()}
        terms = {**terms, **predicted}
        times = {key: self._time(key, term) for key, term in terms.items() if self._is_of_time(key[2])}
        terms = {**terms, **times}
        return {
            **terms,
            **{key: terms[key]._replace(rounding=share) for key, share in self._roundings.items() if key in terms},
        }

    def _time(self, key: tuple[str, str, str], term: Term) -> Term:
        """The term of a time or rate, with the errors of processes and days that few trials and days do not show."""
        case_id, column, quantity = key
        device = "gpu" if (case_id, column) in self._on_gpu else "cpu"
        seen, others = self._seen.get((column, quantity), 0.0), self.of_others.get((case_id, column), 0.0)
        return term._replace(environment=column, unseen=of_few_trials(term, seen, others / 100, device))

    @cached_property
    def _on_gpu(self) -> frozenset[tuple[str, str]]:
        """The cases that computed on a GPU, by case id and environment."""
        rows = ok_rows(self.results.trials)[["case_id", "column", "device"]]
        reported = rows[~rows["device"].fillna("").isin(["", "cpu"])]
        return frozenset((row.case_id, row.column) for row in named_rows(reported))

    @cached_property
    def _seen(self) -> dict[tuple[str, str], float]:
        return seen_scatter(self.trial_values)

    @cached_property
    def _roundings(self) -> dict[tuple[str, str, str], float]:
        """The rounding of the values of a case, as a share of the smallest, by the keys of the terms that have any.

        Half a unit is the smallest of all trials: a program that prints two digits prints 0.5 for 0.50.
        """
        names = ("case_id", "column", "quantity", "rounding", "value")
        rounded = self.estimates[(self.estimates["rounding"] > 0) & (self.estimates["value"] > 0)]
        known: dict[tuple[str, str, str], tuple[float, float]] = {}
        for case_id, column, quantity, half, value in zip(*(rounded[name].tolist() for name in names), strict=True):
            halves, values = known.get((case_id, column, quantity), (half, value))
            known[case_id, column, quantity] = min(half, halves), min(value, values)
        return {key: -math.log1p(-min(half / value, 0.5)) for key, (half, value) in known.items()}

    def _is_of_time(self, quantity: str) -> bool:
        return is_unit_of_pace(self.words.quantity(quantity).unit)

    def values_of_first(self, trials: int) -> Values:
        """`trial_values` of no more than the first so many trials of every case."""
        return {
            key: {case_id: values[:trials] for case_id, values in of_pool.items()}
            for key, of_pool in self.trial_values.items()
        }

    def terms_of_first(self, trials: int) -> Terms:
        """`terms` of no more than the first so many trials of every case."""
        if trials not in self._terms_of_first:
            # Scatter is moderated over the cases of a suite, protocol and quantity: where none of them has more trials,
            # these terms do not change.
            several = {
                (key[0], key[1], key[3])
                for key, of_pool in self.trial_values.items()
                if max(map(len, of_pool.values())) > trials
            }
            values = self.values_of_first(trials)
            fewer = {key: of_pool for key, of_pool in values.items() if (key[0], key[1], key[3]) in several}
            changed = self._with_more_errors(case_terms(fewer, rounds=self.trial_rounds))
            self._terms_of_first[trials] = {**self.terms, **changed}
        return self._terms_of_first[trials]

    @cached_property
    def of_one_gpu(self) -> dict[str, pd.DataFrame]:
        """The estimates for single GPUs of trials with several GPUs, by suite."""
        rows = self.estimates[self.estimates["quantity"].isin(list(self.words.of_one_gpu))]
        return {str(suite): of_suite for suite, of_suite in rows.groupby("suite")}

    def published(self, case_id: str) -> dict[tuple[str, str], Number]:
        """The published numbers of a case, also impossible numbers, by Number.key and quantity.

        Without its accuracy where our trials had made-up data: the two accuracies are not comparable.
        """
        if case_id not in self._published:
            axes = self.axes[case_id]
            settings, numbers = self._settings_of(axes), self._numbers_of[str(axes[SUITE])]
            self._published[case_id] = {
                (number.key, number.quantity): number
                for number in numbers.get(axes.get(MODEL), numbers[None])
                if number.matches(axes)
                and number.axes.keys() >= settings
                and not (case_id in self._synthetic and number.quantity == "accuracy")
            }
        return self._published[case_id]

    def _settings_of(self, axes: dict[str, Any]) -> set[str]:
        """The settings of the process that a case has, but for usual values: no printed number means it unnamed."""
        known = {name: self.words.axis(name) for name in axes}
        return {name for name, axis in known.items() if axis.is_of_process and axes[name] != axis.usual}

    @cached_property
    def environment_records(self) -> dict[str, EnvironmentRecord]:
        """The records of the environments of trials, by record id; a record that is lost is left out."""
        used, known = sorted(set(self.results.trials["environment_record"])), self.results.environments
        return {record: known[record] for record in used if record in known}

    @cached_property
    def records_of_machines(self) -> dict[str, dict[str, MachineRecord]]:
        """All records of each machine of `machine_records` that trials name, by record id."""
        trials, known = self.results.trials, self.results.machines
        used = sorted({*zip(trials["machine"].tolist(), trials["machine_record"].tolist(), strict=True)})
        return {
            machine: {record: known[record] for its, record in used if its == machine and record in known}
            for machine in self.machine_records
        }

    @cached_property
    def machine_records(self) -> dict[str, MachineRecord]:
        """The record that stands for each machine of trials, by its id; a record that is lost is left out."""
        used, known = sorted(set(self.results.trials["machine"])), self.results.machines
        return {record: known[record] for record in used if record in known}


def evidence_of(
    run: RunDirectory, suites: Path, published: Path, sheets: Sequence[DataSheet] | None = None
) -> Evidence:
    """The evidence of a run, by these suites and against these sources. Raises UserError for a wrong file."""
    words = vocabulary(suites)
    return Evidence([run], sources_beside([run], published, words), words, sheets)


def sources_beside(runs: Sequence[RunDirectory], published: Path, words: Vocabulary) -> tuple[Source, ...]:
    """The published sources. Raises UserError for a wrong file of a suite that ran, or of its source."""
    ran = (str(trial.axes.get(SUITE)) for run in runs for trial in run.run().plan)
    return sources_for(published, words, ran)


def _asked(source: Source, sources: Iterable[Source], ran: Container[Value | None]) -> Asked | None:
    """Whether a report needs a source's numbers of a network: those that ran, or are in claims on its numbers; or all.

    Its figures are drawn from all numbers, and its totals are checked against those of other networks.
    """
    claims = (claim for each in sources for claim in each.claims if each is source or source.name in claim.also_by)
    selectors = [selects for claim in claims for selects in claim.selectors(partial=True)]
    claimed = cache(lambda network: any(selects({MODEL: network}) for selects in selectors))
    has_totals = any(column.holds == "total_s" for table in source.tables for column in table.columns)
    return None if source.figures or has_totals else lambda network: network in ran or claimed(network)


def _workloads(results: Results) -> dict[str, str]:
    """The workload of every suite, from its trials' records and from plans. A suite with two workloads is left out."""
    trials = results.trials[["suite", "workload_record"]].drop_duplicates()
    records = zip(trials["suite"], trials["workload_record"], strict=True)
    ran = [(suite, results.workloads.get(record)) for suite, record in records]
    planned = [(str(entry.axes["suite"]), entry.workload) for run in results.runs.values() for entry in run.plan]
    names: dict[str, set[str]] = {}
    for suite, workload in (*ran, *planned):
        if workload:
            names.setdefault(suite, set()).add(workload)
    return {suite: min(of_suite) for suite, of_suite in names.items() if len(of_suite) == 1}
