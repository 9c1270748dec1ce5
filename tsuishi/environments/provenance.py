"""Makes the records of an environment and of a workload's code, which a reader needs to judge a result.

And finds what was learnt on the machine of a record.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tsuishi.base.checkout import Checkout
from tsuishi.base.files import sha256_of
from tsuishi.engines import host, venv
from tsuishi.engines.host import HostEngine
from tsuishi.engines.interface import Built
from tsuishi.engines.venv import VenvEngine
from tsuishi.environments.self_reports import SelfReport
from tsuishi.machine.description import machine_record
from tsuishi.machine.gpus import Nvml
from tsuishi.machine.history import History
from tsuishi.results.records import EnvironmentRecord, MachineRecord, WorkloadRecord
from tsuishi.results.same_machine import is_like
from tsuishi.specs.debian import apt_lock
from tsuishi.specs.environment import ANY, Environment
from tsuishi.specs.experiment import ScriptOrder


def environment_record(built: Built, report: SelfReport, confinement: Mapping[str, Any]) -> EnvironmentRecord:
    """The record of an environment: its spec, its build, its report about itself, and how its engine confines it."""
    environment = built.environment
    return EnvironmentRecord(
        name=environment.name,
        title=environment.title,
        framework=environment.framework if environment.framework != ANY else report.framework or ANY,
        family=environment.family or None,
        released=environment.released,
        pinned=environment.pinned,
        spec_id=built.spec_id,
        realised_id=built.realised_id,
        lock_sha256=environment.lock_sha256 if environment.pinned else None,
        engine=built.engine,
        engine_version=built.engine_version,
        **built.details,
        **confinement,
        python=report.python,
        versions=report.versions,
        cuda=report.cuda,
        cudnn=report.cudnn,
        cuda_usable=bool(report.flags.get("cuda_usable")),
        packages=dict(sorted(report.packages.items())),
        sbom=report.sbom,
        command_prefix=[Path(part).name for part in built.python],  # the folder may name a user
    )


def is_asked(record: EnvironmentRecord, environment: Environment, checkout: Checkout) -> bool:
    """Whether the record is of an environment that was made from this specification, these locks and this template."""
    recipes = {VenvEngine.name: venv.RECIPE, HostEngine.name: host.RECIPE}
    recipe = recipes.get(record.engine or "") or checkout.dockerfile.read_text(encoding="utf-8")
    return environment.spec_id(recipe) == record.spec_id


def asked_files(checkout: Checkout, name: str) -> dict[str, Path]:
    """Spec, locks and template of an environment, by their place in a checkout. They may not exist."""
    spec = checkout.images / f"{name}.toml"
    parts = (spec, spec.with_suffix(".lock"), apt_lock(spec), checkout.dockerfile)
    return {part.relative_to(checkout.root).as_posix(): part for part in parts}


def workload_record(workloads: Path, workload: str, script: ScriptOrder | None = None) -> WorkloadRecord:
    """The record of a trial's code: the experiment, and a hash of every program and network of the workloads.

    The files of a script have paths relative to that folder: it lies beside the suites.
    """
    paths = sorted([*workloads.rglob("*.py"), *workloads.glob("networks/*.json")])
    files = {path.relative_to(workloads).as_posix(): sha256_of(path) for path in paths}
    for file in script.files if script else ():
        files[f"../{file.path}"] = file.sha256
    made = WorkloadRecord(workload=workload, files=files)
    if not (script and script.data):
        return made
    return made.model_copy(update={"data": {each.path: each.sha256 for each in script.data}})


def history_of_machine(cache: Path, machine: str, nvml: Nvml) -> History:
    """What was learnt on this machine, also before its system was updated. machine: the id of its record."""
    here = MachineRecord.model_validate(machine_record(nvml))
    return History(cache, machine, here.content(), lambda other: is_like(here, other))
