"""Notebooks as scripts: the code cells of a notebook in their order, as they stand."""

import hashlib
from pathlib import Path

from tsuishi.base.errors import UserError

SUFFIX = ".ipynb"
# What only a notebook can do begins a line: magics of IPython, commands of a shell, help. Where charts are shown is of
# no matter to a script.
_MAGIC = ("%", "!", "?")
_HARMLESS = "%matplotlib"


def script_of(path: Path) -> str:
    """The script of a notebook. Lines that say where charts are shown become comments.

    Raises UserError where the file is no notebook of Python, and for a line that only a notebook can run.
    """
    import nbformat  # takes a third of a second

    try:
        content = path.read_bytes()
        notebook = nbformat.reads(content.decode("utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    except Exception as error:  # whatever a file that is no notebook makes the library raise
        raise UserError(f"{path}: no notebook: {' '.join(str(error).split())[:200]}") from error
    language = notebook.metadata.get("kernelspec", {}).get("language", "python")
    if language != "python":
        raise UserError(f"{path}: a notebook in {language}: only Python is run")
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    header = f"# The code cells of {path.name}, SHA-256 {hashlib.sha256(content).hexdigest()}, in their order.\n"
    return "\n\n".join([header, *(_code(path, number, cell) for number, cell in enumerate(cells, start=1))]) + "\n"


def _code(path: Path, number: int, cell: str) -> str:
    """The code of a cell. Raises UserError for a line that is no Python."""
    lines = []
    for line in cell.splitlines():
        if line.lstrip().startswith(_HARMLESS):
            lines.append(f"# {line}")
        elif line.lstrip().startswith(_MAGIC):
            raise UserError(
                f"{path}: code cell {number}: '{line.strip()[:80]}' is for notebooks only: remove it, or write Python"
            )
        else:
            lines.append(line)
    return "\n".join(lines)
