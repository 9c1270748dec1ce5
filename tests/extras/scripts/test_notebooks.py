"""Cells of notebooks, in the shapes that public notebooks have, as Python."""

import time
from pathlib import Path

import nbformat
import pytest

from tsuishi.base.errors import UserError
from tsuishi.extras.scripts.notebooks import script_of

# What black makes of a long `"…" % (…)`; magics in texts, in brackets and behind a backslash are none.
PYTHON = (
    'print(\n    "epoch %d, %.1f s"\n    % (1, 2.0)\n)\n',
    'HELP = """\n%matplotlib inline in a notebook\n! and ? are for shells\n  ?what\n"""\nprint(len(HELP))\n',
    "left = 7 \\\n% 4\nprint(left)\n",
    "rest = {\n    'a': 7\n    % 4,\n}\nprint(rest)\n",
    "text = 'why?'\nprint(text)  # what?\n",
    "same = 1 != 2 if 5 % 2 else None\nprint(same)\n",
)


def script(folder: Path, cell: str) -> str:
    """The script of a notebook with this cell."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    nbformat.write(made, folder / "notes.ipynb")
    return script_of(folder / "notes.ipynb")


@pytest.mark.parametrize("cell", PYTHON)
def test_a_line_inside_a_statement_is_no_magic(tmp_path: Path, cell: str) -> None:
    assert cell in script(tmp_path, cell)


@pytest.mark.parametrize(
    ("cell", "left"),
    [
        ("%matplotlib inline\nimport os", "pass  # %matplotlib inline\nimport os\n"),
        (
            "if True:\n    %matplotlib notebook\nelse:\n    %matplotlib inline",
            "else:\n    pass  # %matplotlib inline\n",
        ),
        ("%load_ext autoreload\n%autoreload 2", "pass  # %load_ext autoreload\npass  # %autoreload 2\n"),
        ("%config InlineBackend.figure_format = 'retina'", "pass  # %config InlineBackend.figure_format = 'retina'\n"),
        ("%%time\nx = sum(range(9))", "pass  # %%time\nx = sum(range(9))\n"),
        ("import os\nos.path.join??\n?os", "import os\npass  # os.path.join??\npass  # ?os\n"),
        ("s = '''\n%'''\n%matplotlib inline\ns", "pass  # %matplotlib inline\ns\n"),
    ],
)
def test_what_says_how_a_notebook_shows_things_becomes_pass(tmp_path: Path, cell: str, left: str) -> None:
    made = script(tmp_path, cell)
    compile(made, "notes.py", "exec")
    assert made.endswith(left)


@pytest.mark.parametrize(
    "line",
    [
        "!pip install -q torch",
        "%pip install torch",
        "%timeit f()",
        "files = !ls -l 'a",
        "took = %timeit -o f()",
        "    !nvidia-smi",
        "%%bash\nls",
        "%cd /content",
    ],
)
def test_what_only_a_notebook_can_run_is_refused_where_a_statement_begins(tmp_path: Path, line: str) -> None:
    shown = line.partition("\n")[0].strip()
    with pytest.raises(UserError, match=r"code cell 1: '.*' is for notebooks only: remove it") as refused:
        script(tmp_path, f"if 1:\n{line}" if line.startswith(" ") else line)
    assert f"'{shown}'" in str(refused.value)


def test_a_line_of_blanks_takes_a_time_in_proportion(tmp_path: Path) -> None:
    """Each blank was tried as the end of an indent and as a part of what follows: 160,000 took half a minute."""
    begun = time.process_time()
    assert script(tmp_path, " " * 160_000 + "1").endswith("1\n")
    assert time.process_time() - begun < 5
