"""Locks made with a real engine: apt resolves in a container of the base, a registry says the base's digest."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.engine.apt_repository import PACKAGES, AptRepository, apt_repository, download_packages
from tests.engine.conftest import output_of, tiny_checkout
from tests.engine.registries import push, registry
from tests.job import REAL
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.files import sha256_of
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.commands.build import build
from tsuishi.commands.chain import Chain
from tsuishi.commands.options import Options
from tsuishi.engines.interface import Artefacts
from tsuishi.environments.builder import Builder
from tsuishi.locking.resolve import NewLock
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session
from tsuishi.specs.environment import read_environment

pytestmark = pytest.mark.engine

REQUIRES = [
    f"{pin.name}=={pin.version}"
    for pin in read_environment(REAL.images / "torch2-cpu.toml").pins
    if pin.name in ("pip", "typing-extensions")
]

# The base of `tiny`, and what this machine has in its place.
BASE = "docker.io/library/python:3.11.13-slim-bookworm"
BASE_HERE = "tsuishi-test/python:3.11"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return download_packages(tmp_path_factory.mktemp("packages") / "debs")


@pytest.fixture
def tools(tmp_path: Path, packages: Path) -> Iterator[AptRepository]:
    with apt_repository(tmp_path / "tools", packages) as repository:
        yield repository


def checkout_with(root: Path, tools: AptRepository, *, base: str = "", **changes: str) -> Checkout:
    """A checkout whose environment `tiny` asks an apt repository for something, and has no lock for that yet."""
    given = {
        "asked": "jq",
        "layout": 'suite = "stable"\ncomponents = ["main"]',
        "uris": f'["{tools.uri}"]',
        "key": tools.key,
        "key_url": f"{tools.uri}/right.asc",
        **changes,
    }
    checkout = tiny_checkout(
        root / "checkout",
        extra=f"""
        requires = {REQUIRES}
        [apt]
        packages = ["{given["asked"]}"]
        [apt.repositories.tools]
        uris = {given["uris"]}
        {given["layout"]}
        key = "{given["key"]}"
        key_urls = ["{given["key_url"]}"]
        """,
    )
    spec = checkout.images / "tiny.toml"
    if base:
        table = f'[base]\nreference = "{base}"\ndigest = ""  # not known yet: unpinned\n\n# the end\n'
        spec.write_text(re.sub(r" *base = .*\n", "", spec.read_text()) + table)
    return checkout


def resolve(checkout: Checkout, settings: Settings, said: list[str]) -> NewLock:
    return Builder(settings, checkout).locker(said.append).resolve(checkout.images / "tiny.toml")


def refused(checkout: Checkout, settings: Settings) -> str:
    """Why a lock cannot be made; no file is there that was not, or is another."""
    before = {path: path.read_bytes() for path in checkout.images.iterdir()}
    with pytest.raises(UserError) as caught:
        resolve(checkout, settings, [])
    assert {path: path.read_bytes() for path in checkout.images.iterdir()} == before
    return str(caught.value)


def test_debian_packages_are_locked_with_all_the_base_lacks_and_built_without_a_network(
    tmp_path: Path, settings: Settings, tools: AptRepository
) -> None:
    checkout = checkout_with(tmp_path, tools)
    locked = resolve(checkout, settings, [])
    assert locked.difference == (
        "deb jq open -> " + tools.version("jq"),
        *(f"+ deb {name} {tools.version(name)}" for name in PACKAGES[1:]),
    )
    locked.write()
    lines = (checkout.images / "tiny.apt.lock").read_text().splitlines()
    assert lines[2:] == [
        f"{name}={tools.version(name)} --hash=sha256:{sha256_of(deb)} "
        f"--from=tools/pool/{deb.name} --bytes={deb.stat().st_size}"
        for name in PACKAGES
        for deb in tools.folder.glob(f"pool/{name}_*.deb")
    ]
    assert resolve(checkout, settings, []).files == {}
    builder = Builder(Settings(**{**settings.model_dump(), "cache": tmp_path / "cache"}), checkout)
    environment = read_environment(checkout.images / "tiny.toml")
    fetcher = builder.fetcher(lambda line: None)
    artefacts = Artefacts(fetcher.fetch(environment), fetcher.fetch_debs(environment))
    built = builder.engines.docker.maker.build(environment, artefacts, lambda line: None, fetcher.progress)
    assert output_of(docker.from_env(), built.realised_id, "jq", "--version").strip() == "jq-1.6"


def test_the_base_is_locked_by_the_digest_its_registry_has_and_apt_asks_that_base(
    tmp_path: Path, settings: Settings, tools: AptRepository
) -> None:
    with registry(tmp_path) as address:
        reference = f"{address}/python:3.11"
        digest = push(BASE_HERE, reference)
        checkout = checkout_with(tmp_path, tools, base=reference)
        said: list[str] = []
        locked = resolve(checkout, settings, said)
        assert locked.difference[-1] == f"base digest: unpinned -> {digest}"
        assert f"pulling {address}/python@{digest}" in said
        locked.write()
        table = f'[base]\nreference = "{reference}"\ndigest = "{digest}"\n\n# the end\n'
        assert (checkout.images / "tiny.toml").read_text().endswith(table)
        assert resolve(checkout, settings, said).files == {}


def test_a_mirror_that_is_a_registry_answers_for_the_reference_it_stands_for(
    tmp_path: Path, settings: Settings, tools: AptRepository
) -> None:
    with registry(tmp_path) as address:
        digest = push(BASE_HERE, f"{address}/copies/python:3.11")
        checkout = checkout_with(tmp_path, tools, base="registry.invalid/python:3.11")
        mirrors = {"registry.invalid": f"{address}/copies"}
        said: list[str] = []
        locked = resolve(checkout, Settings(**{**settings.model_dump(), "mirrors": mirrors}), said)
    assert locked.difference[-1] == f"base digest: unpinned -> {digest}"
    assert f"base digest: as {address}/copies/python:3.11 has it, the mirror of registry.invalid/python:3.11" in said


def test_a_registry_out_of_reach_is_told_with_what_helps(
    tmp_path: Path, settings: Settings, tools: AptRepository
) -> None:
    said = refused(checkout_with(tmp_path, tools, base="127.0.0.1:9/python:3.11"), settings)
    assert said.startswith("tiny: the digest of 127.0.0.1:9/python:3.11 cannot be asked for: ")
    assert said.endswith("; lock it where the registry can be reached, or name a copy of the image in tsuishi.mirrors")


def test_a_key_that_is_not_the_one_of_the_spec_is_refused(
    tmp_path: Path, settings: Settings, tools: AptRepository
) -> None:
    other = tools.make_key("other")
    assert refused(checkout_with(tmp_path, tools, key=other), settings) == (
        f"tiny: the repository tools is trusted by the key {other}, and that is not to be had: {tools.uri}/right.asc "
        f"gave the key {tools.key}; do not use another key unless its owner says that it was replaced"
    )


def test_an_index_signed_by_another_key_is_refused(tmp_path: Path, settings: Settings, tools: AptRepository) -> None:
    other = tools.make_key("other")
    tools.publish("other")
    assert refused(checkout_with(tmp_path, tools), settings) == (
        f"tiny: the repository tools cannot be used: {tools.uri}: GPG error: {tools.uri} stable InRelease: The "
        f"following signatures couldn't be verified because the public key is not available: NO_PUBKEY {other[-16:]}; "
        f"The repository '{tools.uri} stable InRelease' is not signed."
    )


def test_a_repository_that_is_not_signed_is_refused(tmp_path: Path, settings: Settings, tools: AptRepository) -> None:
    tools.release.unlink()
    assert refused(checkout_with(tmp_path, tools), settings) == (
        f"tiny: the repository tools cannot be used: {tools.uri}: The repository '{tools.uri} stable Release' is not "
        "signed."
    )


def test_an_altered_release_is_refused(tmp_path: Path, settings: Settings, tools: AptRepository) -> None:
    tools.release.write_text(tools.release.read_text().replace("Suite: stable", "Suite: testing"))
    assert refused(checkout_with(tmp_path, tools), settings) == (
        f"tiny: the repository tools cannot be used: {tools.uri}: GPG error: {tools.uri} stable InRelease: The "
        f"following signatures were invalid: BADSIG {tools.key[-16:]} right; The repository '{tools.uri} stable "
        "InRelease' is not signed."
    )


def test_an_altered_index_is_refused(tmp_path: Path, settings: Settings, tools: AptRepository) -> None:
    tools.index.write_text(tools.index.read_text().replace("jq_", "qj_"))
    assert refused(checkout_with(tmp_path, tools), settings) == (
        f"tiny: the repository tools cannot be used: {tools.uri}: Failed to fetch "
        f"{tools.uri}/dists/stable/main/binary-amd64/Packages Hash Sum mismatch"
    )


def test_a_version_that_is_not_there_is_refused(tmp_path: Path, settings: Settings, tools: AptRepository) -> None:
    assert refused(checkout_with(tmp_path, tools, asked="jq=1.5-1"), settings) == (
        "tiny: apt finds no way to install the packages: Version '1.5-1' for 'jq' was not found"
    )


def test_the_next_uri_is_asked_where_one_is_out_of_reach_and_the_mirror_map_holds(
    tmp_path: Path, settings: Settings, tools: AptRepository
) -> None:
    uris = '["http://127.0.0.1:9/gone", "http://apt.invalid/tools"]'
    checkout = checkout_with(tmp_path, tools, uris=uris, key_url="http://apt.invalid/tools/right.asc")
    mirrors = settings.mirrors | {"http://apt.invalid/tools": tools.uri}
    resolve(checkout, Settings(**{**settings.model_dump(), "mirrors": mirrors}), []).write()
    jq = read_environment(checkout.images / "tiny.toml").debs[0]
    assert jq.urls == (f"http://127.0.0.1:9/gone/pool/{jq.file}", f"http://apt.invalid/tools/pool/{jq.file}")


def test_a_repository_of_which_no_uri_answers_is_told_with_all_of_them(
    tmp_path: Path, settings: Settings, tools: AptRepository
) -> None:
    uris = [f"http://127.0.0.1:9/{name}" for name in ("a", "b")]
    refusals = [
        f"{uri}: Failed to fetch {uri}/dists/stable/InRelease Could not connect to 127.0.0.1:9 (127.0.0.1). - connect "
        "(111: Connection refused)"
        for uri in uris
    ]
    said = refused(checkout_with(tmp_path, tools, uris=json.dumps(uris)), settings)
    assert said == f"tiny: the repository tools cannot be used: {'; nor '.join(refusals)}"


def test_a_flat_repository_is_read_as_well(tmp_path: Path, settings: Settings, tools: AptRepository) -> None:
    checkout = checkout_with(tmp_path, tools, uris=f'["{tools.uri}/flat"]', layout="")
    resolve(checkout, settings, []).write()
    jq = read_environment(checkout.images / "tiny.toml").debs[0]
    assert jq.urls == (f"{tools.uri}/flat/{jq.file}",)
    assert jq.sha256 == sha256_of(tools.folder / "flat" / jq.file)


def test_podman_resolves_the_same(
    tmp_path: Path, settings: Settings, tools: AptRepository, podman: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = checkout_with(tmp_path, tools)
    by_docker = resolve(checkout, settings, []).files
    monkeypatch.setenv("DOCKER_HOST", podman)
    said: list[str] = []
    assert resolve(checkout, settings, said).files == by_docker
    assert said == [
        f"base digest: left as it is (open): {BASE_HERE} is an image of this machine that came from no registry",
        "resolving 2 requirements for CPython 3.11",
        f"asking apt in a container of {BASE_HERE} in place of {BASE}: what it holds is not locked",
    ]


def test_building_locks_first_where_it_is_asked_to(tmp_path: Path, settings: Settings) -> None:
    checkout = tiny_checkout(tmp_path, "ok", extra=f"requires = {REQUIRES}")
    lock = checkout.images / "tiny.lock"
    lock.write_text("".join(f"{one} --hash=sha256:open\n" for one in REQUIRES))

    def chain(**given: bool) -> Chain:
        made = Chain(("build",), Options(given))
        made.session = Session(settings, Choice(environments=("tiny",)), Screen(), checkout)
        return made

    with pytest.raises(UserError, match="not known yet: pip"):
        build(chain())
    build(chain(locked_only=False))
    assert chain().session.builder.find(read_environment(checkout.images / "tiny.toml"))
