"""What a person sees of a run: in a terminal a live line and what went wrong, elsewhere plain lines."""

import io
import os
import pty
import re
import subprocess
import sys
from typing import Any

import pytest
from rich.console import Console

from tests.synthetic_run import planned_trial
from tests.words import case
from tsuishi.base.screen import Momentary, Screen
from tsuishi.plan.trials import PlannedTrial
from tsuishi.run.progress import RunProgress, running
from tsuishi.specs.trial_id import TrialId

OLD = "torch1.1-cu90"
NO_FP16 = "Unsupported: precision 'amp_fp16': PyTorch 1.1.0 has none (1.6 and newer do)"
NO_GPUS = "strategy 'data_parallel' needs 2 GPUs: on a CPU it does nothing; 'distributed_data_parallel' would run"


def planned(name: str, *, environment: str = OLD, repetition: int = 1, batch_size: int = 1) -> PlannedTrial:
    of = case(suite="bench", protocol="steady", batch_size=batch_size)
    return planned_trial(of, environment, 30.0, repetition, trial_id=str(TrialId(name, environment, repetition)))


def screen(*, terminal: bool, width: int = 200) -> tuple[Screen, io.StringIO]:
    out = io.StringIO()
    look: dict[str, Any] = {"highlight": False, "soft_wrap": True, "_environ": {"TERM": "xterm"}}
    return Screen(Console(file=out, force_terminal=terminal, width=width, **look)), out


def lines(out: io.StringIO) -> list[str]:
    """What was printed, without what a terminal is told about cursor and colour."""
    return [re.sub(r"\x1b\[[?\d;]*[a-zA-Z]|\r", "", line).rstrip() for line in out.getvalue().splitlines()]


def ends(progress: RunProgress, trial: PlannedTrial, status: str, reason: str = "", duration_s: float = 1.5) -> None:
    progress.trial_begins(trial, 1)
    if status != "unsupported":
        progress.phase("measure")
    progress.trial_ends(trial, status, reason, duration_s)


def run_of_four(*, terminal: bool) -> list[str]:
    on, out = screen(terminal=terminal)
    trials = [planned(name) for name in ("good", "slow", "broken", "large")]
    with running(on, trials, 4) as progress:
        ends(progress, trials[0], "ok")
        ends(progress, trials[1], "timeout", "stopped after 60 s; allow more with --timeout")
        ends(progress, trials[2], "failed", "KeyError: 'a bug'")
        ends(progress, trials[3], "out_of_memory", "MemoryError: batch 2048 did not fit")
    return lines(out)


NOT_WELL = [
    "[2/4] slow.torch1.1-cu90.r1 timeout 1.5 s: stopped after 60 s; allow more with --timeout",
    "[3/4] broken.torch1.1-cu90.r1 failed 1.5 s: KeyError: 'a bug'",
    "[4/4] large.torch1.1-cu90.r1 out_of_memory 1.5 s: MemoryError: batch 2048 did not fit",
]


def test_where_nobody_watches_every_trial_that_ran_has_a_line() -> None:
    assert run_of_four(terminal=False) == ["[1/4] good.torch1.1-cu90.r1 ok 1.5 s", *NOT_WELL]


def test_a_terminal_keeps_the_lines_of_what_did_not_end_well_and_no_other() -> None:
    shown = run_of_four(terminal=True)
    assert [line for line in shown if " 1.5 s" in line] == NOT_WELL


@pytest.mark.parametrize("terminal", [False, True])
def test_unsupported_cases_are_a_line_for_each_environment_with_the_reasons_counted(*, terminal: bool) -> None:
    on, out = screen(terminal=terminal)
    reasons = [NO_FP16, NO_GPUS, NO_FP16]
    trials = [planned(f"c{number}", batch_size=number + 1) for number in range(3)]
    trials.append(planned("c0", repetition=2, batch_size=1))  # the same case once more
    other = planned("c1", environment="tf1.13-cpu")
    with running(on, [*trials, other], 5) as progress:
        for trial, reason in zip(trials, [*reasons, NO_FP16], strict=True):
            ends(progress, trial, "unsupported", reason, 0.0)
        ends(progress, other, "unsupported", "layout 'channels_first' on cpu: no kernels", 0.0)
    assert [line for line in lines(out) if "unsupported" in line] == [
        "unsupported: 1 case in tf1.13-cpu (layout 'channels_first' on cpu: 1)",
        "unsupported: 3 cases in torch1.1-cu90 (precision 'amp_fp16': 2, strategy 'data_parallel' needs 2 GPUs: 1)",
    ]
    assert not any("c0" in line or "c2" in line for line in lines(out) if not terminal)


def test_unsupported_cases_are_summed_up_when_the_run_is_interrupted() -> None:
    on, out = screen(terminal=False)
    trial = planned("c0")

    def interrupted() -> None:
        with running(on, [trial], 1) as progress:
            ends(progress, trial, "unsupported", NO_FP16, 0.0)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert lines(out) == ["unsupported: 1 case in torch1.1-cu90 (precision 'amp_fp16': 1)"]


def test_the_live_line_counts_down_to_the_report() -> None:
    on, _ = screen(terminal=False)
    trials = [planned("a"), planned("b")]
    with running(on, trials, 2, after_s=15.0) as progress:
        assert progress.left() == "report in 1 min 15 s"
        ends(progress, trials[0], "ok")
        assert progress.left() == "report in 45 s"
        ends(progress, trials[1], "unsupported", NO_FP16, 0.0)
        assert progress.left() == "report in 15 s"


def test_without_a_report_to_come_the_live_line_counts_down_to_the_end_of_the_trials() -> None:
    on, _ = screen(terminal=False)
    trial = planned("a")
    with running(on, [trial], 1) as progress:
        assert progress.left() == "30 s left"
        ends(progress, trial, "ok")
        assert progress.left() == "0 s left"


def test_trials_that_a_round_adds_are_counted() -> None:
    on, out = screen(terminal=False)
    first, second = planned("a"), planned("a", repetition=2)
    with running(on, [first], 1, after_s=15.0) as progress:
        ends(progress, first, "ok")
        progress.more([second])
        assert progress.left() == "report in 45 s"
        ends(progress, second, "ok")
    assert lines(out)[-1] == "[2/2] a.torch1.1-cu90.r2 ok 1.5 s"


def test_where_time_is_limited_the_live_line_says_what_is_left_of_it() -> None:
    on, _ = screen(terminal=False)
    with running(on, [planned("a")], 1, 15.0, lambda: 240.0) as progress:
        assert progress.left() == "report in 4 min 0 s at most"
    with running(on, [planned("a")], 1, 15.0, lambda: -3.0) as progress:
        assert progress.left() == "report in 0 s at most"
    with running(on, [planned("a")], 1, 0.0, lambda: 240.0) as progress:
        assert progress.left() == "4 min 0 s left at most", "no report follows"


def test_a_narrow_terminal_has_one_line_in_which_only_the_id_is_cut_short() -> None:
    on, out = screen(terminal=True, width=60)
    trial = planned("multi_gpu_scaling-steady-vgg_small-distributed_data_parallel-d4-b128")
    with running(on, [trial], 224, after_s=600.0) as progress:
        progress.trial_begins(trial, 2)
        progress.phase("measure")
    (live,) = {line for line in lines(out) if "measure" in line}
    assert len(live) <= 60
    assert re.fullmatch(r". \[224/224\] multi_gpu_\w+… measure · report in 10 min (30|29) s", live)


def test_where_nobody_watches_files_being_fetched_are_one_line_in_all() -> None:
    on, out = screen(terminal=False)
    with on.working("building", ["tiny", "other"]) as work:
        work["tiny"].begins()
        for file in ("a.whl", "b.whl"):
            work["tiny"].say(Momentary(f"fetching {file} from packages.example"))
            work["tiny"].downloaded(20_000_000)
        work["tiny"].say("installing 2 packages, without network")
        work["tiny"].ends()
        work["other"].begins()
        work["other"].ends()
    assert lines(out) == ["  tiny: installing 2 packages, without network", "  tiny: 40 MB fetched"]


def test_a_terminal_shows_the_file_being_fetched() -> None:
    on, out = screen(terminal=True)
    with on.working("building", ["tiny"]) as work:
        work["tiny"].begins()
        work["tiny"].say(Momentary("fetching a.whl from packages.example"))
    assert "fetching a.whl from packages.example" in out.getvalue()


def test_a_terminal_that_cannot_move_its_cursor_has_plain_lines() -> None:
    """A shell inside Emacs is one: a live line would never be drawn there."""
    reader, terminal = pty.openpty()
    building = "with Screen().working('building', ['tiny']) as work: work['tiny'].say('installing 2 packages')"
    command = [sys.executable, "-c", f"from tsuishi.base.screen import Screen\n{building}"]
    subprocess.run(command, stdout=terminal, env={**os.environ, "TERM": "dumb"}, check=True)
    os.close(terminal)
    assert os.read(reader, 1 << 16) == b"  tiny: installing 2 packages\r\n"
    os.close(reader)
