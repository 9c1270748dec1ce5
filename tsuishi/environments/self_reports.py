"""What environments reported about themselves when they were built, in the cache: a file for each build.

<cache>/environments/<environment>-<engine>-<digest>.json       the report
<cache>/environments/<environment>-<engine>-<digest>.cdx.json   an image's bill of materials (CycloneDX)
"""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from tsuishi.base import files, toml
from tsuishi.base.errors import UserError
from tsuishi.engines.interface import Built, Kept

_SBOM_SUFFIX = ".cdx.json"


class _SelfReport(BaseModel):
    """The keys of a report (suites/workloads/experiments/probe.py) that are used here."""

    model_config = ConfigDict(extra="allow", strict=True)

    python: str
    versions: dict[str, str] = {}
    packages: dict[str, str] = {}
    system_packages: dict[str, str] = {}
    flags: dict[str, Any] = {}


class SelfReports:
    """The reports in a cache. A build is identified by its engine, spec id and realised id."""

    def __init__(self, cache: Path) -> None:
        self._folder = cache / "environments"

    def find(self, environment: str, build: Built | Kept) -> dict[str, Any] | None:
        """The report of a build; None where there is none that can be read: the environment is asked again."""
        try:
            text = files.read_bytes(self._path(environment, build), files.MOST_JSON_BYTES)
            return _SelfReport.model_validate_json(text).model_dump()
        except (UserError, ValueError):
            return None

    def keep(self, built: Built, reported: dict[str, Any]) -> None:
        """Write a report; an image's also gets its bill of materials, and a second file with only that."""
        path = self._path(built.environment.name, built)
        if built.details["image"]:
            from tsuishi.environments.sbom import bill_of_materials

            reported["sbom"] = bill_of_materials(built, reported)
            files.write_json(path.with_suffix(_SBOM_SUFFIX), reported["sbom"])
        files.write_json(path, reported)

    def forget(self, kept: Kept) -> None:
        """Remove the report of an environment that was removed."""
        path = self._path(kept.environment, kept)
        for file in (path, path.with_suffix(_SBOM_SUFFIX)):
            file.unlink(missing_ok=True)

    def _path(self, environment: str, build: Built | Kept) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder / f"{environment}-{build.engine}-{toml.digest([build.spec_id, build.realised_id])}.json"
