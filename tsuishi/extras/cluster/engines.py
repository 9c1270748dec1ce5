"""The engines of clusters."""

from pathlib import Path

from tsuishi.base.settings import Settings
from tsuishi.extras.cluster.apptainer import ApptainerEngine
from tsuishi.extras.cluster.image_files import ImageFiles
from tsuishi.extras.cluster.pyxis import PyxisEngine
from tsuishi.extras.cluster.slurm import wanted


def engines(settings: Settings, template: Path) -> tuple[ImageFiles, ...]:
    """Apptainer and pyxis. template: what images are made from."""
    return (
        ApptainerEngine(template, settings.cache),
        PyxisEngine(template, settings.cache, lambda: wanted(settings)),
    )
