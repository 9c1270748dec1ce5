"""Where things lie in a checkout."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Rooms:
    """The folders of one checkout of tsuishi."""

    root: Path = Path(__file__).resolve().parent.parent

    @property
    def images(self) -> Path:
        return self.root / "images"

    @property
    def suites(self) -> Path:
        return self.root / "suites"

    @property
    def workloads(self) -> Path:
        return self.root / "suites" / "workloads"

    @property
    def published(self) -> Path:
        return self.root / "reports" / "published"

    @property
    def templates(self) -> Path:
        return self.root / "templates"

    @property
    def dockerfile(self) -> Path:
        return self.templates / "Dockerfile.j2"
