"""The engine of tests/engine."""

from tests.engine.conftest import daemon, podman, settings, tidy

__all__ = ["daemon", "podman", "settings", "tidy"]
