"""The plan of the house, held: rooms, arrows between them, and one name for each thing."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tests import english
from tests.house import EXTRAS, ORDER, PACKAGE, arrows, core, imported, modules, upward
from tsuishi import extras
from tsuishi.base.checkout import Checkout
from tsuishi.base.option_table import OPTIONS, read_options
from tsuishi.base.settings import Settings
from tsuishi.commands.command_line import OptionTask

EXPLANATIONS = PACKAGE.parent / "suites" / "explanations"

# Phrases of tests/english.py that are left.
MOST_HARD_PHRASES = 9
MOST_ROOMS = 20
SOME = pytest.mark.skipif(not extras.names(), reason="there is no extra")
MOST_ARROWS = 92
# The only names that functions of several modules may have, as `manifest.read` and `toml.read`.
SHARED_VERBS = {"fetch", "load", "main", "read", "remove", "show"}


def doubled(names: list[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def test_rooms_import_downwards_only_and_arrows_do_not_become_more() -> None:
    to = arrows(core())
    assert upward(to) == []
    assert len(to) <= MOST_ROOMS
    assert sum(map(len, to.values())) <= MOST_ARROWS


def imports(path: Path) -> set[str]:
    """The modules that a file imports, also inside of functions; those beside it, by their folder alone, are none."""
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}


def test_the_library_imports_nothing_of_suites_and_workloads_nothing_of_the_library() -> None:
    sides = ((PACKAGE, "suites"), (EXPLANATIONS, "suites"), (EXPLANATIONS.parent / "workloads", PACKAGE.name))
    for folder, other in sides:
        found = {path: {name.split(".")[0] for name in imports(path)} for path in folder.rglob("*.py")}
        assert found
        assert [path for path, names in found.items() if other in names] == []


def test_explanations_use_the_parts_of_a_report_and_nothing_above_them() -> None:
    every = set().union(*map(imports, EXPLANATIONS.rglob("*.py")))
    above = tuple(f"{PACKAGE.name}.{room}" for room in ORDER[: ORDER.index("report.charts")])
    assert [name for name in every if name.startswith(above)] == []


@SOME
def test_the_core_names_no_extra_and_an_extra_only_those_that_it_needs() -> None:
    named = modules()
    names = {path.parent.name for path in EXTRAS.glob("*/__init__.py")}
    assert names

    def of(module: str) -> str:
        return module.split(".")[1] if module.startswith("extras.") else ""

    wrong = [
        (module, other)
        for module, path in named.items()
        for other in imported(path, named)
        if of(other) and of(other) not in (of(module), *extras.needs(of(module)))
    ]
    assert wrong == []
    texts = {module: path.read_text(encoding="utf-8") for module, path in core().items()}
    assert [(module, name) for module, text in texts.items() for name in names if f"extras.{name}" in text] == []


def literals(path: Path) -> set[str]:
    """The texts in a file's code: no docstrings, and of an f-string the parts between its fields."""
    nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    constants = (node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in alone)
    return {value for value in constants if isinstance(value, str)}


@SOME
def test_no_text_of_the_core_has_the_name_of_a_task_an_engine_or_an_executor_of_an_extra() -> None:
    """Many tasks have names that are English words: these count where they are quoted, or are the whole text."""
    given = [name for module in extras.modules("tasks") for name in vars(module).values()]
    tasks = {each.name for each in given if isinstance(each, OptionTask)}
    others = {name for executors in extras.given("executors", "EXECUTORS") for name in executors}
    others |= {
        each.name for made in extras.given("engines", "engines") for each in made(Settings(), Checkout().dockerfile)
    }
    assert tasks
    assert others
    # The name of an option may be that of a task: `--archive`; that of a column, or a command of Ruff: "check"; and the
    # mode of a file: "ab".
    elsewhere = {row.name for row in OPTIONS} | {"check", "ab"}
    whole, quoted, words = ("|".join(names) for names in (tasks - elsewhere, tasks, others))
    named = re.compile(rf"(?i:\b({words})\b)|(`|\binvoke )({quoted})(?![\w-])|^({whole})$")
    texts = {module: literals(path) for module, path in core().items()}
    texts["options.toml"] = {row.help for row in read_options([PACKAGE / "base" / "options.toml"])}
    assert [(module, text) for module, own in texts.items() for text in own if named.search(text)] == []
    assert [text for text in texts["options.toml"] if re.search(rf"\b({quoted})s\b", text)] == []  # as archives


def test_no_two_modules_and_no_two_classes_share_a_name() -> None:
    named = modules()
    # What extras offer has the same names in each of them: tsuishi/extras/__init__.py lists them.
    offers = ("tasks", "core_tasks", "engines", "executors", "images", "runs", "sections", "settings")
    offering = {f"extras.{path.parent.name}.{name}" for path in EXTRAS.glob("*/__init__.py") for name in offers}
    assert doubled([module.rpartition(".")[2] for module in named if module not in offering]) == []
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in named.values()]
    assert doubled([node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]) == []


def test_modules_of_the_core_share_the_names_of_functions_only_where_these_are_general_verbs() -> None:
    """`inventory.remove` and `strays.remove` are clear. A noun or an adjective needs a word more: `fits_python`."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in core().values()]
    names = [node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert [name for name in doubled(names) if name[0] != "_"] == sorted(SHARED_VERBS)


def test_phrases_that_are_hard_to_read_do_not_become_more() -> None:
    assert len(list(english.found(english.files()))) <= MOST_HARD_PHRASES
