"""Runs against their baseline: by days, as a family, on made-up runs with a known truth."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.report.compared import factors
from tests.reports import table_of
from tests.synthetic_run import TF, TORCH, SyntheticRun, add_record, environment, machine, steady_samples, training_case
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.report.output.folder import Against, make_report
from tsuishi.results.directory import RunDirectory
from tsuishi.results.run_record import CheckoutState

BATCHES = (32, 64, 128)


def session(
    folder: Path, day: int, times: float = 1.0, batches: tuple[int, ...] = BATCHES, **changed: Any
) -> RunDirectory:
    """A run of a single session on a day: three trials a case; each day is a little longer than the day before."""
    run = SyntheticRun(folder / f"202611{day:02}-080000-quick", created_at=f"2026-11-{day:02}T08:00:00Z")
    run.started_at = f"2026-11-{day:02}T08:00:01Z"
    if "machine" in changed:
        (run.directory.records / f"{run.machine}.json").unlink()
        run.machine = add_record(run.directory, "machine", changed["machine"])
    if "environment" in changed:
        run.environments[TORCH] = add_record(run.directory, "environment", changed["environment"])
    for batch in batches:
        for repetition, factor in enumerate(factors(0.01), start=1):
            step_s = 0.1 * batch * factor * times * (1 + 0.001 * (day % 7))
            run.add(training_case(batch), TORCH, steady_samples(batch, [step_s] * 4), repetition)
    return run.finish()


def held(out: Path, runs: list[RunDirectory], earlier: list[RunDirectory], threshold: float = 1.05) -> str:
    """Make a report with a baseline; returns its last line."""
    checkout, against = Checkout(), Against(earlier, threshold)
    return make_report(runs, checkout.published, WORDS, checkout.templates, out, None, against).page.closing[-1]


def rows_of(out: Path) -> list[dict[str, str]]:
    return table_of(out, "baseline")


def standings(out: Path) -> list[str]:
    return [row["verdict"] for row in rows_of(out)]


def test_a_machine_that_takes_a_third_longer_is_slower_in_every_case(tmp_path: Path) -> None:
    earlier = [session(tmp_path / "then", day) for day in (1, 2, 3)]
    now = [session(tmp_path / "now", day, times=1.33) for day in (11, 12, 13)]
    line, out = held(tmp_path / "out", now, earlier), tmp_path / "out"
    assert line.endswith("by a threshold of 1.05: 3 slower, 0 not slower, 0 open, 0 lost, 0 without a match.")
    text = (out / "baseline.md").read_text(encoding="utf-8")
    assert "3 slower" in text
    assert "days: 3 then, 3 now" in text
    assert "### Against the baseline" in (out / "report.md").read_text(encoding="utf-8")
    rows = rows_of(out)
    assert [row["verdict"] for row in rows] == ["slower"] * 3
    # Holm: three cases share 5 %, of which the first look has a half.
    assert {float(row["level"]) for row in rows} == {0.05 / 3 / 2}
    for row in rows:
        assert 1.05 < float(row["family_low"]) < 1.33 < float(row["family_high"])


def test_the_same_machine_is_not_slower(tmp_path: Path) -> None:
    earlier = [session(tmp_path / "then", day) for day in (1, 2, 3)]
    held(tmp_path / "out", [session(tmp_path / "now", day) for day in (11, 12, 13)], earlier)
    assert standings(tmp_path / "out") == ["not slower"] * 3


@pytest.mark.long
def test_sessions_beyond_the_last_look_wait_for_the_next(tmp_path: Path) -> None:
    """Four sessions are judged by the first three: whoever looks after each session spends no more error."""
    earlier = [session(tmp_path / "then", day) for day in (1, 2, 3, 4)]
    now = [session(tmp_path / "now", day) for day in (11, 12, 13)]
    held(tmp_path / "out", [*now, session(tmp_path / "now", 14, times=9)], earlier)
    assert standings(tmp_path / "out") == ["not slower"] * 3


@pytest.mark.long
def test_junit_has_a_test_case_for_each_case_and_fails_the_slower(tmp_path: Path) -> None:
    earlier = [session(tmp_path / "then", day, batches=(32, 64, 256)) for day in (1, 2, 3)]
    now = [session(tmp_path / "now", day, times=1.33, batches=(32, 64, 128)) for day in (11, 12, 13)]
    held(tmp_path / "out", now, earlier)
    root = ElementTree.parse(tmp_path / "out" / "junit.xml").getroot()  # noqa: S314
    counts = {"tests": "4", "failures": "2", "errors": "0", "skipped": "2"}
    assert {name: root.get(name) for name in counts} == counts
    cases = {str(case.get("name")): case for case in root.iter("testcase")}
    assert len(cases) == 4, "names are told apart"
    assert {case.get("classname") for case in cases.values()} == {TORCH}
    assert sum(case.find("failure") is not None for case in cases.values()) == 2
    skipped = [str(element.get("message")) for case in cases.values() for element in case.findall("skipped")]
    assert sorted(skipped) == ["not matched: not in the baseline", "not matched: only in the baseline"]


@pytest.mark.parametrize("status", ["out_of_memory", "unsupported", "skipped", "timeout"])
def test_a_case_that_does_not_run_any_more_is_lost(tmp_path: Path, status: str) -> None:
    earlier = [session(tmp_path / "then", day) for day in (1, 2, 3)]
    run = SyntheticRun(tmp_path / "now" / "20261111-080000-quick", created_at="2026-11-11T08:00:00Z")
    run.add(training_case(32), TORCH, steady_samples(32, [3.2] * 4))
    run.add(training_case(64), TORCH, status=status, reason="no more")
    run.add(training_case(128), TORCH, status="interrupted", reason="Ctrl-C")  # says nothing of the case
    line, out = held(tmp_path / "out", [run.finish()], earlier), tmp_path / "out"
    assert line.endswith("0 slower, 0 not slower, 1 open, 1 lost, 1 without a match.")
    assert sorted(standings(out)) == ["lost", "not matched", "open"]
    root = ElementTree.parse(out / "junit.xml").getroot()  # noqa: S314
    (failed,) = root.iter("failure")
    assert (failed.get("type"), root.get("failures")) == ("lost", "1")
    assert f"ok then, {status.replace('_', ' ')} now" in str(failed.get("message"))


@pytest.mark.parametrize(("days", "lost"), [((11, 12), 1), ((11, 14), 0)])
def test_the_last_day_of_each_side_says_whether_a_case_is_lost(
    tmp_path: Path, days: tuple[int, int], lost: int
) -> None:
    """As in a job that reports runs of two earlier days beside its own, of the 13th."""
    earlier = [session(tmp_path / "then", day) for day in (1, 2, 3)]
    today = SyntheticRun(tmp_path / "now" / "20261113-080000-quick", created_at="2026-11-13T08:00:00Z")
    today.started_at = "2026-11-13T08:00:01Z"
    for batch in BATCHES:
        today.add(training_case(batch), TORCH, status="out_of_memory", reason="no more")
    now = [*(session(tmp_path / "now", day) for day in days), today.finish()]
    line = held(tmp_path / "out", now, earlier)
    assert line.endswith(f"0 slower, 0 not slower, {3 - 3 * lost} open, {3 * lost} lost, 0 without a match.")
    assert standings(tmp_path / "out").count("lost") == 3 * lost
    turned = held(tmp_path / "turned", earlier, now)
    assert " 0 lost," in turned, "what did not run in the baseline is not lost"


@pytest.mark.long
def test_another_machine_is_compared_and_named(tmp_path: Path) -> None:
    other = {**machine(), "memory_mib": 12345, "kernel": "6.99"}
    earlier = [session(tmp_path / "then", day, machine=other) for day in (1, 2, 3)]
    held(tmp_path / "out", [session(tmp_path / "now", day) for day in (11, 12, 13)], earlier)
    assert standings(tmp_path / "out") == ["not slower"] * 3
    text = (tmp_path / "out" / "baseline.md").read_text(encoding="utf-8")
    assert "| memory, MiB | 12345 | 7951 |" in text
    assert "| kernel | 6.99 | 6.1.0 |" in text
    assert "| operating system |" not in text, "it is the same"


def test_a_trial_that_reported_nothing_has_no_fact_to_differ(tmp_path: Path) -> None:
    """It never started, or ended before it could say whether its data are made up."""
    silent: dict[str, Any] = dict.fromkeys(("device", "simulated", "synthetic"))
    runs = []
    for day in (1, 11):
        run = SyntheticRun(tmp_path / f"202611{day:02}-080000-quick")
        run.started_at = f"2026-11-{day:02}T08:00:01Z"
        run.add(training_case(32), TORCH, steady_samples(32, [0.1] * 4))
        run.add(training_case(64), TORCH, status="failed", reason="ended with exit code 1", **silent)
        runs.append(run.finish())
    held(tmp_path / "out", runs[1:], runs[:1])
    text = (tmp_path / "out" / "baseline.md").read_text(encoding="utf-8")
    assert "| synthetic data |" not in text


@pytest.mark.long
def test_every_recorded_fact_that_differs_is_named(tmp_path: Path) -> None:
    """Limits of the process, packages of the same spec, how trials were timed, and the commit."""
    limited = {**machine(), "limits": {"cores": 2, "affinity": "0-1", "cpu_quota": None, "ulimits": {"open files": 9}}}
    wider = {**machine(), "limits": {"cores": 2, "affinity": "0-1", "cpu_quota": 2.5, "ulimits": {"open files": 99}}}
    other = {**environment(TORCH), "realised_id": "e" * 16, "packages": {"torch": "2.13.0", "numpy": "2.0"}}
    then = session(tmp_path / "then", 1, machine=limited, environment=other)
    now = session(tmp_path / "now", 11, machine=wider)
    state = CheckoutState(commit="f" * 40, dirty=True)
    now.write_run(now.run().model_copy(update={"git": state, "engine": "venv"}))
    held(tmp_path / "out", [now], [then])
    text = (tmp_path / "out" / "baseline.md").read_text(encoding="utf-8")
    for row in (
        "| CPU quota, cores | none | 2.5 |",
        "| ulimits | open files 9 | open files 99 |",
        f"| {TORCH}: numpy | 2.0 | 1.16.6 |",
        "| engine | docker | venv |",
        f"| commit of tsuishi | 0123456789abcdef0123456789abcdef01234567 | {'f' * 40} with uncommitted changes |",
    ):
        assert row in text
    assert "| affinity |" not in text, "it is the same"


@pytest.mark.long
def test_another_environment_of_the_same_name_is_not_compared(tmp_path: Path) -> None:
    other = {**environment(TORCH), "spec_id": "f" * 16, "realised_id": "e" * 16}
    earlier = [session(tmp_path / "then", day, environment=other) for day in (1, 2, 3)]
    held(tmp_path / "out", [session(tmp_path / "now", day, times=2) for day in (11, 12, 13)], earlier)
    rows = rows_of(tmp_path / "out")
    why = f"the baseline has another environment of this name: {'e' * 16}"
    assert [(row["verdict"], row["reason"]) for row in rows] == [("not matched", why)] * 3


@pytest.mark.long
def test_the_same_spec_built_again_is_compared_and_said(tmp_path: Path) -> None:
    other = {**environment(TORCH), "realised_id": "e" * 16}
    earlier = [session(tmp_path / "then", day, environment=other) for day in (1, 2, 3)]
    held(tmp_path / "out", [session(tmp_path / "now", day) for day in (11, 12, 13)], earlier)
    assert standings(tmp_path / "out") == ["not slower"] * 3
    text = (tmp_path / "out" / "baseline.md").read_text(encoding="utf-8")
    assert f"| {TORCH}: realised id | {'e' * 16} | {'b' * 16} |" in text


@pytest.mark.long
def test_a_case_that_failed_now_is_without_a_match_and_said(tmp_path: Path) -> None:
    earlier = [session(tmp_path / "then", day) for day in (1, 2, 3)]
    run = SyntheticRun(tmp_path / "now" / "20261111-080000-quick")
    run.add(training_case(32), TORCH, status="failed", reason="it broke")
    run.add(training_case(64), TF, steady_samples(64, [1.0] * 4))
    held(tmp_path / "out", [run.finish()], earlier)
    reasons = {(row["environment"], row["batch_size"]): row["reason"] for row in rows_of(tmp_path / "out")}
    assert reasons == {
        (TORCH, "32"): "ok then, failed now",
        (TORCH, "64"): "only in the baseline",
        (TORCH, "128"): "only in the baseline",
        (TF, "64"): "the baseline has no such environment",
    }


def test_runs_are_not_their_own_baseline(tmp_path: Path) -> None:
    runs = [session(tmp_path / "then", day) for day in (1, 2, 3)]
    with pytest.raises(UserError, match="the baseline has 9 of the trials that are held against it"):
        held(tmp_path / "out", runs, [runs[0]])


@pytest.mark.long
def test_a_report_without_a_baseline_leaves_nothing_of_one_before(tmp_path: Path) -> None:
    earlier = [session(tmp_path / "then", day) for day in (1, 2, 3)]
    now, checkout = [session(tmp_path / "now", 11)], Checkout()
    held(tmp_path / "out", now, earlier)
    make_report(now, checkout.published, WORDS, checkout.templates, tmp_path / "out")
    assert not {"junit.xml", "baseline.md"} & {path.name for path in (tmp_path / "out").iterdir()}


def of_a_script(folder: Path, day: int, **printed: float) -> RunDirectory:
    """A run of a day, of a suite that this checkout does not have; its script prints these numbers."""
    run = SyntheticRun(folder / f"202611{day:02}-080000-quick", workloads={"pace": "script"})
    run.started_at = f"2026-11-{day:02}T08:00:01Z"
    units = {name: WORDS.quantity(name).unit for name in printed}
    metrics = [(name, value * (1 + 0.0001 * (day % 7)), units[name]) for name, value in printed.items()]
    run.add(WORDS.case({"suite": "pace", "protocol": "literal"}), TORCH, metrics=metrics)
    return run.finish()


@pytest.mark.long
@pytest.mark.parametrize(
    ("then", "now", "found"),
    [
        ({"step_s": 0.1037}, {"step_s": 0.2074}, ("slower", "")),
        ({"pace_images_per_s": 200.0, "loss": 1.0}, {"pace_images_per_s": 100.0, "loss": 1.0}, ("slower", "")),
        ({"loss": 1.0}, {"loss": 2.0}, ("not matched", "no time or rate in common")),
        ({"shown_s": 0.1}, {"other_s": 0.2}, ("not matched", "no time or rate in common")),
        ({"shown_s": 0.1}, {"shown_s": 0.0}, ("not matched", "shown is 0 s, and a ratio takes numbers above 0")),
        ({"shown_s": -1.0}, {"shown_s": 0.1}, ("not matched", "shown is -1 s, and a ratio takes numbers above 0")),
    ],
)
def test_a_case_of_any_workload_is_compared_by_its_times_and_rates_or_named_with_the_reason(
    tmp_path: Path, then: dict[str, float], now: dict[str, float], found: tuple[str, str]
) -> None:
    earlier = [of_a_script(tmp_path / "then", day, **then) for day in (7, 14, 21)]
    runs = [of_a_script(tmp_path / "now", day, **now) for day in (8, 15, 22)]
    held(tmp_path / "out", runs, earlier)
    assert [(row["verdict"], row["reason"].replace("\u00a0", " ")) for row in rows_of(tmp_path / "out")] == [found]
    root = ElementTree.parse(tmp_path / "out" / "junit.xml").getroot()  # noqa: S314
    assert root.get("tests") == "1", "a case that cannot be compared is skipped, and never absent"


def test_what_failed_on_both_sides_and_environments_of_the_baseline_alone_are_named(tmp_path: Path) -> None:
    sides = []
    for name, environments in (("then", (TF, TORCH)), ("now", (TORCH,))):
        run = SyntheticRun(tmp_path / name / f"{name}-quick")
        run.started_at = f"2026-11-{len(environments)}1T08:00:00Z"
        for name_there in environments:
            run.add(training_case(32), name_there, steady_samples(32, [1.0] * 4))
        run.add(training_case(64), TORCH, status="failed", reason="it broke")
        sides.append(run.finish())
    held(tmp_path / "out", [sides[1]], [sides[0]])
    reasons = {(row["environment"], row["batch_size"]): row["reason"] for row in rows_of(tmp_path / "out")}
    assert reasons == {
        (TORCH, "32"): "",
        (TORCH, "64"): "failed then, failed now",
        (TF, "32"): "only in the baseline",
    }
