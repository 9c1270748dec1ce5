"""The reports of environments about themselves, made when they were built, and whether they keep the promises.

The cache has files for each build:

<cache>/environments/<environment>-<engine>-<digest>.json       the report
<cache>/environments/<environment>-<engine>-<digest>.cdx.json   an image's bill of materials (CycloneDX)
"""

from pathlib import Path
from typing import Any

from tsuishi.base import files, toml
from tsuishi.base.errors import UserError
from tsuishi.engines.interface import Built, Kept
from tsuishi.results.facts import Facts
from tsuishi.specs.environment import Environment

_SBOM_SUFFIX = ".cdx.json"


class SelfReport(Facts):
    """The report of an environment about itself (suites/workloads/experiments/probe.py).

    `sbom`: the bill of materials of an image (CycloneDX).
    """

    sbom: dict[str, Any] | None = None


class SelfReports:
    """The reports in a cache. A build is identified by its engine, spec id and realised id."""

    def __init__(self, cache: Path) -> None:
        self._folder = cache / "environments"

    def find(self, environment: str, build: Built | Kept) -> SelfReport | None:
        """The report of a build; None where it is missing or cannot be read, so that the environment is asked again."""
        try:
            text = files.read_bytes(self._path(environment, build), files.MOST_JSON_BYTES)
            report = SelfReport.model_validate_json(text)
        except (UserError, ValueError):
            return None
        return report if report.python is not None else None

    def keep(self, built: Built, report: SelfReport) -> SelfReport:
        """Write and return a report. That of an image gets the bill of materials, which is also written on its own."""
        path = self._path(built.environment.made_as, built)
        if built.details["image"]:
            from tsuishi.environments.sbom import bill_of_materials

            report = report.model_copy(update={"sbom": bill_of_materials(built, report)})
            files.write_json(path.with_suffix(_SBOM_SUFFIX), report.sbom)
        files.write_json(path, report.content())
        return report

    def forget(self, kept: Kept) -> None:
        """Remove the report of an environment that was removed."""
        path = self._path(kept.environment, kept)
        for file in (path, path.with_suffix(_SBOM_SUFFIX)):
            file.unlink(missing_ok=True)

    def _path(self, environment: str, build: Built | Kept) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder / f"{environment}-{build.engine}-{toml.digest([build.spec_id, build.realised_id])}.json"


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
