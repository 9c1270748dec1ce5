"""The second kit without an engine: what a new lock is held to, the patch of it, and what the lines say of trials."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu.filled_locks import STATED, filled, known, patch, stated
from benchmarks.gpu.images import unpinned
from benchmarks.gpu.journal import Journal
from benchmarks.gpu.kit_of_images import ENVIRONMENTS, NOT_MADE, ImagesKit
from benchmarks.gpu.steps_of_images import of_trials, ran
from tests.pinned import OTHER, SHA256, environment, pin
from tsuishi.base.checkout import Checkout
from tsuishi.base.settings import Settings
from tsuishi.results.records import TrialRecord
from tsuishi.specs.debian import Deb
from tsuishi.specs.environment import Environment, read_environment, read_environments
from tsuishi.specs.lock import Pin

DIGEST = f"sha256:{OTHER}"


def based(made: Environment, digest: str = DIGEST) -> Environment:
    assert made.base is not None
    return made.model_copy(update={"base": made.base.model_copy(update={"digest": digest})})


def opened(*sha256: str, name: str = "tiny", version: str = "1.0") -> Pin:
    return Pin(name, version, sha256)


def test_a_lock_with_an_open_hash_or_a_base_without_digest_is_not_filled() -> None:
    before = environment((opened(),))
    assert filled(before, based(environment((pin(),)))).text == (
        f"lock of env: 1 open hashes before, 0 after, the base's digest {DIGEST}; expected 0 and a digest: pass"
    )
    assert filled(before, environment((pin(),))).text == (
        "lock of env: FAIL: 1 open hashes before, 0 after, the base's digest unknown; expected 0 and a digest"
    )
    assert filled(before, based(before)).outcome == "FAIL"


def test_what_was_known_may_get_company_and_nothing_else() -> None:
    deb = Deb("jq", "1.6-1", SHA256)
    before = based(environment((pin(SHA256, OTHER),), debs=(deb, Deb("libjq1", "", ""))))
    more = (pin(SHA256), opened(OTHER, name="other"))
    assert known(before, based(environment(more, debs=(deb, Deb("libjq1", "1.6-1", OTHER))))).outcome == "pass"
    changed = based(environment((opened(OTHER, version="1.1"),), debs=(Deb("jq", "1.6-1", OTHER),)), f"sha256:{SHA256}")
    assert known(before, changed).text == (
        f"what was known of env: FAIL: 3 of 3 changed; tiny 1.0 {SHA256} or {OTHER} before, 1.1 {OTHER} after; "
        f"deb jq 1.6-1 {SHA256} before, 1.6-1 {OTHER} after; "
        f"base docker.io/library/python:3.6 {DIGEST} before, docker.io/library/python:3.6 sha256:{SHA256} after; "
        "expected 0"
    )
    gone = known(before, based(environment((pin(),))))
    assert gone.words == f"1 of 3 changed; deb jq 1.6-1 {SHA256} before, nothing after; expected 0"


def test_a_hash_that_somebody_states_is_to_be_that_of_the_lock() -> None:
    hashes = {("env", "tiny"): SHA256, ("another", "tiny"): OTHER}
    (agrees,) = stated(environment((pin(),)), hashes)
    assert agrees.text == f"stated hash of tiny in env: {SHA256}, expected {SHA256}: pass"
    (differs,) = stated(environment((pin(OTHER),)), hashes)
    assert differs.text == f"stated hash of tiny in env: FAIL: {OTHER}, expected {SHA256}"
    (missing,) = stated(environment(()), hashes)
    assert missing.outcome == "FAIL"


def test_the_stated_hashes_are_those_of_the_specs() -> None:
    for (name, package), sha256 in STATED.items():
        spec = read_environment(Checkout().images / f"{name}.toml")
        assert sha256 in spec.origins
        assert package in {each.name for each in spec.pins}


def test_every_environment_with_an_open_lock_is_in_the_kit_or_has_a_reason() -> None:
    environments = read_environments(Checkout().images)
    still_open = {each.name for each in environments if each.open}
    assert still_open <= {*ENVIRONMENTS, *NOT_MADE}
    assert still_open >= {*NOT_MADE}
    without = {each.name for each in environments if each.base and not each.base.digest}
    assert without <= {*ENVIRONMENTS, *unpinned(Checkout())}
    assert not set(ENVIRONMENTS) & set(unpinned(Checkout()))


@pytest.mark.parametrize("end", ["\n", ""])
def test_git_makes_of_the_files_before_the_files_after(tmp_path: Path, end: str) -> None:
    before = {"images/a.toml": f"title\n\ndigest = 0{end}", "images/b.lock": "same\n"}
    after = {"images/a.toml": f"title\n\ndigest = 1{end}", "images/b.lock": "same\n", "images/a.lock": f"new{end}"}
    for path, text in before.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    made = patch(before, after)
    subprocess.run(["git", "apply"], input=made, cwd=tmp_path, text=True, check=True)
    assert {path: (tmp_path / path).read_text(encoding="utf-8") for path in after} == after
    assert "b.lock" not in made
    assert patch(after, after) == ""


def trial(status: str, reason: str | None = None) -> TrialRecord:
    fields = {
        "case_id": "0" * 12,
        "case_record": f"case-{'0' * 12}",
        "environment": "env",
        "repetition": 1,
        "attempt": 1,
    }
    return TrialRecord.model_validate({"trial_id": "a", **fields, "status": status, "reason": reason})


def test_a_suite_passes_with_findings_of_which_some_are_times() -> None:
    held = of_trials("s in env", [trial("ok"), trial("unsupported", "no such device"), trial("ok")])
    assert held.text == "s in env: 2 ok, 1 unsupported; expected some ok and none failed: pass"
    failed = of_trials("s in env", [trial("ok"), trial("failed", "no kernel image"), trial("unsupported", "no")])
    assert failed.text == (
        "s in env: FAIL: 1 ok, 1 failed, 1 unsupported (no kernel image); expected some ok and none failed"
    )
    none = of_trials("s in env", [trial("unsupported", "2 GPUs are needed")])
    assert none.text == "s in env: not here: 1 unsupported: 2 GPUs are needed"
    assert of_trials("s in env", []).outcome == "FAIL"


def test_suites_are_not_run_where_the_card_does_not_run_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    settings = Settings(engine="docker", cache=tmp_path / "cache", results=tmp_path / "results")
    kit = ImagesKit(Journal(tmp_path / "kit"), settings, "cuda")
    (line,) = ran(kit, "torch1.1-cu100")
    assert line.outcome == "not here"
    assert line.what == "suites in torch1.1-cu100"
    assert line.words.startswith("no GPU here (")


def test_without_an_engine_every_line_says_so_and_nothing_is_asked_of_any_server(tmp_path: Path) -> None:
    folder = tmp_path / "kit"
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", "--images", "--dry", "--folder", str(folder)],
        cwd=Checkout().root,
        env={**os.environ, "DOCKER_HOST": "unix:///nonexistent/docker.sock", "INVOKE_TSUISHI_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = [json.loads(text) for text in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {each["outcome"] for each in lines} == {"not here"}
    assert {each["step"] for each in lines} == {1, 2, 3, 4, 5}
    assert all(re.match("no container engine: ", each["words"]) for each in lines[:-1]), lines
    assert len(lines) == 4 * len(ENVIRONMENTS) + len(unpinned(Checkout())) + 1
    assert {path.name for path in folder.iterdir()} == {"log.txt", "results.jsonl", "summary.md"}
