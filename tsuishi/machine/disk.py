"""Free space on the file systems of this machine."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from tsuishi.base.errors import UserError
from tsuishi.base.units import megabytes


def existing(place: Path) -> Path:
    """The path itself, or its nearest parent that exists."""
    while not place.exists():
        place = place.parent
    return place


def free_bytes(place: Path) -> int:
    """Free bytes of the file system where `place` is, or will be."""
    return shutil.disk_usage(existing(place)).free


def require(needs: Iterable[tuple[Path | None, int]], advice: str, margin: float = 1.0) -> None:
    """Check that every file system has `margin` times the bytes that go to it. `needs`: (place, bytes).

    A place that is None is unknown and not checked. Raises UserError, which ends with `advice`.
    """
    places = [(there := existing(place), there.stat().st_dev, size) for place, size in needs if place is not None]
    for place, disk, _ in places:
        needed, free = sum(size for _, other, size in places if other == disk), free_bytes(place)
        if needed * margin > free:
            raise UserError(
                f"{megabytes(needed)} of disk are needed and {megabytes(free)} are free at {place}: free some, {advice}"
            )
