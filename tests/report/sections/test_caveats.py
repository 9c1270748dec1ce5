"""What is said at the top of a suite's section."""

from pathlib import Path

from tests.report.compared import compared, evidence_of
from tests.synthetic_run import TF, SyntheticRun, add_record, machine, steady_samples, training_case
from tsuishi.report.parts.blocks import Bullets
from tsuishi.report.sections.caveats import of_runs, of_suite
from tsuishi.report.sections.load import disturbances


def test_trials_by_other_code_than_the_first_are_counted(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    case = training_case(16)
    for repetition in (1, 2):
        run.add(case, TF, steady_samples(16, [0.1] * 4), repetition)
    assert of_suite(evidence_of(run), "multi_gpu_scaling") == ()
    changed = add_record(run.directory, "workload", {"workload": "training", "files": {"timing.py": "1" * 64}})
    run.add(case, TF, steady_samples(16, [0.2] * 4), 3, workload_record=changed)
    assert of_suite(evidence_of(run), "multi_gpu_scaling") == (
        "Trials ran 2 versions of the workload's code (2, 1 trials): what differs between them may be the code's.",
    )


def warnings(run: SyntheticRun) -> list[str]:
    """What a reader has to know before any number."""
    blocks = [block for view in of_runs(evidence_of(run)) for block in view.blocks if isinstance(block, Bullets)]
    return [item for block in blocks for item in block.items if "unpinned" not in item and "stands in" not in item]


def test_trials_of_a_machine_stand_together_and_what_changed_between_them_is_said(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    records = [add_record(run.directory, "machine", {**machine(), "kernel": kernel}) for kernel in ("6.1.0", "6.2.0")]
    for repetition in (1, 2, 3):
        record = records[repetition > 1]
        run.add(training_case(16), TF, steady_samples(16, [0.1] * 4), repetition, machine_record=record)
    evidence = evidence_of(run)
    assert evidence.environments == [TF]
    (warning,) = warnings(run)
    assert warning.startswith("Machine 1: kernel was not the same for all trials: ")
    assert {"6.1.0 (1 trials)", "6.2.0 (2 trials)"} == {
        *warning.removesuffix(".").partition("trials: ")[2].split(" and ")
    }


def test_trials_with_fewer_cores_stand_apart(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for repetition in (1, 2):
        limited = add_record(run.directory, "machine", {**machine(), "limits": {"cores": repetition, "nice": 0}})
        run.add(training_case(16), TF, steady_samples(16, [0.1] * 4), repetition, machine_record=limited)
    assert evidence_of(run).environments == [f"{TF} on machine 1", f"{TF} on machine 2"]


def test_other_programs_are_said_with_the_answers_where_they_took_cores(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for repetition, share in ((1, None), (2, 0.0), (3, 5.0)):
        run.add(training_case(16), TF, steady_samples(16, [0.1] * 4), repetition, others_cpu_percent=share)
    assert list(disturbances(evidence_of(run))) == []
    for repetition, share in ((1, 1.0), (2, 48.4)):
        run.add(training_case(32), TF, steady_samples(32, [0.1] * 4), repetition, others_cpu_percent=share)
    assert list(disturbances(evidence_of(run))) == [
        "In 1 of 5 trials other programs took more than 5 % of the cores, 48 % at most: their times may be longer than "
        "those of an idle machine."
    ]
    shown = compared(run)
    marks = {shown.axes[case_id]["batch_size"]: shown.marks(case_id, TF) for case_id in shown.case_ids}
    assert marks == {16: [], 32: ["others took 48 %"]}
