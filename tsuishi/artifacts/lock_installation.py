"""`python -m tsuishi.artifacts.lock_installation LOCK`: installs a lock into the virtual environment that runs it.

Of pip's configuration, only options that say how to reach packages count. The rest would install packages elsewhere
(user, target, prefix), or other packages (constraint, no-binary): pip's variables and files are for the user's own
packages.
"""

import os
import subprocess
import sys
from pathlib import Path

from tsuishi.artifacts.pip_configuration import pip_options

# Options of pip that say where packages come from, and how they are reached and kept.
_PASSED = frozenset(
    {
        *("index-url", "extra-index-url", "find-links", "no-index", "trusted-host", "keyring-provider", "no-input"),
        *("proxy", "cert", "client-cert", "timeout", "default-timeout", "retries", "cache-dir", "no-cache-dir"),
    }
)


def install(lock: Path) -> bool:
    """Install the files of a lock, by their hashes; pip prints what went wrong. Returns whether it went well."""
    options = pip_options()
    if ignored := sorted(options.keys() - _PASSED - {"config-file"}):
        print(f"options of pip's configuration that do not count here: {', '.join(ignored)}", file=sys.stderr)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environ |= {f"PIP_{name.upper().replace('-', '_')}": options[name] for name in options.keys() & _PASSED}
    command = [sys.executable, "-I", "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--require-hashes"]
    command += ["--no-deps", "-r", str(lock)]
    return subprocess.run(command, env=environ | {"PIP_CONFIG_FILE": os.devnull}, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(not install(Path(sys.argv[1])))
