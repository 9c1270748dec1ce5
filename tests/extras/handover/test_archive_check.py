"""Archives that somebody altered or forged: each has a verdict, and nothing is written anywhere."""

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.extras.handover.archived import files_of, packed, rewritten
from tests.hostile_run import HOSTILE
from tests.results.kept_runs import KEPT
from tests.synthetic_run import TORCH, SyntheticRun, conv2d_case, listed, listed_example
from tests.words import WORDS
from tsuishi.base.errors import UserError
from tsuishi.extras.handover.archives import archive_check, archive_manifest
from tsuishi.extras.handover.archives.archive_check import ArchiveVerification, verify_archive
from tsuishi.extras.handover.archives.archive_record import SCHEMA_VERSION
from tsuishi.extras.handover.archives.member_names import CITATION, CRATE, MANIFEST, RECORD, RUNS, SBOMS
from tsuishi.results.directory import RunDirectory

RUN_ID = "20261121-080000-example"
OTHER_ID = "20261122-080000-other"
JSON = f"{RUNS}/{RUN_ID}/run.json"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return listed_example(tmp_path_factory.mktemp("runs") / RUN_ID)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return listed_example(tmp_path_factory.mktemp("other") / OTHER_ID)


@pytest.fixture(scope="module")
def made(run: RunDirectory, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "made.zip"
    packed(path, [run])
    return path


@pytest.fixture
def archive(made: Path, tmp_path: Path) -> Path:
    path = tmp_path / "archive.zip"
    path.write_bytes(made.read_bytes())
    return path


@pytest.fixture
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def verdict(path: Path) -> str:
    found = verify_archive(path, WORDS)
    assert found.faults
    assert not found.is_verified
    assert all("\n" not in fault for fault in found.faults)
    return found.faults[0]


def test_an_unaltered_archive_is_verified(archive: Path, run: RunDirectory) -> None:
    found = verify_archive(archive, WORDS)
    assert (found.faults, found.is_verified) == ([], True)
    assert found.record is not None
    assert [(a.run_id, a.trials) for a in found.record.runs] == [(RUN_ID, 36)]
    assert found.root == archive_manifest.root_of(files_of(archive)[MANIFEST])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/etc/cron.d/tsuishi", "no name that every system writes in its own place"),
        ("runs/../../../../../tmp/x", "no name that every system writes in its own place"),
        ("runs\\..\\..\\x", "no name that every system writes in its own place"),
        ("C:/Windows/x", "no name that every system writes in its own place"),
        ("runs/./x", "no name that every system writes in its own place"),
        ("runs//x", "no name that every system writes in its own place"),
        ("runs/.bashrc", "no name that every system writes in its own place"),
        ("runs/-rf", "no name that every system writes in its own place"),
        ("runs/a b", "no name that every system writes in its own place"),
        ("runs/x\x1b[2J", "no name that every system writes in its own place"),
        ("runs/x.", "no name that every system writes in its own place"),
        ("runs/x:stream", "no name that every system writes in its own place"),
        ("runs/CON", "the name of a device"),
        ("runs/nul.txt", "the name of a device"),
        ("runs/a/COM1.json", "the name of a device"),
        ("runs/caf\u00e9", "a name has other letters than those of ASCII"),
        ("runs/cafe\u0301", "a name has other letters than those of ASCII"),
        ("runs/\uff0e\uff0e/x", "a name has other letters than those of ASCII"),
        ("setup.py", "no file of an archive of tsuishi"),
        ("tsuishi/__init__.py", "no file of an archive of tsuishi"),
        ("runs/" + "d/" * 20 + "x", "is too long or too deep"),
        ("runs/" + "x" * 1000, "is too long or too deep"),
        ("runs/" + "x" * 255, "is too long or too deep"),
    ],
)
def test_a_name_that_could_be_written_elsewhere(name: str, why: str, tmp_path: Path, temporary: Path) -> None:
    path = one_entry(tmp_path / "hostile.zip", name.encode())
    before = everything(tmp_path)
    assert why in verdict(path)
    assert everything(tmp_path) == before
    assert list(temporary.iterdir()) == []


def one_entry(path: Path, name: bytes, content: bytes = b"x", **fields: int) -> Path:
    """A ZIP file of an entry as a hostile program writes it, with its headers as tsuishi has them but for `fields`."""
    return forged(path, [(name, content)], **fields)


def forged(path: Path, entries: list[tuple[bytes, bytes]], **fields: int) -> Path:
    """A ZIP file of these entries, in this order, with their headers as tsuishi has them but for `fields`."""
    body = directory = b""
    for name, content in entries:
        size, mode = len(content), 0o040755 << 16 | 16 if name.endswith(b"/") else 0o100644 << 16
        has = {
            "flags": 0,
            "method": 0,
            "crc": zlib.crc32(content),
            "packed": size,
            "size": size,
            "mode": mode,
            **fields,
        }
        head = struct.pack("<2H", has["flags"], has["method"]) + struct.pack("<2H", 0, 0x21)
        head += struct.pack("<3I2H", has["crc"], has["packed"], has["size"], len(name), 0)
        place = struct.pack("<3H2I", 0, 0, 0, has["mode"], len(body))
        directory += b"PK\1\2" + struct.pack("<2H", 3 << 8 | 20, 20) + head + place + name
        body += b"PK\3\4" + struct.pack("<H", 20) + head + name + content
    count = len(entries)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, len(directory), len(body), 0)
    path.write_bytes(body + directory + end)
    return path


def everything(folder: Path) -> list[tuple[str, int]]:
    """Every file below a folder, with its size."""
    return sorted((str(path), path.lstat().st_size) for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["archive.json", "archive.json"], "'archive.json': there twice"),
        (["archive.json", "runs/", "runs/A/", "runs/A/x", "runs/a/", "runs/a/x"], "'runs/a/x': the same as runs/A"),
        (["runs/", "runs/X.csv", "runs/x.csv"], "'runs/x.csv': the same as runs/X.csv where"),
        (["runs/", "runs/a", "runs/a/", "runs/a/b"], "'runs/a/b': in a folder that is a file, too"),
        (["runs/", "runs/b", "runs/a"], "'runs/a' is not in the order of names"),
        (["runs/", "runs/", "runs/a"], "'runs/a' does not follow the entries of its folders"),
        (["runs/a"], "'runs/a' does not follow the entries of its folders"),
        (["../", "runs/", "runs/a"], "'runs/a' does not follow the entries of its folders"),
        (["archive.json", "runs/"], "'runs/' is a folder without files"),
        (["archive.json", "manifest-sha256.txt", "manifest-sha256.txt"], "'manifest-sha256.txt': there twice"),
        (["archive.json", "manifest-sha512.txt"], "'manifest-sha512.txt': no file of an archive of tsuishi"),
    ],
)
def test_names_that_do_not_go_together(names: list[str], why: str, tmp_path: Path, temporary: Path) -> None:
    entries = [(name.encode(), b"" if name.endswith("/") else b"x") for name in names]
    assert why in verdict(forged(tmp_path / "hostile.zip", entries))
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"mode": 0o120777 << 16}, "its directory describes archive.json otherwise than its entries are: as a link"),
        ({"mode": 0o020666 << 16}, "its directory describes archive.json otherwise"),
        ({"mode": 0o104755 << 16}, "its directory describes archive.json otherwise"),
        ({"method": 8}, "is compressed, and no file of an archive is"),
        ({"method": 99}, "is compressed, and no file of an archive is"),
        ({"flags": 1}, "has another header than tsuishi writes"),
        ({"flags": 8}, "has another header than tsuishi writes"),
        ({"size": 1 << 30}, "has two sizes: 1,073,741,824 and 1 bytes"),
        ({"size": 1 << 20, "packed": 1 << 20}, "it is broken off"),
        ({"size": 1 << 30, "packed": 1 << 30}, "has 1,073,741,824 bytes, and 67,108,864 are the most that are read"),
        ({"crc": 0}, "has another content than its header says"),
    ],
)
def test_a_header_that_is_not_as_tsuishi_writes_it(
    fields: dict[str, int], why: str, tmp_path: Path, temporary: Path
) -> None:
    assert why in verdict(one_entry(tmp_path / "hostile.zip", b"archive.json", b"x", **fields))
    assert list(temporary.iterdir()) == []


def test_a_folder_has_no_digest_of_its_own(tmp_path: Path) -> None:
    path = forged(tmp_path / "hostile.zip", [(b"runs/", b""), (b"runs/a", b"x")], crc=zlib.crc32(b"x"))
    assert "'runs/': no name that every system writes in its own place" in verdict(path)


def deflated(path: Path) -> Path:
    """Ten megabytes of zeros, packed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(RECORD, bytes(10_000_000))
    return path


def nested(path: Path) -> Path:
    """A ZIP file in a report."""
    return rewritten(path, {"report/report.zip": deflated(path.with_name("inner.zip")).read_bytes()})


def many(path: Path) -> Path:
    """More entries than are read."""
    head = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 0x21, 0, 0, 0, 9, 0)
    with path.open("wb") as file:
        file.write(struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 0x21, 0, 0, 0, 5, 0) + b"runs/")
        for number in range(30):
            file.write(head + b"runs/%04d" % number)
    return path


def with_bytes(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def twice(path: Path) -> Path:
    entries = path.read_bytes().partition(b"PK\1\2")[0]
    return with_bytes(path, 2 * entries)


def between(path: Path) -> Path:
    """Bytes before the directory that no entry names."""
    entries, start, rest = path.read_bytes().partition(b"PK\1\2")
    return with_bytes(path, entries + b"hidden" + start + rest)


def _json(path: Path, **changed: object) -> dict[str, bytes | None]:
    """archive.json with other values."""
    return {RECORD: json.dumps({**json.loads(files_of(path)[RECORD]), **changed}).encode()}


def sbom_of(path: Path) -> str:
    """The first bill of materials of an archive."""
    return next(name for name in files_of(path) if name.startswith(SBOMS))


ALTERED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "an entry behind the end": (
        lambda p: with_bytes(p, p.read_bytes() + one_entry(p, b"archive.json").read_bytes()), "is behind its end"),
    "bytes before the directory": (between, "its directory describes archive.json otherwise"),
    "all entries twice": (twice, "is not in the order of names"),
    "a manifest of another kind": (
        lambda p: rewritten(p, {"report/manifest-sha512.txt": b"x"}), "an archive holds no report"),
    "the manifest of another archive": (
        lambda p: rewritten(p, {}, archive_manifest.text_of({RECORD: "0" * 64, "runs/x/run.json": "1" * 64})),
        "altered: its content is not that of the manifest"),
    "no manifest": (lambda p: one_entry(p, b"archive.json"), f"it has no {MANIFEST}"),
    "a manifest that is none": (lambda p: rewritten(p, {}, b"hello\n"), "manifest-sha256.txt: line 1 is not as"),
    "a manifest in capitals": (
        lambda p: rewritten(p, {}, files_of(p)[MANIFEST].upper()), "manifest-sha256.txt: line 1 is not as"),
    "a file that the manifest does not list": (
        lambda p: rewritten(p, {"report/x.md": b""}, files_of(p)[MANIFEST]), "report/x.md: added"),
    "a file that is not there": (lambda p: rewritten(p, {JSON: None}, files_of(p)[MANIFEST]), "and it is not there"),
    "a bomb by its ratio": (deflated, "is compressed, and no file of an archive is"),
    "an archive in an archive": (nested, "report/report.zip: an archive holds no report"),
    "entries without end": (many, "it is broken off"),
    "cut in half": (lambda p: with_bytes(p, p.read_bytes()[:50_000]), "it is broken off"),
    "without its last byte": (lambda p: with_bytes(p, p.read_bytes()[:-1]), "it is broken off"),
    "empty": (lambda p: with_bytes(p, b""), "it does not begin as an archive"),
    "something before it": (lambda p: with_bytes(p, b"#!/bin/sh\n" + p.read_bytes()), "does not begin"),
    "a comment": (lambda p: with_bytes(p, p.read_bytes()[:-2] + b"\5\0hello"), "directory ends otherwise"),
    "an older schema": (
        lambda p: rewritten(p, _json(p, schema_version=0)), "schema 0: no tsuishi made archives of it"),
    "a newer schema": (
        lambda p: rewritten(p, _json(p, schema_version=3)), "schema 3: a later tsuishi made it; this tsuishi reads"),
    "a schema that is a text": (lambda p: rewritten(p, _json(p, schema_version="1")), "schema 1: no tsuishi"),
    "no record": (lambda p: rewritten(p, {RECORD: None}), f"it has no {RECORD}"),
    "a record that is none": (lambda p: rewritten(p, {RECORD: b"[" * 100_000}), "archive.json: cannot be read"),
    "no metadata": (lambda p: rewritten(p, {CRATE: None}), f"{CRATE}: it is not there"),
    "metadata that are none": (
        lambda p: rewritten(p, {CRATE: b"nothing"}), f"{CRATE}: other content than its runs give"),
    "a report": (
        lambda p: rewritten(p, {"report/index.html": b"<script>alert(1)</script>"}), "an archive holds no report"),
    "other packages in a bill of materials": (
        lambda p: rewritten(p, {sbom_of(p): files_of(p)[sbom_of(p)].replace(b"numpy", b"nunpy")}),
        ".cdx.json: other content than its runs give"),
    "a bill of materials that is not there": (
        lambda p: rewritten(p, {sbom_of(p): None}), ".cdx.json: it is not there, and its runs give it"),
    "a bill of materials of another environment": (
        lambda p: rewritten(p, {"sboms/tf9-cpu-0123456789ab.cdx.json": b"{}"}), "json: its runs do not give it"),
    "metadata of other software": (
        lambda p: rewritten(p, {CRATE: files_of(p)[CRATE].replace(b"profile quick", b"profile full")}),
        f"{CRATE}: other content than its runs give"),
    "a citation of somebody": (
        lambda p: rewritten(p, {CITATION: b"cff-version: 1.2.0\n"}), f"{CITATION}: its runs do not give it"),
    "an author who is not in the metadata": (
        lambda p: rewritten(p, _json(p, authors=["Lovelace, Ada"])), f"{CITATION}: it is not there"),
    "an author who is none": (
        lambda p: rewritten(p, _json(p, authors=["<>"])), "expected 'Family, Given <ORCID>'; given: <>"),
    "another number of trials": (
        lambda p: rewritten(p, {RECORD: files_of(p)[RECORD].replace(b'"trials": 36', b'"trials": 35')}),
        f"runs/{RUN_ID}: 36 trials, and archive.json says 35"),
    "a run that is not named": (
        lambda p: rewritten(p, {f"{RUNS}/foreign/run.json": b"{}"}), "runs/foreign: a run that archive.json does not"),
    "a run that is not there": (
        lambda p: rewritten(p, {name: None for name in files_of(p) if name.startswith(RUNS)}),
        f"runs/{RUN_ID}: archive.json names it, and it is not there"),
    "a run with a trial less": (
        lambda p: rewritten(p, {name: None for name in files_of(p) if "scipy" in name and "/trials/" in name}),
        "cannot be read: No such file"),
    "a figure altered, and all but the manifest made anew": (
        lambda p: rewritten(p, {f"{RUNS}/{RUN_ID}/samples.csv": b"trial_id\n"}, files_of(p)[MANIFEST]),
        "samples.csv: altered: its content is not that of the manifest"),
    "a run with a figure altered": (
        lambda p: rewritten(p, {f"{RUNS}/{RUN_ID}/samples.csv": b"trial_id\n"}), "samples.csv: altered"),
}  # fmt: skip


@pytest.mark.parametrize("what", ALTERED)
def test_an_archive_that_somebody_altered(what: str, archive: Path, temporary: Path) -> None:
    alter, why = ALTERED[what]
    path = alter(archive)
    before = everything(archive.parent)
    assert why in verdict(path)
    assert everything(archive.parent) == before
    assert list(temporary.iterdir()) == []


def test_another_run_in_the_place_of_the_one_that_is_named(archive: Path, other: RunDirectory, tmp_path: Path) -> None:
    packed(tmp_path / "other.zip", [other])
    theirs = {name.replace(OTHER_ID, RUN_ID): text for name, text in files_of(tmp_path / "other.zip").items()
              if name.startswith(RUNS)}  # fmt: skip
    without = dict.fromkeys(name for name in files_of(archive) if name.startswith(RUNS))
    path = rewritten(archive, {**without, **theirs})
    assert f"{RUNS}/{RUN_ID}: another run than archive.json names: its digest is " in verdict(path)


def test_a_run_under_another_name(archive: Path) -> None:
    files = files_of(archive)
    moved: dict[str, bytes | None] = {name: None for name in files if name.startswith(RUNS)}
    moved |= {name.replace(RUN_ID, "other"): text for name, text in files.items() if name.startswith(RUNS)}
    record = json.loads(files[RECORD])
    record["runs"][0]["run_id"] = "other"
    path = rewritten(archive, {**moved, RECORD: json.dumps(record).encode()})
    assert f"{RUNS}/other: its run.json is of run {RUN_ID}" in verdict(path)


def test_another_workload_than_the_run_ran(run: RunDirectory, tmp_path: Path) -> None:
    name = f"inputs/{RUN_ID}/suites/workloads/timing.py"
    packed(tmp_path / "made.zip", [run], {name: b"import os\n"})
    assert f"{name}: another workload than run {RUN_ID} ran" in verdict(tmp_path / "made.zip")


def test_faults_show_no_path_of_a_temporary_file(archive: Path, temporary: Path) -> None:
    assert str(temporary) not in verdict(ALTERED["a run with a figure altered"][0](archive))


def test_a_pipe_or_a_folder_is_no_archive(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UserError):
            verify_archive(path, WORDS)


def test_a_run_with_hostile_names_is_archived_and_verified(tmp_path: Path) -> None:
    made = SyntheticRun(tmp_path / "20260101-000000-hostile", profile=HOSTILE, arguments={HOSTILE: HOSTILE})
    made.add(conv2d_case(), TORCH, status="failed", reason=HOSTILE)
    packed(tmp_path / "hostile.zip", [listed(made.finish())])
    assert verify_archive(tmp_path / "hostile.zip", WORDS).faults == []


@given(changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=200)), min_size=1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_whatever_is_altered_is_a_line_of_ours(
    changes: list[tuple[float, bytes]], made: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = made.read_bytes()
    altered = content
    for place, other in changes:
        at = int(place * len(content))
        altered = altered[:at] + other + altered[at + len(other) :]
    path = tmp_path_factory.mktemp("altered") / "altered.zip"
    path.write_bytes(altered)
    found: ArchiveVerification = archive_check.verify_archive(path, WORDS)
    assert found.is_verified == (altered == content)


@given(text=st.binary(max_size=400) | st.from_regex(rb'\{"schema_version": ?1, ?"[a-z_]+": ?.{0,40}\}', fullmatch=True))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
def test_whatever_is_the_record_is_a_line_of_ours(text: bytes, made: Path) -> None:
    assert verify_archive(rewritten(made, {RECORD: text}), WORDS).faults


def test_an_archive_of_every_schema_is_read() -> None:
    """Kept as it was made: a later tsuishi reads what others published."""
    for version in range(1, SCHEMA_VERSION + 1):
        found = verify_archive(KEPT[version - 1], WORDS)
        assert (found.faults, found.is_verified) == ([], True)
        assert found.record is not None
        assert found.record.schema_version == version
