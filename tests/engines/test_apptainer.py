"""Apptainer's commands as they would be run, and its SIF files; no machine of these tests has the program itself."""

import json
import os
import stat
from pathlib import Path

import pytest

from tests.pinned import environment
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.engines.apptainer import ApptainerEngine, SifMark, command
from tsuishi.engines.interface import Built, Launch, ResourceLimits
from tsuishi.machine.gpus import Gpu

SIF = Path("/cache/apptainer/env-0123.sif")
BUILT = Built(environment(()), "apptainer", "apptainer version 1.3.4", "0123", "sha256:1", ("python",))


def launch(gpus: tuple[Gpu, ...] = (), network: dict[str, str] | None = None) -> Launch:
    limits = ResourceLimits(gpus=gpus)
    return Launch(("-u", "/workloads/run.py", "{}"), {Path("/here/w"): "/workloads"}, "name", {}, limits, network)


def test_a_trial_on_a_cpu_has_no_network_no_home_and_no_variables_of_the_user() -> None:
    assert command("/usr/bin/apptainer", SIF, BUILT, launch()) == [
        "/usr/bin/apptainer",
        "exec",
        "--containall",
        "--no-eval",
        "--no-privs",
        "--pwd=/",
        "--net",
        "--network=none",
        "--bind=/here/w:/workloads:ro",
        "--env=PYTHONDONTWRITEBYTECODE=1",
        "--env=PYTHONUNBUFFERED=1",
        "--env=LANG=C.UTF-8",
        str(SIF),
        "python",
        "-u",
        "/workloads/run.py",
        "{}",
    ]


def test_gpus_are_passed_by_nv_and_named_by_their_uuids() -> None:
    words = command("apptainer", SIF, BUILT, launch((Gpu(0, "GPU-1"), Gpu(3, "GPU-4"))))
    assert "--nv" in words
    assert "--env=CUDA_VISIBLE_DEVICES=GPU-1,GPU-4" in words
    assert "--env=CUDA_DEVICE_ORDER=PCI_BUS_ID" in words
    assert words.index("--network=none") < words.index(str(SIF))


def test_only_a_trial_over_several_nodes_keeps_the_network_of_its_node() -> None:
    words = command("apptainer", SIF, BUILT, launch(network={"GLOO_SOCKET_IFNAME": "ib0"}))
    assert "--net" not in words
    assert "--network=none" not in words
    assert "--env=GLOO_SOCKET_IFNAME=ib0" in words
    assert "--containall" in words


def program(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a shell script in the place of the program."""
    file = folder / "bin" / "apptainer"
    file.parent.mkdir()
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{file.parent}:{os.environ['PATH']}")


def test_a_sif_is_found_by_its_spec_with_the_id_of_its_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = tmp_path / "said"
    program(tmp_path, f'echo "$@" >> {said}; [ "$1" = build ] && cp "${{3#oci-archive:}}" "$2"', monkeypatch)
    engine, asked = ApptainerEngine(Checkout().dockerfile, tmp_path / "cache"), environment(())
    assert engine.find(asked) is None
    assert engine.refusal(asked).startswith("it has no SIF here: `invoke export --env env` where there is Docker")
    sif = engine.take(asked, SifMark(realised_id="sha256:2", details={"image": {"id": "sha256:2"}}), iter([b"a", b"b"]))
    assert sif.read_bytes() == b"ab"
    assert said.read_text().split()[0] == "build"
    found = engine.find(asked)
    assert found is not None
    assert (found.realised_id, found.spec_id) == ("sha256:2", engine.spec_id(asked))
    assert engine.refusal(asked) == ""
    assert [path.name for path in sif.parent.iterdir() if path.name.startswith(".")] == []
    sif.with_suffix(".json").write_text(json.dumps({"realised_id": 1}))
    assert engine.find(asked) is None


def test_a_build_that_fails_leaves_no_sif(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, 'echo "FATAL: no space" >&2; exit 255', monkeypatch)
    engine = ApptainerEngine(Checkout().dockerfile, tmp_path / "cache")
    with pytest.raises(UserError, match=r"^apptainer makes no SIF of it: FATAL: no space$"):
        engine.take(environment(()), SifMark(realised_id="sha256:2", details={}), iter([b"a"]))
    assert [*(tmp_path / "cache" / "apptainer").iterdir()] == []


def test_without_the_program_the_engine_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    availability = ApptainerEngine(Checkout().dockerfile, tmp_path).availability()
    assert (availability.usable, availability.reason) == (False, "no apptainer in PATH")
