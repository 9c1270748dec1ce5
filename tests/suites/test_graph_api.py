"""How TensorFlow's releases differ, held to stand-ins: the real releases are entered by benchmarks.releases."""

import importlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from common.events import Unsupported


def of_0_12() -> dict[str, Any]:
    return {
        "__version__": "0.12.1",
        "split": lambda split_dim, num_split, value: ("old", split_dim, num_split, value),
        "get_variable": lambda name, shape=None: None,
        "variables_initializer": lambda variables: variables,
    }


def of_1_8() -> dict[str, Any]:
    return {
        "__version__": "1.8.0",
        "split": lambda value, num_or_size_splits, axis=0: ("new", axis, num_or_size_splits, value),
        "get_variable": lambda name, shape=None, use_resource=None: None,
        "variables_initializer": lambda variables: variables,
    }


def graph_api(monkeypatch: pytest.MonkeyPatch, has: dict[str, Any]) -> Any:
    """The module, as it is imported beside a TensorFlow that has these names."""
    stand_in = ModuleType("tensorflow")
    vars(stand_in).update(has)
    monkeypatch.setitem(sys.modules, "tensorflow", stand_in)
    monkeypatch.delitem(sys.modules, "frameworks.tensorflow.graph_api", raising=False)
    return importlib.import_module("frameworks.tensorflow.graph_api")


def test_equal_parts_are_asked_for_in_the_order_of_the_release(monkeypatch: pytest.MonkeyPatch) -> None:
    assert graph_api(monkeypatch, of_0_12()).split("images", 3) == ("old", 0, 3, "images")
    assert graph_api(monkeypatch, of_1_8()).split("images", 3) == ("new", 0, 3, "images")


def test_a_release_without_resource_variables_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unsupported, match=r"^strategy 'towers': TensorFlow 0\.12\.1 has no resource variables"):
        graph_api(monkeypatch, of_0_12()).require_resources("strategy 'towers'")
    graph_api(monkeypatch, of_1_8()).require_resources("strategy 'towers'")


def test_an_assignment_reads_nothing_where_the_release_has_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    api = graph_api(monkeypatch, of_1_8())
    older = SimpleNamespace(assign=lambda value: SimpleNamespace(op=("assign", value)))
    newer = SimpleNamespace(assign=lambda value, read_value=True: ("assign", value, read_value))
    assert api.assign(older, 1) == ("assign", 1)
    assert api.assign(newer, 1) == ("assign", 1, False)


def test_the_variables_of_an_optimizer_that_does_not_list_them_are_its_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    api = graph_api(monkeypatch, of_1_8())
    older = SimpleNamespace(get_slot_names=lambda: ["momentum"], get_slot=lambda variable, name: f"{variable}/{name}")
    assert api.initial_slots(older, ["a", "b"]) == ["a/momentum", "b/momentum"]
    assert api.initial_slots(SimpleNamespace(variables=lambda: ["all"]), ["a", "b"]) == ["all"]


def test_before_grappler_no_option_of_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not graph_api(monkeypatch, of_0_12()).grappler_knows("constant_folding")
