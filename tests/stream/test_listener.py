"""Hearing real child processes out: deadlines, Ctrl-C, crashes; whatever happens, nothing of them is left running."""

import contextlib
import json
import os
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuishi.base.errors import EngineLost
from tsuishi.base.processes import Ended
from tsuishi.engines.subprocesses import ChildProcess
from tsuishi.results.facts import Phase
from tsuishi.stream.events import Event, PhaseBegin, PhaseEnd
from tsuishi.stream.listener import Timeout, Transcript, listen, why_it_ended

PRELUDE = """
import json, os, signal, subprocess, sys, time
start, seq = time.monotonic(), 0
def emit(event, **values):
    global seq
    body = {"event": event, "seq": seq, "t": time.monotonic() - start, "rank": 0, **values}
    os.write(1, b"\\x1e" + json.dumps(body).encode() + b"\\n")
    seq += 1
"""


@dataclass
class Heard:
    """One child process and all that was heard of it."""

    process: ChildProcess
    transcript: Transcript = field(default_factory=Transcript)
    events: list[Event] = field(default_factory=list)
    log: bytearray = field(default_factory=bytearray)

    def out(self, timeout_s: float = 20.0) -> Ended:
        started = time.monotonic()
        return listen(self.process, self.transcript, started, timeout_s, self.events.append, self.log.extend)

    def pid_in_log(self) -> int:
        """A process id the child printed on a line of its own."""
        return int(self.log.split()[-1])


def child(code: str) -> Heard:
    return Heard(ChildProcess([sys.executable, "-c", PRELUDE + textwrap.dedent(code)], dict(os.environ)))


def alive(pid: int) -> bool:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def gone_soon(pid: int, within_s: float = 3.0) -> bool:
    end = time.monotonic() + within_s
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not alive(pid)


# Starts a grandchild, says its pid, and goes on for long. {session}: whether the grandchild leaves the group.
FAMILY = """
grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session={session})
print(grandchild.pid, flush=True)
emit("phase_begin", phase="measure")
time.sleep({sleep})
"""


def test_events_log_and_exit_code_of_a_good_child_are_heard() -> None:
    heard = child("""
        print("hello", flush=True)
        emit("environment", framework="torch", versions={"torch": "1"})
        emit("environment", versions={"numpy": "2"}, packages={"a": "1"})
        emit("metric", name="loss", value=0.5, unit="1")
        sys.stderr.write("a warning\\n")
        emit("finished")
        """)
    assert heard.out() == Ended(0)
    assert [event.event for event in heard.events] == ["environment", "environment", "metric", "finished"]
    assert bytes(heard.log) == b"hello\na warning\n"
    transcript = heard.transcript
    assert transcript.finished
    assert transcript.failure is None
    assert transcript.facts().content() == {
        "framework": "torch",
        "versions": {"torch": "1", "numpy": "2"},
        "packages": {"a": "1"},
    }
    assert [(one.name, one.value, one.unit) for one in transcript.metrics] == [("loss", 0.5, "1")]
    assert (transcript.garbled, transcript.missing) == (0, 0)
    assert transcript.startup_s is not None
    assert transcript.startup_s > 0


def test_a_failure_is_kept_with_its_words_and_a_half_event_at_the_end_is_counted() -> None:
    heard = child("""
        emit("failed", kind="error", type="ValueError", text="no such layout")
        os.write(1, b'\\x1e{"event": "fini')
        sys.exit(1)
        """)
    assert heard.out() == Ended(1)
    failure = heard.transcript.failure
    assert failure is not None
    assert (failure.kind, failure.type, failure.text) == ("error", "ValueError", "no such layout")
    assert not heard.transcript.finished
    assert heard.transcript.garbled == 1
    assert bytes(heard.log) == b'{"event": "fini'


@pytest.mark.parametrize("session", [False, True])
def test_a_timeout_stops_the_whole_process_tree(session: bool) -> None:
    heard = child(FAMILY.format(session=session, sleep=60))
    with pytest.raises(Timeout):
        heard.out(timeout_s=1.0)
    assert gone_soon(heard.process.pids()[0])
    assert gone_soon(heard.pid_in_log())
    assert heard.transcript.phases()[0].end_s is None


def test_a_timeout_counts_from_the_trials_start_not_from_when_listening_began() -> None:
    heard = child("time.sleep(60)")
    with pytest.raises(Timeout):
        listen(heard.process, heard.transcript, time.monotonic() - 100, 99, heard.events.append, heard.log.extend)
    assert gone_soon(heard.process.pids()[0])


def test_a_chatty_child_is_stopped_at_its_deadline_too() -> None:
    heard = child("while True: os.write(1, b'x' * 65536)")
    seen = 0

    def count(piece: bytes) -> None:
        nonlocal seen
        seen += len(piece)

    with pytest.raises(Timeout):
        listen(heard.process, heard.transcript, time.monotonic(), 0.7, heard.events.append, count)
    assert seen > 1 << 20
    assert gone_soon(heard.process.pids()[0])


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_what_is_raised_while_listening_stops_the_tree_and_goes_on(error: BaseException) -> None:
    heard = child(FAMILY.format(session=False, sleep=60))

    def hear(event: Event) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        listen(heard.process, heard.transcript, time.monotonic(), 20, hear, heard.log.extend)
    assert caught.value is error
    assert gone_soon(heard.process.pids()[0])
    assert gone_soon(heard.pid_in_log())


def test_a_child_that_leaves_something_running_in_the_background_has_ended_nevertheless() -> None:
    """In 20 s: what it leaves sleeps for 60 s."""
    heard = child(FAMILY.format(session=False, sleep=0) + 'emit("finished")')
    assert heard.out(timeout_s=20) == Ended(0)
    assert heard.transcript.finished
    assert gone_soon(heard.pid_in_log())


def test_a_daemon_ends_with_the_trial_that_started_it() -> None:
    """It has left group and parent, and holds the output open."""
    heard = child(FAMILY.format(session=True, sleep=0) + 'emit("finished")')
    assert heard.out(timeout_s=20) == Ended(0)
    assert not alive(heard.pid_in_log())


def test_everything_said_before_the_end_is_heard() -> None:
    heard = child("os.write(1, b'y' * 3_000_000)")
    assert heard.out() == Ended(0)
    assert len(heard.log) == 3_000_000


@pytest.mark.parametrize(
    ("code", "ended", "words"),
    [
        ("", Ended(0), "exit code 0"),
        ("sys.exit(3)", Ended(3), "exit code 3"),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            Ended(-9),
            "ended by SIGKILL (most likely by the kernel, for want of memory: see `dmesg`)",
        ),
        ("os.abort()", Ended(-6), "ended by SIGABRT (a failed check in native code: see the log)"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", Ended(-11), "ended by SIGSEGV (a crash in native code)"),
        ("sys.exit(137)", Ended(137), "ended by SIGKILL (most likely by the kernel, for want of memory: see `dmesg`)"),
        ("sys.exit(143)", Ended(143), "ended by SIGTERM"),
        ("sys.exit(128)", Ended(128), "exit code 128"),
        ("sys.exit(255)", Ended(255), "exit code 255"),
    ],
)
def test_how_a_child_ended_is_told_in_words(code: str, ended: Ended, words: str) -> None:
    assert child(code).out() == ended
    assert why_it_ended(ended) == words


def test_phases_are_on_the_hosts_clock() -> None:
    heard = child("""
        time.sleep(0.3)
        emit("phase_begin", phase="measure")
        time.sleep(0.4)
        emit("phase_end", phase="measure")
        emit("finished")
        """)
    events: dict[str, Event] = {}
    arrivals: dict[str, float] = {}
    started = time.monotonic() - 100

    def hear(event: Event) -> None:
        events[event.event] = event
        arrivals[event.event] = time.monotonic() - started

    listen(heard.process, heard.transcript, started, 120, hear, heard.log.extend)
    (phase,) = heard.transcript.phases()
    assert 100 < phase.begin_s <= arrivals["phase_begin"]
    assert phase.end_s is not None
    assert phase.end_s <= arrivals["phase_end"]
    assert phase.end_s - phase.begin_s == pytest.approx(events["phase_end"].t - events["phase_begin"].t, abs=1e-5)


def begin(t: float, phase: str) -> PhaseBegin:
    return PhaseBegin(event="phase_begin", seq=0, t=t, rank=0, phase=phase)


def end(t: float, phase: str) -> PhaseEnd:
    return PhaseEnd(event="phase_end", seq=0, t=t, rank=0, phase=phase)


@given(st.floats(0, 100), st.lists(st.floats(0, 5), min_size=2, max_size=10))
def test_the_event_least_delayed_aligns_the_clocks(offset: float, delays: list[float]) -> None:
    """Events arrive some time after they were made; no phase is put later than its event arrived."""
    transcript = Transcript()
    for number, delay in enumerate(delays):
        transcript.hear(begin(float(number), f"p{number}"), number + offset + delay)
    for number, phase in enumerate(transcript.phases()):
        assert phase.begin_s == pytest.approx(number + offset + min(delays), abs=1e-5)


def test_phases_may_repeat() -> None:
    transcript = Transcript()
    for t in (1.0, 3.0):
        transcript.hear(begin(t, "epoch"), t)
        transcript.hear(end(t + 1, "epoch"), t + 1)
    transcript.hear(begin(5.0, "epoch"), 5.0)
    assert transcript.phases() == [
        Phase(name="epoch", begin_s=1.0, end_s=2.0),
        Phase(name="epoch", begin_s=3.0, end_s=4.0),
        Phase(name="epoch", begin_s=5.0, end_s=None),
    ]


class LostEngine:
    """An engine that goes away after the first words."""

    stopped = False

    def output(self) -> Iterator[tuple[str, bytes]]:
        yield "stdout", b"first words\n"
        raise ConnectionResetError("its socket is gone")

    def stop(self) -> None:
        self.stopped = True

    def wait(self) -> Ended:
        raise AssertionError("there is nothing to wait for")


def test_an_engine_that_goes_away_is_lost_and_what_was_heard_is_kept() -> None:
    process, log = LostEngine(), bytearray()
    with pytest.raises(EngineLost, match="its socket is gone"):
        listen(process, Transcript(), time.monotonic(), 20, lambda event: None, log.extend)  # type: ignore[arg-type]
    assert bytes(log) == b"first words\n"
    assert process.stopped


def test_a_child_gets_no_input_and_starts_in_the_root() -> None:
    heard = child("print(json.dumps([os.getcwd(), sys.stdin.read(), os.getsid(0) == os.getpid()]))")
    heard.out()
    assert json.loads(heard.log) == ["/", "", True]
