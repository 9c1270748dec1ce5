"""The question of a search for the release that changed a value: a case, a quantity, and releases of a framework."""

from collections.abc import Sequence
from dataclasses import dataclass

from packaging.version import Version

from tsuishi.base.errors import UserError, unknown
from tsuishi.plan.session import Session
from tsuishi.specs.case import PROTOCOL, SUITE, Case, Value
from tsuishi.specs.environment import Environment, known_environments, named_files, read_environment
from tsuishi.specs.selections import Selector
from tsuishi.specs.suite import Suite, select_suites


@dataclass(frozen=True)
class ReleaseQuestion:
    """Which of these releases changed a quantity of a case? The releases are in the order of their dates."""

    suite: Suite
    case: Case
    quantity: str
    releases: tuple[Environment, ...]


def release_question(session: Session, case: str, quantity: str, first: str, last: str) -> ReleaseQuestion:
    """The question that a user asks: the only chosen suite, a case as `axis=value,...`, and the ends of the search.

    Raises UserError where the words name no suite, case, quantity or releases, or several cases.
    """
    if len(session.choice.suites) != 1:
        raise UserError("say in which suite the case is, by --suite")
    (suite,) = select_suites(session.checkout.suites, session.choice.suites)
    if not quantity:
        compared = ", ".join(dict.fromkeys(question.quantity for question in suite.questions)) or "nothing"
        raise UserError(f"say what changed, by --quantity; the questions of {suite.name} compare {compared}")
    if quantity not in session.words.quantities:
        raise unknown("quantity", quantity, session.words.quantities)
    return ReleaseQuestion(suite, the_case(session, suite, case), quantity, releases_between(session, first, last))


def the_case(session: Session, suite: Suite, text: str) -> Case:
    """The case of a suite's profile with these values; where an axis is not named, the usual value counts.

    Raises UserError where there is no such case, or where several are left.
    """
    wanted = dict(_value(session, part) for part in text.split(",") if part.strip())
    cases = [case for case, _ in suite.cases(session.choice.profile, "cpu", None)]
    selects = Selector({name: (value,) for name, value in wanted.items()}, usual=session.words.usual)
    found = [case for case in cases if selects({**session.words.usual, **case.axes})]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UserError(f"--case {text}: {suite.name} has no such case in the profile {session.choice.profile}")
    values: dict[str, dict[Value | None, None]] = {}
    for name in sorted({name for case in found for name in case.axes}):
        values[name] = dict.fromkeys(case.axes.get(name, session.words.usual.get(name)) for case in found)
    differing = [f"{name}={'|'.join(map(str, of_axis))}" for name, of_axis in values.items() if len(of_axis) > 1]
    raise UserError(f"--case {text}: {len(found)} cases of {suite.name}; say also: {', '.join(differing)}")


def _value(session: Session, part: str) -> tuple[str, Value]:
    """Name and value of `devices=3`."""
    name, sign, text = (piece.strip() for piece in part.partition("="))
    if not sign:
        raise UserError(f"--case takes axis=value,axis=value; given: {part.strip()}")
    if name in (SUITE,) or name not in {PROTOCOL, *session.words.axes}:
        raise unknown("axis", name, session.words.axes)
    value: Value = int(text) if session.words.axis(name).is_number and text.isdigit() else text
    if problem := session.words.axis(name).problem(value):
        raise UserError(f"--case {name}: {problem}")
    return name, value


def releases_between(session: Session, first: str, last: str) -> tuple[Environment, ...]:
    """The releases of a family from one environment to another, both included, in the order of their dates.

    Of several environments of one release, an end of the search counts, else the default environment,
    else the first by name. Environments that cannot be made here are left out, with a message. Raises UserError where
    an end cannot be made, or where both are of no family, of two families, or in the wrong order.
    """
    images = session.checkout.images
    ends = tuple(map(read_environment, named_files(images, (first, last)).values()))
    _check_ends(session, ends)
    # Environments of any framework promise no release: their dates tell them apart.
    chosen: dict[tuple[str, Version], Environment] = {}
    known = map(read_environment, known_environments(images).values())
    for environment in sorted(known, key=lambda each: (each.name not in (first, last), not each.default, each.name)):
        if _order(environment) not in chosen and _lies_between(environment, ends):
            if why := session.builder.engines.refusal(environment):
                session.screen.say(f"left out: {environment.name}: {why}")
            else:
                chosen[_order(environment)] = environment
    return tuple(sorted(chosen.values(), key=_order))


def _check_ends(session: Session, ends: Sequence[Environment]) -> None:
    """Raise UserError where a search cannot go from the first of these environments to the second."""
    if len(ends) < 2:
        raise UserError("--from and --to are two environments, the older first")
    old, new = ends
    for end in ends:
        if not end.family:
            raise UserError(
                f"{end.name} has no family of releases: give it a family (tsuishi/extras/releases/README.md)"
            )
        if why := session.builder.engines.refusal(end):
            raise UserError(f"{end.name} cannot be used here: {why}")
    if old.family != new.family:
        raise UserError(f"{old.name} is of the family {old.family}, {new.name} of {new.family}: nothing lies between")
    if _order(old) >= _order(new):
        raise UserError(f"{old.name} is not older than {new.name}: give the older release to --from")


def _lies_between(environment: Environment, ends: Sequence[Environment]) -> bool:
    """Whether an environment is a release of the family from one end to the other, on an accelerator of both ends."""
    old, new = ends
    if environment.family != old.family or not {*environment.accelerators} & {*old.accelerators} & {*new.accelerators}:
        return False
    return _order(old) <= _order(environment) <= _order(new)


def _order(environment: Environment) -> tuple[str, Version]:
    return str(environment.released), Version(environment.release)
