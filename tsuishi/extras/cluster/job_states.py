"""What the state of a job says about its trial, where the trial itself left no record."""

from tsuishi.machine.slurm import TaskState
from tsuishi.run.outcome import Outcome
from tsuishi.specs.statuses import FAILED, INTERRUPTED, OUT_OF_MEMORY, TIMEOUT

# States that are not the trial's fault: it is tried once more in the same session.
_NOT_ITS_FAULT = frozenset({"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED"})


def outcome_of_job(state: TaskState | None) -> Outcome:
    """The outcome of a trial whose job ended in this state. None: Slurm does not know the job any more."""
    if state is None:
        return Outcome(INTERRUPTED, "its job is gone, and Slurm does not know any more how it ended")
    on = f" on {state.node}" if state.node else ""
    match state.name:
        case "TIMEOUT" | "DEADLINE":
            return Outcome(TIMEOUT, f"Slurm ended its job{on} at the job's time limit; allow more with --time")
        case "OUT_OF_MEMORY":
            return Outcome(OUT_OF_MEMORY, f"Slurm ended its job{on} at the job's memory limit")
        case "NODE_FAIL" | "BOOT_FAIL":
            return Outcome(FAILED, f"node {state.node or 'unknown'} failed ({state.name})")
        case "PREEMPTED":
            return Outcome(INTERRUPTED, f"its job was preempted{on}")
        case "CANCELLED":
            return Outcome(INTERRUPTED, f"its job was cancelled{on or ' before it started'}")
    return Outcome(FAILED, f"its job{on} ended ({state.name}) and left no trial")


def deserves_another(state: TaskState | None) -> bool:
    """Whether a trial whose job ended in this state is tried once more automatically."""
    return state is None or state.name in _NOT_ITS_FAULT
