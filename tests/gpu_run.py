"""Runs on two GPUs that nobody has: steps of made-up lengths, three trials a case."""

from typing import Any

from tests.synthetic_run import SyntheticRun, add_record, machine, steady_samples, training_case

GPU: dict[str, Any] = {"device": "RTX 2080 Ti", "simulated": False, "synthetic": False}
# Three trials that scatter by 1 %.
SCATTER = (0.99, 1.0, 1.01)


def two_gpus(run: SyntheticRun) -> SyntheticRun:
    gpus = [{"name": "RTX 2080 Ti", "memory_mib": 11264, "uuid": f"GPU-{number}"} for number in (0, 1)]
    run.machine = add_record(run.directory, "machine", {**machine(), "gpus": gpus})
    return run


def add_steps(run: SyntheticRun, environment: str, step_s: float, trials: int = 3, **given: Any) -> None:
    fields = {**GPU, **given.pop("fields", {})}
    case = training_case(given.pop("batch_size", 128), **given)
    for repetition in range(1, trials + 1):
        samples = steady_samples(case.batch_size or 0, [step_s * SCATTER[repetition - 1]] * 8)
        run.add(case, environment, samples, repetition, **fields)
