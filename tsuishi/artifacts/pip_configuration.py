"""What pip is configured with (files and variables): where it looks, by which proxy, trusting which certificates."""

import ast
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

# Where `pip install` takes its options from; a later one wins.
_SECTIONS = ("global", "install", ":env:")
_YES = ("1", "true", "yes", "on", "y", "t")


@dataclass(frozen=True)
class Sources:
    """Where to look for packages: folders (or pages) of files, then indexes, each in order."""

    indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()


@cache
def pip_options() -> Mapping[str, str]:
    """Every option of `pip install` that is configured, as text; asked of pip once."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    options: dict[str, str] = {}
    for section in _SECTIONS:
        for line in listed.stdout.splitlines():
            key, _, value = line.partition("=")
            place, _, option = key.rpartition(".")
            if place == section:
                options[option] = str(ast.literal_eval(value))
    return options


def pip_sources() -> Sources:
    """The indexes and folders pip is configured with, its own index first."""
    from unearth import PackageFinder

    options = pip_options()
    default = " ".join(source["url"] for source in PackageFinder().sources)
    indexes = f"{options.get('index-url', default)} {options.get('extra-index-url', '')}".split()
    if options.get("no-index", "").lower() in _YES:
        indexes = []
    return Sources(tuple(indexes), tuple(options.get("find-links", "").split()))
