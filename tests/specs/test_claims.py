"""Claims: the shipped ones compare cases that suites really have; a wrong one says what is wrong with it."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.words import WORDS, shipped_sources
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.specs.claims import Check, Claim, Kind, Scope
from tsuishi.specs.pictures import Picture, PictureSeries, Rerun
from tsuishi.specs.selections import OF_ENVIRONMENTS, Selection
from tsuishi.specs.source import Hardware, Numbers, Source, read_source, read_sources
from tsuishi.specs.suite import known_suites, read_suite

VALID = """
title = "A title"
language = "ja"
[[hardware]]
name = "k80"
title = "K80"
[[claims]]
id = "a"
about = ["gpu"]
[claims.text]
en = "Two GPUs are clearly faster."
[[claims.checks]]
kind = "order"
quantity = "step_s"
case = { suite = "batch_throughput", framework = "torch" }
of = { devices = 2, strategy = ["data_parallel", "distributed_data_parallel"] }
to = { devices = 1, strategy = "none" }
hold = { below = 0.9 }
direction = { below = 1.0 }
why = "Clearly is more than 10 %."
"""
CLAIM = VALID[VALID.index("[[claims]]") :]
CHECK = VALID[VALID.index("[[claims.checks]]") :]

# The letters of the sources' claims; what follows from one has its letter and a word.
LETTERS = {
    "batch-throughput": "a a2 a2-proportional b c d e f g h i",
    "conv2d-gce": "a b c d",
    "keras-channels-first": "a b c d e f g h",
    "openbenchmarking-pytorch": "a",
    "pytorch-gpu-benchmark": "a b c d e",
    "timm-results": "a b c d",
    "torch-2080ti": "a b c d e f g h i j k l m n",
    "towers-titanx": "a b b-distinct c d e f g",
}


def test_a_valid_claim_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(VALID)
    (claim,) = read_source(tmp_path / "x.toml", WORDS).claims
    (check,) = claim.checks
    assert (claim.id, claim.about, claim.stated, claim.text) == ("a", ("gpu",), True, {"en": claim.text["en"]})
    assert check.of == {"devices": (2,), "strategy": ("data_parallel", "distributed_data_parallel")}
    assert (check.every, check.fewest, check.scale) == ("all", 1, "ratio")
    assert check.hold is not None
    assert (check.hold.low, check.hold.high) == (-float("inf"), 0.9)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # Names.
        ("of = { devices", "of = { device", "checks[0].of': unknown axis 'device'; did you mean 'devices'? known: "),
        (
            '"data_parallel",',
            '"dataparallel",',
            "checks[0].of': key 'strategy': input should be 'none', 'towers', 'data_parallel', "
            "'distributed_data_parallel', 'multi_gpu_model', 'mirrored' or 'shard_map'; given: 'dataparallel'",
        ),
        ("devices = 1", "devices = 0", "checks[0].to': key 'devices': input should be greater than 0; given: 0"),
        ("devices = 1", "devices = []", "to.devices': expected a word, a whole number, or a list of these; given: []"),
        (
            '"torch"',
            '"PyTorch"',
            "checks[0].case': framework: expected a name as torch or tensorflow, in small letters; given: 'PyTorch'",
        ),
        ('"step_s"', '"step_ms"', "checks[0]': unknown quantity 'step_ms'; did you mean 'step_s'? known: accuracy, "),
        (
            "to = {",
            'to_quantity = "forwards_s"\nto = {',
            "checks[0]': unknown quantity 'forwards_s'; did you mean 'forward_s'? known: accuracy, ",
        ),
        ("to = {", "too = {", "unknown key 'claims[0].checks[0].too'; did you mean 'to'? known here: kind, quantity, "),
        (
            '"gpu"',
            '"gpus"',
            "key 'claims[0].about[0]': input should be 'gpu', 'cpu' or 'accuracy'; given: 'gpus'",
        ),
        # What a kind needs.
        (
            '"order"',
            '"orders"',
            "checks[0].kind': input should be 'ratio', 'order', 'equal', 'trend', 'shrinks', 'presence', 'imbalance' "
            "or 'fit'; given: 'orders'",
        ),
        ('quantity = "step_s"\n', "", "checks[0]': a check of kind 'order' needs 'quantity'; add it"),
        ('"order"', '"trend"', "checks[0]': a check of kind 'trend' needs 'along'; add it"),
        ('"order"', '"fit"', "checks[0]': a check of kind 'fit' needs 'parameter'; add it"),
        ('"order"', '"presence"', "checks[0]': a check of kind 'presence' has no use for 'quantity'; remove it"),
        ("to = {", 'along = "devices"\nto = {', "a check of kind 'order' has no use for 'along'; remove it"),
        ("hold = { below = 0.9 }\n", "", "checks[0]': a check of kind 'order' needs 'hold'; add it"),
        (
            "to = {",
            "than = 1.0\nto = {",
            "checks[0]': a check of kind 'order' compares with 'to' or with 'than'; give one of them",
        ),
        (
            'to = { devices = 1, strategy = "none" }\n',
            "",
            "checks[0]': a check of kind 'order' compares with 'to' or with 'than'; give one of them",
        ),
        (
            'to = { devices = 1, strategy = "none" }',
            "than = 0.0",
            'checks[0]\': no ratio to 0; add scale = "difference"',
        ),
        (
            '"order"',
            '"fit"\nparameter = "residual"',
            "checks[0]': residuals are distances of points from their own line; remove 'to'",
        ),
        (
            'to = { devices = 1, strategy = "none" }',
            'parameter = "v0"',
            "checks[0]': a check of kind 'order' has no use for 'parameter'; remove it",
        ),
        (
            "to = {",
            'at = { model = "wrn28_10" }\nto = {',
            "'at' and 'against' compare two ratios of 'of' to 'to'; give all four, or neither of these",
        ),
        (
            "to = {",
            'at = { model = "wrn28_10" }\nagainst = { framework = "torch" }\nto = {',
            "'at' and 'against' select by axes of cases; remove 'framework' from them",
        ),
        # Regions.
        (
            "hold = { below = 0.9 }",
            "hold = { below = 1.1 }",
            "checks[0]': 'hold' is not inside 'direction'; widen 'direction'",
        ),
        (
            "{ below = 0.9 }",
            "{ above = 1.0, below = 0.9 }",
            "hold': nothing is above 1.0 and below 0.9; exchange them",
        ),
        ("{ below = 0.9 }", "{ }", "hold': a region without bounds holds anything; give 'above', 'below' or both"),
        ('"order"', '"equal"', "checks[0]': a check of kind 'equal' has no direction; remove 'direction'"),
        ('why = "Clearly is more than 10 %."\n', "", "key 'claims[0].checks[0].why' is missing; add it"),
        ('"Clearly is more than 10 %."', '""', 'checks[0].why\': no English text; add en = "…"'),
        # The claim.
        (
            CHECK,
            "",
            "key 'claims[0]': claim 'a': give checks, or 'untestable' with the reason why there are none",
        ),
        (
            'about = ["gpu"]',
            'untestable = { en = "It takes a TPU." }',
            "key 'claims[0]': claim 'a': give checks, or 'untestable' with the reason why there are none",
        ),
        ("en =", "ja =", "key 'claims[0].text': no English text; add en = \"…\""),
        (CLAIM, CLAIM + CLAIM, "claims: 'a' is given twice; give the second another id"),
        (
            'about = ["gpu"]',
            "scope = { gpu_memory = { above = 10.0 } }",
            "unknown key 'claims[0].scope.gpu_memory'; did you mean 'gpu_memory_gib'? known here: gpu_memory_gib",
        ),
    ],
)
def test_a_wrong_claim_names_its_file_the_key_and_the_remedy(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "wrong.toml"
    assert old in VALID
    path.write_text(VALID.replace(old, new, 1))
    with pytest.raises(UserError) as error:
        read_source(path, WORDS)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_fit_without_other_lines_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    alone = VALID.replace('to = { devices = 1, strategy = "none" }\n', "").replace(
        '"order"\nquantity = "step_s"', '"fit"\nparameter = "t_cost"'
    )
    path.write_text(alone)
    with pytest.raises(UserError) as error:
        read_source(path, WORDS)
    assert str(error.value) == (
        f"{path}: key 'claims[0].checks[0]': 't_cost' is compared with that of other lines; "
        "add 'to' ({} for the same lines)"
    )


def test_every_claim_of_every_shipped_source_is_there_in_both_languages() -> None:
    sources = {source.name: source for source in shipped_sources()}
    assert {name: " ".join(claim.id for claim in source.claims) for name, source in sources.items()} == LETTERS
    texts = [claim.text for source in sources.values() for claim in source.claims]
    texts += [claim.untestable for source in sources.values() for claim in source.claims if claim.untestable]
    assert all(set(text) == {"en", "ja"} and all(text.values()) for text in texts)


def test_only_what_the_source_does_not_say_itself_is_marked_so() -> None:
    unstated = {(source.name, claim.id) for source in shipped_sources() for claim in source.claims if not claim.stated}
    assert unstated == {
        ("batch-throughput", "f"),
        ("conv2d-gce", "b"),
        ("openbenchmarking-pytorch", "a"),
        *(("pytorch-gpu-benchmark", claim) for claim in "abcde"),
        *(("timm-results", letter) for letter in "abcd"),
        ("keras-channels-first", "d"),
        ("torch-2080ti", "n"),
        ("towers-titanx", "b-distinct"),
    }


def every_check() -> Iterator[Any]:
    """Of this project's sources and of a user's, for whom `invoke test --select claims` does this (docs/sources.md)."""
    for source in read_sources(Checkout().published, WORDS, tables=False):
        for claim in source.claims:
            for number, check in enumerate(claim.checks):
                yield pytest.param(check, id=f"{source.name}-{claim.id}-{number}")


@pytest.fixture(scope="module")
def cases() -> list[dict[str, Any]]:
    """Every case of the full profile on GPUs."""
    suites = [read_suite(path, WORDS) for path in known_suites(Checkout().suites).values()]
    return [dict(case.values) for suite in suites for case, _ in suite.cases("full", "cuda")]


def selected(cases: list[dict[str, Any]], *selections: Selection) -> list[dict[str, Any]]:
    wanted = [(axis, values) for one in selections for axis, values in one.items() if axis not in OF_ENVIRONMENTS]
    return [case for case in cases if all(case.get(axis) in values for axis, values in wanted)]


@pytest.mark.parametrize("check", list(every_check()))
def test_a_check_compares_cases_that_suites_have(check: Check, cases: list[dict[str, Any]]) -> None:
    of = selected(cases, check.case, check.of)
    assert of, "no case is selected by 'of'"
    if check.to is not None:
        named = {*check.of, *check.to, *(["batch_size"] if check.kind == "fit" else [])}

        def rest(case: dict[str, Any]) -> frozenset[tuple[str, Any]]:
            return frozenset((axis, value) for axis, value in case.items() if axis not in named)

        to = selected(cases, check.case, check.to)
        assert to, "no case is selected by 'to'"
        of = [one for one in of for other in to if rest(one) == rest(other)]
        assert of, "cases of both sides differ in more than 'of' and 'to' name"
    compared = Counter(case["protocol"] for case in of)
    assert min(compared.values()) >= check.fewest


@pytest.mark.parametrize("check", list(every_check()))
def test_every_value_a_check_selects_by_has_a_case(check: Check, cases: list[dict[str, Any]]) -> None:
    """A list with one misspelt or unmeasured value would select the others, and nobody would know."""
    for side in (check.of, check.to or {}):
        for axis, values in {**check.case, **side}.items():
            for value in values if axis in WORDS.axes else ():
                assert selected(cases, check.case, side, {axis: (value,)}), f"no case with {axis} = {value}"


def examples() -> list[str]:
    """The TOML of the documentation: a whole file, then checks of every kind."""
    return re.findall(r"```toml\n(.*?)```", (Checkout().root / "docs" / "sources.md").read_text(encoding="utf-8"), re.S)


def test_the_documented_file_is_a_valid_source(tmp_path: Path) -> None:
    path = tmp_path / "example.toml"
    path.write_text(examples()[0], encoding="utf-8")
    source = read_source(path, WORDS)
    readings = [number.readings for number in source.flat() if number.quantity == "median_epoch_s"]
    assert readings[1] == (12.31, 12.29, 12.24)
    assert [claim.id for claim in source.claims] == ["a"]


def test_the_documentation_has_a_check_of_every_kind_that_selects_cases(
    tmp_path: Path, cases: list[dict[str, Any]]
) -> None:
    path = tmp_path / "example.toml"
    path.write_text(VALID.replace(CHECK, "\n".join(examples()[1:])), encoding="utf-8")
    (claim,) = read_source(path, WORDS).claims
    assert {check.kind for check in claim.checks} == set(get_args(Kind))
    for check in claim.checks:
        assert selected(cases, check.case, check.of), check.kind
        assert check.to is None or selected(cases, check.case, check.to), check.kind


def test_the_documentation_names_every_field() -> None:
    text = (Checkout().root / "docs" / "sources.md").read_text(encoding="utf-8")
    for model in (Source, Hardware, Numbers, Claim, Check, Scope, Picture, PictureSeries, Rerun):
        for field in model.model_fields:
            assert field in ("name", "claims", "numbers", "checks") or re.search(rf"\b{field}\b", text), field


def test_the_layouts_gains_of_the_two_networks_are_told_apart() -> None:
    """A little under 10 % of the small network, a little under 5 % of the large: no ratio is both."""
    claims = {claim.id: claim for source in shipped_sources() for claim in source.claims
              if source.name == "keras-channels-first"}  # fmt: skip
    small, large = (claims[name].checks[0].hold for name in "ab")
    assert small
    assert large
    assert small.high <= large.low
