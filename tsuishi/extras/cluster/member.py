"""`python -m tsuishi.extras.cluster.member FOLDER INDEX PORT`: a node's part of a trial over several nodes.

srun starts it on each node (node.py). It enters the environment on its node and starts torchrun there; the
processes of all nodes meet at the port of the first. What they print goes to srun, and so to the first node.
"""

import os
import socket
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psutil

from tsuishi.base.errors import UserError
from tsuishi.extras.cluster import node
from tsuishi.extras.cluster.submission import read
from tsuishi.machine.gpus import Nvml
from tsuishi.results.directory import RunDirectory
from tsuishi.run.trial import start_trial

# torchrun, as a module: a virtual environment's script of that name may be for another Python.
_TORCHRUN = ("-m", "torch.distributed.run")


def run_member(folder: Path, index: int, port: int) -> int:
    """Run this node's part of a trial. Returns its exit code. Raises UserError where this node cannot."""
    submission, run = read(folder), RunDirectory(folder.parents[1])
    number, first = int(os.environ["SLURM_NODEID"]), os.environ["SLURM_LAUNCH_NODE_IPADDR"]
    order = submission.orders[index]
    with ExitStack() as alone:
        order, bench = node.prepared(run, submission, order, Nvml())
        if number:
            node.lock(alone, order)  # the task itself has locked the first node, and swept it
            node.sweep(submission)
        each = int(order.given["devices"]) // order.nodes
        launcher = torchrun(order.nodes, each, number, first, port)
        process = start_trial(order, replace(bench, launcher=launcher, network=variables(first), part=f".n{number}"))
        try:
            for _, piece in process.output():
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
        except BaseException:  # the job ends, say, or srun is gone
            process.stop()
            raise
        finally:
            code = process.wait().code
        return code


def torchrun(nodes: int, processes: int, number: int, first: str, port: int) -> tuple[str, ...]:
    """The arguments of Python that start so many processes on this node. number: of this node, from 0."""
    return (
        *_TORCHRUN,
        f"--nnodes={nodes}",
        f"--nproc-per-node={processes}",
        f"--node-rank={number}",
        f"--master-addr={first}",
        f"--master-port={port}",
        "--max-restarts=0",
    )


def variables(first: str) -> dict[str, str]:
    """The variables of processes that reach the first node: the interface to it, and the number of their threads.

    Where a node has several processes, torchrun gives each a single thread, unless the number is given. Without
    torchrun PyTorch has as many threads as cores.
    """
    cores = min(psutil.cpu_count(logical=False) or 1, len(os.sched_getaffinity(0)))
    interface = _interface_to(first)
    names = {f"{library}_SOCKET_IFNAME": interface for library in ("GLOO", "NCCL")} if interface else {}
    return {**names, "OMP_NUM_THREADS": str(cores)}


def _interface_to(address: str) -> str:
    """The network interface by which this machine reaches an address; empty where that is unknown."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:  # nothing is sent
        asked.connect((address, 9))
        own = asked.getsockname()[0]
    named = [name for name, found in psutil.net_if_addrs().items() if own in {address.address for address in found}]
    return next(iter(named), "")


if __name__ == "__main__":
    node.stop_on_sigterm()
    try:
        sys.exit(run_member(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
    except UserError as refused:
        sys.exit(f"on {os.environ.get('SLURMD_NODENAME')}: {refused}")
