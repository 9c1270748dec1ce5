"""`invoke check`: one printed number, measured here in a folder of its own."""

import math
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import tomlkit
from packaging.version import InvalidVersion, Version

from tsuishi.base import exclusion, home
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.tree import write_tree
from tsuishi.commands import build, report_runs, run_suite
from tsuishi.commands.chain import Chain
from tsuishi.extras.tables import checked, written
from tsuishi.extras.tables.adopting import adopted, questions_about
from tsuishi.extras.tables.adoption import Adoption
from tsuishi.extras.tables.checkable import CheckableNumber
from tsuishi.extras.tables.hardware_names import kind_of_hardware
from tsuishi.extras.tables.picking import nearest_below, numbers_of_source, numbers_of_tables, pick, refused_in
from tsuishi.extras.tables.table_files import shown
from tsuishi.machine.compatibility import read_table
from tsuishi.plan.choice import computing, usable
from tsuishi.plan.planning import NothingToAsk
from tsuishi.plan.session import Session
from tsuishi.results.directory import RunDirectory, open_run
from tsuishi.run.resume import interrupted, resume
from tsuishi.specs.case import DEVICES, SUITE, Case
from tsuishi.specs.environment import Environment, named_environments, read_environments
from tsuishi.specs.numbers_of_cases import of_usual_values
from tsuishi.specs.printed_table import slug
from tsuishi.specs.source import FILE, Hardware, Numbers, read_sources
from tsuishi.specs.statuses import OUT_OF_MEMORY, UNSUPPORTED
from tsuishi.specs.suite import Group, read_suite
from tsuishi.verdicts.doubtful import doubts_about

_TASK = "check"
# Trials of the case, where --repetitions does not say another number.
_TRIALS = 6
# How many environments are tried, where the nearest do not support the case.
_TRIED = 3
# The longest name of a check, of its table and row.
_LONGEST = 60


@dataclass(frozen=True)
class Found:
    """A printed number that can be checked, the doubt about it, and the session that measures it.

    name: of its check. source: of this checkout; else the adoption of its table. beside: all numbers of its table.
    case_id: of the only case that is measured; empty: those that the axes of the number select.
    """

    number: CheckableNumber
    doubt: str
    session: Session
    name: str
    beside: Sequence[CheckableNumber]
    source: str = ""
    adoption: Adoption | None = None
    case_id: str = ""


def find_number(chain: Chain) -> Found:
    """The number that the options name. Raises UserError where it is not found, or is one of several."""
    session, options = chain.session, chain.options
    given, row, column = options.text("table"), options.text("row"), options.text("column")
    if not row:
        raise UserError("--row: say which row of the table, by words in it")
    name = slug(f"{row} {column} {Path(shown(given).rstrip('/')).stem}")[:_LONGEST].strip("-")
    known = () if Path(given).exists() else read_sources(session.checkout.published, session.words, False, {given})
    if unread := next((source for source in known if source.name == given), None):
        source = unread.with_tables()
        numbers = numbers_of_source(source)
        number = _above_zero(pick(numbers, row, column, ()))
        doubt = _doubt(session, number, source.numbers, source.hardware)
        return Found(number, doubt, _on_its_accelerator(session, number), name, numbers, source=given)
    adoption = adopted(chain, name, row)
    numbers = numbers_of_tables(adoption, session.words.axes)
    try:
        number = _above_zero(pick(numbers, row, column, refused_in(adoption)))
    except UserError as error:
        asked = questions_about(adoption, session.words, row)
        if not asked or " --" in str(error).replace(f"--row {row}", ""):
            raise
        answers = " or ".join(answer.typed for answer in asked[0].answers)
        raise UserError(f"{error}; {asked[0].where}: {asked[0].said} {answers}") from error
    doubt = _doubt(session, number, adoption.numbers(session.words), adoption.hardware())
    _leave_out_others(adoption, number)
    return Found(number, doubt, _on_its_accelerator(session, number), name, numbers, adoption=adoption)


def prepare(chain: Chain, found: Found) -> tuple[Checkout, str]:
    """A folder with a tree of its own and a suite with the case of the number; returns it, and the suite's name.

    The chain has the folder for itself. Raises Held where another process has it.
    """
    folder = home.expanded(chain.options.text("in") or home.data() / "checks" / found.name).absolute()
    session, checkout = chain.session, chain.session.checkout
    waits = session.screen.say if session.settings.wait else None
    chain.held.enter_context(exclusion.file(folder / ".lock", f"checking in {folder}", waits))
    if found.adoption is None:
        made, suite = _made(folder, checkout, {found.source}), str(found.number.axes[SUITE])
        _narrow(made.suites / f"{suite}.toml", found)
        return made, suite
    made, suite = _made(folder, checkout, ()), found.name.replace("-", "_")
    title = f"One number of {Path(shown(chain.options.text('table'))).name}: {chain.options.text('row')}"
    shutil.rmtree(made.published / found.name, ignore_errors=True)  # of an earlier check of this row
    written.write_source(
        found.adoption, title, made.published / found.name, made.suites / f"{suite}.toml", chain.session.words
    )
    return made, suite


def check(chain: Chain) -> None:
    """Find the number, build the nearest environment, measure, and print the lines.

    Raises UserError where the number is not found, is one of several, or cannot be measured here.
    """
    session, options, say = chain.session, chain.options, chain.session.screen.say
    found = find_number(chain)
    number, nearest = found.number, nearest_environments(found)
    inner, suite = prepare(chain, found)
    beside = f"; not read, beside it: {number.beside}" if number.beside else ""
    say(f"printed: {number.text} ({number.column}), {number.case}{beside}; the check is in {inner.root}")
    tried = nearest[: 1 if session.choice.environments else _TRIED]
    for environment in tried:
        say(f"measured in {environment.name}: {checked.nearness(number, environment)}")
        usual = {"repetitions": str(_TRIALS), "within": session.settings.within}
        sub = main_job(chain, found, inner, {**usual, "env": environment.name, "suite": suite, "name": _TASK}, _TASK)
        try:
            run = reported_run(sub)
        except NothingToAsk:
            if environment is tried[-1]:
                raise
            say(f"{environment.name} cannot run this case")
            continue
        if run is None:
            return
        lines = checked.lines_of_check(run, inner, number, environment, found.doubt)
        page = report_runs.report_folder(sub.session, [run], "") / "index.html"
        statuses = {record.status for _, record in run.finished()}
        if statuses - {UNSUPPORTED}:
            break
    chain.end_with(sub.exit_code)
    for line in (checked.markdown_table if options.has("markdown") else checked.aligned_text)(lines):
        say(line)
    say("")
    more = checked.further({**options.given, "table": shown(options.text("table"))}, page)
    if OUT_OF_MEMORY in statuses:
        more.append(nearest_below(found.beside, number, int(number.axes.get(DEVICES, 1))))
    for line in filter(None, more):
        say(line)


def reported_run(sub: Chain) -> RunDirectory | None:
    """The run of a main job, after its report; None where the job only prints its plan.

    The latest run goes on where it is of the same command, and was interrupted.
    """
    session, say = sub.session, sub.session.screen.say
    if begun := None if sub.only_plans else interrupted(session):
        say(f"run {begun.id} was interrupted, and goes on")
        try:
            sub.run_id = run_suite.measured_run(sub, partial(resume, session, begun.id)).id
        except UserError as error:
            say(f"it does not go on: {error}")
    if not sub.run_id:
        build.build(sub)
        run_suite.make_or_resume(sub)
    if sub.only_plans:
        return None
    report_runs.report(sub)
    return open_run(sub.session.settings.results, sub.run_id)


def main_job(chain: Chain, found: Found, inner: Checkout, options: Mapping[str, str], task: str) -> Chain:
    """The main job of a task in its own folder, on the accelerator of the number."""
    accelerator = found.session.choice.accelerator
    return chain.main_job(inner, task, {"accelerator": accelerator, **options}, but=("env",))


def _leave_out_others(adoption: Adoption, number: CheckableNumber) -> None:
    """Take all numbers but those of one case out of an adoption."""
    for table in adoption.tables:
        table.reading = replace(
            table.reading, numbers=[each for each in table.reading.numbers if each.axes == number.axes], refused=[]
        )
    adoption.tables = [table for table in adoption.tables if table.reading.numbers]


def _above_zero(number: CheckableNumber) -> CheckableNumber:
    """The number. Raises UserError where no ratio to it is possible."""
    if number.value <= 0:
        raise UserError(f"{number.text} is printed ({number.place}): no number has a ratio to it")
    return number


def _doubt(session: Session, number: CheckableNumber, numbers: Iterable[Numbers], hardware: Iterable[Hardware]) -> str:
    """Why a number is doubted, by the numbers beside it; empty where it is not."""
    sheets = read_table(session.checkout.images).data_sheets
    found = doubts_about(numbers, hardware, session.words, sheets)
    case = {axis: value for axis, value in number.axes.items() if axis != SUITE}
    this = case, number.quantity
    of = [
        each
        for each in found
        for cell in each.cells
        if (cell.axes, cell.quantity) == this and (cell.readings > 1 or math.isclose(cell.value, number.value))
    ]
    return f"{of[0].kind}: {of[0].reason}" if of else ""


def _made(folder: Path, ours: Checkout, sources: Collection[str]) -> Checkout:
    """The folder of a check, with a tree of its own, of whose sources only these are left: others are not asked about.

    Raises UserError where it has other files of these names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_tree(folder, ours)
    made = Checkout(folder)
    for path in ours.published.glob("*.toml"):
        copied = made.published / path.name
        if path.stem not in sources and copied.read_bytes() == path.read_bytes():
            copied.unlink()
    for path in ours.published.glob(f"*/{FILE}"):
        copied = made.published / path.parent.name
        if copied.name not in sources and (copied / FILE).read_bytes() == path.read_bytes():
            shutil.rmtree(copied)
    return made


def _narrow(path: Path, found: Found) -> None:
    """Leave nothing in a suite but the cases of a number. Raises UserError where it has none of them."""
    session, number = found.session, found.number
    suite = read_suite(session.checkout.suites / path.name, session.words)
    accelerator = computing(session.choice, session.nvml)
    cases = [
        (case, group)
        for case, group in suite.cases(session.choice.profile, accelerator)
        if (case.id == found.case_id if found.case_id else number.axes.items() <= case.values.items())
    ]
    if not cases:
        raise UserError(f"suites/{path.name} has no case of this number in the profile {session.choice.profile}")
    if not found.case_id:
        cases = of_usual_values(cases, lambda each: each[0].values, number.axes, session.words.usual)
    write_cases(session.checkout.suites / path.name, path, cases)


def write_cases(source: Path, target: Path, cases: Iterable[tuple[Case, Group]]) -> None:
    """Write a suite with nothing but these cases of it."""
    document = tomlkit.parse(source.read_text(encoding="utf-8"))
    for key in ("axes", "questions", "groups"):
        document.pop(key, None)
    groups = tomlkit.aot()
    for case, group in cases:
        axes: dict[str, Any] = {axis: value for axis, value in case.values.items() if axis != SUITE}
        kept = group.model_dump(mode="json", exclude_unset=True, include={"accelerator", "expect", "settings"})
        groups.append(tomlkit.item({"axes": axes, **kept}))
    document.add("groups", groups)
    target.write_text(tomlkit.dumps(document), encoding="utf-8")


def _on_its_accelerator(session: Session, number: CheckableNumber) -> Session:
    """The session, which computes on the CPU where the printed number is of one and no accelerator is named."""
    of_cpu = kind_of_hardware(number.hardware) == "cpu" and session.choice.accelerator == "auto"
    return replace(session, choice=replace(session.choice, accelerator="cpu")) if of_cpu else session


def nearest_environments(found: Found) -> list[Environment]:
    """The environments for a number that can be used here, or the named ones, the nearest release first.

    Raises UserError where none can be used here, and where the case needs more devices than there are.
    """
    session, number = found.session, found.number
    devices, here = int(number.axes.get(DEVICES, 1)), max(1, len(session.nvml))
    if devices > here:
        has = f"{len(session.nvml)} GPUs" if len(session.nvml) else "no GPU"
        nearest = nearest_below(found.beside, number, here) or "choose a row of fewer devices"
        raise UserError(f"the number is of {devices} GPUs, and this machine has {has}: {nearest}")
    named, framework = session.choice.environments, number.framework or "torch"
    images = session.checkout.images
    known = [each for each in read_environments(images) if each.framework == framework]
    if named:
        known = [*named_environments(images, named)]
    with_library = [each for each in known if not number.library or number.library in {pin.name for pin in each.pins}]
    fit = usable(session.builder, session.choice, session.nvml, with_library, to_run=True)
    if not fit.environments:
        wanted = " with ".join(filter(None, [framework, number.library]))
        reasons = fit.reasons or f"images/ has none with {wanted}"
        raise UserError(f"no environment with {wanted} can be used here: {reasons}")
    accelerator = computing(session.choice, session.nvml)
    return sorted(fit.environments, key=lambda each: (accelerator not in each.accelerators, *_distance(number, each)))


def _distance(number: CheckableNumber, environment: Environment) -> tuple[float, float]:
    """How far the release of an environment is from the printed release, then from the newest."""
    ours = _ordinal(environment.release)
    printed = number.release
    return (abs(ours - _ordinal(printed)) if printed else 0.0, -ours)


def _ordinal(release: str) -> float:
    try:
        version = Version(release)
    except InvalidVersion:
        return 0.0
    return version.major + version.minor / 100 + version.micro / 10_000
