"""Compares the promises and locks of an environment with the versions that it reports."""

from tsuishi.results.facts import Facts
from tsuishi.specs.environment import Environment


def broken_promises(environment: Environment, facts: Facts) -> list[str]:
    """Every difference between the promised or locked versions and the reported versions, in words.

    A promise about Python may leave out the last digits ("3.6" is kept by 3.6.15). Packages, CUDA and cuDNN must match
    exactly.
    """
    packages = facts.packages
    beside = {"python": facts.python, "cuda": facts.cuda, "cudnn": facts.cudnn}
    versions = {**packages, **beside, **facts.versions}
    broken = []
    for name, promised in environment.promises.items():
        actual = versions.get(name)
        kept = actual == promised or (name == "python" and str(actual).startswith(f"{promised}."))
        if not kept:
            broken.append(f"{name} is {actual or 'not there'}, promised {promised}")
    for pin in environment.pins:
        if packages.get(pin.name) != pin.version:
            broken.append(f"package {pin.name} is {packages.get(pin.name) or 'not there'}, locked {pin.version}")
    system = {key.partition(":")[0]: version for key, version in facts.system_packages.items()}
    for deb in environment.debs:
        if system.get(deb.name) != deb.version:
            broken.append(f"package {deb.title} is {system.get(deb.name) or 'not there'}")
    return broken
