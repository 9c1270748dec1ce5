"""The outcome of a trial: its status and reason, from the workload's events and from the end of its process."""

from dataclasses import dataclass

from tsuishi.base.processes import Ended
from tsuishi.environments.entry import Ready, why_it_failed
from tsuishi.results.records import other_versions
from tsuishi.specs.statuses import FAILED, OK, OUT_OF_MEMORY, SKIPPED
from tsuishi.stream.listener import Transcript, why_it_ended


@dataclass(frozen=True)
class Outcome:
    """How a trial ended: a status, and a reason that a person can act on; if it is ok, what is doubtful about it."""

    status: str
    reason: str = ""
    exit_code: int | None = None


def outcome_of(transcript: Transcript, ended: Ended, memory_bytes: int, ready: Ready) -> Outcome:
    """The outcome of a workload that ran until its end. memory_bytes: its limit."""
    code = ended.code
    if others := other_versions(ready.record, transcript.facts()):
        said = ", ".join(f"{name} is {seen}, recorded {recorded}" for name, (seen, recorded) in others.items())
        remedy = "see what was altered with `invoke images --verify`"
        return Outcome(FAILED, f"not what its environment's record says: {said}: {remedy}", code)
    if ended.out_of_memory:
        limit = f"{memory_bytes / (1 << 30):.1f} GiB"
        return Outcome(OUT_OF_MEMORY, f"the kernel ended it at its memory limit of {limit}", code)
    if transcript.failure is not None:
        failure = transcript.failure
        if failure.kind == SKIPPED:
            return Outcome(SKIPPED, failure.text, code)
        status = FAILED if failure.kind == "error" else failure.kind
        return Outcome(status, f"{failure.type}: {why_it_failed(failure, ready.starter)}", code)
    if not transcript.finished:
        reason = f"it ended without saying it had finished: {why_it_ended(ended)}; {_end_of_log(transcript)}"
        return Outcome(FAILED, reason, code)
    if code != 0:
        return Outcome(FAILED, f"it had finished, then {why_it_ended(ended)}; {_end_of_log(transcript)}", code)
    if transcript.missing:
        reason = f"{transcript.missing} of its events are missing or break the rules, so samples may be; see its log"
        return Outcome(FAILED, reason, code)
    return Outcome(OK, "; ".join(transcript.facts().remarks), code)


def _end_of_log(transcript: Transcript) -> str:
    return f"its log ends: {transcript.last_words}" if transcript.last_words else "it logged nothing"
