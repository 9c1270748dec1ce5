"""The same data in every pinned environment that is built here: their NumPys and pickles are seven years apart."""

import hashlib
from pathlib import Path

import pytest

from common import data
from tests import cifar10_file
from tests.suites.environments import PINNED, inside, run_inside
from tsuishi.specs.environment import Environment


def digest(sets: object) -> str:
    return hashlib.sha256(b"".join(array.tobytes() for some in sets for array in some)).hexdigest()  # type: ignore[attr-defined]


@pytest.mark.parametrize("environment", PINNED, ids=lambda environment: environment.name)
@inside
def test_a_file_and_a_seed_give_the_same_bytes(environment: Environment, tmp_path: Path) -> None:
    file = tmp_path / "cifar-10-python.tar.gz"
    sha256 = cifar10_file.write_random(file)
    found = run_inside(environment, "check_data.py", sha256, file=file)
    here = data.data_set({"file": str(file), "sha256": sha256}, 20, 8, 0)[:2]
    assert found == {"read": digest(here), "made": digest(data.synthetic(9, 9, 7))}
