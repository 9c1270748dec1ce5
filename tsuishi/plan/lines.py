"""The printed plan: the main questions, the parts left out, and the gain of more time."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from tsuishi.base.budget import Clock
from tsuishi.base.screen import Screen
from tsuishi.base.units import counted, duration, megabytes
from tsuishi.machine.history import DOWNLOAD, DOWNLOAD_BYTES, History
from tsuishi.plan.decidable import Takes
from tsuishi.plan.outline import Outline
from tsuishi.plan.trials import PlannedTrial, scatter_name
from tsuishi.plan.worth import Extension
from tsuishi.specs.questions import LOOKS, MatrixCell, PlannedQuestion, look_at
from tsuishi.verdicts.power import Comparing, detectable_ratio

_MINUTE_S = 60
# The questions that are named before a run begins.
_MOST_QUESTIONS = 6
# The scatter between trials, where none was seen here.
_ASSUMED = 0.03


def print_outline(screen: Screen, outlined: Outline, clock: Clock, history: History) -> None:
    """Print the questions of a plan, and what it can find; then its trials, or what does not fit a limited time."""
    screen.say("main questions:" if outlined.asked else "no question is asked")
    for question in outlined.asked:
        cases, trials = {cell.case_id for cell in question.cells}, sum(outlined.counts[cell] for cell in question.cells)
        numbers = f"{counted(len(cases), 'case')}, {counted(trials, 'trial')} at first"
        screen.say(f"  {priced(question, outlined)}, {numbers}")
    for line in power_lines(outlined, history):
        screen.say(line)
    if clock.within_s is None:
        print_trials(screen, outlined.trials)
        return
    if outlined.further:
        screen.say(f"then, as time is left: {counted(outlined.further, 'further question')}")
    bring = f"; with {more_text(outlined.more)}" if outlined.more else ""
    screen.say(f"left out: {counted(outlined.left_out, 'case')} (--within none runs everything){bring}")
    if unknown := sorted(name for name in outlined.environments if outlined.costs.build_s.get(name)):
        screen.say(f"not yet asked which cases they can run: {', '.join(unknown)} (once they are built)")


def print_briefly(screen: Screen, outlined: Outline) -> None:
    """Print the main questions of a plan, a line each; then how many others follow."""
    if not outlined.asked:
        screen.say(f"{counted(len(outlined.trials), 'trial')}: no question is asked")
    for number, question in enumerate(outlined.asked[:_MOST_QUESTIONS], 1):
        screen.say(f"  {number}. {priced(question, outlined)}")
    main = len(outlined.asked[_MOST_QUESTIONS:])
    more = [f"and {counted(main, 'main question')} more"] if main else []
    more += [f"then, as time is left, {counted(outlined.further, 'further question')}"] if outlined.further else []
    screen.say(f"  {'; '.join([*more, 'all of this plan, and what more time would bring: --plan'])}")


def print_changes(
    screen: Screen, outlined: Outline, before: Sequence[PlannedQuestion], left_out: Mapping[str, str]
) -> None:
    """Print what an outline asks for the first time, and what it no longer asks, with the reason.

    left_out: why environments are left out, by their names.
    """
    was, now = ({question.id for question in questions} for questions in (before, outlined.asked))
    refused = {cell: trial.unsupported for cell, trial in outlined.matrix.first.items() if trial.unsupported}
    for question in before:
        if question.id not in now:
            reasons = [left_out[name] for name in question.environments if name in left_out]
            reasons += [refused[cell] for cell in question.cells if cell in refused]
            why = next(iter(reasons), "it no longer fits the time beside the others")
            screen.say(f"not asked: {brief(question)}: {why}")
    for question in outlined.asked:
        if question.id not in was:
            screen.say(f"now asked: {priced(question, outlined)}")


def priced(question: PlannedQuestion, outlined: Outline) -> str:
    """A question with its environments and the time of its trials."""
    trial_s, counts = outlined.costs.trial_s, outlined.counts
    return f"{brief(question)}: {duration(sum(trial_s[cell] * counts[cell] for cell in question.cells))}"


def power_lines(outlined: Outline, history: History) -> list[str]:
    """What the comparisons among the main questions can find; nothing where each of their cells has a single trial."""
    comparisons = [question for question in outlined.asked if question.compares]
    planned = min((outlined.counts[cell] for question in comparisons for cell in question.cells), default=0)
    if planned < 2:
        return []
    names = _scatter_names(outlined, comparisons)
    scatter = history.scatter(names)
    if scatter is None:
        known = f"usual scatter between trials (too few measured here yet: {100 * _ASSUMED:.0f} % is assumed)"
        scatter = _ASSUMED
    else:
        seen = sorted({environment for name, environment in names.items() if history.has_scatter(name)})
        known = f"scatter seen here ({100 * scatter:.1f} % between trials of {', '.join(seen)})"
    return power_sentences(_comparing(outlined, comparisons, scatter), known, planned)


def _comparing(outlined: Outline, comparisons: Sequence[PlannedQuestion], scatter: float) -> Comparing:
    """How the main questions compare; where comparisons differ, the smallest value among them."""

    def place(cell: MatrixCell) -> tuple[str, str]:
        return cell.environment, outlined.matrix.first[cell].case.suite

    judged = sum(question.kind != "measurement" for question in outlined.asked)
    cells = min(len(side) for question in comparisons for side in (question.of, question.to))
    measured = Counter(map(place, outlined.counts))
    beside = min(measured[place(cell)] for question in comparisons for cell in question.cells)
    of_environments = any(question.kind == "environments" for question in comparisons)
    device = (
        "gpu"
        if all(outlined.matrix.first[cell].accelerator != "cpu" for question in comparisons for cell in question.cells)
        else "cpu"
    )
    return Comparing(scatter, judged, cells, beside > 2 * cells, device, of_environments)


def _scatter_names(outlined: Outline, comparisons: Sequence[PlannedQuestion]) -> dict[str, str]:
    """The names under which the history keeps the scatters of comparisons, each with its environment."""
    names = {}
    for question in comparisons:
        for cell in question.cells:
            trial = outlined.matrix.first[cell]
            place = (trial.environment, trial.accelerator, trial.case.suite, trial.case.protocol)
            names[scatter_name(*place, question.quantity)] = trial.environment
    return names


def power_sentences(comparing: Comparing, known: str, planned: int) -> list[str]:
    """The sentences on what comparisons find. known: the scatter in words. planned: trials of each cell."""
    last = max(LOOKS[1], look_at(planned))
    first = last // 2
    of_first, of_last = (_times(detectable_ratio(comparing, trials)) for trials in (first, last))
    sentences = [
        f"At the {known}, {first} trials find a difference of {of_first} in 8 of 10 runs, and {last} trials of "
        f"{of_last}."
    ]
    if planned < LOOKS[0]:
        sentences.append(f"{planned} trials are planned: they bring no verdict.")
    return sentences


_NO_NOTES: Mapping[tuple[str, str], str] = {}
_TAKES: dict[Takes, str] = {
    "planned": "can be judged by this plan",
    "time": "need more time (--within none)",
    "profile": "need --profile full",
    "data": "need real data and whole trainings (invoke fetch-data, --profile full)",
    "suite": "need another suite",
    "environment": "need other environments",
    "gpus": "need NVIDIA GPUs that are not here",
    "hardware": "are about other GPUs",
    "nothing": "cannot be tested with tsuishi",
}


def claim_rows(
    takes: Mapping[tuple[str, str], Takes], notes: Mapping[tuple[str, str], str] = _NO_NOTES
) -> list[tuple[str, str]]:
    """A row for each thing that claims take: "need more time", "keras-channels-first a, b; towers-titanx d".

    takes, notes: by source and claim; a note stands behind its claim.
    """
    by_need: dict[Takes, dict[str, list[str]]] = {}
    for (source, claim), need in takes.items():
        note = notes.get((source, claim))
        by_need.setdefault(need, {}).setdefault(source, []).append(f"{claim} ({note})" if note else claim)
    return [
        (
            f"{sum(map(len, by_need[need].values()))} {text}",
            "; ".join(f"{source} {', '.join(claims)}" for source, claims in by_need[need].items()),
        )
        for need, text in _TAKES.items()
        if need in by_need
    ]


def _times(ratio: float) -> str:
    """A ratio in words, rounded up.

    >>> _times(1.001), _times(1.231), _times(20.0)
    ('1.01 times', '1.24 times', 'more than 10 times')
    """
    return f"{math.ceil(100 * ratio) / 100:.2f} times" if ratio <= 10 else "more than 10 times"


def more_text(more: Sequence[Extension]) -> str:
    """What more time would bring, in words: "12 min more: …; 25 min more: …"."""
    return "; ".join(f"{minutes(extension.seconds)} more: {brief(extension.question)}" for extension in more)


def brief(asked: PlannedQuestion) -> str:
    """The title of a question (for a claim its name), with its environments."""
    name = f"claim {asked.claim} of {asked.source}" if asked.claim else asked.title["en"]
    return f"{name} ({', '.join(asked.environments)})"


def too_short(outlined: Outline, clock: Clock, beside_s: float, gpu_hours: float | None = None) -> str:
    """Why no question fits the time limit, with a limit that would do; or the GPU-hours, where only these are given.

    beside_s: seconds of the command beside builds and trials.
    """
    given = duration(clock.within_s or 0) if clock.within_s or not gpu_hours else f"{gpu_hours:g} GPU-hours"
    if not outlined.others:
        return (
            "nothing to ask: no question of the chosen suites can be answered in these environments; give --profile "
            "quick, which measures every case"
        )
    costs = outlined.costs

    def answered_s(question: PlannedQuestion) -> float:
        """Seconds to build the environments of a question and to bring each of its cells to the first look."""
        trials_s = question.first_look * sum(costs.trial_s[cell] for cell in question.cells)
        return costs.building_s(question.environments) + trials_s

    shortest = min(outlined.others, key=answered_s)
    needed_s = beside_s + answered_s(shortest)
    return (
        f"{given} are too short: the shortest question ({brief(shortest)}) takes about {minutes(needed_s)} from the "
        f"command to the report; give --within {round(-(-needed_s // _MINUTE_S)) + 1}m"
    )


def fetching(size: int, history: History) -> str:
    """How much is to be fetched (`size` in bytes), and how long that takes at the speed of earlier downloads."""
    if not size:
        return "nothing to fetch"
    if not history.measured(DOWNLOAD):
        return f"{megabytes(size)} to fetch first, for which no time is counted"
    each_s = history.expected_s(DOWNLOAD, 0.0)
    speed = f"{megabytes(DOWNLOAD_BYTES / each_s)}/s" if each_s > 0 else "the speed"
    return f"{megabytes(size)} to fetch, {duration(size / DOWNLOAD_BYTES * each_s)} at the {speed} seen here, apart"


def minutes(seconds: float) -> str:
    """Whole minutes, rounded up.

    >>> minutes(61), minutes(0.0)
    ('2 min', '1 min')
    """
    return f"{max(1, round(-(-seconds // _MINUTE_S)))} min"


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
