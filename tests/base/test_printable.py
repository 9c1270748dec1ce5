"""What others wrote, on a terminal: it is seen, and does nothing."""

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tests.run.test_progress import OLD, lines, planned, screen
from tests.synthetic_run import TF, SyntheticRun, add_record, conv2d_case
from tsuishi.base import printable
from tsuishi.base.checkout import Checkout
from tsuishi.base.screen import Screen
from tsuishi.run.progress import running

# Sets the title, clears the screen (twice), turns text around, makes a link, is markup, and forges lines of ours.
EVIL = (
    "\x1b]0;owned\x07 \x1b[2J \x9b2J \u202eevil\u202c \x1b]8;;http://x\x1b\\a\x1b]8;;\x1b\\"
    " [link=http://x]y[/link] [red]z[/] \\[b] :smile: \r over\nreport: /forged\x0berror: forged\u2028took 0 s"
)
SEEN = (
    "⟨U+001B⟩]0;owned⟨U+0007⟩ ⟨U+001B⟩[2J ⟨U+009B⟩2J ⟨U+202E⟩evil⟨U+202C⟩ "
    "⟨U+001B⟩]8;;http://x⟨U+001B⟩\\a⟨U+001B⟩]8;;⟨U+001B⟩\\"
    " [link=http://x]y[/link] [red]z[/] \\[b] :smile: ⟨U+000D⟩ over⟨U+000A⟩report: /forged⟨U+000B⟩error: forged"
    "⟨U+2028⟩took 0 s"
)
# What a file name may hold of it.
EVIL_NAME = "20260101-000000-\x1b]0;owned\x07\x1b[2J\x9b2J\u202e\nreport: forged [red]z[" + os.fsdecode(b"\x9b\xff")
# What may stand in output of rich's own: colours, the cursor, the line of progress erased.
_OF_RICH = re.compile(r"\x1b\[[?\d;]*[mhlAKHG]")


def assert_harmless(output: str) -> None:
    rest = _OF_RICH.sub("", output).replace("\r\n", "\n").replace("\r", "")
    assert printable.visible(rest) == rest
    assert not [text for text in rest.split("\n") if text.lstrip().startswith(("report: forged", "report: /forged"))]


def test_it_is_seen_on_one_line() -> None:
    assert printable.line(EVIL) == SEEN


@given(st.text(st.characters() | st.sampled_from("\n\r\x1b\x9b[]/\\:\u202e")))
def test_any_text_is_one_line_and_the_same_again(text: str) -> None:
    shown = printable.line(text)
    assert len(shown.splitlines()) <= 1
    assert printable.line(shown) == shown
    assert not re.search("[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f]", shown)


@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]) | st.sampled_from("[]/\\:=")))
def test_what_is_fit_to_print_is_printed_as_it_is_and_is_no_markup(text: str) -> None:
    out = io.StringIO()
    Screen(Console(file=out, width=10_000, soft_wrap=True)).say(text)
    assert out.getvalue() == f"{text}\n"


@pytest.mark.parametrize("terminal", [False, True])
def test_no_place_of_the_screen_lets_it_through(*, terminal: bool) -> None:
    on, out = screen(terminal=terminal, width=4_000)
    # No plan has such a name: it is put there behind the model's back.
    trials = [planned("w").model_copy(update={"trial_id": f"{EVIL}.{OLD}.r1"}) for _ in range(3)]
    on.say(EVIL)
    on.table(EVIL, (EVIL, "n"), [(EVIL, 1)])
    with on.working(EVIL, [EVIL]) as doing:
        doing[EVIL].begins()
        doing[EVIL].say(EVIL)
        doing[EVIL].ends()
    with on.fetching(EVIL) as one:
        one.downloaded(2_000_000)
    with on.moving(EVIL, 2) as progress:
        progress(1)
    with running(on, trials, 3) as run:
        run.waits(EVIL)
        for status in ("failed", "unsupported", EVIL):
            run.trial_begins(trials[0], 1)
            run.phase(EVIL)
            run.trial_ends(trials[0], status, EVIL, 1.0)
    assert_harmless(out.getvalue())
    shown = lines(out)
    assert shown[0] == SEEN
    assert shown[1] == SEEN
    assert [text for text in shown if text.startswith("[1/3]")]


def test_warnings_logs_and_tracebacks_of_a_task_are_visible(tmp_path: Path) -> None:
    (tmp_path / "invoke.yaml").write_text("tasks:\n  executor_class: tsuishi.commands.chain.ChainExecutor\n")
    (tmp_path / "tasks.py").write_text(
        "import logging, warnings\nfrom tsuishi.commands.command_line import collected, task\n\n"
        "@task\ndef build(chain):\n"
        f"    warnings.warn({EVIL!r})\n    logging.warning({EVIL!r})\n    raise ValueError({EVIL!r})\n\n"
        "namespace = collected(globals())\n"
    )
    command, environ = [sys.executable, "-m", "invoke", "build"], {**os.environ, "PYTHONPATH": str(Checkout().root)}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, check=False)
    told = done.stderr.decode()
    assert told.count("⟨U+001B⟩]0;owned") == 3
    assert printable.visible(told) == told


def on_a_terminal(folder: Path, *arguments: str, typed: bytes = b"") -> str:
    """All that the command prints, on both streams, where both are a terminal on which somebody typed."""
    ours, its = pty.openpty()
    environ = {key: value for key, value in os.environ.items() if not key.startswith("INVOKE_")} | {
        "INVOKE_TSUISHI_RESULTS": str(folder / "results"), "INVOKE_TSUISHI_REPORTS": str(folder / "reports"),
        "INVOKE_TSUISHI_CACHE": str(folder / "cache"), "TERM": "xterm-256color", "COLUMNS": "400",
    }  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "invoke", *arguments],
        cwd=Checkout().root,
        env=environ,
        stdin=its,
        stdout=its,
        stderr=its,
    ):
        os.close(its)
        os.write(ours, typed)
        printed = b""
        try:
            while piece := os.read(ours, 1 << 16):
                printed += piece
        except OSError:  # the other side is closed
            pass
    os.close(ours)
    return printed.decode()


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results with one run, in which everything that is printed has a name nobody wants, its folder too."""
    folder = tmp_path_factory.mktemp("evil")
    run = SyntheticRun(folder / "results" / "run", profile=EVIL, engine=EVIL)
    run.environments[TF] = add_record(run.directory, "environment", {"name": EVIL, "title": EVIL})
    run.add(conv2d_case(), TF, status="failed", reason=EVIL)
    run.finish().path.rename(folder / "results" / EVIL_NAME)
    return folder


def test_a_list_of_runs_that_others_made_does_nothing_to_a_terminal(evil: Path) -> None:
    printed = on_a_terminal(evil, "list")
    assert_harmless(printed)
    assert "20260101-000000-⟨U+001B⟩]0;owned" in printed


def test_a_report_of_a_run_that_others_made_does_nothing_to_a_terminal(evil: Path) -> None:
    printed = on_a_terminal(evil, "report")
    assert_harmless(printed)
    assert [text for text in printed.splitlines() if text.startswith(f"report: {evil}/reports/20260101")]


def test_an_error_that_names_a_run_is_one_line(evil: Path) -> None:
    printed = on_a_terminal(evil, "report", "--run", EVIL)
    assert_harmless(printed)
    (told,) = printed.splitlines()
    assert told.startswith("error: unknown run '")
    assert "known: 20260101-000000-⟨U+001B⟩]0;owned" in told


def test_an_error_about_its_files_is_one_line(evil: Path) -> None:
    (evil / "results" / f"z{EVIL_NAME}" / "trials").mkdir(parents=True)
    (evil / "results" / f"z{EVIL_NAME}" / "run.json").write_text("[]")
    printed = on_a_terminal(evil, "report")
    assert_harmless(printed)
    (told,) = printed.splitlines()
    assert told.startswith(f"error: {evil}/results/z20260101-000000-⟨U+001B⟩]0;owned")
