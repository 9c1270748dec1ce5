"""`invoke explain`: both ends and corners between them are measured, and the bars are printed and reported."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from tsuishi.base.errors import UserError
from tsuishi.commands.chain import Chain
from tsuishi.extras.explain import device, sections
from tsuishi.extras.explain.design import MOST
from tsuishi.extras.explain.difference import Difference, explained
from tsuishi.extras.explain.explanation_folder import ExplanationFolder
from tsuishi.extras.tables import check, checked
from tsuishi.extras.tables.adopting import case_of
from tsuishi.machine.compatibility import read_table
from tsuishi.plan.choice import asked_environments, computing
from tsuishi.plan.planning import outline_run
from tsuishi.specs.case import MODEL, PROTOCOL, Value
from tsuishi.specs.environment import Environment, named_environments
from tsuishi.verdicts.evidence import evidence_of

_LITERAL = "literal"


def explain(chain: Chain) -> None:
    """Find the number, measure the corners, and print the bars, which are a section of the report.

    Raises UserError where nothing differs, too much does, or a corner cannot be measured.
    """
    say = chain.session.screen.say
    found = check.find_number(chain)
    number = found.number
    theirs = check.nearest_environments(found)[0]
    asked = _asked(chain, found, theirs)
    if PROTOCOL in asked.mine:  # the cases of both protocols are measured
        others = {axis: value for axis, value in number.axes.items() if axis != PROTOCOL}
        found = replace(found, number=replace(number, axes=others))
    elif PROTOCOL in asked.axes:
        found = replace(found, number=replace(number, axes=asked.axes))
    mine = chain.options.text("mine") or chain.options.text("mine_env")
    if mine and not asked.factors(chain.session.words.usual):
        raise UserError(
            f"nothing differs from the printed case ({number.case}, in {theirs.name}): leave --mine and --mine-env "
            "out, and settings that it does not state are measured; `check` measures the case as it is printed"
        )
    say(f"printed: {number.text} ({number.column}), {number.case}; {checked.nearness(number, theirs)}")
    if found.doubt:
        say(f"in doubt: {found.doubt}")
    measure(chain, found, asked)


def measure(chain: Chain, found: check.Found, asked: Difference) -> None:
    """Measure the corners, as many as fit the time, print the bars, and report them.

    Where nothing differs, mine and the printed number may differ in what the number does not state.
    """
    say, usual = chain.session.screen.say, chain.session.words.usual
    folder = ExplanationFolder(chain, found, asked)
    if asked.factors(usual):
        folder.require(asked)
    else:
        asked = folder.fitting(asked.model_copy(update={"unsaid": folder.unsaid(asked.theirs_in)}))
        if not (asked.may_be or asked.limits):
            raise UserError(f"no setting can be measured, and the device has no bar ({asked.why_no_limits})")
    for fitting in _fewer_factors(asked):
        folder.write(settings for settings, _ in fitting.corners(fitting.groups).values())
        sub = folder.job()
        if not (why_not := _why_not_all(sub)):
            break
    else:
        raise UserError(f"the fewest corners do not fit: {why_not}; --plan --within none says how long all take")
    for factor in fitting.factors(usual):
        differs = "may differ" if fitting.unsaid else "differs"
        say(f"{differs}: {factor.name}: {factor.mine} in place of {factor.theirs}")
    if fitting.together:
        say(f"too little time to separate {', '.join(fitting.together)}: they are one factor; --within none separates")
    for text in fitting.unsaid.left_out if fitting.unsaid else ():
        say(f"not measured: {text}")
    fitting = fitting.model_copy(update={"looks": sub.session.is_limited})
    open_suite = partial(folder.open_suite, fitting)
    sub.session = replace(sub.session, request=fitting.content(), open_suite=open_suite)
    run = check.reported_run(sub)
    if run is None:
        return
    chain.end_with(sub.exit_code)
    evidence = evidence_of(run, folder.inner.suites, folder.inner.published)
    for line in sections.plain(explained(evidence, fitting), fitting):
        say(line)


def _fewer_factors(asked: Difference) -> Iterator[Difference]:
    """The difference with a factor for each setting; then with fewer: more and more of the last become one factor.

    Of settings that the printed number does not state, the last are not measured.
    """
    yield asked
    for count in range(2, len(asked.mine) + 1):
        yield asked.model_copy(update={"together": tuple(asked.mine)[-count:]})
    settings = [*asked.may_be.items()]
    for count in range(len(settings) - 1, -1 if asked.limits else 0, -1):
        of_time = [f"{axis}={value} (too little time)" for axis, value in settings[count:]]
        yield asked.with_unsaid(dict(settings[:count]), of_time)


def _why_not_all(sub: Chain) -> str:
    """Why not all corners fit the time that is left; empty where they do."""
    session = sub.session
    if not session.is_limited:
        return ""
    known = asked_environments(session.checkout.images, session.choice, session.nvml)
    try:
        left_out = outline_run(session, known).left_out
    except UserError as error:
        return str(error)
    return f"too little time for {left_out} of them" if left_out else ""


def _asked(chain: Chain, found: check.Found, theirs: Environment) -> Difference:
    """The difference that is explained. theirs: the environment of the printed number."""
    number, words = found.number, chain.session.words
    given = case_of("mine", chain.options.text("mine"), words)
    # A printed number was measured as its source measured.
    axes = {PROTOCOL: _LITERAL, **number.axes} if PROTOCOL in given else number.axes
    printed = {**words.usual, **axes}
    limits, my_limits, why_not = _limits(chain, found)
    return Difference(
        text=number.text,
        column=number.column,
        case=number.case,
        axes=axes,
        quantity=number.quantity,
        value=number.value,
        hardware=number.hardware,
        mine=_separable(chain, {axis: value for axis, value in given.items() if printed.get(axis) != value}),
        mine_in=_mine(chain, theirs).name,
        theirs_in=theirs.name,
        limits=limits,
        my_limits=my_limits,
        why_no_limits=why_not,
    )


def _separable(chain: Chain, changed: dict[str, Value]) -> dict[str, Value]:
    """The settings. Raises UserError for those that are none, and for too many."""
    session = chain.session
    if session.data is None and any(session.words.axes[axis].is_data for axis in changed):
        raise UserError("--mine: no data set is at hand (`invoke fetch-data`): all images are made up")
    if MODEL in changed:
        raise UserError("--mine: another network is another work, and no setting of the same")
    if len(changed) > MOST:
        raise UserError(f"{len(changed)} settings differ, and at most {MOST} are separated: leave some out")
    return changed


def _limits(chain: Chain, found: check.Found) -> tuple[device.Limits | None, device.Limits | None, str]:
    """The limits of the printed card and of mine by their data sheets, and why the printed card has none."""
    number, session = found.number, found.session
    sheets = read_table(session.checkout.images).data_sheets
    asked = number.quantity, str(number.axes.get("precision", "")), sheets
    theirs, why_not = device.limits_of_card(number.hardware, *asked)
    is_gpu = computing(session.choice, session.nvml) == "cuda"
    mine = device.limits_of_card(str(session.nvml.describe()[0]["name"]), *asked)[0] if is_gpu else None
    return theirs, mine, why_not


def _mine(chain: Chain, theirs: Environment) -> Environment:
    name = chain.options.text("mine_env")
    if not name:
        return theirs
    (found,) = named_environments(chain.session.checkout.images, (name,))
    engines = chain.session.builder.engines
    if found.made_as == theirs.made_as and engines.chosen_for(found) is engines.chosen_for(theirs):
        return theirs
    return found
