"""Commands in messages, as the reader can type them: `./invoke build` in a clone, `tsuishi build` of a package.

Messages and records say `invoke …`. The terminal and the pages of a report say the program that the user typed.
"""

import re
import shlex
import shutil
import sys
from functools import cache
from pathlib import Path

from tsuishi.base.option_table import OPTIONS

_PROGRAM = "invoke"
_TASKS = sorted({task for row in OPTIONS for task in row.of})
# In backticks any word may follow it; elsewhere a task, as `invoke` is an English word, too.
_COMMAND = re.compile(rf"(?<=`){_PROGRAM} (?=\S)|(?<![\w./`-]){_PROGRAM} (?=(?:{'|'.join(_TASKS)})\b)")


def as_typed(text: str) -> str:
    """The text, whose commands begin with the program that the user typed.

    >>> as_typed("`invoke fetch` goes on")
    '`invoke fetch` goes on'
    """
    return _COMMAND.sub(lambda _: f"{program()} ", text) if f"{_PROGRAM} " in text else text


def program() -> str:
    """What starts tsuishi here: a name that is on the PATH, or the path that the user typed."""
    return program_of(sys.argv[0])


@cache
def program_of(typed: str) -> str:
    """What a program is called in a shell: the name alone where the PATH leads to it, else its path, quoted."""
    name = Path(typed).name
    if name not in (_PROGRAM, "inv", "tsuishi"):
        return _PROGRAM
    return name if "/" not in typed or shutil.which(name) == typed else shlex.quote(typed)
