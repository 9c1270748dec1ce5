"""The command `tsuishi` of an installed package: Invoke, on the tasks of a tree (base/tree.py).

The tree is that of the current folder or of one above it, as `tsuishi init` makes it; else the user's own, in
~/.local/share/tsuishi, which is made and brought up to date by itself.
"""

import os
import signal
import sys
from pathlib import Path

from tsuishi.base import home
from tsuishi.base.checkout import PACKAGED, Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.tree import MANIFEST, write_tree


def main() -> None:
    """Run the tasks that the command line names. Until a task runs, Ctrl-C ends Python as it ends any program."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from invoke.main import program

    os.environ.setdefault("PYTHONUTF8", "1")
    try:
        root = _tree()
    except (UserError, OSError) as error:
        sys.exit(f"error: {error}")
    program.run(["tsuishi", "--search-root", str(root), *sys.argv[1:]])


def _tree() -> Path:
    here = Path.cwd()
    if found := next((folder for folder in (here, *here.parents) if (folder / MANIFEST).is_file()), None):
        return found
    root = home.data()
    root.mkdir(parents=True, exist_ok=True)
    for name in write_tree(root, Checkout(PACKAGED)):
        print(f"{root / name}: changed by hand, and left as it is", file=sys.stderr)
    return root
