"""Workloads that say what contract 1 does not allow, as real processes: each ends as a row that a report reads."""

import csv
import gzip
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.bench import make_checkout
from tests.reports import make_report
from tests.run.test_runner import Nobody, log_of, session, trials
from tests.synthetic_run import run_record
from tests.words import WORDS
from tests.wrong_events import WRONG_EVENTS
from tsuishi.base.errors import UserError
from tsuishi.environments.entry import Ready
from tsuishi.plan.planning import measurable, plan_builds_only
from tsuishi.plan.session import Session
from tsuishi.plan.trials import PlannedTrial, plan_trials
from tsuishi.results.directory import RunDirectory
from tsuishi.results.frames import read_runs
from tsuishi.run import runner, trial_files
from tsuishi.run.new_run import run_suite
from tsuishi.run.resume import resume
from tsuishi.run.runner import Runner
from tsuishi.stream.events import MOST_EVENTS, Event


def event(kind: str, /, **values: Any) -> bytes:
    return b"\x1e" + json.dumps({"event": kind, "seq": 0, "t": 0.0, "rank": 0, **values}).encode() + b"\n"


def say(root: Path, said: bytes) -> None:
    """Have the behaviour says_a_file say this."""
    (root / "suites" / "workloads" / "experiments" / "said").write_bytes(said)


def samples(run: RunDirectory, trial: dict[str, Any]) -> list[dict[str, str]]:
    return list(csv.DictReader((run.trials / trial["trial_id"] / "samples.csv").open()))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """One run of workloads that break the order of events, and of one that says every wrong event."""
    root = tmp_path_factory.mktemp("run")
    make_checkout(root, "loses_a_sample", "doubles_every_event", "goes_on_after_its_end", "says_a_file")
    sample = {"phase": "measure", "index": 0, "steps": 1, "images": 1, "seconds": 0.5}
    failed = {"kind": "error", "type": "E", "text": ""}
    whole: dict[str, dict[str, Any]] = {"environment": {}, "sample": sample, "failed": failed}
    other_rank = event("finished", rank=1)
    say(root, b"".join(event(kind, **{**whole[kind], **change}) for kind, change in WRONG_EVENTS) + other_rank)
    return run_suite(session(root))


@pytest.mark.long
def test_events_of_wrong_types_are_counted_and_logged_and_the_trial_goes_on(run: RunDirectory) -> None:
    trial = trials(run)["says_a_file"]
    assert (trial["status"], trial["events_garbled"], trial["events_missing"]) == ("ok", len(WRONG_EVENTS) + 1, 0)
    assert log_of(run, trial).count(b'"seq": 0') == len(WRONG_EVENTS) + 1
    assert len(samples(run, trial)) == 3


def test_a_trial_whose_samples_have_a_hole_is_not_ok(run: RunDirectory) -> None:
    trial = trials(run)["loses_a_sample"]
    why = "1 of its events are missing or break the rules, so samples may be; see its log"
    assert (trial["status"], trial["reason"]) == ("failed", why)
    assert [row["index"] for row in samples(run, trial)] == ["0", "1"]


def test_an_event_that_comes_twice_counts_once(run: RunDirectory) -> None:
    trial = trials(run)["doubles_every_event"]
    assert (trial["status"], trial["events_garbled"]) == ("ok", 7)
    assert [row["index"] for row in samples(run, trial)] == ["0", "1", "2"]
    assert len(trial["phases"]) == 1


def test_nothing_counts_after_the_end(run: RunDirectory) -> None:
    trial = trials(run)["goes_on_after_its_end"]
    # Three of its own, and the facts about its process, which run.py sends.
    assert (trial["status"], trial["events_garbled"]) == ("ok", 4)
    assert (run.trials / trial["trial_id"] / "metrics.csv").read_text() == "name,value,unit\nanswer,42,1\n"


def test_a_report_reads_what_all_of_them_left(run: RunDirectory, tmp_path: Path) -> None:
    checkout = session(run.path.parent.parent).checkout
    assert make_report([run], checkout.published, checkout.templates, tmp_path / "report").exists()


@pytest.fixture
def received(run: RunDirectory, tmp_path: Path) -> tuple[RunDirectory, Path]:
    """A copy of that run, and the folder of a trial in it that ended well."""
    copy = RunDirectory(Path(shutil.copytree(run.path, tmp_path / "received")))
    return copy, copy.trials / trials(copy)["says_a_file"]["trial_id"]


@pytest.mark.parametrize("table", ["samples", "metrics", "telemetry"])
def test_a_table_that_is_gone_or_not_what_the_trial_wrote_is_refused(
    received: tuple[RunDirectory, Path], table: str
) -> None:
    run, trial = received
    file = trial / f"{table}.csv"
    remedy = "since its trial wrote it: restore it, or remove the trial's folder"
    file.write_bytes(file.read_bytes() + file.read_bytes().splitlines(keepends=True)[-1])
    with pytest.raises(UserError, match=f"^{file}: was changed {remedy}$"):
        read_runs([run], WORDS)
    file.unlink()
    with pytest.raises(UserError, match=f"^{file}: is missing {remedy}$"):
        read_runs([run], WORDS)
    shutil.rmtree(trial)
    assert trial.name not in read_runs([run], WORDS).trials["trial_id"].tolist()


@pytest.mark.long
def test_a_trial_that_never_comes_to_a_finding_is_left_alone_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "MOST_ATTEMPTS", 2)
    make_checkout(tmp_path, "leaves")
    run = run_suite(session(tmp_path))
    for _ in range(2):
        assert "left alone" not in capsys.readouterr().out
        resume(session(tmp_path))
    assert [trial.attempt for _, trial in run.finished()] == [1, 2]
    assert "host.r1: left alone: no finding in 2 attempts; see their logs" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        ("phases_without_end", "phase_begin"),
        ("metrics_without_end", "metric"),
        ("samples_without_end", "sample"),
    ],
)
def test_events_without_end_end_the_trial(
    tmp_path: Path, behaviour: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MOST_EVENTS, kind, 300)
    make_checkout(tmp_path, behaviour)
    others = set(psutil.Process().children())
    run = run_suite(session(tmp_path))
    trial = trials(run)[behaviour]
    why = f"more than 300 {kind} events, the most that are taken from a trial"
    assert (trial["status"], trial["reason"]) == ("failed", why)
    assert set(psutil.Process().children()) <= others


def test_a_log_without_end_is_kept_from_its_begin_and_to_its_end(tmp_path: Path) -> None:
    path, count = tmp_path / "log.txt.gz", 0
    with trial_files.Log(path) as log:
        for number in range(80):
            piece = b"%07d\n" % number * (1 << 17)
            log.write(piece)
            count += len(piece)
    text = gzip.decompress(path.read_bytes())
    begin, end = text.split(b"\n[tsuishi: ")
    left_out, _, end = end.partition(b" bytes are left out here]\n")
    assert (len(begin), len(end)) == (trial_files.LOG_BEGIN_BYTES, trial_files.LOG_END_BYTES)
    assert int(left_out) == count - len(begin) - len(end)
    assert begin.startswith(b"0000000\n")
    assert end == b"0000079\n" * (1 << 17)


@given(st.lists(st.integers(0, 9), max_size=20))
def test_a_log_that_fits_is_kept_whole(tmp_path_factory: pytest.TempPathFactory, sizes: list[int]) -> None:
    path, pieces = tmp_path_factory.mktemp("log") / "log.txt.gz", [bytes([65 + size]) * size for size in sizes]
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(trial_files, "LOG_BEGIN_BYTES", 10)
        changed.setattr(trial_files, "LOG_END_BYTES", 200)
        with trial_files.Log(path) as log:
            for piece in pieces:
                log.write(piece)
    assert gzip.decompress(path.read_bytes()) == b"".join(pieces)


KINDS = st.sampled_from(
    ["environment", "phase_begin", "phase_end", "sample", "metric", "possible", "finished", "failed", "other"]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just("measure"),
    lambda one: st.lists(one, max_size=2) | st.dictionaries(st.text(max_size=9), one, max_size=2),
    max_leaves=5,
)
FIELDS = st.sampled_from(["deep", *sorted({name for kind in Event.__subclasses__() for name in kind.model_fields})])
# Events as they should be, and with a value or two that may be anything.
SAID = st.one_of(
    st.binary(max_size=60),
    st.just(event("phase_begin", phase="measure")),
    st.just(event("sample", seq=1, phase="measure", index=0, steps=1, images=1, seconds=0.5)),
    st.builds(lambda kind, seq, values: event(kind, **{"seq": seq, **values}), KINDS, st.integers(0, 5),
              st.dictionaries(FIELDS, ANYTHING, max_size=4)),
)  # fmt: skip


@pytest.fixture(scope="module")
def at_work(tmp_path_factory: pytest.TempPathFactory) -> tuple[Session, dict[str, Ready], Sequence[PlannedTrial]]:
    """A session with one trial to run, of what says a file."""
    root = tmp_path_factory.mktemp("fuzz")
    make_checkout(root, "says_a_file", profile="settings = {}")
    work = session(root)
    ready = work.build(plan_builds_only(work).environments)
    return work, ready, plan_trials(measurable(work, [one.environment for one in ready.values()], {}), 0)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(said=st.lists(SAID, max_size=12).map(b"".join))
def test_whatever_is_said_the_trial_ends_and_is_read(
    at_work: tuple[Session, dict[str, Ready], Sequence[PlannedTrial]],
    said: bytes,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    work, ready, planned = at_work
    say(work.checkout.root, said)
    run = RunDirectory.create(tmp_path_factory.mktemp("fuzzed") / "run", run_record("run"))
    Runner(work, run, ready, Nobody()).run(planned, [planned])
    found = read_runs([run], WORDS)
    assert found.trials["status"].isin(["ok", "failed", "out_of_memory", "unsupported", "skipped"]).tolist() == [True]
