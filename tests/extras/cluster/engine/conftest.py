"""The engines of tests/engine."""

from tests.engine.conftest import podman, settings, tidy
from tests.engine.test_docker import client, engine

__all__ = ["client", "engine", "podman", "settings", "tidy"]
