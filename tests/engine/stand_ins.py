"""Stand-ins of every server that a lock asks, and a checkout whose environments are on them."""

import http.server
import io
import json
import re
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker

from benchmarks.gpu.images import done
from benchmarks.gpu.journal import Journal
from benchmarks.gpu.kit_of_images import PATCH, ImagesKit
from tests.artifacts.servers import Site
from tests.bench import make_checkout
from tests.engine.apt_repository import AptRepository
from tests.engine.registries import push
from tsuishi.base.checkout import Checkout
from tsuishi.base.files import sha256_of
from tsuishi.base.settings import Settings

BASE_HERE = "tsuishi-test/python:3.11"


@dataclass
class Bench:
    """The servers, and a checkout whose environments are on them. `settings`: of a machine that has nothing yet."""

    root: Path
    site: Site
    address: str
    settings: Settings
    wheels: dict[str, Path]
    tools: AptRepository | None = None
    checkout: Checkout = field(init=False)

    def __post_init__(self) -> None:
        self.checkout = make_checkout(self.root / "source", "ok", "unsupported")
        pip, extensions = (self.wheels[name] for name in ("pip", "typing-extensions"))
        apt = ""
        if self.tools:
            apt = f"""
                [apt]
                packages = ["jq={self.tools.version("jq")}"]
                [apt.repositories.tools]
                uris = ["{self.tools.uri}"]
                suite = "stable"
                components = ["main"]
                key = "{self.tools.key}"
                key_urls = ["{self.tools.uri}/right.asc"]
                """
        requires = [f"{name}=={version(file)}" for name, file in self.wheels.items()]
        self.spec(
            "old",
            f"""
            promises = {{ python = "3.11", typing-extensions = "{version(extensions)}" }}
            requires = {requires}
            [urls]
            typing-extensions = ["{self.site.file(extensions.name)}"]
            {apt}
            """,
            "python:3.11",
        )
        lock = f"pip=={version(pip)} --hash=sha256:{sha256_of(pip)}\ntyping-extensions=={version(extensions)} "
        (self.checkout.images / "old.lock").write_text(f"# Old\n{lock}--hash=sha256:open\n")

    def spec(self, name: str, more: str, image: str) -> None:
        (self.checkout.images / f"{name}.toml").write_text(
            f"""
            title = "stand-in"
            framework = "any"
            accelerators = ["cpu"]
            python = "3.11"
            {more}
            [base]
            reference = "{self.address}/{image}"
            digest = ""  # not known yet: unpinned
            """
        )

    def whole(self, image: str) -> None:
        """Add the environment that is all in its base."""
        self.spec("whole", 'packages = "of the base"\npromises = { python = "3.11" }', image)

    def run(self, *names: str, others: tuple[str, ...] = (), **changed: Any) -> "Lines":
        """The kit's lines for these environments; the checkout is as it was, whatever they are.

        others: environments of which only the base is locked.
        """
        before = contents(self.checkout.images)
        folder = self.root / "kit"
        given = {**self.settings.model_dump(), "results": folder / "work" / "results", **changed}
        exports = self.root / "exports"
        kit = ImagesKit(Journal(folder), Settings(**given), "cpu", names, others, self.checkout, exports)
        done(kit)
        kit.pack()
        kit.journal.close()
        assert contents(self.checkout.images) == before
        return Lines(folder)


class Lines:
    """What the kit left in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.all = [json.loads(text) for text in (folder / "results.jsonl").read_text().splitlines()]

    def outcomes(self, name: str) -> list[tuple[int, str]]:
        return [(each["step"], each["outcome"]) for each in self.all if re.search(rf"\b{name}\b", each["what"])]

    def reason(self) -> str:
        """The words of the only line that is FAIL, after which nothing is done and no lock is to be changed."""
        (failed,) = [each for each in self.all if each["outcome"] == "FAIL"]
        after = self.all[self.all.index(failed) + 1 :]
        assert {each["outcome"] for each in after} == {"not here"}
        assert after[-1] == {**after[-1], "what": PATCH, "words": "no lock was filled"}
        assert not (self.folder / PATCH).exists()
        return f"{failed['what']}: {failed['words']}"


@contextmanager
def forbidding() -> Iterator[str]:
    """A server that answers 403 to everything; its URL."""

    class Forbidding(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.refuse()

        def do_HEAD(self) -> None:
            self.refuse()

        def refuse(self) -> None:
            body = b'{"errors": [{"code": "DENIED", "message": "requested access is denied"}]}'
            self.send_response(403)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forbidding)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def with_one_more_file(wheel: bytes) -> bytes:
    """The same wheel but for a file more in it."""
    made = io.BytesIO(wheel)
    with zipfile.ZipFile(made, "a") as archive:
        archive.writestr("more.py", "")
    return made.getvalue()


def version(file: Path) -> str:
    return file.name.split("-")[1]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def small_layer(address: str, name: str) -> str:
    """Push an image of the base and a small layer that no other image has, and forget it; its name."""
    client = docker.from_env()
    container = client.containers.create(BASE_HERE, "true")
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        entry = tarfile.TarInfo("small")
        entry.size = 100_000
        archive.addfile(entry, io.BytesIO((name * entry.size).encode()[: entry.size]))
    container.put_archive("/", content.getvalue())
    image = container.commit("tsuishi-test/small", name)
    container.remove()
    push(f"tsuishi-test/small:{name}", f"{address}/{name}:1")
    client.images.remove(str(image.id), force=True)
    return f"{name}:1"


def blobs(folder: Path, name: str) -> list[Path]:
    """The layers of an image as files of the registry, from the base to the last."""
    repository = folder / "registry" / "docker" / "registry" / "v2"
    (link,) = (repository / "repositories" / name / "_manifests" / "tags").glob("*/current/link")
    manifest = json.loads(blob(repository, link.read_text()).read_text())
    return [blob(repository, layer["digest"]) for layer in manifest["layers"]]


def blob(repository: Path, digest: str) -> Path:
    sha256 = digest.partition(":")[2]
    return repository / "blobs" / "sha256" / sha256[:2] / sha256 / "data"
