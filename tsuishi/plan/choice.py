"""The choice of a user, and the environments that this machine can use for it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.environments.builder import Builder
from tsuishi.machine.compatibility import accelerator_for, by_ptx, gpu_refusal, read_table
from tsuishi.machine.gpus import Nvml
from tsuishi.specs.environment import Accelerator, Environment, default_environments, ends, named_environments
from tsuishi.specs.suite import Profile


@dataclass(frozen=True)
class Choice:
    """The choice of a user. No names of environments or suites means the default ones."""

    environments: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    profile: Profile = "quick"
    repetitions: int | None = None
    timeout_s: float | None = None
    seed: int = 0
    accelerator: str = "auto"
    # Whether environments are used on GPUs that are newer than their code, after a numerical self-check.
    force: bool = False
    # The most nodes of a case.
    nodes: int = 1
    # On a cluster, the most GPU-hours that its jobs may take; None without a limit.
    gpu_hours: float | None = None


@dataclass(frozen=True)
class UsableEnvironments:
    """The environments that can be made here. `left_out`: why other environments cannot, by name."""

    environments: tuple[Environment, ...]
    left_out: dict[str, str]

    @property
    def reasons(self) -> str:
        """Every environment that is left out, with why, in a line."""
        return "; ".join(f"{name}: {reason}" for name, reason in self.left_out.items())


def usable(
    builder: Builder, choice: Choice, nvml: Nvml, asked: Iterable[Environment], to_run: bool
) -> UsableEnvironments:
    """Which of these environments can be made here and, with `to_run`, run."""
    chosen, left_out = [], {}
    for environment in asked:
        refusal = builder.engines.refusal(environment)
        if not refusal and (to_run or not choice.environments):
            refusal = _gpu_refusal(builder.checkout, choice, nvml, environment)
        if not refusal and to_run:
            refusal = _why_no_gpus(builder, choice, nvml, environment)
        if refusal:
            left_out[environment.name] = refusal
        else:
            chosen.append(environment)
    return UsableEnvironments(tuple(chosen), left_out)


def choose(builder: Builder, choice: Choice, nvml: Nvml, to_run: bool = True) -> UsableEnvironments:
    """The named environments; without names, of the defaults that fit this machine the ends of each framework.

    `to_run`: this machine must also be able to run them as the user asked. Raises UserError where a named environment
    cannot be used: it is never left out silently.
    """
    asked = asked_environments(builder.checkout.images, choice, nvml)
    found = usable(builder, choice, nvml, asked, to_run)
    if not choice.environments:
        native, compiled = _native_first(builder.checkout, choice, nvml, found.environments)
        found = UsableEnvironments(ends(native), {**found.left_out, **compiled})
    for name, refusal in found.left_out.items():
        if choice.environments:
            raise UserError(f"{name} cannot be used here: {refusal}")
    if not found.environments:
        reasons = found.reasons or "images/ marks none as default"
        raise UserError(f"no environment can be used here: {reasons}")
    made: dict[tuple[str, str], str] = {}
    for environment in found.environments:
        name, engine = environment.name, builder.engines.chosen_for(environment).name
        if same := made.get((environment.made_as, engine)):
            raise UserError(f"{same} and {name} are one environment here, made by {engine}: name only one")
        made[environment.made_as, engine] = name
    return found


def asked_environments(images: Path, choice: Choice, nvml: Nvml) -> tuple[Environment, ...]:
    """The named environments; without names, the defaults of machines like this. Raises UserError for a wrong name."""
    if choice.environments:
        return named_environments(images, choice.environments)
    return default_environments(images, computing(choice, nvml))


def fitting_defaults(checkout: Checkout, choice: Choice, nvml: Nvml) -> tuple[Environment, ...]:
    """The environments that runs use here without being asked, if every engine can make them."""
    default = default_environments(checkout.images, computing(choice, nvml))
    fitting = [each for each in default if not each.open and not _gpu_refusal(checkout, choice, nvml, each)]
    return ends(_native_first(checkout, choice, nvml, fitting)[0])


def _native_first(
    checkout: Checkout, choice: Choice, nvml: Nvml, fitting: Iterable[Environment]
) -> tuple[list[Environment], dict[str, str]]:
    """The environments with native code for the GPUs here, and why the others wait to be named; all where none has it.

    A driver compiles PTX when it is first used, for up to half an hour: no time of a run is reserved for that.
    """
    gpus = nvml.describe() if computing(choice, nvml) == "cuda" else []
    table = read_table(checkout.images)
    compiled = {each.name: reason for each in fitting if (reason := by_ptx(each, gpus, table))}
    native = [each for each in fitting if each.name not in compiled]
    if not native:
        return [*fitting], {}
    return native, {
        name: f"{reason}, for up to half an hour: name it (--env {name})" for name, reason in compiled.items()
    }


def why_not_run(builder: Builder, choice: Choice, nvml: Nvml, environment: Environment) -> str:
    """Why an environment cannot run on the GPUs here as the user asked; empty where it can. It must be makeable."""
    return _gpu_refusal(builder.checkout, choice, nvml, environment) or _why_no_gpus(builder, choice, nvml, environment)


def _gpu_refusal(checkout: Checkout, choice: Choice, nvml: Nvml, environment: Environment) -> str:
    return gpu_refusal(environment, nvml, checkout.images, choice.accelerator, choice.force)


def _why_no_gpus(builder: Builder, choice: Choice, nvml: Nvml, environment: Environment) -> str:
    """Why the engine of an environment passes it no GPUs; empty where it does, and where it computes on the CPU."""
    if not nvml.are_here or accelerator_for(environment, nvml, choice.accelerator) == "cpu":
        return ""
    return builder.engines.chosen_for(environment).starter.why_no_gpus(nvml.gpus)


def computing(choice: Choice, nvml: Nvml) -> Accelerator:
    """The accelerator that decides which environments are the default ones on this machine."""
    return "cuda" if len(nvml) and choice.accelerator != "cpu" else "cpu"
