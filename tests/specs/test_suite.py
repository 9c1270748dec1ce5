"""Suites: axes, the cases they span, and case ids that stay what they are."""

import itertools
import json
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import case_ids
from tests.words import WORDS, case, describe
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.specs.environment import Accelerator
from tsuishi.specs.suite import (
    PROFILES,
    Suite,
    every_suite,
    known_suites,
    profile_name,
    read_suite,
    select_suites,
)
from tsuishi.specs.vocabulary import vocabulary

SUITES = Checkout().suites
HEAD = 'title = "A title"\nworkload = "w"\n'
AXES_KNOWN = ", ".join(sorted(WORDS.selectable))


def suite(folder: Path, text: str) -> Suite:
    path = folder / "s.toml"
    path.write_text(text, encoding="utf-8")
    return read_suite(path, WORDS)


def message(folder: Path, text: str) -> str:
    with pytest.raises(UserError) as caught:
        suite(folder, text)
    return str(caught.value).replace(f"{folder}/", "")


@pytest.mark.parametrize("name", sorted(known_suites(SUITES)))
def test_every_shipped_suite_is_read_and_has_cases_in_every_profile(name: str) -> None:
    shipped = read_suite(SUITES / f"{name}.toml", WORDS)
    for profile in PROFILES:
        found = [case.id for case, _ in shipped.cases(profile, "cpu")]
        assert found
        assert len(found) == len(set(found))


def test_the_cases_of_a_suite_are_made_once_until_its_file_is_altered(tmp_path: Path) -> None:
    shutil.copytree(SUITES, tmp_path / "suites", ignore=shutil.ignore_patterns("workloads"))
    (first,), (second,) = (select_suites(tmp_path / "suites", ("transformer_block",)) for _ in range(2))
    assert first is second
    path = tmp_path / "suites" / "transformer_block.toml"
    path.write_text(path.read_text().replace('title = "', 'title = "Altered: ', 1))
    (altered,) = select_suites(tmp_path / "suites", ("transformer_block",))
    assert altered.title.startswith("Altered: ")


def test_a_known_case_keeps_its_id() -> None:
    """The golden id: results and published numbers are matched by it, so it may never change."""
    known = case(
        suite="conv2d",
        protocol="literal",
        implementation="framework",
        strategy="towers",
        devices=3,
        images=840,
        height=100,
        width=100,
        channels=1,
        filter_size=3,
        data="ones",
        feed="constant",
        graph_optimizers="default",
    )
    assert known.id == "8a2a12f23e83"


def test_every_case_of_every_shipped_suite_keeps_its_id_and_its_place() -> None:
    """Resumed runs and earlier results need both. tests/case_ids.py says how to see what is different."""
    held = json.loads(case_ids.HELD.read_text(encoding="utf-8"))
    changed = [name for name, digest in case_ids.digests().items() if held.get(name) != digest]
    assert (changed, held.keys() - case_ids.shipped().keys()) == ([], set()), "compare `python -m tests.case_ids`"


# In front of all others, where an axis would change every id if ids had it.
NEW_AXIS = '[a_new_axis]\ntype = "whole number"\nlabel = "a new axis"\nusual = 3\n\n'


def test_a_new_axis_changes_no_id_and_its_usual_value_is_left_out(tmp_path: Path) -> None:
    shutil.copytree(SUITES, tmp_path / "suites", ignore=shutil.ignore_patterns("*.py"))
    axes = tmp_path / "suites" / "axes.toml"
    axes.write_text(NEW_AXIS + axes.read_text(encoding="utf-8"), encoding="utf-8")
    wider = vocabulary(tmp_path / "suites")
    values = {"suite": "s", "protocol": "steady", "devices": 2}
    usual, other = (wider.case({**values, "a_new_axis": value}) for value in (3, 4))
    assert usual.id == wider.case(values).id == WORDS.case(values).id != other.id
    assert (usual.axes, usual.values) == (values, {**values, "a_new_axis": 3}), "the workload gets it all the same"
    assert [ids(one) for one in select_suites(tmp_path / "suites", ())] == [
        ids(one) for one in select_suites(SUITES, ())
    ]


def ids(suite: Suite) -> list[list[str]]:
    """The ids of all cases, in their order, by profile and accelerator."""
    accelerators: tuple[Accelerator, ...] = ("cpu", "cuda")
    return [[case.id for case, _ in suite.cases(profile, on)] for profile in PROFILES for on in accelerators]


VALUES: dict[str, st.SearchStrategy[object]] = {
    "model": st.sampled_from(["cnn10", "wrn28_10"]),
    "layout": st.sampled_from(["native", "channels_first"]),
    "devices": st.integers(1, 9),
    "batch_size": st.integers(1, 4096),
    "precision": st.sampled_from(["fp32", "tf32"]),
}


@given(st.fixed_dictionaries({}, optional=VALUES), st.randoms(use_true_random=False))
def test_the_order_in_which_axes_are_given_does_not_matter(axes: dict[str, object], order: random.Random) -> None:
    items = [("suite", "s"), ("protocol", "steady"), *axes.items()]
    case = WORDS.case(dict(items))
    order.shuffle(items)
    assert WORDS.case(dict(items)).id == case.id
    assert list(case.axes) == [axis for axis in WORDS.axes if axis in dict(items)]


def test_different_cases_have_different_ids() -> None:
    cases = [
        case(suite="s", protocol=protocol, devices=devices, batch_size=batch)
        for protocol, devices, batch in itertools.product(("literal", "steady"), (None, 1, 2), (None, 1, 16))
    ]
    assert len({one.id for one in cases}) == len(cases)


def test_the_order_of_axes_in_the_file_changes_the_order_of_cases_but_no_id(tmp_path: Path) -> None:
    one = suite(tmp_path, HEAD + '[[groups]]\naxes = { protocol = "steady", devices = [1, 2], batch_size = [8, 9] }')
    other = suite(tmp_path, HEAD + '[[groups]]\naxes = { batch_size = [8, 9], devices = [1, 2], protocol = "steady" }')
    first = [case.id for case, _ in one.cases("quick", "cpu")]
    second = [case.id for case, _ in other.cases("quick", "cpu")]
    assert first != second
    assert sorted(first) == sorted(second)


def test_a_group_spans_the_product_of_its_axes_where_it_belongs(tmp_path: Path) -> None:
    text = HEAD + (
        '[[groups]]\nprofiles = ["quick"]\naxes = { protocol = ["literal", "steady"], devices = [1, 2, 2] }\n'
        '[[groups]]\naccelerator = "cuda"\naxes = { protocol = "steady", devices = [2, 4] }\n'
    )
    found = suite(tmp_path, text)
    on_gpu = [(case.protocol, case.devices) for case, _ in found.cases("quick", "cuda")]
    assert on_gpu == [("literal", 1), ("literal", 2), ("steady", 1), ("steady", 2), ("steady", 4)]
    assert len(list(found.cases("quick", "cpu"))) == 4
    assert len(list(found.cases("smoke", "cpu"))) == 0
    assert len(list(found.cases("smoke", "cuda"))) == 2


GROUP = '[[groups]]\naxes = { protocol = "steady", '


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD, "s.toml: key 'groups' is missing; add it"),
        (
            HEAD + GROUP + "devises = 1 }",
            f"s.toml: groups[0].axes: unknown axis 'devises'; did you mean 'devices'? known: {AXES_KNOWN}",
        ),
        (HEAD + GROUP + 'suite = "x" }', f"s.toml: groups[0].axes: unknown axis 'suite'; known: {AXES_KNOWN}"),
        (
            HEAD + GROUP + "devices = [1, 0] }",
            "s.toml: groups[0].axes: key 'devices': input should be greater than 0; given: 0",
        ),
        (
            HEAD + GROUP + 'devices = "2" }',
            "s.toml: groups[0].axes: key 'devices': input should be a valid integer; given: '2'",
        ),
        (
            HEAD + GROUP + "devices = 1 }\n" + GROUP + 'model = "cnn11" }',
            "s.toml: groups[1].axes: key 'model': "
            "input should be 'cnn10', 'wrn28_10', 'vgg_small', 'mlp', 'resnet50', 'decoder_tiny', 'decoder_small', "
            "'decoder_gpt2', 'mobilenet_v2', 'resnet101', 'resnet152', 'resnet18', 'resnet34', 'vgg11' or 'vgg16', "
            "or of a library: torchvision:NAME, timm:NAME, keras:NAME; "
            "given: 'cnn11'",
        ),
        (HEAD + "[[groups]]\naxes = { devices = 1 }", "s.toml: groups[0].axes: key 'protocol' is missing; add it"),
        (
            HEAD + "[profiles.quik]\n" + GROUP + "devices = 1 }",
            "s.toml: key 'profiles.quik': input should be 'smoke', 'quick' or 'full'; given: 'quik'",
        ),
        (
            HEAD + "[profiles.quick]\nsettings = { warmup_s = 1.0 }\n" + GROUP + "devices = 1 }",
            "s.toml: unknown key 'profiles.quick.settings.warmup_s'; did you mean 'warm_up_s'? known here: "
            "warm_up_steps, warm_up_s, settle_s, block_s, min_blocks, measure_s, max_s, later_runs, readings, load_s, "
            "epochs, train_images, test_images, learning_rate, momentum, min_epochs, stop_at, parts, seed",
        ),
        (
            HEAD + "[profiles.quick]\ntimeout_s = inf\n" + GROUP + "devices = 1 }",
            "s.toml: key 'profiles.quick.timeout_s': input should be a finite number; given: inf",
        ),
        (
            HEAD.replace('"w"', '"../w"') + GROUP + "devices = 1 }",
            "s.toml: key 'workload': string should match pattern '^[a-z][a-z0-9_]*$'; given: '../w'",
        ),
    ],
)
def test_a_mistake_is_one_line_with_key_and_remedy(tmp_path: Path, text: str, said: str) -> None:
    assert message(tmp_path, text) == said


@pytest.mark.parametrize("value", ["1.5", "true", "[]", "[1, 2.5]", "{ a = 1 }"])
def test_an_axis_takes_words_and_whole_numbers_only(tmp_path: Path, value: str) -> None:
    said = message(tmp_path, HEAD + GROUP + f"devices = {value} }}")
    expected = "s.toml: key 'groups[0].axes.devices': expected a word, a whole number, or a list of these; given: "
    assert said.startswith(expected)


def test_a_profile_not_mentioned_has_defaults_and_guesses_grow_with_the_batch(tmp_path: Path) -> None:
    expect = "expect = { quick = { s = 2.0, s_per_image = 0.5 } }\n"
    found = suite(tmp_path, HEAD + GROUP.replace("axes", expect + "axes") + "batch_size = 8 }")
    assert found.profile("full").repetitions == {"cpu": 1, "cuda": 3}
    ((case, group),) = found.cases("quick", "cpu")
    assert group.expected_s("quick", case.batch_size or 0, 3.0) == 2.0 + 0.5 * 8 * 3.0
    assert group.expected_s("full", 8, 3.0) == 5.0


ON_GPUS = """
[profiles.quick.settings_on_cuda]
warm_up_s = 0.5
settle_s = 0.75
measure_s = 1.5
"""


def test_a_group_may_be_timed_in_its_own_way_in_a_profile(tmp_path: Path) -> None:
    own = 'settings = { quick = { parts = "forward" } }\n'
    found = suite(tmp_path, HEAD + ON_GPUS + GROUP.replace("axes", own + "axes") + "devices = 1 }")
    ((_, group),) = found.cases("quick", "cpu")
    on_gpu = found.profile("quick").settings_for("cuda", group.settings.get("quick"))
    assert (on_gpu.parts, on_gpu.measure_s) == ("forward", 1.5)
    assert (found.profile("quick").settings_for("cuda").parts, group.settings.get("full")) == ("", None)
    assert message(tmp_path, HEAD + GROUP.replace("axes", own.replace("forward", "x y") + "axes") + "devices = 1 }")


def test_a_steady_trial_on_gpus_takes_what_its_settings_give(tmp_path: Path) -> None:
    """A guess that is not of GPUs alone is one of CPUs; a group of GPUs alone may say that its steps are long."""

    def expected_s(protocol: str, more: str = "", parts: str = "") -> float:
        expect = "expect = { quick = { s = 20.0 } }\n" + more
        found = suite(tmp_path, HEAD + ON_GPUS + GROUP.replace("axes", expect + "axes") + "devices = 1 }")
        ((_, group),) = found.cases("quick", "cuda")
        settings = found.profile("quick").settings_for("cuda").model_copy(update={"parts": parts})
        return group.expected_on_cuda_s("quick", protocol, settings)

    start_s = expected_s("steady") - (0.5 + 0.25 + 1.5)
    assert 4 < start_s < 8, "PyTorch takes 4 to 5 s on an H100"
    assert expected_s("steady", parts="forward,forward_backward") == start_s + 3 * 2.25
    assert expected_s("steady", 'accelerator = "cuda"\n') == start_s + 20.0
    assert expected_s("literal") == start_s + 20.0


def test_unknown_suites_and_profiles_are_answered_with_the_known_ones(tmp_path: Path) -> None:
    describe(tmp_path)
    suite(tmp_path, HEAD + GROUP + "devices = 1 }")
    assert [one.name for one in select_suites(tmp_path, ())] == ["s"]
    with pytest.raises(UserError) as caught:
        select_suites(tmp_path, ("t",))
    assert str(caught.value) == "unknown suite 't'; known: s"
    with pytest.raises(UserError) as caught:
        profile_name("quik")
    assert str(caught.value) == "unknown profile 'quik'; did you mean 'quick'? known: full, quick, smoke"


THREE = HEAD + (
    '[[groups]]\naxes = {{ protocol = "steady", devices = [1, 2, 4] }}\nnarrowed = {{ quick = {{ devices = {} }} }}\n'
)


def test_a_suite_that_is_none_of_the_default_ones_runs_where_it_is_named(tmp_path: Path) -> None:
    describe(tmp_path)
    suite(tmp_path, HEAD + GROUP + "devices = 1 }")
    (tmp_path / "t.toml").write_text("default = false\n" + HEAD + GROUP + "devices = 1 }", encoding="utf-8")
    assert [one.name for one in select_suites(tmp_path, ())] == ["s"]
    assert [one.name for one in select_suites(tmp_path, ("t",))] == ["t"]
    assert [one.name for one in every_suite(tmp_path)] == ["s", "t"]


def test_batches_are_of_images_where_a_suite_says_nothing_else(tmp_path: Path) -> None:
    describe(tmp_path)
    suite(tmp_path, HEAD + GROUP + "devices = 1 }")
    (tmp_path / "t.toml").write_text('batch_of = "sequences"\n' + HEAD + GROUP + "devices = 1 }", encoding="utf-8")
    words = vocabulary(tmp_path)
    assert [words.batch_of(name) for name in ("s", "t", "unknown")] == ["images", "sequences", "images"]


def test_a_profile_may_have_fewer_values_of_an_axis(tmp_path: Path) -> None:
    found = suite(tmp_path, THREE.format([1, 4]))
    assert [case.devices for case, _ in found.cases("quick", "cpu")] == [1, 4]
    assert [case.devices for case, _ in found.cases("full", "cpu")] == [1, 2, 4]


def test_a_profile_has_no_other_values_than_its_group(tmp_path: Path) -> None:
    assert message(tmp_path, THREE.format(3)) == (
        "s.toml: key 'groups[0]': narrowed.quick.devices: not among the group's values; these are: 1, 2, 4"
    )
