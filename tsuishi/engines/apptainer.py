"""The engine Apptainer (or Singularity), which clusters have in place of Docker: it makes nothing, and runs its images.

An image comes as an archive that `invoke export` wrote where there is Docker. `invoke import --engine apptainer` checks
it whole, and makes a SIF file of the checked parts, under <cache>/apptainer/. It is the same environment: its realised
id is that of the image.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.engines.interface import Availability, Built, Launch
from tsuishi.machine.gpus import Gpu
from tsuishi.specs.environment import Environment

if TYPE_CHECKING:
    from tsuishi.base.processes import Process
    from tsuishi.engines.subprocesses import ProcessStarter

_PROGRAMS = ("apptainer", "singularity")
# The variables of the user that the program itself needs; programs in images get none of them.
_PASSED = ("PATH", "HOME", "USER", "TMPDIR", "XDG_RUNTIME_DIR", "APPTAINER_TMPDIR", "SINGULARITY_TMPDIR")


class SifMark(BaseModel):
    """The file beside a SIF: the image that it was made of."""

    realised_id: str
    details: dict[str, Any]


class ApptainerEngine:
    """Images as SIF files of a cache, run by the program `apptainer` of this machine."""

    name = "apptainer"
    maker = store = inspector = bases = None

    def __init__(self, template: Path, cache: Path) -> None:
        self._template = template
        self._folder = cache / "apptainer"

    @cached_property
    def starter(self) -> "SifStarter":
        return SifStarter(self)

    def availability(self) -> Availability:
        if not self.program:
            return Availability(False, reason="no apptainer in PATH", remedy="load its module, or use venv")
        return Availability(True, version=self._version)

    def refusal(self, environment: Environment) -> str:
        if not environment.pinned:
            return "it has no image: use --engine host"
        return "" if self.find(environment) else self._how_to_get(environment)

    def find(self, environment: Environment, *, at_a_glance: bool = False) -> Built | None:
        """See `Engine`: the SIF that was made of an image of exactly this spec."""
        sif = self.sif(environment)
        try:
            mark = SifMark.model_validate_json(files.read_bytes(sif.with_suffix(".json")))
        except (UserError, ValueError):
            return None
        if not sif.is_file():
            return None
        ids = (self.spec_id(environment), mark.realised_id)
        return Built(environment, self.name, self._version, *ids, ("python",), mark.details)

    def spec_id(self, environment: Environment) -> str:
        """The spec id of an image: that of Docker's images."""
        return environment.spec_id(self._template.read_text(encoding="utf-8"))

    def sif(self, environment: Environment) -> Path:
        """The place of an environment's SIF, whether it is there or not."""
        return self._folder / f"{environment.name}-{self.spec_id(environment)}.sif"

    def take(self, environment: Environment, mark: SifMark, archive: Iterator[bytes]) -> Path:
        """Make the SIF of an environment of a checked archive. Raises UserError where the program does not."""
        if not self.program:
            raise UserError("engine apptainer: no apptainer in PATH; load its module")
        sif = self.sif(environment)
        self._folder.mkdir(parents=True, exist_ok=True)
        with files.temporary_folder(self._folder, ".taking-") as room:
            packed, made = room / "image.tar", room / sif.name
            with packed.open("wb") as file:
                file.writelines(archive)
            command = [self.program, "build", str(made), f"oci-archive:{packed}"]
            done = subprocess.run(command, env=own_variables(), capture_output=True, text=True, check=False)
            if done.returncode:
                lines = [line for line in done.stderr.splitlines() if line.strip()]
                raise UserError(f"apptainer makes no SIF of it: {' / '.join(lines[-3:]) or done.returncode}")
            made.replace(sif)
        files.write_json(sif.with_suffix(".json"), mark.model_dump())
        return sif

    @cached_property
    def program(self) -> str:
        """The path of the program; empty where there is none."""
        return next((path for name in _PROGRAMS if (path := shutil.which(name))), "")

    @cached_property
    def _version(self) -> str:
        if not self.program:
            return ""
        command = [self.program, "--version"]
        return subprocess.run(command, env=own_variables(), capture_output=True, text=True, check=False).stdout.strip()

    def _how_to_get(self, environment: Environment) -> str:
        return (
            f"it has no SIF here: `invoke export --env {environment.name}` where there is Docker, then "
            "`invoke import --engine apptainer --archive <its file>` here"
        )


class SifStarter:
    """Starts programs in SIF files, each as a child process under a supervisor."""

    def __init__(self, engine: ApptainerEngine) -> None:
        self._engine = engine

    def start(self, built: Built, launch: Launch) -> "Process":
        """See `Starter`. Of the limits only the time is enforced."""
        from tsuishi.engines.subprocesses import ChildProcess

        return ChildProcess(
            command(self._engine.program, self._engine.sif(built.environment), built, launch), own_variables()
        )

    def confinement(self, python: str) -> Mapping[str, Any]:
        return {"sandbox": f"{self._engine.availability().version}: --containall, no network, no privileges"}

    def why_no_gpus(self, gpus: Sequence[Gpu]) -> str:
        return ""

    def inside(self, path: Path, place: str) -> str:
        return place

    def abandoned(self) -> Sequence[str]:
        return self._processes.abandoned()

    def sweep(self) -> None:
        self._processes.sweep()

    @cached_property
    def _processes(self) -> "ProcessStarter":
        from tsuishi.engines.subprocesses import ProcessStarter

        return ProcessStarter()


def command(program: str, sif: Path, built: Built, launch: Launch) -> list[str]:
    """The command that runs a program in a SIF: without home, network, privileges and the user's variables.

    `--containall` also gives it processes, /tmp and IPC of its own; the image is read-only (apptainer exec --help).
    """
    variables = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", "LANG": "C.UTF-8", **(launch.network or {})}
    gpus = launch.limits.gpus
    if gpus:
        ids = ",".join(gpu.id for gpu in gpus)
        variables |= {"CUDA_VISIBLE_DEVICES": ids, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    return [
        program,
        "exec",
        "--containall",
        "--no-eval",
        "--no-privs",
        "--pwd=/",
        *([] if launch.network is not None else ["--net", "--network=none"]),
        *(["--nv"] if gpus else []),
        *(f"--bind={path}:{place}:ro" for path, place in launch.mounts.items()),
        *(f"--env={name}={value}" for name, value in variables.items()),
        str(sif),
        *built.python,
        *launch.arguments,
    ]


def own_variables() -> dict[str, str]:
    """The variables of the program itself."""
    return {name: os.environ[name] for name in _PASSED if name in os.environ}
