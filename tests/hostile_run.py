"""A run in which everything that has a name has one that nobody wants."""

from pathlib import Path

from tests.synthetic_run import (
    TF,
    TORCH,
    SyntheticRun,
    add_record,
    conv2d_case,
    steady_samples,
    training_case,
)

HOSTILE = (
    "</script><script>alert(1)</script> <!--<script> \"'><img src=x onerror=alert(1)> | `code` [link](javascript:x)"
    "\x00\u202eevil\nnext &amp; שלום {{ 7 * 7 }} " + "x" * 10_000
)


def hostile_run(path: Path) -> SyntheticRun:
    """Hostile: engine, profile, arguments, environment, packages, machine, metrics, phases, devices, and a reason."""
    run = SyntheticRun(path, engine=HOSTILE, profile=HOSTILE, arguments={"name": HOSTILE, HOSTILE: 1})
    run.environments[TF] = add_record(run.directory,
        "environment",
        {"name": HOSTILE, "title": HOSTILE, "packages": {HOSTILE: HOSTILE}, "versions": {HOSTILE: HOSTILE},
         "base": {"used": HOSTILE, "digest": ""}, "substitutions": [{"asked": HOSTILE, "used": HOSTILE}]},
    )  # fmt: skip
    run.machine = add_record(run.directory, "machine", {"cpu": {"model": HOSTILE}, "gpus": [{"name": HOSTILE}]})
    run.add(conv2d_case(), TF, status="failed", reason=HOSTILE)
    metrics = [(HOSTILE.replace("\x00", ""), 1.0, HOSTILE.replace("\x00", ""))]
    phases = [{"name": HOSTILE, "begin_s": 0.0, "end_s": 2.0}]
    ticks = [{"elapsed_s": second, "device": HOSTILE, "utilisation_percent": 50} for second in (0, 1, 2)]
    for environment in (TF, TORCH):
        for batch_size in (16, 32):
            samples = steady_samples(batch_size, [0.1] * 4)
            run.add(training_case(batch_size), environment, samples, metrics=metrics, phases=phases, telemetry=ticks)
    return run
