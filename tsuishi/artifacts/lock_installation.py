"""`python -m tsuishi.artifacts.lock_installation LOCK`: installs a lock into the virtual environment that runs it.

By uv, which pip fetches first, as the lock names it: it takes a quarter of the time and a sixth of the CPU's. By pip
where the lock names no uv, and where uv cannot be had or cannot reach what pip reaches.

Of pip's configuration, only options that say how to reach packages count. The rest would install packages elsewhere
(user, target, prefix), or other packages (constraint, no-binary): pip's variables and files are for the user's own
packages.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tsuishi.artifacts.pip_configuration import is_yes, pip_options, pip_proxy

# Options of pip that say where packages come from, and how they are reached and kept.
_PASSED = frozenset(
    {
        *("index-url", "extra-index-url", "find-links", "no-index", "trusted-host", "keyring-provider", "no-input"),
        *("proxy", "cert", "client-cert", "timeout", "default-timeout", "retries", "cache-dir", "no-cache-dir"),
    }
)
# Variables of uv for options of pip; both separate several values by blanks. Certificates are those of the system, or
# those that pip is given.
_OF_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
    "retries": "UV_HTTP_RETRIES",
}
_REQUIREMENT_OF_UV = re.compile(r"^uv==(?:.*\\\n)*.*\n", re.MULTILINE)


def install(lock: Path) -> bool:
    """Install the files of a lock, by their hashes; pip prints what went wrong. Returns whether it went well."""
    options = {name: value for name, value in pip_options().items() if name in _PASSED}
    if not (uv := _REQUIREMENT_OF_UV.search(lock.read_text(encoding="utf-8"))):
        return _by_pip(lock, options)
    if _by_uv(lock, options, uv[0]):
        return True
    print("uv could not install it: pip does, which takes longer", file=sys.stderr)
    return _by_pip(lock, options, "--force-reinstall")  # uv may have left a part of a package


def _by_pip(lock: Path, options: Mapping[str, str], *further: str, is_quiet: bool = False) -> bool:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environ |= {f"PIP_{name.upper().replace('-', '_')}": value for name, value in options.items()}
    command = [sys.executable, "-I", "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--require-hashes"]
    command += ["--no-deps", *further, "-r", str(lock)]
    environ |= {"PIP_CONFIG_FILE": os.devnull}
    return subprocess.run(command, env=environ, capture_output=is_quiet, check=False).returncode == 0


def _by_uv(lock: Path, options: Mapping[str, str], requirement: str) -> bool:
    """Let pip install uv, and uv the rest: with a cache of its own beside the packages, which are links to it.

    requirement: the lines of the lock that name uv.
    """
    folder = Path(sys.prefix) / f"uv-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    try:
        own = folder / "uv.lock"
        own.write_text(requirement, encoding="utf-8")
        if not _by_pip(own, options, is_quiet=True):
            return False
        command = [sys.executable, "-I", "-m", "uv", "pip", "install", "--quiet", "--no-config", "--no-deps"]
        command += ["--require-hashes", "--only-binary=:all:", "--index-strategy=unsafe-best-match"]
        command += [f"--cache-dir={folder}/cache", f"--python={sys.executable}", "-r", str(lock)]
        if is_yes(options.get("no-index", "")):  # uv has no variable for it
            command += ["--no-index"]
        if "PYTHONDONTWRITEBYTECODE" in os.environ:  # else the first import writes the bytecode
            command += ["--compile-bytecode"]
        return subprocess.run(command, env=_environ(options), capture_output=True, check=False).returncode == 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _environ(options: Mapping[str, str]) -> dict[str, str]:
    """The variables of uv that say what these options of pip say; none of the user's own."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "SSL_"))}
    environ |= {"UV_SYSTEM_CERTS": "1"}
    environ |= {_OF_UV[name]: " ".join(value.split()) for name, value in options.items() if name in _OF_UV}
    if places := options.get("find-links"):
        environ["UV_FIND_LINKS"] = ",".join(places.split())
    if options.get("keyring-provider", "auto") == "subprocess":
        environ["UV_KEYRING_PROVIDER"] = "subprocess"
    if proxy := pip_proxy():
        environ |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), proxy)
    return environ


if __name__ == "__main__":
    sys.exit(not install(Path(sys.argv[1])))
