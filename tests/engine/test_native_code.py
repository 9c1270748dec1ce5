"""What a spec says about its GPU code, against the code in its wheels."""

from pathlib import Path

import pytest

from benchmarks.native_code import code_in, code_in_wheel
from tests.job import REAL
from tsuishi.base.settings import Settings
from tsuishi.environments.builder import Builder
from tsuishi.specs.environment import read_environment

pytestmark = pytest.mark.engine


def capability(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def test_the_wheel_of_pytorch_1_1_holds_the_native_code_its_spec_says(settings: Settings) -> None:
    environment = read_environment(REAL.images / "torch1.1-cu90.toml")
    assert environment.cuda
    wheels = Builder(settings, REAL).fetcher(print).fetch(environment)
    (wheel,) = (path for path in wheels if path.name.startswith("torch-"))
    counted = code_in_wheel(wheel)["torch/lib/libcaffe2_gpu.so"]
    cubins = {one for held, _ in counted for one in held}
    assert (min(cubins, key=capability), max(cubins, key=capability)) == environment.cuda.native
    without_ptx = sum(count for (held, ptx), count in counted.items() if held and not ptx)
    assert 0 < without_ptx < sum(counted.values()), "so a newer GPU finds some kernels, and not others"


def test_a_library_without_gpu_code_has_none(tmp_path: Path) -> None:
    library = tmp_path / "plain.so"
    library.write_bytes(b"\x7fELF" + bytes(1000))
    assert not code_in(library)
