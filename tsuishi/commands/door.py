"""The command `tsuishi` of an installed package: Invoke, on the tasks of a tree (base/tree.py).

TSUISHI_ROOT names the tree. Else it is in the current folder or in a folder above it, as `tsuishi init` makes it, where
nobody else could have written it; else it is the user's own, in ~/.local/share/tsuishi, which is made and brought up to
date by itself.
"""

import os
import shlex
import signal
import sys
from pathlib import Path

from tsuishi.base import home
from tsuishi.base.checkout import PACKAGED, ROOT, Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.tree import MANIFEST, TASKS, why_not_trusted, write_tree
from tsuishi.commands.call import run


def main() -> None:
    """Run the tasks that the command line names. Until a task runs, Ctrl-C ends Python as it ends any program."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.setdefault("PYTHONUTF8", "1")
    try:
        root = _tree()
    except (UserError, OSError) as error:
        sys.exit(f"error: {error}")
    run([sys.argv[0], "--search-root", str(root), *sys.argv[1:]])


def _tree() -> Path:
    if named := os.environ.get(ROOT):
        if not (Path(named) / TASKS).is_file():
            raise UserError(f"{ROOT}: {named} has no {TASKS}: name a folder that `tsuishi init` made")
        return Path(named)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / MANIFEST).is_file() and (folder / TASKS).is_file():
            if not (why := why_not_trusted(folder)):
                return folder
            print(f"{folder}: not used: {why}; {ROOT}={shlex.quote(str(folder))} uses it all the same", file=sys.stderr)
    root = home.data()
    root.mkdir(parents=True, exist_ok=True)
    for name in write_tree(root, Checkout(PACKAGED)):
        print(f"{root / name}: changed by hand, and left as it is", file=sys.stderr)
    return root
