"""What a virtual environment holds: what is altered after the build is named, and what nobody listed is refused."""

import hashlib
import json
import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tsuishi.base.errors import BuildError
from tsuishi.engines import contents

SITE = f"lib/python3.{sys.version_info.minor}/site-packages"
SOURCE = f"{SITE}/tiny/__init__.py"
BYTECODE = f"{SITE}/tiny/__pycache__/__init__.cpython-3{sys.version_info.minor}.pyc"
SHELL = "#!/bin/sh\n'''exec' {} \"$0\" \"$@\"\n' '''\n"


def install(venv: Path, name: str, **files: str) -> None:
    """A package as pip leaves it."""
    about = f"{name}-1.0.dist-info"
    for path, text in {**files, f"{SITE}/{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\n"}.items():
        (venv / path).parent.mkdir(parents=True, exist_ok=True)
        (venv / path).write_text(text)
    rows = [os.path.relpath(path, SITE) for path in files] + [f"{about}/METADATA", f"{about}/RECORD"]
    (venv / SITE / about / "RECORD").write_text("".join(f"{row},,\n" for row in rows))


def new(venv: Path, source: str = "VERSION = '1.0'\n", shebang: str = "#!{}\n") -> list[str]:
    """A virtual environment with one package, not yet recorded; what the module venv made of it."""
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(venv)], check=True)
    made = contents.paths(venv)
    script = shebang.format(venv / "bin" / "python") + "import tiny\n"
    install(venv, "tiny", **{SOURCE: source, "bin/tiny": script, BYTECODE: ""})
    py_compile.compile(str(venv / SOURCE), str(venv / BYTECODE))
    return made


def recorded(venv: Path, source: str = "VERSION = '1.0'\n", shebang: str = "#!{}\n") -> str:
    """The realised id of such a virtual environment."""
    contents.record(venv, new(venv, source, shebang), {"tiny"})
    return contents.realised_id(venv, "3.11.7", "lock")


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    recorded(tmp_path / "venv")
    return tmp_path / "venv"


def test_the_id_is_that_of_contents_and_of_no_folder(tmp_path: Path) -> None:
    here = recorded(tmp_path / "a")
    assert recorded(tmp_path / "elsewhere") == here
    assert recorded(tmp_path / "shell", shebang=SHELL) == here
    assert recorded(tmp_path / "other", source="VERSION = '1.1'\n") != here
    assert recorded(tmp_path / "foreign", shebang="#!/usr/bin/python3\n") != here
    assert contents.realised_id(tmp_path / "a", "3.11.8", "lock") != here
    assert contents.realised_id(tmp_path / "a", "3.11.7", "other lock") != here


def test_another_interpreter_gives_another_id(tmp_path: Path) -> None:
    made = new(tmp_path / "venv")
    python = (tmp_path / "venv/bin/python").resolve()
    (tmp_path / "venv/bin/python").unlink()
    shutil.copy(python, tmp_path / "venv/bin/python")
    with (tmp_path / "venv/bin/python").open("ab") as file:
        file.write(b"\0")
    contents.record(tmp_path / "venv", made, {"tiny"})
    assert contents.realised_id(tmp_path / "venv", "3.11.7", "lock") != recorded(tmp_path / "other")


def change(venv: Path) -> None:
    (venv / SOURCE).write_text("VERSION = '9.9.9'\n")


def change_and_restore_size_and_time(venv: Path) -> None:
    about = (venv / SOURCE).stat()
    (venv / SOURCE).write_text("VERSION = '9.9'\n")
    os.utime(venv / SOURCE, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert (venv / SOURCE).stat().st_size == about.st_size


def remove(venv: Path) -> None:
    (venv / SOURCE).unlink()


def add_pth(venv: Path) -> None:
    (venv / SITE / "evil.pth").write_text("import tiny; tiny.VERSION = '9.9.9'\n")


def add_sitecustomize(venv: Path) -> None:
    (venv / SITE / "sitecustomize.py").write_text("raise SystemExit\n")


def replace_bytecode(venv: Path) -> None:
    """By bytecode that Python runs without a look at its source."""
    evil = venv.with_name("evil.py")
    evil.write_text("VERSION = '9.9.9'\n")
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(evil), str(venv / BYTECODE), invalidation_mode=mode)
    asked = [str(venv / "bin" / "python"), "-c", "import tiny; print(tiny.VERSION)"]
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "9.9.9\n"


def add_bytecode(venv: Path) -> None:
    shutil.copy(venv / BYTECODE, venv / SITE / "numpy.pyc")


def lead_python_elsewhere(venv: Path) -> None:
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to("/bin/true")


def lead_python_nowhere(venv: Path) -> None:
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to("/nowhere/python")


def let_system_packages_in(venv: Path) -> None:
    path = venv / "pyvenv.cfg"
    path.write_text(path.read_text().replace("packages = false", "packages = true"))


def lead_a_folder_elsewhere(venv: Path) -> None:
    shutil.move(venv / SITE / "tiny", venv.with_name("moved"))
    (venv / SITE / "tiny").symlink_to(venv.with_name("moved"))
    assert (venv / SOURCE).exists()


def lead_a_file_elsewhere(venv: Path) -> None:
    (venv / SOURCE).rename(venv.with_name("moved"))
    (venv / SOURCE).symlink_to(venv.with_name("moved"))


def put_a_pipe(venv: Path) -> None:
    (venv / SOURCE).unlink()
    os.mkfifo(venv / SOURCE)


def leave_no_record(venv: Path) -> None:
    (venv / "contents.json").write_text("{}")


@pytest.mark.parametrize(
    ("attack", "said"),
    [
        (change, f"{SOURCE}: changed"),
        (change_and_restore_size_and_time, f"{SOURCE}: other content"),
        (remove, f"{SOURCE}: not there any more"),
        (add_pth, f"{SITE}/evil.pth: not there when it was built"),
        (add_sitecustomize, f"{SITE}/sitecustomize.py: not there when it was built"),
        (replace_bytecode, f"{BYTECODE}: changed"),
        (add_bytecode, f"{SITE}/numpy.pyc: not there when it was built"),
        (lead_python_elsewhere, "bin/python: changed"),
        (lead_python_nowhere, "No such file or directory"),
        (let_system_packages_in, "pyvenv.cfg: changed"),
        (lead_a_folder_elsewhere, f"{SITE}/tiny: not there when it was built"),
        (lead_a_file_elsewhere, f"{SOURCE}: changed"),
        (put_a_pipe, f"{SOURCE}: changed"),
        (leave_no_record, "contents.json: no record of an environment's files"),
    ],
)
def test_what_is_altered_after_the_build_is_named(venv: Path, attack: Callable[[Path], None], said: str) -> None:
    attack(venv)
    assert said in contents.alteration(venv, whole=False)


def test_what_was_only_touched_is_as_it_was(venv: Path) -> None:
    (venv / SOURCE).chmod(0o600)
    os.link(venv / SOURCE, venv.with_name("backup"))
    assert contents.alteration(venv, whole=False) == ""
    assert contents.alteration(venv, whole=True) == ""


def test_contents_are_told_from_a_record_whose_times_were_altered_with_them(venv: Path) -> None:
    """Somebody who can write an environment can write its record, too."""
    change_and_restore_size_and_time(venv)
    before = contents.realised_id(venv, "3.11.7", "lock")
    path, about = venv / "contents.json", (venv / SOURCE).stat()
    record = json.loads(path.read_text())
    record["files"][SOURCE][:3] = [about.st_size, about.st_mtime_ns, about.st_ctime_ns]
    path.write_text(json.dumps(record))
    assert contents.alteration(venv, whole=False) == ""
    assert contents.alteration(venv, whole=True) == f"{SOURCE}: other content"
    record["files"][SOURCE][3] = hashlib.sha256((venv / SOURCE).read_bytes()).hexdigest()
    path.write_text(json.dumps(record))
    assert contents.alteration(venv, whole=True) == ""
    assert contents.realised_id(venv, "3.11.7", "lock") != before


def refused(tmp_path: Path, attack: Callable[[Path], None]) -> str:
    venv = tmp_path / "venv"
    made = new(venv)
    attack(venv)
    with pytest.raises(BuildError) as caught:
        contents.record(venv, made, {"tiny"})
    assert not (venv / "contents.json").exists()
    return str(caught.value).removeprefix(f"{venv}/").partition(": find out")[0]


@pytest.mark.parametrize("name", ["evil.pth", "sitecustomize.py", "usercustomize.py", "numpy.pyc", "numpy/__init__.py"])
def test_what_no_package_lists_is_refused_by_name(tmp_path: Path, name: str) -> None:
    def add(venv: Path) -> None:
        (venv / SITE / name).parent.mkdir(exist_ok=True)
        (venv / SITE / name).write_text("")

    assert refused(tmp_path, add) == f"{SITE}/{name}: no locked package lists this file"


def test_what_no_locked_package_lists_is_refused_though_another_lists_it(tmp_path: Path) -> None:
    said = refused(tmp_path, lambda venv: install(venv, "evil", **{f"{SITE}/evil.pth": "import os\n"}))
    assert said == f"{SITE}/evil-1.0.dist-info/METADATA: no locked package lists this file"


def test_a_link_that_leads_out_of_it_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, lead_a_file_elsewhere) == f"{SOURCE}: a link that leads out of the environment"


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    assert refused(tmp_path, put_a_pipe) == f"{SOURCE}: no regular file: remove it"
