"""The venv engine: a virtual environment from a CPython of this machine. The default where no container engine answers.

It pins the packages but not the system's libraries or the interpreter's patch version; both are recorded.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from tsuishi import files, parallel, spec
from tsuishi.engines import wheelhouse
from tsuishi.engines.base import Availability, Built, Kept
from tsuishi.engines.pythons import find_python, full_version
from tsuishi.engines.subprocesses import SubprocessEngine, die_with_parent
from tsuishi.environment import Environment
from tsuishi.errors import BuildError
from tsuishi.fetching.artifacts import Say
from tsuishi.fetching.fetcher import Fetcher

# Written last: a venv without it was never finished.
_MARK = "tsuishi.json"
# What decides how a venv is made, in place of a template's text.
_RECIPE = "venv --without-pip; pip install --no-index --no-deps --no-build-isolation --require-hashes"


class VenvEngine(SubprocessEngine):
    """Environments as virtual environments under <cache>/venvs/."""

    name = "venv"

    def __init__(self, cache: Path, pythons: Sequence[str] = ()) -> None:
        self._venvs = cache / "venvs"
        self._pythons = pythons

    def availability(self) -> Availability:
        return Availability(usable=True, version="")

    def refusal(self, environment: Environment) -> str:
        if not environment.pinned:
            return "it is no pinned environment: use --engine host"
        assert environment.python is not None
        if environment.packages == "of the base":
            return "its packages come with its base image, which only a container engine can use: start Docker"
        if environment.debs:
            return "it needs Debian packages, which only a container engine can install: start Docker"
        if find_python(environment.python, self._pythons) is None:
            return (
                f"no CPython {environment.python} on this machine: install one (pyenv install {environment.python}, "
                f"or uv python install {environment.python}), name its folder in tsuishi.pythons, or start Docker"
            )
        return ""

    def find(self, environment: Environment) -> Built | None:
        folder = self._folder(environment)
        if not (folder / _MARK).is_file() or not (folder / "bin" / "python").exists():
            return None
        return self._built(environment, folder)

    def build(self, environment: Environment, fetcher: Fetcher, say: Say) -> Built:
        assert environment.python is not None
        python = find_python(environment.python, self._pythons)
        if python is None:
            raise BuildError(f"{environment.name}: {self.refusal(environment)}")
        wheels = fetcher.fetch(environment)
        folder = self._folder(environment)
        shutil.rmtree(folder, ignore_errors=True)
        say(f"making a virtual environment with {python}")
        with files.temporary_folder(self._venvs, ".wheelhouse-") as house:
            wheelhouse.lay_out(house, environment.pins, wheels)
            _run(environment.name, [str(python), "-I", "-m", "venv", "--without-pip", str(folder)])
            inside = str(folder / "bin" / "python")
            options = ["--no-index", "--find-links", str(house / "wheels"), "--no-deps", "--no-cache-dir", "--quiet"]
            options += ["--disable-pip-version-check", "--require-hashes", "--isolated"]
            pip = wheelhouse.pip_wheel(environment.name, wheels)
            say(f"installing {len(wheels)} packages, without network")
            _run(environment.name, [inside, f"{pip}/pip", "install", *options, "-r", str(house / "bootstrap.txt")])
            install = [inside, "-m", "pip", "install", *options, "--no-build-isolation"]
            _run(environment.name, [*install, "-r", str(house / "requirements.txt")])
        mark = {"python": full_version(python), "lock_sha256": environment.lock_sha256, "asked": environment.asked}
        files.sync_all(folder)
        files.write_json(folder / _MARK, mark)
        return self._built(environment, folder)

    def discard(self, built: Built) -> None:
        shutil.rmtree(self._folder(built.environment), ignore_errors=True)

    def kept(self) -> list[Kept]:
        return [_kept(path) for path in sorted(self._venvs.glob(f"*/{_MARK}"))]

    def storage(self) -> Path | None:
        return self._venvs

    def _folder(self, environment: Environment) -> Path:
        return self._venvs / f"{environment.name}-{environment.spec_id(_RECIPE)}"

    def _built(self, environment: Environment, folder: Path) -> Built:
        mark = files.read_json(folder / _MARK)
        assert environment.base is not None
        return Built(
            environment=environment,
            engine=self.name,
            engine_version=mark["python"],
            spec_id=environment.spec_id(_RECIPE),
            realised_id=_realised_id(mark["python"], environment.lock_sha256),
            python=(str(folder / "bin" / "python"),),
            details={
                "base": {"reference": environment.base.reference, "used": "this machine", "digest": "unpinned"},
                "substitutions": [
                    {"asked": environment.base.reference, "used": f"CPython {mark['python']} of this machine"}
                ],
                "image": None,
                **self.confinement(str(folder / "bin" / "python")),
            },
        )


def _kept(mark: Path) -> Kept:
    folder, noted = mark.parent, files.read_json(mark)
    environment, _, spec_id = folder.name.rpartition("-")
    lock = noted.get("lock_sha256", "")
    return Kept(
        environment=environment,
        engine=VenvEngine.name,
        name=str(folder),
        spec_id=spec_id,
        realised_id=_realised_id(noted["python"], lock),
        size_bytes=sum(path.lstat().st_size for path in folder.rglob("*")),
        base_digest="unpinned",
        lock_sha256=lock,
        created=datetime.fromtimestamp(mark.stat().st_mtime, UTC).isoformat(),
    )


def _realised_id(python: str, lock_sha256: str) -> str:
    return "venv:" + spec.digest([python, lock_sha256], 16)


def _run(environment: str, command: list[str]) -> None:
    """Run one step of a build; its last words are the error where it fails."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP_"))}
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(
            command,
            env=environ,
            stdout=pipe,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            process_group=0,
            preexec_fn=die_with_parent,
        ) as process,
        parallel.closing(partial(os.killpg, process.pid, signal.SIGKILL)),
    ):
        said, _ = process.communicate()
    parallel.check()
    if process.returncode:
        words = [line for line in said.splitlines() if line.strip()]
        raise BuildError(
            f"{environment}: {' '.join(command[:4])} … failed: {' / '.join(words[-3:]) or process.returncode}"
        )
