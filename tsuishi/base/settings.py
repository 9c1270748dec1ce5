"""Options of all commands. A value comes from a flag, from the variable INVOKE_TSUISHI_<NAME>, from `tsuishi:` in
invoke.yaml, or is the default; the first of these wins.

Invoke ignores variables it does not know and reads `=false` as true, so names and values are checked here.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError

from tsuishi import extras
from tsuishi.base import budget, home, toml
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError, unknown
from tsuishi.base.setting_values import CoreEngine, CoreExecutor, absolute, listed

PREFIX = "INVOKE_TSUISHI_"
# Settings that are paths which the user sees, paths which work from any folder, and lists of folders.
_SHOWN = ("results", "reports")
_PATHS = ("cache", "ca_bundle", "data")
_FOLDERS = ("pythons", "find_links")
# Keys of invoke.yaml under which settings of an extra stand together.
_GROUPS: tuple[str, ...] = extras.given("settings", "GROUP")
BusyGpu = Literal["wait", "refuse", "use"]


def _exclusive_on() -> str:
    """The value of the variable, which also counts for settings that are made without `read_settings`."""
    return os.environ.get(f"{PREFIX}EXCLUSIVE_ON") or "this machine"


def _mapping(value: Any) -> Any:
    """`a=b,c=d` as a mapping; a mapping stays as it is. No reference holds '=' or a comma."""
    if not isinstance(value, str):
        return value
    pairs = [pair.partition("=") for pair in value.split(",") if pair.strip()]
    if not all(separator and key.strip() and used.strip() for key, separator, used in pairs):
        raise ValueError("expected asked=used pairs separated by commas")
    return {key.strip(): used.strip() for key, _, used in pairs}


def _within(value: str) -> str:
    budget.seconds(value)  # raises UserError for a wrong value
    return value


def _gpus(value: Any) -> str:
    if not re.fullmatch(r"all|[1-9]\d*|device=[\w-]+(,[\w-]+)*", str(value), re.ASCII):
        raise ValueError(
            f"expected all, how many (2), or which by index or UUID (device=0,1 or device=GPU-...); given: '{value}'"
        )
    return str(value)


class CoreSettings(toml.Spec):
    """Every shared option, with its default."""

    model_config = ConfigDict(strict=False)

    engine: CoreEngine = "auto"
    # Where trials are run: on this machine, or by a cluster's scheduler. auto: here, or where a resumed run was.
    executor: CoreExecutor = "auto"
    # The folder of downloads, venvs and the lock for builds.
    cache: Annotated[Path, AfterValidator(absolute)] = Field(default_factory=home.cache)
    results: Annotated[Path, AfterValidator(home.expanded)] = Path("results")
    reports: Annotated[Path, AfterValidator(home.expanded)] = Path("reports/out")
    # Mirrors, by the text they replace: references of base images (or their repositories), and beginnings of URLs.
    mirrors: Annotated[dict[str, str], BeforeValidator(_mapping)] = {}
    # Use the cache only, and no network.
    offline: bool = False
    # Wait for another tsuishi that builds or measures, and refuse nothing.
    wait: bool = False
    # Environments that are built or fetched at the same time; None lets tsuishi choose.
    jobs: toml.Count | None = None
    # A file of certificates (PEM) to check servers with, in place of the system's.
    ca_bundle: Annotated[Path, AfterValidator(absolute)] | None = None
    # URLs of folders with data sets, each under its own file name; empty means the publishers' URLs.
    data_urls: Annotated[tuple[str, ...], BeforeValidator(listed)] = ()
    # The file of a data set, or a folder with it.
    data: Annotated[Path, AfterValidator(absolute)] | None = None
    # Package indexes and wheel folders; empty means those of pip's configuration.
    indexes: Annotated[tuple[str, ...], BeforeValidator(listed)] = ()
    find_links: Annotated[tuple[str, ...], BeforeValidator(listed)] = ()
    # Folders with more CPythons for the venv engine, and the interpreter the host engine uses.
    pythons: Annotated[tuple[str, ...], BeforeValidator(listed)] = ()
    host_python: str = "python3"
    # Whether trials without a container run in bubblewrap's sandbox, where this machine has it.
    sandbox: bool = True
    # The time limit of the main job where --within is not given.
    within: Annotated[str, AfterValidator(_within)] = "10m"
    # Language of reports: ISO 639-1, see tsuishi/base/languages/.
    lang: str = "en"
    # GPUs to use, as for `docker run --gpus`: all, a number of GPUs, or device= and their indices or UUIDs.
    gpus: Annotated[str, BeforeValidator(_gpus)] = "all"
    # What to do while other processes use the GPUs, and the most seconds to wait.
    busy_gpu: BusyGpu = "wait"
    gpu_wait_s: toml.Seconds = 600.0
    # Seconds that devices work before the first trial of a session; None: 60 for GPUs, none for a CPU or profile smoke.
    heat_s: Annotated[float, Field(ge=0, le=3600)] | None = None
    # Seconds between two rows of telemetry. A phase that begins has rows every 0.1 s for its first 5 s.
    telemetry_interval: Annotated[float, Field(ge=0.1, le=60)] = 1.0
    # The name of the machine, or of the machine's part that a scheduler gives. Of all processes of tsuishi with the
    # same name, of any user, only one measures at a time.
    exclusive_on: Annotated[str, Field(pattern=r"^[ -~]{1,80}$")] = Field(default_factory=_exclusive_on)
    # Limits of a trial's container.
    memory_gib: Annotated[float, Field(gt=0, le=1e9)] | None = None
    pids: Annotated[int, Field(ge=16, le=2**22)] = 4096
    # Seconds for an answer of the Docker engine; a build or a trial may be silent for longer.
    engine_timeout_s: toml.Above0Seconds = 60.0

    @property
    def runs_here(self) -> bool:
        """Whether trials run on this machine."""
        return self.executor in ("auto", "local")

    @property
    def base_mirrors(self) -> dict[str, str]:
        """The mirrors of base images. They are part of an environment; the mirrors of files are not."""
        return {asked: used for asked, used in self.mirrors.items() if "://" not in asked}


if TYPE_CHECKING:
    Settings = CoreSettings
else:
    # With the settings of extras, so that a setting of an extra that is deleted is unknown.
    Settings = type("Settings", (*extras.given("settings", "SETTINGS"), CoreSettings), {"__module__": __name__})

# The executor of a cluster, for messages.
_EXECUTORS = get_args(Settings.model_fields["executor"].annotation)
CLUSTER = " or ".join(name for name in _EXECUTORS if name not in get_args(CoreExecutor)) or "<an absent executor>"


def of_executor(table: str, settings: Settings) -> Callable[..., Any]:
    """What a table of the extras' executors.py has for the executor of the settings. Raises UserError without it."""
    for made in extras.given("executors", table):
        if settings.executor in made:
            found: Callable[..., Any] = made[settings.executor]
            return found
    raise UserError(f"no executor {settings.executor}: tsuishi/extras/ has none of that name in {table}")


def read_settings(
    configured: Mapping[str, Any],
    environ: Mapping[str, str],
    flags: Mapping[str, Any],
    checkout: Checkout | None = None,
) -> Settings:
    """Merge the four levels. Raises UserError that names the wrong variable, flag or key, and the known names.

    A relative path in invoke.yaml or in a variable begins at the checkout's root, as these hold for every folder. In a
    flag it begins at the current folder, where the user typed it.
    """
    known = set(Settings.model_fields)
    from_environ = {
        name.removeprefix(PREFIX).lower(): value for name, value in environ.items() if name.startswith(PREFIX)
    }
    for name in from_environ:
        if name not in known:
            raise unknown("variable", PREFIX + name.upper(), (PREFIX + key.upper() for key in known))
    configured = _flat(configured)
    for name in configured:
        if name not in known:
            raise unknown("key in invoke.yaml", f"tsuishi.{_key(name)}", (f"tsuishi.{_key(key)}" for key in known))
    checkout = checkout or Checkout()
    defaults = {name: Settings.model_fields[name].default for name in _SHOWN}
    levels = (*(_placed(level, checkout) for level in (defaults, configured, from_environ)), flags)
    given = {name: value for level in levels for name, value in level.items() if value not in (None, "")}
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        raise UserError(f"settings: {toml.explain(error, Settings)}") from error


def _flat(configured: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of invoke.yaml, with those of a group as `slurm_partition`."""
    flat = dict(configured)
    for name in _GROUPS:
        group = flat.pop(name, None) or {}
        if not isinstance(group, Mapping):
            raise UserError(f"settings: key '{name}' in invoke.yaml: expected keys below it, as {name}.partition")
        flat |= {f"{name}_{key}": value for key, value in group.items()}
    return flat


def _key(name: str) -> str:
    """The key of a setting in invoke.yaml."""
    group = next((each for each in _GROUPS if name.startswith(f"{each}_")), None)
    return f"{group}.{name.removeprefix(f'{group}_')}" if group else name


def _placed(level: Mapping[str, Any], checkout: Checkout) -> dict[str, Any]:
    """The settings of a level, with paths that begin at the checkout's root."""

    def whole(path: Any) -> Any:
        """A name without a folder is looked for in PATH, and a URL is no path."""
        relative = isinstance(path, str) and path and "://" not in path and not path.startswith(("/", "~"))
        return str(checkout.root / path) if relative else path

    placed = dict(level)
    for name, value in level.items():
        if name in _SHOWN and isinstance(value, str | Path) and str(value):
            placed[name] = checkout.from_here(value)
        elif name in _PATHS or (name == "host_python" and "/" in str(value)):
            placed[name] = whole(value)
        elif name in _FOLDERS and isinstance(folders := listed(value), tuple):
            placed[name] = tuple(whole(folder) for folder in folders)
    return placed


def mirrored(reference: str, mirrors: Mapping[str, str]) -> str:
    """The reference to use in place of `reference`: a whole reference in the map wins over its repository.

    >>> mirrored("docker.io/library/python:3.6", {"docker.io/library/python": "mirror.lan/python"})
    'mirror.lan/python:3.6'
    """
    if reference in mirrors:
        return mirrors[reference]
    repository, colon, tag = reference.rpartition(":")
    return mirrored_url(repository, mirrors) + colon + tag


def mirrored_url(url: str, mirrors: Mapping[str, str]) -> str:
    """The URL to use in place of `url`: the longest beginning of it in the map counts.

    >>> mirrored_url("http://archive.ubuntu.com/ubuntu/pool/a.deb", {"http://archive.ubuntu.com": "https://mirror.lan"})
    'https://mirror.lan/ubuntu/pool/a.deb'
    """
    for asked in sorted(mirrors, key=len, reverse=True):
        prefix, used = asked.rstrip("/"), mirrors[asked].rstrip("/")
        if url == prefix or url.startswith(f"{prefix}/"):
            return used + url.removeprefix(prefix)
    return url
