"""The house's plan, counted: `python -m tests.house` prints its rooms, floors and arrows.

A room is a folder of tsuishi/, or a module beside them; nested folders count as their own. An arrow is one room that
imports from another, anywhere in its modules. A floor is a step of the longest way down. (import-linter, grimp and tach
were looked at: they hold layers, but count neither rooms nor floors, and each is larger than this.)
"""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "tsuishi"
EXTRAS = PACKAGE / "extras"
# From top to bottom: a room imports from those behind it only.
ORDER = (
    *("commands", "report.output", "report.sections", "report.charts", "report.parts"),
    *("run", "plan", "environments", "locking", "verdicts", "estimates"),
    *("stream", "engines.docker", "engines", "artifacts", "results", "machine", "specs", "base", "extras"),
)


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Every module by its dotted name without `tsuishi.`; a package is its folder."""
    named = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return named


def core() -> dict[str, Path]:
    """The modules outside of the extras."""
    return {name: path for name, path in modules().items() if path.parent == EXTRAS or EXTRAS not in path.parents}


def room(module: str, named: dict[str, Path]) -> str:
    """The folder a module lies in; the module itself where it lies beside the folders."""
    return module if named[module].name == "__init__.py" else module.rpartition(".")[0] or module


def imported(path: Path, named: dict[str, Path]) -> set[str]:
    """The modules of the package that a file imports from, inside functions and for types too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == PACKAGE.name:
            source = (node.module or "").removeprefix(PACKAGE.name).lstrip(".")
            for alias in node.names:
                inner = f"{source}.{alias.name}".lstrip(".")
                found.add(inner if inner in named else source)
        elif isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[2] for alias in node.names if alias.name.split(".")[0] == PACKAGE.name}
    return found - {""}


def arrows(named: dict[str, Path]) -> dict[str, set[str]]:
    """For each room those it imports from."""
    to: dict[str, set[str]] = defaultdict(set)
    for module, path in named.items():
        if module:
            here = room(module, named)
            to[here] |= {room(other, named) for other in imported(path, named)} - {here}
    lived_in = {room(module, named) for module, path in named.items() if path.name != "__init__.py"}
    return {here: others for here, others in to.items() if others or here in lived_in}


def floors(to: dict[str, set[str]]) -> dict[str, int]:
    """For each room the steps of its longest way down. Raises RecursionError where a way leads back."""
    depth: dict[str, int] = {}

    def of(here: str) -> int:
        if here not in depth:
            depth[here] = 1 + max(map(of, to.get(here, ())), default=0)
        return depth[here]

    return {here: of(here) for here in to}


def upward(to: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Arrows against the order."""
    return [(here, there) for here in to for there in sorted(to[here]) if ORDER.index(there) < ORDER.index(here)]


def main() -> None:
    named = core()
    to = arrows(named)
    depth = floors(to)
    for here in sorted(to, key=lambda name: (-depth[name], name)):
        held = sum(room(module, named) == here and path.name != "__init__.py" for module, path in named.items())
        print(f"{depth[here]:2} {here:28} {held:2} modules -> {' '.join(sorted(to[here]))}")
    count = sum(map(len, to.values()))
    lines = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in named.items()}
    print(f"{len(to)} rooms, {count} arrows, {max(depth.values())} floors, {len(upward(to))} upward")
    print(f"{sum(lines.values())} lines; over 250: {sorted(m for m, n in lines.items() if n > 250)}")


if __name__ == "__main__":
    main()
