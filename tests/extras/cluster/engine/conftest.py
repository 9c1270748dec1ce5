"""The engines of tests/engine."""

import pytest

from tests.engine.conftest import podman, settings, tidy
from tests.engine.test_docker import client, engine

__all__ = ["client", "engine", "podman", "settings", "tidy"]


@pytest.fixture(autouse=True)
def no_engine() -> None:
    """These tests have an engine, other than the tests beside them."""
