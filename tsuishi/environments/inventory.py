"""The environments of this machine: the rows of `invoke list`, and the work of `invoke images` and `clean --images`."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from tsuishi.base import exclusion, units
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.engines.interface import Engine, Kept, Store
from tsuishi.environments.batch import BUILDING
from tsuishi.environments.builder import Builder
from tsuishi.environments.self_reports import broken_promises
from tsuishi.machine.compatibility import gpu_refusal, why_on_cpu
from tsuishi.machine.gpus import Nvml
from tsuishi.specs.environment import Environment, read_environments

_HEADERS = ("environment", "engine", "state", "manifest", "size", "base", "lock", "age", "promises")
_SHORT = 12


class EnvironmentRow(NamedTuple):
    """A row of `invoke list`. `is_here`: whether it can be made and used here; no column of the table."""

    name: str
    title: str
    default: str
    engine: str
    state: str
    computes_on: str
    is_here: bool


class _Inspected(NamedTuple):
    """A stored environment, compared with its record.

    alteration: how it has changed since its build; empty where it has not, or cannot (an image). manifest: the
    beginning of the digest of all that it holds, and how far its files were compared with it.
    """

    kept: Kept
    alteration: str
    manifest: str


def show(builder: Builder, screen: Screen, *, verify: bool = False) -> None:
    """Print a row for every pinned environment and each engine that has it, and rows for builds of earlier specs.

    `verify`: all their files are read. Raises UserError where an environment has changed since its build.
    """
    storing = _storing(builder, screen, "listed")
    inspected = [_inspected(builder, screen, kept, whole=verify) for _, store in storing for kept in store.kept()]
    pinned = [environment for environment in read_environments(builder.checkout.images) if environment.pinned]
    engines = [engine for engine, _ in storing]
    rows = [row for environment in pinned for row in _rows(builder, environment, engines, inspected)]
    names = {environment.name for environment in pinned}
    strangers = [each for each in inspected if each.kept.environment not in names]
    rows += [_row(each, "of an environment that is not in images/", "") for each in strangers]
    screen.table("Images", _HEADERS, rows)
    screen.say(f"{units.megabytes(sum(each.kept.size_bytes for each in inspected))} in all, where they share nothing")
    screen.say(f"what is in each image (CycloneDX): {builder.settings.cache}/environments/*.cdx.json")
    if verify:
        _raise_altered(screen, inspected)


@contextmanager
def nobody_uses(settings: Settings) -> Iterator[None]:
    """Inside the block no other process measures on this machine or builds. Raises Held where one does."""
    with exclusion.machine(settings.exclusive_on), exclusion.file(settings.cache / BUILDING, "building environments"):
        yield


def remove(builder: Builder, screen: Screen) -> None:
    """Remove all built environments, with a line for each. Environments in use stay, and images of others too."""
    cache, storing = builder.settings.cache, _storing(builder, screen, "removed")
    left = [kept for engine, store in storing for kept in _not_removed(builder, screen, engine, store)]
    if not left:
        shutil.rmtree(cache / "venvs", ignore_errors=True)
        if any(engine is builder.engines.docker for engine, _ in storing):
            # Without the engine there may be images, whose reports stay true.
            shutil.rmtree(cache / "environments", ignore_errors=True)


def environment_row(builder: Builder, nvml: Nvml, environment: Environment) -> EnvironmentRow:
    """The row of an environment, with the accelerator that it would use.

    The files of a virtual environment that is "built" were not compared with its record.
    """
    engine = builder.engines.chosen_for(environment)
    if why_not := _why_not_here(builder, environment):
        state = why_not
    elif not environment.pinned:
        state = "as it is"
    else:
        state = "built" if builder.is_built(environment, at_a_glance=True) else "to build"
    on_cpu = why_on_cpu(environment, nvml)
    refused = gpu_refusal(environment, nvml, builder.checkout.images, "auto", force=False)
    computes_on = f"CPU: {on_cpu}" if on_cpu else f"refused: {refused}" if refused else "GPU"
    default = ", ".join(f"on {accelerator}" for accelerator in environment.default)
    is_here = not (why_not or (refused and not on_cpu))
    return EnvironmentRow(environment.name, environment.title, default, engine.name, state, computes_on, is_here)


def _why_not_here(builder: Builder, environment: Environment) -> str:
    """Why an environment cannot be made, in short words for a table; empty where it can."""
    if environment.open:
        return f"not here: {len(environment.open)} hashes not known yet (invoke lock)"
    refusal = builder.engines.refusal(environment)
    return refusal and f"not here: {refusal}"


def _storing(builder: Builder, screen: Screen, done: str) -> list[tuple[Engine, Store]]:
    """The usable engines that store environments. For an unusable engine it prints that images are not `done`."""
    storing = []
    for engine in builder.engines:
        if engine.store:
            availability = engine.availability()
            if availability.usable:
                storing.append((engine, engine.store))
            else:
                screen.say(f"images are not {done}: {availability.reason}")
    return storing


def _not_removed(builder: Builder, screen: Screen, engine: Engine, store: Store) -> list[Kept]:
    """Remove the environments of an engine. Returns those that stay, because they are in use."""
    left = []
    for kept in store.kept():
        try:
            store.remove(kept)
        except UserError as error:
            left.append(kept)
            screen.say(f"left {kept.name}: {error}")
            continue
        builder.reports.forget(kept)
        screen.say(f"removed {kept.name}")
    if engine.maker:
        engine.maker.tidy()
    return left


def _inspected(builder: Builder, screen: Screen, kept: Kept, *, whole: bool) -> _Inspected:
    """Compare an environment with its record. An image needs no comparison: its id is a digest of its content."""
    inspector = builder.engines[kept.engine].inspector
    if inspector and whole and kept.realised_id:
        screen.say(f"{kept.environment}: reading {units.megabytes(kept.size_bytes)} in {kept.name}")
    alteration = inspector.altered(kept, whole=whole) if inspector else ""
    if not kept.realised_id:  # made by an earlier tsuishi
        return _Inspected(kept, alteration, "none")
    if alteration:
        compared = "altered"
    elif inspector is None:
        compared = "the image's own"
    else:
        compared = "verified" if whole else "sizes and times"
    return _Inspected(kept, alteration, f"{kept.realised_id.rpartition(':')[2][:_SHORT]}: {compared}")


def _raise_altered(screen: Screen, inspected: Sequence[_Inspected]) -> None:
    """Raise UserError where an environment has changed; else print that none has."""
    if lines := [f"{each.kept.name}: {each.alteration}" for each in inspected if each.alteration]:
        raise UserError(f"not as built: {'; '.join(lines)}: remove the folder, then `invoke build`")
    screen.say("no virtual environment has changed since its build; an image's id is a digest of all its content")


def _rows(
    builder: Builder, environment: Environment, engines: Sequence[Engine], inspected: Sequence[_Inspected]
) -> Iterator[tuple[str, ...]]:
    """The rows of an environment: its builds, and, if none is of its present spec, a row for the build to come."""
    all_built = [built for engine in engines if (built := engine.find(environment))]
    present = {(built.engine, built.realised_id) for built in all_built}
    specs = {(built.engine, built.spec_id) for built in all_built}
    of_it = [each for each in inspected if each.kept.environment == environment.name]
    if not present:
        state = _why_not_here(builder, environment) or "to build"
        yield environment.name, builder.engines.chosen_for(environment).name, state, *[""] * (len(_HEADERS) - 3)
    for each in sorted(of_it, key=lambda each: (each.kept.engine, each.kept.realised_id) not in present):
        kept = each.kept
        if each.alteration:
            state = f"altered: {each.alteration}"
        elif (kept.engine, kept.realised_id) in present:
            state = "built"
        elif (kept.engine, kept.spec_id) in specs:
            state = "on another base"
        else:
            state = "of an older spec"
        report = builder.reports.find(kept.environment, kept)
        broken = None if report is None else broken_promises(environment, report)
        promises = "not asked yet" if broken is None else "; ".join(broken) or "kept"
        yield _row(each, state, promises)


def _row(inspected: _Inspected, state: str, promises: str) -> tuple[str, ...]:
    kept = inspected.kept
    base, lock = (text.removeprefix("sha256:")[:_SHORT] for text in (kept.base_digest, kept.lock_sha256))
    age = units.age((datetime.now(UTC) - datetime.fromisoformat(kept.created)).total_seconds())
    size = units.megabytes(kept.size_bytes)
    return kept.environment, kept.engine, state, inspected.manifest, size, base, lock, age, promises
