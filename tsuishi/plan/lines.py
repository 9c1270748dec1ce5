"""The printed plan: the main questions, what is left out, and what more time would bring."""

from collections import Counter
from collections.abc import Sequence

from tsuishi.base.budget import Clock
from tsuishi.base.screen import Screen
from tsuishi.base.units import duration, megabytes
from tsuishi.machine.history import DOWNLOAD, DOWNLOAD_BYTES, History
from tsuishi.plan.outline import Outline
from tsuishi.plan.trials import PlannedTrial, cell_of
from tsuishi.plan.worth import Extension
from tsuishi.specs.questions import Asked

_MINUTE_S = 60


def print_outline(screen: Screen, outlined: Outline, clock: Clock) -> None:
    """Print the questions of a plan; then its trials, or, where time is limited, what does not fit."""
    print_questions(screen, outlined)
    if clock.within_s is None:
        print_trials(screen, outlined.trials)
        return
    if outlined.further:
        screen.say(f"then, as time is left: {counted(outlined.further, 'further question')}")
    bring = f"; with {more_text(outlined.more, outlined)}" if outlined.more else ""
    screen.say(f"left out: {counted(outlined.left_out, 'case')} (--within none runs everything){bring}")
    if unknown := sorted(name for name in outlined.environments if outlined.costs.build_s.get(name)):
        screen.say(f"not yet asked which cases they can run: {', '.join(unknown)} (once they are built)")


def print_questions(screen: Screen, outlined: Outline) -> None:
    """Print the main questions, each with its environments, cases, trials and time."""
    if not outlined.asked:
        return
    counts = Counter(cell_of(trial) for trial in outlined.trials)
    rows = [
        (
            words(question),
            ", ".join(question.environments),
            len({cell.case_id for cell in question.cells}),
            sum(counts[cell] for cell in question.cells),
            duration(sum(outlined.costs.trial_s[cell] * counts[cell] for cell in question.cells)),
        )
        for question in outlined.asked
    ]
    screen.table("Main questions", ("question", "environments", "cases", "trials, at most", "time"), rows)


def words(asked: Asked) -> str:
    """A question in one line."""
    return f"{asked.source} ({asked.claim}): {asked.title['en']}" if asked.claim else asked.title["en"]


def more_text(more: Sequence[Extension], outlined: Outline) -> str:
    """What more time would bring, in words: "12 min more: …; 25 min more: …"."""
    asked = {question.id: question for question in (*outlined.asked, *outlined.others)}
    named = [(minutes(extension.seconds), [brief(asked[name]) for name in extension.questions]) for extension in more]
    return "; ".join(f"{time} more: {', '.join(questions)}" for time, questions in named)


def brief(asked: Asked) -> str:
    """The title of a question (for a claim its name), with its environments."""
    name = f"claim {asked.claim} of {asked.source}" if asked.claim else asked.title["en"]
    return f"{name} ({', '.join(asked.environments)})"


def too_short(outlined: Outline, clock: Clock, report_s: float) -> str:
    """Why no question fits the time limit, with a limit that would do."""
    given = duration(clock.within_s or 0)
    if not outlined.others:
        return "nothing to ask: no question of the chosen suites can be answered in these environments"
    costs = outlined.costs

    def once_s(question: Asked) -> float:
        """Seconds to build the environments of a question and to measure each of its cells once."""
        return costs.building_s(question.environments) + sum(costs.trial_s[cell] for cell in question.cells)

    shortest = min(outlined.others, key=once_s)
    needed_s = clock.spent_s + report_s + once_s(shortest)
    return (
        f"{given} are too short: the shortest question ({brief(shortest)}) takes about {minutes(needed_s)} from the "
        f"command to the report; give --within {round(-(-needed_s // _MINUTE_S)) + 1}m"
    )


def fetching(size: int, history: History) -> str:
    """How much is to be fetched (`size` in bytes), and how long that takes at the speed of earlier downloads."""
    if not size:
        return "nothing to fetch"
    if not history.measured(DOWNLOAD):
        return f"{megabytes(size)} to fetch, apart from the time"
    each_s = history.expected_s(DOWNLOAD, 0.0)
    speed = f"{megabytes(DOWNLOAD_BYTES / each_s)}/s" if each_s > 0 else "the speed"
    return f"{megabytes(size)} to fetch, {duration(size / DOWNLOAD_BYTES * each_s)} at the {speed} seen here, apart"


def minutes(seconds: float) -> str:
    """Whole minutes, rounded up.

    >>> minutes(61), minutes(0.0)
    ('2 min', '1 min')
    """
    return f"{max(1, round(-(-seconds // _MINUTE_S)))} min"


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "case"), counted(41, "case")
    ('1 case', '41 cases')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def print_trials(screen: Screen, planned: Sequence[PlannedTrial]) -> None:
    """Print the trials of a plan, summed up per environment and suite."""
    groups: dict[tuple[str, str, str], list[PlannedTrial]] = {}
    for trial in planned:
        groups.setdefault((trial.environment, trial.case.suite, trial.accelerator), []).append(trial)
    rows = [
        (*key, len({t.case.id for t in trials}), len(trials), duration(sum(t.expected_s for t in trials)))
        for key, trials in sorted(groups.items())
    ]
    screen.table("Trials", ("environment", "suite", "on", "cases", "trials", "time"), rows)
