"""Secrets never enter an archive, and an anonymous archive names no user and no machine: planted, and sought."""

import gzip
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.extras.handover.archived import files_of
from tests.job import invoke
from tests.synthetic_run import TF, TORCH, SyntheticRun, add_record, conv2d_case, environment, listed, steady_samples
from tests.words import WORDS
from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.redaction import HIDDEN
from tsuishi.extras.handover.archives.anonymity import Identity, Scrubber, identity_here, scrubbed
from tsuishi.extras.handover.archives.archive_check import verify_archive
from tsuishi.extras.handover.archives.bundle import unpacked
from tsuishi.extras.handover.archives.member_names import RECORD
from tsuishi.extras.handover.archives.secret_search import Secrets, secrets_here
from tsuishi.results.assurance import OF_ITS_USER
from tsuishi.results.directory import RunDirectory
from tsuishi.results.frames import read_runs
from tsuishi.results.verification import verify

RUN_ID = "20261121-080000-planted"
USER, HOST, SITE = "grace-hopper", "univac-7", "wheels.site.lan"
# Of every form that has an issuer, and one that only this user knows.
SECRET = "plain-but-secret-4711"
FORMS = (
    "ghp_" + "a1B2" * 9, "hf_" + "Zx9" * 10, "AKIA" + "Q7" * 8, "glpat-" + "k" * 22, "pypi-" + "m" * 30,
    "sk-" + "n4" * 16, "xoxb-" + "7" * 14, "AIza" + "p" * 35, "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
)  # fmt: skip


def secret(number: int) -> str:
    """The secret of a place: each place has another, so that the place is known where it is found."""
    return f"{FORMS[number % len(FORMS)]}{number:02}"


class Planting:
    """Forty places with a secret each, and the names of user, host and site."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, around: str = "{}") -> str:
        self.count += 1
        return around.format(f"token {secret(self.count)} of {USER}, see https://{USER}:{SECRET}@{SITE}/simple")


def planted_run(path: Path, plant: Planting) -> RunDirectory:
    """A run with secrets wherever texts of others may stand in it."""
    arguments: dict[str, Any] = {"mirrors": plant(), "data": plant(), "name": plant()}
    left_out = [{"environment": "tf1.13-cu100", "reason": plant()}]
    run = SyntheticRun(path, arguments=arguments, left_out=left_out, tsuishi_version=plant(), engine=plant())
    record = environment(TF) | {
        "title": plant(), "engine_version": plant(), "base": {"reference": plant(), "used": plant(), "digest": plant()},
        "substitutions": [{"asked": plant(), "used": plant()}], "python": plant(), "cuda": plant(), "cudnn": plant(),
        "packages": {"pip": plant()}, "versions": {"tensorflow": plant()}, "variables": [plant()], "sandbox": plant(),
        "image": {"id": plant(), "tag": plant(), "labels": {"a": plant()}, "layers": [plant()]},
        "sbom": {"components": [{"name": plant()}]}, "command_prefix": [plant()],
    }  # fmt: skip
    run.environments[TF] = add_record(run.directory, "environment", record)
    run.machine = add_record(
        run.directory, "machine", {"cpu": {"model": plant()}, "kernel": plant(), "os": plant(),
                                   "gpus": [{"name": plant(), "uuid": "GPU-01234567-89ab-cdef-0123-456789abcdef"}]}
    )  # fmt: skip
    failed: dict[str, Any] = {
        "status": "failed",
        "reason": plant(),
        "command": ["python", plant(f"/home/{USER}/{{}}")],
        "asked": (plant(),),
    }
    name = run.add(conv2d_case(), TF, framework=plant(), device=plant(), energy_source=plant(), **failed,
                   settings={"data": plant()}, reported={"flags": {"path": plant()}, "os": {"name": plant()}},
                   phases=[{"name": "measure", "begin_s": 0.0, "end_s": 1.0}],
                   metrics=[("loss", 1.0, "1")])  # fmt: skip
    log = run.directory.trials / name / "log.txt.gz"
    with gzip.open(log, "wt") as file:
        file.write("first line\n" * 10_000 + plant() + "\n" + "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n"
                   "-----END OPENSSH PRIVATE KEY-----\n" + plant() + "\n")  # fmt: skip
    run.add(conv2d_case(devices=2), TORCH, [("first_run", 0, 1, 840, 0.5)] * 1, framework=plant())
    return listed(run.finish())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".netrc").write_text(f"machine {SITE} login {USER} password netrc-secret-12\n")
    for name, value in {
        "HOME": str(home), "USER": USER, "LOGNAME": USER, "MY_API_TOKEN": "variable-secret-99",
        "HTTPS_PROXY": f"http://{USER}:{SECRET}@{SITE}:3128", "INVOKE_TSUISHI_INDEXES": f"https://{USER}:{SECRET}@{SITE}/",
        "INVOKE_TSUISHI_CACHE": str(tmp_path / "cache"), "INVOKE_TSUISHI_AUTHORS": "Hopper, Grace",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    return tmp_path


def texts(path: Path) -> dict[str, bytes]:
    """Every file of an archive, unpacked where it is packed."""
    return {name: b"".join(unpacked(name, text)) for name, text in files_of(path).items()}


def test_an_archive_without_anonymity_is_refused_where_a_secret_stands(folder: Path) -> None:
    planted_run(folder / "results" / RUN_ID, Planting())
    result = invoke(folder, "archive", "--to", str(folder / "out"))
    assert result.returncode == 1
    assert f"error: runs/{RUN_ID}/" in result.stderr
    assert "holds a secret of this user" in result.stderr
    assert "--anonymous puts [redacted] in its place" in result.stderr
    assert not (folder / "out").exists() or not list((folder / "out").iterdir())


def test_forty_secrets_are_in_no_anonymous_archive(folder: Path) -> None:
    plant = Planting()
    planted_run(folder / "results" / RUN_ID, plant)
    assert plant.count >= 40
    result = invoke(folder, "archive", "--anonymous", "--to", str(folder / "out.zip"))
    assert (result.returncode, result.stderr) == (0, "")
    found = {
        (name, word)
        for name, text in texts(folder / "out.zip").items()
        for word in [*map(secret, range(plant.count + 1)), SECRET, USER, SITE, "GPU-01234567", "b3BlbnNza",
                     "Hopper", str(folder), "netrc-secret-12", "variable-secret-99"]
        if word.encode().lower() in text.lower()
    }  # fmt: skip
    assert found == set()
    checked = verify_archive(folder / "out.zip", WORDS)
    assert (checked.faults, checked.is_verified) == ([], True)
    assert checked.record is not None
    assert checked.record.scrubbed
    names = {file.file.removeprefix(f"runs/{RUN_ID}/").partition("/")[0] for file in checked.record.scrubbed_files}
    assert (
        names == {"run.json", "records", "trials", "trials.csv", "samples.csv", "metrics.csv", "telemetry.csv"} & names
    )
    assert {"run.json", "records", "trials", "trials.csv"} <= names
    assert (
        f"scrubbed: {len(checked.record.scrubbed_files)} files"
        in invoke(folder, "verify", "--archive", str(folder / "out.zip")).stdout
    )


def test_a_run_without_secrets_is_archived_whole_and_twice_the_same(folder: Path) -> None:
    run = SyntheticRun(folder / "results" / RUN_ID)
    run.add(conv2d_case(), TORCH, [("first_run", 0, 1, 840, 0.5)])
    directory = listed(run.finish())
    for name in ("a.zip", "b.zip"):
        result = invoke(folder, "archive", "--to", str(folder / name))
        assert (result.returncode, result.stderr) == (0, "")
    assert (folder / "a.zip").read_bytes() == (folder / "b.zip").read_bytes()
    there = files_of(folder / "a.zip")
    for path in directory.path.rglob("*"):
        if path.is_file() and path.name not in OF_ITS_USER:
            assert there[f"runs/{RUN_ID}/{path.relative_to(directory.path)}"] == path.read_bytes()
    assert b'family-names: "Hopper"' in there["CITATION.cff"]
    assert not json.loads(there[RECORD])["scrubbed"]


def test_what_lies_beside_the_files_of_a_run_is_no_part_of_it(folder: Path) -> None:
    run = SyntheticRun(folder / "results" / RUN_ID)
    run.add(conv2d_case(), TORCH)
    directory = listed(run.finish())
    (directory.path / ".env").write_text(secret(1))
    assert invoke(folder, "archive", "--to", str(folder / "a.zip")).returncode == 1
    assert not (folder / "a.zip").exists()


def identity(**changed: Any) -> Identity:
    given = {"folders": {f"/home/{USER}": "[home]"}, "users": frozenset({USER}), "hosts": frozenset({HOST}),
             "secrets": frozenset({SECRET}), **changed}  # fmt: skip
    return Identity(**given)


@pytest.mark.parametrize(
    ("text", "scrubs_to"),
    [
        (f"/home/{USER}/data/x", "[home]/data/x"),
        ("/home/somebody/data", "[home]/data"),
        ("/Users/somebody/data", "[home]/data"),
        (f"{HOST}: out of memory", "[host]: out of memory"),
        (f"{HOST.upper()}.example.org", "[host].example.org"),
        ("http://10.1.2.3:8080/x", "http://[host]:8080/x"),
        ("http://registry:5000/x", "http://[host]:5000/x"),
        ("https://mirror.corp/simple", "https://[host]/simple"),
        ("ada@example.org wrote", "[mail] wrote"),
        ("GPU-01234567-89ab-cdef-0123-456789abcdef is hot", "[gpu] is hot"),
        (f"password={SECRET}", f"password={HIDDEN}"),
        (f"{SECRET}", HIDDEN),
        (
            "cuDNN 10.3.5.147, torch 2.13.0+cpu, /usr/lib/python3",
            "cuDNN 10.3.5.147, torch 2.13.0+cpu, /usr/lib/python3",
        ),
        ("https://download.example.org/whl", "https://download.example.org/whl"),
        (f"x{USER}x", f"x{USER}x"),
    ],
)
def test_a_text_without_the_identity(text: str, scrubs_to: str) -> None:
    assert Scrubber(identity()).text(text) == scrubs_to


def test_a_scrubbed_run_is_read_as_a_run(tmp_path: Path) -> None:
    plant = Planting()
    run = planted_run(tmp_path / RUN_ID, plant)
    copy, altered = scrubbed(run, tmp_path / "copy" / RUN_ID, Scrubber(identity(hosts=frozenset({HOST, SITE}))), WORDS)
    assert verify(copy, WORDS).faults == ()
    assert {f"trials/{folder.name}/trial.json" for folder in run.finished_folders()} >= {
        name for name in altered if name.endswith("trial.json")
    }
    before, after = (read_runs([which], WORDS).trials for which in (run, copy))
    same = ["trial_id", "case_id", "status", "duration_s"]
    assert before[same].equals(after[same])


def test_a_run_that_names_nobody_is_left_as_it_is(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / RUN_ID)
    run.add(conv2d_case(), TORCH, steady_samples(840, [0.1] * 4))
    _, altered = scrubbed(listed(run.finish()), tmp_path / "copy", Scrubber(identity()), WORDS)
    assert altered == ["run.json"]  # its seal is of a user


def test_a_secret_is_found_across_pieces_and_with_its_line() -> None:
    text = b"a line\n" * 3 + f"the {SECRET} is here".encode()
    for cut in range(1, len(text)):
        assert Secrets([SECRET]).problem_in([text[:cut], text[cut:]]).startswith("line 4 holds a secret of this user")
    assert Secrets([SECRET]).problem_in([text[:30]]) == ""


def test_secrets_are_those_of_variables_files_and_addresses(tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine a login b password from-netrc-1\n")
    (tmp_path / ".config" / "pip").mkdir(parents=True)
    (tmp_path / ".config" / "pip" / "pip.conf").write_text("[global]\nindex-url = https://u:from-pip-12@a/simple\n")
    environ = {"A_TOKEN": "from-variable", "SHORT_TOKEN": "abc", "PATH": "/usr/bin", "P": "http://u:from-proxy@h"}
    found = secrets_here(environ, tmp_path, ["https://u:from-url-1@a"])
    assert {"from-netrc-1", "from-pip-12", "from-variable", "from-proxy", "from-url-1"} <= found
    assert not {"abc", "/usr/bin"} & found


def test_the_names_of_this_machine_and_user_are_looked_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: f"{HOST}.example.org")
    found = identity_here(frozenset(), {}, [f"https://u:p@{SITE}/simple", "registry.site/x"], "a suite of towers")
    assert {USER} <= found.users
    assert {HOST, f"{HOST}.example.org", SITE, "registry.site"} <= found.hosts
    assert str(folder / "home") in found.folders
    assert not identity_here(frozenset(), {}, ["towers/x"], "a suite of towers").hosts & {"towers"}


@pytest.mark.parametrize("length", [0, 5, 40, 3000])
def test_a_log_that_is_broken_off_is_searched_as_far_as_it_goes(length: int) -> None:
    text = "".join(f"line {number} {number * number}\n" for number in range(3000)).encode()
    log = gzip.compress(text)
    assert text.startswith(b"".join(unpacked("log.txt.gz", log[:length])))
    assert b"".join(unpacked("log.txt.gz", log + gzip.compress(b"more"))) == text + b"more"


def test_a_log_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 1 << 20)
    with pytest.raises(UserError, match="more than 1,048,576 bytes are packed in it"):
        list(unpacked("log.txt.gz", gzip.compress(bytes(2 << 20))))
