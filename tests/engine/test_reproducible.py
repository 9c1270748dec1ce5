"""The same spec and lock give the same image; what the template makes of .debs, and of bases that have everything."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import docker
import pytest
from docker.models.images import Image

from benchmarks.two_builds import build, compare, image_content
from tests.bench import least_environment
from tests.engine.conftest import output_of, tiny_checkout
from tests.environments.test_sbom import wrong_in
from tests.job import REAL
from tsuishi.base.files import sha256_of
from tsuishi.base.settings import Settings
from tsuishi.environments.builder import Builder
from tsuishi.environments.entry import Ready
from tsuishi.specs.environment import Environment, read_environment

pytestmark = pytest.mark.engine

# Of TensorFlow 1.13's lock: two of them are sdists, and Python 3.6 knows no bytecode without a date.
SMALL = ("absl-py", "gast", "pip", "setuptools", "six", "termcolor", "wheel")
# What the engine makes for each container when it is created, and no image has.
OF_THE_CONTAINER = {".dockerenv", "dev", "dev/console", "dev/pts", "dev/shm", "etc", "etc/hostname", "etc/hosts"}
OF_THE_CONTAINER |= {"etc/mtab", "etc/resolv.conf", "proc", "sys"}
# Debian's CPython, for a base that has none; what else it needs, the base has.
PYTHON_DEBS = (
    *("libexpat1", "media-types", "python3.11", "python3.11-minimal"),
    *("libpython3.11-minimal", "libpython3.11-stdlib"),
)
NO_GPU = {("NVIDIA_VISIBLE_DEVICES", "void"), ("NVIDIA_DRIVER_CAPABILITIES", "compute,utility")}


@pytest.fixture(scope="module")
def client(settings: Settings) -> Iterator["docker.DockerClient"]:
    connection = docker.from_env(timeout=300)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def twice(
    client: "docker.DockerClient", settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Image]]:
    folder = tmp_path_factory.mktemp("twice")
    old = read_environment(REAL.images / "tf1.13-cpu.toml")
    assert old.base is not None
    pins = [pin for pin in old.pins if pin.name in SMALL]
    lock = "".join(f"{pin.name}=={pin.version} --hash=sha256:{pin.sha256[0]}\n" for pin in pins)
    environment = small(folder, "again", lock, python="3.6", base=old.base.reference)
    images = [build(client, environment, settings, number)[0] for number in (1, 2)]
    yield images
    for image in images:
        client.images.remove(str(image.id), force=True)


def small(folder: Path, name: str, lock: str, python: str, base: str, extra: str = "") -> Environment:
    """An environment without a framework."""
    (folder / f"{name}.lock").write_text(lock, encoding="utf-8")
    file = folder / f"{name}.toml"
    more = extra or f'promises = {{ python = "{python}" }}'
    file.write_text(least_environment(python, base, more), encoding="utf-8")
    return read_environment(file)


def test_two_builds_from_empty_caches_have_the_same_layers_in_every_byte(twice: list[Image]) -> None:
    first, second = (image.attrs["RootFS"]["Layers"] for image in twice)
    assert first == second
    assert len(first) == 2, "the base's own, and one for the environment"
    assert twice[0].id != twice[1].id, "an id holds the moment of the build"


def test_their_files_differ_in_no_more_than_the_times_of_what_the_engine_makes(
    twice: list[Image], client: "docker.DockerClient"
) -> None:
    first, second = (image_content(client, str(image.id)) for image in twice)
    found = compare(first, second)
    assert found.differing == {}
    assert found.files > 1000
    times = {path for path in first if first[path].modified_s != second[path].modified_s}
    assert times <= OF_THE_CONTAINER
    assert len(times) == found.times_differing


def test_bytecode_is_there_and_is_used(
    twice: list[Image], from_debs: tuple[list[Image], Ready], client: "docker.DockerClient"
) -> None:
    for image, modules in (
        (twice[0], "absl.flags, gast, termcolor, setuptools"),
        (from_debs[0][0], "pip._internal.commands.install"),
    ):
        said = output_of(client, str(image.id), "python", "-v", "-c", f"import {modules}")
        read = [line for line in said.splitlines() if "code object from" in line]
        for folder in ("/opt/environment/", "/usr/"):  # the standard library's, too
            assert len([line for line in read if folder in line]) > 20
        assert [line for line in read if ".pyc" not in line] == []


@pytest.fixture(scope="module")
def from_debs(
    client: "docker.DockerClient", settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[list[Image], Ready]]:
    """An environment as torch1.1-cu100 is, on a base without any Python: twice from empty caches, and ready."""
    checkout = tiny_checkout(tmp_path_factory.mktemp("debs"), "ok")
    debs = checkout.root / "pool"
    debs.mkdir()
    subprocess.run(["apt-get", "download", "-qq", *PYTHON_DEBS], cwd=debs, check=True, capture_output=True)
    library(debs, "cuda-license-10-0")
    library(debs, "cuda-cudart-10-0", depends="Pre-Depends: cuda-license-10-0\n", file="libz.so.1")
    with made(
        client, settings, "bare", "RUN rm -r /usr/local/bin/python* /usr/local/lib/*python* && ldconfig\n"
    ) as given:
        lock = (checkout.images / "tiny.lock").read_text()
        apt = [apt_line(deb) for deb in sorted(debs.glob("*.deb"))]
        (checkout.images / "debs.apt.lock").write_text("".join(apt), encoding="utf-8")
        extra = f"""
        promises = {{ python = "3.11" }}
        [cuda]
        toolkit = "10.0"
        min_driver = "410.48"
        native = ["3.5", "7.5"]
        [apt]
        packages = ["python3.11", "cuda-cudart-10-0=1"]
        [apt.repositories.pool]
        uris = ["{debs.as_uri()}"]
        """
        environment = small(
            checkout.images, "debs", lock, python="3.11", base="docker.io/library/test:bare", extra=extra
        )
        images = [build(client, environment, given, number)[0] for number in (1, 2)]
        builder = Builder(given, checkout)
        ready = builder.ensure(environment, print)
        yield images, ready
        builder.engines.docker.maker.discard(ready.built)
        for image in images:
            client.images.remove(str(image.id), force=True)


@contextmanager
def made(
    client: "docker.DockerClient", settings: Settings, name: str, recipe: str, **files: Path
) -> Iterator[Settings]:
    """Settings by which docker.io/library/test:<name> is an image made here, of Python 3.11's base; an empty cache."""
    base = read_environment(REAL.images / "tf2-cpu.toml").base
    assert base is not None
    tag = f"tsuishi-tests/made:{name}"
    with tempfile.TemporaryDirectory() as folder:
        for file in files.values():
            shutil.copy(file, folder)
        dockerfile = f"FROM {settings.mirrors.get(base.reference, base.reference)}\n{recipe}"
        (Path(folder) / "Dockerfile").write_text(dockerfile, encoding="utf-8")
        client.images.build(path=folder, tag=tag, rm=True)
        mirrors = {**settings.mirrors, f"docker.io/library/test:{name}": tag}
        try:
            yield settings.model_copy(update={"mirrors": mirrors, "cache": Path(folder) / "cache"})
        finally:
            client.images.remove(tag, force=True)


def library(folder: Path, name: str, depends: str = "", file: str = "") -> None:
    """A Debian package, made up but for zlib, which is put where NVIDIA's packages put their libraries."""
    root = folder / name
    (root / "DEBIAN").mkdir(parents=True)
    control = f"Package: {name}\nVersion: 1\nArchitecture: amd64\nMaintainer: nobody <nobody@example.net>\n{depends}"
    (root / "DEBIAN" / "control").write_text(f"{control}Description: made up\n", encoding="utf-8")
    if file:
        place = root / "usr/local/cuda-10.0/targets/x86_64-linux/lib"
        place.mkdir(parents=True)
        shutil.copy(Path("/usr/lib/x86_64-linux-gnu") / file, place / file)
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", name, f"{name}_1_amd64.deb"], cwd=folder, check=True)
    shutil.rmtree(root)


def apt_line(deb: Path) -> str:
    """As the lock has it."""
    show = ["dpkg-deb", "--show", "--showformat=${Package}=${Version}", str(deb)]
    title = subprocess.run(show, check=True, capture_output=True, text=True).stdout
    return f"{title} --hash=sha256:{sha256_of(deb)} --from=pool/{deb.name}\n"


def test_debian_packages_bring_the_python_and_two_builds_of_them_are_the_same_in_every_byte(
    from_debs: tuple[list[Image], Ready], client: "docker.DockerClient"
) -> None:
    images, ready = from_debs
    first, second = (image.attrs["RootFS"]["Layers"] for image in images)
    differing = compare(*(image_content(client, str(image.id)) for image in images)).differing
    assert differing == {}
    assert first == second
    assert ready.record.content()["python"].startswith("3.11.")
    said = output_of(client, ready.built.realised_id, "python", "-c", "import sys; print(sys.prefix, sys.base_prefix)")
    assert said.split() == ["/opt/environment", "/usr"]


def test_of_debian_packages_only_what_they_install_is_in_the_image(
    from_debs: tuple[list[Image], Ready], client: "docker.DockerClient"
) -> None:
    _, ready = from_debs
    before, after = (image_content(client, name) for name in ("tsuishi-tests/made:bare", ready.built.realised_id))
    meant = ("opt/environment", "usr/", "var/lib/dpkg/info/")
    found = {path: what for path, what in compare(before, after).differing.items() if not path.startswith(meant)}
    new = {path for path, what in found.items() if what == ["only in the second"]}
    assert new == {
        "etc/ld.so.conf.d/tsuishi-cuda.conf",
        "etc/python3.11",
        "etc/python3.11/sitecustomize.py",
        "etc/mime.types",
        "var/lib/python",
        "var/lib/python/python3.11_installed",
    }
    assert found.keys() - new == {"etc/ld.so.cache", "var/lib/dpkg/status"}
    assert output_of(client, ready.built.realised_id, "dpkg", "--audit") == ""


def test_nvidias_libraries_are_found_and_no_gpu_is_there_that_was_not_given(
    from_debs: tuple[list[Image], Ready], client: "docker.DockerClient"
) -> None:
    _, ready = from_debs
    assert "/usr/local/cuda-10.0/targets/x86_64-linux/lib/libz.so.1" in output_of(
        client, ready.built.realised_id, "/sbin/ldconfig", "--print-cache"
    )
    assert {*NO_GPU, ("NVIDIA_REQUIRE_DRIVER", "driver>=410.48")} <= environ(client, ready)


def test_the_bill_of_materials_has_every_package_with_the_hash_of_what_was_checked(
    from_debs: tuple[list[Image], Ready], client: "docker.DockerClient"
) -> None:
    _, ready = from_debs
    bill = ready.record.content()["sbom"]
    assert wrong_in(bill) is None
    components = {one["purl"]: one for one in bill["components"] if "purl" in one}
    show = "pkg:deb/debian/${Package}@${Version}?arch=${Architecture}&distro=debian-12\n"
    installed = output_of(client, ready.built.realised_id, "dpkg-query", "--show", f"--showformat={show}").splitlines()
    assert len(installed) > 80
    found = {unquote(purl) for purl in components if purl.startswith("pkg:deb/")}
    assert found == set(installed)
    for deb in ready.environment.debs:
        (component,) = [one for one in bill["components"] if (one["name"], one["version"]) == (deb.name, deb.version)]
        assert component["hashes"] == [{"alg": "SHA-256", "content": deb.sha256}]
    for pin in ready.environment.pins:
        component = components[f"pkg:pypi/{pin.name}@{pin.version}"]
        assert component["hashes"] == [{"alg": "SHA-256", "content": pin.sha256[0]}]
    assert f"pkg:generic/python@{ready.record.content()['python']}" in components
    (base,) = [one for one in bill["components"] if one["type"] == "container"]
    assert (base["name"], base["version"]) == ("tsuishi-tests/made", "bare")
    properties = {one["name"]: one["value"] for one in bill["metadata"]["component"]["properties"]}
    assert properties["tsuishi:image_id"] == ready.built.realised_id


@pytest.fixture(scope="module")
def of_the_base(
    client: "docker.DockerClient", settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Ready, Builder]]:
    """An environment as tf1.15-ngc is: its base has the packages, a program in front of every command, and all GPUs."""
    checkout = tiny_checkout(tmp_path_factory.mktemp("base"), "ok")
    wheels = Builder(settings, checkout).fetcher(print).fetch(read_environment(checkout.images / "tiny.toml"))
    pip = next(wheel for wheel in wheels if wheel.name.startswith("pip-"))
    (extensions,) = (wheel for wheel in wheels if wheel != pip)
    recipe = f"""
    COPY *.whl /wheels/
    RUN python3.11 /wheels/{pip.name}/pip install --no-index --no-deps /wheels/{extensions.name} && rm -r /wheels
    ENV NVIDIA_VISIBLE_DEVICES=all
    ENTRYPOINT ["sh", "-c", "echo a banner; exec \\"$@\\"", "-"]
    """
    with made(client, settings, "has-all", recipe, pip=pip, extensions=extensions) as given:
        extra = f"""
        packages = "of the base"
        [cuda]
        toolkit = "12.1"
        min_driver = "530.30.02"
        native = ["6.0", "9.0"]
        [promises]
        python = "3.11"
        typing-extensions = "{extensions.name.split("-")[1]}"
        """
        environment = small(
            checkout.images, "ngc", "", python="3.11", base="docker.io/library/test:has-all", extra=extra
        )
        builder = Builder(given, checkout)
        ready = builder.ensure(environment, print)
        yield ready, builder
        builder.engines.docker.maker.discard(ready.built)


def test_an_environment_of_its_base_is_that_base_with_nothing_added(
    of_the_base: tuple[Ready, Builder], client: "docker.DockerClient"
) -> None:
    ready, _ = of_the_base
    image, base = (client.images.get(name) for name in (ready.built.realised_id, "tsuishi-tests/made:has-all"))
    assert image.attrs["RootFS"]["Layers"] == base.attrs["RootFS"]["Layers"]
    assert output_of(client, ready.built.realised_id, "python", "-c", "print(1)") == "1\n"
    assert image.attrs["Config"]["User"] == "65534:65534"
    assert {*NO_GPU, ("NVIDIA_REQUIRE_DRIVER", "driver>=530.30.02")} <= environ(client, ready)


def test_its_packages_are_recorded_without_hashes(of_the_base: tuple[Ready, Builder]) -> None:
    ready, _ = of_the_base
    assert set(ready.record.content()["packages"]) == {"typing-extensions"}
    purls = {one["purl"]: one for one in ready.record.content()["sbom"]["components"] if "purl" in one}
    version = ready.record.content()["packages"]["typing-extensions"]
    assert "hashes" not in purls[f"pkg:pypi/typing-extensions@{version}"]
    assert any(purl.startswith("pkg:deb/debian/libc6@") for purl in purls)


def test_the_bill_of_materials_is_kept_beside_the_record_and_found_again_with_it(
    of_the_base: tuple[Ready, Builder],
) -> None:
    ready, builder = of_the_base
    again = builder.find(ready.environment)
    assert again is not None
    assert again.record == ready.record
    (file,) = (builder.cache.root.parent / "environments").glob("ngc-docker-*.cdx.json")
    assert json.loads(file.read_text(encoding="utf-8")) == ready.record.content()["sbom"]


def environ(client: "docker.DockerClient", ready: Ready) -> set[tuple[str, str]]:
    """The variables of an image."""
    variables = client.images.get(ready.built.realised_id).attrs["Config"]["Env"]
    return {(name, value) for name, _, value in (one.partition("=") for one in variables)}
