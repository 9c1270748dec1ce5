"""What an environment promises and locks, compared with what it reports about itself."""

from collections.abc import Mapping
from typing import Any

from tsuishi.specs.environment import Environment

# What an environment reports beside packages, and may promise.
_NO_PACKAGES = ("python", "cuda", "cudnn")


def broken_promises(environment: Environment, reported: Mapping[str, Any]) -> list[str]:
    """Every difference between what was promised and locked, and what is reported.

    A promise about Python holds to the digit it gives ("3.6" is kept by 3.6.15); packages, CUDA and cuDNN must match
    exactly.
    """
    packages = reported.get("packages", {})
    versions = {**packages, **{name: reported.get(name) for name in _NO_PACKAGES}, **reported.get("versions", {})}
    broken = []
    for name, promised in environment.promises.items():
        actual = versions.get(name)
        kept = actual == promised or (name == "python" and str(actual).startswith(f"{promised}."))
        if not kept:
            broken.append(f"{name} is {actual or 'not there'}, promised {promised}")
    for pin in environment.pins:
        if packages.get(pin.name) != pin.version:
            broken.append(f"package {pin.name} is {packages.get(pin.name) or 'not there'}, locked {pin.version}")
    system = {key.partition(":")[0]: version for key, version in reported.get("system_packages", {}).items()}
    for deb in environment.debs:
        if system.get(deb.name) != deb.version:
            broken.append(f"package {deb.title} is {system.get(deb.name) or 'not there'}")
    return broken
