"""The environment whose CUDA libraries come out of wheels, as an image: TensorFlow 1.13.1 finds them, and no GPU."""

import docker
import pytest

from tests.job import REAL
from tsuishi.base.settings import Settings
from tsuishi.environments.builder import Builder
from tsuishi.environments.entry import Ready
from tsuishi.specs.environment import read_environment

pytestmark = pytest.mark.engine

FOLDER = "/opt/environment/lib/python3.6/site-packages/tensorflow"


@pytest.fixture(scope="module")
def ready(settings: Settings) -> Ready:
    builder = Builder(settings, REAL)
    return builder.ensure(read_environment(REAL.images / "tf1.13-cu100-wheels.toml"), print)


def said(ready: Ready, program: str) -> str:
    """What a program in the environment writes, with its exit code."""
    client = docker.from_env()
    command = ["sh", "-c", 'python -c "$0"; echo "exit code $?"', program]
    output = client.containers.run(ready.built.realised_id, command, remove=True, stderr=True, network_mode="none")
    client.close()
    return bytes(output).decode()


def test_tensorflow_reports_the_cuda_and_cudnn_beside_it(ready: Ready) -> None:
    assert (ready.record.cuda, ready.record.cudnn) == ("10.0", "7.5.0")
    assert ready.record.versions == {"tensorflow": "1.13.1", "numpy": "1.16.6", "scipy": "1.2.3"}
    assert not ready.record.cuda_usable
    assert [(change.asked, change.used) for change in ready.record.substitutions or []][-1] == (
        "libcusolver.so.10.0",
        "a generated library (linear algebra of cuSOLVER is not in this environment)",
    )
    assert not {"cupy-cuda100", "cntk-gpu"} & (ready.record.packages or {}).keys()


def test_without_a_driver_there_is_no_gpu_and_no_error(ready: Ready) -> None:
    program = "import tensorflow as tf; print(tf.test.is_gpu_available(), tf.Session().run(tf.constant(7)))"
    assert said(ready, program).endswith("False 7\nexit code 0\n")
    assert said(ready, "import ctypes; print(ctypes.CDLL('libcuda.so.1').cuInit(0))") == "100\nexit code 0\n"


def test_what_calls_cusolver_ends_with_a_line(ready: Ready) -> None:
    program = f"import ctypes; ctypes.CDLL('{FOLDER}/libcusolver.so.10.0').cusolverDnCreate(0); print('went on')"
    line = "libcusolver.so.10.0: linear algebra of cuSOLVER is not in this environment"
    assert said(ready, program) == f"{line}\nexit code 1\n"


def test_the_bill_of_materials_says_where_each_library_is_from(ready: Ready) -> None:
    components = {each["name"]: each for each in (ready.record.sbom or {})["components"] if each["type"] == "file"}
    origins = {name: each["properties"][-1]["value"] for name, each in components.items()}
    assert origins["libcudnn.so.7"] == "pkg:pypi/cupy-cuda100@6.0.0"
    assert origins["libcublas.so.10.0"] == "pkg:pypi/cntk-gpu@2.7.post1"
    assert origins["libcusolver.so.10.0"] == "libcusolver.so.10.0"
    assert components["libcusolver.so.10.0"]["properties"][0]["value"].startswith("linear algebra of cuSOLVER is not")
