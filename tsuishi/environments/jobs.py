"""The same job for several environments at once. A failure does not stop the other jobs."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tsuishi.base import threads, units
from tsuishi.base.errors import BuildError, EngineLost, UserError
from tsuishi.base.screen import Progress, Say, Screen, WorkProgress
from tsuishi.base.settings import Settings
from tsuishi.specs.environment import Environment

Made = TypeVar("Made")
Job = Callable[[Environment, Say, Progress], Made]

# More jobs would only wait for disk and network.
_MOST_AT_ONCE = 4


@dataclass(frozen=True)
class JobResult(Generic[Made]):
    """The result of a job for an environment, or its failure; its seconds, and its downloaded bytes."""

    name: str
    took_s: float
    downloaded: int
    made: Made | None
    failure: UserError | None


def jobs(settings: Settings) -> int:
    """The number of jobs at once."""
    return settings.jobs or min(_MOST_AT_ONCE, len(os.sched_getaffinity(0)))


def do_each(
    screen: Screen, doing: str, environments: Sequence[Environment], job: Job[Made], at_once: int
) -> list[JobResult[Made]]:
    """The job's result for each environment, in their order. `doing` is the verb for the screen, as "building"."""
    alone = len(environments) == 1
    with screen.working(doing, [environment.name for environment in environments]) as lines:

        def do(environment: Environment) -> JobResult[Made]:
            result = _result(environment, lines[environment.name], job)
            if result.failure is not None and not alone:
                screen.say(f"{result.name}: failed after {units.duration(result.took_s)}; the others go on")
            return result

        return threads.each(environments, do, at_once)


def raise_failures(screen: Screen, results: Sequence[JobResult[Made]], done: str) -> None:
    """Raise a single failure as it is. Print several failures, and raise BuildError with their number.

    `done` is the participle for messages, as "built".
    """
    failures = {result.name: result.failure for result in results if result.failure}
    if len(failures) == 1:
        raise next(iter(failures.values()))
    for name, failure in failures.items():
        screen.say(f"{name}: not {done}: {failure}")
    if failures:
        raise BuildError(f"{len(failures)} environments could not be {done}: {', '.join(failures)}; see above")


def _result(environment: Environment, line: WorkProgress, job: Job[Made]) -> JobResult[Made]:
    begun = time.monotonic()
    made, failure = None, None

    def say(text: str) -> None:
        threads.check()
        line.say(text)

    def downloaded(size: int) -> None:
        threads.check()
        line.downloaded(size)

    line.begins()
    try:
        made = job(environment, say, downloaded)
    except UserError as error:
        failure = error
    except EngineLost as lost:
        failure = UserError(f"{environment.name}: the engine stopped answering: {lost}; start it again")
    except OSError as error:
        failure = UserError(f"{environment.name}: {error.strerror or error}: {error.filename or ''}")
    threads.check()
    took_s = time.monotonic() - begun
    line.ends()
    return JobResult(environment.name, took_s, line.bytes, made, failure)
