"""Every reader of files that somebody else may have written, with a file that it reads, and strategies that alter it.

A reader may refuse, with an error of ours in one line; it may raise nothing else, and take no more memory than its
bound. tests/test_readers.py tries some alterations of each, `python -m benchmarks.readers` many more.
"""

import re
import tempfile
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from tests.synthetic_run import listed_example
from tests.words import WORDS
from tsuishi.artifacts.network import Network
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.extras.tables.adoption import Corrections, adopt
from tsuishi.extras.tables.proposed_claims import proposed_claims
from tsuishi.extras.tables.table_files import table_files
from tsuishi.extras.tables.written import write_source
from tsuishi.machine.compatibility import read_table
from tsuishi.results import manifest
from tsuishi.results.directory import RunDirectory
from tsuishi.results.frames import read_runs
from tsuishi.results.verification import verify
from tsuishi.specs.environment import read_environment
from tsuishi.specs.lock import read_lock
from tsuishi.specs.source import read_sources
from tsuishi.specs.suite import read_suite
from tsuishi.specs.vocabulary import vocabulary
from tsuishi.stream.events import EventParser
from tsuishi.verdicts.doubtful import doubts_about

# What breaks parsers: depth, length, numbers that no type holds, bytes that are no text, names that lead elsewhere.
FRAGMENTS = (
    *(b"", b"\x00", b"\xff\xfe", b"\x1e", b"\r", b"\n", b'"', b"'", b"\\", b"=", b",", b"{", b"}", b"[", b"]"),
    *(b"[" * 3000, b'{"a":' * 3000, b"a." * 3000, b"9" * 5000, b"-1", b"1e999", b"1e-999", b"NaN", b"-Infinity"),
    *(b"null", b"true", b'""', b"9223372036854775808", b"0.1", b'"\\ud800"', b"\xed\xa0\x80", b"../", b"/dev/zero"),
    *(b"2021-02-30", b"0x" + b"f" * 5000, b"9999999999-01-01", "１２".encode(), "\u202e".encode(), b"PK\x03\x04"),
)


# A table in each form.
TABLES = {
    ".csv": b'model,bs,train img/s,amp train img/s,GPU\nresnet50,64,"1,200.5",2300,V100\nvgg16,64,30,60,T4\n',
    ".md": b"# V100 training\n\n| model | bs | Speed (ms) |\n|---|---|---|\n| mlp | 64 | 30 |\n| vgg16 | 64 | 60 |\n",
    ".html": b"<h2>T4 training</h2>"
    b"<table><tr><th>model<th>bs<th>img/s<tr><td>mlp<td rowspan=2>8<td>9<tr><td>cnn10<td>7</table>",
    ".json": b'[{"model": "resnet50", "batch_size": 64, "train": {"images/s": 100.5}, "amp": true, "params": 25.56}]',
}
_SHEETS = read_table(Checkout().images).data_sheets


@dataclass(frozen=True)
class Reader:
    """A reader: a function of a file, and the content of a file that it reads. The file lies in `folder` by `name`."""

    read: Callable[[Path], object]
    content: bytes
    folder: Path
    name: str

    def accepts(self, content: bytes) -> bool:
        """Whether the reader takes this content; False where it refuses it in one line. Raises what it should not."""
        path = self.folder / self.name
        path.write_bytes(content)
        refusal = ""
        try:
            self.read(path)
        except UserError as error:
            refusal = str(error)
        finally:
            path.write_bytes(self.content)
        assert "\n" not in refusal, "one line"
        return not refusal


def altered(content: bytes) -> st.SearchStrategy[bytes]:
    """The content with up to four pieces of it replaced by others: bytes, or a fragment that breaks parsers."""
    other = st.sampled_from(FRAGMENTS) | st.binary(max_size=9)
    edit = st.tuples(st.integers(0, len(content)), st.integers(0, 40), other)
    values = [match.span() for match in re.finditer(rb'[0-9.]+|"[^"\n]*"|[a-z_]+', content)][:3000]
    value = st.tuples(st.sampled_from(values or [(0, 0)]), st.sampled_from(FRAGMENTS)).map(
        lambda drawn: (drawn[0][0], drawn[0][1] - drawn[0][0], drawn[1])
    )
    return st.lists(edit | value, min_size=1, max_size=4).map(lambda edits: _edited(content, edits))


def _edited(content: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for place, length, other in sorted(edits, reverse=True):
        content = content[:place] + other + content[place + length :]
    return content


def readers(root: Path) -> dict[str, Reader]:
    """The readers by name, with their files under a new folder."""
    checkout = Checkout()
    run = listed_example(root / "run")
    trial = run.finished_folders()[0]
    record = next(path for path in run.record_files() if path.name.startswith("environment"))

    def of(folder: Path, name: str) -> bytes:
        return (folder / name).read_bytes()

    (root / "words").mkdir()
    (root / "words" / "quantities.toml").write_bytes(of(checkout.suites, "quantities.toml"))
    published, name = root / "published", "towers-titanx.toml"
    files: dict[str, tuple[Callable[[Path], object], Path, str, bytes]] = {
        "events": (_events, root, "events", _said()),
        "environment": (read_environment, root, "torch2-cpu.toml", of(checkout.images, "torch2-cpu.toml")),
        "lock": (read_lock, root, "torch2-cpu.lock", of(checkout.images, "torch2-cpu.lock")),
        "suite": (lambda path: read_suite(path, WORDS), root, "parity.toml", of(checkout.suites, "parity.toml")),
        "axes": (lambda path: vocabulary(path.parent), root / "words", "axes.toml", of(checkout.suites, "axes.toml")),
        "source": (lambda path: read_sources(path.parent, WORDS), published, name, of(checkout.published, name)),
        "manifest": (lambda path: manifest.read(path.parent), run.path, manifest.ONCE, b""),
        "run.json": (_run, run.path, "run.json", b""),
        "record": (_run, run.records, record.name, b""),
        "trial.json": (_run, trial, "trial.json", b""),
        "samples": (_run, trial, "samples.csv", b""),
        "telemetry": (_run, trial, "telemetry.csv", b""),
        "metrics": (_run, trial, "metrics.csv", b""),
    }
    # The forms of a table that `adopt` reads.
    for ending, text in TABLES.items():
        files[f"table{ending}"] = adopt_and_keep, root / "tables", f"table{ending}", text
    made = {}
    for name, (read, folder, file, content) in files.items():
        folder.mkdir(exist_ok=True)
        content = content or of(folder, file)
        (folder / file).write_bytes(content)
        made[name] = Reader(read, content, folder, file)
    return made


def adopt_and_keep(path: Path) -> None:
    """Do with a table all that `adopt` does, in a folder that is removed."""
    adoption = adopt("a-table", table_files(str(path), Network(), None), WORDS, _SHEETS, Corrections())
    list(adoption.evidence), adoption.refused()
    doubted = doubts_about(adoption.numbers(WORDS), adoption.hardware(), WORDS, _SHEETS)
    claims = proposed_claims(adoption, WORDS, {cell.place for doubt in doubted for cell in doubt.cells})
    if adoption.mapped():
        with tempfile.TemporaryDirectory() as folder:
            write_source(adoption, "A table", Path(folder) / "a-table", Path(folder) / "a_table.toml", WORDS, claims)


def peak_bytes(reader: Reader, content: bytes) -> int:
    """The most memory that Python's objects took while the reader had this content."""
    tracemalloc.start()
    try:
        reader.accepts(content)
        return tracemalloc.get_traced_memory()[1] - len(content)
    finally:
        tracemalloc.stop()


def _events(path: Path) -> None:
    parser = EventParser()
    for chunk in (path.read_bytes(), b"\x1e"):
        list(parser.feed(chunk))
    list(parser.close())


def _said() -> bytes:
    timed = b'"phase":"measure","index":0,"steps":1,"images":2,"seconds":0.5'
    sample = b'\x1e{"event":"sample","seq":1,"t":0.5,"rank":0,' + timed + b"}\n"
    begin = b'\x1e{"event":"phase_begin","seq":0,"t":0.1,"rank":0,"phase":"measure"}\nlog\n'
    return begin + sample + b'\x1e{"event":"finished","seq":2,"t":0.9,"rank":0}\n'


def _run(path: Path) -> None:
    """Read a run in all ways: as a report does, as resume does, and as verify does."""
    folder = next(parent for parent in path.parents if (parent / "run.json").exists() or (parent / "trials").exists())
    run = RunDirectory(folder)
    verify(run, WORDS)
    read_runs([run], WORDS)
    list(run.finished())
