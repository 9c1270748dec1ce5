"""What `invoke doctor` says about environments on a machine with a GPU, and on one without."""

import io
from pathlib import Path

from rich.console import Console

from tests.machine.test_compatibility import Machine
from tests.run.test_sampler import NoGpus
from tsuishi.base.checkout import Checkout
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.environments import doctor
from tsuishi.environments.builder import Builder
from tsuishi.machine.gpus import Nvml


def examined(tmp_path: Path, nvml: Nvml) -> dict[str, str]:
    """The line about each environment, by name, without its state's padding."""
    out = io.StringIO()
    screen = Screen(Console(file=out, width=1000, highlight=False))
    builder = Builder(Settings(cache=tmp_path, engine="venv"), Checkout())
    doctor.examine(builder, nvml, screen)
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    return {line.split()[2].rstrip(":"): line for line in lines if line.split()[1] == "environment"}


def test_each_environment_is_told_with_what_this_gpu_makes_of_it(tmp_path: Path) -> None:
    told = examined(tmp_path, Machine("GeForce RTX 4090"))
    assert told["torch1.1-cu90"].startswith(
        "refused environment torch1.1-cu90: NVIDIA GeForce RTX 4090 is compute capability 8.9 (Ada); torch1.1-cu90 "
    )
    assert told["torch2-cuda"] == "ok environment torch2-cuda: would compute on the GPU"
    assert told["torch2-cpu"] == "ok environment torch2-cpu: would compute on the CPU: it is made for the CPU"
    assert told["torch1.1-cu100"].startswith("open environment torch1.1-cu100: not known yet: torch==1.1.0, ")


def test_without_a_gpu_all_that_can_be_built_computes_on_the_cpu(tmp_path: Path) -> None:
    told = examined(tmp_path, NoGpus())
    assert told["torch2-cuda"] == (
        "ok environment torch2-cuda: would compute on the CPU: no GPU here (none in this test)"
    )
    assert not [line for line in told.values() if line.startswith("refused")]
