"""Shared options: a flag overrides INVOKE_TSUISHI_<NAME>, which overrides `tsuishi:` in invoke.yaml, then the default.

Invoke ignores variables it does not know and reads `=false` as true, so names and values are checked here.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError

from tsuishi import spec
from tsuishi.errors import UserError, unknown

PREFIX = "INVOKE_TSUISHI_"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tsuishi"


def _absolute(path: Path) -> Path:
    """Workloads are started from /: an interpreter in the cache needs its whole path."""
    return path.expanduser().absolute()


def _mapping(value: Any) -> Any:
    """`a=b,c=d` as a mapping; a mapping stays one. No reference has a '=' or a comma in it."""
    if not isinstance(value, str):
        return value
    pairs = [pair.partition("=") for pair in value.split(",") if pair.strip()]
    if not all(separator and key.strip() and used.strip() for key, separator, used in pairs):
        raise ValueError("expected asked=used pairs separated by commas")
    return {key.strip(): used.strip() for key, _, used in pairs}


def _list(value: Any) -> Any:
    """`a,b` as a tuple; a list stays one."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return tuple(value) if isinstance(value, list) else value


class Settings(spec.Spec):
    """Every shared option, with its default."""

    model_config = ConfigDict(strict=False)

    engine: Literal["auto", "docker", "venv", "host"] = "auto"
    # Where downloads, venvs and locks on building live.
    cache: Annotated[Path, AfterValidator(_absolute)] = Field(default_factory=_cache)
    results: Annotated[Path, AfterValidator(Path.expanduser)] = Path("results")
    reports: Annotated[Path, AfterValidator(Path.expanduser)] = Path("reports/out")
    # Base references replaced at an air-gapped site: the reference asked for (or its repository) -> the one used.
    mirrors: Annotated[dict[str, str], BeforeValidator(_mapping)] = {}
    # Where data sets are fetched from, each under its own file name; empty means from where they were published.
    data_urls: Annotated[tuple[str, ...], BeforeValidator(_list)] = ()
    # A data set given by hand: its file, or a folder with it.
    data: Annotated[Path, AfterValidator(_absolute)] | None = None
    # Package indexes and wheel folders; empty means those pip is configured with.
    indexes: Annotated[tuple[str, ...], BeforeValidator(_list)] = ()
    find_links: Annotated[tuple[str, ...], BeforeValidator(_list)] = ()
    # Folders with more CPythons for the venv engine, and the interpreter the host engine uses.
    pythons: Annotated[tuple[str, ...], BeforeValidator(_list)] = ()
    host_python: str = "python3"
    # Of reports: ISO 639-1, see tsuishi/report/languages/.
    lang: str = "en"
    telemetry_interval: Annotated[float, Field(ge=0.1, le=60)] = 1.0
    # Limits of a trial's container.
    memory_gib: Annotated[float, Field(gt=0)] | None = None
    pids: Annotated[int, Field(ge=16)] = 4096


def read_settings(configured: Mapping[str, Any], environ: Mapping[str, str], flags: Mapping[str, Any]) -> Settings:
    """Merge the four levels. Raises UserError naming the variable, flag or key that is wrong and what is known."""
    known = set(Settings.model_fields)
    from_environ = {
        name.removeprefix(PREFIX).lower(): value for name, value in environ.items() if name.startswith(PREFIX)
    }
    for name in from_environ:
        if name not in known:
            raise unknown("variable", PREFIX + name.upper(), (PREFIX + key.upper() for key in known))
    for name in configured:
        if name not in known:
            raise unknown("key in invoke.yaml", f"tsuishi.{name}", (f"tsuishi.{key}" for key in known))
    levels = (configured, from_environ, flags)
    given = {name: value for level in levels for name, value in level.items() if value not in (None, "")}
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        raise UserError(f"settings: {spec.explain(error, Settings)}") from error


def mirrored(reference: str, mirrors: Mapping[str, str]) -> str:
    """The reference to use for the one asked for: a whole reference in the map wins over its repository.

    >>> mirrored("docker.io/library/python:3.6", {"docker.io/library/python": "mirror.lan/python"})
    'mirror.lan/python:3.6'
    """
    if reference in mirrors:
        return mirrors[reference]
    repository, colon, tag = reference.rpartition(":")
    for asked in sorted(mirrors, key=len, reverse=True):
        prefix, used = asked.rstrip("/"), mirrors[asked].rstrip("/")
        if repository == prefix or repository.startswith(f"{prefix}/"):
            return used + repository.removeprefix(prefix) + colon + tag
    return reference
