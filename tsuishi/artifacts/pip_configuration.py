"""The configuration of pip, from its files and variables: indexes, folders, proxy, certificates."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

# The sections that `pip install` reads; a later section wins.
_SECTIONS = ("global", "install", ":env:")


def is_yes(value: str) -> bool:
    """Whether pip reads the value of an option as yes."""
    return value.lower() in ("1", "true", "yes", "on", "y", "t")


@dataclass(frozen=True)
class Sources:
    """Places to look for packages: first folders (or pages) of files, then indexes, each in their order."""

    indexes: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()


@cache
def pip_options() -> Mapping[str, str]:
    """The configured options of `pip install`, as text by name. pip is asked once in a process.

    Where this Python has no pip, as in the environments of uv, the pip of PATH is asked.
    """
    ours, listing = [sys.executable, "-I", "-m", "pip"], ""
    for pip in (ours, *([path] for name in ("pip3", "pip") if (path := shutil.which(name)))):
        asked = subprocess.run([*pip, "config", "list"], capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            listing = asked.stdout
            break
    options: dict[str, str] = {}
    for section in _SECTIONS:
        for line in listing.splitlines():
            key, _, value = line.partition("=")
            place, _, option = key.rpartition(".")
            if place == section:
                options[option] = str(ast.literal_eval(value))
    return options


def pip_proxy() -> str | None:
    """The URL of the proxy that pip uses for every server; None where it has none. pip allows it without a scheme."""
    proxy = pip_options().get("proxy")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def pip_sources() -> Sources:
    """The indexes and folders that pip is configured with, its main index first."""
    from unearth import PackageFinder

    options = pip_options()
    default = " ".join(source["url"] for source in PackageFinder().sources)
    indexes = f"{options.get('index-url', default)} {options.get('extra-index-url', '')}".split()
    if is_yes(options.get("no-index", "")):
        indexes = []
    return Sources(tuple(indexes), tuple(options.get("find-links", "").split()))
