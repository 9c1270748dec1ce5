"""The spec and the lock of another release of a framework."""

from collections.abc import Sequence
from pathlib import Path

from tsuishi.base.errors import UserError
from tsuishi.base.units import counted, megabytes
from tsuishi.extras.releases.release import (
    Release,
    described,
    find_release,
    labelled,
    spec_file,
    spec_text,
    without_companions,
)
from tsuishi.locking.resolve import Locker, NewLock, environment_of, pin_lines, pins_header
from tsuishi.specs.environment import Environment, read_environment, read_environments
from tsuishi.specs.lock import Pin


def resolve_release(locker: Locker, like: Path, version: str) -> tuple[str, NewLock]:
    """The name, spec and lock of another release of a framework, like the environment images/<like>.toml.

    Raises UserError as `Locker.resolve` does, and where no index has such a release.
    """
    known = read_environment(like)
    release, version = _release(locker, known, version)
    others = read_environments(like.parent)
    made = described(known, version, release, others)
    path = spec_file(like.parent, made)
    locker.say(f"{release.requirement} of {release.first}: CPython {made.python}, packages as of {made.as_of}")
    try:
        pins = locker.pins(made)
    except UserError as error:
        made, left_out = without_companions(made)
        if not left_out:
            raise
        pins = locker.pins(made)
        locker.say(f"left out, as no version of it goes with {release.requirement}: {', '.join(left_out)} ({error})")
    locker.say(_to_fetch(pins))
    if any("+" in each.release for each in others if each.family == made.family):
        made = labelled(made, pins)
    lock = pins_header(made) + pin_lines(pins)
    files = {path: spec_text(made.model_copy(update={"pins": pins})), path.with_suffix(".lock"): lock}
    environment_of(files, path)
    return made.name, NewLock(files, tuple(f"+ {pin.name} {pin.version}" for pin in pins))


def _release(locker: Locker, like: Environment, version: str) -> tuple[Release, str]:
    """The release and its version, as the same build as that of an environment (+cpu) where an index has it."""
    label = like.release.partition("+")[2]
    if label and "+" not in version:
        labelled_version = f"{version}+{label}"
        try:
            return find_release(like, labelled_version, locker.sources.indexes, locker.servers), labelled_version
        except UserError as error:
            locker.say(f"{version} is another build than that of {like.name}, which is +{label}, as {error}")
    return find_release(like, version, locker.sources.indexes, locker.servers), version


def _to_fetch(pins: Sequence[Pin]) -> str:
    """The files that a build will fetch, in words, and how many of them are NVIDIA's libraries."""

    def size(some: Sequence[Pin]) -> str:
        return f"{counted(len(some), 'file')}, {megabytes(sum(pin.size_bytes or 0 for pin in some))}"

    nvidia = [pin for pin in pins if pin.name.startswith("nvidia-")]
    useless = f"; of these {size(nvidia)} are NVIDIA's libraries for GPUs, required on CPUs too" if nvidia else ""
    return f"to fetch: {size(pins)}{useless}"
