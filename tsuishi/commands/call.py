"""A call of tsuishi's own commands, `./invoke` and `tsuishi`: Invoke, but for the version and the first help."""

import sys
from collections.abc import Sequence

from tsuishi import __version__


def run(words: Sequence[str]) -> None:
    """Run Invoke on a command line: what was typed, where the tasks are (two words), and the user's words.

    `--help` alone is answered as no word is: by the commands to begin with.
    """
    if words[3:4] in (["--version"], ["-V"]):
        print(f"tsuishi {__version__}")
        return
    from invoke.main import program

    sys.argv = [*words[:3]] if words[3:] in (["--help"], ["-h"]) else [*words]
    program.run()
