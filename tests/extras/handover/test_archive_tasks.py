"""`invoke archive`, `sign` and `verify --archive` as a user calls them."""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.extras.handover.archived import files_of
from tests.job import invoke
from tests.synthetic_run import TORCH, SyntheticRun, conv2d_case, listed, listed_example
from tsuishi.base.checkout import Checkout
from tsuishi.environments.provenance import workload_record
from tsuishi.extras.handover.archives.run_inputs import RunInputs
from tsuishi.results.records import WorkloadRecord

RUN_ID, OTHER_ID = "20261121-080000-example", "20261122-080000-other"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, an archive of both, and the keys of two people."""
    folder = tmp_path_factory.mktemp("folder")
    listed_example(folder / "results" / RUN_ID)
    other = SyntheticRun(folder / "results" / OTHER_ID)
    other.add(conv2d_case(), TORCH, [("first_run", 0, 1, 840, 0.5)])
    listed(other.finish())
    made = invoke(folder, "archive", "--run", f"{RUN_ID},{OTHER_ID}", "--to", str(folder / "out"))
    assert (made.returncode, made.stderr) == (0, "")
    for name in ("ada", "bob"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    return folder


@pytest.fixture
def archive(folder: Path, tmp_path: Path) -> Path:
    (path,) = (folder / "out").iterdir()
    return Path(shutil.copy(path, tmp_path))


def test_its_name_says_what_where_and_when(archive: Path, folder: Path) -> None:
    begin, _, root = archive.name.removesuffix(".tsuishi.zip").rpartition("-")
    assert begin == "tf1.13-cpu+torch2-cpu-Example-CPU-2.50GHz-20261121"
    said = invoke(folder, "verify", "--archive", str(archive)).stdout
    assert f"root {root}" in said
    assert "only a signature covers: who may be cited, the licence, the list of omissions" in said


def test_it_holds_runs_and_bills_and_says_what_it_lacks(archive: Path) -> None:
    files = files_of(archive)
    assert {name.split("/")[1] for name in files if name.startswith("runs/")} == {RUN_ID, OTHER_ID}
    assert [name for name in files if name.startswith("sboms/")] == [
        "sboms/tf1.13-cpu-bbbbbbbbbbbb.cdx.json", "sboms/torch2-cpu-bbbbbbbbbbbb.cdx.json"]  # fmt: skip
    bill = json.loads(files["sboms/torch2-cpu-bbbbbbbbbbbb.cdx.json"])
    assert {"pkg:pypi/torch@2.13.0", "pkg:pypi/numpy@1.16.6"} <= {part["purl"] for part in bill["components"]}
    assert not any(name.startswith("report/") for name in files), "`report --archive` makes it from the runs"
    left_out = json.loads(files["archive.json"])["left_out"]
    assert f"inputs of run {RUN_ID}: workload conv2d: 1 files differ from those of the run" in left_out
    assert "CITATION.cff: tsuishi.authors names none" in left_out


def test_sha256sum_verifies_it_unpacked(archive: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(archive, tmp_path / "unpacked", "zip")
    subprocess.run(["sha256sum", "--check", "--strict", "manifest-sha256.txt"], cwd=tmp_path / "unpacked", check=True)


def test_that_nobody_signed_is_said(archive: Path, folder: Path) -> None:
    result = invoke(folder, "verify", "--archive", str(archive))
    assert result.returncode == 0
    assert "NOT signed: " in result.stdout
    assert "the maker of this archive is unknown" in result.stdout


def test_who_signed_is_said_and_asked_for(archive: Path, folder: Path) -> None:
    for name in ("ada", "bob"):
        assert invoke(folder, "sign", "--archive", str(archive), "--key", str(folder / name)).returncode == 0
    anybody = invoke(folder, "verify", "--archive", str(archive))
    assert anybody.returncode == 0
    assert "signed with unknown keys: SHA256:" in anybody.stdout
    ada = invoke(folder, "verify", "--archive", str(archive), "--signer", str(folder / "ada.pub"))
    assert ada.returncode == 0
    assert "signed by ada.pub, with the key SHA256:" in ada.stdout


def test_all_archives_of_a_folder_are_reported(archive: Path, folder: Path, tmp_path: Path) -> None:
    done = invoke(folder, "report", "--archive", str(archive.parent), "--out", "folder")
    assert done.returncode == 0, done.stderr
    assert f"{archive}: runs: 2; root " in done.stdout
    empty = tmp_path / "empty"
    empty.mkdir()
    refused = invoke(folder, "report", "--archive", str(empty))
    assert refused.stderr == f"error: {empty}: there is no *.tsuishi.zip in this folder\n"


def test_an_archive_that_nobody_signed_whom_signer_names_ends_with_1(archive: Path, folder: Path) -> None:
    for expected in ("NOT signed: ", "signed with unknown keys: "):
        result = invoke(folder, "verify", "--archive", str(archive), "--signer", str(folder / "ada.pub"))
        assert result.returncode == 1
        assert expected in result.stdout
        invoke(folder, "sign", "--archive", str(archive), "--key", str(folder / "bob"))


def test_an_altered_archive_is_neither_verified_nor_signed(archive: Path, folder: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:-1])
    result = invoke(folder, "verify", "--archive", str(archive))
    assert result.returncode == 1
    assert f"archive {archive} is NOT verified; faults: 1" in result.stdout
    signed = invoke(folder, "sign", "--archive", str(archive), "--key", str(folder / "ada"))
    assert signed.returncode == 1
    assert "it is no ZIP file, or was cut: File is not a zip file; only a verified archive is signed" in signed.stderr


def test_a_run_that_is_not_verified_is_not_archived(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "results" / RUN_ID, tmp_path / RUN_ID)
    (tmp_path / RUN_ID / "samples.csv").write_text("trial_id\n")
    result = invoke(folder, "archive", "--run", str(tmp_path / RUN_ID), "--to", str(tmp_path / "a.zip"))
    assert result.returncode == 1
    assert "only a verified run is archived" in result.stderr
    assert not (tmp_path / "a.zip").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("sign",), "error: say what to sign, and by which key: invoke sign --archive FILE --key ~/.ssh/id_ed25519"),
        (("verify", "--signer", "x.pub"), "error: --signer goes with --archive: runs by themselves are not signed"),
        (("verify", "--archive", "nowhere.zip"), "error: nowhere.zip: cannot be read: No such file or directory"),
        (("archive", "--anonymous", "--with-images"), "error: --anonymous and --with-images exclude each other"),
        (("archive", "--run", "20260101"), "error: unknown run '20260101'"),
    ],
)
def test_mistakes_are_a_line(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    result = invoke(folder, *arguments)
    assert result.returncode == 1
    assert result.stderr.startswith(said)


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", "-C", root, *identity, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


def checkout_of(root: Path) -> Checkout:
    """A checkout in git, with a workload, a suite, a source and a file that is no input."""
    for name, text in {
        "suites/a.toml": "suite", "suites/workloads/run.py": "run", "reports/published/a.toml": "source",
        "templates/Dockerfile.j2": "template", "README.md": "no input", "images/other.toml": "not used",
        "images/used.toml": "used",
    }.items():  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return Checkout(root)


def test_inputs_are_those_of_the_commit_of_the_run(tmp_path: Path) -> None:
    checkout = checkout_of(tmp_path / "checkout")
    commit = git(checkout.root, "rev-parse", "HEAD")
    (checkout.suites / "a.toml").write_text("a later suite")
    of_engine = {"used.docker": "torch 1.1.0"}
    run = SyntheticRun(tmp_path / RUN_ID, frameworks=of_engine, git={"commit": commit, "dirty": False})
    run.directory.add(workload_record(checkout.workloads, "a"))
    (checkout.workloads / "run.py").write_text("a later workload")
    inputs = RunInputs(run.finish(), checkout)
    assert {name: text.decode() for name, text in inputs.files.items()} == {
        "suites/a.toml": "suite", "suites/workloads/run.py": "run", "reports/published/a.toml": "source",
        "templates/Dockerfile.j2": "template", "images/used.toml": "used"}  # fmt: skip


def test_a_workload_of_the_commit_that_no_record_names_is_left_out(tmp_path: Path) -> None:
    checkout = checkout_of(tmp_path / "checkout")
    state = {"commit": git(checkout.root, "rev-parse", "HEAD"), "dirty": False}
    inputs = RunInputs(SyntheticRun(tmp_path / RUN_ID, git=state).finish(), checkout)
    assert "suites/a.toml" in inputs.files
    assert "suites/workloads/run.py" not in inputs.files


def test_a_run_in_a_folder_of_another_name_is_not_archived(tmp_path: Path) -> None:
    listed_example(tmp_path / RUN_ID).path.rename(tmp_path / "other")
    refused = invoke(tmp_path, "archive", "--run", str(tmp_path / "other"), "--to", str(tmp_path / "a.zip"))
    why = f"it is run {RUN_ID}: an archive has runs by their ids; rename the folder"
    assert (refused.returncode, refused.stderr.strip()) == (1, f"error: {tmp_path / 'other'}: {why}")
    assert not (tmp_path / "a.zip").exists()


def test_tables_of_suites_that_did_not_run_are_left_out(tmp_path: Path) -> None:
    published = tmp_path / "checkout" / "reports" / "published"
    for name, suite in (("ran", "conv2d"), ("other", "theirs")):
        (published / name).mkdir(parents=True)
        (published / name / "source.toml").write_text(f'[[tables]]\nsuite = "{suite}"\n')
        (published / name / "table.csv").write_text("model,ms\n")
    checkout = checkout_of(tmp_path / "checkout")
    state = {"commit": git(checkout.root, "rev-parse", "HEAD"), "dirty": False}
    run = SyntheticRun(tmp_path / RUN_ID, git=state)
    run.add(conv2d_case(devices=3), TORCH, [("first_run", 0, 1, 840, 0.9)])
    inputs = RunInputs(run.finish(), checkout)
    assert "suites/conv2d.toml: not in the commit of the run" in inputs.missing
    folders = {str(Path(name).parent) for name in inputs.files}
    assert "reports/published/ran" in folders
    assert "reports/published/other" not in folders


@pytest.mark.parametrize(
    "git_record",
    [{"commit": "HEAD", "dirty": False}, {"commit": "--help", "dirty": False}, {"commit": "f" * 40, "dirty": False},
     {"commit": "unknown", "dirty": False}, None],
)  # fmt: skip
def test_without_a_known_commit_there_are_only_files_whose_digests_agree(tmp_path: Path, git_record: object) -> None:
    checkout = checkout_of(tmp_path / "checkout")
    run = SyntheticRun(tmp_path / RUN_ID, git=git_record)
    run.directory.add(workload_record(checkout.workloads, "a"))
    inputs = RunInputs(run.finish(), checkout)
    assert list(inputs.files) == ["suites/workloads/run.py"]
    assert inputs.missing[0].startswith("suites, axes and sources: run.json names no commit without changes")


def test_the_files_of_a_script_are_inputs_and_what_lies_elsewhere_is_none(tmp_path: Path) -> None:
    checkout = checkout_of(tmp_path / "checkout")
    (tmp_path / "other.py").write_text("other")
    (checkout.suites / "theirs").mkdir()
    (checkout.suites / "theirs" / "theirs.py").write_text("theirs")
    run = SyntheticRun(tmp_path / RUN_ID, git=None)
    digests = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("theirs", "other", "run")}
    files = {"../theirs/theirs.py": digests["theirs"], "../../../other.py": digests["other"], "run.py": digests["run"]}
    run.directory.add(WorkloadRecord(workload="script", files=files))
    inputs = RunInputs(run.finish(), checkout)
    assert inputs.files == {"suites/theirs/theirs.py": b"theirs", "suites/workloads/run.py": b"run"}
    assert "workload script: 1 files differ from those of the run" in inputs.missing


def test_a_workload_that_was_altered_since_is_no_input(tmp_path: Path) -> None:
    checkout = checkout_of(tmp_path / "checkout")
    run = SyntheticRun(tmp_path / RUN_ID, git=None)
    run.directory.add(workload_record(checkout.workloads, "a"))
    (checkout.workloads / "run.py").write_text("another")
    inputs = RunInputs(run.finish(), checkout)
    assert inputs.files == {}
    assert "workload a: 1 files differ from those of the run" in inputs.missing


def test_a_report_of_archives_is_that_of_their_runs(archive: Path, folder: Path) -> None:
    """Mixed with the same runs, their trials count once."""
    alone = invoke(folder, "report", "--archive", str(archive), "--out", "archived")
    assert (alone.returncode, alone.stderr) == (0, "")
    assert f"{archive}: runs: 2; root " in alone.stdout
    assert invoke(folder, "report", "--run", f"{RUN_ID},{OTHER_ID}", "--out", "local").returncode == 0
    reports = folder / "reports"
    assert (reports / "archived" / "index.html").read_bytes() == (reports / "local" / "index.html").read_bytes()
    mixed = invoke(folder, "report", "--archive", str(archive), "--run", RUN_ID, "--out", "mixed")
    assert (mixed.returncode, mixed.stderr) == (0, "")
    trials = [json.loads((reports / name / "report.json").read_text()) for name in ("local", "mixed")]
    assert len(trials[0]["tables"]["trials"]) == len(trials[1]["tables"]["trials"])


def test_an_altered_archive_is_not_reported(archive: Path, folder: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:-1])
    result = invoke(folder, "report", "--archive", str(archive), "--out", "altered")
    assert result.returncode == 1
    assert "it is no ZIP file, or was cut: File is not a zip file; `invoke verify --archive " in result.stderr
    assert not (folder / "reports" / "altered").exists()
