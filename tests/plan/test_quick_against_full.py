"""The arithmetic of benchmarks/quick_against_full.py; the benchmark itself takes a quarter of an hour."""

from pathlib import Path

from benchmarks.quick_against_full import SUBJECTS, Trial, compared, make_checkout, predicted_s
from tsuishi.specs.suite import select_suites


def test_a_prediction_is_the_first_epoch_and_99_times_the_mean_of_the_later_ones() -> None:
    assert predicted_s([10, 1, 2, 3]) == 10 + 99 * 2


def test_a_pair_of_trials_is_compared_with_what_the_full_one_took() -> None:
    # It starts for 2 s; after 11.2 s, a tenth, it has 8 epochs behind it, which were faster than those to come.
    full = Trial([2.0, *[1.0] * 9, *[1.1] * 90], duration_s=112)
    row = compared(SUBJECTS[0], Trial([2.0, 1.1, 1.1], duration_s=11.2), full)
    assert row == ("cnn10, batch 16, torch2-cpu", 110.0, 110.9, 0.82, -8.18, 3, 10.0)


def test_every_subject_has_a_suite_of_one_case_that_differs_between_profiles_in_length_only(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path)
    suites = select_suites(checkout.suites, ())
    assert sorted(suite.name for suite in suites) == sorted(subject.suite for subject in SUBJECTS)
    for suite in suites:
        early, full = ([case for case, _ in suite.cases(profile, "cpu")] for profile in ("quick", "full"))
        assert early == full
        assert len(full) == 1
        settings = [suite.profile(profile).settings.model_dump() for profile in ("quick", "full")]
        assert {key for key in settings[0] if settings[0][key] != settings[1][key]} == {
            "epochs",
            "stop_at",
            "min_epochs",
        }
