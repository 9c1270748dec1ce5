"""The processes of a trial over several nodes, all started by torchrun: what its variables say. Needs no framework.

torchrun starts run.py with the same argument in every process (https://pytorch.org/docs/stable/elastic/run.html). Rank
0 emits the events; the standard output of all others is log.
"""

import os

from common.events import Unsupported


def rank():
    """This process's number among all processes of the trial; 0 where torchrun did not start it."""
    return int(os.environ.get("RANK", 0)) if nodes() else 0


def nodes():
    """The number of nodes that torchrun has started processes on; 0 where it did not start this process."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return 0
    return int(os.environ["WORLD_SIZE"]) // int(os.environ["LOCAL_WORLD_SIZE"])


def check(case_nodes):
    """Raises Unsupported where a case needs other nodes than this process was started for. 1 node needs no launcher."""
    if case_nodes > 1 and nodes() != case_nodes:
        raise Unsupported(
            "{} nodes: this was started on 1; --executor slurm --nodes {} starts it on several".format(
                case_nodes, case_nodes
            )
        )


def machine():
    """A text that differs from machine to machine, also where nodes of a cluster are only names for one."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
