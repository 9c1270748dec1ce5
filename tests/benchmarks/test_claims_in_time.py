"""Short runs on stand-in GPUs: claims are judged early, rightly, and also where trials take longer than was planned."""

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
    found = verdicts(made_run(BY_HOST, tmp_path, 240.0, factor, seed=1))
    assert len(judged(found)) >= 3
    assert not wrong(found, true)
