"""An image in a tar archive, as `docker save` writes it (OCI Image Format 1.0)."""

import json
import tarfile
from pathlib import Path
from typing import IO, Any


def manifest_of(image: tarfile.TarFile) -> dict[str, Any]:
    """The manifest: the names of the config and of the layers, the lowest layer first."""
    (manifest,) = json.load(content_of(image, "manifest.json"))
    return dict(manifest)


def config_of(archive: Path) -> dict[str, Any]:
    """The config of the image in an archive ("Image Configuration")."""
    with tarfile.open(archive) as image:
        config: dict[str, Any] = json.load(content_of(image, manifest_of(image)["Config"]))
        return config


def content_of(image: tarfile.TarFile, name: str) -> IO[bytes]:
    """The content of a file of the archive. Raises KeyError where there is none."""
    content = image.extractfile(name)
    assert content is not None
    return content
