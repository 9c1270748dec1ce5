"""Values of settings and their readers, for the core's settings and those of extras."""

from pathlib import Path
from typing import Any, Literal

from tsuishi.base import home

# The values of the settings `engine` and `executor`; an extra that adds to them has a field of that name.
CoreEngine = Literal["auto", "docker", "venv", "host"]
CoreExecutor = Literal["auto", "local"]


def absolute(path: Path) -> Path:
    """Workloads start in /, so an interpreter in the cache needs its absolute path."""
    return home.expanded(path).absolute()


def listed(value: Any) -> Any:
    """`a,b`, or a list, as a tuple."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return tuple(value) if isinstance(value, list) else value
