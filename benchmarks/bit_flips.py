"""Flipped bits in a run or an archive: `python -m benchmarks.bit_flips PATH [--count N] [--seed S]` from the root, with
.venv active.

PATH is a run, or a file that `invoke archive` wrote. A bit is flipped in a copy, and the copy is verified as
`invoke verify` does. The files in it are taken in turns by their kind, so that small files are altered as often as
large files; of an archive also what lies between files, and the directory at its end: there a flip is found, or it is
without effect, and the archive is verified with the root that it had. The copy of a run is somebody else's run: no seal
of this user speaks for its run.json. A table shows by kind how many flips were found; the exit code is 1 where a flip
was neither found nor without effect. The last line compares the time of verification, with all files in the page
cache, with that of sha256sum on the same files.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tsuishi.base import seals
from tsuishi.base.checkout import Checkout
from tsuishi.results.assurance import OF_ITS_USER
from tsuishi.results.directory import RunDirectory
from tsuishi.results.verification import verify
from tsuishi.specs.vocabulary import Vocabulary, vocabulary

# Of an entry in a ZIP file, without its name; and the kinds of places of an archive that are in no file.
_HEADER_BYTES = 30
_BESIDE_FILES = ("header", "directory")


# A kind of place in a file: the file, and the bytes from and to which the place goes.
Places = dict[str, list[tuple[Path, int, int]]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, metavar="PATH")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    words = vocabulary(Checkout().suites)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / given.path.name
        verification: Callable[[], Any]
        seals.key_file = lambda: Path(folder) / "key"
        if given.path.is_dir():
            shutil.copytree(given.path, copy, ignore=shutil.ignore_patterns(*OF_ITS_USER))
            places = {kind: [(path, 0, path.stat().st_size) for path in paths] for kind, paths in by_kind(copy).items()}
            verification = partial(verify, RunDirectory(copy), words)
        else:
            from tsuishi.extras.handover.archives.archive_check import (
                verify_archive,  # the core's tests import this file
            )

            shutil.copy(given.path, copy)
            places = places_of(copy)
            verification = partial(verify_archive, copy, words)
        began = time.perf_counter()
        first = verification()
        took_s = time.perf_counter() - began
        if not first.is_verified:
            sys.exit(f"{given.path} is not verified before: {first.faults[0]}")
        flips, found, harmless = Counter[str](), Counter[str](), Counter[str]()
        chance = np.random.default_rng(given.seed)
        for number in range(given.count):
            kind = list(places)[number % len(places)]
            flips[kind] += 1
            place = places[kind][chance.integers(len(places[kind]))]
            after = flipped(place, chance, verification)
            found[kind] += not after.is_verified
            harmless[kind] += after.is_verified and kind in _BESIDE_FILES and after.root == first.root
        for kind, count in flips.items():
            without = f", {harmless[kind]} without effect" if harmless[kind] else ""
            print(f"{kind:<30} {found[kind]:>5} of {count:>5} found{without}")
        print(f"{'all':<30} {found.total():>5} of {flips.total():>5} found")
        every = sorted({str(path) for of_kind in places.values() for path, _, _ in of_kind})
        began = time.perf_counter()
        subprocess.run([shutil.which("sha256sum") or "sha256sum", *every], check=True, capture_output=True)
        sums_s = time.perf_counter() - began
    print(f"{first.bytes / 1e6:.1f} MB: verified in {took_s:.2f} s, sha256sum {sums_s:.2f} s")
    return int(found + harmless != flips)


def by_kind(run: Path) -> dict[str, list[Path]]:
    """The files of a run that have content, by their names; records by their folder."""
    kinds: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(run.rglob("*")):
        if path.is_file() and path.stat().st_size and path.name not in OF_ITS_USER:
            place = path.relative_to(run).parts
            kinds["/".join((place[0], place[-1])) if place[0] == "trials" else place[0]].append(path)
    return kinds


def places_of(archive: Path) -> Places:
    """The places of an archive: its files by their folder and name, their headers, and the directory at its end."""
    from tsuishi.extras.handover.archives.member_names import RUNS

    places: Places = defaultdict(list)
    begin = 0
    with zipfile.ZipFile(archive) as file:
        for info in file.infolist():
            content = info.header_offset + _HEADER_BYTES + len(info.filename)
            places["header"].append((archive, begin, content))
            begin = content + info.file_size
            if info.file_size:
                parts = info.filename.split("/")
                inside = parts[2] if len(parts) > 3 else parts[-1]
                kind = f"{parts[0]}/{inside}" if parts[0] == RUNS else parts[0]
                places[f"{kind}/{parts[-1]}" if inside == "trials" else kind].append((archive, content, begin))
    places["directory"].append((archive, begin, archive.stat().st_size))
    return places


def is_found(run: RunDirectory, path: Path, chance: np.random.Generator, words: Vocabulary) -> bool:
    """Whether the verification of a run finds a flipped bit in one of its files."""
    return not flipped((path, 0, path.stat().st_size), chance, partial(verify, run, words)).is_verified


def flipped(place: tuple[Path, int, int], chance: np.random.Generator, verification: Callable[[], Any]) -> Any:
    """What the verification says while a bit of a place is flipped."""
    path, begin, end = place
    at = int(chance.integers(8 * begin, 8 * end))
    flip(path, at)
    try:
        return verification()
    finally:
        flip(path, at)


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at // 8)
        was = file.read(1)[0]
        file.seek(at // 8)
        file.write(bytes([was ^ 1 << at % 8]))


if __name__ == "__main__":
    sys.exit(main())
