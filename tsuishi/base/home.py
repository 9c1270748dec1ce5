"""The folders of this user: home, and those of the XDG base directory specification for caches and configuration."""

import os
from pathlib import Path

from tsuishi.base.errors import UserError


def home() -> Path:
    """The home of this user. Raises UserError where neither HOME nor the list of users names one."""
    try:
        return Path.home()
    except RuntimeError:
        raise UserError(
            f"user {os.getuid()} has no home: HOME is not set, and no entry of the system's users has this number: "
            "set HOME to a folder that you can write"
        ) from None


def expanded(path: str | Path) -> Path:
    """A path with the folder in place of `~` or `~user`. Raises UserError where there is no such user, or no home."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UserError(f"{path}: whose home is that? Write the whole path") from None


def cache() -> Path:
    """The folder for files that can be fetched or made again."""
    return _of_xdg("XDG_CACHE_HOME", ".cache")


def remedy(error: OSError) -> str:
    """What to do where a path cannot be written or read; empty where its folder or its rights are not the cause."""
    path = Path(str(error.filename))
    for variable, folder in (("XDG_CACHE_HOME", cache()), ("XDG_DATA_HOME", data())):
        is_beside = path.is_relative_to(folder.parent) and not isinstance(error, FileNotFoundError)
        if is_beside or folder.is_relative_to(path):
            return f"; set {variable} to a folder that you can write"
    return "; change its rights, or name another place" if isinstance(error, PermissionError) else ""


def configuration() -> Path:
    """The folder for this user's choices and property."""
    return _of_xdg("XDG_CONFIG_HOME", ".config")


def data() -> Path:
    """The folder for this user's own tree of an installed package, and for checks of printed numbers."""
    return _of_xdg("XDG_DATA_HOME", ".local/share")


def _of_xdg(variable: str, usual: str) -> Path:
    """The folder of a variable, whose relative paths do not count, as the specification says; else the usual one."""
    given = Path(os.environ.get(variable, ""))
    return (given if given.is_absolute() else home() / usual) / "tsuishi"
