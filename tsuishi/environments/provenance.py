"""Makes the records of an environment and of a workload's code, which a reader needs to judge a result."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tsuishi.base.files import sha256_of
from tsuishi.engines.interface import Built
from tsuishi.environments.self_reports import SelfReport
from tsuishi.results.records import EnvironmentRecord, WorkloadRecord
from tsuishi.specs.environment import ANY
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
