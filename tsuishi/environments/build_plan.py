"""The builds before a measurement: their downloads, disk space and time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tsuishi.base.screen import Screen
from tsuishi.base.units import duration, megabytes
from tsuishi.environments.builder import Builder
from tsuishi.machine.history import History
from tsuishi.specs.environment import Environment


@dataclass(frozen=True)
class PlannedBuild:
    """The build of an environment. `downloads`: how many files are not in the cache. All is 0 where it is built."""

    environment: Environment
    engine: str
    built: bool
    downloads: int = 0
    download_bytes: int = 0
    # The size of the built environment, and the most disk space of its build, which includes that size.
    size_bytes: int = 0
    disk_bytes: int = 0
    expected_s: float = 0.0


def plan_builds(builder: Builder, environments: Sequence[Environment], history: History) -> list[PlannedBuild]:
    """The builds of these environments, given the present content of the cache and the engines."""
    return [_planned(builder, environment, history) for environment in environments]


def _planned(builder: Builder, environment: Environment, history: History) -> PlannedBuild:
    engine = builder.engines.chosen_for(environment)
    if not environment.pinned or builder.is_built(environment):
        return PlannedBuild(environment, engine.name, built=True)
    artefacts = [
        (pin.size_bytes or 0, builder.cache.find(pin.sha256, environment.python)) for pin in environment.fetched
    ]
    artefacts += [(deb.size_bytes or 0, builder.cache.find([deb.sha256])) for deb in environment.debs]
    missing = [size for size, file in artefacts if file is None]
    packed = sum(size for size, _ in artefacts)
    size = int(packed * environment.expect.unpacked)
    return PlannedBuild(
        environment=environment,
        engine=engine.name,
        built=False,
        downloads=len(missing),
        download_bytes=sum(missing),
        size_bytes=size,
        disk_bytes=engine.maker.building_bytes(packed, size) if engine.maker else 0,
        expected_s=build_s(history, environment, engine.name),
    )


def build_name(environment: str, engine: str) -> str:
    """The name of a build in the history."""
    return f"build {engine} {environment}"


def build_s(history: History, environment: Environment, engine: str) -> float:
    """Expected seconds of a build, without its downloads."""
    return history.expected_s(build_name(environment.name, engine), environment.expect.build_s, (f"build {engine}",))


def disk_needed(planned: Sequence[PlannedBuild], jobs: int) -> int:
    """Bytes beside the downloads: those of the built environments, and the other bytes of the `jobs` largest builds."""
    meanwhile = sorted((build.disk_bytes - build.size_bytes for build in planned), reverse=True)
    return sum(build.size_bytes for build in planned) + sum(meanwhile[:jobs])


def print_builds_briefly(screen: Screen, planned: Sequence[PlannedBuild], left_out: Mapping[str, str]) -> None:
    """Print the names of the environments of a plan: those to build, those that are built, those left out."""
    for state, built in (("to build", False), ("built", True)):
        if names := [build.environment.name for build in planned if build.built is built]:
            screen.say(f"environments, {state}: {', '.join(names)}")
    if left_out:
        screen.say(f"left out: {', '.join(left_out)} (--plan says why)")


def print_builds(screen: Screen, planned: Sequence[PlannedBuild], left_out: dict[str, str]) -> None:
    """Print the environments of a plan with their downloads and builds, and why others are left out."""
    rows = [
        (
            build.environment.name,
            build.engine,
            "built" if build.built else "to build",
            f"{build.downloads} files, {megabytes(build.download_bytes)}" if build.downloads else "nothing",
            megabytes(build.size_bytes),
            duration(build.expected_s),
        )
        for build in planned
    ]
    screen.table("Environments", ("environment", "engine", "state", "to fetch", "size", "time"), rows)
    for name, reason in left_out.items():
        screen.say(f"left out: {name}: {reason}")
