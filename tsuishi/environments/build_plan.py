"""What is to be built before anything is measured: downloads, disk, time."""

from collections.abc import Sequence
from dataclasses import dataclass

from tsuishi.base.screen import Screen
from tsuishi.base.units import duration, megabytes
from tsuishi.environments.builder import Builder
from tsuishi.machine.history import History
from tsuishi.specs.environment import Environment

# An image is made in two stages, and until then the engine has its packages twice beside.
_STAGES = 2


@dataclass(frozen=True)
class PlannedBuild:
    """What is to be done for one environment."""

    environment: Environment
    engine: str
    built: bool
    downloads: int
    download_bytes: int
    # What it takes once it is there, and what building it takes, this included.
    size_bytes: int
    disk_bytes: int
    expected_s: float


def plan_builds(builder: Builder, environments: Sequence[Environment], history: History) -> list[PlannedBuild]:
    """What building each environment takes from where things stand now."""
    planned = []
    for environment in environments:
        ready = not environment.pinned or builder.find(environment) is not None
        engine = builder.engine_for(environment).name
        pins = [(one.size_bytes or 0, builder.cache.find(one.sha256, environment.python)) for one in environment.pins]
        debs = [(one.size_bytes or 0, builder.cache.find([one.sha256])) for one in environment.debs]
        missing = [] if ready else [size for size, file in (*pins, *debs) if file is None]
        packed = 0 if ready else sum(size for size, _ in (*pins, *debs))
        size = int(packed * environment.expect.unpacked)
        planned.append(
            PlannedBuild(
                environment=environment,
                engine=engine,
                built=ready,
                downloads=len(missing),
                download_bytes=sum(missing),
                size_bytes=size,
                disk_bytes=_STAGES * (packed + size) if engine == "docker" else size,
                expected_s=0.0 if ready else build_s(history, environment, engine),
            )
        )
    return planned


def build_name(environment: str, engine: str) -> str:
    """Under which name the history knows a build."""
    return f"build {engine} {environment}"


def build_s(history: History, environment: Environment, engine: str) -> float:
    """Seconds that building an environment will take, once all it is made of is here."""
    return history.expected_s(build_name(environment.name, engine), environment.expect.build_s, (f"build {engine}",))


def disk_needed(planned: Sequence[PlannedBuild], jobs: int) -> int:
    """Bytes beside the downloads: for what stays, and for the `jobs` largest of the builds while they go on."""
    meanwhile = sorted((build.disk_bytes - build.size_bytes for build in planned), reverse=True)
    return sum(build.size_bytes for build in planned) + sum(meanwhile[:jobs])


def print_builds(screen: Screen, planned: Sequence[PlannedBuild], left_out: dict[str, str]) -> None:
    """The environments of a plan: what is there, what is to be fetched and built, what is left out and why."""
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
