"""The kit for a first GPU: its order, its time, what a cut-off leaves, and a Python in which every step fails."""

import itertools
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import parts
from benchmarks.gpu.findings import Finding, judged
from benchmarks.gpu.journal import Journal
from benchmarks.gpu.kit import Kit
from benchmarks.gpu.parts import Part
from tsuishi.base.checkout import Checkout
from tsuishi.machine.gpus import Nvml

LASTING = {"log.txt", "results.jsonl", "summary.md"}


def kit(folder: Path, minutes: float = 1.0) -> Kit:
    return Kit(sys.executable, "cpu", Journal(folder / "kit"), minutes)


def good(made: Kit) -> Iterator[Finding]:
    yield judged("a thing", True, "1, expected 1")


def outcomes(made: Kit) -> list[tuple[int, str, str]]:
    return [(step, finding.what, finding.outcome) for step, finding in made.journal.findings]


def test_a_part_that_does_not_fit_is_not_here_and_the_last_part_keeps_its_time(tmp_path: Path) -> None:
    made = kit(tmp_path, minutes=1.0)
    parts.done(made, [Part(2, "short", 10.0, good), Part(3, "long", 35.0, good)], Part(9, "last", 30.0, good))
    assert outcomes(made) == [(2, "a thing", "pass"), (3, "long", "not here"), (9, "a thing", "pass")]
    (_, long) = made.journal.findings[1]
    assert long.words.startswith("no time left: it takes some 35 s, and ")


def test_only_the_chosen_steps_are_done(capsys: pytest.CaptureFixture[str]) -> None:
    chosen, last = parts.of_steps([1, 9])
    assert {part.step for part in chosen} == {1}
    assert last == parts.WHOLE
    assert parts.of_steps([7])[1] is None
    assert parts.of_steps(()) == ([*parts.PARTS], parts.WHOLE)
    with pytest.raises(SystemExit):
        command.main(["--steps", "1,10"])
    assert "there are steps 1 to 9; given: 10" in capsys.readouterr().err


def test_a_part_that_takes_too_long_leaves_the_last_part_its_time(tmp_path: Path) -> None:
    def endless(made: Kit) -> Iterator[Finding]:
        with made.until_the_end():
            time.sleep(60)
        yield judged("never", True, "")

    made = kit(tmp_path, minutes=0.15)
    parts.done(made, [Part(2, "endless", 1.0, endless)], Part(9, "last", 4.0, good))
    assert outcomes(made) == [(2, "endless, the rest", "not here"), (9, "a thing", "pass")]


def test_the_last_part_may_take_all_the_time_that_is_left(tmp_path: Path) -> None:
    left: list[float] = []

    def last(made: Kit) -> Iterator[Finding]:
        left.append(made.part_left_s)
        yield judged("a thing", True, "1, expected 1")

    parts.done(kit(tmp_path, minutes=10.0), [Part(2, "first", 1.0, good)], Part(9, "last", 1.0, last))
    assert left[0] > 590


def test_an_error_in_a_part_is_a_fail_and_the_next_part_is_done(tmp_path: Path) -> None:
    def wrong(made: Kit) -> Iterator[Finding]:
        yield judged("a thing", True, "1, expected 1")
        raise ValueError("no such column")

    made = kit(tmp_path)
    parts.done(made, [Part(2, "wrong", 1.0, wrong), Part(3, "next", 1.0, good)], None)
    assert outcomes(made) == [(2, "a thing", "pass"), (2, "wrong", "FAIL"), (3, "a thing", "pass")]
    assert made.journal.findings[1][1].words == "ValueError: no such column; expected no error"
    assert "Traceback" in (tmp_path / "kit" / "log.txt").read_text(encoding="utf-8")


def test_a_part_that_takes_too_long_is_ended_and_the_rest_is_not_here(tmp_path: Path) -> None:
    def endless(made: Kit) -> Iterator[Finding]:
        yield judged("a thing", True, "1, expected 1")
        with made.until_the_end():
            time.sleep(60)

    made = kit(tmp_path, minutes=0.05)
    parts.done(made, [Part(2, "endless", 1.0, endless), Part(3, "next", 1.0, good)], None)
    expected = [(2, "a thing", "pass"), (2, "endless, the rest", "not here"), (3, "next", "not here")]
    assert outcomes(made) == expected


def test_the_end_of_the_kits_time_leaves_an_alarm_of_others_as_it_was(tmp_path: Path) -> None:
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    alarm = signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with kit(tmp_path).until_the_end():
            pass
        time.sleep(1.0)
        assert rung == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *alarm)


def test_a_dry_kit_leaves_out_what_an_earlier_part_does_with_other_arguments(tmp_path: Path) -> None:
    made = kit(tmp_path)
    parts.done(made, [Part(2, "small", 1.0, good), Part(3, "large", 1.0, good, is_dry=False)], None)
    assert outcomes(made) == [(2, "a thing", "pass")]


def test_every_step_has_a_part_also_with_dry_and_the_first_is_the_machine() -> None:
    assert {part.step for part in (*parts.PARTS, parts.WHOLE) if part.is_dry} == set(range(1, 10))
    assert parts.PARTS[0].step == 1
    ends = itertools.accumulate(part.expected_s for part in parts.PARTS)
    first = [part.step for part, end in zip(parts.PARTS, ends, strict=True) if end < 600 - parts.WHOLE.expected_s]
    assert {*first} == {1, 2, 3, 4, 5, 7, 8}


WRITER = """
import os, sys
from pathlib import Path
from benchmarks.gpu.findings import judged
from benchmarks.gpu.journal import Journal
journal = Journal(Path(sys.argv[1]))
run = journal.work / "results" / "a-run"
run.mkdir(parents=True)
(run / "run.json").write_text("{}")
(run / ".lock").write_text("held")
journal.add(1, judged("a thing", True, "1, expected | 1"))
journal.pack([run])
journal.add(2, judged("another", False, "1, expected 2"))
os.kill(os.getpid(), 9)
"""


def test_a_kit_that_is_killed_leaves_every_line_that_it_had_and_the_runs(tmp_path: Path) -> None:
    folder = tmp_path / "kit"
    arguments = [sys.executable, "-c", WRITER, str(folder)]
    ended = subprocess.run(arguments, cwd=Checkout().root, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    results = [json.loads(text) for text in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(each["step"], each["outcome"]) for each in results] == [(1, "pass"), (2, "FAIL")]
    summary = (folder / "summary.md").read_text(encoding="utf-8").splitlines()
    assert summary[2:] == ["| 1 | a thing | 1, expected / 1 | pass |", "| 2 | another | 1, expected 2 | FAIL |"]
    assert "[2] another: FAIL: 1, expected 2" in (folder / "log.txt").read_text(encoding="utf-8")
    with tarfile.open(folder / "runs.tar.gz") as archive:
        assert sorted(archive.getnames()) == ["a-run", "a-run/run.json"]


def test_where_there_is_no_gpu_the_kit_says_so_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert command.main(["--folder", str(tmp_path / "kit")]) == 1
    assert f"error: no GPU here: {Nvml().why_not}; --dry lets the CPU stand for it" in capsys.readouterr().err
    assert not (tmp_path / "kit").exists()


def test_a_folder_that_is_there_is_not_written_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--dry", "--folder", str(tmp_path)]) == 1
    assert f"error: {tmp_path} exists; give another --folder" in capsys.readouterr().err


@pytest.fixture(scope="module")
def without_torch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a dry kit with an interpreter that has no framework: the fault is planted in every step."""
    folder = tmp_path_factory.mktemp("without") / "kit"
    arguments = ["--dry", "--minutes", "30", "--folder", str(folder), "--host-python", sys.executable]
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", *arguments],
        cwd=Checkout().root,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 3, ended.stdout + ended.stderr
    return folder


def test_without_pytorch_every_step_fails_and_says_why(without_torch: Path) -> None:
    results = [json.loads(text) for text in (without_torch / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    failed = {each["step"] for each in results if each["outcome"] == "FAIL"}
    assert failed == {1, 2, 3, 5, 6, 7, 8, 9}
    # It has no bandwidth to be held to.
    assert {each["outcome"] for each in results if each["step"] == 4} == {"not here"}
    assert {name.name for name in without_torch.iterdir()} >= LASTING
    assert not (without_torch / "work").exists()
