"""Several environments at once, with and without a network, and what is left behind. On a daemon of its own."""

import hashlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest
from rich.console import Console

from tests.artifacts.servers import Site, served
from tests.conftest import missing
from tests.engine import local_bases, registries
from tests.engine.conftest import tiny_checkout
from tests.job import invoke
from tests.run.test_runner import wait_for
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.commands.build import fetch
from tsuishi.environments import inventory
from tsuishi.environments.builder import Builder
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session
from tsuishi.specs.environment import Environment, read_environment

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> Iterator["docker.DockerClient"]:
    """A daemon that only these tests talk to, with the base image of the tiny environment in it."""
    if os.geteuid() != 0 or not settings.mirrors:
        missing("no right to start a Docker daemon of its own, or no local base images")
    usual = os.environ.get("DOCKER_HOST")
    base = b"".join(docker.from_env().images.get(stand_in(settings)).save(named=stand_in(settings)))
    root = tmp_path_factory.mktemp("d")
    os.environ["DOCKER_HOST"] = local_bases.engine(root, f"{root}/docker.sock")
    client = docker.from_env()
    client.images.load(base)
    yield client
    client.close()
    local_bases.stop(root)
    subprocess.run(["umount", "--lazy", str(root)], check=False, capture_output=True)
    os.environ.pop("DOCKER_HOST")
    if usual:
        os.environ["DOCKER_HOST"] = usual


@pytest.fixture(scope="module")
def wheels(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of the tiny environment, in place of an index."""
    checkout = tiny_checkout(tmp_path_factory.mktemp("checkout"))
    folder = tmp_path_factory.mktemp("wheels")
    for wheel in Builder(settings, checkout).fetcher(print).fetch(tiny(checkout)):
        shutil.copy(wheel, folder)
    return folder


@pytest.fixture
def given(settings: Settings, tmp_path: Path, wheels: Path, engine: "docker.DockerClient") -> Settings:
    """Settings with an empty cache, and no index."""
    changes = {"cache": tmp_path / "cache", "find_links": (str(wheels),), "jobs": 4, "results": tmp_path / "results"}
    return Settings(**{**settings.model_dump(), **changes})


@pytest.fixture(autouse=True)
def empty(engine: "docker.DockerClient", settings: Settings) -> Iterator[None]:
    """Every test begins with the base image alone."""
    base = engine.images.get(stand_in(settings))
    kept = b"".join(base.save(named=stand_in(settings)))
    yield
    for container in engine.containers.list(all=True, ignore_removed=True):
        container.remove(force=True)
    for image in engine.images.list(all=True):
        if image.id != base.id:
            assert image.id is not None
            subprocess.run(["docker", "rmi", "--force", image.id], check=False, capture_output=True)
    engine.images.load(kept)


def stand_in(settings: Settings) -> str:
    return settings.mirrors["docker.io/library/python:3.11.13-slim-bookworm"]


def tiny(checkout: Checkout, name: str = "tiny") -> Environment:
    return read_environment(checkout.images / f"{name}.toml")


def another(checkout: Checkout, name: str, change: Callable[[str], str] = str) -> Environment:
    """The tiny environment under another name."""
    (checkout.images / f"{name}.toml").write_text(change((checkout.images / "tiny.toml").read_text()))
    shutil.copy(checkout.images / "tiny.lock", checkout.images / f"{name}.lock")
    return tiny(checkout, name)


def session(checkout: Checkout, settings: Settings, *names: str) -> tuple[Session, io.StringIO]:
    said = io.StringIO()
    screen = Screen(Console(file=said, highlight=False, soft_wrap=True))
    return Session(settings, Choice(environments=names or ("tiny",)), screen, checkout), said


def offline(settings: Settings) -> Settings:
    return Settings(**{**settings.model_dump(), "offline": True, "find_links": ()})


def left_behind(engine: "docker.DockerClient") -> list[str]:
    """Containers, and images that no other is made of and that have no name."""
    containers = [str(container.name) for container in engine.containers.list(all=True, ignore_removed=True)]
    return containers + [str(image.id) for image in engine.images.list(filters={"dangling": True})]


def test_what_one_environment_fails_of_keeps_none_of_the_others_back(
    tmp_path: Path, given: Settings, engine: "docker.DockerClient"
) -> None:
    checkout = tiny_checkout(tmp_path)
    second = another(checkout, "second")
    wrong = another(checkout, "wrong", lambda text: text.replace('python = "3.11",', 'python = "3.11.99",'))
    stuck = another(checkout, "stuck", lambda text: text.replace('"docker.io/library/python:', '"localhost:1/python:'))
    work, said = session(checkout, given)
    with pytest.raises(UserError, match=r"^2 environments could not be built: wrong, stuck; see above$"):
        work.build([wrong, tiny(checkout), stuck, second])
    lines = said.getvalue().splitlines()
    assert re.search(r"^wrong: failed after .+; the others go on$", said.getvalue(), re.MULTILINE)
    assert [line[: line.index(":")] for line in lines[-2:]] == ["wrong", "stuck"]
    assert re.match(r"wrong: not built: wrong does not report what it promises: python is 3\.11\.\d+", lines[-2])
    assert lines[-1].startswith("stuck: not built: stuck: cannot pull localhost:1/python:3.11.13-slim-bookworm: ")
    assert {tag.partition(":")[0] for image in engine.images.list("tsuishi/*") for tag in image.tags} == {
        "tsuishi/tiny",
        "tsuishi/second",
    }
    assert left_behind(engine) == []
    parts = re.search(r"2 built in (.+); their times add up to (.+)", said.getvalue())
    assert parts is not None
    work, said = session(checkout, given)
    assert set(work.build([tiny(checkout), second])) == {"tiny", "second"}
    assert said.getvalue().splitlines() == [
        "tiny, second: built already, nothing to do",
    ]


def test_a_wheel_whose_name_is_a_program_is_refused_before_anything_is_built(
    tmp_path: Path, given: Settings, engine: "docker.DockerClient", wheels: Path
) -> None:
    """The right bytes and the right hash of pip, under a name that an index chose."""
    checkout = tiny_checkout(tmp_path)
    site = Site(projects=("pip", "typing-extensions"))
    for wheel in wheels.iterdir():
        odd = wheel.name.replace("-py3", "-1$(echo${IFS}a${IFS}program${IFS}ran>&2)-py3")
        name = odd if wheel.name.startswith("pip-") else wheel.name
        site.files[name] = wheel.read_bytes()
        site.stated[name] = hashlib.sha256(site.files[name]).hexdigest()
    version = next(pin.version for pin in tiny(checkout).pins if pin.name == "pip")
    with served(site):
        changes = {"find_links": (), "indexes": (site.index,)}
        work, said = session(checkout, Settings(**{**given.model_dump(), **changes}))
        with pytest.raises(
            UserError, match=rf"is no name of a wheel or an sdist of pip {re.escape(version)}; "
        ) as caught:
            work.build([tiny(checkout)])
    assert "\n" not in str(caught.value)
    assert "a program ran" not in f"{said.getvalue()}{caught.value}"
    assert not any(request.startswith("/files/pip") for request in site.requests)
    assert "Step" not in said.getvalue()
    assert engine.images.list("tsuishi/*") == left_behind(engine) == []


def test_an_interrupt_ends_all_builds_and_leaves_nothing(
    tmp_path: Path, given: Settings, engine: "docker.DockerClient"
) -> None:
    checkout = tiny_checkout(tmp_path)
    another(checkout, "second")
    (tmp_path / "templates").unlink()
    shutil.copytree(Checkout().templates, tmp_path / "templates")
    template = checkout.dockerfile.read_text()
    checkout.dockerfile.write_text(template.replace("FROM base AS build\n", "FROM base AS build\nRUN sleep 600\n"))
    child = building(checkout, given, "tiny", "second")
    wait_for(lambda: len(engine.containers.list(ignore_removed=True)) == 2, 60)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) == 130
    assert left_behind(engine) == []
    assert not list(given.cache.glob(".context-*"))
    checkout.dockerfile.write_text(template)
    work, said = session(checkout, given)
    assert set(work.build([tiny(checkout), tiny(checkout, "second")])) == {"tiny", "second"}, said.getvalue()


def test_with_a_cache_that_was_fetched_a_build_needs_no_network(
    tmp_path: Path, given: Settings, engine: "docker.DockerClient"
) -> None:
    checkout = tiny_checkout(tmp_path)
    work, said = session(checkout, given)
    fetch(work)
    assert re.search(r"^tiny +2 +2 MB +1\d\d MB +2 MB", said.getvalue(), re.MULTILINE)
    base = engine.images.get(stand_in(given))
    engine.images.remove(stand_in(given))
    work, said = session(checkout, offline(given))
    ready = work.build([tiny(checkout)])["tiny"]
    assert f"tiny: loading {stand_in(given)} from the cache" in said.getvalue()
    assert ready.record.content()["base"]["image_id"] == base.id
    assert engine.images.get(stand_in(given)).id == base.id
    assert left_behind(engine) == []


def test_without_a_network_everything_that_is_missing_is_named_at_once(
    tmp_path: Path, given: Settings, engine: "docker.DockerClient"
) -> None:
    checkout = tiny_checkout(tmp_path)
    second = another(checkout, "second")
    work, _ = session(checkout, given)
    fetch(work)
    pip, other = (f"{pin.name}=={pin.version}" for pin in tiny(checkout).pins)
    shutil.rmtree(given.cache / "artifacts" / tiny(checkout).pins[0].sha256[0])
    for tar in (given.cache / "bases").glob("*.tar"):
        tar.unlink()
    engine.images.remove(stand_in(given))
    work, said = session(checkout, offline(given))
    with pytest.raises(UserError) as caught:
        work.build([tiny(checkout), second])
    base = "base image docker.io/library/python:3.11.13-slim-bookworm"
    assert str(caught.value) == (
        f"offline, and not in the cache are, of tiny: {pip}, {base}; of second: {pip}, {base}: fill it with "
        f"`invoke fetch --env tiny,second` where there is a network, and carry {given.cache} over"
    )
    assert other not in str(caught.value)
    assert said.getvalue() == ""


def test_a_base_that_was_damaged_on_its_way_is_not_built_on(
    tmp_path: Path, given: Settings, engine: "docker.DockerClient"
) -> None:
    checkout = tiny_checkout(tmp_path)
    work, _ = session(checkout, given)
    fetch(work)
    (tar,) = (given.cache / "bases").glob("*.tar")
    content = bytearray(tar.read_bytes())
    with tarfile.open(tar) as members:
        layer = next(member for member in members if member.name.endswith("layer.tar"))
    content[layer.offset_data + layer.size // 2] ^= 1
    tar.write_bytes(content)
    engine.images.remove(stand_in(given))
    work, _ = session(checkout, offline(given))
    with pytest.raises(UserError, match=rf"^{tar} is damaged \(.+\): remove it, and get it again with `invoke fetch`$"):
        work.build([tiny(checkout)])


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """The address of a registry on this machine."""
    with registries.registry(tmp_path) as address:
        yield address


def test_a_base_is_pulled_by_its_digest_from_the_first_registry_that_has_it(
    tmp_path: Path, given: Settings, engine: "docker.DockerClient", registry: str
) -> None:
    image = engine.images.get(stand_in(given))
    image.tag(f"{registry}/copy/python", "3.11")
    wait_for(lambda: "digest" in engine.images.push(f"{registry}/copy/python", "3.11"), 30)
    digest = engine.images.get(f"{registry}/copy/python:3.11").attrs["RepoDigests"][0].partition("@")[2]
    for name in (f"{registry}/copy/python:3.11", stand_in(given)):
        engine.images.remove(name)
    assert engine.images.list() == []
    checkout = tiny_checkout(tmp_path)
    spec = checkout.images / "tiny.toml"
    copies = f'["{registry}/none/python:3.11", "{registry}/copy/python:3.11"]'
    base = f'base = {{ reference = "127.0.0.1:1/python:3.11", digest = "{digest}", copies = {copies} }}'
    spec.write_text(re.sub(r"base = .*", base, spec.read_text()))
    work, said = session(checkout, given)
    fetch(work)
    assert f"tiny: cannot pull 127.0.0.1:1/python@{digest}: " in said.getvalue()
    assert f"tiny: cannot pull {registry}/none/python@{digest}: " in said.getvalue()
    assert f"tiny: pulling {registry}/copy/python@{digest}" in said.getvalue()
    # Elsewhere: nothing in the engine, no registry, and no name but the digest to know it by.
    engine.images.remove(f"{registry}/copy/python@{digest}", force=True)
    assert engine.images.list() == []
    work, said = session(checkout, offline(given))
    ready = work.build([tiny(checkout)])["tiny"]
    assert ready.record.content()["base"] == {
        "reference": "127.0.0.1:1/python:3.11",
        "used": f"127.0.0.1:1/python@{digest}",
        "digest": digest,
        "image_id": image.id,
    }
    assert ready.record.content()["substitutions"] == []


def test_a_mirror_is_asked_for_the_digest_before_its_tag_stands_in(
    tmp_path: Path, given: Settings, engine: "docker.DockerClient", registry: str
) -> None:
    image = engine.images.get(stand_in(given))
    copy = f"{registry}/copy/python"
    image.tag(copy, "3.11")
    wait_for(lambda: "digest" in engine.images.push(copy, "3.11"), 30)
    digest = engine.images.get(f"{copy}:3.11").attrs["RepoDigests"][0].partition("@")[2]
    engine.images.remove(f"{copy}:3.11")
    checkout = tiny_checkout(tmp_path)
    spec = checkout.images / "tiny.toml"
    mapped = Settings(**{**given.model_dump(), "mirrors": {"registry.invalid": f"{registry}/copy"}})

    def base(digest: str) -> None:
        table = f'base = {{ reference = "registry.invalid/python:3.11", digest = "{digest}" }}'
        spec.write_text(re.sub(r"base = .*", table, spec.read_text()))

    base(digest)
    work, said = session(checkout, mapped)
    fetch(work)
    ready = work.build([tiny(checkout)])["tiny"]
    assert f"tiny: pulling {copy}@{digest}" in said.getvalue()
    assert f"pulling {copy}:3.11" not in said.getvalue()
    assert ready.record.content()["base"]["used"] == f"{copy}@{digest}"
    assert ready.record.content()["substitutions"] == [
        {"asked": "registry.invalid/python:3.11", "used": f"{copy}@{digest}"}
    ]
    (kept,) = (given.cache / "bases").glob("*.json")
    assert kept.stem == digest.removeprefix("sha256:")
    # Another digest than the mirror has.
    base("sha256:" + "0" * 64)
    work, said = session(checkout, mapped)
    ready = work.build([tiny(checkout)])["tiny"]
    assert f"tiny: cannot pull {copy}@sha256:{'0' * 64}: " in said.getvalue()
    assert f"tiny: pulling {copy}:3.11" in said.getvalue()
    assert ready.record.content()["base"]["used"] == f"{copy}:3.11"
    work, said = session(checkout, mapped)
    work.build([tiny(checkout)])
    assert said.getvalue() == "tiny: built already, nothing to do\n"
    engine.images.remove(f"{copy}:3.11")


def test_an_image_of_this_machine_that_stands_in_is_used_without_asking_a_registry(
    tmp_path: Path, given: Settings, engine: "docker.DockerClient"
) -> None:
    checkout = tiny_checkout(tmp_path)
    spec = checkout.images / "tiny.toml"
    spec.write_text(re.sub(r"(base = .*) }", rf'\1, digest = "sha256:{"0" * 64}" }}', spec.read_text()))
    work, said = session(checkout, given)
    fetch(work)
    ready = work.build([tiny(checkout)])["tiny"]
    assert "pull" not in said.getvalue()
    assert ready.record.content()["base"]["used"] == stand_in(given)


def test_where_no_registry_has_the_base_each_is_named_with_its_reason(
    tmp_path: Path, given: Settings, engine: "docker.DockerClient"
) -> None:
    checkout = tiny_checkout(tmp_path)
    spec = checkout.images / "tiny.toml"
    digest = "sha256:" + "0" * 64
    base = f'base = {{ reference = "127.0.0.1:1/a:1", digest = "{digest}", copies = ["127.0.0.1:2/b:1"] }}'
    spec.write_text(re.sub(r"base = .*", base, spec.read_text()))
    work, _ = session(checkout, given)
    said = rf"^tiny: cannot pull 127.0.0.1:1/a@{digest}: .*refused; nor 127.0.0.1:2/b@{digest}: .*refused; where "
    with pytest.raises(UserError, match=said):
        work.build([tiny(checkout)])


def test_images_shows_what_there_is_and_whether_it_is_what_the_specs_say(
    tmp_path: Path, given: Settings, engine: "docker.DockerClient"
) -> None:
    checkout = tiny_checkout(tmp_path)
    work, _ = session(checkout, given)
    ready = work.build([tiny(checkout), another(checkout, "second"), another(checkout, "gone")])
    digests = {name: one.built.realised_id.removeprefix("sha256:")[:12] for name, one in ready.items()}
    own = {name: f"{digest}: the image's own" for name, digest in digests.items()}
    for name in ("gone.toml", "gone.lock"):
        (checkout.images / name).unlink()
    version = next(pin.version for pin in tiny(checkout).pins if pin.name == "typing-extensions")
    for file in ("second.toml", "second.lock"):
        path = checkout.images / file
        path.write_text(path.read_text().replace(version, "9.9"))
    work, said = session(checkout, given)
    work.screen.console.width = 260  # no cell is folded
    inventory.show(work.builder, work.screen)
    rows = {tuple(re.split(r" {2,}", line.strip())) for line in said.getvalue().splitlines()}
    lock = tiny(checkout).lock_sha256[:12]
    size = next(row[4] for row in rows if row[0] == "tiny")
    assert re.fullmatch(r"1\d\d MB", size)
    older = f"typing-extensions is {version}, promised 9.9; package typing-extensions is {version}, locked 9.9"
    assert {
        ("tiny", "docker", "built", own["tiny"], size, "unpinned", lock, "now", "kept"),
        ("second", "docker", "to build"),
        ("second", "docker", "of an older spec", own["second"], size, "unpinned", lock, "now", older),
        ("gone", "docker", "of an environment that is not in images/", own["gone"], size, "unpinned", lock, "now"),
    } <= rows


def test_clean_removes_what_tsuishi_made_and_nothing_else(
    tmp_path: Path, given: Settings, engine: "docker.DockerClient"
) -> None:
    checkout = tiny_checkout(tmp_path)
    work, _ = session(checkout, given)
    ready = work.build([tiny(checkout), another(checkout, "busy")])
    ours = {name: one.record.content()["image"]["tag"] for name, one in ready.items()}
    dockerfile = f"FROM {ours['tiny']}\nENV THEIRS=1\n".encode()
    engine.images.build(fileobj=io.BytesIO(dockerfile), tag="theirs/on-ours:1", rm=True)
    engine.images.get(stand_in(given)).tag("tsuishi/theirs", "1")
    engine.images.get(stand_in(given)).tag("nobody/tsuishi", "1")
    running = engine.containers.run(ours["busy"], ["sleep", "600"], detach=True, name="theirs")
    work, said = session(checkout, given)
    with inventory.nobody_uses(given):
        inventory.remove(work.builder, work.screen)
    lines = said.getvalue().splitlines()
    assert f"removed {ours['tiny']}" in lines
    (left,) = [line for line in lines if line.startswith("left ")]
    assert re.match(rf"left {ours['busy']}: .* refused: conflict: ", left)
    assert str(running.id)[:12] in left
    assert {tag for image in engine.images.list() for tag in image.tags} == {
        *(ours["busy"], "theirs/on-ours:1", "tsuishi/theirs:1", "nobody/tsuishi:1", stand_in(given))
    }
    running.remove(force=True)
    work, said = session(checkout, given)
    with inventory.nobody_uses(given):
        inventory.remove(work.builder, work.screen)
    assert said.getvalue().splitlines() == [f"removed {ours['busy']}"]
    assert not (given.cache / "environments").exists()


def test_the_tasks_do_all_this_by_their_names(tmp_path: Path, given: Settings, engine: "docker.DockerClient") -> None:
    environ = {
        "INVOKE_TSUISHI_CACHE": str(given.cache),
        "INVOKE_TSUISHI_MIRRORS": ",".join(f"{asked}={used}" for asked, used in given.mirrors.items()),
    }
    listed = invoke(tmp_path, "images", **environ)
    assert listed.returncode == 0, listed.stderr
    assert re.search(r"^tf1\.13-cpu +docker +to build", listed.stdout, re.MULTILINE)
    assert re.search(r"^tf1\.13-cu100 +docker +not here: \d+ hashes not known yet", listed.stdout, re.MULTILINE)
    refused = invoke(tmp_path, "build", "--env", "tf1.13-cpu", "--offline", "--jobs", "2", **environ)
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: offline, and not in the cache are, of tf1.13-cpu: absl-py==0.15.0, ")
    refused = invoke(tmp_path, "fetch", "--env", "tf1.13-cu100", **environ)
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: tf1.13-cu100: not known yet: ")


def building(checkout: Checkout, settings: Settings, *names: str) -> "subprocess.Popen[str]":
    """A process of its own that builds, to be interrupted."""
    code = f"""
import sys
from pathlib import Path
from tests.engine.test_building import session, tiny
from tsuishi.base.checkout import Checkout
from tsuishi.base.settings import Settings
checkout = Checkout(Path({str(checkout.root)!r}))
work, _ = session(checkout, Settings(**{settings.model_dump(mode="json")!r}))
try:
    work.build([tiny(checkout, name) for name in {names!r}])
except KeyboardInterrupt:
    sys.exit(130)
"""
    return subprocess.Popen([sys.executable, "-c", code], text=True)
