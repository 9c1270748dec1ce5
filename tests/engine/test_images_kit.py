"""The second kit against stand-ins of every server: an index, an apt repository, a registry; as they are, and altered.

Of its environments, `old` stands for tf1.13-cu100 and torch1.1-cu100: its open hashes are of an address and of an apt
repository, its other package is on an index, and its base has no digest. `whole` stands for tf1.15-ngc: it has nothing
but its base, whose digest is not known.
"""

import hashlib
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from benchmarks.gpu.kit_of_images import PATCH
from tests.artifacts.servers import Site, cut_at, served, status
from tests.engine.apt_repository import AptRepository, apt_repository, download_packages
from tests.engine.conftest import tiny_checkout
from tests.engine.registries import push, registry
from tests.engine.stand_ins import (
    BASE_HERE,
    Bench,
    blobs,
    contents,
    forbidding,
    small_layer,
    version,
    with_one_more_file,
)
from tsuishi.base.files import sha256_of
from tsuishi.base.settings import Settings
from tsuishi.environments.builder import Builder
from tsuishi.specs.environment import read_environment

pytestmark = pytest.mark.engine

OTHER = "0" * 64


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> dict[str, Path]:
    """The real wheels that the index and the address have."""
    checkout = tiny_checkout(tmp_path_factory.mktemp("wheels"))
    environment = read_environment(checkout.images / "tiny.toml")
    files = Builder(settings, checkout).fetcher(lambda line: None).fetch(environment)
    return {name: next(file for file in files if file.name.startswith(name.replace("-", "_"))) for name in NAMES}


NAMES = ("pip", "typing-extensions")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return download_packages(tmp_path_factory.mktemp("packages") / "debs")


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> Iterator[tuple[Path, str]]:
    """The folder and the address of a registry that has the base."""
    folder = tmp_path_factory.mktemp("registry")
    with registry(folder) as address:
        push(BASE_HERE, f"{address}/python:3.11")
        yield folder, address


@pytest.fixture
def site(wheels: dict[str, Path]) -> Iterator[Site]:
    files = {file.name: file.read_bytes() for file in wheels.values()}
    stated = {file.name: sha256_of(file) for file in wheels.values()}
    with served(Site(projects=NAMES, files=files, stated=stated)) as given:
        yield given


@pytest.fixture
def bench(
    tmp_path: Path, site: Site, images: tuple[Path, str], settings: Settings, wheels: dict[str, Path]
) -> Iterator[Bench]:
    changed = {"cache": tmp_path / "cache", "mirrors": {}, "indexes": (site.index,), "find_links": ()}
    yield Bench(tmp_path, site, images[1], Settings(**{**settings.model_dump(), **changed}), wheels)
    client = docker.from_env()
    for name in ("old", "whole", "broken"):
        for image in client.images.list(f"tsuishi/{name}"):
            client.images.remove(str(image.id), force=True)


@pytest.fixture
def with_apt(bench: Bench, packages: Path) -> Iterator[Bench]:
    """The same, where `old` asks an apt repository for something too."""
    with apt_repository(bench.root / "tools", packages) as tools:
        shutil.rmtree(bench.checkout.root)
        bench.tools = tools
        bench.__post_init__()
        yield bench


def test_open_locks_are_filled_built_run_and_kept_and_the_patch_makes_them_the_checkouts(with_apt: Bench) -> None:
    """Beside them is `broken`, whose promise its base breaks: its lock stays as it was, and the others go on."""
    bench = with_apt
    bench.whole("python:3.11")
    more = 'packages = "of the base"\npromises = { python = "3.11", typing-extensions = "1.0" }'
    bench.spec("broken", more, "python:3.11")
    bench.spec("other", 'packages = "of the base"\npromises = { python = "3.11" }', "python:3.11")
    lines = bench.run("old", "broken", "whole", others=("other",))
    for name in ("old", "whole"):
        steps = [(step, "pass") for step in (1, 2, 3, 4, 5)]
        assert list(dict.fromkeys(lines.outcomes(name))) == steps, lines.all
    assert lines.outcomes("other") == [(1, "pass"), (5, "pass")]
    assert lines.outcomes("broken") == [*[(1, "pass")] * 3, (2, "FAIL"), (3, "not here"), (4, "not here")]
    (failed,) = [each["words"] for each in lines.all if each["outcome"] == "FAIL"]
    assert failed.startswith("broken does not report what it promises: typing-extensions"), failed
    (filled,) = [each["words"] for each in lines.all if each["what"] == "lock of old"]
    assert filled.startswith("2 open hashes before, 0 after, the base's digest sha256:")
    apply = ["git", "apply", str(lines.folder / PATCH)]
    before = contents(bench.checkout.images)
    subprocess.run(apply, cwd=bench.checkout.root, check=True)
    changed = {name for name, text in contents(bench.checkout.images).items() if before.get(name) != text}
    assert changed == {"old.toml", "old.lock", "old.apt.lock", "whole.toml", "other.toml"}
    for name in ("old", "whole", "other"):
        environment = read_environment(bench.checkout.images / f"{name}.toml")
        assert environment.base is not None
        assert environment.base.digest
        assert not environment.open
    old = read_environment(bench.checkout.images / "old.toml")
    assert {pin.name: pin.sha256 for pin in old.pins} == {
        name: (sha256_of(file),) for name, file in bench.wheels.items()
    }
    assert [deb.name for deb in old.debs] == ["jq", "libjq1", "libonig5"]
    assert sorted(path.name.split("-")[0] for path in (bench.root / "exports").glob("*.tar.gz")) == ["old", "whole"]
    with tarfile.open(lines.folder / "runs.tar.gz") as archive:
        runs = [name for name in archive.getnames() if name.endswith("run.json")]
    assert len(runs) == 2


Alteration = Callable[[Bench, str], None]


def another_hash(bench: Bench, file: str) -> None:
    bench.site.stated[file] = OTHER


def another_file(bench: Bench, file: str) -> None:
    """Other bytes, and a page that states their hash: only what the lock had known is against it."""
    bench.site.files[file] = with_one_more_file(bench.site.files[file])
    bench.site.stated[file] = hashlib.sha256(bench.site.files[file]).hexdigest()


def no_file(bench: Bench, file: str) -> None:
    bench.site.faults[file] = status(404)


def forbidden(bench: Bench, file: str) -> None:
    bench.site.faults[file] = status(403)


def half(bench: Bench, file: str) -> None:
    bench.site.faults[file] = cut_at(len(bench.site.files[file]) // 2)


def no_page(bench: Bench, file: str) -> None:
    bench.site.faults["simple"] = status(403)


@pytest.mark.parametrize(
    ("package", "alter", "reason"),
    [
        ("pip", another_hash, "lock of old: {file} has sha256 {sha256}, its index says {other}"),
        ("pip", another_file, "what was known of old: 1 of 1 changed; pip {version} {sha256} before, {version} "),
        ("pip", no_file, "lock of old: uv finds no set of packages: HTTP status client error (404 Not Found) for url "),
        (
            "pip",
            forbidden,
            "lock of old: uv finds no set of packages: HTTP status client error (403 Forbidden) for url",
        ),
        ("pip", half, "lock of old: uv finds no set of packages: "),
        ("pip", no_page, "lock of old: uv finds no set of packages: Because pip was not found in the package registry"),
        ("typing-extensions", no_file, "lock of old: typing-extensions is not to be had: {url}: 404 Not Found"),
        ("typing-extensions", forbidden, "lock of old: typing-extensions is not to be had: {url}: 403 Forbidden"),
        ("typing-extensions", half, "lock of old: typing-extensions is not to be had: {url}: the connection broke off"),
    ],
)
def test_an_altered_answer_of_an_index_or_an_address_is_a_fail_and_changes_no_lock(
    bench: Bench, package: str, alter: Alteration, reason: str
) -> None:
    file = bench.wheels[package]
    alter(bench, file.name)
    known = {"version": version(file), "sha256": sha256_of(file), "other": OTHER, "url": bench.site.file(file.name)}
    assert bench.run("old").reason().startswith(reason.format(file=file.name, **known))


def deb(tools: AptRepository) -> Path:
    (found,) = tools.folder.glob("pool/libonig5_*.deb")
    return found


DEB = r"lock of old: no source gives libonig5=\S+ as it is locked: http://\S+\.deb"


def another_deb(tools: AptRepository) -> None:
    deb(tools).write_bytes(deb(tools).read_bytes()[:-1] + b"x")


def no_deb(tools: AptRepository) -> None:
    deb(tools).unlink()


def half_a_deb(tools: AptRepository) -> None:
    deb(tools).write_bytes(deb(tools).read_bytes()[: deb(tools).stat().st_size // 2])


def another_index(tools: AptRepository) -> None:
    tools.index.write_text(tools.index.read_text().replace("jq_", "qj_"))


def another_key(tools: AptRepository) -> None:
    tools.make_key("other")
    tools.publish("other")


@pytest.mark.parametrize(
    ("alter", "reason"),
    [
        (another_deb, f"{DEB}: sha256 is [0-9a-f]{{64}}, expected [0-9a-f]{{64}}: that is another file"),
        (no_deb, f"{DEB}: 404 File not found"),
        (half_a_deb, f"{DEB}: it has [0-9]+ bytes, and libonig5_\\S+ [0-9]+"),
        (another_index, "lock of old: the repository tools cannot be used: .* Hash Sum mismatch"),
        (another_key, "lock of old: the repository tools cannot be used: .* is not signed"),
    ],
)
def test_an_altered_answer_of_an_apt_repository_is_a_fail_and_changes_no_lock(
    with_apt: Bench, alter: Callable[[AptRepository], None], reason: str
) -> None:
    assert with_apt.tools
    alter(with_apt.tools)
    said = with_apt.run("old").reason()
    assert re.match(reason, said), said


def test_a_repository_that_forbids_everything_is_a_fail_and_changes_no_lock(with_apt: Bench) -> None:
    assert with_apt.tools
    with forbidding() as url:
        said = with_apt.run("old", mirrors={with_apt.tools.uri: url}).reason()
    assert said.startswith(f"lock of old: the repository tools is trusted by the key {with_apt.tools.key}, and that ")
    assert f"{url}/right.asc: 403 Forbidden" in said


def no_image(folder: Path, name: str) -> None:
    shutil.rmtree(folder / "registry" / "docker" / "registry" / "v2" / "repositories" / name)


def no_layer(folder: Path, name: str) -> None:
    blobs(folder, name)[-1].unlink()


def half_a_layer(folder: Path, name: str) -> None:
    layer = blobs(folder, name)[-1]
    layer.write_bytes(layer.read_bytes()[: layer.stat().st_size // 2])


def another_layer(folder: Path, name: str) -> None:
    layer = blobs(folder, name)[-1]
    layer.write_bytes(layer.read_bytes()[:-1] + b"x")


@pytest.mark.parametrize(
    ("alter", "reason"),
    [
        (no_image, "lock of whole: the digest of {image}:1 cannot be asked for: manifest unknown"),
        (no_layer, "lock of whole: cannot pull {image}@sha256:[0-9a-f]{{64}}: unknown blob"),
        (
            half_a_layer,
            "lock of whole: cannot pull {image}@sha256:[0-9a-f]{{64}}: filesystem layer verification failed",
        ),
        (
            another_layer,
            "lock of whole: cannot pull {image}@sha256:[0-9a-f]{{64}}: filesystem layer verification failed",
        ),
    ],
)
def test_an_altered_answer_of_a_registry_is_a_fail_and_changes_no_lock(
    bench: Bench, images: tuple[Path, str], alter: Callable[[Path, str], None], reason: str
) -> None:
    name = alter.__name__
    bench.whole(small_layer(bench.address, name))
    alter(images[0], name)
    said = bench.run("whole").reason()
    assert re.match(reason.format(image=f"{bench.address}/{name}"), said), said


def test_half_a_layer_under_another_environment_changes_no_lock_either(bench: Bench, images: tuple[Path, str]) -> None:
    bench.spec("other", 'packages = "of the base"\npromises = { python = "3.11" }', small_layer(bench.address, "other"))
    half_a_layer(images[0], "other")
    said = bench.run(others=("other",)).reason()
    assert re.match(r"base of other: cannot pull \S+: filesystem layer verification failed", said), said


def test_a_registry_that_forbids_everything_is_a_fail_and_changes_no_lock(bench: Bench) -> None:
    bench.whole("python:3.11")
    with forbidding() as url:
        said = bench.run("whole", mirrors={bench.address: url.removeprefix("http://")}).reason()
    assert said.startswith(
        f"lock of whole: the digest of {url.removeprefix('http://')}/python:3.11 cannot be asked for: "
    )
    assert "requested access is denied" in said
