"""Parts that only some users need, each a folder that can be deleted: the core names no folder.

The core asks for a function or a value by its module's name and its own, as `extras.given("engines", "engines")`.
These files may lie in the folder of an extra:

- tasks.py: tasks of Invoke; options.toml: the options of these tasks, and options that it adds to tasks of the core
- settings.py: a class SETTINGS, whose fields become settings beside those of the core, or in place of those of the
  same names; GROUP, their key in invoke.yaml
- core_tasks.py: a function with the name of a task of the core runs before it; if it returns True, the task is done
- engines.py, executors.py (EXECUTORS, and NODES for the same names), images.py, runs.py: further engines, executors,
  sources of images, readers of runs
- sections.py: views and sections of a report
- needs.txt: the names of the extras that it uses; without them it is not there

(Entry points and pluggy were considered: an entry point needs an installed package, and a checkout has none.)
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

_FOLDER = Path(__file__).resolve().parent


def names() -> list[str]:
    """The names of all extras."""
    present = {path.parent.name for path in _FOLDER.glob("*/__init__.py")}
    return sorted(name for name in present if present.issuperset(needs(name)))


def needs(name: str) -> list[str]:
    """The extras that an extra uses; none for an empty name."""
    path = _FOLDER / name / "needs.txt"
    return path.read_text(encoding="utf-8").split() if path.is_file() else []


def files(name: str) -> list[Path]:
    """The files of this name that extras have, in the order of the extras."""
    return [path for extra in names() if (path := _FOLDER / extra / name).is_file()]


def modules(name: str) -> list[ModuleType]:
    """The modules of this name that extras have, in the order of the extras."""
    return [import_module(f"tsuishi.extras.{path.parent.name}.{name}") for path in files(f"{name}.py")]


@cache
def given(module: str, name: str) -> tuple[Any, ...]:
    """The values that extras have under a name in their modules `module`, in the order of the extras."""
    return tuple(getattr(each, name) for each in modules(module) if hasattr(each, name))
