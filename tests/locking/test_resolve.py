"""Locks made anew: uv over a real index, the one file that fits, what changed, and nothing written by halves."""

import contextlib
import functools
import hashlib
import io
import json
import os
import re
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

from tests.artifacts.servers import Handler, Site, served
from tests.bench import least_environment
from tests.commands.test_tasks import checkout, invoke
from tsuishi.artifacts.cache import Cache
from tsuishi.artifacts.network import Network
from tsuishi.artifacts.pip_configuration import Sources
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.commands.development import check_specs
from tsuishi.engines.docker.engine import DockerEngine
from tsuishi.locking.debs import _lines
from tsuishi.locking.resolve import Locker, NewLock

NO_ENGINE = "unix:///nonexistent/docker.sock"


@dataclass
class Index:
    """A package index over HTTP; its pages state hashes unless told not to.

    `day`: the day on which what is added was uploaded; with one, pages are JSON that states it (PEP 691, PEP 700).
    """

    folder: Path
    url: str = ""
    stated: bool = True
    day: str = ""
    days: dict[str, str] = field(default_factory=dict)
    files: dict[str, dict[str, str]] = field(default_factory=dict)

    def wheel(self, name: str, version: str, tag: str = "py3-none-any", requires: Sequence[str] = ()) -> str:
        """Add a wheel; its sha256."""
        made = io.BytesIO()
        escaped = name.replace("-", "_")
        inside = f"{escaped}-{version}.dist-info"
        needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
        with zipfile.ZipFile(made, "w") as archive:
            archive.writestr(f"{inside}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
            archive.writestr(f"{inside}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
            archive.writestr(f"{inside}/RECORD", "")
            archive.writestr(f"{name}.py", f"made_for = '{tag}'\n")
        return self.add(name, f"{escaped}-{version}-{tag}.whl", made.getvalue())

    def sdist(self, name: str, version: str) -> str:
        """Add an sdist that says by itself what it needs: nothing; its sha256."""
        made = io.BytesIO()
        information = f"Metadata-Version: 2.2\nName: {name}\nVersion: {version}\n".encode()
        with tarfile.open(fileobj=made, mode="w:gz") as archive:
            entry = tarfile.TarInfo(f"{name}-{version}/PKG-INFO")
            entry.size = len(information)
            archive.addfile(entry, io.BytesIO(information))
        return self.add(name, f"{name}-{version}.tar.gz", made.getvalue())

    def add(self, name: str, file: str, content: bytes) -> str:
        sha256 = hashlib.sha256(content).hexdigest()
        (self.folder / "files").mkdir(exist_ok=True)
        (self.folder / "files" / file).write_bytes(content)
        of_package = self.files.setdefault(name, {})
        of_package[file] = f"#sha256={sha256}" if self.stated else ""
        self.days[file] = self.day
        page = self.folder / "simple" / name / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        if self.day:
            page.write_text(json.dumps(self.dated(name)))
            return sha256
        links = "".join(f'<a href="/files/{one}{fragment}">{one}</a>\n' for one, fragment in of_package.items())
        page.write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")
        return sha256

    def dated(self, name: str) -> dict[str, object]:
        """The page of a package as JSON, with the time of each upload."""
        files = [
            {
                "filename": file,
                "url": f"{self.url}/files/{file}",
                "hashes": {"sha256": fragment.removeprefix("#sha256=")},
                "upload-time": f"{self.days[file]}T12:00:00.5Z",
                "size": (self.folder / "files" / file).stat().st_size,
            }
            for file, fragment in self.files[name].items()
        ]
        return {"meta": {"api-version": "1.1"}, "name": name, "files": files}

    @property
    def simple(self) -> str:
        return f"{self.url}/simple"


@contextmanager
def serve(folder: Path) -> Iterator[Index]:
    """An index on a port of its own."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def guess_type(self, path: str | os.PathLike[str]) -> str:
            is_json = Path(path).is_file() and Path(path).read_bytes().startswith(b"{")
            return "application/vnd.pypi.simple.v1+json" if is_json else super().guess_type(path)

    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield Index(folder, f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with serve(tmp_path / "index") as served:
        yield served


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Index]:
    with serve(tmp_path / "second") as served:
        yield served


@pytest.fixture(autouse=True)
def _no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", NO_ENGINE)


@dataclass
class Images:
    """A folder of environments with one, `old`, for CPython 3.6."""

    folder: Path
    said: list[str] = field(default_factory=list)

    @property
    def spec(self) -> Path:
        return self.folder / "images" / "old.toml"

    @property
    def lock(self) -> Path:
        return self.spec.with_suffix(".lock")

    def require(self, *requires: str, promise: str = 'tiny = "1.0"', more: str = "", lock: str = "") -> None:
        self.spec.parent.mkdir(exist_ok=True)
        self.spec.write_text(
            f"""\
title = "Old things"
framework = "torch"
accelerators = ["cpu"]
python = "3.6"
requires = {list(requires)}
{more}
[base]
reference = "docker.io/library/python:3.6"
digest = ""  # not known yet: unpinned

[promises]  # as published
{promise}
"""
        )
        if lock:
            self.lock.write_text(lock)

    def resolve(
        self, *indexes: str, find_links: tuple[str, ...] = (), mirrors: dict[str, str] | None = None
    ) -> NewLock:
        cache = self.folder / "cache"
        engine = DockerEngine(Checkout().dockerfile, {}, cache)
        sources = Sources(indexes, find_links)
        locker = Locker(sources, Cache(cache), Network(connect_s=2), mirrors or {}, engine, self.said.append)
        return locker.resolve(self.spec)

    def locked(self, *indexes: str, find_links: tuple[str, ...] = ()) -> list[str]:
        """The lines of the lock that is made, without the comments it begins with."""
        return self.resolve(*indexes, find_links=find_links).files[self.lock].splitlines()[2:]

    def refused(self, *indexes: str, find_links: tuple[str, ...] = ()) -> str:
        """Why there can be no lock; nothing is written where there is none."""
        before = {path: path.read_bytes() for path in self.spec.parent.iterdir()}
        with pytest.raises(UserError) as caught:
            self.resolve(*indexes, find_links=find_links)
        assert {path: path.read_bytes() for path in self.spec.parent.iterdir()} == before
        return str(caught.value)


@pytest.fixture
def images(tmp_path: Path) -> Images:
    return Images(tmp_path)


def line(index: Index, name: str, version: str, sha256: str, file: str) -> str:
    size = (index.folder / "files" / file).stat().st_size
    return f"{name}=={version} --hash=sha256:{sha256}  # {file} {size}"


def test_every_package_gets_the_one_file_that_fits_the_environments_python_and_platform(
    images: Images, index: Index
) -> None:
    index.wheel("tiny", "1.0", "cp36-cp36m-macosx_10_9_x86_64")
    index.wheel("tiny", "1.0", "cp311-cp311-manylinux2014_x86_64")
    index.wheel("tiny", "1.0", "py3-none-any")
    older = index.wheel("tiny", "1.0", "cp36-cp36m-manylinux1_x86_64", ['backport; python_version < "3.7"'])
    index.wheel("tiny", "1.0", "cp36-cp36m-manylinux_2_28_x86_64")
    backport = index.sdist("backport", "0.8")
    images.require("tiny==1.0")
    assert images.locked(index.simple) == [
        line(index, "backport", "0.8", backport, "backport-0.8.tar.gz"),
        line(index, "tiny", "1.0", older, "tiny-1.0-cp36-cp36m-manylinux1_x86_64.whl"),
    ]


@pytest.mark.long
def test_an_environment_for_another_machine_gets_the_files_of_that_machine(images: Images, index: Index) -> None:
    index.wheel("tiny", "1.0", "cp36-cp36m-manylinux1_x86_64")
    other = index.wheel("tiny", "1.0", "cp36-cp36m-manylinux2014_aarch64", ['only; platform_machine == "aarch64"'])
    only = index.wheel("only", "1.0", "cp36-cp36m-manylinux_2_17_aarch64")
    images.require("tiny==1.0")
    images.spec.write_text(images.spec.read_text().replace("accelerators", 'machine = "aarch64"\naccelerators', 1))
    assert images.locked(index.simple) == [
        line(index, "only", "1.0", only, "only-1.0-cp36-cp36m-manylinux_2_17_aarch64.whl"),
        line(index, "tiny", "1.0", other, "tiny-1.0-cp36-cp36m-manylinux2014_aarch64.whl"),
    ]
    assert images.resolve(index.simple).files[images.lock].startswith("# Old things, CPython 3.6, Linux aarch64\n")


def test_a_hash_the_index_does_not_state_is_of_the_file_itself(images: Images, index: Index) -> None:
    index.stated = False
    sha256 = index.wheel("tiny", "1.0")
    images.require("tiny")
    assert images.locked(index.simple) == [line(index, "tiny", "1.0", sha256, "tiny-1.0-py3-none-any.whl")]


def test_the_best_version_of_all_indexes_is_taken(images: Images, index: Index, second: Index) -> None:
    index.wheel("tiny", "1.0")
    newer = second.wheel("tiny", "1.1")
    images.require("tiny", promise='python = "3.6"')
    assert images.locked(index.simple, second.simple) == [
        line(second, "tiny", "1.1", newer, "tiny-1.1-py3-none-any.whl")
    ]


@pytest.mark.long
def test_another_build_of_the_same_version_is_taken_only_by_name(images: Images, index: Index) -> None:
    other = index.wheel("tiny", "1.0+cpu")
    sha256 = index.wheel("tiny", "1.0")
    images.require("tiny==1.0")
    assert images.locked(index.simple) == [line(index, "tiny", "1.0", sha256, "tiny-1.0-py3-none-any.whl")]
    images.require("tiny==1.0+cpu", promise='tiny = "1.0+cpu"')
    assert images.locked(index.simple) == [line(index, "tiny", "1.0+cpu", other, "tiny-1.0+cpu-py3-none-any.whl")]


def test_a_package_with_urls_is_the_file_that_is_there_whatever_an_index_has(
    images: Images, index: Index, second: Index
) -> None:
    index.wheel("tiny", "1.0", "cp36-cp36m-manylinux1_x86_64")
    index.wheel("other", "2.0")
    wanted = second.wheel("tiny", "1.0", "cp36-cp36m-linux_x86_64", ["other"])
    file = "tiny-1.0-cp36-cp36m-linux_x86_64.whl"
    urls = f'urls = {{ tiny = ["http://127.0.0.1:9/{file}", "{second.url}/files/{file}"] }}'
    images.require("tiny==1.0", more=urls, lock="# As it was.\ntiny==1.0 --hash=sha256:open  # of somebody else\n")
    locked = images.resolve(index.simple)
    assert locked.difference == ("+ other 2.0", f"hash of tiny: open -> {wanted[:12]}…")
    assert locked.files[images.lock].splitlines()[2] == line(second, "tiny", "1.0", wanted, file)
    assert f"fetching {file}, to see its hash" in images.said


def test_a_package_whose_urls_are_all_out_of_reach_is_not_taken_from_an_index(images: Images, index: Index) -> None:
    index.wheel("tiny", "1.0", "cp36-cp36m-manylinux1_x86_64")
    url = "http://127.0.0.1:9/tiny-1.0-cp36-cp36m-linux_x86_64.whl"
    images.require("tiny==1.0", more=f'urls = {{ tiny = ["{url}"] }}')
    assert images.refused(index.simple) == f"old: tiny is not to be had: {url}: [Errno 111] Connection refused"


def test_a_copy_in_a_folder_of_wheels_stands_for_a_url_out_of_reach(
    images: Images, index: Index, second: Index
) -> None:
    sha256 = second.wheel("tiny", "1.0", "cp36-cp36m-linux_x86_64")
    file = "tiny-1.0-cp36-cp36m-linux_x86_64.whl"
    images.require("tiny==1.0", more=f'urls = {{ tiny = ["http://127.0.0.1:9/{file}"] }}')
    folder = str(second.folder / "files")
    assert images.locked(index.simple, find_links=(folder,)) == [line(second, "tiny", "1.0", sha256, file)]


def test_a_configured_index_out_of_reach_is_refused_one_of_the_spec_left_out(images: Images, index: Index) -> None:
    closed = "http://127.0.0.1:9/simple"
    index.wheel("tiny", "1.0")
    images.require("tiny==1.0")
    assert images.refused(index.simple, "http://ada:secret@127.0.0.1:9/simple") == (
        f"old: the package index {closed} is out of reach: [Errno 111] Connection refused; a lock made without it "
        "might hold other packages: reach it, or leave it out (tsuishi.indexes)"
    )
    images.require("tiny==1.0", more=f'indexes = ["{closed}"]')
    assert len(images.locked(index.simple)) == 1
    assert f"left out: the package index {closed} is out of reach: [Errno 111] Connection refused" in images.said


@pytest.mark.parametrize("only", [False, True])
def test_folders_are_looked_in_whatever_they_are_called(
    images: Images, index: Index, second: Index, tmp_path: Path, only: bool
) -> None:
    (second if only else index).wheel("tiny", "1.0", requires=["other"])
    second.wheel("other", "2.0")
    folder = (second.folder / "files").rename(tmp_path / "wheels, and more = ä%20")
    (empty := tmp_path / "empty").mkdir()
    images.require("tiny==1.0")
    indexes = () if only else (index.simple,)
    locked = images.locked(*indexes, find_links=(str(empty), str(folder)))
    assert [one.partition(" ")[0] for one in locked] == ["other==2.0", "tiny==1.0"]


def test_credentials_of_indexes_and_folders_are_in_no_list_of_processes(images: Images, index: Index) -> None:
    """Everybody on a machine can read arguments; variables only who runs it."""
    index.wheel("tiny", "1.0")
    (wheel,) = (index.folder / "files").iterdir()
    arguments: list[str] = []

    def note(handler: Handler, content: bytes) -> None:
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.NoSuchProcess):  # it has ended, as what earlier tests started may have
                arguments.extend(child.cmdline())
        handler.answer(200, handler.site.page(), Content_Type="text/html")

    site = Site(files={wheel.name: wheel.read_bytes()}, login="ada:s3cr3t", faults={"simple": note})
    with served(site), served(Site(login="ada:s3cr3t")) as without:
        indexes = [one.index.replace("//", "//ada:s3cr3t@") for one in (without, site)]
        images.require("tiny==1.0")
        images.resolve(*indexes, find_links=(f"{site.url.replace('//', '//ada:s3cr3t@')}/simple/tiny/",))
    assert "compile" in arguments
    assert "s3cr3t" not in " ".join(arguments)


def test_a_package_of_a_mirror_with_an_escaped_character_in_its_credentials_is_locked_by_its_path() -> None:
    """As apt prints it: what came with the sources is as it was, or quoted anew; names of files are quoted."""
    place = "https://ada:p%40ss@mirror.example/ubuntu"
    for printed in (place, "https://ada:p@ss@mirror.example/ubuntu"):
        line = f"'{printed}/pool/x_1%2b2_amd64.deb' x_1%2b2_amd64.deb 10 SHA256:{'a' * 64}"
        assert list(_lines("old", line, {"other": "https://mirror.example/u", "ubuntu": place})) == [
            f"x=1+2 --hash=sha256:{'a' * 64} --from=ubuntu/pool/x_1+2_amd64.deb --bytes=10"
        ]


def test_a_package_from_no_repository_of_the_spec_is_refused() -> None:
    line = f"'http://elsewhere.example/x_1_amd64.deb' x_1_amd64.deb 10 SHA256:{'a' * 64}"
    with pytest.raises(UserError) as caught:
        list(_lines("old", line, {"ubuntu": "https://ada:p%40ss@mirror.example/ubuntu"}))
    assert str(caught.value) == (
        "old: apt takes a package from http://elsewhere.example/x_1_amd64.deb, which is in no repository of the spec "
        "(https://mirror.example/ubuntu)"
    )


def test_requirements_that_do_not_go_together_are_told_in_uvs_words(images: Images, index: Index) -> None:
    index.wheel("tiny", "1.0", requires=["other<2"])
    index.wheel("other", "2.0")
    images.require("tiny==1.0", "other==2.0")
    assert images.refused(index.simple) == (
        "old: uv finds no set of packages: Because all versions of tiny depend on other<2 and you require tiny==1.0, "
        "we can conclude that you require other<2. And because you require other==2.0, we can conclude that your "
        "requirements are unsatisfiable."
    )


def test_a_release_without_a_file_for_that_python_is_refused(images: Images, index: Index) -> None:
    index.wheel("tiny", "1.0", "cp311-cp311-manylinux2014_x86_64")
    images.require("tiny==1.0")
    said = images.refused(index.simple)
    assert said.startswith("old: uv finds no set of packages: Because tiny==1.0 has no wheels with a matching Python")


def test_a_promise_that_the_new_lock_would_break_is_told_and_nothing_written(images: Images, index: Index) -> None:
    index.wheel("tiny", "1.1")
    images.require("tiny")
    assert images.refused(index.simple) == f"{images.spec}: promises tiny 1.0, but old.lock pins 1.1"


def test_nothing_to_resolve_from_is_said(images: Images, index: Index) -> None:
    images.require()
    assert images.refused(index.simple) == ("old: 'requires' is empty: say what its lock is to be resolved from")


@pytest.mark.long
def test_what_changed_is_told_and_a_lock_made_again_is_the_same(images: Images, index: Index) -> None:
    for name, version in (("tiny", "1.0"), ("newer", "1.2"), ("added", "3.0")):
        index.wheel(name, version)
    a, b = (f"--hash=sha256:{letter * 64}" for letter in "ab")
    lock = ["# Mine.", "", "# Not of the header.", f"gone==1.0 {a}", f"newer==1.1 {a}", f"tiny==1.0 {a} {b}", ""]
    images.require("tiny==1.0", "newer", "added", lock="\n".join(lock))
    first = images.resolve(index.simple)
    sha256 = index.files["tiny"]["tiny-1.0-py3-none-any.whl"].removeprefix("#sha256=")
    assert first.difference == (
        "+ added 3.0",
        "- gone 1.0",
        "newer 1.1 -> 1.2",
        f"hash of tiny: any of 2 -> {sha256[:12]}…",
    )
    first.write()
    assert images.lock.read_text().startswith("# Mine.\nadded==3.0 ")
    again = images.resolve(index.simple)
    assert again.difference == ()
    assert again.files == {}
    assert sorted(path.name for path in images.spec.parent.iterdir()) == ["old.lock", "old.toml"]


@pytest.mark.long
def test_a_new_lock_begins_with_what_it_is_and_that_of_uv_loses_its_own_words(images: Images, index: Index) -> None:
    index.wheel("tiny", "1.0")
    header = "# Old things, CPython 3.6, Linux x86-64\n# One artefact a line, in pip's requirements format: name, "
    images.require("tiny")
    assert images.resolve(index.simple).files[images.lock].startswith(header)
    images.lock.write_text(
        f"# This file was autogenerated by uv\n#   uv pip compile\ntiny==1.0 --hash=sha256:{'a' * 64}\n"
    )
    assert images.resolve(index.simple).files[images.lock].startswith(header)


def test_without_an_engine_the_digest_of_the_base_stays_and_that_is_said(images: Images, index: Index) -> None:
    index.wheel("tiny", "1.0")
    images.require("tiny")
    assert list(images.resolve(index.simple).files) == [images.lock]
    (said,) = [one for one in images.said if one.startswith("base digest")]
    assert said.startswith("base digest: left as it is (open): Docker does not answer: ")


def test_debian_packages_are_not_locked_without_an_engine(images: Images, index: Index) -> None:
    index.wheel("tiny", "1.0")
    images.require("tiny")
    apt = '\n[apt]\npackages = ["jq"]\n[apt.repositories.debian]\nuris = ["http://127.0.0.1:9/"]\n'
    images.spec.write_text(images.spec.read_text() + apt)
    assert images.refused(index.simple).startswith(
        "old: its Debian packages are resolved in a container of the base, with a network: Docker does not answer: "
    )


@pytest.mark.long
def test_the_task_shows_the_difference_writes_it_and_has_nothing_to_do_again(tmp_path: Path, index: Index) -> None:
    sha256 = index.wheel("tiny", "1.0")
    root = checkout(tmp_path / "checkout")
    images = Images(root)
    images.require("tiny==1.0", lock="tiny==1.0 --hash=sha256:open\n")
    environ = {"DOCKER_HOST": NO_ENGINE, "INVOKE_TSUISHI_INDEXES": index.simple}
    planned = invoke(root, "lock", "--env", "old", "--plan", **environ)
    assert planned.stdout.splitlines()[-2:] == [
        f"old: hash of tiny: open -> {sha256[:12]}…",
        "old: would be written: old.lock",
    ]
    assert images.lock.read_text() == "tiny==1.0 --hash=sha256:open\n"
    assert invoke(root, "lock", "--env", "old", **environ).stdout.endswith("\nold: written: old.lock\n")
    assert invoke(root, "lock", "--env", "old", **environ).stdout.endswith("\nold: nothing changed\n")


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lock"], "error: say which locks to make anew, as in --env host; known: host"),
        (["lock", "--env", "hots"], "error: unknown environment 'hots'; did you mean 'host'? known: host"),
        (["lock", "--env", "host"], "error: host has no lock: its interpreter is recorded, not pinned"),
        (
            ["build", "--no-locked-only", "--env", "host"],
            "error: host has no lock: its interpreter is recorded, not pinned",
        ),
    ],
)
def test_what_has_no_lock_is_told(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = invoke(checkout(tmp_path), *arguments)
    assert done.stderr.strip() == said
    assert done.returncode == 1


def test_a_framework_that_no_workload_has_is_refused_by_lint_and_lock(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    spec = least_environment("3.11", "docker.io/library/python:3.11", 'promises = { python = "3.11" }')
    path = root / "images" / "tiny.toml"
    path.write_text(spec.replace('"any"', '"torhc"'))
    known = "any, chainer, jax, mxnet, tensorflow, torch"
    why = f"key 'framework': unknown framework 'torhc'; did you mean 'torch'? known: {known}; 'any' is for scripts"
    with pytest.raises(UserError, match=f"^{re.escape(f'{path}: {why}')}$"):
        check_specs(Checkout(root))
    done = invoke(root, "lock", "--env", "tiny")
    assert (done.returncode, done.stderr) == (1, f"error: {path}: {why}\n")
