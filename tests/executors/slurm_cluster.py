"""A Slurm cluster of two nodes on this machine: munge, a controller and two slurmd, all in one folder.

The nodes share this machine's cores, so nothing that is measured here says how fast a node is. Every program runs in
the foreground as a child of this process, and is ended by its process id.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

NODES = ("n1", "n2")
# Of Debian's packages slurm-wlm and munge.
_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
_ANSWERS_IN_S = 30.0
# So small that a run of a few trials needs several arrays.
MAX_ARRAY_SIZE = 6
# Daemons live in sbin, which a user's PATH often lacks.
_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def why_not() -> str:
    """What is missing for a cluster; empty where nothing is."""
    if os.geteuid() != 0:
        return "no right to start slurmd"
    lacking = [program for program in _PROGRAMS if not shutil.which(program, path=_PATH)]
    return f"no {', '.join(lacking)} (Debian's packages slurm-wlm and munge)" if lacking else ""


class SlurmCluster:
    """The programs of a cluster, and its folder. `environ`: the variables with which Slurm's commands find it."""

    def __init__(self, folder: Path, more: str = "") -> None:
        self.folder = folder
        self.conf = folder / "slurm.conf"
        self.environ = {"SLURM_CONF": str(self.conf), "PATH": _PATH}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("state", "log", *(f"spool-{node}" for node in NODES)):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        self.conf.write_text(_configuration(folder, more))
        # Debian's slurmd finds cgroups by itself, unless a file says that it has none.
        (folder / "cgroup.conf").write_text("CgroupAutomount=no\n")

    def start(self) -> None:
        """Start everything, and wait until both nodes are idle."""
        log = self.folder / "log" / "munged.log"
        given = {"key-file": "key", "socket": "socket", "pid-file": "pid", "seed-file": "seed"}
        files = [f"--{name}={self.folder}/munge.{end}" for name, end in given.items()]
        self._start("munged", "munged", "--foreground", "--force", f"--log-file={log}", *files)
        wait_for((self.folder / "munge.socket").exists)
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        self.await_idle()

    def start_controller(self) -> None:
        self._start("slurmctld", "slurmctld", "-D", "-f", str(self.conf))

    def start_node(self, node: str) -> None:
        self._start(node, "slurmd", "-D", "-N", node, "-f", str(self.conf))

    def stop_controller(self) -> None:
        """End the controller as an administrator does; it keeps its jobs on disk."""
        self._end("slurmctld", signal.SIGTERM)

    def kill_node(self, node: str, *, power_cut: bool) -> list[int]:
        """Kill the slurmd of a node. With a power cut, also all that runs on the node. Returns the jobs' processes.

        Without a power cut the node's jobs go on, and only Slurm takes the node for dead: its network is gone, say.
        """
        self._end(node, signal.SIGKILL)
        jobs = [process for process in psutil.process_iter() if _is_job_of(process, node)]
        families = [member for job in jobs for member in (job, *job.children(recursive=True))]
        if power_cut:
            for process in families:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        return [process.pid for process in families]

    def restore(self) -> None:
        """Cancel all jobs, start again what was killed, and wait until both nodes are idle."""
        if "slurmctld" not in self._running:
            self.start_controller()
        self.command("scancel", f"--user={os.geteuid()}")
        for node in NODES:
            if node not in self._running:
                self.start_node(node)
                self.command("scontrol", "update", f"NodeName={node}", "State=RESUME")
        self.await_idle()

    def await_idle(self) -> None:
        """Wait until nothing runs and both nodes answer."""
        wait_for(lambda: self.command("sinfo", "--noheader", "-o", "%T %D") == "idle 2")

    def command(self, *argv: str) -> str:
        """The output of a command of Slurm; empty where it fails."""
        done = subprocess.run(argv, env=self.environ, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    def stop(self) -> None:
        """End everything, jobs too."""
        for node in NODES:
            self.kill_node(node, power_cut=True)
        for name in list(self._running):
            self._end(name, signal.SIGTERM)

    def _start(self, name: str, *argv: str) -> None:
        with (self.folder / "log" / f"{name}.out").open("ab") as out:
            self._running[name] = subprocess.Popen(argv, env=self.environ, stdout=out, stderr=out, cwd=self.folder)

    def _end(self, name: str, number: int) -> None:
        if process := self._running.pop(name, None):
            process.send_signal(number)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def cluster(folder: Path, more: str = "") -> Iterator[SlurmCluster]:
    """A cluster that ends with the block. more: lines for slurm.conf."""
    made = SlurmCluster(folder, more)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def wait_for(condition: Callable[[], object], timeout_s: float = _ANSWERS_IN_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"it did not happen in {timeout_s:g} s"
        time.sleep(0.05)


def _is_job_of(process: psutil.Process, node: str) -> bool:
    """Whether a process is the slurmstepd of a job on a node; the environment of the job names the node."""
    with suppress(psutil.Error):
        of_node = (child.environ().get("SLURMD_NODENAME") == node for child in process.children())
        return process.name() == "slurmstepd" and any(of_node)
    return False


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _configuration(folder: Path, more: str) -> str:
    host = socket.gethostname()
    nodes = "\n".join(
        f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={_free_port()} CPUs=2 RealMemory=2000"
        for node in NODES
    )
    return f"""
        ClusterName=tsuishi
        SlurmctldHost={host}(127.0.0.1)
        SlurmctldPort={_free_port()}
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
        MaxArraySize={MAX_ARRAY_SIZE}
        PreemptType=preempt/partition_prio
        PreemptMode=REQUEUE
        {more}
        {nodes}
        PartitionName=main Nodes={",".join(NODES)} Default=YES MaxTime=60 PriorityTier=1
        PartitionName=urgent Nodes={",".join(NODES)} MaxTime=60 PriorityTier=2
    """
