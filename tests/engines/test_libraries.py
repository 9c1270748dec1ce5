"""Libraries beside packages: files out of wheels that are not installed, and generated libraries that stand in."""

import ctypes
import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.bench import REAL
from tests.engine.conftest import add_to_cache
from tests.tiny_venv import PYTHON, tiny_checkout
from tsuishi.base.errors import BuildError, UserError
from tsuishi.base.files import sha256_of
from tsuishi.engines import library_wheel
from tsuishi.engines.stand_in_library import stand_in
from tsuishi.environments.build_plan import plan_builds
from tsuishi.environments.builder import Builder
from tsuishi.environments.sbom import bill_of_materials
from tsuishi.machine.history import History
from tsuishi.results.facts import Facts
from tsuishi.specs.environment import Environment, read_environment

NAMES = [f"function_{number}" for number in range(60)]
CONTENT = b"a library"
WHY = "linear algebra is not in this environment"


def library(folder: Path, name: str = "libthing.so.10.0", **given: Any) -> Path:
    path = folder / name
    path.write_bytes(stand_in(name, NAMES, **{"versioned": True, "returns": None, "why": WHY, **given}))
    return path


def test_every_function_returns_the_code(tmp_path: Path) -> None:
    loaded = ctypes.CDLL(str(library(tmp_path, "libreturns.so.1", versioned=False, returns=100)))
    assert {loaded[name](1, 2, 3) for name in NAMES} == {100}
    with pytest.raises(AttributeError):
        loaded["another_function"]


def test_a_function_ends_the_process_with_a_line(tmp_path: Path) -> None:
    call = f"import ctypes; ctypes.CDLL({str(library(tmp_path))!r}).function_59(); print('went on')"
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"libthing.so.10.0: {WHY}\n")


def test_functions_have_the_version_that_a_linked_program_asks_for(tmp_path: Path) -> None:
    handle = ctypes.CDLL(str(library(tmp_path)))._handle
    find = ctypes.CDLL(None).dlvsym
    find.restype, find.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    assert all(find(handle, name.encode(), b"libthing.so.10.0") for name in NAMES)
    assert not find(handle, b"function_1", b"libthing.so.9.0")


def test_what_is_linked_with_the_name_finds_a_library_that_is_loaded_already(tmp_path: Path) -> None:
    library(tmp_path, "libneeds_this.so.1", versioned=False, returns=7)
    call = f"""if True:
        import ctypes
        ctypes.CDLL({str(tmp_path / "libneeds_this.so.1")!r})
        print(ctypes.CDLL("libneeds_this.so.1").function_0())"""
    assert subprocess.run([sys.executable, "-c", call], capture_output=True, check=True).stdout == b"7\n"


def carrier(folder: Path) -> Path:
    """A wheel that pip would refuse, as the version in it is another."""
    path = folder / "carrier-2.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in (
            ("carrier/libs/libreal.so.7", CONTENT),
            ("carrier/__init__.py", b"raise SystemExit('nobody imports this')"),
            ("carrier-2.0.dist-info/METADATA", b"Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\n"),
        ):
            wheel.writestr(zipfile.ZipInfo(name), content)
    return path


def with_libraries(root: Path, **changed: str) -> tuple[Builder, Environment]:
    """The environment `tiny` with a library of a carrier, and two stand-ins."""
    checkout, settings = tiny_checkout(root)
    wheel = carrier(root)
    add_to_cache(settings.cache, wheel)
    given = {
        "member": "carrier/libs/libreal.so.7",
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "file": wheel.name,
        **changed,
    }
    spec = checkout.images / "tiny.toml"
    spec.write_text(
        spec.read_text()
        + f"""
[libraries]
into = "tiny"
[libraries.carriers.carrier]
version = "2.0"
file = "{given["file"]}"
sha256 = "{sha256_of(wheel)}"
size_bytes = {wheel.stat().st_size}
takes."{given["member"]}" = "{given["sha256"]}"
[libraries.stand_ins."libmissing.so.1"]
why = "{WHY}"
symbols = ["one", "two"]
[libraries.stand_ins."libdriver_of_nobody.so.1"]
why = "there is no driver"
only_without = true
returns = 100
symbols = ["start"]
"""
    )
    return Builder(settings, checkout), read_environment(spec)


def test_an_environment_has_libraries_of_a_wheel_that_is_not_installed(tmp_path: Path) -> None:
    builder, environment = with_libraries(tmp_path)
    ready = builder.ensure(environment, print)
    python = Path(ready.built.python[0])
    site = python.parent.parent / f"lib/python{PYTHON}/site-packages"
    assert (site / "tiny" / "libreal.so.7").read_bytes() == CONTENT
    assert not (site / "carrier").exists()
    call = "import ctypes; print(ctypes.CDLL('libdriver_of_nobody.so.1').start())"
    assert subprocess.run([python, "-I", "-c", call], capture_output=True, check=True).stdout == b"100\n"
    said = [(change.asked, change.used) for change in (ready.record.substitutions or [])[1:]]
    assert said == [("libmissing.so.1", f"a generated library ({WHY})")], "the machine's driver is used where it is"
    assert builder.find(environment), "all files are those of a package"
    assert builder.reports.find("tiny", ready.built)
    other, same = with_libraries(tmp_path / "again")
    assert other.ensure(same, print).built.realised_id == ready.built.realised_id


def test_the_bill_of_materials_names_each_library_with_its_origin(tmp_path: Path) -> None:
    builder, environment = with_libraries(tmp_path)
    ready = builder.ensure(environment, print)
    base = {"reference": "a/b:1", "used": "a/b:1", "digest": "unpinned", "image_id": "sha256:" + "1" * 64}
    built = ready.built.__class__(environment, "docker", "25.0", "5" * 16, "sha256:1", ("python",), {"base": base})
    found = {one["name"]: one for one in bill_of_materials(built, Facts(python="3.11.7"))["components"]}
    assert found["libreal.so.7"]["properties"] == [{"name": "tsuishi:taken_from", "value": "pkg:pypi/carrier@2.0"}]
    assert found["libreal.so.7"]["hashes"][0]["content"] == hashlib.sha256(CONTENT).hexdigest()
    assert {"name": "tsuishi:missing", "value": WHY} in found["libmissing.so.1"]["properties"]


def test_a_carrier_is_an_artefact_of_the_environment(tmp_path: Path) -> None:
    """It is fetched, counted in plans, missing where it is missing, and part of the lock."""
    builder, environment = with_libraries(tmp_path)
    (planned,) = plan_builds(builder, [environment], History(tmp_path / "history", "machine"))
    assert planned.downloads == 0
    whole = planned.disk_bytes
    assert environment.fetched[-1].name == "carrier"
    assert environment.lock_sha256 != environment.model_copy(update={"libraries": None}).lock_sha256
    shutil.rmtree(builder.settings.cache / "artifacts" / environment.fetched[-1].sha256[0])
    assert builder.missing(environment) == ["carrier==2.0"]
    (planned,) = plan_builds(builder, [environment], History(tmp_path / "history", "machine"))
    assert (planned.downloads, planned.disk_bytes) == (1, whole)
    with pytest.raises(UserError, match=r"offline, and not in the cache are, of \S+: carrier==2\.0: "):
        builder.ensure(environment, print)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"member": "carrier/libs/libother.so.7"}, "carrier-2.0-py3-none-any.whl has no carrier/libs/libother.so.7"),
        ({"sha256": "0" * 64}, "carrier/libs/libreal.so.7 of carrier-2.0-py3-none-any.whl is another file: "),
    ],
)
def test_a_library_that_is_not_as_specified_is_not_installed(
    tmp_path: Path, changed: dict[str, str], said: str
) -> None:
    builder, environment = with_libraries(tmp_path, **changed)
    with pytest.raises(BuildError, match=said):
        builder.ensure(environment, print)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"file": "carrier-3.0-py3-none-any.whl"}, "is no name of a wheel or an sdist of carrier 2.0"),
        ({"file": "carrier-2.0.tar.gz"}, "'carrier': expected a wheel"),
        ({"member": "carrier/libs/libmissing.so.1"}, "'libmissing.so.1': expected the name of a library, once"),
        ({"member": "../../etc/passwd"}, "is no path below a folder"),
        ({"member": "/etc/passwd"}, "is no path below a folder"),
    ],
)
def test_a_specification_names_a_wheel_and_files_in_it(tmp_path: Path, changed: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        with_libraries(tmp_path, **changed)


def test_tensorflow_of_2019_finds_the_libraries_beside_it(tmp_path: Path) -> None:
    """The wheel of its libraries, as a build has it: what TensorFlow is linked with is in the folder of its RPATH."""
    environment = read_environment(REAL.images / "tf1.13-cu100-wheels.toml")
    assert environment.libraries
    assert environment.libraries.into == "tensorflow"
    names = {member.rpartition("/")[2] for each in environment.libraries.carriers.values() for member in each.takes}
    linked = {"libcudart.so.10.0", "libcublas.so.10.0", "libcudnn.so.7", "libcusolver.so.10.0", "libcuda.so.1"}
    assert linked <= names | environment.libraries.stand_ins.keys()
    assert environment.libraries.stand_ins["libcuda.so.1"].only_without, "a driver that is there is used"
    assert library_wheel.package_name(environment.name) not in {pin.name for pin in environment.pins}
