"""Checks whether this machine has everything for a run, and gives a remedy for each missing thing: `invoke doctor`."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tsuishi.base import units
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.engines import sandbox
from tsuishi.environments import strays
from tsuishi.environments.builder import Builder
from tsuishi.environments.engine_choice import machine_refusal
from tsuishi.machine.busy import shared_with, used_by_others
from tsuishi.machine.compatibility import gpu_refusal, why_on_cpu
from tsuishi.machine.disk import free_bytes
from tsuishi.machine.gpus import Nvml
from tsuishi.machine.interpreters import find_python, full_version, python_remedy
from tsuishi.specs.environment import Environment, open_refusal, read_environments

# With less free space, the builds of all default environments probably fail.
_COMFORTABLE_DISK_BYTES = 15e9
# AMD's number among the makers of PCI devices.
_AMD = "0x1002"


class MachineCheck(NamedTuple):
    """The state of something that a run may need, and the remedy where this is missing."""

    subject: str
    state: str
    remedy: str = ""


def examine(builder: Builder, nvml: Nvml, screen: Screen, *, every: bool = False) -> None:
    """Print a line for each thing that a run may need, the missing first, and for each that a killed call has left.

    every: a line for each environment, too.
    """
    images = builder.checkout.images
    environments = read_environments(images)
    machine = (*_tools(builder, nvml, environments), *_gpus(nvml), *_amd_gpus(), _disk(builder.settings.cache))
    for check in sorted((*machine, *_arrivals(builder, nvml, environments)), key=lambda check: not check.remedy):
        state = "missing" if check.remedy else "ok"
        screen.say(f"{state:7} {check.subject}: {check.state}{check.remedy and f'; {check.remedy}'}")
    for environment in environments if every else ():
        unknown = open_refusal(environment)
        refused = machine_refusal(environment) or gpu_refusal(environment, nvml, images, "auto", force=False)
        on_cpu = why_on_cpu(environment, nvml)
        where = f"would compute on the CPU: {on_cpu}" if on_cpu else "would compute on the GPU"
        state = "open" if unknown else "refused" if refused else "ok"
        reasons = "; ".join(filter(None, (unknown, refused))) or where
        lacks = "".join(f"; {each['used']} stands in for {each['asked']}" for each in environment.stand_ins)
        screen.say(f"{state:7} environment {environment.name}: {reasons}{lacks}")
    for stray in (found := strays.find(builder.engines, builder.settings)):
        screen.say(f"stray   {stray.what}")
    if any(stray.remove for stray in found):
        screen.say("`invoke doctor --remove-strays` removes what a killed call has left")


def remove_strays(builder: Builder, screen: Screen) -> None:
    """Remove what killed calls have left; a line for each."""
    removed = 0
    for what in strays.remove(builder.engines, builder.settings):
        screen.say(f"removed {what}")
        removed += 1
    screen.say(f"strays removed: {removed}")


def _tools(builder: Builder, nvml: Nvml, environments: Sequence[Environment]) -> Iterator[MachineCheck]:
    """Interpreters and engines."""
    yield MachineCheck("Python for tsuishi", ".".join(str(part) for part in sys.version_info[:3]))
    docker = builder.engines.docker
    try:
        answer = docker.availability()
        yield MachineCheck("Docker", answer.version or answer.reason, answer.remedy)
        if answer.usable and (why_not := docker.starter.why_no_gpus(nvml.gpus)):
            state, _, remedy = why_not.partition(": ")
            yield MachineCheck("GPUs in containers", state, remedy)
    except UserError as error:
        yield MachineCheck("Docker", str(error), "see above")
    walls = sandbox.described(sys.executable)
    remedy = f"{sandbox.remedy_for(walls)}; containers need none" if walls.startswith("none") else ""
    yield MachineCheck("sandbox for trials without a container", walls, remedy)
    for wanted in sorted({environment.python for environment in environments if environment.python}):
        python = find_python(wanted, builder.settings.pythons)
        if python:
            yield MachineCheck(f"CPython {wanted}", f"{full_version(python)} at {python}")
        else:
            state = "not found, which only the venv engine needs"
            yield MachineCheck(f"CPython {wanted}", state, python_remedy(wanted))


def _gpus(nvml: Nvml) -> Iterator[MachineCheck]:
    gpus = nvml.describe()
    if not gpus:
        remedy = f"everything runs on the CPU{nvml.remedy and f'; {nvml.remedy}'}"
        yield MachineCheck("GPU", f"none ({nvml.why_not or 'no device'})", remedy)
        return
    yield MachineCheck("NVIDIA driver", str(nvml.driver()))
    for gpu in gpus:
        yield MachineCheck(f"GPU {gpu['index']}", f"{gpu['name']}, compute capability {gpu['compute_capability']}")
        yield from _compute_mode(gpu)
    for question, error in nvml.unreadable.items():
        yield MachineCheck("NVML", f"the driver's answer to {question} cannot be read ({error}): records leave it out")
    for use in shared_with(nvml):
        yield MachineCheck("GPU", use)
    for device in nvml.gpus:
        if users := used_by_others(nvml, device):
            yield MachineCheck(f"GPU {device.index}", users, "free it, or choose others with --gpus")


def _arrivals(builder: Builder, nvml: Nvml, environments: Sequence[Environment]) -> Iterator[MachineCheck]:
    """Whether the GPUs arrive in an environment, of each engine that has one for GPUs: its framework is asked."""
    asked = set[str]()
    for environment in environments if len(nvml) else ():
        if "cuda" not in environment.accelerators or machine_refusal(environment):
            continue
        engine = builder.engines.chosen_for(environment)
        if engine.name in asked or not (built := engine.find(environment)):
            continue
        asked.add(engine.name)
        state, _, remedy = builder.why_no_gpus(engine, built, nvml.gpus).partition(": ")
        subject = f"GPUs in {environment.name} ({engine.name})"
        yield MachineCheck(subject, state or "its framework can use them", remedy)


def _compute_mode(gpu: Mapping[str, Any]) -> Iterator[MachineCheck]:
    """A line for a GPU that does not let every process in."""
    mode, subject = gpu.get("compute_mode"), f"compute mode of GPU {gpu['index']}"
    remedy = f"nvidia-smi -i {gpu['index']} -c DEFAULT, as root"
    if mode == "prohibited":
        yield MachineCheck(subject, "prohibited: CUDA starts on it for no process", remedy)
    elif mode and mode.startswith("exclusive"):
        state = f"{mode}: CUDA starts on it for one process at a time, and a second one fails as if it were in use"
        yield MachineCheck(subject, state)


def _amd_gpus(cards: Path = Path("/sys/class/drm")) -> Iterator[MachineCheck]:
    """A line for each GPU of AMD: the system names the maker of every card by its PCI number."""
    for vendor in sorted(cards.glob("card*/device/vendor")):
        if vendor.read_text(encoding="utf-8").strip() == _AMD:
            state = (
                "tsuishi does not measure on it: no environment holds code for ROCm, and telemetry is NVIDIA's (NVML)"
            )
            remedy = "everything runs on the CPU, or on GPUs of NVIDIA"
            yield MachineCheck(f"GPU of AMD ({vendor.parent.parent.name})", state, remedy)


def _disk(cache: Path) -> MachineCheck:
    free = free_bytes(cache)
    remedy = "" if free > _COMFORTABLE_DISK_BYTES else "free some, or move the cache (tsuishi.cache)"
    return MachineCheck("disk for the cache", f"{units.megabytes(free)} free at {cache}", remedy)
