"""Step 2: parity on the device: each network in each precision, layout and way to run, against NumPy in float64.

The bounds, by precision, are those of suites/workloads/experiments/parity.py, which ends a trial that is outside.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.gpu import cases
from benchmarks.gpu.findings import Finding, judged, unsupported
from benchmarks.gpu.kit import Kit, trials_of

# With --dry left out: its compiler takes half a minute.
COMPILED = {"execution": "compiled"}
# What differs from FP32 without TF32, natively laid out and run.
MODES: tuple[dict[str, str], ...] = (
    {},
    {"precision": "tf32"},
    {"precision": "amp_bf16"},
    {"precision": "amp_fp16"},
    {"layout": "channels_last"},
    COMPILED,
    {"execution": "cuda_graph"},
)
_ERRORS = ("logits_relative_error", "loss_relative_error", "gradient_relative_error")
_WAYS = ("precision", "layout", "execution")


def usual(kit: Kit) -> Iterator[Finding]:
    """Every network as it usually runs, and the smallest convolutional network in every mode."""
    groups: list[Mapping[str, Any]] = [{"model": ["cnn10", "vgg_small", "mlp"]}]
    chosen = [mode for mode in MODES[1:] if not kit.dry or mode != COMPILED]
    groups += [{"model": "cnn10", **mode} for mode in chosen]
    yield from checked(kit, "kit_parity", groups)


def of_others(kit: Kit) -> Iterator[Finding]:
    """The other small networks in every mode."""
    groups = [{"model": ["vgg_small", "mlp"], **mode} for mode in MODES[1:]]
    yield from checked(kit, "kit_parity_others", groups)


def of_the_large(kit: Kit) -> Iterator[Finding]:
    """The large network in every mode; its reference takes NumPy some ten seconds."""
    yield from checked(kit, "kit_parity_large", [{"model": "wrn28_10", "batch_size": 2, **mode} for mode in MODES])


def checked(kit: Kit, name: str, groups: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    text = cases.suite("parity of the kit", "parity", cases.TRAINING, groups, cases.SHORT)
    for trial in trials_of(kit.measure(name, text)):
        yield of_trial(trial)


def of_trial(trial: Mapping[str, Any]) -> Finding:
    """What the trial of a case of parity says: its errors, what is outside of its bounds, or why it cannot run."""
    axes = trial["axes"]
    ways = [str(axes[way]) for way in _WAYS if axes[way] not in ("native", "fp32")]
    what = f"parity of {axes['model']}, {', '.join(ways) or 'fp32'}"
    if trial["status"] == "unsupported":
        return unsupported(what, trial["reason"])
    errors = [f"{name.partition('_')[0]} {trial['metrics'][name]:.1e}" for name in _ERRORS if name in trial["metrics"]]
    if trial["status"] != "ok":
        return judged(what, False, f"{trial['status']}: {trial['reason']}; {', '.join(errors) or 'no errors known'}")
    return judged(what, len(errors) == len(_ERRORS), f"relative errors: {', '.join(errors)}, within their bounds")
