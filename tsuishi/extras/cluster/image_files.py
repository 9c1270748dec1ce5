"""What the engines of clusters share: they make nothing, and run images that are files of a cache.

An image comes as an archive that `invoke export` wrote where there is Docker. `invoke import --engine <this>` compares
its checksum and makes the engine's own file of it, under <cache>/<engine>/. It is the same environment: its realised id
is that of the image.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.base.option_table import task_with
from tsuishi.engines.environment_variables import OF_PYTHON, cuda_cache, of_cuda_cache, of_gpus
from tsuishi.engines.interface import Availability, Built, Launch
from tsuishi.machine.gpus import Gpu
from tsuishi.specs.environment import Environment

if TYPE_CHECKING:
    from tsuishi.base.processes import Process


class ImageMark(BaseModel):
    """The file beside an engine's image: the image that it was made of.

    variables: of the image, where the engine's program would lose them.
    """

    realised_id: str
    details: dict[str, Any]
    variables: dict[str, str] = {}


class ImageFiles(ABC):
    """An engine whose images are files, run by programs of this machine."""

    name: str
    # The ending of its images.
    suffix: str
    gpu_remedy: str
    # Whether the program itself starts a workload, so that its processes are those of the workload.
    starts_workloads = True
    maker = store = inspector = bases = None

    def __init__(self, template: Path, cache: Path) -> None:
        self._template = template
        self._folder = cache / self.name

    @abstractmethod
    def availability(self) -> Availability:
        """See `Engine`."""

    @abstractmethod
    def make(self, archive: Path, image: Path) -> dict[str, str]:
        """Make the engine's image of an archive, as `docker save` writes it. Raises UserError where that fails.

        Returns the variables of the image that `command` has to give to programs.
        """

    @abstractmethod
    def command(self, built: Built, launch: Launch) -> list[str]:
        """The command that runs a program in an image: without network, and without the user's home and variables."""

    @abstractmethod
    def confinement(self) -> str:
        """How a program is confined, in words."""

    @abstractmethod
    def own_variables(self) -> dict[str, str]:
        """The variables of the user that the engine's programs need; programs in images get none of them."""

    @cached_property
    def starter(self) -> "FileStarter":
        return FileStarter(self)

    def refusal(self, environment: Environment) -> str:
        if not environment.pinned:
            return "it has no image: use --engine host"
        return "" if self.find(environment) else self._how_to_get(environment)

    def find(self, environment: Environment, *, at_a_glance: bool = False) -> Built | None:
        """See `Engine`: the file that was made of an image of exactly this spec."""
        mark = self.mark(environment)
        if mark is None or not self.image(environment).is_file():
            return None
        ids = (self.spec_id(environment), mark.realised_id)
        return Built(environment, self.name, self.availability().version, *ids, ("python",), mark.details)

    def mark(self, environment: Environment) -> ImageMark | None:
        """What is noted of an environment's image; None where nothing is."""
        try:
            return ImageMark.model_validate_json(files.read_bytes(self.image(environment).with_suffix(".json")))
        except (UserError, ValueError):
            return None

    def spec_id(self, environment: Environment) -> str:
        """The spec id of an image: that of Docker's images."""
        return environment.spec_id(self._template.read_text(encoding="utf-8"))

    def image(self, environment: Environment) -> Path:
        """The place of an environment's image, whether it is there or not."""
        return self._folder / f"{environment.made_as}-{self.spec_id(environment)}{self.suffix}"

    def take(self, environment: Environment, realised_id: str, details: Mapping[str, Any], archive: Path) -> Path:
        """See `FileEngine`."""
        usable = self.availability()
        if not usable.usable:
            raise UserError(f"engine {self.name}: {usable.reason}; {usable.remedy}")
        image = self.image(environment)
        self._folder.mkdir(parents=True, exist_ok=True)
        with files.temporary_folder(self._folder, ".taking-") as room:
            made = room / image.name
            variables = self.make(archive, made)
            made.replace(image)
        mark = ImageMark(realised_id=realised_id, details=dict(details), variables=variables)
        files.write_json(image.with_suffix(".json"), mark.model_dump())
        return image

    def _how_to_get(self, environment: Environment) -> str:
        exports, imports = task_with("env", "to"), task_with("archive", "engine")
        return (
            f"it has no image here: `invoke {exports} --env {environment.name}` where there is Docker, then "
            f"`invoke {imports} --engine {self.name} --archive <its file>` here"
        )


class FileStarter:
    """Starts programs in image files, each as a child process under a supervisor."""

    def __init__(self, engine: ImageFiles) -> None:
        self._engine = engine

    def start(self, built: Built, launch: Launch) -> "Process":
        """See `Starter`. Of the limits only the time is enforced."""
        from tsuishi.engines.subprocesses import ChildProcess

        engine = self._engine
        return ChildProcess(engine.command(built, launch), engine.own_variables(), is_workload=engine.starts_workloads)

    def confinement(self, python: str) -> Mapping[str, Any]:
        return {"sandbox": self._engine.confinement()}

    def why_no_gpus(self, gpus: Sequence[Gpu]) -> str:
        return ""

    def gpu_remedy(self) -> str:
        return self._engine.gpu_remedy

    def inside(self, path: Path, place: str) -> str:
        return place


def inner_variables(built: Built, launch: Launch) -> dict[str, str]:
    """The variables of a program in an image, where the folder of CUDA's compiled code has the same path."""
    kept = cuda_cache(built, launch)
    fixed = {**OF_PYTHON, "LANG": "C.UTF-8", **(launch.network or {})}
    return {**fixed, **of_gpus(launch.limits.gpus), **(of_cuda_cache(str(kept)) if kept else {})}
