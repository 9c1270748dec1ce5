"""Base images that a cache brings, from wherever it was carried: the engine keeps the base, and no other image."""

import io
import json
import secrets
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import docker
import pytest

from tests.engine.conftest import tiny_checkout
from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.engines.docker.base_images import Bases
from tsuishi.engines.docker.daemon import Connection, image_or_none
from tsuishi.specs.environment import BaseImage, Environment, read_environment

pytestmark = pytest.mark.engine

Files = dict[str, bytes]
DIGEST = "sha256:" + "0" * 64


class Images:
    """Images of a few bytes in an engine, each other than all before; gone afterwards, under whatever name."""

    def __init__(self, client: "docker.DockerClient") -> None:
        self.client = client
        self.mark = secrets.token_hex(4)
        self.base = f"tsuishi-test/base-{self.mark}:1"
        self.foreign = f"tsuishi/foreign-{self.mark}:1"
        self.ids: list[str] = []

    def make(self, name: str) -> str:
        """Its id."""
        layer = packed({"file": secrets.token_bytes(8)})
        subprocess.run(["docker", "import", "-", name], input=layer, check=True, capture_output=True)
        self.ids.append(str(self.client.images.get(name).id))
        return self.ids[-1]

    def there(self) -> dict[str, list[str]]:
        """Those that the engine has, by id, with their names, short."""
        found = [image for name in self.ids if (image := image_or_none(self.client, name))]
        return {str(image.id): [tag.removeprefix("docker.io/") for tag in image.tags] for image in found}

    def remove(self) -> None:
        for image in self.ids:
            with suppress(docker.errors.NotFound):
                self.client.images.remove(image, force=True)


@pytest.fixture(params=["docker", "podman"])
def images(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[Images]:
    if request.param == "podman":
        monkeypatch.setenv("DOCKER_HOST", request.getfixturevalue("podman"))
    made = Images(docker.from_env())
    yield made
    made.remove()
    made.client.close()


def packed(files: Files) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return written.getvalue()


def unpacked(archive: bytes) -> Files:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {one.name: tar.extractfile(one).read() for one in tar if one.isfile()}  # type: ignore[union-attr]


def saved(*names: str) -> bytes:
    return subprocess.run(["docker", "save", *names], check=True, capture_output=True).stdout


def on(folder: Path, reference: str, digest: str = "") -> Environment:
    """An environment on that base."""
    tiny = read_environment(tiny_checkout(folder).images / "tiny.toml")
    return tiny.model_copy(update={"base": BaseImage(reference=reference, digest=digest)})


def quiet(said: object) -> None:
    pass


def kept(images: Images, folder: Path) -> tuple[Environment, Path, str]:
    """A base that `invoke fetch` put into the cache, the tar of it, and its id; in the engine it is no more."""
    image = images.make(images.base)
    environment = on(folder, images.base)
    Bases(Connection(), folder / "cache", {}).fetch(environment, quiet, quiet)
    (tar,) = (folder / "cache/bases").glob("*.tar")
    return environment, tar, image


def load(images: Images, environment: Environment, folder: Path) -> str:
    """Bring the base from the cache into an engine that has none of these images; its id."""
    images.remove()
    assert images.there() == {}
    found = Bases(Connection(), folder / "cache", {}, offline=True).ensure(environment, quiet, quiet)
    return str(found.image.id)


def replace(tar: Path, archive: bytes, **changes: object) -> None:
    """Put another archive in the place of a kept one, and change what is noted of it."""
    tar.write_bytes(archive)
    note = tar.with_suffix(".json")
    note.write_text(json.dumps({**json.loads(note.read_text()), "size_bytes": len(archive), **changes}))


def test_a_base_comes_from_the_cache_with_its_name(tmp_path: Path, images: Images) -> None:
    environment, _, image = kept(images, tmp_path)
    assert load(images, environment, tmp_path) == image
    assert images.there() == {image: [images.base]}


def test_a_base_that_is_used_by_its_digest_comes_without_a_name(tmp_path: Path, images: Images) -> None:
    _, tar, image = kept(images, tmp_path)
    used = f"{images.base.rpartition(':')[0]}@{DIGEST}"
    replace(tar, tar.read_bytes(), used=used, digest=DIGEST)
    for file in (tar, tar.with_suffix(".json")):
        file.rename(file.with_stem("0" * 64))
    environment = on(tmp_path / "other", images.base, DIGEST)
    assert load(images, environment, tmp_path) == image
    assert [tag for tag in images.there()[image] if "none" not in tag] == []


def with_another_image(images: Images) -> Files:
    images.make(images.foreign)
    return unpacked(saved(images.base, images.foreign))


def another_image(images: Images) -> Files:
    images.make(images.foreign)
    return unpacked(saved(images.foreign))


def without_a_layer(images: Images) -> Files:
    files = unpacked(saved(images.base))
    (described,) = json.loads(files["manifest.json"])
    del files[described["Layers"][0]]
    return files


@pytest.mark.parametrize(
    ("archive", "problem"),
    [
        (with_another_image, "it holds 2 images, and one was expected"),
        (another_image, "it holds another image"),
        (without_a_layer, "no such file"),
    ],
)
def test_an_archive_of_anything_else_is_refused_and_brings_nothing(
    tmp_path: Path, images: Images, archive: Callable[[Images], Files], problem: str
) -> None:
    environment, tar, _ = kept(images, tmp_path)
    replace(tar, packed(archive(images)))
    with pytest.raises(UserError) as caught:
        load(images, environment, tmp_path)
    assert str(caught.value).startswith(f"{tar} is damaged (")
    assert problem in str(caught.value)
    assert str(caught.value).endswith("): remove it, and get it again with `invoke fetch`")
    assert images.there() == {}
