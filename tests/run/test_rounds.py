"""Rounds: which trial comes next, with a clock and trials of known length and scatter."""

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.synthetic_run import planned_trial, run_record
from tests.words import WORDS, case
from tsuishi.plan.trials import PlannedTrial
from tsuishi.results import schema, trial_folders
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import CaseRecord, TrialRecord
from tsuishi.run.rounds import Rounds
from tsuishi.run.tally import Tally
from tsuishi.specs.questions import ALIKE, MatrixCell, PlannedQuestion

ENVIRONMENT = "env"


class Bench:
    """A run whose trials take their time on a clock of its own, and come to what `truth` says with some scatter."""

    def __init__(self, root: Path, left_s: float, scatter: float = 0.01) -> None:
        self.run = RunDirectory.create(root / "run", run_record("run"))
        self.left_s = left_s
        self.random = random.Random(1)  # noqa: S311
        self.scatter = scatter
        self.truth: dict[MatrixCell, float] = {}
        self.took: dict[MatrixCell, float] = {}
        self.status: dict[MatrixCell, str] = {}
        # The cells whose trials have no time of a step.
        self.silent: set[MatrixCell] = set()
        self.first: dict[MatrixCell, PlannedTrial] = {}
        self.planned: list[tuple[list[str], list[str]]] = []
        self.done: list[str] = []
        # The questions that needed no more trials, each with the number of trials that had ended.
        self.decided: list[tuple[str, int]] = []
        # The questions that did not fit any longer, each with the seconds that they would take.
        self.dropped: list[tuple[str, float]] = []
        # Whether a report would answer a question by now.
        self.judged: Callable[[PlannedQuestion], bool] = self.is_clear

    def cell(self, devices: int, step_s: float, expected_s: float = 10.0, took_s: float | None = None) -> MatrixCell:
        planned = case(suite="bench", protocol="steady", devices=devices)
        cell = MatrixCell(planned.id, ENVIRONMENT)
        trial = planned_trial(planned, ENVIRONMENT, expected_s)
        self.first[cell], self.truth[cell], self.took[cell] = trial, step_s, took_s or expected_s
        return cell

    def compare(self, name: str, of: float, to: float, worth: float = 1.0, expected_s: float = 10.0) -> PlannedQuestion:
        number = len(self.first)
        sides = [self.cell(number + more, value, expected_s) for more, value in ((1, of), (2, to))]
        return PlannedQuestion(
            id=f"bench/{name}/{ENVIRONMENT}", kind="cases", title={"en": name}, worth=worth, quantity="step_s",
            environments=(ENVIRONMENT,), of=(sides[0],), to=(sides[1],),
        )  # fmt: skip

    def is_clear(self, asked: PlannedQuestion) -> bool:
        """Whether the truth of a comparison is far beyond its scatter, on either side of a tenth."""
        if not asked.compares:
            return True
        apart = abs(math.log(self.truth[asked.of[0]] / self.truth[asked.to[0]]))
        return abs(apart - math.log(ALIKE) / 2) > 4 * self.scatter

    def claim(self, name: str, *cells: MatrixCell, of_statuses: bool = False) -> PlannedQuestion:
        return PlannedQuestion(
            id=f"source/{name}/{ENVIRONMENT}", kind="claim", title={"en": name}, worth=1.0, environments=(ENVIRONMENT,),
            of=cells, source="source", claim=name, of_statuses=of_statuses,
        )  # fmt: skip

    def rounds(
        self,
        asked: Sequence[PlannedQuestion],
        others: Sequence[PlannedQuestion] = (),
        repetitions: int | None = None,
        open_suite: Callable[[], str] = lambda: "",
    ) -> Rounds:
        tally = Tally(self.run, WORDS, lambda asked: self.judged(asked))
        return Rounds(tally, self.first, asked, others, 0, BenchCall(self, open_suite), repetitions)

    def go(self, rounds: Rounds, most: int = 10_000) -> Counter[MatrixCell]:
        """Measure until there is nothing more, or so many trials; how many trials each cell got."""
        counts: Counter[MatrixCell] = Counter()
        for trial in rounds:
            self.measure(trial)
            self.last = trial
            counts[MatrixCell(trial.case.id, trial.environment)] += 1
            if sum(counts.values()) >= most:
                break
        return counts

    def measure(self, trial: PlannedTrial) -> None:
        cell = MatrixCell(trial.case.id, trial.environment)
        status = self.status.get(cell, "ok")
        trial_id = trial.id.next_attempt
        partial = trial_folders.begin(self.run.trials, trial_id)
        step_s = self.truth[cell] * self.random.lognormvariate(0, self.scatter)
        with (partial / "samples.csv").open("w", newline="") as file:
            rows = schema.csv_writer("samples", file)
            phase = "measure" if cell not in self.silent else "warm_up"
            rows.writerow({"phase": phase, "index": 0, "steps": 1, "images": 1, "seconds": step_s})
        record = TrialRecord(
            trial_id=str(trial_id),
            case_id=trial.case.id,
            case_record=self.run.add(CaseRecord(trial.case.axes)),
            environment=trial.environment,
            repetition=trial.repetition,
            attempt=1,
            status=status,
            duration_s=self.took[cell],
        )
        trial_folders.commit(partial, record)
        self.left_s -= self.took[cell]
        self.done.append(str(trial.id))


@dataclass
class BenchCall:
    """A call that notes what rounds tell it, by the titles of questions."""

    bench: Bench
    suite: Callable[[], str]

    def left_for_trials_s(self, spent_s: float) -> float:
        return self.bench.left_s

    def open_suite(self) -> str:
        return self.suite()

    def planned(self, questions: Sequence[PlannedQuestion], trials: Sequence[PlannedTrial]) -> None:
        self.bench.planned.append(([one.title["en"] for one in questions], [str(trial.id) for trial in trials]))

    def decided(self, question: PlannedQuestion) -> None:
        self.bench.decided.append((question.title["en"], len(self.bench.done)))

    def dropped(self, question: PlannedQuestion, price_s: float) -> None:
        self.bench.dropped.append((question.title["en"], price_s))


def test_a_clear_difference_is_left_after_three_trials(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=10_000)
    asked = bench.compare("clear", of=1.0, to=2.0)
    assert set(bench.go(bench.rounds([asked])).values()) == {3}


def test_repetitions_beside_a_time_limit_are_made_if_time_is_left(tmp_path: Path) -> None:
    for left_s, repetitions, most in ((10_000, 8, 8), (10_000, 2, 3), (110, 8, 5)):
        bench = Bench(tmp_path / f"{left_s} {repetitions}", left_s=left_s)
        asked = bench.compare("clear", of=1.0, to=2.0)
        counts = bench.go(bench.rounds([asked], repetitions=repetitions))
        assert max(counts.values()) == most, (left_s, repetitions, counts)


def test_one_question_is_measured_after_the_other_and_said_when_it_is_decided(tmp_path: Path) -> None:
    """That with the most worth for its seconds first; what stays open is not said."""
    bench = Bench(tmp_path, left_s=10_000, scatter=0.2)
    questions = [
        question.model_copy(update={"main": True})
        for question in (
            bench.compare("open", of=1.0, to=1.1, worth=9.0),
            bench.compare("slow", of=1.0, to=50.0, worth=4.0, expected_s=20.0),
            bench.compare("cheap", of=1.0, to=50.0, worth=3.0),
        )
    ]
    bench.go(bench.rounds(questions), most=18)
    of_cell = {cell.case_id[:6]: question.title["en"] for question in questions for cell in question.cells}
    measured = [of_cell[name.partition(".")[0]] for name in bench.done]
    assert measured == ["open"] * 6 + ["cheap"] * 6 + ["slow"] * 6
    assert bench.decided == [("cheap", 12)]
    assert [name.rpartition(".")[2] for name in bench.done[:6]] == ["r1", "r1", "r2", "r2", "r3", "r3"]


def test_main_questions_come_up_to_the_trials_that_the_plan_counts_on_before_further_questions(tmp_path: Path) -> None:
    """Further questions compete with later looks at main questions by their worth."""
    bench = Bench(tmp_path, left_s=10_000, scatter=0.5)
    main = bench.compare("main", of=1.0, to=1.02).model_copy(update={"main": True})
    other = bench.compare("further", of=1.0, to=1.02, worth=5.0)
    bench.go(bench.rounds([main], [other]), most=18)
    of_cell = {cell.case_id[:6]: question.title["en"] for question in (main, other) for cell in question.cells}
    measured = [of_cell[name.partition(".")[0]] for name in bench.done]
    assert measured == ["main"] * 12 + ["further"] * 6


def test_a_case_that_is_too_large_for_the_machine_is_no_case_of_a_claim(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=10_000)
    claim = bench.claim("a", *(bench.cell(devices, 1.0) for devices in (1, 2)))
    bench.status[claim.of[0]] = "out_of_memory"
    bench.judged = lambda asked: len(bench.done) >= 7
    rounds = bench.rounds([claim])
    assert bench.go(rounds) == {claim.of[0]: 1, claim.of[1]: 6}
    assert not rounds.tally.is_dead(claim)


def test_a_claim_on_statuses_is_decided_by_a_single_trial_of_each_case(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=10_000)
    claim = bench.claim("a", *(bench.cell(devices, 1.0) for devices in (1, 2)), of_statuses=True)
    bench.status[claim.of[0]] = "out_of_memory"
    assert {*bench.go(bench.rounds([claim])).values()} == {1}


def test_a_claim_that_nothing_fits_is_decided_when_the_last_case_did_not_fit(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=10_000)
    claim = bench.claim("a", *(bench.cell(devices, 1.0) for devices in (1, 2)), of_statuses=True)
    bench.status = dict.fromkeys(claim.of, "out_of_memory")
    bench.go(bench.rounds([claim]))
    assert bench.decided == [("a", 2)]


def test_a_case_that_is_ok_once_and_then_too_large_ends_its_claim(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=10_000)
    claim = bench.claim("a", *(bench.cell(devices, 1.0) for devices in (1, 2)))
    rounds = iter(rounds_of_claim := bench.rounds([claim]))
    bench.judged = lambda asked: False
    for _ in range(2):
        bench.measure(next(rounds))
    bench.status[claim.of[0]] = "out_of_memory"
    for trial in rounds:
        bench.measure(trial)
    assert rounds_of_claim.tally.is_dead(claim)
    assert len(bench.done) <= 4


def test_where_no_look_fits_the_trials_of_a_question_that_fit_are_measured(tmp_path: Path) -> None:
    """A plan of one trial a case, which a user asked for by a short time, measures these."""
    bench = Bench(tmp_path, left_s=35)
    asked = [bench.compare("clear", of=1.0, to=2.0, worth=2.0), bench.compare("other", of=1.0, to=3.0)]
    counts = bench.go(bench.rounds(asked))
    assert {*counts} == {*asked[0].cells}
    assert sum(counts.values()) == 3


def test_single_cases_of_a_suite_are_measured_in_turns(tmp_path: Path) -> None:
    """Their readers compare them, though no question does: the corners of an explanation, the protocols of a check."""
    bench = Bench(tmp_path, left_s=10_000)
    asked = []
    for devices in (1, 2, 3):
        cell = bench.cell(devices, 1.0)
        asked.append(
            PlannedQuestion(
                id=f"bench/{devices}/{ENVIRONMENT}",
                kind="measurement",
                title={"en": "how long"},
                worth=1.0,
                environments=(ENVIRONMENT,),
                of=(cell,),
            )
        )
    bench.judged = lambda asked: True
    bench.go(bench.rounds(asked))
    assert [name[-2:] for name in bench.done] == ["r1"] * 3 + ["r2"] * 3 + ["r3"] * 3


def test_batches_for_many_nodes_end_where_a_look_is_out_of_reach(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=100)
    sides = [bench.cell(devices, 1.0, expected_s=10.0, took_s=30.0) for devices in (1, 2)]
    long = PlannedQuestion(
        id=f"bench/long/{ENVIRONMENT}", kind="cases", title={"en": "long"}, worth=9.0, quantity="step_s",
        environments=(ENVIRONMENT,), of=(sides[0],), to=(sides[1],),
    )  # fmt: skip
    short = bench.compare("short", of=1.0, to=2.0, worth=0.1, expected_s=2.0)
    counts: Counter[MatrixCell] = Counter()
    for batch in bench.rounds([long, short]).batches(lambda: bench.left_s):
        for trial in batch:
            bench.measure(trial)
            counts[trial.cell] += 1
    assert [counts[cell] for cell in (*long.cells, *short.cells)] == [1, 1, 3, 3]


def test_claims_come_before_other_questions_whatever_their_worth(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=10_000)
    own = bench.compare("own", 1.0, 2.0, worth=9.0)
    claim = bench.claim("a", bench.cell(9, 1.0))
    bench.go(bench.rounds([own, claim]))
    assert bench.planned[0][0] == ["a"]


def test_prices_are_renewed_by_what_trials_took(tmp_path: Path) -> None:
    """A case by its own trials, another by those of its environment: what is out of reach never begins."""
    bench = Bench(tmp_path, left_s=300.0)
    first, second = (bench.compare(name, 1.0, 2.0).model_copy(update={"main": True}) for name in ("first", "second"))
    for cell in (*first.cells, *second.cells):
        bench.took[cell] = 30.0
    counts = bench.go(bench.rounds([first, second]))
    done, left = (first, second) if counts[first.of[0]] else (second, first)
    assert [{counts[cell] for cell in one.cells} for one in (done, left)] == [{3}, {0}]
    assert [(name, round(price_s)) for name, price_s in bench.dropped] == [(left.title["en"], 6 * 30 + 2)]


def test_a_question_that_gets_out_of_reach_leaves_its_time_to_others(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=100.0)
    long = bench.compare("long", 1.0, 2.0, worth=9.0)
    for cell in long.cells:
        bench.took[cell] = 25.0
    short = bench.compare("short", 1.0, 2.0, expected_s=3.0)
    counts = bench.go(bench.rounds([long, short]))
    assert {counts[cell] for cell in short.cells} == {3}


def test_what_is_open_goes_on_to_six_twelve_and_twenty_four_trials_and_no_further(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=100_000, scatter=0.5)
    asked = bench.compare("the same", of=1.0, to=1.02)
    rounds = bench.rounds([asked])
    counts = bench.go(rounds)
    assert set(counts.values()) == {24}
    assert [len(trials) for _, trials in bench.planned] == [6, 6, 12, 24]
    assert rounds.open_questions() == []


@pytest.mark.parametrize("last_look", [24, 48, 96])
def test_an_open_claim_is_measured_to_its_last_look_and_no_further(tmp_path: Path, last_look: int) -> None:
    bench = Bench(tmp_path, left_s=1_000_000, scatter=0.5)
    same = bench.compare("the same", of=1.0, to=1.02).model_copy(update={"last_look": last_look})
    rounds = bench.rounds([same])
    assert {*bench.go(rounds).values()} == {last_look}
    assert rounds.open_questions() == []


@pytest.mark.parametrize("value", [0.0, -1.0, None])
def test_a_question_without_a_ratio_gets_no_second_trial_and_is_not_offered_for_more_time(
    tmp_path: Path, value: float | None
) -> None:
    bench = Bench(tmp_path, left_s=10_000)
    without, clear = bench.compare("without", of=value or 0.0, to=1.0), bench.compare("clear", of=1.0, to=2.0)
    bench.silent = set() if value is not None else {without.of[0]}
    rounds = bench.rounds([without, clear])
    counts = bench.go(rounds)
    assert [counts[cell] for cell in (*without.cells, *clear.cells)] == [1, 1, 3, 3]
    assert rounds.open_questions() == []
    assert rounds.tally.is_dead(without)


def test_two_that_are_alike_need_no_more(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=10_000, scatter=0.001)
    assert set(bench.go(bench.rounds([bench.compare("alike", of=1.0, to=1.001)])).values()) == {3}


def test_each_round_has_every_case_once_in_an_order_of_its_own(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=10_000)
    bench.go(bench.rounds([bench.claim("a", *(bench.cell(devices, 1.0) for devices in range(1, 9)))]))
    rounds = [bench.done[at : at + 8] for at in (0, 8, 16)]
    assert [{name.rpartition(".")[2] for name in each} for each in rounds] == [{"r1"}, {"r2"}, {"r3"}]
    orders = [[name.partition(".")[0] for name in each] for each in rounds]
    assert orders[1] == orders[0][::-1], "each case runs before each other case as often as after it"
    assert len({tuple(order) for order in orders}) == 3
    assert len({frozenset(order) for order in orders}) == 1


def test_no_trial_is_started_that_would_not_fit(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=100.0)
    asked = bench.compare("longer than expected", 1.0, 1.01)
    bench.took |= dict.fromkeys(asked.cells, 25.0)
    bench.go(bench.rounds([asked]))
    assert bench.left_s >= 0
    # Of a question that has begun as many as fit: 25 s and what lies between trials, with a tenth to spare.
    assert bench.left_s < 1.1 * 26


def test_where_time_runs_short_some_questions_get_their_three_trials_and_others_none(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=105.0)
    first, second = bench.compare("first", 1.0, 2.0), bench.compare("second", 1.0, 2.0)
    counts = bench.go(bench.rounds([first, second]))
    assert sorted({counts[cell] for cell in one.cells} for one in (first, second)) == [{0}, {3}]


def test_where_trials_take_longer_than_expected_fewer_are_started(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=200.0)
    asked = bench.compare("slow here", 1.0, 1.02)
    for cell in asked.cells:
        bench.took[cell] = 30.0
    bench.go(bench.rounds([asked]))
    assert bench.left_s >= 0


def test_further_questions_come_when_those_before_are_answered(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=10_000)
    asked, other = bench.compare("first", 1.0, 2.0), bench.compare("second", 1.0, 3.0)
    rounds = bench.rounds([asked], [other])
    bench.go(rounds)
    assert [(questions, len(trials)) for questions, trials in bench.planned] == [
        (["first"], 6), (["second"], 0), (["second"], 6),
    ]  # fmt: skip
    assert [one.title["en"] for one in rounds.asked] == ["first", "second"]
    assert rounds.others == []


def test_an_open_question_comes_before_a_further_one(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=10_000, scatter=0.3)
    asked, other = bench.compare("open", 1.0, 1.02), bench.compare("other", 1.0, 9.0)
    bench.go(bench.rounds([asked], [other]))
    assert [questions for questions, _ in bench.planned][:2] == [["open"], ["open"]]


def test_where_the_next_look_is_out_of_reach_a_further_question_is_asked_instead(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=60 * 1.2 + 40, scatter=0.3)
    asked, other = bench.compare("open", 1.0, 1.02), bench.compare("cheap", 1.0, 9.0, expected_s=4.0)
    rounds = bench.rounds([asked], [other])
    counts = bench.go(rounds)
    assert {counts[cell] for cell in asked.cells} == {3}
    assert {counts[cell] for cell in other.cells} == {3}
    assert [one.title["en"] for one in rounds.open_questions()] == ["open"]


def test_a_claim_goes_on_until_it_has_a_verdict(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=10_000)
    cell = bench.cell(1, 1.0)
    bench.judged = lambda asked: len(bench.done) >= 6
    assert bench.go(bench.rounds([bench.claim("a", cell)])) == {cell: 6}


@pytest.mark.parametrize(
    ("left_s", "decided_after", "trials"), [(10_000, 3, 3), (10_000, 12, 12), (10_000, 999, 24), (119, 999, 3)]
)
def test_a_suite_that_an_extra_calls_open_gets_whole_rounds_up_to_its_next_look(
    tmp_path: Path, left_s: float, decided_after: int, trials: int
) -> None:
    bench = Bench(tmp_path, left_s=left_s)
    asked = bench.compare("clear", 1.0, 2.0)
    counts = bench.go(bench.rounds([asked], open_suite=lambda: "bench" * (len(bench.done) < 2 * decided_after)))
    # 119 s have six trials, and not all of the next six.
    assert {*counts.values()} == {trials}
    assert {*bench.go(bench.rounds([asked], open_suite=lambda: "another")).values()} == set()


@pytest.mark.parametrize("status", ["unsupported", "out_of_memory", "failed", "timeout"])
def test_a_case_without_a_number_is_tried_once_and_its_question_given_up(tmp_path: Path, status: str) -> None:
    bench = Bench(tmp_path, left_s=10_000)
    asked = bench.compare("impossible", 1.0, 2.0)
    bench.status[asked.of[0]] = status
    rounds = bench.rounds([asked])
    counts = bench.go(rounds)
    assert counts[asked.of[0]] == 1
    assert rounds.open_questions() == []


def test_what_a_session_left_unfinished_is_tried_again_by_the_next(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=10_000)
    asked = bench.compare("clear", 1.0, 2.0)
    bench.status[asked.of[0]] = "interrupted"
    bench.go(bench.rounds([asked]))
    bench.status.clear()
    for left in bench.run.trials.glob(
        f"{asked.of[0].case_id[:6]}.*"
    ):  # a next attempt has a name of its own; here it takes the place
        for file in left.iterdir():
            file.unlink()
        left.rmdir()
    counts = bench.go(bench.rounds([asked]))
    assert counts[asked.of[0]] == 3


def test_a_run_that_was_stopped_goes_on_where_it_stood(tmp_path: Path) -> None:
    bench = Bench(tmp_path, left_s=10_000, scatter=0.3)
    asked = bench.compare("open", 1.0, 1.02)
    bench.go(bench.rounds([asked]), most=5)
    counts = bench.go(bench.rounds([asked]))
    assert len(bench.done) == len(set(bench.done)), "no repetition is measured twice"
    assert sum(counts.values()) + 5 in (12, 24, 48)
