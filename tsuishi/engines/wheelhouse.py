"""The folder from which an environment is installed: its artefacts, and the requirements files that name them."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from tsuishi.base.errors import BuildError
from tsuishi.engines import library_wheel
from tsuishi.specs.environment import Environment
from tsuishi.specs.lock import BOOTSTRAP, Pin

# A second name for the wheel of pip, from which pip runs, whatever its version. It has the form of a wheel's name:
# otherwise pip would treat itself as an installed package.
PIP = "pip-0-py3-none-any.whl"


def requirements(pins: Iterable[Pin]) -> str:
    """Pins as a requirements file with hashes."""
    return "".join(
        f"{pin.name}=={pin.version} {' '.join(f'--hash=sha256:{sha256}' for sha256 in pin.sha256)}\n" for pin in pins
    )


def bootstrap(pins: Sequence[Pin]) -> list[Pin]:
    """The pins that have to be installed first: pip, and the packages with which it builds an sdist."""
    return [pin for pin in pins if pin.name in BOOTSTRAP]


def pip_wheel(environment: str, wheels: Iterable[Path]) -> Path:
    """The wheel of pip in the lock. Raises BuildError where there is none."""
    for wheel in wheels:
        if wheel.name.startswith("pip-") and wheel.suffix == ".whl":
            return wheel
    raise BuildError(f"{environment}.lock pins no wheel of pip: add a wheel that runs on the environment's Python")


def lay_out(folder: Path, environment: Environment, wheels: Sequence[Path], debs: Sequence[Path] = ()) -> list[Pin]:
    """Write wheels/, debs/, bootstrap.txt and requirements.txt into `folder`; artefacts are linked, not copied.

    wheels: the files of `environment.fetched`, in its order. Returns the pins of all packages to install. Raises
    BuildError where a wheel lacks a library.
    """
    pins, carriers = list(environment.pins), dict[str, Path]()
    for pin, wheel in zip(environment.fetched[len(pins) :], wheels[len(pins) :], strict=True):
        carriers[pin.name] = wheel
    for name, files in (("wheels", wheels[: len(pins)]), ("debs", debs)):
        (folder / name).mkdir(parents=True)
        for file in files:
            link(file, folder / name / file.name)
    if environment.libraries:
        pins.append(library_wheel.write_wheel(environment, carriers, folder / "wheels")[1])
    (folder / "bootstrap.txt").write_text(requirements(bootstrap(pins)), encoding="utf-8")
    (folder / "requirements.txt").write_text(requirements(pins), encoding="utf-8")
    return pins


def link(source: Path, target: Path) -> None:
    """Link `target` to the file `source`: a hard link, or a symbolic link to another file system."""
    try:
        os.link(source, target)
    except OSError:  # another file system
        target.symlink_to(source)
