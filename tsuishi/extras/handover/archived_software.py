"""The software of environments for an archive: images as `invoke export` writes them, and the packages of locks."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tsuishi.base.errors import UserError
from tsuishi.extras.handover import exchange
from tsuishi.extras.handover.archives.bundle import Bundle
from tsuishi.extras.handover.archives.member_names import ARTIFACTS, IMAGES
from tsuishi.extras.handover.archives.specifications import is_asked
from tsuishi.plan.session import Session
from tsuishi.results.records import EnvironmentRecord
from tsuishi.specs.environment import Environment, find_environment

DOCKER = "docker"


def artifacts(session: Session, records: Iterable[EnvironmentRecord], bundle: Bundle, missing: list[str]) -> None:
    """Add the packages that these environments were built from, as the cache has them: by SHA-256 and file name.

    missing: gets a line for each missing thing.
    """
    for environment in _same(session, records, missing):
        lacking = 0
        for hashes in (*(pin.sha256 for pin in environment.fetched), *((deb.sha256,) for deb in environment.debs)):
            path = session.builder.cache.verified(hashes, session.screen.say, environment.python)
            if path:
                bundle.files[f"{ARTIFACTS}/{path.parent.name}/{path.name}"] = path
            lacking += not path
        if lacking:
            missing.append(f"{ARTIFACTS} of {environment.name}: {lacking} are not in the cache: `invoke fetch`")


def images(
    session: Session, records: Iterable[EnvironmentRecord], folder: Path, bundle: Bundle, missing: list[str]
) -> None:
    """Add the exports of these environments, written to a folder, as `artifacts` does.

    Raises UserError where the engine that holds them does not answer.
    """
    for record in records:
        if record.engine != DOCKER:
            missing.append(f"{IMAGES}: {record.name} is no image; --with-artifacts holds its packages")
            continue
        for environment in _same(session, [record], missing):
            ready = session.builder.find(environment)
            if ready is None or ready.built.realised_id != record.realised_id:
                missing.append(f"{IMAGES}: {record.name} of the run is not built here any more")
                continue
            for written in exchange.write_exports(session.builder, session.screen, (environment.name,), folder):
                bundle.files[f"{IMAGES}/{written.path.name}"] = written.path
                parts = f" ({written.redistribution})" if written.redistribution else ""
                session.screen.say(f"{record.name}: before you pass the archive on, read {exchange.LICENCES}{parts}")


def _same(session: Session, records: Iterable[EnvironmentRecord], missing: list[str]) -> Iterator[Environment]:
    """The environments of this checkout with the specifications of these records; a line for each other record."""
    checkout = session.checkout
    for record in records:
        try:
            environment = find_environment(checkout.images, record.name)
        except UserError:
            environment = None
        if environment is None or not is_asked(record, environment, checkout):
            missing.append(f"software of {record.name}: this checkout has another specification than the run")
        elif environment.pinned:
            yield environment
