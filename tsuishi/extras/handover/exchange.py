"""Exports built environments, each as a file, and imports such files on machines without a network.

The image keeps its id, so that runs and reports see the same environment.
"""

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tsuishi.base import units
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.home import expanded
from tsuishi.base.screen import Screen
from tsuishi.engines.docker.engine import DockerEngine
from tsuishi.engines.docker.labels import OCI, details
from tsuishi.engines.interface import FileEngine
from tsuishi.environments.builder import Builder
from tsuishi.environments.entry import Ready
from tsuishi.extras.handover.archives.specifications import asked_files
from tsuishi.extras.handover.incoming import (
    NOTES,
    RECORD,
    IncomingImage,
    IncomingRecord,
    counted,
    incoming_image,
    require_room,
    temporary_room,
    write_export,
)
from tsuishi.specs.environment import Environment, find_environment, named_environments, without_engine

# The endings of exports; the second is of earlier exports, which engines load as well.
SUFFIX, _OLD_SUFFIX = ".tar.gz", ".oci.tar"
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
    """Write an archive of each of these environments to the folder `to`, or to exports/; describe each.

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
    ready = ready_images(builder, names)
    folder.mkdir(parents=True, exist_ok=True)
    return [_export(builder.checkout, screen, builder.engines.docker, environment, folder) for environment in ready]


def ready_images(builder: Builder, names: tuple[str, ...]) -> list[Ready]:
    """These environments. Raises UserError where one is not built or is no image."""
    if not names:
        raise UserError("say which environments to export: --env A,B; `invoke images` shows those that are built")
    environments = named_environments(builder.checkout.images, map(without_engine, names))
    _engine(builder, "export")
    return [_ready(builder, environment) for environment in environments]


def file_names(name: str, spec_id: str) -> tuple[str, str]:
    """The name of an environment's export, and its earlier name."""
    return f"{name}-{spec_id}{SUFFIX}", f"{name}-{spec_id}{_OLD_SUFFIX}"


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
    for of_cluster in builder.engines.of_files:
        if of_cluster.name == builder.settings.engine:
            build([_taken(builder.checkout, builder.settings.cache, screen, of_cluster, path) for path in paths])
            return
    engine = _engine(builder, "import")
    for path in paths:
        if environment := _import(builder.checkout, screen, engine, path):
            build([environment])


def _taken(checkout: Checkout, cache: Path, screen: Screen, engine: FileEngine, path: Path) -> Environment:
    """Make an engine's file of an export's image. Raises UserError where this checkout has another environment."""
    incoming = incoming_image(checkout, path)
    record, image = incoming.record, incoming.record.image
    asked = _same_here(checkout, record)
    if asked is None:
        raise UserError(f"{record.name}: {_how_to_use(checkout, incoming)}")
    facts = {
        "id": record.realised_id,
        "tag": incoming.tag,
        "size_bytes": image.size_bytes,
        "layers": image.layers,
    }
    recorded = details(asked, image.labels, facts, None)
    with temporary_room(cache) as room:
        require_room((room, 2 * image.size_bytes))
        with screen.moving(f"importing {path.name}", image.size_bytes) as progress:
            made = engine.take(asked, record.realised_id, recorded, incoming.unpacked(room, progress))
    screen.say(f"{record.name}: imported as {made}, image {record.realised_id}")
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
        raise UserError(f"{name} is not built by its present specification: build it first: invoke build --env {name}")
    return ready


def _export(checkout: Checkout, screen: Screen, engine: DockerEngine, ready: Ready, folder: Path) -> Exported:
    name, built, image = ready.environment.name, ready.built, ready.built.details["image"]
    path = folder / file_names(name, built.spec_id)[0]
    size = int(image["size_bytes"])
    # An image becomes smaller by compression, to half or less; for a time the engine has a copy of the image, too.
    require_room((folder, size), (engine.store.folder(), size))
    with screen.moving(f"exporting {name}", size) as progress:
        write_export(path, _notes(checkout, ready), counted(engine.store.save(ready.environment), progress))
    return Exported(name, path, built.realised_id, ready.environment.redistribution)


def _notes(checkout: Checkout, ready: Ready) -> dict[str, bytes]:
    """The files that travel with an image, by their place in a checkout: its record, its spec, locks and template."""
    record = json.dumps(ready.record.content(), indent=2, ensure_ascii=False) + "\n"
    files = asked_files(checkout, ready.environment.name)
    return {RECORD: record.encode(), **{name: file.read_bytes() for name, file in files.items() if file.exists()}}


def _import(checkout: Checkout, screen: Screen, engine: DockerEngine, path: Path) -> Environment | None:
    """Load the image of an archive. Returns the environment if this checkout has exactly the same."""
    incoming = incoming_image(checkout, path)
    record = incoming.record
    with screen.moving(f"importing {path.name}", record.image.size_bytes) as progress:
        image_id = incoming.load(engine, progress)
    screen.say(f"{record.name}: imported as {incoming.tag}, image {image_id}")
    if image_id != record.realised_id:
        screen.say(f"{record.name}: this engine gives images other ids; it was {record.realised_id}")
    asked = _same_here(checkout, record)
    if asked is None:
        screen.say(f"{record.name}: {_how_to_use(checkout, incoming)}")
    return asked


def _same_here(checkout: Checkout, record: IncomingRecord) -> Environment | None:
    """The environment of this checkout from which the image of an export would be made; None where it has another."""
    asked = find_environment(checkout.images, record.name)
    is_same = asked and asked.spec_id(checkout.dockerfile.read_text(encoding="utf-8")) == record.spec_id
    return asked if is_same else None


def _how_to_use(checkout: Checkout, incoming: IncomingImage) -> str:
    """The advice where the environment of this name in this checkout differs from the export."""
    brought = incoming.notes
    here = {name: checkout.root / name for name in brought}
    differing = [name for name, file in here.items() if not file.exists() or file.read_bytes() != brought[name]]
    if differing:
        why = f"different: {', '.join(differing)}"
        way = shlex.join(
            ["tar", "xf", str(incoming.path), "--strip-components", "1", *(NOTES + name for name in differing)]
        )
    else:
        version, revision = (incoming.record.image.labels.get(f"{OCI}{key}") for key in ("version", "revision"))
        why, way = "tsuishi itself differs", f"tsuishi {version} of commit {revision}"
    return f"not the environment of this checkout ({why}): `invoke build` would make a different image. Inputs: {way}"
