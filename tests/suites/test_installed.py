"""What an environment reports to hold, read from the files that say so."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from common import installed
from tests.bench import REAL
from tests.conftest import missing
from tsuishi.machine.interpreters import find_python

STATUS = """\
Package: libc6
Status: install ok installed
Priority: optional
Architecture: amd64
Multi-Arch: same
Version: 2.36-9+deb12u10
Depends: libgcc-s1
Conffiles:
 /etc/ld.so.conf.d/x86_64-linux-gnu.conf d4e7a7b88a71b5ffd9e2644e71a0cfab
Description: GNU C Library: Shared libraries
 Version: 9 of this sentence is no field.

Package: libc6
Status: install ok installed
Architecture: i386
Version: 2.36-9+deb12u10

Package: mime-support
Status: deinstall ok config-files
Architecture: all
Version: 3.66

Package: half
Status: install ok half-configured
Architecture: all
Version: 1
"""


class Emitter:
    """Keeps the facts of every event."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def environment(self, **facts: Any) -> None:
        self.events.append(facts)


def test_system_packages_are_those_that_are_installed(tmp_path: Path) -> None:
    (tmp_path / "status").write_text(STATUS)
    found = installed.system_packages(str(tmp_path / "status"))
    assert found == {"libc6:amd64": "2.36-9+deb12u10", "libc6:i386": "2.36-9+deb12u10"}


@pytest.mark.system
def test_system_packages_are_those_that_dpkg_knows() -> None:
    if not Path(installed.DPKG_STATUS).exists():
        pytest.skip("this is no Debian")
    show = "--showformat=${db:Status-Status} ${Package}:${Architecture}=${Version}\n"
    said = subprocess.run(["dpkg-query", "--show", show], check=True, capture_output=True, text=True).stdout
    known = dict(line.split(" ")[1].split("=", 1) for line in said.splitlines() if line.startswith("installed "))
    assert installed.system_packages() == known


def test_a_system_without_dpkg_or_os_release_has_none(tmp_path: Path) -> None:
    assert installed.system_packages(str(tmp_path / "status")) == {}
    assert installed.os_release(str(tmp_path / "os-release")) == {}


def test_os_release_is_read_with_and_without_quotation_marks(tmp_path: Path) -> None:
    (tmp_path / "os-release").write_text(
        'NAME="Ubuntu"\nVERSION_ID="18.04"\nID=ubuntu\n# a comment\n\nHOME_URL="h=1"\n'
    )
    assert installed.os_release(str(tmp_path / "os-release")) == {"id": "ubuntu", "version_id": "18.04"}


def test_packages_of_a_folder_are_named_as_indexes_name_them(tmp_path: Path) -> None:
    (tmp_path / "Typing_Extensions-4.1.dist-info").mkdir()
    (tmp_path / "Typing_Extensions-4.1.dist-info" / "METADATA").write_text("Name: Typing_Extensions\nVersion: 4.1\n")
    assert installed.python_packages([str(tmp_path)]) == {"typing-extensions": "4.1"}


def test_a_package_that_does_not_say_its_version_has_that_of_its_distribution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("silent_one", "silent_two"):
        (tmp_path / f"{name}.py").write_text("")
    (tmp_path / "silent_one-4.1.dist-info").mkdir()
    (tmp_path / "silent_one-4.1.dist-info" / "METADATA").write_text("Name: silent_one\nVersion: 4.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert installed.versions("silent_one", "silent_two") == {"silent_one": "4.1", "silent_two": "unknown"}


@pytest.mark.pythons
@pytest.mark.parametrize("setuptools", [True, False])
def test_an_old_python_finds_its_packages_with_and_without_setuptools(tmp_path: Path, setuptools: bool) -> None:
    python = find_python("3.6")
    if python is None:
        missing("no CPython 3.6")
    for name in ("Typing_Extensions-4.1.dist-info", "zipp-3.6.0-py3.6.egg-info"):
        package, version = name.split("-")[:2]
        (tmp_path / name).mkdir()
        for file in ("METADATA", "PKG-INFO"):
            (tmp_path / name / file).write_text(f"Name: {package}\nVersion: {version}\n")
    without = "" if setuptools else "sys.modules['pkg_resources'] = None; "
    program = (
        f"import sys; {without}from common import installed; print(installed.python_packages([{str(tmp_path)!r}]))"
    )
    command = [str(python), "-c", program]
    done = subprocess.run(command, cwd=REAL.workloads, capture_output=True, text=True, check=True)
    assert ast.literal_eval(done.stdout) == {"typing-extensions": "4.1", "zipp": "3.6.0"}


def test_the_base_of_a_virtual_environment_is_looked_into() -> None:
    (folder,) = [one for one in installed.base_folders() if one.endswith("site-packages")]
    assert folder.startswith(sys.base_prefix)
    assert "pip" in installed.python_packages([folder])


def test_many_packages_take_several_events_none_of_which_is_too_long() -> None:
    emitter = Emitter()
    packages = {f"library-with-a-long-name{number}-dev:amd64": "1:12.2.0-14+deb12u1" for number in range(105)}
    installed.emit(emitter, "system_packages", packages)
    assert [len(event["system_packages"]) for event in emitter.events] == [40, 40, 25]
    assert {name: version for event in emitter.events for name, version in event["system_packages"].items()} == packages
    assert max(len(str(event)) for event in emitter.events) < 4000


def test_the_packages_of_a_machine_are_not_told() -> None:
    emitter = Emitter()
    installed.report(emitter, container=False)
    assert {fact for event in emitter.events for fact in event} == {"packages"}


def test_a_container_tells_its_system_too() -> None:
    emitter = Emitter()
    installed.report(emitter, container=True)
    assert {fact for event in emitter.events for fact in event} >= {"packages", "os", "base_packages"}


def test_a_package_of_another_framework_that_cannot_be_imported_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "halved_package.py").write_text("import the_other_half_of_it\n")
    (tmp_path / "whole_package.py").write_text("__version__ = '1.0'\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert installed.importable("halved_package", "whole_package", "absent_package") == {"whole_package": "1.0"}
    with pytest.raises(ImportError):
        installed.versions("halved_package")
