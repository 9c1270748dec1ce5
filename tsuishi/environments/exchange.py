"""Exports built environments, each as an archive, and imports archives on machines without a network.

The image keeps its id (artifacts/image_archive.py), so that runs and reports see the same environment.
"""

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tsuishi.artifacts import image_archive, intake
from tsuishi.artifacts.image_archive import OCI
from tsuishi.artifacts.strict_tar import Damaged
from tsuishi.base import units
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.home import expanded
from tsuishi.base.screen import Screen
from tsuishi.engines.docker.engine import DockerEngine
from tsuishi.engines.docker.labels import facts_of
from tsuishi.engines.image_files import ImageFiles, ImageMark
from tsuishi.environments.builder import Builder
from tsuishi.environments.entry import Ready
from tsuishi.environments.incoming import RECORD, asked_files, counted, incoming_image, require_room
from tsuishi.specs.environment import Environment, known_environments, read_environment, select_environments

SUFFIX = ".oci.tar"
_FOLDER = "exports"
LICENCES = "docs/redistribution.md"

Build = Callable[[Sequence[Environment]], object]


@dataclass(frozen=True)
class Exported:
    """An environment that was written as an archive, with its checksum beside it."""

    name: str
    path: Path
    image_id: str
    # Which of its parts may not be passed on freely.
    redistribution: str


def export(builder: Builder, screen: Screen, names: tuple[str, ...], to: Path | str = "") -> list[Path]:
    """Write an archive of each of these environments to the folder `to`, or to exports/; say where and what it is.

    Raises UserError, and writes nothing, where an environment is not built or is no image.
    """
    folder = expanded(to) if to else builder.checkout.from_here(_FOLDER)
    written = write_exports(builder, screen, names, folder)
    for one in written:
        size = units.megabytes(one.path.stat().st_size)
        parts = f" ({one.redistribution})" if one.redistribution else ""
        screen.say(f"{one.name}: exported to {one.path}, {size}, image {one.image_id}")
        screen.say(f"{one.name}: for yourself and your site; before you pass it on, read {LICENCES}{parts}")
    return [one.path for one in written]


def write_exports(builder: Builder, screen: Screen, names: tuple[str, ...], folder: Path) -> list[Exported]:
    """Write an archive of each of these environments to a folder, as `export` does."""
    if not names:
        raise UserError("say which environments to export: --env A,B; `invoke images` shows those that are built")
    environments = select_environments(builder.checkout.images, names, "cpu")
    engine = _engine(builder, "export")
    ready = [_ready(builder, environment) for environment in environments]
    folder.mkdir(parents=True, exist_ok=True)
    return [_export(builder.checkout, screen, engine, environment, folder) for environment in ready]


def import_archives(builder: Builder, screen: Screen, files: Sequence[Path | str], build: Build) -> None:
    """Load the images of archives. Then `build` enters the environments that this checkout has too.

    Raises UserError for an archive whose content does not agree with its record.
    """
    if not files:
        raise UserError("say which archives to import: --archive FILE,FILE")
    paths = [Path(file) for file in files]
    for path in paths:
        if not path.is_file():
            raise UserError(f"there is no file {path}: --archive takes what `invoke export` wrote")
    for of_cluster in builder.engines.of_clusters:
        if of_cluster.name == builder.settings.engine:
            build([_taken(builder.checkout, screen, of_cluster, path) for path in paths])
            return
    engine = _engine(builder, "import")
    for path in paths:
        if environment := _import(builder.checkout, screen, engine, path):
            build([environment])


def _taken(checkout: Checkout, screen: Screen, engine: ImageFiles, path: Path) -> Environment:
    """Make an engine's file of an archive's image. Raises UserError where this checkout has another environment."""
    incoming = incoming_image(checkout, path)
    record, image = incoming.record, incoming.image
    spec = known_environments(checkout.images).get(record.name)
    asked = read_environment(spec) if spec else None
    if asked is None or engine.spec_id(asked) != record.spec_id:
        raise UserError(f"{record.name}: {_how_to_use(checkout, path, image)}")
    facts = {"id": image.id, "tag": image.tag, "size_bytes": image.unpacked_bytes, "layers": image.diff_ids}
    mark = ImageMark(realised_id=image.id, details=facts_of(asked, image.labels, facts, None))
    with screen.moving(f"importing {path.name}", path.stat().st_size) as progress, path.open("rb") as file:
        made = engine.take(asked, mark, counted(image.packed(file), progress))
    screen.say(f"{record.name}: imported as {made}, image {image.id}")
    return asked


def _engine(builder: Builder, doing: str) -> DockerEngine:
    engine, asked = builder.engines.docker, builder.settings.engine
    if asked not in ("auto", engine.name):
        raise UserError(f"engine {asked}: only images can be {doing}ed: leave --engine out")
    usable = engine.availability()
    if not usable.usable:
        raise UserError(f"{doing} needs a container engine: {usable.reason}; start it or install one")
    return engine


def _ready(builder: Builder, environment: Environment) -> Ready:
    name = environment.name
    if not environment.pinned:
        raise UserError(f"{name} is an interpreter of this machine, and no image: it cannot be exported")
    ready = builder.find(environment)
    if ready is None:
        raise UserError(f"{name} is not built as it is asked for now: build it first: invoke build --env {name}")
    return ready


def _export(checkout: Checkout, screen: Screen, engine: DockerEngine, ready: Ready, folder: Path) -> Exported:
    name, built, image = ready.environment.name, ready.built, ready.built.details["image"]
    path = folder / f"{name}-{built.spec_id}{SUFFIX}"
    size = int(image["size_bytes"])
    # For a time there are two copies of the layers, compressed to half or less; the engine makes a copy, too.
    require_room((folder, size), (engine.store.folder(), size))
    with screen.moving(f"exporting {name}", size) as progress:
        notes = partial(_notes, checkout, ready)
        try:
            image_id = image_archive.write_archive(path, engine.store.save(built), image["tag"], notes, progress)
        except Damaged as error:
            raise UserError(f"{name}: the engine saves its image as no archive can be read: {error}") from error
    return Exported(name, path, image_id, ready.environment.redistribution)


def _notes(checkout: Checkout, ready: Ready, image_id: str) -> dict[str, bytes]:
    """The files that travel with an image, by their place in a checkout: its record, its spec, locks and template.

    The record holds `image_id`, the id that most engines give to the image; this engine may give another id.
    """
    record = json.dumps({**ready.record.content(), "realised_id": image_id}, indent=2, ensure_ascii=False) + "\n"
    files = asked_files(checkout, ready.environment.name)
    return {RECORD: record.encode(), **{name: file.read_bytes() for name, file in files.items() if file.exists()}}


def _import(checkout: Checkout, screen: Screen, engine: DockerEngine, path: Path) -> Environment | None:
    """Load the image of an archive. Returns the environment if this checkout has exactly the same."""
    incoming = incoming_image(checkout, path)
    record, image = incoming.record, incoming.image
    with screen.moving(f"importing {path.name}", path.stat().st_size) as progress:
        image_id = incoming.load(engine, progress)
    screen.say(f"{record.name}: imported as {image.tag}, image {image_id}")
    if image_id != record.realised_id:
        screen.say(f"{record.name}: this engine gives images other ids; it was {record.realised_id}")
    spec = known_environments(checkout.images).get(record.name)
    asked = read_environment(spec) if spec else None
    if asked is None or asked.spec_id(checkout.dockerfile.read_text(encoding="utf-8")) != record.spec_id:
        screen.say(f"{record.name}: {_how_to_use(checkout, path, image)}")
        return None
    return asked


def _how_to_use(checkout: Checkout, path: Path, image: intake.ArchivedImage) -> str:
    """The advice where this checkout has another environment of the same name than the archive."""
    brought = {name: text for name, text in image.notes.items() if name != RECORD}
    here = {name: checkout.root / name for name in brought}
    differing = [name for name, file in here.items() if not file.exists() or file.read_bytes() != brought[name]]
    if differing:
        why = f"different: {', '.join(differing)}"
        way = shlex.join(
            ["tar", "xf", str(path), "--strip-components", "1", *(image_archive.NOTES + name for name in differing)]
        )
    else:
        version, revision = (image.labels.get(f"{OCI}{key}") for key in ("version", "revision"))
        why, way = "tsuishi itself differs", f"tsuishi {version} of commit {revision}"
    return f"not what this checkout asks for ({why}): `invoke build` would make another. What it was made with: {way}"
