"""Evidence: published numbers stand beside the cases that they are of."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.counting import lines_run
from tests.synthetic_run import TORCH, SyntheticRun, steady_samples, training_case
from tests.words import WORDS
from tsuishi.specs.checkable import numbers_by_network
from tsuishi.specs.source import Number, read_sources
from tsuishi.specs.zoo_names import names_of
from tsuishi.verdicts.evidence import Evidence

CASE = training_case(128)
SOURCE = """
title = "A title"
language = "en"
[[hardware]]
name = "card"
title = "A card"
[[numbers]]
suite = "multi_gpu_scaling"
hardware = "card"
columns = ["model", "batch_size", "step_s"]
rows = [["cnn10", 128, 0.5], %s]
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
