"""Flipped bits in a run: `python -m benchmarks.bit_flips RUN [--count N] [--seed S]` from the root, with .venv active.

RUN is the path of a run. A bit of one of its files is flipped, in a copy of the run, and the copy is verified as
`invoke verify` does. The files are taken in turns by their kind, so that small files are altered as often as large
files. The copy is somebody else's run: no seal of this user speaks for its run.json. A table shows by kind how many
flips were found; the exit code is 1 where a flip was not found. The last line compares the time of verification, with
all files in the page cache, with that of sha256sum on the same files.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from tsuishi.base import seals
from tsuishi.base.checkout import Checkout
from tsuishi.results import hash_chain
from tsuishi.results.directory import RunDirectory
from tsuishi.results.quick_verification import UNCHAINED
from tsuishi.results.verification import verify
from tsuishi.specs.vocabulary import Vocabulary, vocabulary

# What a run has for its owner alone.
OF_ITS_USER = UNCHAINED - {hash_chain.FILE}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    words = vocabulary(Checkout().suites)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / given.run.name
        shutil.copytree(given.run, copy, ignore=shutil.ignore_patterns(*OF_ITS_USER))
        seals.key_file = lambda: Path(folder) / "key"
        run = RunDirectory(copy)
        began = time.perf_counter()
        first = verify(run, words)
        took_s = time.perf_counter() - began
        if not first.is_verified:
            sys.exit(f"{given.run} is not verified before: {first.faults[0]}")
        flips, found = Counter[str](), Counter[str]()
        chance, files = np.random.default_rng(given.seed), by_kind(copy)
        for number in range(given.count):
            kind = list(files)[number % len(files)]
            flips[kind] += 1
            found[kind] += is_found(run, files[kind][chance.integers(len(files[kind]))], chance, words)
        for kind, count in flips.items():
            print(f"{kind:<20} {found[kind]:>5} of {count:>5} found")
        print(f"{'all':<20} {found.total():>5} of {flips.total():>5} found")
        every = [str(path) for paths in files.values() for path in paths]
        began = time.perf_counter()
        subprocess.run([shutil.which("sha256sum") or "sha256sum", *every], check=True, capture_output=True)
        sums_s = time.perf_counter() - began
    print(f"{first.bytes / 1e6:.1f} MB: verified in {took_s:.2f} s, sha256sum {sums_s:.2f} s")
    return int(found != flips)


def by_kind(run: Path) -> dict[str, list[Path]]:
    """The files of a run that have content, by their names; records by their folder."""
    kinds: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(run.rglob("*")):
        if path.is_file() and path.stat().st_size and path.name not in OF_ITS_USER:
            place = path.relative_to(run).parts
            kinds["/".join((place[0], place[-1])) if place[0] == "trials" else place[0]].append(path)
    return kinds


def is_found(run: RunDirectory, path: Path, chance: np.random.Generator, words: Vocabulary) -> bool:
    content = path.read_bytes()
    place = int(chance.integers(8 * len(content)))
    changed = bytearray(content)
    changed[place // 8] ^= 1 << place % 8
    path.write_bytes(changed)
    try:
        return not verify(run, words).is_verified
    finally:
        path.write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
