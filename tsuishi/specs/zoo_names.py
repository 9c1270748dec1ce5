"""The names of the networks that libraries have, for tables that print them: those of a pinned release of each."""

from functools import lru_cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "zoos"
# As tests/zoo_names.py writes them: the library with its release, then the names.
LIBRARIES = tuple(sorted(path.stem for path in _FOLDER.glob("*.txt")))


def framework_of_library(library: str) -> str:
    """The framework of a library's networks."""
    return "tensorflow" if library == "keras" else "torch"


@lru_cache(maxsize=8)
def names_of(library: str) -> tuple[str, frozenset[str]]:
    """(the library with its release, the names of its networks)."""
    release, _, names = (_FOLDER / f"{library}.txt").read_text(encoding="utf-8").partition("\n")
    return release, frozenset(names.split())
