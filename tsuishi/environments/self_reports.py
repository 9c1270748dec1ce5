"""The reports of environments about themselves, made when they were built. The cache has a file for each build.

<cache>/environments/<environment>-<engine>-<digest>.json       the report
<cache>/environments/<environment>-<engine>-<digest>.cdx.json   an image's bill of materials (CycloneDX)
"""

from pathlib import Path
from typing import Any

from tsuishi.base import files, toml
from tsuishi.base.errors import UserError
from tsuishi.engines.interface import Built, Kept
from tsuishi.results.facts import Facts

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
