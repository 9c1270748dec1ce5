"""What readers do with files that were altered at random: the long form of tests/test_readers.py.

    python -m benchmarks.readers [--examples 20000] [--only events,lock]

Alters a file of each kind again and again, and has its reader read it. Prints for each how many were taken and how many
refused, the most memory that Python's objects took, and every error that is not one of ours; ends with 1 for any.
"""

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings

from tests.extras.handover.test_hostile_archives import archive_readers
from tests.readers import Reader, altered, peak_bytes, readers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=20_000, help="altered files of each kind")
    parser.add_argument("--only", default="", help="kinds, separated by commas; without it all")
    given_options = parser.parse_args()
    wanted = {name for name in given_options.only.split(",") if name}
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, reader in {**readers(Path(folder)), **archive_readers(Path(folder))}.items():
            if not wanted or name in wanted:
                wrong += _tried(name, reader, given_options.examples)
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


if __name__ == "__main__":
    sys.exit(main())
