"""Short runs on stand-in GPUs: claims are judged early, rightly, and also where trials take longer than was planned."""

import statistics
from pathlib import Path

import pytest

from benchmarks.claims_in_time import STANDS, judged, made_run, truth, verdicts, wrong

BY_HOST = STANDS[2]


@pytest.fixture(scope="module")
def true() -> dict[tuple[str, str, str], str]:
    return truth(BY_HOST)


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_four_minutes_of_a_card_by_host_judge_claims_whatever_the_plan_expected(
    tmp_path: Path, true: dict[tuple[str, str, str], str], factor: float
) -> None:
    counts = []
    for seed in range(1, 10):
        found = verdicts(made_run(BY_HOST, tmp_path / str(seed), 240.0, factor, seed=seed))
        assert not wrong(found, true)
        counts.append(len(judged(found)))
    assert min(counts) >= 2
    assert statistics.median(counts) >= 3, "the scatter of trials decides how many: most runs judge three or more"
