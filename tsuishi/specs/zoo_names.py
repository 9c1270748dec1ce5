"""The names of the networks that libraries have, for tables that print them: those of a pinned release of each."""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from tsuishi.base.printable import alphanumerics

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


def name_in(library: str, text: str) -> str:
    """The library's name of a network as people write it, by letters and digits: VGG-19 is vgg19; empty without."""
    return text if text in names_of(library)[1] else _by_letters(library).get(alphanumerics(text), "")


@lru_cache(maxsize=8)
def _by_letters(library: str) -> dict[str, str]:
    """The names by their letters and digits, but for those that several names share."""
    names = sorted(names_of(library)[1])
    counted = Counter(map(alphanumerics, names))
    return {letters: name for name in names if counted[letters := alphanumerics(name)] == 1}


def near_names(text: str, libraries: Iterable[str] = LIBRARIES) -> list[str]:
    """At most one name of each library that is spelt nearly so, as "torchvision:resnext50_32x4d"."""
    letters = alphanumerics(text)
    found = []
    for library in libraries:
        known = _by_letters(library)
        near = [each for each in known if each == letters or (len(letters) > 3 and each.startswith(letters))]
        found += [f"{library}:{known[each]}" for each in sorted(near, key=len)[:1]]
    return found
