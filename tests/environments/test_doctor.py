"""What `invoke doctor` says about environments on a machine with a GPU, and on one without."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from tests.machine.test_compatibility import Machine
from tests.run.test_sampler import NoGpus
from tests.sessions import seeing
from tsuishi.base.checkout import Checkout
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.commands import listing
from tsuishi.engines import sandbox
from tsuishi.environments import doctor
from tsuishi.environments.builder import Builder
from tsuishi.machine.gpus import Nvml
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session


def examined(tmp_path: Path, nvml: Nvml) -> dict[str, str]:
    """The line about each environment, by name, without its state's padding."""
    out = io.StringIO()
    screen = Screen(Console(file=out, width=1000, highlight=False, soft_wrap=True))
    builder = Builder(Settings(cache=tmp_path, engine="venv"), Checkout())
    doctor.examine(builder, nvml, screen, every=True)
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    return {line.split()[2].rstrip(":"): line for line in lines if line.split()[1] == "environment"}


@pytest.mark.long
def test_each_environment_is_told_with_what_this_gpu_makes_of_it(tmp_path: Path) -> None:
    told = examined(tmp_path, Machine("GeForce RTX 4090"))
    assert told["torch1.1-cu90"].startswith(
        "refused environment torch1.1-cu90: NVIDIA GeForce RTX 4090 is compute capability 8.9 (Ada); torch1.1-cu90 "
    )
    assert told["torch2-cuda"] == "ok environment torch2-cuda: would compute on the GPU"
    assert told["torch2-cpu"] == "ok environment torch2-cpu: would compute on the CPU: it is made for the CPU"
    assert told["torch1.1-cu100"].startswith("open environment torch1.1-cu100: not known yet: torch==1.1.0, ")


def test_an_environment_for_another_machine_says_so_whatever_gpu_is_here(tmp_path: Path) -> None:
    for nvml in (Machine("GeForce RTX 4090"), NoGpus()):
        assert examined(tmp_path, nvml)["tf2-cpu-aarch64"] == (
            "refused environment tf2-cpu-aarch64: its lock holds aarch64 packages, and this machine is x86_64"
        )


def test_a_library_that_an_environment_cannot_have_is_named(tmp_path: Path) -> None:
    said = examined(tmp_path, Machine("GeForce RTX 2080 Ti"))["tf1.13-cu100-wheels"]
    assert said == (
        "ok environment tf1.13-cu100-wheels: would compute on the GPU; a generated library (linear algebra of "
        "cuSOLVER is not in this environment) stands in for libcusolver.so.10.0"
    )


def test_of_a_gpu_of_amd_the_doctor_says_what_is_not_done_on_it(tmp_path: Path) -> None:
    for card, vendor in (("card0", "0x10de"), ("card1", "0x1002")):
        device = tmp_path / card / "device"
        device.mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n", encoding="utf-8")
    (check,) = doctor._amd_gpus(tmp_path)
    assert check.subject == "GPU of AMD (card1)"
    assert check.state.startswith("tsuishi does not measure on it: no environment holds code for ROCm")
    assert check.remedy == "everything runs on the CPU, or on GPUs of NVIDIA"


def test_without_a_gpu_all_that_can_be_built_computes_on_the_cpu(tmp_path: Path) -> None:
    told = examined(tmp_path, NoGpus())
    assert told["torch2-cuda"] == (
        "ok environment torch2-cuda: would compute on the CPU: no GPU here (none in this test)"
    )
    refused = {name for name, line in told.items() if line.startswith("refused")}
    assert refused == {name for name in told if name.endswith("-aarch64") and not told[name].startswith("open")}


def conclusion(tmp_path: Path, nvml: Nvml) -> list[str]:
    out = io.StringIO()
    screen = Screen(Console(file=out, width=1000, highlight=False, soft_wrap=True))
    session = Session(Settings(cache=tmp_path, engine="venv"), Choice(), screen, Checkout())
    listing.show_conclusion(seeing(session, nvml=nvml))
    return out.getvalue().splitlines()


def test_the_conclusion_names_the_environments_of_the_main_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It named all that are defaults, of which a run takes the oldest and the newest of each framework."""
    monkeypatch.setattr(sandbox, "why_none", lambda python: "none")  # in a sandbox CUDA needs a file of the device
    counts, main = conclusion(tmp_path, NoGpus())
    assert re.fullmatch(r"\d+ of \d+ environments can be made and used here: `invoke list`", counts)
    names = {*main.removeprefix("the main job takes of ").partition(":")[0].split(", ")}
    assert names <= {"torch1.1-cu90", "torch2-cpu", "tf1.13-cpu", "tf2-cpu"}
    _, main = conclusion(tmp_path, Machine("GeForce RTX 4090"))
    assert main == "the main job takes of tf2-cuda, torch1.13-cu117, torch2-cuda: `invoke build run-suite report`"
