"""Brings the environments of an archive's runs back: from the images in it, else from the packages in it."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tsuishi.artifacts.cache import Cache
from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.environments.entry import Ready
from tsuishi.extras.handover.archived_software import DOCKER
from tsuishi.extras.handover.archives.archive_description import environments_of
from tsuishi.extras.handover.archives.member_names import ARTIFACTS, IMAGES, INPUTS
from tsuishi.extras.handover.archives.specifications import is_asked
from tsuishi.extras.handover.archives.zip_container import BadArchive, Container, Entry
from tsuishi.extras.handover.exchange import file_names
from tsuishi.extras.handover.incoming import IncomingRecord, incoming_image, require_room, temporary_room
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import EnvironmentRecord
from tsuishi.specs.environment import Environment, find_environment, without_engine

_HERE = "it was here already"


def restore(
    session: Session, archive: Path, runs: Sequence[RunDirectory], names: Collection[str] | None = None
) -> dict[str, Ready]:
    """The environments of runs of an archive, by their names, each ready to be entered; a line says how each came.

    archive: verified, and `runs` are runs of it (see archive_check.unpacked_runs). names: of the environments that are
    wanted; None: all. With the setting `offline` no network is used; the place of the site
    (tsuishi.registry) is never used. Raises UserError, before anything is built, where this checkout asks for
    another environment of the same name, where an image in the archive is not that of the runs, and, offline, where
    neither an image nor all packages are there.
    """
    session = replace(session, settings=session.settings.model_copy(update={"registry": ""}))
    recorded: dict[str, list[EnvironmentRecord]] = {}
    for record in environments_of(runs):
        if names is None or record.name in names:
            recorded.setdefault(record.name, []).append(record)
    environments = [_asked(session, archive, records) for records in recorded.values()]
    ways: dict[str, str] = {}  # how each came here, in words
    lacking = []
    for environment in environments:
        ready = session.builder.find(environment)
        if not environment.pinned or (ready and _is_same(ready, recorded[environment.name])):
            ways[environment.name] = _HERE
        else:
            lacking.append(environment)
    if lacking:
        for name in _loaded(session, archive, lacking, recorded):
            ways[name] = "from the image in the archive"
        for environment in lacking:
            if environment.name not in ways:
                here = session.builder.is_built(environment)
                ways[environment.name] = _HERE if here else _other_way(session, archive, environment)
    made = session.build(environments)
    for name, ready in made.items():
        is_same = _is_same(ready, recorded[name])
        same = "the same as in the runs" if is_same else "not the same build as in the runs: it was built again"
        session.screen.say(f"{name}: {ways[name]}; {same}")
    return made


def _asked(session: Session, archive: Path, records: Sequence[EnvironmentRecord]) -> Environment:
    """The environment of these records, as this checkout asks for it. Raises UserError where it differs."""
    name, checkout = records[0].name, session.checkout
    environment = find_environment(checkout.images, name)
    if environment is None:
        raise UserError(f"{archive}: its runs used {name}, which this checkout does not have: {_advice(name)}")
    for record in records:
        if not is_asked(record, environment, checkout):
            raise UserError(
                f"{archive}: its runs used {name} of another specification (spec id {record.spec_id}) than this "
                f"checkout has: {_advice(name)}"
            )
    return environment


def _advice(name: str) -> str:
    return f"{INPUTS}/<run>/images/{without_engine(name)}.toml and its lock in the archive are right, if it holds them"


def _is_same(ready: Ready, records: Iterable[EnvironmentRecord]) -> bool:
    """Whether all these records in the runs have the realised id, or the layers, that the environment has here."""
    layers = ready.record.image and ready.record.image.layers
    return all(
        record.realised_id == ready.record.realised_id or (layers and record.image and record.image.layers == layers)
        for record in records
    )


def _loaded(
    session: Session,
    archive: Path,
    environments: Sequence[Environment],
    recorded: dict[str, list[EnvironmentRecord]],
) -> list[str]:
    """Take images and packages of environments out of an archive; give the images to the engine. Returns their names.

    Packages go into the cache, and only those that the locks of this checkout name by these digests.
    """
    docker = [e for e in environments if session.builder.engines.chosen_for(e).name == DOCKER]
    wanted = {
        f"{IMAGES}/{file}": environment.name
        for environment in docker
        for file in file_names(environment.made_as, str(recorded[environment.name][0].spec_id))
    }
    packages = {digest for environment in environments for digest in _digests(environment)}
    with temporary_room(session.settings.cache) as folder:
        images: dict[str, Path] = {}
        try:
            with files.reading(archive) as file:
                for entry in Container(file).entries():
                    if entry.name in wanted:
                        images[wanted[entry.name]] = _written(entry, folder)
                    elif entry.name.startswith(f"{ARTIFACTS}/") and entry.name.split("/")[1] in packages:
                        _keep(session, archive, entry)
        except BadArchive as error:
            raise UserError(f"{archive}: {error}") from error
        for name, path in images.items():
            _load(session, archive, path, recorded[name])
    return list(images)


def _digests(environment: Environment) -> set[str]:
    """The SHA-256 of every package that the locks of an environment name."""
    return {digest for pin in environment.fetched for digest in pin.sha256} | {deb.sha256 for deb in environment.debs}


def _written(entry: Entry, folder: Path) -> Path:
    require_room((folder, entry.size))
    path = folder / entry.name.rpartition("/")[2]
    with path.open("xb") as file:
        for piece in entry.content:
            file.write(piece)
    return path


def _keep(session: Session, archive: Path, entry: Entry) -> None:
    """Put a package of the archive into the cache, unless it is there."""
    cache: Cache = session.builder.cache
    _, sha256, name = entry.name.split("/")
    if cache.verified([sha256], session.screen.say):
        return
    with files.temporary_folder(cache.root, ".unseen-") as room:
        path = _written(entry, room)
        if files.sha256_of(path) != sha256:
            raise UserError(f"{archive}: {entry.name}: another content than the SHA-256 in its name")
        cache.keep(path, name, sha256)


def _load(session: Session, archive: Path, path: Path, records: Sequence[EnvironmentRecord]) -> None:
    """Give an image of the archive to the engine. Raises UserError where the runs were not measured in that image."""
    incoming = incoming_image(session.checkout, path)
    if not is_measured(incoming.record, records):
        measured = ", ".join(sorted({str(record.realised_id) for record in records}))
        raise UserError(
            f"{archive}: {IMAGES}/{path.name} is {incoming.record.realised_id}, and its runs were measured in "
            f"{measured}: do not use the archive"
        )
    with session.screen.moving(f"loading {incoming.record.name}", incoming.record.image.size_bytes) as progress:
        incoming.load(session.builder.engines.docker, progress)


def is_measured(image: IncomingRecord, records: Iterable[EnvironmentRecord]) -> bool:
    """Whether one of the records of runs is of this image: by its id, else by its layers and labels.

    Engines that keep images in containerd's store give them other ids than an export has.
    """
    return any(
        record.spec_id == image.spec_id
        and (
            record.realised_id == image.realised_id
            or (record.image is not None and (record.image.layers, record.image.labels) == _content(image))
        )
        for record in records
    )


def _content(image: IncomingRecord) -> tuple[list[str], dict[str, str]]:
    return image.image.layers, image.image.labels


def _other_way(session: Session, archive: Path, environment: Environment) -> str:
    """How an environment without an image in the archive is made. Raises UserError where it cannot be, offline."""
    missing = session.builder.missing(environment)
    if not missing:
        return "built from packages, without network"
    if session.settings.offline:
        raise UserError(
            f"{archive}: {environment.name} cannot be made offline: no image of it for this engine is in the archive, "
            f"and neither archive nor cache has {', '.join(missing)}: leave --offline out, or "
            f"`invoke fetch --env {environment.name}` where there is a network"
        )
    return "built from its locks, over the network"
