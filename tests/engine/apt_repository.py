"""An apt repository of real Debian packages, signed by a key made here."""

import functools
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.conftest import missing

# jq needs libjq1 needs libonig5; no base has any of them.
PACKAGES = ("jq", "libjq1", "libonig5")
_RELEASE = ("-oAPT::FTPArchive::Release::Suite=stable", "-oAPT::FTPArchive::Release::Codename=stable")


@dataclass
class AptRepository:
    """Served at `uri`; what is changed below `folder` is changed for whoever asks next."""

    folder: Path
    keys: Path
    uri: str = ""
    # The fingerprint of what it is signed by.
    key: str = ""

    @property
    def index(self) -> Path:
        return self.folder / "dists" / "stable" / "main" / "binary-amd64" / "Packages"

    @property
    def release(self) -> Path:
        return self.folder / "dists" / "stable" / "InRelease"

    def version(self, package: str) -> str:
        """Of a package in it."""
        (deb,) = self.folder.glob(f"pool/{package}_*.deb")
        return _run("dpkg-deb", "--field", str(deb), "Version").strip()

    def make_key(self, name: str) -> str:
        """A new key, to be had at <uri>/<name>.asc; its fingerprint."""
        home = self._home(name)
        home.mkdir(mode=0o700)
        _run("gpg", "--batch", "--passphrase", "", "--quick-generate-key", name, "ed25519", "sign", "never", home=home)
        listed = _run("gpg", "--batch", "--with-colons", "--list-keys", home=home)
        (self.folder / f"{name}.asc").write_text(_run("gpg", "--batch", "--armor", "--export", home=home))
        return next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr"))

    def publish(self, key: str) -> None:
        """Write its index anew, signed by the key of that name: as distributions have it, and as a flat repository."""
        self.index.parent.mkdir(parents=True, exist_ok=True)
        self.index.write_text(_run("apt-ftparchive", "packages", "pool", folder=self.folder))
        self._sign(self.release.parent, key)
        flat = self.folder / "flat"
        flat.mkdir(exist_ok=True)
        for deb in self.folder.glob("pool/*.deb"):
            shutil.copy(deb, flat)
        (flat / "Packages").write_text(_run("apt-ftparchive", "packages", ".", folder=flat))
        self._sign(flat, key)

    def _sign(self, folder: Path, key: str) -> None:
        signed, release = folder / "InRelease", folder / "Release"
        for file in (signed, release):
            file.unlink(missing_ok=True)
        release.write_text(_run("apt-ftparchive", *_RELEASE, "release", str(folder)))
        _run("gpg", "--batch", "--clearsign", "--output", str(signed), str(release), home=self._home(key))

    def _home(self, key: str) -> Path:
        return self.keys / key


@contextmanager
def apt_repository(folder: Path, packages: Path) -> Iterator[AptRepository]:
    """A repository of the packages in a folder, signed by its key `right`."""
    # The path of an agent's socket may have 108 bytes, and folders of tests lie deep.
    with tempfile.TemporaryDirectory(prefix="gpg-") as keys:
        yield from _served(AptRepository(folder / "repository", Path(keys)), packages)


def _served(made: AptRepository, packages: Path) -> Iterator[AptRepository]:
    shutil.copytree(packages, made.folder / "pool")
    made.key = made.make_key("right")
    made.publish("right")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=made.folder))
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    made.uri = f"http://127.0.0.1:{server.server_port}"
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        for home in made.keys.iterdir():
            _run("gpgconf", "--kill", "gpg-agent", home=home)


def download_packages(folder: Path) -> Path:
    """Debian's own packages, as the machine's apt gets them."""
    for program in ("apt-get", "apt-ftparchive", "gpg"):
        if not shutil.which(program):
            missing(f"no {program} (Debian's packages apt, apt-utils, gnupg)")
    folder.mkdir()
    try:
        _run("apt-get", "download", *PACKAGES, folder=folder)
    except subprocess.CalledProcessError as error:
        missing(f"no Debian packages to try with: {error.stderr.strip()}")
    return folder


def _run(*command: str, folder: Path | None = None, home: Path | None = None) -> str:
    environ = {**os.environ, "LC_ALL": "C"} | ({"GNUPGHOME": str(home)} if home else {})
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=True)
    return done.stdout
