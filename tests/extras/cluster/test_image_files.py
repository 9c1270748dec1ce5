"""The commands of Apptainer and pyxis as they would be run, and their images; tests have neither program."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from tests.pinned import environment
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.engines.interface import Built, Launch, ResourceLimits
from tsuishi.extras.cluster.apptainer import ApptainerEngine
from tsuishi.extras.cluster.image_files import ImageMark
from tsuishi.extras.cluster.pyxis import PyxisEngine
from tsuishi.machine.gpus import Gpu

GPUS = (Gpu(0, "GPU-1"), Gpu(3, "GPU-4"))
HELP = "--container-image=PATH --container-unshare=NS"


def launch(gpus: tuple[Gpu, ...] = (), network: dict[str, str] | None = None) -> Launch:
    limits = ResourceLimits(gpus=gpus)
    return Launch(("-u", "/workloads/run.py", "{}"), {Path("/here/w"): "/workloads"}, "name", {}, limits, network)


def built(engine: str) -> Built:
    return Built(environment(()), engine, "1.3.4", "0123", "sha256:1", ("python",))


def program(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch, name: str = "apptainer") -> None:
    """Put a shell script in the place of a program."""
    file = folder / "bin" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{file.parent}:{os.environ['PATH']}")


@pytest.fixture
def apptainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ApptainerEngine:
    program(tmp_path, "echo apptainer version 1.3.4", monkeypatch)
    return ApptainerEngine(Checkout().dockerfile, tmp_path)


@pytest.fixture
def pyxis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PyxisEngine:
    for name in [name for name in os.environ if name.startswith("SLURM")]:
        monkeypatch.delenv(name)
    program(tmp_path, f'[ "$1" = --version ] && echo slurm 24.05 || echo "{HELP}"', monkeypatch, "srun")
    return PyxisEngine(Checkout().dockerfile, tmp_path, lambda: ["--partition=a"])


def test_a_trial_in_a_sif_has_no_network_no_home_and_no_variables_of_the_user(apptainer: ApptainerEngine) -> None:
    assert apptainer.command(built("apptainer"), launch()) == [
        shutil.which("apptainer"),
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
        str(apptainer.image(environment(()))),
        "python",
        "-u",
        "/workloads/run.py",
        "{}",
    ]


def test_apptainer_gets_gpus_by_nv_and_by_their_uuids(apptainer: ApptainerEngine) -> None:
    words = apptainer.command(built("apptainer"), launch(GPUS))
    assert "--nv" in words
    assert "--env=CUDA_VISIBLE_DEVICES=GPU-1,GPU-4" in words
    assert "--env=CUDA_DEVICE_ORDER=PCI_BUS_ID" in words
    assert words.index("--network=none") < words.index("python")


def test_only_a_trial_over_several_nodes_keeps_the_network_of_its_node(
    apptainer: ApptainerEngine, pyxis: PyxisEngine
) -> None:
    words = apptainer.command(built("apptainer"), launch(network={"GLOO_SOCKET_IFNAME": "ib0"}))
    assert "--net" not in words
    assert "--network=none" not in words
    assert "--env=GLOO_SOCKET_IFNAME=ib0" in words
    assert "--containall" in words
    words = pyxis.command(built("pyxis"), launch(network={"GLOO_SOCKET_IFNAME": "ib0"}))
    assert "--container-unshare=net" not in words
    assert "GLOO_SOCKET_IFNAME=ib0" in words


def test_a_trial_by_pyxis_is_a_step_of_its_job_and_a_question_elsewhere_a_job_of_its_own(
    pyxis: PyxisEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    alike = [
        "--nodes=1",
        "--ntasks=1",
        "--cpu-bind=none",
        "--unbuffered",
        "--quiet",
        "--export=NONE",
        f"--container-image={pyxis.image(environment(()))}",
        "--container-mounts=/here/w:/workloads:ro",
        "--container-workdir=/",
        "--container-readonly",
        "--no-container-mount-home",
        "--no-container-remap-root",
        "--no-container-entrypoint",
        "--container-unshare=net",
        "/usr/bin/env",
        "PYTHONDONTWRITEBYTECODE=1",
        "PYTHONUNBUFFERED=1",
        "LANG=C.UTF-8",
        "python",
        "-u",
        "/workloads/run.py",
        "{}",
    ]
    asked = pyxis.command(built("pyxis"), launch())
    assert asked == ["/usr/bin/env", "srun", "--time=15", "--partition=a", *alike]
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    step = pyxis.command(built("pyxis"), launch())
    assert step == ["/usr/bin/env", "srun", "--overlap", "--mem=0", "--nodelist=n1", *alike]
    assert pyxis.own_variables()["SLURM_JOB_ID"] == "7"
    assert "PYTHONPATH" not in pyxis.own_variables()


def test_programs_by_pyxis_get_the_variables_of_the_image(pyxis: PyxisEngine) -> None:
    mark = ImageMark(realised_id="sha256:1", details={}, variables={"PATH": "/opt/environment/bin:/usr/bin"})
    file = pyxis.image(environment(())).with_suffix(".json")
    file.parent.mkdir(parents=True)
    file.write_text(mark.model_dump_json())
    words = pyxis.command(built("pyxis"), launch())
    assert words.index("PATH=/opt/environment/bin:/usr/bin") > words.index("--container-unshare=net")


def test_pyxis_gets_gpus_by_their_uuids(pyxis: PyxisEngine) -> None:
    words = pyxis.command(built("pyxis"), launch(GPUS))
    assert words[:4] == [
        "/usr/bin/env",
        "NVIDIA_VISIBLE_DEVICES=GPU-1,GPU-4",
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        "srun",
    ]
    assert "--export=NVIDIA_VISIBLE_DEVICES,NVIDIA_DRIVER_CAPABILITIES" in words
    assert "CUDA_VISIBLE_DEVICES=GPU-1,GPU-4" in words[words.index("--container-unshare=net") :]


def test_a_slurm_without_pyxis_or_with_an_old_one_is_refused(
    pyxis: PyxisEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reason() -> str:
        availability = PyxisEngine(Checkout().dockerfile, tmp_path, list).availability()
        return "" if availability.usable else availability.reason

    assert pyxis.availability().version == "slurm 24.05"
    program(tmp_path, "echo --container-image", monkeypatch, "srun")
    assert reason() == "pyxis has no --container-unshare, so a trial would have the network of its node"
    program(tmp_path, "echo --partition", monkeypatch, "srun")
    assert reason() == "srun has no --container-image"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert reason() == "no srun in PATH"


def test_a_sif_is_found_by_its_spec_with_the_id_of_its_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = tmp_path / "said"
    program(tmp_path, f'echo "$@" >> {said}; [ "$1" = build ] && cp "${{3#docker-archive:}}" "$2"', monkeypatch)
    engine, asked = ApptainerEngine(Checkout().dockerfile, tmp_path / "cache"), environment(())
    assert engine.find(asked) is None
    assert engine.refusal(asked).startswith("it has no image here: `invoke export --env env` where there is Docker")
    assert "then `invoke import --engine apptainer --archive" in engine.refusal(asked)
    (tmp_path / "image.tar").write_bytes(b"ab")
    sif = engine.take(asked, "sha256:2", {"image": {"id": "sha256:2"}}, tmp_path / "image.tar")
    assert sif.read_bytes() == b"ab"
    assert said.read_text().split()[:2] == ["--version", "build"]
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
    with pytest.raises(UserError, match=r"^apptainer cannot make a SIF of the image: FATAL: no space$"):
        engine.take(environment(()), "sha256:2", {}, tmp_path)
    assert [*(tmp_path / "cache" / "apptainer").iterdir()] == []


def test_without_the_program_the_engine_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    availability = ApptainerEngine(Checkout().dockerfile, tmp_path).availability()
    assert (availability.usable, availability.reason) == (False, "no apptainer in PATH")
