"""A program of anybody as the experiment of a suite: its files, its command, and the patterns of what it prints."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from tsuishi.base import files, toml
from tsuishi.base.errors import unknown
from tsuishi.specs.case import PROTOCOL, SUITE

# The workload that runs it (suites/workloads/experiments/script.py).
WORKLOAD = "script"
# The named group of a pattern that numbers its lines; all other groups are metrics.
INDEX = "index"
_PYTHON = "python"
_INSIDE = "/script"
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")


def inside(path: str) -> str:
    """The path, of a file below the folder of a suite. Raises ValueError for another path."""
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise ValueError(f"'{path}' leads out of the folder of the suite; put the file beside the suite")
    return path


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"no regular expression: {error}") from error
    return text


Inside = Annotated[str, Field(min_length=1), AfterValidator(inside)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Expression = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_expression)]


class ExperimentFile(toml.Spec):
    """A file by its path, relative to the folder of the suite, and its SHA-256."""

    path: Inside
    sha256: Digest


class Experiment(toml.Spec):
    """The table [experiment] of a suite. `{axis}` in `command` and `variables` stands for the value of a case."""

    script: Inside
    sha256: Digest
    # It starts in the folder of the script; "python" is the interpreter of the environment.
    command: tuple[str, ...] = (_PYTHON, "{script}")
    variables: dict[Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")], str] = {}
    files: tuple[ExperimentFile, ...] = ()

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
                    "write the new one into the suite if this is the file you mean"
                )


class Pattern(toml.Spec):
    """A table [patterns.<name>]: numbers in a line, or the wall time between two lines.

    `line`: its named groups are metrics; the group `index` tells lines apart that are printed again and again. `scale`:
    factors from what is printed to the unit of the quantity, by group. `begin`, `end`: samples of the phase <name>.
    """

    line: Expression | None = None
    scale: dict[str, float] = {}
    begin: Expression | None = None
    end: Expression | None = None

    @model_validator(mode="after")
    def _is_of_a_kind(self) -> "Pattern":
        if (self.line is None) == (self.begin is None) or (self.begin is None) != (self.end is None):
            raise ValueError("give either 'line', or 'begin' and 'end'")
        if self.line is not None and not self.groups:
            raise ValueError("no named group in 'line': write (?P<quantity>...) around a number")
        for name in self.scale.keys() - set(self.groups):
            raise ValueError(f"scale: {unknown('group', name, self.groups)}")
        return self

    @property
    def groups(self) -> tuple[str, ...]:
        """The metrics of `line`."""
        return tuple(name for name in re.compile(self.line or "").groupindex if name != INDEX)

    def described(self, name: str, unit_of: Callable[[str], str]) -> dict[str, Any]:
        """The pattern for the workload. unit_of: gives the unit of a metric."""
        if self.line is None:
            return {"name": name, "begin": self.begin, "end": self.end}
        return {"name": name, "line": self.line, "units": {g: unit_of(g) for g in self.groups}, "scale": self.scale}


class ScriptOrder(BaseModel):
    """What the workload needs to run the script of a case. `folder`: of the suite, on this machine."""

    model_config = ConfigDict(frozen=True, strict=True)

    folder: Path
    files: tuple[ExperimentFile, ...]
    command: tuple[str, ...]
    variables: dict[str, str]
    patterns: tuple[dict[str, Any], ...]

    def mounts(self) -> dict[Path, str]:
        """The place of each file in a container."""
        return {self.folder / file.path: f"{_INSIDE}/{file.path}" for file in self.files}

    def content(self, place_of: Callable[[Path], str] | None = None) -> dict[str, Any]:
        """The order as JSON. place_of: gives the path of a file for the workload; without it, paths as in the suite."""
        files = [
            {**file.model_dump(), "file": place_of(self.folder / file.path) if place_of else file.path}
            for file in self.files
        ]
        return {**self.model_dump(mode="json", exclude={"folder"}), "files": files}
