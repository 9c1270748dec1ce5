"""`invoke find`: which release of a framework changed a value."""

from tsuishi.base.errors import EXIT_TRIAL_FAILED, UserError
from tsuishi.base.option_table import task_with
from tsuishi.base.units import counted, duration
from tsuishi.commands.chain import Chain
from tsuishi.environments.build_plan import plan_builds, print_builds
from tsuishi.extras.releases.release_page import ReleaseAnswer, write_answer
from tsuishi.extras.releases.release_question import ReleaseQuestion, release_question
from tsuishi.extras.releases.release_run import SearchedReleases, least_search, measure_search
from tsuishi.plan.planning import await_others
from tsuishi.results.directory import RunDirectory, open_to_resume
from tsuishi.run.executor import RunStopped

_NEEDED = ("case", "quantity", "from", "to")


def find(chain: Chain) -> None:
    """Measure the search, print its answer, and write the page. With --plan: releases and the least time."""
    session, options = chain.session, chain.options
    if missing := [f"--{name}" for name in _NEEDED if not options.has(name)]:
        raise UserError(
            f"missing: {', '.join(missing)}; a search has --suite, --case axis=value,axis=value, --quantity, --from "
            "and --to: tsuishi/extras/releases/README.md has an example"
        )
    asked = release_question(session, *(options.text(name) for name in _NEEDED))
    resumed = _resumed(chain)
    builds = plan_builds(session.builder, asked.releases, session.history)
    if not chain.only_plans:
        await_others(session, builds, measures=True)
    rows = [(each.name, each.release, str(each.released)) for each in asked.releases]
    session.screen.table("Releases", ("environment", "release", "date"), rows)
    print_builds(session.screen, builds, {})
    session.screen.say("environments are built when the search first needs them")
    if chain.only_plans:
        trials, expected_s = least_search(session, asked, every=options.has("all"))
        session.screen.say(f"a change takes {trials} trials at least: {duration(expected_s)}, and the builds")
        return
    try:
        searched = measure_search(session, asked, every=options.has("all"), name=options.text("name"), resumed=resumed)
    except RunStopped as stopped:
        session.screen.say(f"stopped: {stopped}")
        chain.end_with(EXIT_TRIAL_FAILED)
        return
    answer = answered(chain, asked, searched)
    for sentence in answer.sentences():
        session.screen.say(sentence)
    heads = ("environment", "release", "date", "trials", "geometric mean")
    session.screen.table("Measured", heads, answer.rows())
    page = write_answer(session.settings.reports / searched.run.id, answer)
    session.screen.say(f"{searched.trials} trials in {duration(session.clock.spent_s)}; answer: {page}")


def _resumed(chain: Chain) -> RunDirectory | None:
    """The run that --resume names; None without it. The search decides whether the run is its own."""
    name = chain.options.text("resume")
    return open_to_resume(chain.session.settings.results, name, task_with("quantity")) if name else None


def answered(chain: Chain, asked: ReleaseQuestion, searched: SearchedReleases) -> ReleaseAnswer:
    """The answer to a question."""
    words = chain.session.words
    quantity = words.quantity(asked.quantity)
    counts = {
        words.quantity(name).label["en"]: of_releases
        for name, of_releases in searched.counted.items()
        if name in words.quantities and words.quantity(name).unit == "1"
    }
    return ReleaseAnswer(
        quantity.label["en"],
        f"{asked.suite.name} ({chain.options.text('case')})",
        quantity.unit,
        asked.releases,
        searched.values,
        searched.reasons,
        searched.search.result,
        searched.trials,
        counts,
        _unvisited(chain, asked),
    )


def _unvisited(chain: Chain, asked: ReleaseQuestion) -> str:
    """The trials and time of a visit of all releases; empty in such a visit, or without a release between the ends."""
    count, session = len(asked.releases), chain.session
    if chain.options.has("all") or count < 3:
        return ""
    trials, expected_s = least_search(session, asked, every=True)
    new = sum(not session.builder.is_built(release) for release in asked.releases)
    builds = f", and {counted(new, 'build')}" if new else ""
    return f"--all visits all {count}, in {trials} trials at least: {duration(expected_s)}{builds}"
