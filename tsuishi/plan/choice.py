"""What a user asked for, and which environments can be used for it here."""

from dataclasses import dataclass

from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.environments.builder import Builder
from tsuishi.machine.accelerators import accelerator_for, gpu_refusal
from tsuishi.machine.gpus import Nvml
from tsuishi.specs.environment import Accelerator, Environment, select_environments
from tsuishi.specs.suite import Profile


@dataclass(frozen=True)
class Choice:
    """What a user asked for, names as given; empty means the default."""

    environments: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    profile: Profile = "quick"
    repetitions: int | None = None
    timeout_s: float | None = None
    seed: int = 0
    accelerator: str = "auto"
    # Use environments on GPUs newer than their code, after a numerical self-check.
    force: bool = False


@dataclass(frozen=True)
class UsableEnvironments:
    """The environments that can be made here, and why the others cannot."""

    environments: tuple[Environment, ...]
    left_out: dict[str, str]


def choose(builder: Builder, checkout: Checkout, choice: Choice, nvml: Nvml, to_run: bool = True) -> UsableEnvironments:
    """The named environments, or every default one this machine can make and, if they are `to_run`, use as asked.

    Raises UserError where a named one cannot be: what was asked for by name is never left out silently.
    """
    chosen, left_out = [], {}
    for environment in select_environments(checkout.images, choice.environments, computing(choice, nvml)):
        refusal = builder.engines.refusal(environment)
        if to_run and not refusal:
            refusal = why_not_run(builder, checkout, choice, nvml, environment)
        if refusal and choice.environments:
            raise UserError(f"{environment.name} cannot be used here: {refusal}")
        if refusal:
            left_out[environment.name] = refusal
        else:
            chosen.append(environment)
    if not chosen:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise UserError(f"no environment can be used here: {reasons or 'images/ marks none as default'}")
    return UsableEnvironments(tuple(chosen), left_out)


def why_not_run(builder: Builder, checkout: Checkout, choice: Choice, nvml: Nvml, environment: Environment) -> str:
    """Why an environment that can be made cannot be run on the GPUs here as asked; empty where it can."""
    refusal = gpu_refusal(environment, nvml, checkout.images, choice.accelerator, choice.force)
    if refusal or accelerator_for(environment, nvml, choice.accelerator) == "cpu":
        return refusal
    return builder.engines.chosen_for(environment).starter.why_no_gpus(nvml.gpus)


def computing(choice: Choice, nvml: Nvml) -> Accelerator:
    """What this machine is taken to compute on, where environments are not chosen by name."""
    return "cuda" if len(nvml) and choice.accelerator != "cpu" else "cpu"
