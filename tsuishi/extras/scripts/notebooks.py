"""Notebooks as scripts: the code cells of a notebook in their order, unchanged."""

import hashlib
import io
import re
import tokenize
from pathlib import Path

from tsuishi.base.errors import UserError

SUFFIX = ".ipynb"
# The beginnings of statements that only a notebook can run: magics of IPython, commands of a shell, help.
_HELP = r"(?:\?+[\w.%*]+|[\w.%*]+\?+)\s*$"
_MAGIC = re.compile(rf"\s*+(?:[%!]|{_HELP}|[\w., ]+=\s*+[%!])")
# A script does not need these: the place of charts, the reloading of modules, the time of a cell.
_HARMLESS = re.compile(
    rf"\s*(?:%(?:matplotlib|config|autoreload|load_ext|reload_ext|tensorflow_version|%time|%capture)\b|{_HELP})"
)


def script_of(path: Path) -> str:
    """The script of a notebook. Lines about the display of a notebook become `pass` and a comment.

    Raises UserError where the file is no notebook of Python, and for a line that only a notebook can run.
    """
    import nbformat  # takes a third of a second

    try:
        content = path.read_bytes()
        notebook = nbformat.reads(content.decode("utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    except Exception as error:  # any error of the library for a file that is not a notebook
        raise UserError(f"{path}: no notebook: {' '.join(str(error).split())[:200]}") from error
    language = notebook.metadata.get("kernelspec", {}).get("language", "python")
    if language != "python":
        raise UserError(f"{path}: a notebook in {language}: only Python is run")
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    header = f"# The code cells of {path.name}, SHA-256 {hashlib.sha256(content).hexdigest()}, in their order.\n"
    return "\n\n".join([header, *(_code(path, number, cell) for number, cell in enumerate(cells, start=1))]) + "\n"


def _code(path: Path, number: int, cell: str) -> str:
    """The code of a cell. Raises UserError for a line that is no Python."""
    lines: list[str] = []
    for line in cell.split("\n"):
        if not _MAGIC.match(line) or _is_inside(lines):
            lines.append(line)
        elif _HARMLESS.match(line):
            indent = line[: len(line) - len(line.lstrip())]
            lines.append(f"{indent}pass  # {line.strip()}")
        else:
            raise UserError(
                f"{path}: code cell {number}: '{line.strip()[:80]}' is for notebooks only: remove it, or write Python"
            )
    return "\n".join(lines)


def _is_inside(lines: list[str]) -> bool:
    """Whether the next line goes on with a statement or a text of these lines."""
    try:
        for _ in tokenize.generate_tokens(io.StringIO("\n".join([*lines, ""])).readline):
            """Only whether there is an end matters."""
    except tokenize.TokenError:  # a bracket, a text or a line that goes on has none
        return True
    except SyntaxError:  # no Python: the environment says so
        return False
    return False
