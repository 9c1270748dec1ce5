"""The workloads run in Python 3.6, whatever runs these tests."""

import ast
import pathlib
import subprocess

import pytest

from tests.conftest import missing
from tsuishi.machine.interpreters import find_python

FILES = sorted((pathlib.Path(__file__).resolve().parents[2] / "suites" / "workloads").rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_workload_is_syntax_of_python_3_6_and_plain_ascii(path):
    """Python 3.6 in the C locale of a bare container prints nothing else."""
    text = path.read_text(encoding="utf-8")
    ast.parse(text, feature_version=(3, 6))
    assert text.isascii()


@pytest.mark.pythons
def test_python_3_6_itself_compiles_the_workloads():
    python = find_python("3.6")
    if python is None:
        missing("no CPython 3.6")
    code = "import sys\nfor path in sys.argv[1:]: compile(open(path).read(), path, 'exec', dont_inherit=True)"
    subprocess.run([python, "-c", code, *map(str, FILES)], check=True)
