"""Standing: the values that stand in a picture of a source, the source's own and ours, series by series."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tsuishi.base.language import in_language, t
from tsuishi.estimates.intervals import Term
from tsuishi.report.parts.shown_units import Unit
from tsuishi.report.parts.suite_cases import SuiteCases, published_name
from tsuishi.report.parts.wording import NOT_PLANNED, Cell, case_text, unit_of, vocabulary_in_use
from tsuishi.specs.case import PROTOCOL
from tsuishi.specs.environment import in_order
from tsuishi.specs.pictures import Picture, PictureSeries
from tsuishi.specs.source import Number, Source
from tsuishi.verdicts.evidence import Evidence

# Accuracies on made-up data cannot be compared with a source's.
_OF_REAL_DATA = "accuracy"
_MOST_DECIMALS = 4


# The names of devices, by case id and environment.
Devices = dict[tuple[str, str], str]


class PublishedStanding(NamedTuple):
    """A value at `x` in a series of a picture; x is None for a level.

    `owner`: an environment, or the name of published hardware. `place`: the number of the series. `who`: the owner with
    its hardware, and the kind of its cases where the series has several; `label`: `who` and the series. `value` is None
    for our cases without a value; `cell` then says why. low, high: the ends of its spread. `step_term`: of the
    logarithm of the time of the case's step.
    """

    owner: str
    published: bool
    place: int
    who: str
    label: str
    x: Any
    quantity: str
    value: float | None
    cell: Cell
    low: float | None = None
    high: float | None = None
    trials: int = 1
    step_s: float | None = None
    step_term: Term | None = None
    readings: tuple[Cell, ...] = ()
    simulated: bool = False
    synthetic: bool = False
    derived: bool = False


def published_values(source: Source, picture: Picture) -> list[PublishedStanding]:
    """The source's numbers in a picture; its constants too, where the source prints those of lines."""
    titles = {hardware.name: hardware.title for hardware in source.hardware}
    found = [
        (place, number)
        for place, series in enumerate(picture.series)
        for number in source.flat()
        if number.quantity in (picture.line or picture.wanted(series)) and number.may_be(*picture.selections(series))
    ]
    # Hardware with a single known series needs no second name.
    known: dict[str, set[int]] = {}
    for place, number in found:
        known.setdefault(number.hardware, set()).add(place)
    decimals = _decimals(number for _, number in found)
    values = []
    for place, number in found:
        owner, title = published_name(titles[number.hardware]), in_language(picture.series[place].title)
        label = _joined(owner, title) if len(known[number.hardware]) > 1 else owner
        cell, *readings = (
            Cell(f"{value:,.{decimals[number.quantity]}f}", value, kind="number")
            for value in (number.value, *number.readings)
        )
        at = number.axes.get(picture.x), number.quantity, number.value, cell
        values.append(PublishedStanding(owner, True, place, owner, label, *at, readings=tuple(readings)))
    return values


def our_values(every_suite: Sequence[SuiteCases], picture: Picture, devices: Devices) -> list[PublishedStanding]:
    """Our values in a picture, series by series, environment by environment: one line of each in a series."""
    found: list[PublishedStanding] = []
    for place, series in enumerate(picture.series):
        of_environment: dict[str, list[_OurCase]] = {}
        for case in _selected(every_suite, picture, series):
            of_environment.setdefault(case.column, []).append(case)
        for column in in_order(of_environment):
            line = _of_one_kind(of_environment[column], picture, series)
            names = (devices.get((case.case_id, column), "") for case in line)
            device = next(filter(None, names), "")
            who = t("{environment} on {device}", environment=column, device=device) if device else column
            who = _joined(who, case_text(dict(line[0].axes), picture.open_axes(series)))
            label = _joined(who, in_language(series.title))
            found += [each for case in line for each in _values(case, (place, who, label), picture, series)]
    return found


def _decimals(numbers: Iterable[Number]) -> dict[str, int]:
    """The most decimals of a printed number, by quantity; more than readers take in are left to the tables."""
    decimals: dict[str, int] = {}
    for number in numbers:
        for reading in number.readings or (number.value,):
            _, _, fraction = f"{reading:.9f}".rstrip("0").partition(".")
            decimals[number.quantity] = min(_MOST_DECIMALS, max(len(fraction), decimals.get(number.quantity, 0)))
    return decimals


class _OurCase(NamedTuple):
    """A case that an environment planned."""

    suite_cases: SuiteCases
    case_id: str
    column: str
    axes: Mapping[str, Any]

    def estimate(self, quantity: str) -> Any:
        return self.suite_cases.estimate(self.case_id, self.column, quantity)


def _selected(every_suite: Iterable[SuiteCases], picture: Picture, series: PictureSeries) -> Iterator[_OurCase]:
    suites, shows = picture.suites(series), picture.selector(series)
    for suite_cases in (suite_cases for suite_cases in every_suite if suite_cases.suite in suites):
        for column in suite_cases.environments:
            environment = suite_cases.evidence.selectable(column)
            for case_id in suite_cases.case_ids:
                axes = {**suite_cases.axes[case_id], **environment}
                if shows(axes) and suite_cases.status(case_id, column) != NOT_PLANNED:
                    yield _OurCase(suite_cases, case_id, column, suite_cases.axes[case_id])


def _of_one_kind(cases: Sequence[_OurCase], picture: Picture, series: PictureSeries) -> list[_OurCase]:
    """The cases that differ in the picture's axis alone and have the most values that the picture asks for.

    Of equals: the most values, then the value that the series names first, then the protocol of the source.
    """
    open_axes, protocols = picture.open_axes(series), vocabulary_in_use().axis(PROTOCOL).values
    kinds: dict[str, list[_OurCase]] = {}
    for case in cases:
        rest = {axis: value for axis, value in case.axes.items() if axis != picture.x}
        kinds.setdefault(str(sorted(rest.items())), []).append(case)

    def rank(kind: list[_OurCase]) -> tuple[Any, ...]:
        valued = [case for case in kind if any(map(case.estimate, picture.wanted(series)))]
        asked = sum(case.axes.get(picture.x) in picture.values for case in valued)
        places = [values.index(kind[0].axes[axis]) for axis, values in open_axes.items()]
        protocol = kind[0].suite_cases.protocol
        return -asked, -len(valued), *places, protocols.index(protocol) if protocol in protocols else len(protocols)

    return min(kinds.values(), key=rank)


def _values(
    case: _OurCase, names: tuple[int, str, str], picture: Picture, series: PictureSeries
) -> Iterator[PublishedStanding]:
    suite_cases, step = case.suite_cases, case.estimate("step_s")
    for quantity in picture.wanted(series):
        row = case.estimate(quantity)
        # In the unit that the source printed.
        cell = suite_cases.cell(case.case_id, case.column, quantity, Unit(unit_of(quantity)))
        at = (case.column, False, *names, case.axes.get(picture.x), quantity)
        if row is None:
            yield PublishedStanding(*at, None, cell)
        elif not (row.synthetic and quantity == _OF_REAL_DATA):
            low, high = (row.low, row.high) if row.spread_kind else (None, None)
            yield PublishedStanding(
                *at, row.estimate, cell, low, high, row.n, step.estimate if step else None,
                suite_cases.evidence.terms.get((case.case_id, case.column, "step_s")),
                simulated=suite_cases.simulated(case.case_id, case.column),
                synthetic=row.synthetic, derived=row.derived,
            )  # fmt: skip


def _joined(*texts: str) -> str:
    return ", ".join(filter(None, texts))


def device_names(evidence: Evidence) -> Devices:
    """The name of the GPU or CPU that computed a case, by case id and environment."""
    return {key: name or t("an unknown CPU") for key, name in evidence.devices.items()}
