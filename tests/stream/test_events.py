"""The event stream: cut anyhow, it gives the same events and log; what is no event is counted, never guessed at."""

import json
import tracemalloc
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.counting import lines_run
from tests.wrong_events import WRONG_EVENTS
from tsuishi.base.errors import UserError
from tsuishi.stream.events import (
    MAX_EVENT_BYTES,
    MOST_EVENTS,
    EnvironmentReport,
    Event,
    EventParser,
    Failed,
    SampleEvent,
    parse_event,
)
from tsuishi.stream.listener import Transcript

SEPARATOR = b"\x1e"
SAMPLE = {"phase": "measure", "index": 0, "steps": 1, "images": 2, "seconds": 0.5}
METRIC = {"name": "loss", "value": 1.5, "unit": "1"}


def encoded(event: str, seq: int = 0, /, **values: Any) -> bytes:
    body = {"event": event, "seq": seq, "t": 1.5, "rank": 0, **values}
    return SEPARATOR + json.dumps(body, separators=(",", ":")).encode() + b"\n"


def parsed(chunks: list[bytes]) -> tuple[list[Event], bytes, EventParser]:
    """Events, log and the parser after all chunks and the end of the stream."""
    parser = EventParser()
    pieces = [piece for chunk in chunks for piece in parser.feed(chunk)] + list(parser.close())
    events = [piece for piece in pieces if isinstance(piece, Event)]
    log = b"".join(piece for piece in pieces if isinstance(piece, bytes))
    return events, log, parser


def counts(parser: EventParser) -> tuple[int, int, int]:
    return parser.received, parser.garbled, parser.missing


FRAGMENTS = st.one_of(
    st.integers(0, 9).map(lambda seq: encoded("finished", seq)),
    st.builds(lambda seq, text: encoded("metric", seq, name=text, value=1, unit="1"), st.integers(0, 9), st.text()),
    st.binary(max_size=40),
    st.sampled_from([SEPARATOR, b"\n", b"{", b"{}\n", b"plain log\n", b'\x1e{"event":"finished"']),
    st.just(5000).map(lambda size: b"a" * size),
    st.integers(4050, 4110).map(lambda size: SEPARATOR + b"x" * size + b"\n"),
    st.integers(3980, 4060).map(lambda size: encoded("failed", kind="error", type="E", text="x" * size)),
)


@given(st.lists(FRAGMENTS, max_size=12).map(b"".join), st.lists(st.integers(0, 20000), max_size=8))
@example(SEPARATOR + b"x" * 4097 + b"\n", [4097])
@example(encoded("finished"), [1])
def test_any_chunking_gives_the_same_events_log_and_counts(stream: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    whole = parsed([stream])
    for chunks in ([stream[a:b] for a, b in pairwise(places)], [stream[i : i + 1] for i in range(len(stream))]):
        cut = parsed(chunks)
        assert cut[:2] == whole[:2]
        assert counts(cut[2]) == counts(whole[2])


@given(st.lists(st.tuples(st.binary(max_size=30), st.booleans()), max_size=10))
def test_nothing_printed_around_events_is_lost(pieces: list[tuple[bytes, bool]]) -> None:
    """Log of any bytes but the separator comes out as it went in, and every event between it is found."""
    stream, log, seq = b"", b"", 0
    for text, with_event in pieces:
        plain = text.replace(SEPARATOR, b"")
        stream, log = stream + plain, log + plain
        if with_event:
            stream += encoded("metric", seq, **METRIC)
            seq += 1
    events, found, parser = parsed([stream])
    assert found == log
    assert [event.seq for event in events] == list(range(seq))
    assert counts(parser) == (seq, 0, 0)


@given(st.binary(max_size=200))
def test_bytes_are_never_lost_but_the_separators(stream: bytes) -> None:
    events, log, _ = parsed([stream])
    assert not events
    assert log == stream.replace(SEPARATOR, b"")


def test_an_event_carries_what_was_said() -> None:
    assert parse_event(encoded("sample", 7, **SAMPLE, more=[1])[1:-1]) == SampleEvent(
        event="sample", seq=7, t=1.5, rank=0, phase="measure", index=0, steps=1, images=2, seconds=0.5
    )


def test_an_environment_carries_all_facts_that_were_reported_and_no_others() -> None:
    facts = {
        "framework": None,
        "versions": {"torch": "1.1.0"},
        "devices": [{"kind": "gpu", "name": "RTX"}],
        "flags": {"threads": 2, "tf32": False},
        "libraries": ["a", 1, None],
    }
    found = parse_event(encoded("environment", 0, **facts)[1:-1])
    assert isinstance(found, EnvironmentReport)
    assert found.facts() == facts


GOOD = {"event": "metric", "seq": 0, "t": 0.0, "rank": 0, **METRIC}


@pytest.mark.parametrize(
    "change",
    [
        {"event": "metrics"},
        {"event": None},
        {"event": ["metric"]},
        {"seq": -1},
        {"seq": 1.0},
        {"seq": True},
        {"seq": "0"},
        {"seq": 2**63},
        {"t": "0"},
        {"t": 1e9},
        {"t": None},
        {"rank": None},
        {"rank": 0.5},
        {"value": "1.5"},
        {"value": None},
        {"value": False},
        {"value": 10**300},
        {"name": 3},
        {"unit": None},
        {"t": -0.1},
        {"rank": 1},
        {"name": ""},
        {"name": "x" * 201},
    ],
)
def test_a_field_of_the_wrong_type_or_size_makes_it_no_event(change: dict[str, Any]) -> None:
    assert parse_event(json.dumps(GOOD).encode()) is not None
    assert parse_event(json.dumps({**GOOD, **change}).encode()) is None


@pytest.mark.parametrize("field", sorted(GOOD))
def test_a_missing_field_makes_it_no_event(field: str) -> None:
    assert parse_event(json.dumps({key: value for key, value in GOOD.items() if key != field}).encode()) is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[]",
        b'"finished"',
        b"3",
        b"{",
        b"\xff\xfe",
        json.dumps(GOOD).encode("utf-16"),
        json.dumps(GOOD).encode() + b"{}",
        b"[" * 4000,
        json.dumps(GOOD).replace("1.5", "NaN").encode(),
        json.dumps(GOOD).replace("1.5", "-Infinity").encode(),
        json.dumps(GOOD).replace("1.5", "1e999").encode(),
    ],
)
def test_what_is_not_exactly_one_finite_json_text_is_no_event(raw: bytes) -> None:
    assert parse_event(raw) is None


def test_half_a_surrogate_pair_becomes_a_question_mark_since_no_file_takes_it() -> None:
    """A workload's error about an undecodable file name: os.fsdecode gives such text, and json.dumps passes it on."""
    raw = encoded(
        "failed", kind="error", type="OSError", text=b"no caf\xe9: caf\xc3\xa9".decode(errors="surrogateescape")
    )
    event = parse_event(raw[1:-1])
    assert isinstance(event, Failed)
    assert event.text == "no caf?: café"


@pytest.mark.parametrize(("event", "change"), WRONG_EVENTS, ids=str)
def test_an_event_with_a_value_that_nothing_after_it_takes_is_none(event: str, change: dict[str, Any]) -> None:
    failed = {"kind": "error", "type": "E", "text": ""}
    kinds: dict[str, dict[str, Any]] = {"environment": {}, "sample": SAMPLE, "failed": failed}
    good = kinds[event]
    assert parse_event(encoded(event, 0, **good)[1:-1]) is not None
    assert parse_event(encoded(event, 0, **{**good, **change})[1:-1]) is None


def test_gaps_are_counted_and_repeated_numbers_are_refused() -> None:
    stream = b"".join(encoded("metric", seq, **METRIC) for seq in (0, 1, 1, 4, 2, 5, 9))
    events, log, parser = parsed([stream])
    assert [event.seq for event in events] == [0, 1, 4, 5, 9]
    assert (parser.missing, parser.garbled) == (2 + 3, 2)
    assert log.count(b"metric") == 2


BEGIN, END = encoded("phase_begin", 0, phase="measure"), encoded("phase_end", 0, phase="measure")


def numbered(*events: bytes) -> bytes:
    """These events, numbered in their order."""
    return b"".join(event.replace(b'"seq":0', b'"seq":%d' % seq) for seq, event in enumerate(events))


def sampled(index: int, phase: str = "measure") -> bytes:
    return encoded("sample", 0, **{**SAMPLE, "index": index, "phase": phase})


@pytest.mark.parametrize(
    ("stream", "taken"),
    [
        pytest.param([END], [], id="an end without a begin"),
        pytest.param([BEGIN, BEGIN], [0], id="a begin in the same phase"),
        pytest.param([BEGIN, END, END], [0, 1], id="two ends"),
        pytest.param([sampled(0)], [], id="a sample of no phase"),
        pytest.param([BEGIN, sampled(0, "other")], [0], id="a sample of another phase"),
        pytest.param([BEGIN, sampled(1)], [0], id="a sample that is not the first"),
        pytest.param([BEGIN, sampled(0), sampled(0)], [0, 1], id="a doubled sample"),
        pytest.param([BEGIN, sampled(0), sampled(2)], [0, 1], id="a sample left out"),
        pytest.param([encoded("metric", **{**METRIC, "t": 2}), encoded("metric", **METRIC)], [0], id="back in time"),
        pytest.param([encoded("finished"), encoded("metric", **METRIC)], [0], id="after finished"),
        pytest.param([encoded("failed", kind="error", type="E", text=""), encoded("finished")], [0], id="after failed"),
    ],
)
def test_an_event_out_of_order_is_counted_and_goes_to_the_log(stream: list[bytes], taken: list[int]) -> None:
    events, log, parser = parsed([numbered(*stream)])
    assert [event.seq for event in events] == taken
    assert parser.garbled == 1
    assert log == numbered(*stream).split(SEPARATOR)[-1]


def test_an_event_that_was_refused_leaves_a_gap_before_the_next() -> None:
    _, _, parser = parsed([numbered(BEGIN, sampled(0), sampled(2), encoded("finished"))])
    assert (parser.missing, parser.garbled) == (1, 1)


def test_a_phase_may_come_again_and_its_samples_go_on_also_after_its_end() -> None:
    stream = numbered(BEGIN, END, sampled(0), BEGIN, sampled(1), END, sampled(2), encoded("finished"))
    events, log, parser = parsed([stream])
    assert (len(events), log, parser.missing) == (8, b"", 0)


@pytest.mark.parametrize("kind", MOST_EVENTS)
def test_too_many_events_of_a_kind_are_an_error_that_names_the_bound(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MOST_EVENTS, kind, 2)
    events = {
        "environment": [encoded("environment")] * 3,
        "phase_begin": [BEGIN, END, BEGIN, END, BEGIN],
        "sample": [BEGIN, sampled(0), sampled(1), sampled(2)],
        "metric": [encoded("metric", **METRIC)] * 3,
        "possible": [encoded("possible", index=0, reason="")] * 3,
    }
    assert not parsed([numbered(*events[kind][:-1])])[2].garbled
    with pytest.raises(UserError, match=f"^more than 2 {kind} events, the most that are taken from a trial$"):
        parsed([numbered(*events[kind])])


@pytest.mark.long
def test_the_work_of_a_phase_does_not_grow_with_the_phases_before_it() -> None:
    few, many = (lines_run(lambda count=count: hear_phases(count)) for count in (500, 2000))  # type: ignore[misc]
    assert many < 4.5 * few


def hear_phases(count: int) -> None:
    transcript = Transcript()
    for event in EventParser().feed(numbered(*[BEGIN, END] * count)):
        assert isinstance(event, Event)
        transcript.hear(event, 0.0)
    assert len(transcript.phases()) == count


def test_an_event_cut_short_by_the_end_or_by_another_is_garbled_and_goes_to_the_log() -> None:
    whole = encoded("finished")
    events, log, parser = parsed([whole[:20] + whole + whole[:10]])
    assert len(events) == 1
    assert log == whole[1:20] + whole[1:10]
    assert parser.garbled == 2


def test_an_event_torn_by_a_line_of_log_is_garbled_and_the_next_one_is_heard() -> None:
    whole = encoded("metric", 0, **METRIC)
    stream = whole[:30] + b"WARNING from another thread\n" + whole[30:] + encoded("metric", 1, **METRIC)
    events, log, parser = parsed([stream])
    assert [event.seq for event in events] == [1]
    assert log == stream[1 : stream.rindex(SEPARATOR)]
    assert counts(parser) == (1, 1, 1)


@pytest.mark.parametrize(("size", "heard"), [(MAX_EVENT_BYTES, 1), (MAX_EVENT_BYTES + 1, 0)])
def test_an_event_is_heard_up_to_4096_bytes(size: int, heard: int) -> None:
    frame = len(encoded("failed", kind="error", type="E", text="")) - 2
    stream = encoded("failed", kind="error", type="E", text="x" * (size - frame)) + b"log\n"
    events, log, parser = parsed([stream])
    assert len(events) == heard
    assert parser.garbled == 1 - heard
    assert log == (b"log\n" if heard else stream[1:])


def test_a_storm_of_separators_is_counted_one_by_one() -> None:
    events, log, parser = parsed([SEPARATOR * 50_000 + encoded("finished")[1:]])
    assert len(events) == 1
    assert log == b""
    assert parser.garbled == 49_999


@settings(deadline=None, max_examples=3)
@given(st.booleans())
def test_memory_stays_bounded_over_50_mb_without_a_newline(after_separator: bool) -> None:
    parser, chunk, seen = EventParser(), b"x" * (1 << 16), 0
    tracemalloc.start()
    try:
        if after_separator:
            list(parser.feed(SEPARATOR))
        for _ in range(800):
            seen += sum(len(piece) for piece in parser.feed(chunk) if isinstance(piece, bytes))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seen == 800 << 16
    assert peak < 1 << 20
    assert parser.garbled == after_separator
