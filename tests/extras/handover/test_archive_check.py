"""Archives that somebody altered or forged: each has a verdict, and nothing is written anywhere."""

import hashlib
import json
import os
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.extras.handover.archived import files_of, packed, remade, rewritten
from tests.hostile_run import HOSTILE
from tests.results.test_kept_run import KEPT
from tests.synthetic_run import TORCH, SyntheticRun, conv2d_case, listed, listed_example
from tests.words import WORDS
from tsuishi.base.errors import UserError
from tsuishi.extras.handover.archives import archive_check, archive_manifest
from tsuishi.extras.handover.archives.archive_check import ArchiveVerification, verify_archive
from tsuishi.extras.handover.archives.member_names import CITATION, CRATE, MANIFEST, RECORD, RUNS, SBOMS
from tsuishi.extras.handover.archives.zip_container import Container
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
        ("runs/caf\u00e9", "no name that every system writes in its own place"),
        ("runs/cafe\u0301", "no name that every system writes in its own place"),
        ("runs/\uff0e\uff0e/x", "no name that every system writes in its own place"),
        ("setup.py", "no file of an archive of tsuishi"),
        ("tsuishi/__init__.py", "no file of an archive of tsuishi"),
        ("runs/" + "d/" * 20 + "x", "is too long or too deep"),
        ("runs/" + "x" * 1000, "is too long or too deep"),
        ("runs/" + "x" * 255, "is too long or too deep"),
    ],
)
def test_a_name_that_could_be_written_elsewhere(
    name: str, why: str, archive: Path, temporary: Path, tmp_path: Path
) -> None:
    """Where the manifest names it, the archive is refused; else it is not read, and cannot matter."""
    before = everything(tmp_path)
    hidden = with_entries(archive, [(name, b"x")])
    assert is_verified_as(archive, hidden)
    assert list(temporary.iterdir()) == []
    hidden.unlink()
    assert everything(tmp_path) == before
    digests = {**digests_of(archive), name: hashlib.sha256(b"x").hexdigest()}
    listed_too = with_entries(archive, [(name, b"x")], archive_manifest.text_of(digests))
    assert why in verdict(listed_too)
    assert list(temporary.iterdir()) == []
    listed_too.unlink()
    assert everything(tmp_path) == before


def digests_of(path: Path) -> dict[str, str]:
    with path.open("rb") as file:
        return Container(file).digests


def with_entries(path: Path, entries: list[tuple[str, bytes]], manifest: bytes | None = None) -> Path:
    """The archive with more entries at its end, and with another manifest."""
    made = path.with_name("more.zip")
    files = {**files_of(path), **({MANIFEST: manifest} if manifest else {})}
    with warnings.catch_warnings(), zipfile.ZipFile(made, "w") as file:
        warnings.simplefilter("ignore", UserWarning)  # a name that is there twice
        for name, text in [*files.items(), *entries]:
            file.writestr(zipfile.ZipInfo(name), text)
    return made


def is_verified_as(archive: Path, altered: Path) -> bool:
    """Whether an altered archive is verified as the archive that it was."""
    was, found = verify_archive(archive, WORDS), verify_archive(altered, WORDS)
    assert was.is_verified
    return (found.is_verified, found.root, found.record, found.faults) == (True, was.root, was.record, [])


def everything(folder: Path) -> list[tuple[str, int]]:
    """Every file below a folder, with its size."""
    return sorted((str(path), path.lstat().st_size) for path in folder.rglob("*"))


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["runs/A/x", "runs/a/x"], "'runs/a/x': the same as runs/A"),
        (["runs/X.csv", "runs/x.csv"], "'runs/x.csv': the same as runs/X.csv where"),
        (["runs/a", "runs/a/b"], "'runs/a/b': in a folder that is a file, too"),
        (["runs/b", "runs/a"], "line 2 is not as tsuishi writes it"),
        (["runs/a", "runs/a"], "line 2 is not as tsuishi writes it"),
        (["archive.json", "manifest-sha512.txt"], "'manifest-sha512.txt': no file of an archive of tsuishi"),
    ],
)
def test_names_of_a_manifest_that_do_not_go_together(
    names: list[str], why: str, archive: Path, temporary: Path
) -> None:
    manifest = "".join(f"{hashlib.sha256(b'x').hexdigest()}  {name}\n" for name in names).encode()
    assert why in verdict(with_entries(archive, [], manifest))
    assert list(temporary.iterdir()) == []


def test_a_name_that_is_there_twice_counts_once(archive: Path) -> None:
    """The last entry of a name is read: another content there is refused, and another in front of it is not read."""
    record = files_of(archive)[RECORD]
    assert "archive.json: altered" in verdict(with_entries(archive, [(RECORD, b"{}")]))
    assert is_verified_as(archive, with_entries(archive, [(RECORD, b"{}"), (RECORD, record)]))


def patched(path: Path, place: str, form: str, value: int) -> Path:
    """The archive with another value in the directory's entry of archive.json, or in the header before its content."""
    content = bytearray(path.read_bytes())
    start = content.rindex(RECORD.encode()) - 46 if place[0] == "d" else content.index(b"PK\3\4")
    struct.pack_into(form, content, start + FIELDS[place], value)
    made = path.with_name("patched.zip")
    made.write_bytes(content)
    return made


# By the letter d, of the directory, or h, of the header of an entry: archive.json is the first.
FIELDS = {"d flags": 8, "d method": 10, "d crc": 16, "d packed": 20, "d size": 24, "d mode": 38, "d place": 42}
FIELDS |= {"h flags": 6, "h method": 8, "h crc": 14, "h size": 22, "h name": 26}


@pytest.mark.parametrize(
    ("place", "form", "value", "why"),
    [
        ("d method", "<H", 8, "is compressed, and no file of an archive is"),
        ("d method", "<H", 99, "is compressed, and no file of an archive is"),
        ("d flags", "<H", 1, "archive.json: altered, or cut: File "),
        ("d size", "<I", 1 << 30, "is compressed, and no file of an archive is"),
        ("d crc", "<I", 0, "archive.json: altered, or cut: Bad CRC-32"),
        ("d place", "<I", 100, "archive.json: altered, or cut: Bad magic number"),
        ("d place", "<I", 0xFFFFFFF0, "archive.json: altered, or cut: "),
        ("h name", "<H", 3, "archive.json: altered, or cut: "),
    ],
)
def test_a_header_that_makes_another_file_is_refused(
    place: str, form: str, value: int, why: str, archive: Path, temporary: Path
) -> None:
    assert why in verdict(patched(archive, place, form, value))
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "form", "value"),
    [
        ("d mode", "<I", 0o120777 << 16),  # a link
        ("d mode", "<I", 0o020666 << 16),  # a device
        ("d mode", "<I", 0o104755 << 16),  # a program of root
        ("d flags", "<H", 8),
        ("h method", "<H", 8),
        ("h crc", "<I", 0),
        ("h size", "<I", 1 << 30),
    ],
)
def test_what_a_header_says_beside_its_file_is_without_effect(
    place: str, form: str, value: int, archive: Path, temporary: Path
) -> None:
    assert is_verified_as(archive, patched(archive, place, form, value))
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(("name", "size"), [(f"{RUNS}/x/log.txt", 10 << 30), (f"{SBOMS}/x.cdx.json", 1 << 30)])
def test_an_entry_of_zeros_is_bounded_before_it_is_written(
    name: str, size: int, archive: Path, temporary: Path
) -> None:
    """A sparse file, which takes no room on the disk of whoever sends it."""
    made, files = archive.with_name("sparse.zip"), files_of(archive)
    digests = {**digests_of(archive), name: "0" * 64}
    files[MANIFEST] = archive_manifest.text_of(digests)
    with zipfile.ZipFile(made, "w") as file:
        for other, text in files.items():
            file.writestr(zipfile.ZipInfo(other), text)
        begin = file.start_dir
    with zipfile.ZipFile(made, "a") as file:
        info = zipfile.ZipInfo(name)
        info.header_offset, info.file_size, info.compress_size, info.CRC = begin, size, size, 0
        assert file.fp
        file.fp.seek(begin)
        file.fp.write(info.FileHeader(zip64=True))
        file.fp.seek(size, 1)
        file.start_dir = file.fp.tell()
        file.filelist.append(info)
        file.NameToInfo[name] = info
        file._didModify = True  # type: ignore[attr-defined]
    assert made.stat().st_blocks < 1 << 14
    assert f"{name}: {size:,} bytes, and " in verdict(made)
    assert list(temporary.iterdir()) == []


def deflated(path: Path) -> Path:
    """The archive with ten megabytes of zeros, packed, in the place of its record."""
    files = {**files_of(path), RECORD: bytes(10_000_000)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in files.items():
            file.writestr(name, text)
    return path


def nested(path: Path) -> Path:
    """An archive in a report."""
    return rewritten(path, {"report/report.zip": path.read_bytes()})


def many(path: Path) -> Path:
    """More entries than are there."""
    head = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 0x21, 0, 0, 0, 9, 0)
    return with_bytes(path, b"".join(head + b"runs/%04d" % number for number in range(30)))


def only(path: Path, name: str) -> Path:
    """An archive of one file."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(name, b"x")
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
    "another archive behind the end": (
        lambda p: with_bytes(p, p.read_bytes() + only(p, RECORD).read_bytes()), f"it has no {MANIFEST}"),
    "bytes before the directory": (between, "altered, or cut: "),
    "all entries twice, and no directory": (twice, "it is no ZIP file, or was cut"),
    "a manifest of another kind": (
        lambda p: rewritten(p, {"report/manifest-sha512.txt": b"x"}), "an archive holds no report"),
    "the manifest of another archive": (
        lambda p: rewritten(p, {}, archive_manifest.text_of({RECORD: "0" * 64, "runs/x/run.json": "1" * 64})),
        "altered: its content is not that of the manifest"),
    "no manifest": (lambda p: only(p, RECORD), f"it has no {MANIFEST}"),
    "a manifest that is none": (lambda p: rewritten(p, {}, b"hello\n"), "manifest-sha256.txt: line 1 is not as"),
    "a manifest in capitals": (
        lambda p: rewritten(p, {}, files_of(p)[MANIFEST].upper()), "manifest-sha256.txt: line 1 is not as"),
    "a file that is not there": (lambda p: rewritten(p, {JSON: None}, files_of(p)[MANIFEST]), "and it is not there"),
    "a bomb by its ratio": (deflated, "is compressed, and no file of an archive is"),
    "an archive in an archive": (nested, "report/report.zip: an archive holds no report"),
    "entries without end": (many, "it is no ZIP file, or was cut"),
    "cut in half": (lambda p: with_bytes(p, p.read_bytes()[:50_000]), "it is no ZIP file, or was cut"),
    "without its last byte": (lambda p: with_bytes(p, p.read_bytes()[:-1]), "it is no ZIP file, or was cut"),
    "empty": (lambda p: with_bytes(p, b""), "it is no ZIP file, or was cut"),
    "an older schema": (
        lambda p: rewritten(p, _json(p, schema_version=1)), "archive.json: schema 1, and this tsuishi reads 2"),
    "a newer schema": (
        lambda p: rewritten(p, _json(p, schema_version=3)), "archive.json: schema 3, and this tsuishi reads 2"),
    "a schema that is a text": (lambda p: rewritten(p, _json(p, schema_version="2")), "schema 2, and this tsuishi"),
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


WITHOUT_EFFECT: dict[str, Callable[[Path], Path]] = {
    "a file that the manifest does not list": lambda p: with_entries(p, [("report/x.md", b"")]),
    "a program that the manifest does not list": lambda p: with_entries(p, [("setup.py", b"import os")]),
    "something before it": lambda p: with_bytes(p.with_name("b.zip"), b"#!/bin/sh\n" + p.read_bytes()),
    "a comment": lambda p: with_bytes(p.with_name("b.zip"), p.read_bytes()[:-2] + b"\5\0hello"),
}


@pytest.mark.parametrize("what", WITHOUT_EFFECT)
def test_what_the_manifest_does_not_name_is_without_effect(what: str, archive: Path, temporary: Path) -> None:
    assert is_verified_as(archive, WITHOUT_EFFECT[what](archive))
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


def test_workloads_that_are_missing_or_too_many_are_said(archive: Path, run: RunDirectory, tmp_path: Path) -> None:
    name = f"inputs/{RUN_ID}/suites/workloads/timing.py"
    unsaid = remade(archive, _json(archive, left_out=[]))
    assert f"{name}: not there, and run {RUN_ID} ran it; archive.json does not say so" in verdict(unsaid)
    more = f"inputs/{RUN_ID}/suites/workloads/common/more.py"
    packed(tmp_path / "made.zip", [run], {more: b"import os\n"})
    assert f"{more}: run {RUN_ID} had no such workload" in verdict(tmp_path / "made.zip")


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
    assert not found.is_verified or found.root == verify_archive(made, WORDS).root


@given(text=st.binary(max_size=400) | st.from_regex(rb'\{"schema_version": ?2, ?"[a-z_]+": ?.{0,40}\}', fullmatch=True))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
def test_whatever_is_the_record_is_a_line_of_ours(text: bytes, made: Path) -> None:
    assert verify_archive(rewritten(made, {RECORD: text}), WORDS).faults


def test_a_kept_archive_is_verified() -> None:
    """Kept as it was made."""
    found = verify_archive(KEPT, WORDS)
    assert (found.faults, found.is_verified) == ([], True)
