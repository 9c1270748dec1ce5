"""Which settings a printed number does not state, and which values of them are measured."""

import os
from dataclasses import replace

import pytest

from tests.commands.test_tasks import REAL
from tests.extras.explain.test_design import PRINTED
from tests.words import WORDS
from tsuishi.extras.explain import explaining
from tsuishi.extras.explain.unsaid import chosen, tried, unsaid_of
from tsuishi.extras.tables.checkable import CheckableNumber
from tsuishi.extras.tables.picking import numbers_of_source, pick
from tsuishi.specs.case import Value
from tsuishi.specs.source import read_sources

VALUES: dict[str, tuple[Value, ...]] = {"layout": ("channels_last", "channels_first"), "execution": ("compiled",)}


def number(source: str, row: str) -> CheckableNumber:
    (read,) = (each for each in read_sources(REAL.published, WORDS, tables=False) if each.name == source)
    return pick(numbers_of_source(read.with_tables()), row, "", ())


def test_what_a_table_says_or_a_framework_does_not_read_is_not_unsaid() -> None:
    resnet = number("pytorch-gpu-benchmark", "resnet18 inference none fp32")
    assert resnet.assumed == {"layout", "strategy", "nodes", "execution"}
    found = unsaid_of(resnet, REAL.suites, "training", "torch")
    # Its file says "float", and oneDNN is a setting of TensorFlow.
    assert {*found} == {"layout", "execution", "batches", "convolution_tuning", "threads"}
    stated = replace(resnet, assumed=frozenset())
    assert {*unsaid_of(stated, REAL.suites, "training", "torch")} == {*found} - {"layout", "execution"}
    assert "onednn" in unsaid_of(resnet, REAL.suites, "training", "tensorflow")
    # The convolutions of SciPy have none of the axes of networks.
    assert unsaid_of(number("conv2d-gce", "SciPy"), REAL.suites, "conv2d", "any") == {"threads": (1,)}


@pytest.mark.parametrize(("cpus", "order"), [(2, ["execution", "threads", "layout"]), (8, ["threads", "execution"])])
def test_the_setting_that_may_change_the_number_most_comes_first(
    cpus: int, order: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last are left out where the time is too short: by timm's own tables a layout changes less than a compiler."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {*range(cpus)})
    of_gpu = number("pytorch-gpu-benchmark", "resnet18 inference none fp32")
    found = unsaid_of(replace(of_gpu, hardware="CPU i9"), REAL.suites, "training", "torch")
    assert [*found][: len(order)] == order
    assert [*unsaid_of(of_gpu, REAL.suites, "training", "torch")][:2] == ["execution", "layout"]


def test_an_environment_is_asked_for_each_value_and_each_two_of_two_settings() -> None:
    assert [*tried(VALUES)] == [
        {},
        {"layout": "channels_last"},
        {"layout": "channels_first"},
        {"execution": "compiled"},
        {"layout": "channels_last", "execution": "compiled"},
        {"layout": "channels_first", "execution": "compiled"},
    ]


@pytest.mark.parametrize(
    ("cannot", "may_be", "left_out"),
    [
        ([], {"layout": "channels_last", "execution": "compiled"}, ()),
        ([{"layout": "channels_last"}], {"layout": "channels_first", "execution": "compiled"}, ()),
        (
            [{"layout": "channels_last"}, {"layout": "channels_first"}],
            {"execution": "compiled"},
            ("layout=channels_last (no)", "layout=channels_first (no)"),
        ),
        (
            [{"layout": "channels_last", "execution": "compiled"}],
            {"layout": "channels_last"},
            ("execution=compiled (no)",),
        ),
    ],
)
def test_the_first_value_that_can_run_is_measured(
    cannot: list[dict[str, Value]], may_be: dict[str, Value], left_out: tuple[str, ...]
) -> None:
    found = chosen(VALUES, lambda settings: "no" if settings in cannot else "")
    assert (found.may_be, found.left_out, found.combinations) == (may_be, left_out, 6)


def test_no_more_than_eight_settings_are_measured() -> None:
    found = chosen({f"axis{number}": ("on",) for number in range(9)}, lambda _: "")
    assert ([*found.may_be], found.combinations) == ([f"axis{number}" for number in range(8)], 512)
    assert found.left_out == ("axis8=on (more than 8 settings)",)


def test_where_the_time_is_too_short_the_last_are_not_measured() -> None:
    unsaid = chosen({"layout": ("channels_last",), "threads": (1,)}, lambda _: "")
    tried = [each.unsaid for each in explaining._fewer_factors(PRINTED.model_copy(update={"unsaid": unsaid}))]
    assert [(each.may_be, each.left_out) for each in tried if each] == [
        ({"layout": "channels_last", "threads": 1}, ()),
        ({"layout": "channels_last"}, ("threads=1 (too little time)",)),
    ]
