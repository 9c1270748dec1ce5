"""`invoke explain`: both ends and corners between them are measured, and the bars are printed and reported."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import tomlkit

from tsuishi.base.budget import Clock
from tsuishi.base.errors import UserError
from tsuishi.commands import check
from tsuishi.commands.adopting import case_of
from tsuishi.commands.chain import Chain
from tsuishi.extras.explain import device, sections, unsaid
from tsuishi.extras.explain.design import FULL, MOST
from tsuishi.extras.explain.difference import NAME, Difference, Unsaid, explained
from tsuishi.machine.compatibility import read_table
from tsuishi.plan.choice import choose, computing
from tsuishi.plan.planning import measurable, outline_run
from tsuishi.report.output import checked
from tsuishi.specs.case import MODEL, PROTOCOL, SUITE, Value
from tsuishi.specs.environment import Environment, select_environments
from tsuishi.specs.selections import Selector
from tsuishi.specs.suite import read_suite
from tsuishi.verdicts.evidence import evidence_of

# Rounds without --repetitions.
_ROUNDS = "3"
# The protocol of warm steps.
STEADY = "steady"
# Values of axes; None: not given.
Settings = Mapping[str, Value | None]


def explain(chain: Chain) -> None:
    """Find the number, measure the corners, and print the bars, which are a section of the report.

    Raises UserError where nothing differs, too much does, or a corner cannot be measured.
    """
    say = chain.session.screen.say
    found = check.find(chain)
    number = found.number
    theirs = check.nearest_environments(found)[0]
    asked = _asked(chain, found, theirs)
    if not asked.factors(chain.session.words.usual) and chain.options.text("mine"):
        raise UserError(
            f"nothing differs from the printed case ({number.case}, in {theirs.name}): leave --mine out, and settings "
            "that it does not state are measured; `check` measures the case as it is printed"
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
    making = _Making(chain, found, asked)
    if asked.factors(usual):
        making.require(asked)
    else:
        asked = making.fitting(asked.model_copy(update={"unsaid": making.unsaid(asked.theirs_in)}))
        if not (asked.may_be or asked.limits):
            raise UserError(f"no setting can be measured, and the device has no bar ({asked.why_no_limits})")
    for fitting in _fewer_factors(asked):
        making.write(settings for settings, _ in fitting.corners(fitting.groups).values())
        sub = making.job()
        if not (why_not := _why_not_all(sub)):
            break
    else:
        raise UserError(f"the fewest corners do not fit: {why_not}; --plan --within none says how long all take")
    for factor in fitting.factors(usual):
        say(
            f"{'may differ' if fitting.unsaid else 'differs'}: {factor.name}: {factor.mine} in place of {factor.theirs}"
        )
    if fitting.together:
        say(f"too little time to separate {', '.join(fitting.together)}: they are one factor; --within none separates")
    for text in fitting.unsaid.left_out if fitting.unsaid else ():
        say(f"not measured: {text}")
    sub.session = replace(sub.session, extras={NAME: fitting.content()})
    run = check.measured(sub)
    if run is None:
        return
    chain.end_with(sub.exit_code)
    evidence = evidence_of(run, making.inner.suites, making.inner.published)
    for line in sections.plain(explained(evidence, fitting), fitting):
        say(line)


class _Making:
    """The folder of an explanation: its suites, its main job, and what its environments refuse."""

    def __init__(self, chain: Chain, found: check.Found, asked: Difference) -> None:
        self.chain, self.found = chain, found
        self.clock: Clock | None = None
        self.inner, self.suite = check.prepare(chain, found)
        self.path = self.inner.suites / f"{self.suite}.toml"
        self.narrowed = self.path.read_text(encoding="utf-8")
        suites = [self.suite]
        if asked.limits and not asked.my_limits:
            of_limits = device.suite_of_limits(chain.session.checkout.suites)
            device.narrow(of_limits, self.inner.suites / of_limits.name, str(found.number.axes.get("precision", "")))
            suites.append(of_limits.stem)
        environments = ",".join(dict.fromkeys((asked.theirs_in, asked.mine_in)))
        self.options = {"repetitions": _ROUNDS, "within": "none", "env": environments, "name": NAME}
        self.options |= {"profile": found.session.choice.profile, "suite": ",".join(suites)}

    def write(self, settings: Iterable[Settings]) -> None:
        """Write the suite: its cases with each of these settings (a value of None: not given)."""
        document = tomlkit.parse(self.narrowed)
        groups, different = tomlkit.aot(), []
        for given in settings:
            said = {axis: value for axis, value in given.items() if value is not None}
            if said not in different:
                different.append(said)
        for group, said in itertools.product(document["groups"].unwrap(), different):
            groups.append(tomlkit.item({**group, "axes": {**group["axes"], **said}}))
        document["groups"] = groups
        self.path.write_text(tomlkit.dumps(document), encoding="utf-8")

    def job(self) -> Chain:
        """The main job that measures the suites. All have one clock."""
        sub = check.main_job(self.chain, self.found, self.inner, self.options)
        self.clock = self.clock or sub.session.clock
        sub.session = replace(sub.session, clock=self.clock)
        return sub

    def refusals(self) -> Callable[[Settings, str], dict[str, str]]:
        """Why a case with some settings cannot run in an environment, by protocol, as environments that are there say.

        They are made first, unless a plan is asked for. An empty reason: it can run, or nobody has said.
        """
        sub = self.job()
        session = sub.session
        known = choose(session.builder, session.checkout, session.choice, session.nvml).environments
        there = ((each.name, session.builder.find(each)) for each in known)
        ready = {name: each for name, each in there if each}
        if not sub.only_plans:
            ready |= session.build([each for each in known if each.name not in ready])
        elif len(ready) < len(known):
            session.screen.say("an environment is not built yet: it has not said which settings it can run")
        cells, words = measurable(session, known, ready), session.words

        def reasons(settings: Settings, environment: str) -> dict[str, str]:
            given = {**self.found.number.axes, SUITE: self.suite, **settings}
            wanted: dict[str, Any] = {
                axis: (None, words.axis(axis).usual) if value is None else (value,) for axis, value in given.items()
            }
            selects = Selector(wanted, usual=words.usual, free=words.usual)
            (here,) = (each for each in cells.possible if each.environment.name == environment)
            cases = {case_id: case for case_id, case in here.cases.items() if selects(case.values)}
            return {case.protocol: here.refused.get(case_id, "") for case_id, case in cases.items()}

        return reasons

    def require(self, asked: Difference) -> None:
        """Raise UserError where an end cannot run, or a corner of a design whose settings can share no bar."""
        corners = asked.corners(asked.groups)
        self.write(settings for settings, _ in corners.values())
        refused = self.refusals()
        for corner, (settings, environment) in corners.items():
            reasons, is_end = refused(settings, environment), len({*corner}) == 1
            if (is_end or len(asked.mine) > FULL) and reasons and all(reasons.values()):
                why = "; ".join(dict.fromkeys(reasons.values()))
                raise UserError(f"not separable: {asked.no_number_of(settings, environment)}: {why}")

    def fitting(self, asked: Difference) -> Difference:
        """The difference without the last of the settings that the number does not state, until all corners can run.

        Up to FULL settings share a bar where a corner cannot.
        """
        while len(asked.may_be) > FULL:
            corners = asked.corners(asked.groups)
            self.write(settings for settings, _ in corners.values())
            refused = [*map(self.refusals(), *zip(*corners.values(), strict=True))]
            protocols = self.protocols(refused[0])
            if not any(reasons.get(protocol) for reasons in refused for protocol in protocols):
                break
            *others, (axis, value) = asked.may_be.items()
            asked = asked.with_unsaid(dict(others), [f"{axis}={value} (cannot run beside the others)"])
        return asked

    def unsaid(self, environment: str) -> Unsaid:
        """The settings that the number does not state, with values that can run."""
        images = self.inner.images
        (here,) = select_environments(images, (environment,), "cpu")
        number, session = self.found.number, self.chain.session
        workload = read_suite(self.path, session.words).workload
        values = unsaid.unsaid_of(number, session.checkout.suites, workload, here.framework)
        self.write(unsaid.tried(values))
        refused, stated = self.refusals(), {axis: number.axes.get(axis) for axis in values}
        if (usual := refused(stated, environment)) and all(usual.values()):
            raise UserError(f"not separable: no number of {number.case} in {environment}: {next(iter(usual.values()))}")

        def why(settings: Settings) -> str:
            reasons = refused({**stated, **settings}, environment)
            return next(filter(None, map(reasons.get, self.protocols(usual))), "")

        return unsaid.chosen(values, why)

    def protocols(self, refused: Mapping[str, str]) -> list[str]:
        """The protocols that may give the number, of those that can run; refused: the reasons with usual settings.

        `steady` gives the speed of a step. Else it is not known which of several gives it: all have to run.
        """
        can = [protocol for protocol, reason in refused.items() if not reason]
        quantity = self.found.number.quantity
        is_speed = quantity == "step_s" or quantity.startswith("throughput_")
        return [STEADY] if is_speed and STEADY in can else can


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
    names, accelerator = session.choice.environments, computing(session.choice, session.nvml)
    known = select_environments(session.checkout.images, names, accelerator)
    try:
        left_out = outline_run(session, known).left_out
    except UserError as error:
        return str(error)
    return f"too little time for {left_out} of them" if left_out else ""


def _asked(chain: Chain, found: check.Found, theirs: Environment) -> Difference:
    """The difference that is explained. theirs: the environment of the printed number."""
    number, words = found.number, chain.session.words
    given = case_of("mine", chain.options.text("mine"), words)
    printed = {**words.usual, **number.axes}
    limits, my_limits, why_not = _limits(chain, found)
    return Difference(
        text=number.text,
        column=number.column,
        case=number.case,
        axes=number.axes,
        quantity=number.quantity,
        value=number.value,
        hardware=number.hardware,
        mine=_separable({axis: value for axis, value in given.items() if printed.get(axis) != value}),
        mine_in=_mine(chain, theirs).name,
        theirs_in=theirs.name,
        limits=limits,
        my_limits=my_limits,
        why_no_limits=why_not,
    )


def _separable(changed: dict[str, Value]) -> dict[str, Value]:
    """The settings. Raises UserError for those that are none, and for too many."""
    if MODEL in changed:
        raise UserError("--mine: another network is another work, and no setting of the same")
    if PROTOCOL in changed:
        raise UserError("--mine: a protocol is a way to measure, and no setting")
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
    (found,) = select_environments(chain.session.checkout.images, (name,), "cpu")
    return found
