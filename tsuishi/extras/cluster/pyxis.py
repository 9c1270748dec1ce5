"""The engine pyxis, Slurm's plugin for containers (of enroot): its images are squashfs files, started by srun.

In a job, a program runs as a step of that job; elsewhere, as on a login node, as a job of its own.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from tsuishi.base.errors import UserError
from tsuishi.engines.environment_variables import cuda_cache, of_user
from tsuishi.engines.interface import Availability, Built, Launch
from tsuishi.extras.cluster.flattening import flattened, variables_of
from tsuishi.extras.cluster.image_files import ImageFiles, inner_variables

_PASSED = ("PATH", "HOME", "USER", "TMPDIR")
# The program that reads a tar archive and writes a squashfs (squashfs-tools 4.5).
_SQUASH = "sqfstar"
_NO_NETWORK = "--container-unshare=net"
# A job outside of any other job asks an environment what it is, or which cases it can run.
_MINUTES = 15


class PyxisEngine(ImageFiles):
    """Images as squashfs files of a cache, which all nodes see. `options` gives srun's options outside of a job."""

    name = "pyxis"
    suffix = ".sqsh"
    gpu_remedy = "enroot's hook 98-nvidia.sh passes GPUs: it needs nvidia-container-cli on the node"
    starts_workloads = False  # slurmstepd does

    def __init__(self, template: Path, cache: Path, options: Callable[[], Sequence[str]]) -> None:
        super().__init__(template, cache)
        self._options = options

    def availability(self) -> Availability:
        if "--container-image" not in self._help:
            reason = "srun has no --container-image" if self._help else "no srun in PATH"
            return Availability(False, reason=reason, remedy="use it where Slurm has the plugin pyxis")
        if "--container-unshare" not in self._help:
            reason = "pyxis has no --container-unshare, so a trial would have the network of its node"
            return Availability(False, reason=reason, remedy="pyxis 0.24 has it")
        return Availability(True, version=self._version)

    def make(self, archive: Path, image: Path) -> dict[str, str]:
        program = shutil.which(_SQUASH)
        if not program:
            raise UserError(
                f"no {_SQUASH} in PATH: install squashfs-tools (4.5 or newer), or import on another machine"
            )
        command = [program, "-quiet", "-no-progress", "-all-root", str(image)]
        with subprocess.Popen(
            command, env=self.own_variables(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as squash:
            assert squash.stdin
            assert squash.stderr
            with suppress(BrokenPipeError):  # it says why
                flattened(archive, squash.stdin)
                squash.stdin.close()
            said = squash.stderr.read().decode(errors="replace").strip()
        if squash.returncode:
            raise UserError(f"{_SQUASH} cannot make an image: {said.splitlines()[-1] if said else squash.returncode}")
        return variables_of(archive)

    def command(self, built: Built, launch: Launch) -> list[str]:
        """See `ImageFiles`. Options: pyxis, args.c; srun(1).

        enroot's hook reads its variables of GPUs where srun is, before there is a container; its login shell replaces
        the PATH of the image, so programs get that again.
        """
        kept = cuda_cache(built, launch)
        binds = ",".join(
            [f"{path}:{place}:ro" for path, place in launch.mounts.items()] + [f"{kept}:{kept}"] * bool(kept)
        )
        ids = ",".join(gpu.id for gpu in launch.limits.gpus)
        hook = {"NVIDIA_VISIBLE_DEVICES": ids, "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"} if ids else {}
        mark = self.mark(built.environment)
        variables = {**(mark.variables if mark else {}), **inner_variables(built, launch)}
        return [
            "/usr/bin/env",
            *(f"{name}={value}" for name, value in hook.items()),
            "srun",
            *(_of_job() or [f"--time={_MINUTES}", *self._options()]),
            "--nodes=1",
            "--ntasks=1",
            "--cpu-bind=none",
            "--unbuffered",
            "--quiet",
            f"--export={','.join(hook) or 'NONE'}",
            f"--container-image={self.image(built.environment)}",
            *([f"--container-mounts={binds}"] if binds else []),
            "--container-workdir=/",
            "--container-readonly",
            "--no-container-mount-home",
            "--no-container-remap-root",
            "--no-container-entrypoint",
            *([] if launch.network is not None else [_NO_NETWORK]),
            "/usr/bin/env",
            *(f"{name}={value}" for name, value in variables.items()),
            *built.python,
            *launch.arguments,
        ]

    def confinement(self) -> str:
        return f"{self._version}, pyxis: --container-readonly, no network"

    def own_variables(self) -> dict[str, str]:
        return of_user([*_PASSED, *(name for name in os.environ if name.startswith("SLURM"))])

    @cached_property
    def _help(self) -> str:
        return self._srun("--help")

    @cached_property
    def _version(self) -> str:
        return self._srun("--version").strip()

    def _srun(self, option: str) -> str:
        """srun's output for an option; empty where there is no srun."""
        if not shutil.which("srun"):
            return ""
        command = ["srun", option]
        return subprocess.run(command, env=self.own_variables(), capture_output=True, text=True, check=False).stdout


def _of_job() -> list[str]:
    """The options of a step on this node, beside its starter, with all memory of the job; none outside of a job."""
    node = os.environ.get("SLURMD_NODENAME")
    return ["--overlap", "--mem=0", f"--nodelist={node}"] if node and "SLURM_JOB_ID" in os.environ else []
