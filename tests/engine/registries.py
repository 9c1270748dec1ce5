"""A registry of images on this machine."""

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker

from tests.conftest import missing


@contextmanager
def registry(folder: Path, more: str = "", http: str = "") -> Iterator[str]:
    """A registry of images, empty; its address. more, http: what its configuration has beside, as YAML."""
    program = shutil.which("docker-registry")
    if not program:
        missing("no docker-registry (Debian's package of that name)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    configuration = folder / "registry.yml"
    configuration.write_text(
        f"""
        version: 0.1
        log: {{ level: error }}
        storage: {{ filesystem: {{ rootdirectory: "{folder / "registry"}" }} }}
        http: {{ addr: "{address}"{http} }}
        {more}
        """
    )
    with (folder / "registry.log").open("wb") as log:
        process = subprocess.Popen([program, "serve", str(configuration)], stdout=log, stderr=log)
    try:
        for _ in range(100):
            host, port = address.split(":")
            with socket.socket() as tried:
                if tried.connect_ex((host, int(port))) == 0:
                    break
            assert process.poll() is None, (folder / "registry.log").read_text()
            time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait()
        client = docker.from_env()
        for image in client.images.list():
            for name in (*image.tags, *image.attrs["RepoDigests"]):
                if name.startswith(f"{address}/"):
                    with contextlib.suppress(docker.errors.ImageNotFound):  # gone with its other name
                        client.images.remove(name)


def push(reference: str, used: str) -> str:
    """Push an image of this machine under another name, and forget that name; the digest the registry gave."""
    client = docker.from_env()
    repository, _, tag = used.rpartition(":")
    client.images.get(reference).tag(repository, tag)
    client.images.push(repository, tag)
    (noted,) = [one for one in client.images.get(used).attrs["RepoDigests"] if one.startswith(repository)]
    client.images.remove(used)
    return noted.partition("@")[2]
