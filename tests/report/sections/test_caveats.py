"""What is said at the top of a suite's section."""

from pathlib import Path

from tests.report.compared import evidence_of
from tests.synthetic_run import TF, SyntheticRun, add_record, steady_samples, training_case
from tsuishi.report.sections.caveats import of_suite


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
