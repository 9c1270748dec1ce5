"""Readers of files that somebody else may have written: they refuse in a line of ours, and within their memory."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.readers import TABLES, Reader, altered, peak_bytes, readers
from tsuishi.base import toml

TOMLS = ("environment", "suite", "axes", "source")
# A run is read whole for each example, in a tenth of a second.
EXAMPLES = dict.fromkeys(("run.json", "record", "trial.json", "samples", "telemetry", "metrics"), 12)
NAMES = (*("events", "lock", *TOMLS, "manifest"), *(f"table{ending}" for ending in TABLES), *EXAMPLES)


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reader]:
    return readers(tmp_path_factory.mktemp("readers"))


def test_every_reader_takes_what_it_is_for(every: dict[str, Reader]) -> None:
    assert set(every) == {*NAMES}
    assert [name for name, reader in every.items() if not reader.accepts(reader.content)] == []


@pytest.mark.parametrize("name", NAMES)
def test_whatever_is_altered_a_reader_takes_or_refuses_in_a_line(every: dict[str, Reader], name: str) -> None:
    reader = every[name]

    @settings(
        max_examples=EXAMPLES.get(name, 50), phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow]
    )
    @given(altered(reader.content))
    def read(content: bytes) -> None:
        reader.accepts(content)

    read()


@pytest.mark.parametrize("name", TOMLS)
@pytest.mark.parametrize(
    "text",
    [
        b"x = " + b"9" * 5000,
        b"x = 0x" + b"f" * 5000,
        b"x = -9223372036854775808000",
        b"x = " + b"[" * 100_000,
        b"x = " + b"[" * 400 + b"]" * 400,
        b"x = " + b"{a=" * 3000,
        b"a." * 1500 + b"a = 1",
        b"[" + b"a." * 1500 + b"a]",
        b"x = 2021-02-30",
    ],
    ids=["digits", "hexadecimal", "large", "open", "closed", "tables", "key", "header", "date"],
)
def test_what_tomllib_takes_or_breaks_at_is_refused(every: dict[str, Reader], name: str, text: bytes) -> None:
    """Numbers without end, and levels without end, raised ValueError and RecursionError."""
    assert not every[name].accepts(text + b"\n")
    assert not every[name].accepts(text + b"\n" + every[name].content)


def test_a_version_of_thousands_of_digits_is_refused(every: dict[str, Reader]) -> None:
    file = b"pip-" + b"9" * 5000 + b"-py3-none-any.whl"
    line = b"pip==" + b"9" * 5000 + b" --hash=sha256:" + b"0" * 64 + b"  # " + file + b" 10\n"
    assert not every["lock"].accepts(line)


@pytest.mark.parametrize("name", [*TOMLS, "lock"])
def test_a_spec_or_a_lock_that_is_too_large_is_not_read(every: dict[str, Reader], name: str) -> None:
    large = every[name].content + b"#" * toml.MOST_TEXT_BYTES
    assert not every[name].accepts(large)
    assert peak_bytes(every[name], large) < 4 * toml.MOST_TEXT_BYTES


def test_a_manifest_of_short_lines_takes_the_memory_of_its_text(every: dict[str, Reader]) -> None:
    """A list of its lines took sixteen times as much."""
    text = every["manifest"].content + b"# removed: \n" * (1 << 20)
    assert every["manifest"].accepts(text)
    assert peak_bytes(every["manifest"], text) < 4 * len(text)


@given(st.binary(max_size=300))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_refused_by_every_reader_that_needs_a_form(every: dict[str, Reader], content: bytes) -> None:
    for name in ("environment", "lock", "suite"):
        if content:
            assert not every[name].accepts(content) or not content.strip(), name


def test_a_file_that_is_no_text_is_named(every: dict[str, Reader], tmp_path: Path) -> None:
    assert not every["lock"].accepts(b"\xff")
