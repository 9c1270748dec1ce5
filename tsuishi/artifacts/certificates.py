"""The certificates to check servers with: those of tsuishi.ca_bundle, of pip, of a variable, or of the system."""

import os
import ssl
from pathlib import Path

from tsuishi.artifacts.network import Network
from tsuishi.artifacts.pip_configuration import pip_options
from tsuishi.base.errors import UserError

# Variables that name certificates in place of the system's; the first that is set counts.
_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")


def verification(network: Network) -> ssl.SSLContext | bool:
    """The `verify` argument of an HTTP client: the trusted certificates, or True for the system's.

    Raises UserError where the configured file holds no certificates.
    """
    settings = _settings(network)
    if not settings:
        return True
    name, path = settings[0]
    try:
        if folders := _folders(path):
            return ssl.create_default_context(capath=os.pathsep.join(map(str, folders)))
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        problem = "holds no certificates in PEM" if isinstance(error, ssl.SSLError) else error.strerror
        raise UserError(f"{name}: {path}: {problem}; give a file of certificates, as in docs/sites.md") from error


def trusted_certificates(network: Network) -> bytes:
    """The trusted certificates as PEM, for programs that reach servers on tsuishi's behalf."""
    import certifi

    system = ssl.get_default_verify_paths().cafile or certifi.where()
    path = next((path for _, path in _settings(network)), system)
    if not (folders := _folders(path)):
        return Path(path).read_bytes()
    return b"\n".join(file.read_bytes() for folder in folders for file in sorted(folder.iterdir()) if file.is_file())


def _settings(network: Network) -> list[tuple[str, str | Path]]:
    """The settings that name certificates, as (name of the setting, path); the first setting counts."""
    settings: list[tuple[str, str | Path | None]] = [("tsuishi.ca_bundle", network.ca_bundle)]
    settings += [("pip's cert", pip_options().get("cert")), *((name, os.environ.get(name)) for name in _BUNDLES)]
    return [(name, path) for name, path in settings if path]


def _folders(path: str | Path) -> list[Path]:
    """The folders of certificates that a setting names, separated by colons as in SSL_CERT_DIR; none for a file."""
    return [folder for part in str(path).split(os.pathsep) if part and (folder := Path(part)).is_dir()]
