"""What the tests of this folder fetch from, where a test says nothing else."""

from collections.abc import Iterator

import pytest

from tests.artifacts.servers import Site, served, tiny_site


@pytest.fixture
def site() -> Iterator[Site]:
    with served(tiny_site()) as made:
        yield made


@pytest.fixture
def second() -> Iterator[Site]:
    with served(tiny_site()) as made:
        yield made
