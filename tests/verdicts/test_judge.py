"""Claims judged on runs, and on what their own sources printed."""

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.gpu_run import GPU, add_steps, two_gpus
from tests.synthetic_run import TF, TORCH, SyntheticRun, add_record, machine, steady_samples, training_case
from tests.words import WORDS
from tsuishi.report.sections.claim_words import sentence
from tsuishi.specs.claims import Bounds, Check, Claim, Scope
from tsuishi.specs.questions import share_of_look
from tsuishi.specs.source import Source, read_sources
from tsuishi.verdicts.checks import CheckResult
from tsuishi.verdicts.conclusions import conclude
from tsuishi.verdicts.evidence import Evidence
from tsuishi.verdicts.findings import measured_findings
from tsuishi.verdicts.judge import Judgement, by_printed_numbers

PUBLISHED = Path(__file__).parents[2] / "reports" / "published"


def claim(*checks: dict[str, Any], **fields: Any) -> Claim:
    given = [Check.model_validate({"why": "made up", **check}, strict=False) for check in checks]
    return Claim.model_construct(
        **{"id": "a", "text": {"en": "A claim."}, "about": ("gpu",), "scope": None, "untestable": None, "stated": True,
           "checks": tuple(given), **fields}
    )  # fmt: skip


def source(*claims: Claim) -> Source:
    return Source.model_construct(
        name="made-up", title="Made up", hardware=(), software={}, assumed=(), notes=(), numbers=(), claims=claims
    )


FASTER_ON_TWO = {
    "kind": "ratio", "quantity": "step_s", "case": {"suite": "multi_gpu_scaling", "framework": "torch"},
    "of": {"devices": 2, "strategy": "data_parallel"}, "to": {"devices": 1, "strategy": "none"},
    "hold": {"above": 0.4, "below": 0.6}, "direction": {"below": 1.0},
}  # fmt: skip
TORCH_FASTER = {
    "kind": "order", "quantity": "step_s", "case": {"suite": "multi_gpu_scaling", "devices": 1},
    "of": {"framework": "torch"}, "to": {"framework": "tensorflow"}, "hold": {"below": 1.0},
}  # fmt: skip


def judged(run: SyntheticRun, *claims: Claim) -> list[Judgement]:
    return conclude(Evidence([run.finish()], (source(*claims),), WORDS)).judgements


@pytest.mark.parametrize(
    ("two_s", "verdict"),
    [(0.05, "reproduced"), (0.08, "direction only"), (0.15, "contradicted"), (0.1, "inconclusive")],
)
def test_a_verdict_is_what_the_interval_says(tmp_path: Path, two_s: float, verdict: str) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    add_steps(run, TORCH, 0.1)
    add_steps(run, TORCH, two_s, devices=2, strategy="data_parallel")
    (found,) = judged(run, claim(FASTER_ON_TWO))
    assert (found.verdict, str(found.subject)) == (verdict, f"{TORCH}, steady")
    (outcome,) = found.outcomes
    assert isinstance(outcome, CheckResult)
    assert outcome.summary is not None
    assert outcome.shown(outcome.summary.value) == pytest.approx(two_s / 0.1)


@pytest.mark.parametrize(("last_look", "trials", "value"), [(24, 24, 0.5), (0, 48, 0.75**0.5)])
def test_trials_after_the_last_look_of_a_claim_do_not_count(
    tmp_path: Path, last_look: int, trials: int, value: float
) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    one, two = training_case(128), training_case(128, devices=2, strategy="data_parallel")
    for repetition in range(1, 49):
        two_s = 0.05 if repetition <= 24 else 0.15
        for case, step_s in ((one, 0.1), (two, two_s)):
            samples = steady_samples(128, [step_s * (1 + 0.01 * (repetition % 3))] * 8)
            run.add(case, TORCH, samples, repetition, **GPU)
    (found,) = judged(run, claim(FASTER_ON_TWO, last_look=last_look))
    (outcome,) = found.outcomes
    assert isinstance(outcome, CheckResult)
    assert outcome.summary
    assert (outcome.trials, outcome.shown(outcome.summary.value)) == (trials, pytest.approx(value))
    # It shares 1.25 % with no other claim, half of it as a claim of the first plan.
    assert found.level == pytest.approx(0.00625 * share_of_look(trials, last_look))


@pytest.mark.parametrize(
    ("device", "verdict", "hindrance"), [("cpu", "reproduced", ""), ("cuda", "not tested", "other hardware")]
)
def test_a_claim_about_cpus_is_judged_on_cpus(tmp_path: Path, device: str, verdict: str, hindrance: str) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    larger = {**FASTER_ON_TWO, "of": {"batch_size": 256}, "to": {"batch_size": 128}}
    for batch_size, step_s in ((128, 0.1), (256, 0.05)):
        add_steps(run, TORCH, step_s, batch_size=batch_size, fields={"device": device})
    (found,) = judged(run, claim(larger, about=("cpu",)))
    assert (found.verdict, found.hindrance) == (verdict, hindrance)


def test_simulated_devices_show_something_and_support_nothing(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for devices, strategy, step_s in ((1, "none", 0.1), (2, "data_parallel", 0.05)):
        fields = {"device": "cpu", "simulated": devices > 1}
        add_steps(run, TORCH, step_s, devices=devices, strategy=strategy, fields=fields)
    (found,) = judged(run, claim(FASTER_ON_TWO))
    assert (found.verdict, found.hindrance) == ("not tested", "no gpu")
    assert isinstance(found.outcomes[0], CheckResult)


def test_what_is_about_any_machine_is_judged_on_a_cpu(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for devices, strategy, step_s in ((1, "none", 0.1), (2, "data_parallel", 0.05)):
        add_steps(run, TORCH, step_s, devices=devices, strategy=strategy, fields={"device": "cpu"})
    (found,) = judged(run, claim(FASTER_ON_TWO, about=()))
    assert found.verdict == "reproduced"


def test_accuracy_on_made_up_data_supports_nothing(tmp_path: Path) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    for environment in (TF, TORCH):
        for repetition in (1, 2, 3):
            metrics = [("test_accuracy", 0.9 + repetition / 1000, "1")]
            run.add(training_case(128), environment, [], repetition, metrics=metrics, **{**GPU, "synthetic": True})
    same = {
        "kind": "equal", "quantity": "accuracy", "scale": "difference", "of": {"framework": "torch"},
        "to": {"framework": "tensorflow"}, "hold": {"above": -0.05, "below": 0.05},
    }  # fmt: skip
    (found,) = judged(run, claim(same, about=("accuracy",)))
    assert (found.verdict, found.hindrance) == ("not tested", "synthetic")
    (found,) = judged(run, claim(same, about=()))
    assert found.verdict == "reproduced"


def test_what_was_measured_on_different_days_is_inconclusive_and_says_so(tmp_path: Path) -> None:
    """One device in a run and two in another; both together in one run would decide."""
    runs = [two_gpus(SyntheticRun(tmp_path / name)) for name in ("monday", "tuesday")]
    add_steps(runs[0], TORCH, 0.1)
    add_steps(runs[1], TORCH, 0.05, devices=2, strategy="data_parallel")
    (found,) = conclude(Evidence([run.finish() for run in runs], (source(claim(FASTER_ON_TWO)),), WORDS)).judgements
    assert found.verdict == "inconclusive"
    assert sentence(found).endswith("0.500, measured in different sessions: no verdict before 3 days on each side.")


def test_a_value_that_never_changes_has_no_slope_by_rounding(tmp_path: Path) -> None:
    """Its slope was 2.78e-17, with an interval without length: above 0, and certain."""
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    for batch_size in (16, 32, 64, 128, 256):
        case = training_case(batch_size)
        for repetition in (1, 2, 3):
            run.add(case, TORCH, steady_samples(batch_size, [0.0123] * 8), repetition, **GPU)
    grows = {
        "kind": "trend", "quantity": "step_s", "case": {"suite": "multi_gpu_scaling"}, "along": "batch_size",
        "hold": {"above": 0.0}, "direction": {"above": 0.0},
    }  # fmt: skip
    (found,) = judged(run, claim(grows))
    (outcome,) = found.outcomes
    assert isinstance(outcome, CheckResult)
    assert outcome.summary is not None
    assert (outcome.summary.value, found.verdict) == (0.0, "inconclusive")


def test_two_trials_are_too_few_for_a_verdict(tmp_path: Path) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    add_steps(run, TORCH, 0.1)
    add_steps(run, TORCH, 0.05, trials=2, devices=2, strategy="data_parallel")
    (found,) = judged(run, claim(FASTER_ON_TWO))
    assert (found.verdict, found.hindrance, found.trials) == ("inconclusive", "too few", 2)


def test_frameworks_are_compared_in_every_pair_of_environments_of_a_machine(tmp_path: Path) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    add_steps(run, TORCH, 0.1)
    add_steps(run, TF, 0.2)
    (found,) = judged(run, claim(TORCH_FASTER))
    assert (found.verdict, found.subject and found.subject.environments) == ("reproduced", (TF, TORCH))


def test_environments_of_different_machines_are_not_compared(tmp_path: Path) -> None:
    runs = []
    for name, environment in (("a", TORCH), ("b", TF)):
        run = two_gpus(SyntheticRun(tmp_path / name))
        if name == "b":
            run.machine = add_record(run.directory, "machine", {**machine(), "gpus": [{"name": "K80"}]})
        add_steps(run, environment, 0.1)
        runs.append(run.finish())
    (found,) = conclude(Evidence(runs, (source(claim(TORCH_FASTER)),), WORDS)).judgements
    assert (found.verdict, found.hindrance, found.subject) == ("not tested", "no environment", None)


def test_a_case_that_is_missing_leaves_a_claim_untested(tmp_path: Path) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    add_steps(run, TORCH, 0.1)
    (found,) = judged(run, claim(FASTER_ON_TWO))
    assert (found.verdict, found.hindrance) == ("not tested", "no cases")


def test_what_fits_is_judged_on_gpus_of_that_memory_only(tmp_path: Path) -> None:
    status = {
        "kind": "presence", "case": {"framework": "torch"}, "of": {"batch_size": 128}, "status": "out_of_memory",
    }  # fmt: skip
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    for repetition in (1, 2, 3):
        run.add(training_case(128), TORCH, [], repetition, status="out_of_memory", **GPU)
    eleven = claim(status).model_copy(update={"scope": _scope(10.0, 12.0)})
    (found,) = judged(run, eleven)
    assert found.verdict == "reproduced"
    (found,) = judged(run, claim(status).model_copy(update={"scope": _scope(20.0, 30.0)}))
    assert (found.verdict, found.hindrance) == ("not tested", "other hardware")


@pytest.mark.parametrize(
    ("status", "verdict"), [("out_of_memory", "reproduced"), ("failed", "inconclusive"), ("timeout", "inconclusive")]
)
def test_a_case_that_is_too_large_for_the_memory_is_named_and_hinders_no_verdict(
    tmp_path: Path, status: str, verdict: str
) -> None:
    """Any other case without a number might be the exception."""
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    for batch_size in (64, 128):
        add_steps(run, TORCH, 0.1, batch_size=batch_size)
        add_steps(run, TORCH, 0.05, batch_size=batch_size, devices=2, strategy="data_parallel")
    add_steps(run, TORCH, 0.05, batch_size=256, devices=2, strategy="data_parallel")
    for repetition in (1, 2, 3):
        run.add(training_case(256), TORCH, [], repetition, status=status, **GPU)
    over = {**FASTER_ON_TWO, "over": ["batch_size"]}
    (found,) = judged(run, claim(over))
    assert found.verdict == verdict
    said = "Without cases that ran out of memory: training, cnn10, 1 device, batch 256, fp32."
    assert (said in sentence(found)) is (status == "out_of_memory")


@pytest.mark.parametrize(
    ("fits", "trials", "state"), [(True, 3, "answered"), (False, 3, "cannot be answered"), (False, 1, "open")]
)
def test_a_claim_with_nothing_left_to_compare_is_not_open(tmp_path: Path, fits: bool, trials: int, state: str) -> None:
    """More trials of the side that fits would show nothing."""
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    case = training_case(128)
    two = training_case(128, devices=2, strategy="data_parallel")
    add_steps(run, TORCH, 0.05, trials=trials, devices=2, strategy="data_parallel")
    if fits:
        add_steps(run, TORCH, 0.1)
    else:
        run.add(case, TORCH, [], status="out_of_memory", **GPU)
    run.run["questions"] = [
        {
            "id": f"made-up/a/{TORCH}", "kind": "claim", "title": {"en": "two"}, "worth": 1.0, "source": "made-up",
            "claim": "a", "environments": [TORCH], "of": [[case.id, TORCH], [two.id, TORCH]], "main": True, "plan": 1,
        }
    ]  # fmt: skip
    (answer,) = conclude(Evidence([run.finish()], (source(claim(FASTER_ON_TWO)),), WORDS)).answers
    assert (answer.state, answer.trials) == (state, trials)


@pytest.mark.parametrize(("reach", "verdict"), [(False, "reproduced"), (True, "not tested"), (None, "not tested")])
def test_a_claim_on_gpus_without_transfers_between_them_is_judged_on_such_gpus_only(
    tmp_path: Path, reach: bool | None, verdict: str
) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    gpus = [{"name": "RTX 2080 Ti", "memory_mib": 11264, "uuid": f"GPU-{number}"} for number in (0, 1)]
    run.machine = add_record(run.directory, "machine", {**machine(), "gpus": gpus, "peer_to_peer": reach})
    add_steps(run, TORCH, 0.1)
    add_steps(run, TORCH, 0.05, devices=2, strategy="data_parallel")
    (found,) = judged(run, claim(FASTER_ON_TWO).model_copy(update={"scope": Scope(peer_to_peer=False)}))
    assert (found.verdict, found.hindrance) == (verdict, "" if reach is False else "other hardware")


@pytest.mark.parametrize(("devices", "verdict"), [(2, "not tested"), (4, "reproduced")])
def test_of_cards_bridged_in_pairs_a_claim_is_judged_by_those_of_the_trial(
    tmp_path: Path, devices: int, verdict: str
) -> None:
    """The claim is of GPUs that cannot read each other's memory: the first two can, the first four cannot."""
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    gpus = [{"index": card, "name": "RTX A6000", "memory_mib": 49140} for card in range(8)]
    links = [{"gpus": [one, other], "peer_to_peer": one ^ 1 == other} for one, other in combinations(range(8), 2)]
    run.machine = add_record(run.directory, "machine", {**machine(), "gpus": gpus, "links": links})
    add_steps(run, TORCH, 0.1)
    add_steps(run, TORCH, 0.05, devices=devices, strategy="data_parallel")
    check = {**FASTER_ON_TWO, "of": {"devices": devices, "strategy": "data_parallel"}}
    (found,) = judged(run, claim(check).model_copy(update={"scope": Scope(peer_to_peer=False)}))
    assert (found.verdict, found.hindrance) == (verdict, "other hardware" if devices == 2 else "")


@pytest.mark.parametrize(("by_nvml", "by_cuda", "gib"), [(11264, 24576, 11), (None, 124928, 122), (None, None, None)])
def test_where_nvml_states_no_memory_cuda_does(
    tmp_path: Path, by_nvml: int | None, by_cuda: int | None, gib: float | None
) -> None:
    run = SyntheticRun(tmp_path / "run")
    run.machine = add_record(run.directory, "machine", {**machine(), "gpus": [{"name": "x", "memory_mib": by_nvml}]})
    reported = {"flags": {"threads": 2, **({"cuda_memory_mib": by_cuda} if by_cuda else {})}}
    run.add(training_case(16), TORCH, steady_samples(16, [0.1] * 4), device="x", reported=reported)
    (found,) = measured_findings(Evidence([run.finish()], (), WORDS))
    assert found.gpu_memory_gib == gib


def _scope(above: float, below: float) -> Scope:
    return Scope(gpu_memory_gib=Bounds(above=above, below=below))


def test_a_claim_nobody_can_test_says_so(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add_steps(run, TORCH, 0.1)
    (found,) = judged(run, claim(about=(), untestable={"en": "It takes a TPU."}))
    assert (found.verdict, found.hindrance, found.subject) == ("not tested", "untestable", None)


def test_the_claims_of_a_report_are_one_family(tmp_path: Path) -> None:
    """Alone, a p of 0.002 is a verdict at the first look; beside others that say nothing it is none."""
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    add_steps(run, TORCH, 0.1)
    add_steps(run, TORCH, 0.0944, devices=2, strategy="data_parallel")
    slightly = claim({**FASTER_ON_TWO, "hold": {"below": 1.0}, "direction": {"below": 1.0}})
    (alone,) = judged(run, slightly)
    nothing = claim(
        {**FASTER_ON_TWO, "hold": {"above": 0.965, "below": 0.975}, "direction": {"above": 0.965, "below": 0.98}}
    )
    several = judged(run, slightly, *(nothing.model_copy(update={"id": f"b{number}"}) for number in range(4)))
    assert isinstance(alone.outcomes[0], CheckResult)
    p = alone.outcomes[0].p_hold
    assert 0.000625 < p < alone.level == 0.003125
    assert alone.verdict == "reproduced"
    assert {one.verdict for one in several} == {"inconclusive"}


def own(source_name: str) -> dict[tuple[str, str], tuple[str | None, list[float]]]:
    """Of a published source: by claim and hardware the verdict on its own numbers, and what they come to."""
    (wanted,) = [one for one in read_sources(PUBLISHED, WORDS, tables=False) if one.name == source_name]
    return {
        (one.claim.id, one.hardware): (
            one.verdict,
            [outcome.shown(outcome.summary.value) for outcome in one.outcomes if outcome.summary],
        )
        for one in by_printed_numbers([wanted])
    }


def test_four_towers_are_not_four_times_as_fast_by_their_own_logs() -> None:
    found = own("towers-titanx")
    assert found["b", "titan-x"] == ("direction only", [pytest.approx(2500.2 / 764.6)])
    verdict, (distinct,) = found["b-distinct", "titan-x"]
    assert (verdict, distinct) == ("reproduced", pytest.approx(625.05 / 764.6))


def test_one_cpu_is_about_three_times_as_fast_as_eight_gpus_by_the_sources_tables() -> None:
    found = own("conv2d-gce")
    assert found["a", "v100"] == ("reproduced", [pytest.approx(0.721646070 / 0.222)])
    assert found["a", "k80"] == ("reproduced", [pytest.approx(0.647247314 / 0.222)])


def test_the_cost_time_of_two_gpus_is_2_8_times_that_of_one() -> None:
    assert own("batch-throughput")["b", "unnamed-gpu"] == ("reproduced", [pytest.approx(0.15 / 0.054)])


def test_a_claim_is_held_against_the_lines_of_another_source() -> None:
    """Two GPUs against one: the costs and ideal speeds of least-squares lines through another table's epochs."""
    sources = [
        one for one in read_sources(PUBLISHED, WORDS, tables=False) if one.name in ("batch-throughput", "torch-2080ti")
    ]
    values = {
        (one.claim.id, one.hardware): [
            outcome.shown(outcome.summary.value) for outcome in one.outcomes if outcome.summary
        ]
        for one in by_printed_numbers(sources)
        if one.source == "batch-throughput" and not one.is_own
    }
    assert values["b", "rtx-2080ti"] == [pytest.approx(1.48, abs=0.005)]
    assert values["f", "rtx-2080ti"] == [pytest.approx(1.60, abs=0.005)]
    assert {hardware for _, hardware in values} == {"rtx-2080ti"}


def test_a_source_that_prints_no_numbers_is_not_judged_on_them() -> None:
    assert {verdict for verdict, _ in own("keras-channels-first").values()} == {None}


@pytest.mark.parametrize(
    ("others", "trials", "times", "is_said"),
    [
        (0.0, 3, 6.6, True),
        (50.0, 3, 6.6, False),
        (50.0, 3, 50.0, True),
        (10.0, 3, 6.6, True),
        (10.0, 3, 1.3, False),
        (0.0, 3, 1.3, True),
        (50.0, 6, 6.6, True),
    ],
)
def test_few_trials_beside_other_programs_decide_only_what_no_mode_of_them_reaches(
    tmp_path: Path, others: float, trials: int, times: float, is_said: bool
) -> None:
    """Seen: beside a program at full load on each core, three trials in a row were in a mode 6.6 times as slow."""
    run = SyntheticRun(tmp_path / "run")
    for environment, step_s in ((TF, 0.24), (TORCH, 0.24 * times)):
        for repetition in range(1, trials + 1):
            samples = steady_samples(16, [step_s * (1 + 0.003 * (repetition % 3))] * 8)
            run.add(training_case(16), environment, samples, repetition, others_cpu_percent=others)
    (judgement,) = judged(run, claim(TORCH_FASTER, about=()))
    assert judgement.verdict == ("contradicted" if is_said else "inconclusive")
