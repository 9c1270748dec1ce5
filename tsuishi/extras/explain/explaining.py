"""`invoke explain`: both ends and corners between them are measured, and the waterfall is printed and written."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import tomlkit

from tsuishi.base.errors import UserError
from tsuishi.commands import check, report_runs
from tsuishi.commands.adopting import case_of
from tsuishi.commands.chain import Chain
from tsuishi.estimates.intervals import Term
from tsuishi.estimates.roofline import Device
from tsuishi.extras.explain import device, waterfall
from tsuishi.extras.explain.design import MOST, Bar, Corner, Factor, bars, corners
from tsuishi.machine.compatibility import read_table
from tsuishi.machine.data_sheets import DataSheet
from tsuishi.report.output import checked
from tsuishi.report.sections.beside_published import terms_of
from tsuishi.results.frames import ok_rows
from tsuishi.specs.case import MODEL, PROTOCOL, Value
from tsuishi.specs.checkable import CheckableNumber
from tsuishi.specs.environment import Environment, select_environments
from tsuishi.specs.selections import ENVIRONMENT
from tsuishi.verdicts.evidence import Evidence, evidence_of

# Rounds without --repetitions.
_ROUNDS = "3"


def explain(chain: Chain) -> None:
    """Find the number, measure the corners, print the bars, and write them beside the report.

    Raises UserError where nothing differs, too much does, or a corner cannot be measured.
    """
    say, options = chain.session.screen.say, chain.options
    found = check.find(chain)
    number = found.number
    theirs = check.nearest_environments(found)[0]
    mine = _mine(chain, theirs)
    settings = case_of("mine", options.text("mine"), chain.session.words)
    printed = {**chain.session.words.usual, **number.axes}
    changed = {axis: value for axis, value in settings.items() if printed.get(axis) != value}
    sheet = device.printed_sheet(number.hardware, read_table(chain.session.checkout.images).data_sheets)
    factors = _factors(number, printed, changed, mine, theirs)
    if not (factors or sheet):
        raise UserError(
            f"nothing differs from the printed case ({number.case}, in {theirs.name}), and no data sheet of "
            f"'{number.hardware}' is known: say what differs, by --mine axis=value,axis=value or --mine-env"
        )
    inner, suite = check.prepare(chain, found)
    _widen(inner.suites / f"{suite}.toml", changed)
    suites = [suite]
    if sheet:
        suites.append(device.suite_of_limits(inner.suites))
        device.narrow(inner.suites / f"{suites[-1]}.toml", str(number.axes.get("precision", "")))
    say(f"printed: {number.text} ({number.column}), {number.case}; {checked.nearness(number, theirs)}")
    if found.doubt:
        say(f"in doubt: {found.doubt}")
    for factor in factors:
        say(f"differs: {factor.name}: {factor.mine} in place of {factor.theirs}")
    environments = ",".join(dict.fromkeys((theirs.name, mine.name)))
    measured = {"repetitions": _ROUNDS, "within": "none", "env": environments, "name": "explain"}
    measured["suite"] = ",".join(suites)
    sub = check.main_job(chain, found, inner, measured)
    run = check.measured(sub)
    if run is None:
        return
    evidence = evidence_of(run, inner.suites, inner.published)
    terms = _terms(evidence, number, changed, mine, theirs)
    chain.end_with(sub.exit_code)
    page = report_runs.report_folder(sub.session, [run], "")
    by_device = _of_device(evidence, number, theirs, sheet) if sheet else None
    for line in waterfall.write(page, number, bars(factors, terms, number.value, by_device)):
        say(line)


def _mine(chain: Chain, theirs: Environment) -> Environment:
    name = chain.options.text("mine_env")
    if not name:
        return theirs
    (found,) = select_environments(chain.session.checkout.images, (name,), "cpu")
    return found


def _factors(
    number: CheckableNumber,
    printed: Mapping[str, Value],
    changed: Mapping[str, Value],
    mine: Environment,
    theirs: Environment,
) -> list[Factor]:
    """The settings that differ between both ends, in the order of `corners`. printed: the values of axes."""
    if MODEL in changed:
        raise UserError("--mine: another network is another work, and no setting of the same")
    if PROTOCOL in changed:
        raise UserError("--mine: a protocol is a way to measure, and no setting")
    factors = [Factor(axis, str(value), str(printed.get(axis, "usual"))) for axis, value in changed.items()]
    if mine.name != theirs.name:
        factors.append(Factor(ENVIRONMENT, mine.name, theirs.name))
    if len(changed) > MOST:
        raise UserError(f"{len(changed)} settings differ, and at most {MOST} are separated: leave some out")
    return factors


def _widen(path: Path, changed: Mapping[str, Value]) -> None:
    """Give each case of a suite, which has their settings, mine as well: the corners of the design."""
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    groups = tomlkit.aot()
    for group, corner in itertools.product(document["groups"].unwrap(), corners(len(changed))):
        mine = {axis: value for (axis, value), is_theirs in zip(changed.items(), corner, strict=True) if not is_theirs}
        groups.append(tomlkit.item({**group, "axes": {**group["axes"], **mine}}))
    document["groups"] = groups
    path.write_text(tomlkit.dumps(document), encoding="utf-8")


def _terms(
    evidence: Evidence, number: CheckableNumber, changed: Mapping[str, Value], mine: Environment, theirs: Environment
) -> dict[Corner, Term]:
    """The terms of all corners. Raises UserError for a corner without a number: its factor cannot be separated."""
    several = mine.name != theirs.name
    terms = {}
    for corner in corners(len(changed), crossed=several):
        wanted: dict[str, Value | None] = {
            axis: number.axes.get(axis) if is_theirs else value
            for (axis, value), is_theirs in zip(changed.items(), corner, strict=False)
        }
        name = (theirs if corner[-1] else mine).name if several else theirs.name
        found = [
            term
            for _, column, term in terms_of(evidence, number.quantity, {**number.axes, **wanted})
            if evidence.selectable(column)[ENVIRONMENT] == name
        ]
        if not found:
            settings = ", ".join(f"{axis}={value}" for axis, value in wanted.items())
            raise UserError(f"not separable: no number of {settings or number.case} in {name}; the report says why")
        terms[corner] = found[0]
    return terms


def _of_device(evidence: Evidence, number: CheckableNumber, theirs: Environment, sheet: DataSheet) -> Bar | None:
    """The bar of the device, in the direction of the number; None where a limit was not measured."""
    case_id, column, term = next(
        found
        for found in terms_of(evidence, number.quantity, number.axes)
        if evidence.selectable(found[1])[ENVIRONMENT] == theirs.name
    )
    trials = ok_rows(evidence.results.trials)
    here = trials[(trials["case_id"] == case_id) & (trials["column"] == column)].iloc[0]
    rates = {
        name: evidence.terms[case_id, column, name]
        for name in device.RATES
        if (case_id, column, name) in evidence.terms
    }
    limits = evidence.limits.get(Device(here["machine"], here["device"]))
    times, is_time = math.exp(term.mean) / number.value, evidence.words.quantities[number.quantity].unit == "s"
    precision = str(number.axes.get("precision", ""))
    by_limits = device.bar(rates, limits, sheet, precision, times if is_time else 1 / times)
    if by_limits is None or is_time:
        return by_limits
    return replace(by_limits, size=by_limits.size._replace(value=-by_limits.size.value))
