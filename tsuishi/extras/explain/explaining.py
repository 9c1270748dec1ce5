"""`invoke explain`: both ends and corners between them are measured, and the waterfall is printed and written."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from tsuishi.plan.choice import computing
from tsuishi.report.output import checked
from tsuishi.report.sections.beside_published import cases_of, terms_of
from tsuishi.results.frames import named_rows, ok_rows
from tsuishi.specs.case import DEVICES, MODEL, PROTOCOL, Value
from tsuishi.specs.checkable import CheckableNumber
from tsuishi.specs.environment import Environment, select_environments
from tsuishi.specs.selections import ENVIRONMENT
from tsuishi.specs.statuses import OK
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
    limits, my_limits, why_not = _limits(chain, found)
    factors = _factors(number, printed, changed, mine, theirs)
    if not (factors or limits):
        raise UserError(
            f"nothing differs from the printed case ({number.case}, in {theirs.name}), and the device has no bar "
            f"({why_not}): say what differs, by --mine axis=value,axis=value or --mine-env; `check` measures the case "
            "as it is printed"
        )
    inner, suite = check.prepare(chain, found)
    _widen(inner.suites / f"{suite}.toml", changed)
    suites = [suite]
    if limits and not my_limits:
        of_limits = device.suite_of_limits(chain.session.checkout.suites)
        device.narrow(of_limits, inner.suites / of_limits.name, str(number.axes.get("precision", "")))
        suites.append(of_limits.stem)
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
    terms, end = _terms(evidence, number, changed, mine, theirs)
    chain.end_with(sub.exit_code)
    page = report_runs.report_folder(sub.session, [run], "")
    by_device = _of_device(evidence, number, end, limits, my_limits) if limits else None
    if not by_device:
        say(f"the device has no bar: {why_not or 'its limits, or the work of a step, were not measured'}")
    for line in waterfall.write(page, number, bars(factors, terms, number.value, by_device)):
        say(line)


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


@dataclass(frozen=True)
class _End:
    """The case with the printed settings, measured here: its place in the evidence, and its term."""

    case_id: str
    column: str
    term: Term


def _terms(
    evidence: Evidence, number: CheckableNumber, changed: Mapping[str, Value], mine: Environment, theirs: Environment
) -> tuple[dict[Corner, Term], _End]:
    """The terms of all corners, of one protocol, and their end.

    Raises UserError for a corner without a number: its factor cannot be separated.
    """
    several = mine.name != theirs.name
    by_corner: dict[Corner, dict[str, _End]] = {}
    for corner in corners(len(changed), crossed=several):
        wanted: dict[str, Value | None] = {
            axis: number.axes.get(axis) if is_theirs else value
            for (axis, value), is_theirs in zip(changed.items(), corner, strict=False)
        }
        name = (theirs if corner[-1] else mine).name if several else theirs.name
        found: dict[str, _End] = {}
        for case_id, column, term in terms_of(evidence, number.quantity, {**number.axes, **wanted}):
            if evidence.selectable(column)[ENVIRONMENT] == name:
                found.setdefault(str(evidence.axes[case_id].get(PROTOCOL)), _End(case_id, column, term))
        if not found:
            settings = ", ".join(f"{axis}={value}" for axis, value in wanted.items())
            why = _why_none(evidence, {**number.axes, **wanted}, name)
            raise UserError(f"not separable: no number of {settings or number.case} in {name}: {why}")
        by_corner[corner] = found
    *_, end = by_corner.values()
    protocol = next((each for each in end if all(each in found for found in by_corner.values())), None)
    if protocol is None:
        raise UserError("not separable: no protocol measures all combinations of settings; the report says why")
    return {corner: found[protocol].term for corner, found in by_corner.items()}, end[protocol]


def _why_none(evidence: Evidence, axes: Mapping[str, Value | None], environment: str) -> str:
    """Why no trial of a case gave a number in an environment: the reasons of its trials, each once."""
    trials, selects = evidence.results.trials[["case_id", "environment", "status", "reason"]], cases_of(evidence, axes)
    of_case = [
        row for row in named_rows(trials) if row.environment == environment and selects(evidence.axes[row.case_id])
    ]
    if any(row.status == OK for row in of_case):
        return "its trials do not give this quantity; the report says what they give"
    return "; ".join(dict.fromkeys(row.reason for row in of_case)) or "no trial of it was run; the report says why"


def _of_device(
    evidence: Evidence, number: CheckableNumber, end: _End, theirs: device.Limits, mine: device.Limits | None
) -> Bar | None:
    """The bar of the device, in the direction of the number; None where something was not measured."""
    trials = ok_rows(evidence.results.trials)
    here = trials[(trials["case_id"] == end.case_id) & (trials["column"] == end.column)].iloc[0]
    precision = str(number.axes.get("precision", ""))
    limits = evidence.limits.get(Device(here["machine"], here["device"]))
    mine = mine or (limits and device.measured_limits(limits, precision))
    keys = {name: (end.case_id, end.column, name) for name in device.RATES}
    rates = {name: evidence.terms[key] for name, key in keys.items() if key in evidence.terms}
    if mine is None:
        return None
    times, is_time = math.exp(end.term.mean) / number.value, evidence.words.quantities[number.quantity].unit == "s"
    found = device.bar(rates, int(number.axes.get(DEVICES, 1)), theirs, mine, times if is_time else 1 / times)
    return found if found is None or is_time else replace(found, size=found.size._replace(value=-found.size.value))
