"""Evidence: published numbers stand beside the cases that they are of."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counting import lines_run
from tests.report.compared import page_of
from tests.synthetic_run import TORCH, SyntheticRun, steady_samples, training_case
from tests.words import WORDS
from tsuishi.report.output.csv_files import text
from tsuishi.specs.numbers_of_cases import numbers_by_network
from tsuishi.specs.source import Number, read_sources
from tsuishi.specs.zoo_names import names_of
from tsuishi.verdicts.evidence import Evidence

CASE = training_case(128)
HEAD = """
title = "A title"
language = "en"
[[hardware]]
name = "card"
title = "A card"
[[numbers]]
suite = "multi_gpu_scaling"
hardware = "card"
columns = ["model", "batch_size", "step_s"]
"""
SOURCE = f"""{HEAD}rows = [["cnn10", 128, 0.5], %s]
"""


def number(network: str | None, place: int) -> Number:
    axes: dict[str, str | int] = {"model": network} if network else {}
    return Number("a", "card", "published_a_card", axes, frozenset(axes.items()), "step_s", float(place), "")


@given(st.lists(st.sampled_from([None, "cnn10", "resnet50", "mlp"])))
def test_a_network_has_the_numbers_that_may_match_its_cases_in_their_order(networks: list[str | None]) -> None:
    numbers = [number(network, place) for place, network in enumerate(networks)]
    found = numbers_by_network(numbers)
    for network in (None, "cnn10", "vgg_small"):
        case = {"model": network} if network else {}
        assert found.get(network, found[None]) == [each for each in numbers if each.matches(case)]


def test_numbers_of_other_networks_cost_a_case_nothing(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.add(CASE, TORCH, steady_samples(128, [0.1] * 4))
    directory = run.finish()

    def work(others: int) -> int:
        (folder := tmp_path / str(others)).mkdir()
        rows = [f'["timm:{name}", 128, 0.5]' for name in sorted(names_of("timm")[1])[:others]]
        (folder / "table.toml").write_text(SOURCE % ", ".join(rows))
        evidence = Evidence([directory], read_sources(folder, WORDS), WORDS)
        assert len(evidence.numbers) == 1 + others
        return lines_run(lambda: evidence.published(CASE.id))

    assert work(100) == work(1000)


def test_rounds_are_those_of_a_question_as_questions_follow_one_another(tmp_path: Path) -> None:
    """Two questions with three rounds each, then a fourth round of the first; the trials of a session."""
    run = SyntheticRun(tmp_path / "run")
    order = [(16, 1), (32, 1), (16, 2), (32, 2), (16, 3), (32, 3), (64, 1), (64, 2), (64, 3), (16, 4), (32, 4)]
    for place, (batch_size, repetition) in enumerate(order):
        started_at = f"2026-11-21T08:{place:02}:00Z"
        run.add(
            training_case(batch_size), TORCH, steady_samples(batch_size, [0.1] * 4), repetition, started_at=started_at
        )
    numbers = numbers_of(run, 16, 32, 64)
    assert numbers[16] == numbers[32]
    assert len({*numbers[16], *numbers[64]}) == 4 + 3


def numbers_of(run: SyntheticRun, *sizes: int) -> dict[int, list[int]]:
    """The numbers of the rounds of each batch size."""
    evidence = Evidence([run.finish()], (), WORDS)
    ((_, of_suite),) = [(key, of) for key, of in evidence.trial_rounds.items() if key[3] == "step_s"]
    return {size: [each.number for each in of_suite[training_case(size).id]] for size in sizes}


@pytest.mark.parametrize(("within_s", "apart"), [(600.0, True), (None, False)])
def test_questions_of_a_single_round_have_rounds_of_their_own_within_a_time(
    tmp_path: Path, within_s: float | None, apart: bool
) -> None:
    run = SyntheticRun(tmp_path / "run", sessions=[{"began_at": "2026-11-21T08:00:00Z", "within_s": within_s}])
    run.run["questions"] = [
        {
            "id": f"a/{number}/{TORCH}", "kind": "claim", "title": {"en": "fits"}, "worth": 1.0, "source": "a",
            "claim": str(number), "environments": [TORCH], "of": [[training_case(size).id, TORCH] for size in sizes],
        }
        for number, sizes in enumerate([(16, 32), (64, 128)])
    ]  # fmt: skip
    for place, batch_size in enumerate((16, 32, 64, 128)):
        samples, started_at = steady_samples(batch_size, [0.1] * 4), f"2026-11-21T08:{place:02}:00Z"
        run.add(training_case(batch_size), TORCH, samples, started_at=started_at)
    numbers = numbers_of(run, 16, 32, 64, 128)
    assert numbers[16] == numbers[32]
    assert numbers[64] == numbers[128]
    assert (numbers[16] != numbers[64]) is apart


TABLES = (
    HEAD
    + """rows = [["vgg_small", 64, 0.5]]
[[tables]]
file = "rows.csv"
sha256 = "{rows}"
suite = "multi_gpu_scaling"
hardware = "card"
columns = [
    {{name = "model", holds = "model"}}, {{name = "batch", holds = "batch_size"}},
    {{name = "size", holds = "image_size"}}, {{name = "s", holds = "step_s"}}
]
[[tables]]
file = "headers.csv"
sha256 = "{headers}"
suite = "multi_gpu_scaling"
hardware = "card"
columns = [
    {{name = "batch", holds = "batch_size"}}, {{name = "cnn10", holds = "step_s", case = {{model = "cnn10"}}}},
    {{name = "resnet50", holds = "step_s", case = {{model = "resnet50"}}}},
    {{name = "resnet18", holds = "step_s", case = {{model = "resnet18"}}}},
    {{name = "resnet34", holds = "step_s", case = {{model = "resnet34"}}}}
]
"""
)
CLAIM = """
[[claims]]
id = "a"
text = "One is faster."
[[claims.checks]]
kind = "order"
quantity = "step_s"
case = {suite = "multi_gpu_scaling", batch_size = 128}
%s
hold = {below = 1.0}
why = "It is printed."
"""
NAMED = 'of = {model = "resnet50"}\nto = {model = "resnet18"}'
UNNAMED = "of = {devices = 2}\nto = {devices = 1}"
TYPED, RAN, CLAIMED = {"vgg_small"}, {"cnn10"}, {"resnet50", "resnet18"}
PRINTED = {
    # The first row prints no size of images: without it, the order of the other rows must stay.
    "rows": "model,batch,size,s\nresnet34,128,,7\ncnn10,128,64,5\ncnn10,128,,6\nresnet50,128,,1\nresnet18,128,,2\n",
    "headers": "batch,cnn10,resnet50,resnet18,resnet34\n256,0.4,1,2,3\n",
}


@pytest.mark.parametrize(
    ("claims", "by_other", "networks"),
    [
        ("", "", TYPED | RAN),
        (CLAIM % NAMED, "", TYPED | RAN | CLAIMED),
        (CLAIM % UNNAMED, "", TYPED | RAN | CLAIMED | {"resnet34"}),
        ("", (CLAIM % NAMED).replace("[[claims.checks]]", 'also_by = ["a"]\n[[claims.checks]]'), TYPED | RAN | CLAIMED),
        ("", CLAIM % UNNAMED, TYPED | RAN),
    ],
)
def test_a_report_has_the_numbers_of_networks_that_ran_or_in_claims_and_is_else_that_with_all(
    tmp_path: Path, claims: str, by_other: str, networks: set[str]
) -> None:
    run = SyntheticRun(tmp_path / "run")
    for repetition in (1, 2, 3):
        run.add(CASE, TORCH, steady_samples(128, [0.1 * repetition] * 4), repetition)
        run.add(training_case(128, image_size=64), TORCH, steady_samples(128, [0.2 * repetition] * 4), repetition)
    (folder := tmp_path / "published" / "a").mkdir(parents=True)
    for name, printed in PRINTED.items():
        (folder / f"{name}.csv").write_text(printed)
    digests = {name: hashlib.sha256(printed.encode()).hexdigest() for name, printed in PRINTED.items()}
    (folder / "source.toml").write_text(TABLES.format(**digests) + claims)
    if by_other:
        (folder.parent / "b.toml").write_text(SOURCE % "" + by_other)
    sources = read_sources(folder.parent, WORDS, tables=False)
    directory = run.finish()
    some, every = (
        page_of(Evidence([directory], given, WORDS))
        for given in (sources, tuple(source.with_tables() for source in sources))
    )
    found = some.tables["published"]
    named = {model for source, model in zip(found["source"], found["model"], strict=True) if source == "a"}
    assert named == networks
    assert some.verdicts == every.verdicts
    assert {name for name in every.tables if text(some.tables[name]) != text(every.tables[name])} <= {"published"}
