"""`invoke ab BASE HEAD -- COMMAND`: two versions of a program in turns, until every number of both is decided."""

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tsuishi.base import exclusion, files, home
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import EXIT_VERDICT, UserError
from tsuishi.base.tree import write_tree
from tsuishi.base.units import counted, duration
from tsuishi.commands import build, run_suite
from tsuishi.commands.chain import Chain
from tsuishi.commands.options import Options
from tsuishi.extras.ab import outcome_files
from tsuishi.extras.ab.comparison import SOURCE, SUITE_NAME, Comparison
from tsuishi.extras.ab.numbers import FoundNumbers, found_numbers, renamed
from tsuishi.extras.ab.side_outcome import ComparisonOutcome, of_command, outcome_of
from tsuishi.extras.ab.sides import NAMES, Side, made, sides_of, variables_of_user, why_shared
from tsuishi.extras.scripts.try_script import ScriptFailed, built_for, output_of_script
from tsuishi.machine.interpreters import real_executable
from tsuishi.plan.planning import TooShort
from tsuishi.plan.session import Session
from tsuishi.results.directory import open_run
from tsuishi.specs.source import read_sources
from tsuishi.specs.vocabulary import vocabulary

_TASK, _HOST = "ab", "host"
_LIMIT = 1.05
_TIMEOUT_S = 600.0
# Calls on the same two versions, beside their runs.
_CALLS = "calls.json"
_DOUBTS = 3


def compare(chain: Chain) -> None:
    """Make the sides ready, run each once, measure both in turns, and print and write the outcome.

    Raises UserError where a side cannot be made or the command is missing. A side whose command fails ends the call
    with the exit code of a slower number.
    """
    options, here, command = chain.options, Path.cwd(), _command(sys.argv)
    limit = _check(options)
    sides = sides_of((options.text("base"), options.text("head")), command, chain.checkout.images, here)
    if not command and not sides[0].command:
        raise UserError("say what to run behind --, as in: invoke ab main HEAD -- python bench.py")
    folder = home.data() / "ab" / _name(sides, command, here)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    out = home.expanded(options.text("out")) if options.has("out") else folder / "outcome"
    for place in (out, *([home.expanded(options.text("bencher")).parent] if options.has("bencher") else [])):
        place.mkdir(parents=True, exist_ok=True)  # now, and not after ten minutes
    waits = chain.session.screen.say if chain.session.settings.wait else None
    chain.held.enter_context(exclusion.file(folder / ".lock", f"comparing in {folder}", waits))
    inner = _tree(folder / "tree", chain.checkout)
    sub = _main_job(chain, inner, sides)
    say, setup = sub.session.screen.say, options.text("setup")
    _say_earlier(folder, sides, say)
    python = real_executable(Path(shutil.which(sub.session.settings.host_python) or sys.executable))
    with sub.session.clock.apart():
        sides = made(sides, folder / "sides", here, str(python), setup, say)
    notes = [*why_shared(here)] if sides[0].version and not sides[0].command and not setup else []
    for note in notes:
        say(note)
    compared = Comparison(sides, command, options.text("numbers"), limit, inner.suites)
    outcome = _outcome(sub, compared)
    _end(chain, replace(outcome, notes=notes), compared, folder, out, sub)


def _outcome(sub: Chain, compared: Comparison) -> ComparisonOutcome:
    """What trials of both sides come to."""
    with files.private_folder() as folder:  # the variables may be secrets: they are there no longer than this block
        private = folder / "variables.json"
        compared.write_private(private, variables_of_user())
        try:
            return _measured(sub, compared, private, *_tried(sub.session, compared, private))
        except _SideFailed as failed:
            return ComparisonOutcome((), (str(failed),), compared.limit)
        except TooShort as short:
            return ComparisonOutcome((), (), compared.limit, unclear=(f"undecided: {short}",))


class _SideFailed(Exception):
    """The command failed in a side, with the reason."""


def _command(words: Sequence[str]) -> list[str]:
    """The words behind `--`, each whole: Invoke itself would join them by spaces."""
    return [*words[words.index("--") + 1 :]] if "--" in words else []


def _check(options: Options) -> float:
    """The limit. Raises UserError for a wrong value of it, or of --undecided."""
    given = options.text("limit")
    try:
        limit = float(given or _LIMIT)
    except ValueError:
        limit = 0.0
    if not 1 < limit < 100:
        raise UserError(f"--limit takes a number above 1, as 1.05; given: {given}")
    if (undecided := options.text("undecided")) not in ("", "fail", "pass"):
        raise UserError(f"--undecided takes fail or pass; given: {undecided}")
    return limit


def _name(sides: Sequence[Side], command: Sequence[str], here: Path) -> str:
    """The name of the folder of all calls with this command from this place."""
    whole = json.dumps([str(here), *command, *(sides[0].command or ()), bool(sides[0].environment)])
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '-', here.name) or 'root'}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def _tree(folder: Path, ours: Checkout) -> Checkout:
    """A tree of its own, whose only source will be the claims of the comparison, without those of an earlier call."""
    folder.mkdir(exist_ok=True)
    write_tree(folder, ours)
    made_tree = Checkout(folder)
    shutil.rmtree(made_tree.published, ignore_errors=True)
    made_tree.published.mkdir(parents=True)
    (made_tree.suites / f"{SUITE_NAME}.toml").unlink(missing_ok=True)
    return made_tree


def _main_job(chain: Chain, inner: Checkout, sides: Sequence[Side]) -> Chain:
    """The main job of the comparison, in its own tree. The commands are the user's own, so nothing confines them."""
    environments = [side.environment for side in sides if side.environment]
    engine = "venv" if environments else _HOST
    options = {"env": ",".join(environments) or _HOST, "suite": SUITE_NAME, "name": _TASK, "engine": engine}
    sub = chain.main_job(inner, _TASK, options, but=("out",), configured={"sandbox": False})
    if sub.session.clock.within_s is None:
        raise UserError("--within none: every number may need any time: give the longest, as --within 2h")
    sub.session = replace(sub.session, with_report=False)
    return sub


def _tried(session: Session, compared: Comparison, private: Path) -> tuple[FoundNumbers, float]:
    """Run each side once. Returns the numbers of both, and the seconds of a trial of both. Raises _SideFailed."""
    outputs = dict[str, tuple[bytes, float]]()
    experiment = compared.experiment(private, lines=True)
    ready, timeout_s = built_for(session), _timeout_s(session)
    for name, side in zip(NAMES, compared.sides, strict=True):
        of_side = experiment.model_copy(update={"command": (*experiment.command[:2], name)})
        there = ready[side.environment or _HOST]
        try:
            outputs[name] = output_of_script(session, there, of_side, compared.folder, None, timeout_s)
        except ScriptFailed as failed:
            raise _SideFailed(f"{name.upper()}, {side.title}: {of_command(failed.why)}") from None
    words = session.words
    found = found_numbers(outputs, {*words.quantities, *words.axes}, of_file=bool(compared.numbers))
    _say_numbers(session, found)
    return found, sum(wall_s for _, wall_s in outputs.values())


def _timeout_s(session: Session) -> float:
    return float(session.choice.timeout_s or _TIMEOUT_S)


def _say_numbers(session: Session, found: FoundNumbers) -> None:
    say = session.screen.say
    named = ", ".join(proposal.label for proposal in found.compared) or "none"
    say(f"compared: {named}")
    if found.others:
        say(f"not compared, as they are neither times nor rates: {', '.join(found.others)}")
    for doubt in found.doubts[:_DOUBTS]:
        say(f"not compared: {doubt.why}, in the line: {doubt.line.strip()}")


def _measured(sub: Chain, compared: Comparison, private: Path, found: FoundNumbers, pair_s: float) -> ComparisonOutcome:
    """The outcome of trials of both sides in turns, with the numbers that a side lacks."""
    proposed, session, inner = renamed(found.compared), sub.session, sub.checkout
    missing = [
        f"{other.upper()} gives no {name}, which {side.upper()} gives"
        for side, other in (NAMES, NAMES[::-1])
        for name in found.only[side]
    ]
    if not proposed:
        return ComparisonOutcome((), missing, compared.limit, pair_s)
    experiment = compared.experiment(private, lines=found.by_launcher)
    suite = inner.suites / f"{SUITE_NAME}.toml"
    suite.write_text(compared.suite(experiment, proposed, _timeout_s(session), pair_s / 2), encoding="utf-8")
    (inner.published / f"{SOURCE}.toml").write_text(compared.source(proposed), encoding="utf-8")
    build.build(sub)
    run_suite.make_or_resume(sub)
    run, words = open_run(session.settings.results, sub.run_id), vocabulary(inner.suites)
    (source,) = read_sources(inner.published, words, False, {SOURCE})
    outcome = outcome_of(run, source, words, proposed, compared.limit)
    return replace(outcome, failures=[*missing, *outcome.failures])


def _say_earlier(folder: Path, sides: Sequence[Side], say: Callable[[str], None]) -> None:
    """Say how often these versions were compared before: each call has an error of its own."""
    versions = [side.version for side in sides]
    calls = outcome_files.read_calls(folder / _CALLS) if all(versions) else []
    if earlier := [call for call in calls if call["versions"] == versions]:
        red = sum(call["exit_code"] == EXIT_VERDICT for call in earlier)
        say(
            f"another look: these versions were compared in {counted(len(earlier), 'call')} before, {red} of them red; "
            "each call may be wrong in 5 % of cases, and several calls more often"
        )


def _end(chain: Chain, outcome: ComparisonOutcome, compared: Comparison, folder: Path, out: Path, sub: Chain) -> None:
    """Print and write the outcome; the chain gets the exit code."""
    options, say = chain.options, chain.session.screen.say
    for line in outcome_files.lines(outcome, compared):
        say(line)
    code = outcome.exit_code(undecided_passes=options.text("undecided") == "pass")
    chain.end_with(code)
    versions = [side.version for side in compared.sides]
    began = datetime.now(UTC).isoformat(timespec="seconds")
    outcome_files.add_call(folder / _CALLS, {"versions": versions, "exit_code": code, "at": began})
    outcome_files.write_outcome(out, outcome, compared, began)
    if options.has("bencher"):
        outcome_files.write_bencher(home.expanded(options.text("bencher")), outcome)
    run = f"; run: {open_run(sub.session.settings.results, sub.run_id).path}" if sub.run_id else ""
    say(f"took {duration(chain.session.clock.spent_s)}; summary: {out / outcome_files.SUMMARY}{run}")
