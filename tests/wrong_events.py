"""Events that are JSON, and of a known kind, with a value that nothing after them takes."""

from typing import Any

_WRONG: dict[str, list[dict[str, Any]]] = {
    "environment": [
        {"devices": [1]},
        {"devices": [{"kind": "gpu"}]},
        {"devices": [{"kind": "gpu", "name": 1}]},
        {"devices": [{"name": "x"}]},
        {"devices": {}},
        {"framework": ["torch"]},
        {"framework": {"torch": 1}},
        {"versions": {"torch": 1}},
        {"versions": []},
        {"packages": {"numpy": None}},
        {"flags": {"threads": {"a": [1]}}},
        {"flags": ["threads"]},
        {"python": 3},
        {"cudnn": 7},
        {"simulated": "yes"},
        {"simulated": [1]},
        {"synthetic": 1},
        {"deep": [[[[]]]]},
        {"deep": {"a": {"b": {}}}},
    ],
    "sample": [
        {"phase": ["measure"]},
        {"phase": ""},
        {"phase": "x" * 201},
        {"index": -1},
        {"index": "0"},
        {"steps": 0},
        {"images": -1},
        {"seconds": 0},
        {"seconds": -0.5},
        {"seconds": True},
        {"seconds": "0.5"},
    ],
    "failed": [{"kind": "other"}, {"kind": None}, {"type": 1}, {"text": ["x"]}],
}
# (kind, what is wrong) of each.
WRONG_EVENTS = [(kind, change) for kind, changes in _WRONG.items() for change in changes]
