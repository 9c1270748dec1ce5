"""The software of environments for an archive: images as `invoke export` writes them, and the packages of locks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tsuishi.base.errors import UserError
from tsuishi.environments import provenance
from tsuishi.extras.handover import exchange
from tsuishi.extras.handover.archives.member_names import ARTIFACTS, IMAGES
from tsuishi.plan.session import Session
from tsuishi.results.records import EnvironmentRecord
from tsuishi.specs.environment import Environment, find_environment

DOCKER = "docker"


@dataclass
class Software:
    """Files by their names in an archive, and a line for each missing thing."""

    files: dict[str, Path | bytes] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def artifacts(session: Session, records: Iterable[EnvironmentRecord]) -> Software:
    """The packages that these environments were built from, as the cache has them: by SHA-256 and file name."""
    found = Software()
    for environment in _same(session, records, found.missing):
        lacking = 0
        for hashes in (*(pin.sha256 for pin in environment.pins), *((deb.sha256,) for deb in environment.debs)):
            path = session.builder.cache.verified(hashes, session.screen.say, environment.python)
            if path:
                found.files[f"{ARTIFACTS}/{path.parent.name}/{path.name}"] = path
            lacking += not path
        if lacking:
            found.missing.append(f"{ARTIFACTS} of {environment.name}: {lacking} are not in the cache: `invoke fetch`")
    return found


def images(session: Session, records: Iterable[EnvironmentRecord], folder: Path) -> Software:
    """The exports of these environments, written to a folder.

    Raises UserError where the engine that holds them does not answer.
    """
    found = Software()
    for record in records:
        if record.engine != DOCKER:
            found.missing.append(f"{IMAGES}: {record.name} is no image; --with-artifacts holds its packages")
            continue
        for environment in _same(session, [record], found.missing):
            ready = session.builder.find(environment)
            if ready is None or ready.built.realised_id != record.realised_id:
                found.missing.append(f"{IMAGES}: {record.name} of the run is not built here any more")
                continue
            for written in exchange.write_exports(session.builder, session.screen, (environment.name,), folder):
                found.files[f"{IMAGES}/{written.path.name}"] = written.path
                parts = f" ({written.redistribution})" if written.redistribution else ""
                session.screen.say(f"{record.name}: before you pass the archive on, read {exchange.LICENCES}{parts}")
    return found


def _same(session: Session, records: Iterable[EnvironmentRecord], missing: list[str]) -> Iterator[Environment]:
    """The environments of this checkout with the specifications of these records; a line for each other record."""
    checkout = session.checkout
    for record in records:
        try:
            environment = find_environment(checkout.images, record.name)
        except UserError:
            environment = None
        if environment is None or not provenance.is_asked(record, environment, checkout):
            missing.append(f"software of {record.name}: this checkout has another specification than the run")
        elif environment.pinned:
            yield environment
