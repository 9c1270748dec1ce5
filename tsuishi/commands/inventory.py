"""What was built and still takes room: `invoke images` and `invoke clean --images`."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from tsuishi.base import exclusion, units
from tsuishi.base.errors import UserError
from tsuishi.engines.interface import Engine, Kept
from tsuishi.engines.venv import VenvEngine
from tsuishi.environments.builder import broken_promises
from tsuishi.plan.session import Session
from tsuishi.specs.environment import Environment, read_environments

_HEADERS = ("environment", "engine", "state", "size", "base", "lock", "age", "promises")
_SHORT = 12


def show(session: Session, verify: bool = False) -> None:
    """A row for every pinned environment and engine that has it, and for what is left of earlier specs.

    `verify`: all of their files are read. Raises UserError where one is not as it was built.
    """
    engines = _engines(session, "listed")
    all_kept = [kept for engine in engines for kept in engine.kept()]
    altered = {kept.name: _altered(session, kept, whole=verify) for kept in all_kept}
    pinned = [environment for environment in read_environments(session.rooms.images) if environment.pinned]
    rows = [row for environment in pinned for row in _rows(session, environment, engines, all_kept, altered)]
    strangers = [kept for kept in all_kept if kept.environment not in {environment.name for environment in pinned}]
    rows += [_row(kept, "of an environment that is not in images/", "") for kept in strangers]
    session.screen.table("Images", _HEADERS, rows)
    session.screen.say(f"{units.megabytes(sum(kept.size_bytes for kept in all_kept))} in all, where they share nothing")
    session.screen.say(f"what is in each image (CycloneDX): {session.settings.cache}/environments/*.cdx.json")
    if verify:
        _tell_altered(session, all_kept, altered)


def remove(session: Session) -> None:
    """Remove all of it, saying each thing; what is in use stays, and what tsuishi did not make."""
    cache, machine = session.settings.cache, exclusion.machine(session.settings.exclusive_on)
    left = False
    with machine, exclusion.file(cache / "building.lock", "building environments"):
        engines = _engines(session, "removed")
        for engine in engines:
            for kept in engine.kept():
                try:
                    engine.remove(kept)
                except UserError as error:
                    left = True
                    session.screen.say(f"left {kept.name}: {error}")
                    continue
                session.builder.forget(kept)
                session.screen.say(f"removed {kept.name}")
            engine.tidy()
        if not left:
            shutil.rmtree(cache / "venvs", ignore_errors=True)
            if session.builder.engines["docker"] in engines:  # else there may be images, and what they said stays true
                shutil.rmtree(cache / "environments", ignore_errors=True)


def _altered(session: Session, kept: Kept, *, whole: bool) -> str:
    if whole and kept.engine == VenvEngine.name and kept.realised_id:
        session.screen.say(f"{kept.environment}: reading {units.megabytes(kept.size_bytes)} in {kept.name}")
    return session.builder.engines[kept.engine].altered(kept, whole=whole)


def _tell_altered(session: Session, all_kept: Sequence[Kept], altered: Mapping[str, str]) -> None:
    """Raise UserError where something is altered."""
    lines = [f"{kept.name}: {altered[kept.name]}" for kept in all_kept if altered[kept.name]]
    if lines:
        raise UserError(f"not as built: {'; '.join(lines)}: remove the folder, then `invoke build`")
    session.screen.say("all virtual environments are as they were built; an image's id is a digest of all it holds")


def why_not_here(session: Session, environment: Environment) -> str:
    """Why an environment cannot be made, as a table has room for it; empty where it can."""
    if environment.open:
        return f"not here: {len(environment.open)} hashes not known yet (invoke lock)"
    refusal = session.builder.refusal(environment)
    return refusal and f"not here: {refusal}"


def _engines(session: Session, done: str) -> list[Engine]:
    """Those that keep something and answer."""
    docker = session.builder.engines["docker"]
    answer = docker.availability()
    if not answer.usable:
        session.screen.say(f"images are not {done}: {answer.reason}")
    return [engine for engine in (docker, session.builder.engines["venv"]) if engine is not docker or answer.usable]


def _rows(
    session: Session,
    environment: Environment,
    engines: Sequence[Engine],
    all_kept: Sequence[Kept],
    altered: Mapping[str, str],
) -> Iterator[tuple[str, ...]]:
    """What there is of one environment; what it would take, where its present spec is not among it."""
    all_built = [built for engine in engines if (built := engine.find(environment))]
    present = {(built.engine, built.realised_id) for built in all_built}
    specs = {(built.engine, built.spec_id) for built in all_built}
    of_it = [kept for kept in all_kept if kept.environment == environment.name]
    if not present:
        state = why_not_here(session, environment) or "to build"
        yield environment.name, session.builder.engine_for(environment).name, state, "", "", "", "", ""
    for kept in sorted(of_it, key=lambda kept: (kept.engine, kept.realised_id) not in present):
        if altered[kept.name]:
            state = f"altered: {altered[kept.name]}"
        elif (kept.engine, kept.realised_id) in present:
            state = "built"
        elif (kept.engine, kept.spec_id) in specs:
            state = "on another base"
        else:
            state = "of an older spec"
        reported = session.builder.reported(kept)
        broken = None if reported is None else broken_promises(environment, reported)
        promises = "not asked yet" if broken is None else "; ".join(broken) or "kept"
        yield _row(kept, state, promises)


def _row(kept: Kept, state: str, promises: str) -> tuple[str, ...]:
    base, lock = (text.removeprefix("sha256:")[:_SHORT] for text in (kept.base_digest, kept.lock_sha256))
    age = units.age((datetime.now(UTC) - datetime.fromisoformat(kept.created)).total_seconds())
    return kept.environment, kept.engine, state, units.megabytes(kept.size_bytes), base, lock, age, promises
