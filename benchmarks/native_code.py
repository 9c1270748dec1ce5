"""The GPUs for which an environment has native code, counted in its wheels: for the `[cuda]` table of its spec.

    python -m benchmarks.native_code torch1.1-cu90 torch2-cuda

The wheels have to be in the cache (`invoke fetch --env …`). Every "fat binary" in a shared library is a set of kernels,
compiled for several compute capabilities; sets with the same capabilities are counted together, as `cubins + PTX`.
Layout: a header of 16 bytes (magic 0xBA55ED50, version 1, header's size, bytes that follow), then entries (kind 1 PTX
or 2 cubin, version, header's size, bytes of code), each with its compute capability at byte 28. NVIDIA documents none
of it; cuobjdump of CUDA 13 gives the same counts for the libraries that it can still read.
"""

import argparse
import mmap
import os
import struct
import tempfile
import zipfile
from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path

from tsuishi.artifacts.cache import Cache
from tsuishi.base.checkout import Checkout
from tsuishi.base.settings import read_settings
from tsuishi.specs.environment import read_environment

_MAGIC = struct.pack("<IHH", 0xBA55ED50, 1, 16)
_HEADER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQ")
_CAPABILITY_AT = 28
_PTX = 1

Code = tuple[frozenset[str], frozenset[str]]  # compute capabilities of cubins, and of PTX


def code_in(library: Path) -> Counter[Code]:
    """The number of fat binaries of a shared library, by the compute capabilities of their code."""
    counted: Counter[Code] = Counter()
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        begin = data.find(_MAGIC)
        while begin != -1:
            end = begin + _HEADER.size + _HEADER.unpack_from(data, begin)[3]
            cubins: set[str] = set()
            ptx: set[str] = set()
            for kind, capability in _entries(data, begin + _HEADER.size, min(end, len(data))):
                (ptx if kind == _PTX else cubins).add(f"{capability // 10}.{capability % 10}")
            counted[frozenset(cubins), frozenset(ptx)] += 1
            begin = data.find(_MAGIC, max(min(end, len(data)), begin + 1))
    return counted


def _entries(data: mmap.mmap, begin: int, end: int) -> Iterator[tuple[int, int]]:
    while begin + _CAPABILITY_AT + 4 <= end:
        kind, _, header, size = _ENTRY.unpack_from(data, begin)
        yield kind, struct.unpack_from("<I", data, begin + _CAPABILITY_AT)[0]
        begin += header + size


def code_in_wheel(wheel: Path, only: Container[str] | None = None) -> dict[str, Counter[Code]]:
    """`code_in` for every shared library of a wheel, or for `only` these; without libraries that have no such code."""
    by_library = {}
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        for name in archive.namelist():
            if ".so" in Path(name).name and (only is None or name in only):
                library = Path(archive.extract(name, folder))
                if library.stat().st_size and (counted := code_in(library)):
                    by_library[name] = counted
                library.unlink()
    return by_library


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environments", nargs="+", metavar="ENVIRONMENT")
    given = parser.parse_args()
    cache = Cache(read_settings({}, os.environ, {}).cache)
    for name in given.environments:
        environment = read_environment(Checkout().images / f"{name}.toml")
        print(f"{name}: {environment.cuda and ' to '.join(environment.cuda.native)} by its spec")
        takes = {each: of.takes for each, of in environment.libraries.carriers.items()} if environment.libraries else {}
        for pin in environment.fetched:
            wheel = cache.find(pin.sha256, environment.python)
            if wheel is None or wheel.suffix != ".whl":
                print(f"  {pin.name}: not a wheel in the cache")
                continue
            for library, counted in code_in_wheel(wheel, takes.get(pin.name)).items():
                for (cubins, ptx), count in counted.most_common(5):
                    held = f"{' '.join(_sorted(cubins)) or 'no cubin'} + {' '.join(_sorted(ptx)) or 'no PTX'}"
                    print(f"  {library}: {count} x {held}")


def _sorted(capabilities: frozenset[str]) -> list[str]:
    return sorted(capabilities, key=lambda capability: [int(part) for part in capability.split(".")])


if __name__ == "__main__":
    main()
