"""Readers of values of settings, for the core's settings and those of extras."""

from pathlib import Path
from typing import Any

from tsuishi.base import home


def absolute(path: Path) -> Path:
    """Workloads start in /, so an interpreter in the cache needs its absolute path."""
    return home.expanded(path).absolute()


def listed(value: Any) -> Any:
    """`a,b`, or a list, as a tuple."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return tuple(value) if isinstance(value, list) else value
