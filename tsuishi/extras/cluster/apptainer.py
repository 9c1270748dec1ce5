"""The engine Apptainer (or Singularity), which clusters have in place of Docker: its images are SIF files."""

import shutil
import subprocess
from functools import cached_property
from pathlib import Path

from tsuishi.base.errors import UserError
from tsuishi.engines.environment_variables import cuda_cache, of_user
from tsuishi.engines.interface import Availability, Built, Launch
from tsuishi.extras.cluster.image_files import ImageFiles, inner_variables

_PROGRAMS = ("apptainer", "singularity")
_PASSED = ("PATH", "HOME", "USER", "TMPDIR", "XDG_RUNTIME_DIR", "APPTAINER_TMPDIR", "SINGULARITY_TMPDIR")


class ApptainerEngine(ImageFiles):
    """Images as SIF files of a cache, run by the program `apptainer` of this machine."""

    name = "apptainer"
    suffix = ".sif"
    gpu_remedy = "`--nv` takes the driver's libraries from this machine's ldconfig: look for libcuda.so.1 there"

    def availability(self) -> Availability:
        if not self._program:
            return Availability(False, reason="no apptainer in PATH", remedy="load its module, or use venv")
        return Availability(True, version=self._version)

    def make(self, archive: Path, image: Path) -> dict[str, str]:
        command = [self._program, "build", str(image), f"docker-archive:{archive}"]
        done = subprocess.run(command, env=self.own_variables(), capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            raise UserError(f"apptainer cannot make a SIF of the image: {' / '.join(lines[-3:]) or done.returncode}")
        return {}

    def command(self, built: Built, launch: Launch) -> list[str]:
        """See `ImageFiles`. `--containall` also gives processes, /tmp and IPC of its own (apptainer exec --help)."""
        kept = cuda_cache(built, launch)
        return [
            self._program,
            "exec",
            "--containall",
            "--no-eval",
            "--no-privs",
            "--pwd=/",
            *([] if launch.network is not None else ["--net", "--network=none"]),
            *(["--nv"] if launch.limits.gpus else []),
            *(f"--bind={path}:{place}:ro" for path, place in launch.mounts.items()),
            *([f"--bind={kept}"] if kept else []),
            *(f"--env={name}={value}" for name, value in inner_variables(built, launch).items()),
            str(self.image(built.environment)),
            *built.python,
            *launch.arguments,
        ]

    def confinement(self) -> str:
        return f"{self._version}: --containall, no network, no privileges"

    def own_variables(self) -> dict[str, str]:
        return of_user(_PASSED)

    @cached_property
    def _program(self) -> str:
        """The path of the program; empty where there is none."""
        return next((path for name in _PROGRAMS if (path := shutil.which(name))), "")

    @cached_property
    def _version(self) -> str:
        command = [self._program, "--version"]
        return subprocess.run(
            command, env=self.own_variables(), capture_output=True, text=True, check=False
        ).stdout.strip()
