"""Puts suites/workloads on sys.path, as tests/suites does."""

from tests.suites import conftest

__all__ = ["conftest"]
