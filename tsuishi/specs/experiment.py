"""Any program as the experiment of a suite: its files, its command, and the patterns of its output."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from tsuishi.base import files, toml
from tsuishi.base.errors import unknown
from tsuishi.base.option_table import task_with
from tsuishi.specs import numerals
from tsuishi.specs.case import PROTOCOL, SUITE
from tsuishi.specs.environment import Environment

# The workload that runs it (suites/workloads/experiments/script.py).
WORKLOAD = "script"
# The named group of a pattern that numbers its lines; all other groups are metrics.
INDEX = "index"
_PYTHON = "python"
_INSIDE = "/script"
_DATA_INSIDE = "/script-data"
_NAMED_GROUP = re.compile(r"\(\?P<(\w+)>")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def inside(path: str) -> str:
    """The path, of a file below the folder of a suite. Raises ValueError for another path."""
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise ValueError(f"'{path}' leads out of the folder of the suite; put the file beside the suite")
    return path


def _expression(text: str) -> str:
    try:
        re.compile(numerals.line_expression(text, ".", ()))
    except re.error as error:
        raise ValueError(f"no regular expression: {error}") from error
    return text


Inside = Annotated[str, Field(min_length=1), AfterValidator(inside)]
Expression = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_expression)]
Factor = Annotated[float, Field(allow_inf_nan=False)]


class ExperimentFile(toml.Spec):
    """A file by its path, relative to the folder of the suite, and its SHA-256."""

    path: Inside
    sha256: toml.Sha256


class ExperimentData(toml.Spec):
    """A file or folder that the script reads, never copied: its path from the folder of the script, and its digest.

    The digest of a folder is made by datasets.digest_of.
    """

    path: Annotated[str, Field(min_length=1)]
    sha256: toml.Sha256


class Experiment(toml.Spec):
    """The table [experiment] of a suite. `{axis}` in `command` and `variables` stands for the value of a case."""

    script: Inside
    sha256: toml.Sha256
    # It starts in the folder of the script; "python" is the interpreter of the environment.
    command: tuple[str, ...] = (_PYTHON, "{script}")
    variables: dict[Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")], str] = {}
    files: tuple[ExperimentFile, ...] = ()
    data: tuple[ExperimentData, ...] = ()

    @model_validator(mode="after")
    def _starts_python(self) -> "Experiment":
        if self.command[:1] != (_PYTHON,):
            raise ValueError('command: its first word is "python", the interpreter of the environment')
        return self

    @property
    def every_file(self) -> tuple[ExperimentFile, ...]:
        """The script, then the files beside it."""
        return (ExperimentFile(path=self.script, sha256=self.sha256), *self.files)

    @property
    def placeholders(self) -> set[str]:
        """The names in braces of the command and the variables, without {script}."""
        texts = (*self.command, *self.variables.values())
        return {name for text in texts for name in _PLACEHOLDER.findall(text)} - {WORKLOAD}

    def filled(self, text: str, case: Mapping[str, Any]) -> str:
        """A word of the command, or a variable, for a case."""
        values = {**case, WORKLOAD: PurePosixPath(self.script).name}
        return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), text)

    def check_axes(self, axes: Mapping[str, Any]) -> None:
        """Raise ValueError for a placeholder that is no axis, and for an axis that the script does not get."""
        for name in sorted(self.placeholders - axes.keys()):
            raise ValueError(f"experiment: {{{name}}}: {unknown('axis of this group', name, [WORKLOAD, *axes])}")
        for name in sorted(axes.keys() - self.placeholders - {SUITE, PROTOCOL}):
            raise ValueError(
                f"experiment: the script does not get the axis '{name}': write {{{name}}} into its command or variables"
            )

    def check_files(self, folder: Path) -> None:
        """Raise ValueError for a file that is missing, or has another SHA-256 than the suite says."""
        for file in self.every_file:
            try:
                digest = files.sha256_of(folder / file.path)
            except OSError as error:
                raise ValueError(f"experiment: {folder / file.path}: {error.strerror}") from error
            if digest != file.sha256:
                raise ValueError(
                    f"experiment: {file.path} has the SHA-256 {digest}, not {file.sha256}: "
                    "write the new SHA-256 into the suite if this is the file you mean"
                )


def lacking(why: str, beside: Path, environment: Environment) -> str:
    """What mends that a script found no module: a file beside it, or a package. Empty for another failure.

    why: how the script failed. beside: the folder that its files come from.
    """
    if not (found := _NO_MODULE.search(why)):
        return ""
    name = found[1].partition(".")[0]
    for path in (name, f"{name}.py"):
        if (beside / path).exists():
            return f": {path} lies beside the script: give it with `{task_with('files')} --files {path}`"
    package = (
        f"add it to `requires` of images/{environment.made_as}.toml, then `invoke lock --env {environment.made_as}`"
        if environment.pinned
        else f"install it in the interpreter of {environment.name}"
    )
    return f": nothing beside the script has that name, so it is a package: {package}; a module goes beside the script"


class Pattern(toml.Spec):
    """A table [patterns.<name>]: numbers in a line, or the wall time between two lines.

    `line`: its named groups are metrics; the group `index` tells lines apart that are printed again and again, and the
    group `unit` takes the unit from the line. {number}, {duration} and {unit} stand for the expressions of
    specs/numerals.py. `decimal`: the decimal sign. `units`: factors of unknown units to the unit of the quantity.
    `scale`: factors for the printed numbers, by group; or a factor for all groups. `begin`, `end`: samples of the phase
    <name>.
    """

    line: Expression | None = None
    decimal: numerals.Decimal = "."
    units: dict[Annotated[str, Field(max_length=40)], Factor] = {}
    scale: dict[str, Factor] = {}
    begin: Expression | None = None
    end: Expression | None = None

    @model_validator(mode="before")
    @classmethod
    def _scales_each(cls, values: dict[str, Any]) -> dict[str, Any]:
        if isinstance(scale := values.get("scale"), int | float):
            groups = _NAMED_GROUP.findall(str(values.get("line")))
            return {**values, "scale": {name: scale for name in groups if name not in (INDEX, numerals.UNIT)}}
        return values

    @model_validator(mode="after")
    def _is_of_a_kind(self) -> "Pattern":
        if (self.line is None) == (self.begin is None) or (self.begin is None) != (self.end is None):
            raise ValueError("give either 'line', or 'begin' and 'end'")
        if self.line is not None and not self.groups:
            raise ValueError("no named group in 'line': write (?P<quantity>...) around a number")
        for name in self.scale.keys() - set(self.groups):
            raise ValueError(f"scale: {unknown('group', name, self.groups)}")
        if self.takes_unit and len(self.groups) > 1:
            several = ", ".join(self.groups)
            raise ValueError(f"the group 'unit' is of one number, and 'line' has {several}: write a pattern for each")
        if self.units and not self.takes_unit:
            raise ValueError("units: no group takes a unit from the line: write (?P<unit>{unit}) behind the number")
        return self

    @property
    def groups(self) -> tuple[str, ...]:
        """The metrics of `line`."""
        return tuple(name for name in self._named if name not in (INDEX, numerals.UNIT))

    @property
    def takes_unit(self) -> bool:
        """Whether the unit of its number stands in the line."""
        return numerals.UNIT in self._named

    @property
    def _named(self) -> Mapping[str, int]:
        return re.compile(numerals.line_expression(self.line or "", self.decimal, ())).groupindex

    def printed(self, unit: str) -> dict[str, tuple[float, bool]]:
        """The units that its line may have, where the quantity has that unit; empty where it takes none from there."""
        if not self.takes_unit:
            return {}
        return numerals.printed_units(unit) | {text: (factor, False) for text, factor in self.units.items()}

    def described(self, name: str, unit_of: Callable[[str], str]) -> dict[str, Any]:
        """The pattern for the workload. unit_of: gives the unit of a metric."""
        if self.line is None:
            return {"name": name, "begin": self.begin, "end": self.end}
        units = {group: unit_of(group) for group in self.groups}
        printed = (name if self.units else units[self.groups[0]]) if self.takes_unit else ""
        fields = {"line": self.line, "decimal": self.decimal, "scale": self.scale}
        return {"name": name, **fields, "units": units, "printed": printed}


def numerals_of(patterns: Mapping[str, Pattern], unit_of: Callable[[str], str]) -> dict[str, Any]:
    """What the placeholders of patterns stand for; units by the unit of a quantity, or by the pattern that has more."""
    of_lines = [(pattern, pattern.described(name, unit_of)) for name, pattern in patterns.items() if pattern.line]
    units = {
        about["printed"]: pattern.printed(about["units"][pattern.groups[0]])
        for pattern, about in of_lines
        if about["printed"]
    }
    return {
        "number": {pattern.decimal: numerals.number(pattern.decimal) for pattern, _ in of_lines},
        "duration": numerals.DURATION,
        "units": {name: [numerals.unit_expression(known), known] for name, known in units.items()},
    }


class ScriptOrder(BaseModel):
    """What the workload needs to run the script of a case. `folder`: of the suite, on this machine.

    `places`: where the data of the script are on this machine, by their digests.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    folder: Path
    files: tuple[ExperimentFile, ...]
    command: tuple[str, ...]
    variables: dict[str, str]
    patterns: tuple[dict[str, Any], ...]
    numerals: dict[str, Any]
    data: tuple[ExperimentData, ...] = ()
    places: dict[str, Path] = {}

    @property
    def home(self) -> Path:
        """The folder of the script."""
        return (self.folder / self.files[0].path).parent

    def mounts(self) -> dict[Path, str]:
        """The place of each file, and of the data, in a container."""
        files = {self.folder / file.path: f"{_INSIDE}/{file.path}" for file in self.files}
        return files | {path: f"{_DATA_INSIDE}/{digest}" for digest, path in self.places.items()}

    def located(self, place_of: Callable[[ExperimentData], Path]) -> "ScriptOrder":
        """The order with the places of its data on this machine."""
        return self.model_copy(update={"places": {data.sha256: place_of(data) for data in self.data}})

    def content(self, place_of: Callable[[Path], str] | None = None) -> dict[str, Any]:
        """The order as JSON. place_of: gives the path of a file for the workload; without it, paths as in the suite."""
        files = [{**file.model_dump(), "file": file.path} for file in self.files]
        data = [{**data.model_dump(), "file": data.path} for data in self.data]
        if place_of:
            for file in files:
                file["file"] = place_of(self.folder / file["path"])
            for each in data:
                each["file"] = place_of(self.places[each["sha256"]])
        return {**self.model_dump(mode="json", exclude={"folder", "places"}), "files": files, "data": data}
