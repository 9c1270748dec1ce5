"""The venv engine: virtual environments from a CPython of this machine. It is the default without a container engine.

It pins the packages, but neither the system's libraries nor the patch version of the interpreter; both are recorded.
"""

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from tsuishi.base import files, threads
from tsuishi.base.errors import BuildError, UserError
from tsuishi.base.screen import Progress, Say
from tsuishi.engines import contents, environment_variables, wheelhouse
from tsuishi.engines.interface import Artefacts, Availability, Built, Kept
from tsuishi.machine.interpreters import find_python, full_version, has_python, python_remedy
from tsuishi.specs.environment import Environment

if TYPE_CHECKING:
    from tsuishi.engines.subprocesses import ProcessStarter

# It stands in spec ids in place of the text of a template, and changes when venvs are made in another way.
RECIPE = "venv --without-pip; pip install --no-index --no-deps --no-build-isolation --require-hashes; record contents"


class Mark(BaseModel):
    """The file tsuishi.json of a virtual environment."""

    python: str
    lock_sha256: str
    realised_id: str
    # The content of the spec, for people who read the file.
    asked: dict[str, Any]


class VenvEngine:
    """Environments as virtual environments under <cache>/venvs/, a folder each: makes, stores and inspects them."""

    name = "venv"
    bases = None

    def __init__(self, cache: Path, pythons: Sequence[str] = (), *, confined: bool = True) -> None:
        self._pythons, self._confined = pythons, confined
        self._venvs = cache / "venvs"
        # The alteration of each folder that was compared, or ""; each folder is compared once.
        self._alterations: dict[Path, str] = {}
        self.maker = self.store = self.inspector = self

    @cached_property
    def starter(self) -> "ProcessStarter":
        # What only looks at environments starts nothing in them.
        from tsuishi.engines.subprocesses import ProcessStarter

        return ProcessStarter(confined=self._confined)

    def availability(self) -> Availability:
        return Availability(usable=True, version="")

    def refusal(self, environment: Environment) -> str:
        if not environment.pinned:
            return "it is no pinned environment: use --engine host"
        if environment.packages == "of the base":
            return "its packages come with its base image, which only a container engine can use: start Docker"
        if environment.debs:
            return "it needs Debian packages, which only a container engine can install: start Docker"
        assert environment.python is not None
        return "" if has_python(environment.python, self._pythons) else _no_python(environment)

    def find(self, environment: Environment, *, at_a_glance: bool = False) -> Built | None:
        """See `Engine`. None also where a file has changed since the build.

        A glance looks for mark, record and interpreter, and at no other file.
        """
        folder = self._folder(environment)
        mark = _mark(folder)
        if mark is None:
            return None
        lacks = not contents.is_recorded(folder) if at_a_glance else bool(self._alteration(folder))
        return None if lacks else self._built(environment, folder, mark)

    def build(self, environment: Environment, artefacts: Artefacts, say: Say, downloaded: Progress) -> Built:
        python = _python(environment, self._pythons)
        if python is None:
            raise BuildError(f"{environment.name}: {_no_python(environment)}")
        wheels = artefacts.wheels
        folder = self._folder(environment)
        if _mark(folder) and (altered := self._alteration(folder)):
            say(f"altered since it was built ({altered}): it is built again")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        say(f"making a virtual environment with {python}")
        with files.temporary_folder(self._venvs, ".wheelhouse-") as house:
            pins = wheelhouse.lay_out(house, environment, wheels)
            _run(environment.name, [str(python), "-I", "-m", "venv", "--without-pip", str(folder)], house)
            made = contents.paths(folder)
            say(f"installing {len(pins)} packages, without network")
            _install(environment.name, folder / "bin" / "python", wheelhouse.pip_wheel(environment.name, wheels), house)
        contents.record(folder, made, {pin.name for pin in pins})
        version, lock = full_version(python), environment.lock_sha256
        realised_id = contents.realised_id(folder, version, lock)
        mark = Mark(python=version, lock_sha256=lock, realised_id=realised_id, asked=environment.asked)
        files.sync_all(folder)
        files.write_json(folder / contents.MARK, mark.model_dump())
        self._alterations.pop(folder, None)
        return self._built(environment, folder, mark)

    def discard(self, built: Built) -> None:
        shutil.rmtree(self._folder(built.environment), ignore_errors=True)

    def tidy(self) -> None:
        """Remove the folders without a mark: their builds failed or were killed."""
        for folder in self._venvs.glob("[!.]*/"):
            if not (folder / contents.MARK).exists():
                shutil.rmtree(folder, ignore_errors=True)

    def building_bytes(self, packages_bytes: int, installed_bytes: int) -> int:
        """See `Maker`. Packages take no space, because they are linked from the cache."""
        return installed_bytes

    def kept(self) -> list[Kept]:
        return [_kept(path) for path in sorted(self._venvs.glob(f"*/{contents.MARK}"))]

    def remove(self, kept: Kept) -> None:
        shutil.rmtree(kept.name)

    def folder(self) -> Path | None:
        return self._venvs

    def altered(self, kept: Kept, *, whole: bool) -> str:
        folder = Path(kept.name)
        mark = _mark(folder)
        if mark is None:  # made by an earlier tsuishi, and not used any more
            return ""
        altered = contents.alteration(folder, whole=True) if whole else self._alteration(folder)
        if whole and not altered and contents.realised_id(folder, mark.python, mark.lock_sha256) != mark.realised_id:
            return f"{contents.MARK}: not the realised id of the files"
        return altered

    def _folder(self, environment: Environment) -> Path:
        return self._venvs / f"{environment.made_as}-{environment.spec_id(RECIPE)}"

    def _alteration(self, folder: Path) -> str:
        if folder not in self._alterations:
            self._alterations[folder] = contents.alteration(folder, whole=False)
        return self._alterations[folder]

    def _built(self, environment: Environment, folder: Path, mark: Mark) -> Built:
        assert environment.base is not None
        return Built(
            environment=environment,
            engine=self.name,
            engine_version=mark.python,
            spec_id=environment.spec_id(RECIPE),
            realised_id=mark.realised_id,
            python=(str(folder / "bin" / "python"),),
            details={
                "base": {"reference": environment.base.reference, "used": "this machine", "digest": "unpinned"},
                "substitutions": [
                    {"asked": environment.base.reference, "used": f"CPython {mark.python} of this machine"},
                    *environment.stand_ins,
                ],
                "image": None,
            },
        )


def _python(environment: Environment, pythons: Sequence[str]) -> Path | None:
    assert environment.python is not None
    return find_python(environment.python, pythons)


def _no_python(environment: Environment) -> str:
    return (
        f"no CPython {environment.python} on this machine: install one ({python_remedy(str(environment.python))}), "
        "name its folder in tsuishi.pythons, or start Docker"
    )


def _mark(folder: Path) -> Mark | None:
    """The mark of a virtual environment; None where it is missing, or written by an earlier tsuishi."""
    try:
        return Mark.model_validate_json(files.read_bytes(folder / contents.MARK))
    except (UserError, ValueError):
        return None


def _kept(path: Path) -> Kept:
    folder, mark = path.parent, _mark(path.parent)
    environment, _, spec_id = folder.name.rpartition("-")
    return Kept(
        environment=environment,
        engine=VenvEngine.name,
        name=str(folder),
        spec_id=spec_id,
        realised_id=mark.realised_id if mark else "",
        size_bytes=sum(path.lstat().st_size for path in folder.rglob("*")),
        base_digest="unpinned",
        lock_sha256=mark.lock_sha256 if mark else "",
        created=datetime.fromtimestamp(path.lstat().st_mtime, UTC).isoformat(),
    )


def _install(environment: str, python: Path, pip: Path, house: Path) -> None:
    """Install pip and the build tools first, then all packages with them."""
    options = ["--no-index", "--find-links", str(house / "wheels"), "--no-deps", "--no-cache-dir", "--quiet"]
    options += ["--disable-pip-version-check", "--require-hashes", "--isolated", "--no-build-isolation"]
    for installer, names in (([f"{pip}/pip"], "bootstrap.txt"), (["-m", "pip"], "requirements.txt")):
        _run(environment, [str(python), *installer, "install", *options, "-r", str(house / names)], house)


def _run(environment: str, command: list[str], home: Path) -> None:
    """Run a step of a build, whose home is a temporary folder. Raises BuildError with the last lines of its output."""
    from tsuishi.engines.subprocesses import ChildProcess

    # The step ends with this process, even if this process is killed.
    process = ChildProcess(command, environment_variables.for_building(Path(command[0]), str(home)))
    with threads.closing(process.stop):
        output = b"".join(piece for _, piece in process.output()).decode(errors="replace")
        code = process.wait().code
    threads.check()
    if code:
        lines = [line for line in output.splitlines() if line.strip()]
        raise BuildError(f"{environment}: {' '.join(command[:4])} … failed: {' / '.join(lines[-3:]) or code}")
