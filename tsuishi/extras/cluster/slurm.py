"""Slurm's commands: an array is submitted, its tasks are asked for, and cancelled.

An array has a name of its own, which is known before Slurm knows the array: so other processes find every array, also
of a process that is killed while it submits. squeue answers for tasks that run or ended minutes ago, on every site;
sacct answers for older tasks, where the site keeps accounts.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tsuishi.base.errors import UserError
from tsuishi.base.settings import Settings
from tsuishi.extras.cluster.settings import of_cluster

# The option that starts a program where Python finds this library: on every node, from whatever folder.
AT_THE_LIBRARY = f"--chdir={Path(__file__).parents[3]}"
# A job of seconds may wait so long in the queue, and run so many minutes.
_IN_QUEUE_S, _MINUTES = 900.0, 2
# The type of a part of a GPU (MIG), as administrators name it: 1g.5gb, a100_3g.20gb.
_PART_OF_A_GPU = re.compile(r"\d+g\.\d+gb|\bmig\b", re.IGNORECASE)
# Slurm's own answer may take this many seconds, where its controller is busy.
_ANSWERS_IN_S = 100.0
_SQUEUE_FIELDS = "%j|%K|%T|%N|%r"
_SACCT_FIELDS = "JobName,JobID,State,NodeList"
_NO_ANSWER = re.compile(
    r"Unable to contact slurm controller|Socket timed out|Connection (refused|reset|timed out)|Zero Bytes|"
    r"communication|Insane message length",
    re.IGNORECASE,
)
# The variables of a job: as in a session on a node, without the secrets of the session that submits.
_VARIABLES = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_[A-Z]+|TZ|TMPDIR|LD_LIBRARY_PATH|PYTHONUTF8|XDG_(CONFIG|CACHE)_HOME|"
    r"DOCKER_(HOST|CONTEXT|CONFIG)|CUDA_HOME|CUDA_PATH|LOADEDMODULES|_LMFILES_|MODULEPATH|SLURM_CONF|SLURM_CLUSTERS|"
    r"SBATCH_[A-Z_]+"
)
# The states of a task that has ended (squeue(1), JOB STATE CODES).
_ENDED = (
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"),
    *("REVOKED", "TIMEOUT"),
)

# The states of a node that takes jobs, now or later (sinfo(1), NODE STATE CODES).
_TAKES_JOBS = ("allocated", "allocated+", "completing", "idle", "mixed", "planned", "reserved")


class NoAnswer(Exception):
    """Slurm's controller did not answer: it is restarted, say. Nothing is known about any job."""


class Task(NamedTuple):
    """A task of an array, by the array's name and the task's number in it, from 0."""

    array: str
    number: int


@dataclass(frozen=True)
class TaskState:
    """The state of a task, by Slurm's name. `node`: where it runs or ran; empty where it never did. `why`: it waits."""

    name: str
    node: str = ""
    why: str = ""

    @property
    def has_ended(self) -> bool:
        return self.name in _ENDED


def wanted(given: Settings) -> list[str]:
    """The options of sbatch and srun that name nodes and resources. Raises UserError for a part of a GPU."""
    own = of_cluster(given)
    if _PART_OF_A_GPU.search(own.slurm_gres):
        raise UserError(f"--gres {own.slurm_gres}: a part of a GPU (MIG), and only whole ones are measured")
    named = {
        "gres": own.slurm_gres,
        "partition": own.slurm_partition,
        "account": own.slurm_account,
        "constraint": own.slurm_constraint,
    }
    return [f"--{name}={value}" for name, value in named.items() if value]


class Slurm:
    """The Slurm that the commands in PATH talk to."""

    def most_tasks(self) -> int:
        """The most tasks of an array. Raises UserError where there is no Slurm, NoAnswer where it does not answer."""
        found = re.search(r"^MaxArraySize\s*=\s*(\d+)", self._ask("scontrol", "show", "config"), re.MULTILINE)
        return int(found[1]) if found else 1001

    def submit(self, name: str, options: Sequence[str], script: str) -> str:
        """Submit a batch script under a name. Returns the job's id. Raises UserError where Slurm refuses it."""
        said = self._ask("sbatch", "--parsable", f"--job-name={name}", *options, script=script)
        return said.strip().partition(";")[0]

    def states(self, arrays: Iterable[str]) -> dict[Task, TaskState]:
        """The tasks of these arrays that run, wait, or ended in the last minutes."""
        names = ",".join(arrays)
        options = ("--noheader", "--array", "--states=all", f"--name={names}", f"--format={_SQUEUE_FIELDS}")
        found = {}
        for line in self._ask("squeue", *options).splitlines():
            array, index, state, node, why = line.split("|", 4)
            if index.isdigit():
                found[Task(array, int(index))] = TaskState(state, "" if node.startswith("(") else node, why)
        return found

    def past_states(self, arrays: Iterable[str]) -> dict[Task, TaskState]:
        """The tasks of these arrays in the accounts of the last month; none where the site keeps no accounts."""
        options = ("--allocations", "--noheader", "--parsable2", "--starttime=now-30days")
        found = {}
        try:
            said = self._ask("sacct", *options, f"--name={','.join(arrays)}", f"--format={_SACCT_FIELDS}")
        except (UserError, NoAnswer):
            return {}
        for line in said.splitlines():
            array, job, state, node = line.split("|", 3)
            index = job.rpartition("_")[2]
            if index.isdigit():
                # "CANCELLED by 1000"
                found[Task(array, int(index))] = TaskState(state.split()[0], "" if node.startswith("None") else node)
        return found

    def gres(self, partition: str) -> list[str]:
        """The generic resources of the nodes of a partition, or of all nodes: `gpu:a100:4`, say."""
        of = [f"--partition={partition}"] if partition else []
        said = self._ask("sinfo", "--noheader", "--format=%G", *of)
        names = (name.partition("(")[0].strip() for line in said.splitlines() for name in line.split(","))
        return list(dict.fromkeys(name for name in names if name and name != "null"))

    def nodes(self, partition: str) -> int:
        """The number of nodes of a partition, or of all, that take jobs now or later."""
        of = [f"--partition={partition}"] if partition else []
        lines = [line.split() for line in self._ask("sinfo", "--noheader", "--format=%T %D", *of).splitlines()]
        return sum(int(count) for state, count in lines if state in _TAKES_JOBS)

    def neighbours(self, node: str, job: str) -> list[tuple[str, str, str]]:
        """The other jobs that run on a node: id, CPUs, and generic resources."""
        options = ("--noheader", "--states=RUNNING", f"--nodelist={node}", "--format=%A|%C|%b")
        jobs = [line.split("|") for line in self._ask("squeue", *options).splitlines()]
        return [(found, cpus, "" if gres == "N/A" else gres) for found, cpus, gres in jobs if found != job]

    def answer_of_a_node(self, options: Sequence[str], command: Sequence[str]) -> str:
        """The output of a command of seconds on a node. Raises NoAnswer where none ran it, UserError as others do."""
        job = ("--nodes=1", "--ntasks=1", f"--time={_MINUTES}", "--quiet", "--job-name=tsuishi-nodes")
        return self._ask("srun", *job, *options, *command, within_s=_IN_QUEUE_S)

    def cancel(self, arrays: Iterable[str], *, only_waiting: bool = False) -> None:
        """Cancel all tasks of these arrays, or those of them that wait."""
        states = ["--state=PENDING"] if only_waiting else []
        for array in arrays:
            self._ask("scancel", f"--name={array}", *states)

    def _ask(self, *command: str, script: str = "", within_s: float = _ANSWERS_IN_S) -> str:
        """The output of a command. Raises NoAnswer, and UserError where Slurm refuses or is not here."""
        try:
            done = subprocess.run(
                command,
                input=script,
                capture_output=True,
                text=True,
                errors="replace",
                env=variables(os.environ),
                timeout=within_s,
                check=False,
            )
        except FileNotFoundError:
            raise UserError(f"no {command[0]} here: --executor slurm needs a login node of a cluster") from None
        except subprocess.TimeoutExpired as silent:
            raise NoAnswer(f"{command[0]} gave no answer in {within_s:g} s") from silent
        if done.returncode:
            said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
            if _NO_ANSWER.search(said):
                raise NoAnswer(said)
            raise UserError(f"Slurm: {said}")
        return done.stdout


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that Slurm's commands get, and jobs from them."""
    return {name: value for name, value in environ.items() if _VARIABLES.fullmatch(name)}
