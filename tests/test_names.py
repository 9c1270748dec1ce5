"""A law of the house: the library knows no suite, source or network by name; what is special is in explanations."""

import ast
import itertools
import re
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path

import pytest

from tsuishi.base.checkout import Checkout
from tsuishi.specs.environment import Accelerator
from tsuishi.specs.source import read_sources
from tsuishi.specs.suite import PROFILES, every_suite
from tsuishi.specs.vocabulary import vocabulary

ROOMS = Checkout()
LIBRARY = ROOMS.root / "tsuishi"
ACCELERATORS: tuple[Accelerator, ...] = ("cpu", "cuda")


@cache
def names() -> frozenset[str]:
    """The suites, sources, published hardware and networks of this checkout, as its files have them."""
    suites = every_suite(ROOMS.suites)
    sources = read_sources(ROOMS.published, vocabulary(ROOMS.suites), tables=False)
    cells = itertools.product(suites, PROFILES, ACCELERATORS)
    cases = (case for suite, profile, accelerator in cells for case, _ in suite.cases(profile, accelerator))
    every = {str(network) for case in cases if (network := case.axes.get("model"))}
    networks = {network for network in every if ":" not in network}  # those of a library are behind its name
    hardware = {hardware.name for source in sources for hardware in source.hardware}
    # A CPU that a source names is also a word of the library's own.
    return frozenset(
        {suite.name for suite in suites} | {source.name for source in sources} | networks | (hardware - {"cpu"})
    )


def modules() -> list[Path]:
    """Every module but the list of axes' values."""
    return [path for path in sorted(LIBRARY.rglob("*.py")) if path != LIBRARY / "specs" / "case.py"]


def words_of_code(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of every name and string of a module, without docstrings; comments are no part of its tree."""
    tree = ast.parse(text)
    described = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, described) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(said)) if id(node) not in docstrings:
                yield node.lineno, said
            case ast.Name(id=said) | ast.Attribute(attr=said) | ast.keyword(arg=str(said)) | ast.arg(arg=said):
                yield getattr(node, "lineno", 0), said
            case ast.FunctionDef(name=said) | ast.ClassDef(name=said):
                yield node.lineno, said
            case ast.ImportFrom(module=said):
                yield from ((node.lineno, word) for word in (said or "", *(alias.name for alias in node.names)))


def named(text: str, known: Set[str]) -> list[tuple[int, str]]:
    """Line and name of each of these names that is a word of the code; `.` and `/` part words, `_` and `-` do not."""
    word = re.compile("|".join(rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in sorted(known)))
    return [(line, found) for line, said in words_of_code(text) for found in word.findall(said)]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(LIBRARY)))
def test_no_module_names_a_suite_a_source_or_a_network(path: Path) -> None:
    assert named(path.read_text(encoding="utf-8"), names()) == []


def test_the_names_are_those_of_the_files() -> None:
    assert {"conv2d", "multi_gpu_scaling", "conv2d-gce", "cnn10", "mlp", "titan-x"} <= names()


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ('if suite == "conv2d": pass', 1),
        ('\nTEXT = f"add suite conv2d, then {x}"', 2),
        ("from suites.explanations.conv2d import towers", 1),
        ("def f(conv2d): pass", 1),
        ("x.conv2d = 1", 1),
    ],
)
def test_a_name_is_found_wherever_code_has_it(code: str, line: int) -> None:
    assert named(code, {"conv2d"}) == [(line, "conv2d")]


@pytest.mark.parametrize("code", ['"""As conv2d."""', "x = 1  # as conv2d", 'x = "conv2d_small", "my-conv2d"'])
def test_docstrings_comments_and_longer_names_may_have_it(code: str) -> None:
    assert named(code, {"conv2d"}) == []
