"""The errors a person sees; and that every example in a docstring of the library is true."""

import doctest
import importlib
import pkgutil

import pytest

import tsuishi
from tsuishi.base.errors import BuildError, UserError, unknown

MODULES = sorted(module.name for module in pkgutil.walk_packages(tsuishi.__path__, "tsuishi."))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples_to_check() -> None:
    finder = doctest.DocTestFinder()
    found = {name for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples}
    assert {"tsuishi.base.errors", "tsuishi.base.settings", "tsuishi.stream.listener", "tsuishi.base.units"} <= found


@pytest.mark.parametrize(
    ("given", "known", "said"),
    [
        (
            "tf1.12",
            ["tf2-cpu", "tf1.13"],
            "unknown environment 'tf1.12'; did you mean 'tf1.13'? known: tf1.13, tf2-cpu",
        ),
        ("zzz", ["b", "a"], "unknown environment 'zzz'; known: a, b"),
        ("x", [], "unknown environment 'x'; known: none"),
        ("", ["a"], "unknown environment ''; known: a"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_and_all(given: str, known: list[str], said: str) -> None:
    assert str(unknown("environment", given, known)) == said


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("https://ada:p@ss@host/x: 404", "https://host/x: 404"),
        ("http://ada@host, https://ada:secret@host:8080/a@b", "http://host, https://host:8080/a@b"),
        ("https://host/simple: ada@host does not answer", "https://host/simple: ada@host does not answer"),
    ],
)
def test_credentials_in_urls_are_not_told(given: str, told: str) -> None:
    assert str(UserError(given)) == told


def test_a_failed_build_is_the_users_to_mend() -> None:
    assert issubclass(BuildError, UserError)
