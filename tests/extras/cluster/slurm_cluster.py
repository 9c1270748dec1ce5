"""A Slurm cluster of two nodes on this machine: munge, a controller and two slurmd, all in one folder.

The nodes share this machine's cores, so nothing that is measured here says how fast a node is.
"""

import os
import shutil
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.extras.cluster.programs import PATH, Programs, free_port, wait_for
from tests.extras.cluster.slurm_accounting import Accounting

NODES = ("n1", "n2")
# Of Debian's packages slurm-wlm and munge.
_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
_GRES = "Gres=gpu:fake:2"
# So small that a run of a few trials needs several arrays.
MAX_ARRAY_SIZE = 6


def why_not() -> str:
    """What is missing for a cluster; empty where nothing is."""
    if os.geteuid() != 0:
        return "no right to start slurmd"
    lacking = [program for program in _PROGRAMS if not shutil.which(program, path=PATH)]
    return f"no {', '.join(lacking)} (Debian's packages slurm-wlm and munge)" if lacking else ""


class SlurmCluster:
    """The programs of a cluster, and its folder. `environ`: the variables with which Slurm's commands find it.

    keeps_accounts: with slurmdbd, on a MariaDB; then the controller forgets ended jobs in seconds.
    """

    def __init__(self, folder: Path, *, keeps_accounts: bool = False, max_array_size: int = MAX_ARRAY_SIZE) -> None:
        self.conf = folder / "slurm.conf"
        self.environ = {"SLURM_CONF": str(self.conf), "PATH": PATH}
        self._folder = folder
        self._programs = Programs(folder, self.environ)
        self.command = self._programs.command
        self._accounting = Accounting(folder) if keeps_accounts else None
        for name in ("state", *(f"spool-{node}" for node in NODES)):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        more = f"{self._accounting.options}MinJobAge=2" if self._accounting else ""
        self.conf.write_text(_configuration(folder, max_array_size, more))
        # Slurm hands them out as it does GPUs, and looks only whether there is such a file.
        files = ("/dev/null", "/dev/zero")
        (folder / "gres.conf").write_text("".join(f"Name=gpu Type=fake File={file}\n" for file in files))

    def start(self) -> None:
        """Start everything, and wait until both nodes are idle."""
        given = {"key-file": "key", "socket": "socket", "pid-file": "pid", "seed-file": "seed"}
        files = [f"--{name}={self._folder}/munge.{end}" for name, end in given.items()]
        log = self._folder / "log" / "munged.log"
        self._programs.start("munged", "munged", "--foreground", "--force", f"--log-file={log}", *files)
        wait_for((self._folder / "munge.socket").exists)
        if self._accounting:
            self._accounting.start(self._programs)
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        self.await_idle()

    def start_controller(self) -> None:
        self._programs.start("slurmctld", "slurmctld", "-D", "-f", str(self.conf))

    def start_node(self, node: str) -> None:
        self._programs.start(node, "slurmd", "-D", "-N", node, "-f", str(self.conf))

    def stop_controller(self) -> None:
        """End the controller as an administrator does; it keeps its jobs on disk."""
        self._programs.end("slurmctld")

    def kill_node(self, node: str, *, power_cut: bool) -> list[int]:
        """Kill the slurmd of a node. With a power cut, also all that runs on the node. Returns the jobs' processes.

        Without a power cut the node's jobs go on, and only Slurm takes the node for dead: its network is gone, say.
        """
        self._programs.end(node, signal.SIGKILL)
        jobs = [process for process in psutil.process_iter() if _is_job_of(process, node)]
        families = [member for job in jobs for member in (job, *job.children(recursive=True))]
        if power_cut:
            for process in families:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        return [process.pid for process in families]

    def forget_jobs(self) -> None:
        """Lose all that runs and waits, and what the controller knew of it."""
        for node in NODES:
            self.kill_node(node, power_cut=True)
        self.stop_controller()
        self._programs.start("slurmctld", "slurmctld", "-D", "-c", "-f", str(self.conf))
        for node in NODES:
            self.start_node(node)
        self.await_idle()

    def restore(self) -> None:
        """Cancel all jobs, start again what was killed, and wait until both nodes are idle."""
        if "slurmctld" not in self._programs:
            self.start_controller()
        self.command("scancel", "--partition=main")
        for node in NODES:
            if node not in self._programs:
                self.start_node(node)
                self.command("scontrol", "update", f"NodeName={node}", "State=RESUME")
        self.await_idle()

    def await_idle(self) -> None:
        """Wait until nothing runs and both nodes answer."""
        wait_for(lambda: self.command("sinfo", "--noheader", "--format=%T %D", "--partition=main") == "idle 2")

    def stop(self) -> None:
        """End everything, jobs too."""
        for node in NODES:
            self.kill_node(node, power_cut=True)
        self._programs.end_all()


@contextmanager
def cluster(
    folder: Path, *, keeps_accounts: bool = False, max_array_size: int = MAX_ARRAY_SIZE
) -> Iterator[SlurmCluster]:
    """A cluster that ends with the block."""
    made = SlurmCluster(folder, keeps_accounts=keeps_accounts, max_array_size=max_array_size)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def _is_job_of(process: psutil.Process, node: str) -> bool:
    """Whether a process is the slurmstepd of a job on a node; the environment of the job names the node."""
    with suppress(psutil.Error):
        of_node = (child.environ().get("SLURMD_NODENAME") == node for child in process.children())
        return process.name() == "slurmstepd" and any(of_node)
    return False


def _configuration(folder: Path, max_array_size: int, more: str) -> str:
    host = socket.gethostname()
    nodes = "\n".join(
        f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=2 RealMemory=2000 {_GRES}"
        for node in NODES
    )
    return f"""
        ClusterName=tsuishi
        SlurmctldHost={host}(127.0.0.1)
        SlurmctldPort={free_port()}
        AuthType=auth/munge
        AuthInfo=socket={folder}/munge.socket
        SlurmUser=root
        StateSaveLocation={folder}/state
        SlurmdSpoolDir={folder}/spool-%n
        SlurmdPidFile={folder}/%n.pid
        SlurmctldPidFile={folder}/slurmctld.pid
        SlurmctldLogFile={folder}/log/slurmctld.log
        SlurmdLogFile={folder}/log/%n.log
        ProctrackType=proctrack/linuxproc
        TaskPlugin=task/none
        SelectType=select/cons_tres
        SelectTypeParameters=CR_Core
        SlurmdParameters=config_overrides
        JobAcctGatherType=jobacct_gather/none
        MpiDefault=none
        SwitchType=switch/none
        # Everything that sites wait minutes for.
        SchedulerParameters=bf_interval=1,batch_sched_delay=0,sched_min_interval=100000
        ReturnToService=2
        SlurmdTimeout=4
        KillWait=2
        MessageTimeout=5
        GresTypes=gpu
        MaxArraySize={max_array_size}
        PreemptType=preempt/partition_prio
        PreemptMode=REQUEUE
        {more}
        {nodes}
        PartitionName=main Nodes={",".join(NODES)} Default=YES MaxTime=60 PriorityTier=1
        PartitionName=urgent Nodes={",".join(NODES)} MaxTime=60 PriorityTier=2
    """
