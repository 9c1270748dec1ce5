"""The suite of a check: the cases of a number, as the suite that they come from has them."""

from pathlib import Path

from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.extras.tables.check import write_cases
from tsuishi.specs.suite import read_suite

SUITES = Checkout().suites


def test_cases_keep_the_timing_the_accelerator_and_the_guesses_of_their_group(tmp_path: Path) -> None:
    for name in ("batch_throughput", "input_pipeline"):
        shipped = SUITES / f"{name}.toml"
        cases = [*read_suite(shipped, WORDS).cases("quick", "cuda")]
        write_cases(shipped, tmp_path / shipped.name, cases)
        again = dict(read_suite(tmp_path / shipped.name, WORDS).cases("quick", "cuda"))
        for case, group in cases:
            kept = again[case]
            assert (kept.settings, kept.accelerator, kept.expect) == (group.settings, group.accelerator, group.expect)
    assert any(
        group.settings for _, group in read_suite(SUITES / "batch_throughput.toml", WORDS).cases("quick", "cuda")
    )
