"""The plan of the house, held: rooms, arrows between them, and one name for each thing."""

import ast
from collections import Counter

from tests.house import arrows, modules, upward

MOST_ROOMS = 21
MOST_ARROWS = 91


def doubled(names: list[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def test_rooms_import_downwards_only_and_arrows_do_not_become_more() -> None:
    to = arrows(modules())
    assert upward(to) == []
    assert len(to) <= MOST_ROOMS
    assert sum(map(len, to.values())) <= MOST_ARROWS


def test_no_two_modules_and_no_two_classes_share_a_name() -> None:
    named = modules()
    assert doubled([module.rpartition(".")[2] for module in named]) == []
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in named.values()]
    assert doubled([node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]) == []
