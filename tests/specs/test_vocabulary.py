"""The vocabulary: every axis and quantity described once; a suite may bring its own; what is wrong is one line."""

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.words import WORDS, describe
from tsuishi.base.checkout import Checkout
from tsuishi.base.language import speaking
from tsuishi.plan.trials import trial_slug
from tsuishi.report.parts.declarations import columns_of
from tsuishi.report.parts.wording import case_text, header, worded
from tsuishi.report.sections.page import every_table
from tsuishi.results import schema
from tsuishi.specs.axes import TAKEN, Axis, InName
from tsuishi.specs.case import Value
from tsuishi.specs.source import read_source
from tsuishi.specs.suite import read_suite
from tsuishi.specs.trial_id import is_name
from tsuishi.specs.vocabulary import Vocabulary, vocabulary
from tsuishi.verdicts.evidence import Evidence

ATTENTION = """
title = "Attention"
workload = "attention"
axes = { protocol = "steady" }

[new_axes.sequence_length]
type = "whole number"
unit = "tokens"
label = { en = "sequence length", ja = "系列長" }
chart = "size"
usual = 128

[new_axes.heads]
type = "whole number"
label.en = "heads"
words.en = "{value} heads"
usual = 8
chart = "line"
in_name = { text = "h{value}" }

[new_quantities.attention_s]
label.en = "attention"
unit = "s"
from = "phase:attend"
over = "sequence_length"

[[groups]]
axes = { sequence_length = [64, 128], heads = [4, 8] }
"""

SOURCE = """
title = "A title"
language = "en"
[[hardware]]
name = "k80"
title = "K80"
[[numbers]]
suite = "attention"
hardware = "k80"
columns = ["sequence_length", "attention_s"]
rows = [[64, 0.25], [128, 0.5]]
"""


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    """What this checkout describes, and a suite with axes and a quantity of its own."""
    folder = tmp_path / "suites"
    describe(folder)
    (folder / "attention.toml").write_text(ATTENTION, encoding="utf-8")
    return folder


def test_a_setting_of_the_process_has_no_path_and_no_value_breaks_the_name_of_a_trial() -> None:
    preload = Axis(name="allocator", type="name", variables=("LD_PRELOAD",), label={"en": "allocator"})
    library = Axis(name="library", type="name", label={"en": "library"}, in_name=InName(text="{value}"))
    words = replace(WORDS, axes={**WORDS.axes, "allocator": preload, "library": library})
    why = "a record has no path of a machine: give the name of a file, which is looked for; given: '/opt/a.so'"
    with pytest.raises(ValueError, match=f"^key 'allocator': {re.escape(why)}$"):
        words.check({"allocator": "/opt/a.so"})
    case = words.case({"suite": "s", "protocol": "steady", "library": "org/model a..b", "allocator": "a.so"})
    assert is_name(slug := trial_slug(case, words))
    assert slug == f"s-steady-org-model-a-.b-{case.id[:6]}"


def test_a_suite_brings_axes_and_quantities_that_sources_may_use(suites: Path) -> None:
    words = vocabulary(suites)
    (suites.parent / "x.toml").write_text(SOURCE, encoding="utf-8")
    assert [number.axes for number in read_source(suites.parent / "x.toml", words).flat()] == [
        {"suite": "attention", "sequence_length": 64},
        {"suite": "attention", "sequence_length": 128},
    ]
    cases = [case for case, _ in read_suite(suites / "attention.toml", words).cases("quick", "cpu")]
    assert [case.axes for case in cases] == [
        {"suite": "attention", "protocol": "steady", "heads": 4, "sequence_length": 64},
        {"suite": "attention", "protocol": "steady", "sequence_length": 64},
        {"suite": "attention", "protocol": "steady", "heads": 4},
        {"suite": "attention", "protocol": "steady"},
    ]
    assert [case.values["sequence_length"] for case in cases] == [64, 64, 128, 128], "a workload gets usual values too"


def test_what_a_suite_brings_is_worded_as_it_says(suites: Path) -> None:
    with worded(vocabulary(suites)):
        axes = {"sequence_length": 64, "heads": 4}
        assert case_text(axes) == "4 heads, sequence length 64 tokens"
        assert header("attention_s") == "attention, s"
        with speaking("ja"):
            assert case_text(axes) == "4 heads, 系列長 64 tokens"


def test_what_nobody_describes_is_called_by_its_name() -> None:
    assert case_text({"devices": 1, "window_size": 7}) == "1 device, window size 7"
    assert header("window_s") == "window, s"


def test_a_place_in_a_file_changes_no_id(suites: Path) -> None:
    """Axes of suites are in the order of their names, wherever they are described."""
    before = vocabulary(suites)
    first, second = ATTENTION.index("[new_axes.sequence_length]"), ATTENTION.index("[new_axes.heads]")
    end = ATTENTION.index("[new_quantities")
    turned = ATTENTION[:first] + ATTENTION[second:end] + ATTENTION[first:second] + ATTENTION[end:]
    (suites / "attention.toml").write_text(turned, encoding="utf-8")
    after = vocabulary(suites)
    assert list(after.axes) == list(before.axes) == [*WORDS.axes, "heads", "sequence_length"]


def test_the_cases_of_a_run_are_completed_by_usual_values_of_their_suite(suites: Path) -> None:
    words = vocabulary(suites)
    cases: dict[str, dict[str, Value]] = {
        "a": {"suite": "attention", "protocol": "steady"},
        "b": {"suite": "conv2d", "protocol": "steady"},
    }
    assert words.completed(cases) == {"a": {**cases["a"], "sequence_length": 128, "heads": 8}, "b": cases["b"]}
    one: dict[str, Value] = {"suite": "s", "heads": 4}
    other: dict[str, Value] = {"suite": "s"}
    assert words.completed({"one": one, "other": other}) == {"one": one, "other": {"suite": "s", "heads": 8}}


def test_tables_have_the_axes_of_all_suites_and_those_that_their_cases_have(suites: Path) -> None:
    words = vocabulary(suites)
    assert list(words.of([]).axes) == list(WORDS.axes)
    unknown = words.of([{"suite": "s", "colour": "red", "heads": 2, "size": 3}]).axes
    assert list(unknown) == [*WORDS.axes, "colour", "heads", "size"]
    assert [unknown[name].is_number for name in ("colour", "heads", "size")] == [False, True, True]


def test_a_checkout_is_read_again_when_a_file_changes(suites: Path) -> None:
    first = vocabulary(suites)
    assert vocabulary(suites) is first
    (suites / "attention.toml").unlink()
    assert "heads" not in vocabulary(suites).axes


def test_a_suite_may_have_the_name_of_a_network(suites: Path) -> None:
    networks = suites / "workloads" / "networks"
    networks.mkdir(parents=True, exist_ok=True)
    (networks / "attention.json").write_bytes((Checkout().suites / "workloads" / "networks" / "mlp.json").read_bytes())
    found = vocabulary(suites)
    assert "heads" in found.axes
    assert "attention" in found.axes["model"].values


def refusal(suites: Path, text: str, name: str = "other.toml") -> str:
    (suites / name).write_text(text, encoding="utf-8")
    return vocabulary(suites).wrong[suites / name].replace(f"{suites}/", "")


HEADS = '[new_axes.heads]\ntype = "whole number"\nlabel.en = "heads"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            HEADS,
            "other.toml: axis 'heads' is described differently in attention.toml: give it another name, or describe "
            "it once",
        ),
        (
            '[new_quantities.step_s]\nlabel.en = "a step"\nunit = "s"\n',
            "other.toml: quantity 'step_s' is described differently in quantities.toml: give it another name, or "
            "describe it once",
        ),
        (
            '[new_axes.depth]\nlabel.en = "depth"\n',
            "other.toml: new_axes.depth: axis 'depth': give 'values', a list of names, or 'type'",
        ),
        (
            '[new_axes.depth]\nlabel.en = "depth"\nvalues = ["a", "b"]\nusual = "c"\n',
            "other.toml: new_axes.depth: axis 'depth': usual: input should be 'a' or 'b'; given: 'c'",
        ),
        (
            '[new_axes.depth]\nlabel.en = "depth"\nvalues = ["a", "b"]\nunsaid = ["b", "c"]\n',
            "other.toml: new_axes.depth: axis 'depth': unsaid: input should be 'a' or 'b'; given: 'c'",
        ),
        (
            '[new_axes.status]\nlabel.en = "status"\nvalues = ["a"]\n',
            "other.toml: new_axes.status: axis 'status': tables have a column of that name; give it another",
        ),
        (
            '[new_axes.depth]\nlabel.en = "depth"\nvalue = ["a"]\n',
            "other.toml: new_axes.depth: unknown key 'value'; did you mean 'values'? known here: name, values, ",
        ),
        (
            '[new_axes.depth]\nlabel.ja = "深さ"\nvalues = ["a"]\n',
            "other.toml: new_axes.depth: key 'label': no English text; add en = \"…\"",
        ),
        (
            '[new_quantities.depth_s]\nlabel.en = "depth"\nfrom = "phases:x"\n',
            "other.toml: new_quantities.depth_s: key 'from': string should match pattern ",
        ),
        (
            '[new_quantities.depth_s]\nlabel.en = "depth"\nover = "model"\n',
            "other.toml: quantity 'depth_s': over: unknown axis of numbers 'model'; did you mean 'nodes'? known: ",
        ),
        (
            '[new_quantities.images]\nlabel.en = "images"\n',
            "other.toml: 'images' is an axis and a quantity: give one of them another name",
        ),
    ],
)
def test_a_wrong_description_is_one_line_with_the_files_and_the_remedy(suites: Path, text: str, said: str) -> None:
    assert refusal(suites, text).startswith(said)


def test_the_same_description_may_be_there_twice(suites: Path) -> None:
    start = ATTENTION.index("[new_axes.heads]")
    (suites / "other.toml").write_text(ATTENTION[start : ATTENTION.index("[new_quantities")], encoding="utf-8")
    assert vocabulary(suites).brought["other"].axes == {"heads"}


def columns_of_tables() -> set[str]:
    """The names of the columns of reports and runs."""
    evidence = Evidence([], (), WORDS)
    of_reports = {column.name for declared in every_table().values() for column in columns_of(evidence, declared)}
    return of_reports | {column.name for column in (*schema.TRIALS, *schema.DETAILS)}


def test_no_axis_can_be_called_as_another_column_of_a_table() -> None:
    assert columns_of_tables() - set(WORDS.axes) <= TAKEN
    assert not TAKEN & set(WORDS.axes)


def empty() -> Vocabulary:
    """Of a checkout that describes nothing."""
    return Vocabulary({}, {})


def test_a_vocabulary_of_nothing_still_words_what_it_is_given() -> None:
    with worded(empty()):
        assert case_text({"devices": 2}) == "devices 2"


def test_the_cases_of_axes_are_those_made_one_by_one() -> None:
    axes = {"suite": ("s",), "batch_size": (2, 4), "protocol": ("steady", "literal"), "devices": (1, 2)}
    names = list(axes)
    one_by_one = [WORDS.case(dict(zip(names, values, strict=True))) for values in itertools.product(*axes.values())]
    assert [(case.items, case.given) for case in WORDS.cases(axes)] == [(case.items, case.given) for case in one_by_one]


@pytest.mark.parametrize(
    "wrong",
    [{"batch_size": (1, 0)}, {"nowhere": (1,)}, {"batch_size": ("x",), "devices": (0,)}, {"protocol": ("none",)}],
)
def test_the_cases_of_wrong_axes_are_refused_as_the_first_wrong_case_is(wrong: dict[str, Any]) -> None:
    axes = {"suite": ("s",), "protocol": ("steady",), **wrong}
    one_by_one = (WORDS.case(dict(zip(axes, values, strict=True))) for values in itertools.product(*axes.values()))
    with pytest.raises(ValueError, match=r"(axis|key) '") as caught:
        list(one_by_one)
    with pytest.raises(ValueError, match=f"^{re.escape(str(caught.value))}$"):
        list(WORDS.cases(axes))


def test_axes_without_a_protocol_make_no_case() -> None:
    with pytest.raises(ValueError, match="key 'protocol' is missing; add it"):
        list(WORDS.cases({"suite": ("s",)}))


@pytest.mark.parametrize(
    ("precision", "framework", "release", "why"),
    [
        ("tf32", "torch", "1.1", "precision 'tf32': torch 1.1 has none (1.7 and newer do)"),
        ("tf32", "torch", "1.10", ""),
        ("amp_fp16", "tensorflow", "1.13", "precision 'amp_fp16': tensorflow 1.13 has none (2.4 and newer do)"),
        ("amp_fp16", "jax", "0.1", ""),
        ("fp32", "torch", "1.1", ""),
        (None, "torch", "1.1", ""),
    ],
)
def test_a_release_has_not_yet_what_appeared_later(
    precision: str | None, framework: str, release: str, why: str
) -> None:
    assert WORDS.not_yet({"precision": precision} if precision else {}, framework, release) == why


def test_the_page_for_users_has_every_name_that_no_axis_can_have() -> None:
    page = (Checkout().root / "docs" / "your-own-experiment.md").read_text(encoding="utf-8")
    listed = page.partition("these names are refused:")[2].partition("```text\n")[2].partition("```")[0]
    assert listed.split() == sorted(TAKEN)


def test_settings_of_the_process_identify_a_case_and_its_workload_does_not_get_them() -> None:
    settings: dict[str, Value] = {"cpus": 1, "threads": 2, "instructions": "default", "onednn": "0"}
    axes = {"suite": "bench", "protocol": "steady", **settings}
    case = WORDS.case(axes)
    assert case.for_workload == {"suite": "bench", "protocol": "steady"}
    threads = dict.fromkeys(WORDS.axes["threads"].variables, "2")
    read_by = {name: list(WORDS.axes[name].read_by) for name in ("threads", "onednn")}
    assert case.process == {"cpus": 1, "variables": {**threads, "TF_ENABLE_ONEDNN_OPTS": "0"}, "read_by": read_by}
    assert [*case.axes] == ["suite", "protocol", "cpus", "threads", "onednn"]
    (same,) = WORDS.cases({name: (value,) for name, value in axes.items()})
    assert (same, same.process, same.for_workload) == (case, case.process, case.for_workload)
    assert not WORDS.case({"suite": "bench", "protocol": "steady", "onednn": "default"}).process


def test_a_number_of_cpus_is_a_number_and_no_variable() -> None:
    for wrong in ({"type": "name"}, {"type": "whole number", "variables": ("OMP_NUM_THREADS",)}):
        with pytest.raises(ValueError, match="axis 'cores_of': is_cpus: the number of CPUs is a whole number, and no"):
            Axis.model_validate({"name": "cores_of", "label": {"en": "cores"}, "is_cpus": True, **wrong})
