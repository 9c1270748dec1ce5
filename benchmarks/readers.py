"""What readers do with files that were altered at random: the long form of tests/test_readers.py.

    python -m benchmarks.readers [--examples 20000] [--only events,lock,hostile]

Alters a file of each kind again and again, and has its reader read it. Prints for each how many were taken and how many
refused, the most memory that Python's objects took, and every error that is not one of ours. Then `hostile`: tables
made to take much, of 8 MiB or what else is read of their form, each adopted in its own process: the CPU seconds and
the memory of each. Ends with 1 for an error that is not ours, and for a table that takes more than a minute or 1 GiB.
"""

import argparse
import math
import multiprocessing
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings

from tests.extras.handover.test_hostile_archives import archive_readers
from tests.hostile_tables import hostile_tables
from tests.readers import Reader, adopt_and_keep, altered, peak_bytes, readers
from tsuishi.base import toml
from tsuishi.base.errors import UserError

# What a hostile table may take: CPU seconds, and MiB.
_MOST_S, _MOST_MIB = 60.0, 1024.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=20_000, help="altered files of each kind")
    parser.add_argument("--only", default="", help="kinds, separated by commas; without it all")
    parser.add_argument("--bytes", type=int, default=toml.MOST_TEXT_BYTES, help="of each hostile table at most")
    given_options = parser.parse_args()
    wanted = {name for name in given_options.only.split(",") if name}
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, reader in {**readers(Path(folder)), **archive_readers(Path(folder))}.items():
            if not wanted or name in wanted:
                wrong += _tried(name, reader, given_options.examples)
        if not wanted or "hostile" in wanted:
            for name, content in hostile_tables(given_options.bytes).items():
                wrong += _is_wrong(name, Path(folder) / f"table{Path(name).suffix}", content())
    return int(wrong > 0)


def _tried(name: str, reader: Reader, examples: int) -> int:
    """The number of different errors that are not ours, which are printed."""
    begun, counts, most = time.monotonic(), Counter[bool](), 0
    errors: dict[str, str] = {}

    @settings(
        max_examples=examples, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )  # fmt: skip
    @given(altered(reader.content))
    def read(content: bytes) -> None:
        nonlocal most
        try:
            counts[reader.accepts(content)] += 1
            if sum(counts.values()) % 100 == 0:  # tracing takes several times as long
                most = max(most, peak_bytes(reader, content))
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            errors.setdefault(f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}", str(error)[:200])

    read()
    took_s = time.monotonic() - begun
    said = f"{counts[True]} taken, {counts[False]} refused, {most / 2**20:.1f} MiB at most, {took_s:.0f} s"
    print(f"{name:12} {said}; errors that are not ours: {len(errors)}", flush=True)
    for where, text in errors.items():
        print(f"    {where}: {text}", flush=True)
    return len(errors)


def _is_wrong(name: str, path: Path, content: bytes) -> bool:
    """Whether a hostile table ends in an error that is not ours, or takes too much, which is printed."""
    path.write_bytes(content)
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_adopted, args=(path, theirs))
    child.start()
    theirs.close()
    try:
        said, took_s, mib = ours.recv()
    except EOFError:
        said, took_s, mib = "ERROR: its process was killed", math.inf, math.inf
    child.join()
    is_wrong = bool(said.startswith("ERROR") or took_s > _MOST_S or mib > _MOST_MIB)
    took = f"{len(content) >> 10:5} kB {took_s:6.1f} s {mib:6.0f} MiB"
    print(f"{name:36} {took}  {'WRONG ' * is_wrong}{said}", flush=True)
    return is_wrong


def _adopted(path: Path, answer: Connection) -> None:
    """Adopt a table, and send how it ended, the CPU seconds, and the memory that the process grew by in MiB."""
    begun, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        adopt_and_keep(path)
        said = "read"
    except UserError as error:
        said = f"refused: {str(error).replace(f'{path.parent}/', '')[:110]}"
    except Exception as error:
        said = f"ERROR: {type(error).__name__}: {str(error)[:100]}"
    mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    answer.send((said, time.process_time() - begun, mib))


if __name__ == "__main__":
    sys.exit(main())
