"""The cases of all shipped suites: what results and published numbers are matched by, so no id may ever change.

python -m tests.case_ids              every case of every suite, profile and accelerator, a line each: to compare
                                      two commits by
python -m tests.case_ids --digests    what tests/specs/case_ids.json holds: written anew where cases are added
"""

import json
import sys
from pathlib import Path

from tsuishi.base import toml
from tsuishi.base.checkout import Checkout
from tsuishi.specs.case import Case
from tsuishi.specs.environment import Accelerator
from tsuishi.specs.suite import PROFILES, every_suite

HELD = Path(__file__).parent / "specs" / "case_ids.json"
_ACCELERATORS: tuple[Accelerator, ...] = ("cpu", "cuda")


def shipped() -> dict[str, list[Case]]:
    """The cases, in their order, by suite/profile/accelerator."""
    return {
        f"{suite.name}/{profile}/{accelerator}": [case for case, _ in suite.cases(profile, accelerator)]
        for suite in every_suite(Checkout().suites)
        for profile in PROFILES
        for accelerator in _ACCELERATORS
    }


def digests() -> dict[str, str]:
    """How many cases there are, and a hash over their ids in their order: trials are shuffled from that order."""
    return {name: f"{len(cases)} {toml.digest([case.id for case in cases])}" for name, cases in shipped().items()}


def main() -> None:
    if "--digests" in sys.argv:
        print(json.dumps(digests(), indent=2))
        return
    for name, cases in shipped().items():
        for case in cases:
            print(name, case.id, toml.canonical_json(case.axes))


if __name__ == "__main__":
    main()
