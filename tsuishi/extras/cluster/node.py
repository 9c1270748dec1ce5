"""`python -m tsuishi.extras.cluster.node FOLDER`: a task of an array runs its trial on its node, and commits it.

It builds nothing and fetches nothing. What it writes is the folder of its trial, and the record of its machine. Before
the trial it ends the processes that killed tasks have left on its node.
"""

import errno
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from tsuishi.base import exclusion, owner
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.processes import Process
from tsuishi.engines.interface import Built, Launch, Starter
from tsuishi.engines.subprocesses import ChildProcess
from tsuishi.environments.engine_choice import Engines
from tsuishi.environments.entry import Ready
from tsuishi.extras.cluster.slurm import AT_THE_LIBRARY, NoAnswer, Slurm, variables
from tsuishi.extras.cluster.submission import Submission, read
from tsuishi.machine.description import machine_record
from tsuishi.machine.gpus import Gpu, Nvml
from tsuishi.results import trial_folders
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import MachineRecord
from tsuishi.run.outcome import Outcome
from tsuishi.run.runner import MEMORY_FOR_TRIALS
from tsuishi.run.trial import Bench, TrialOrder, bury, run_trial
from tsuishi.run.trial_files import leave_empty
from tsuishi.specs.environment import find_environment
from tsuishi.specs.statuses import FAILED

# Seconds for processes of an earlier job to end, and between two looks.
_OTHERS_END_IN_S, _TICK_S = 30.0, 0.5
# Seconds after the first node has ended until Slurm ends the others.
_OTHER_NODES_END_IN_S = 20
_MEMBER = "tsuishi.extras.cluster.member"
# srun is a process of the trial on this node. Other nodes do not know its runner: processes there have their own mark.
_WITHOUT_MARK = ("/usr/bin/env", "-u", owner.MARK)


@dataclass(frozen=True)
class ForeignStarter:
    """A Starter that runs a command, by which Slurm starts the engine on each node; in all else it is `own`."""

    own: Starter
    command: Sequence[str]
    variables: Mapping[str, str]

    def start(self, built: Built, launch: Launch) -> Process:
        """Run the command, whose output is that of the program."""
        return ChildProcess(self.command, self.variables, is_workload=False)

    def confinement(self, python: str) -> Mapping[str, Any]:
        return self.own.confinement(python)

    def why_no_gpus(self, gpus: Sequence[Gpu]) -> str:
        return self.own.why_no_gpus(gpus)

    def gpu_remedy(self) -> str:
        return self.own.gpu_remedy()

    def inside(self, path: Path, place: str) -> str:
        return self.own.inside(path, place)


def run_task(folder: Path, index: int) -> None:
    """Run the trial of a task. Raises UserError where the folder holds no submission of this user."""
    submission = read(folder)
    order = submission.orders[index]
    run = RunDirectory(folder.parents[1])
    if (run.trials / str(order.id)).exists():
        return  # Slurm started a task again that had committed its trial
    nvml = Nvml()
    with ExitStack() as alone:
        try:
            machine = run.add(MachineRecord.model_validate(machine_record(nvml)))
            order = order.model_copy(update={"machine_record": machine})
            order, bench = prepared(run, submission, order, nvml)
            lock(alone, order)
            sweep(submission)
            if order.nodes > 1:
                bench = _across_nodes(bench, folder, index, order.nodes)
        except UserError as refused:
            place = trial_folders.begin(run.trials, order.id, _writer())
            leave_empty(place)
            bury(order, place, Outcome(FAILED, f"on {_node()}: {refused}"))
        else:
            try:
                run_trial(order, run.trials, bench, lambda phase: None)
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise
                trial_folders.settle(run.trials)  # another task has committed the trial meanwhile


def stop_on_sigterm() -> None:
    """Let SIGTERM, which comes before SIGKILL where Slurm ends a job, raise SystemExit: started processes are stopped.

    No row is written then: the submitting side knows from Slurm why the job ended.
    """

    def stop(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # Slurm may send it twice: the second must not interrupt the stop
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, stop)


def sweep(submission: Submission) -> None:
    """End the processes of killed tasks on this node, in any engine, once it is locked, as far as this is possible."""
    with suppress(UserError):
        Engines(submission.settings_for(None), Checkout(submission.checkout)).sweep()


def lock(alone: ExitStack, order: TrialOrder) -> None:
    """Lock the GPUs of a trial, or this node. Raises UserError where another call measures on it all the time."""
    for part in [f"node {_node()} GPU {gpu.id}" for gpu in order.gpus] or [f"node {_node()}"]:
        _enter(alone, part)


def _enter(alone: ExitStack, part: str) -> None:
    """Lock a part of this node. A process of the previous job may still be ending.

    Raises UserError where another call measures on it all the time.
    """
    until = time.monotonic() + _OTHERS_END_IN_S
    while True:
        try:
            alone.enter_context(exclusion.machine(part))
            return
        except UserError:
            if time.monotonic() > until:
                raise
            time.sleep(_TICK_S)


def prepared(run: RunDirectory, submission: Submission, given: TrialOrder, nvml: Nvml) -> tuple[TrialOrder, Bench]:
    """The order with this node's GPUs and memory, and the bench. Raises UserError where the node offers too little."""
    order = given.model_copy(update={"gpus": _gpus(nvml, len(given.gpus)), "memory_bytes": _memory_bytes(submission)})
    checkout = Checkout(submission.checkout)
    ready = _entered(run, submission, order, checkout)
    return order, Bench(ready, checkout.workloads, nvml, submission.data, _writer(), beside=beside)


def _entered(run: RunDirectory, submission: Submission, order: TrialOrder, checkout: Checkout) -> Ready:
    """The order's environment, built before: it is searched for and compared, not examined again.

    Raises UserError where this node does not have it.
    """
    record = run.environment(order.environment_record or "")
    environment = find_environment(checkout.images, order.id.environment)
    if environment is None:
        raise UserError(f"images/ has no {order.id.environment} here: all nodes need the checkout of the run")
    engine = Engines(submission.settings_for(record.engine), checkout).chosen_for(environment)
    built = engine.find(environment)
    if built is None:
        where = "the cache has to lie on a file system that all nodes share, or the image in each node's engine"
        raise UserError(f"{environment.name} is not here: {where}")
    if environment.pinned and built.realised_id != record.realised_id:
        raise UserError(f"{environment.name} is {built.realised_id} here, and the run has {record.realised_id}")
    return Ready(environment, engine.starter, built, record)


def beside() -> list[str]:
    """In a job of Slurm: the other jobs on this node, without their owners."""
    try:
        jobs = Slurm().neighbours(_node(), os.environ["SLURM_JOB_ID"])
    except (UserError, NoAnswer):
        return ["unknown: Slurm did not say which jobs run on the node"]
    return [f"job {job} of {cpus} CPUs{f' and {gres}' if gres else ''}" for job, cpus, gres in jobs]


def _gpus(nvml: Nvml, needed: int) -> tuple[Gpu, ...]:
    if needed > len(nvml):
        why = f" ({nvml.why_not})" if nvml.why_not else ""
        raise UserError(f"the trial needs {needed} GPUs, and its job has {len(nvml)}{why}: ask for more with --gres")
    return tuple(nvml.gpus[:needed])


def _memory_bytes(submission: Submission) -> int:
    """The memory for the trial: as the settings say, else most of the job's memory; a job without a limit has all."""
    given = submission.settings_for(None).memory_gib
    job_mib = int(os.environ.get("SLURM_MEM_PER_NODE") or 0)
    total = job_mib << 20 or psutil.virtual_memory().total
    return int(given * (1 << 30) if given else total * MEMORY_FOR_TRIALS)


def _node() -> str:
    return os.environ.get("SLURMD_NODENAME") or os.uname().nodename


def _writer() -> str:
    """Distinguishes this task from all others, also from its own earlier start, which may still be alive."""
    return f"{os.environ['SLURM_JOB_ID']}.{os.environ.get('SLURM_RESTART_COUNT', '0')}"


def _across_nodes(bench: Bench, folder: Path, index: int, nodes: int) -> Bench:
    """What this node offers to a trial over several nodes: task `index` of the submission in `folder`.

    srun starts `member` on each node, and prints its output. Each node makes its own command for the trial, as its
    paths and GPUs may differ.
    """
    of_job = {name: value for name, value in os.environ.items() if name.startswith("SLURM")}
    member = (sys.executable, "-m", _MEMBER, str(folder), str(index), str(_free_port()))
    command = [*_on_each_node(nodes), *_WITHOUT_MARK, *member]
    starter = ForeignStarter(bench.ready.starter, command, {**variables(os.environ), **of_job})
    return replace(bench, ready=replace(bench.ready, starter=starter))


def _on_each_node(nodes: int) -> list[str]:
    """The beginning of a command that Slurm runs once on each node of this job, with all that the job has there."""
    return [
        "/usr/bin/env",
        "srun",
        f"--nodes={nodes}",
        f"--ntasks={nodes}",
        "--ntasks-per-node=1",
        "--cpu-bind=none",
        AT_THE_LIBRARY,
        "--mem=0",
        "--export=ALL",
        f"--wait={_OTHER_NODES_END_IN_S}",
    ]


def _free_port() -> int:
    """A port of this node, the first node, where the processes meet."""
    with socket.socket() as free:
        free.bind(("", 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    stop_on_sigterm()
    run_task(Path(sys.argv[1]), int(os.environ["SLURM_ARRAY_TASK_ID"]))
