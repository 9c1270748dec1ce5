"""`invoke try-script`: runs a script once, proposes patterns for the numbers that it prints, and writes its suite."""

import re
import shlex
import shutil
from pathlib import Path

from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.commands.chain import Chain
from tsuishi.plan.script_output import output_of
from tsuishi.plan.session import Session
from tsuishi.specs import notebooks
from tsuishi.specs.experiment import WORKLOAD, Experiment, ExperimentFile, inside
from tsuishi.specs.proposals import Proposal, lines_of, proposals, suite_text
from tsuishi.specs.suite import read_suite

_TIMEOUT_S = 600.0
_FIRST_LINES = 5


def try_script(chain: Chain, given: str) -> None:
    """Run the script or notebook at that path in the only environment of --env, and write suites/<its name>.toml.

    Raises UserError where there is such a suite already, and where the script fails: then nothing is written.
    """
    session, script = chain.session, Path(given)
    if len(session.choice.environments) != 1:
        raise UserError("say in which environment, one, as in --env host")
    suite = session.checkout.suites / f"{_name(script)}.toml"
    if suite.exists():
        raise UserError(f"{suite}: there is such a suite already: remove it, or give the script another name")
    beside = chain.options.names("files")
    if script.suffix != notebooks.SUFFIX:
        _try(chain, script, suite, tuple(_beside(script.parent, name) for name in beside))
        return
    with files.private_folder() as folder:
        (folder / f"{script.stem}.py").write_text(notebooks.script_of(script), encoding="utf-8")
        given_files = tuple(_beside(script.parent, name) for name in beside)
        for file in given_files:
            _copy(script.parent / file.path, folder / file.path)
        _try(chain, folder / f"{script.stem}.py", suite, given_files)


def _try(chain: Chain, script: Path, suite: Path, beside: tuple[ExperimentFile, ...]) -> None:
    session, options = chain.session, chain.options
    experiment = Experiment(
        script=script.name,
        sha256=_digest(script),
        command=("python", "{script}", *_words(options.text("arguments"))),
        files=beside,
    )
    _refuse_others(experiment, script.parent, suite.parent)
    timeout_s = float(session.choice.timeout_s or _TIMEOUT_S)
    lines = lines_of(output_of(session, experiment, script.parent, timeout_s))
    words = session.words
    proposed = proposals(lines, {*words.quantities, *words.axes}, suite.stem)
    _say(session, lines, proposed)
    for file in experiment.every_file:
        _copy(script.parent / file.path, suite.parent / file.path)
    with files.replacing(suite) as writing:
        writing.write(suite_text(script.name, experiment, proposed, timeout_s))
    read_suite(suite, session.words)
    (environment,) = session.choice.environments
    shown = session.checkout.from_here(suite.relative_to(session.checkout.root))
    session.screen.say(f"written: {shown}: read it, and remove or correct what is not meant")
    then = f"invoke build run-suite report --suite {suite.stem}"
    session.screen.say(f"then: {then} --profile quick --env {environment}")
    session.screen.say(f"or, to compare it with another environment: {then} --env OTHER,{environment}")


def _say(session: Session, lines: list[str], proposed: list[Proposal]) -> None:
    """Show every proposal with its line; without any, the first lines."""
    if not proposed:
        session.screen.say("no line looks like `name: number unit`: only the time of the whole script is measured")
        for line in lines[:_FIRST_LINES]:
            session.screen.say(f"  {line}")
        return
    rows = [(proposal.metric, proposal.unit, proposal.count, proposal.example) for proposal in proposed]
    session.screen.table("Proposed", ("quantity", "unit", "lines", "the first line"), rows)


def _name(script: Path) -> str:
    """The name of the script's suite."""
    name = re.sub(r"[^a-z0-9_]+", "_", script.stem.lower()).strip("_")
    return name if name[:1].isalpha() else f"{WORKLOAD}_{name}"


def _words(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError as error:
        raise UserError(f"--arguments: {error}; given: {arguments}") from error


def _beside(folder: Path, name: str) -> ExperimentFile:
    """A file that the script reads. Raises UserError where it is not below the script's folder."""
    try:
        return ExperimentFile(path=inside(name), sha256=_digest(folder / name))
    except ValueError as error:
        raise UserError(f"--files: {error}") from error


def _digest(path: Path) -> str:
    try:
        return files.sha256_of(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error


def _refuse_others(experiment: Experiment, folder: Path, suites: Path) -> None:
    """Raise UserError where suites/ has another file of the same name."""
    for file in experiment.every_file:
        there = suites / file.path
        if there.exists() and _digest(there) != file.sha256:
            raise UserError(f"{there}: not the same file as {folder / file.path}: rename one of them")


def _copy(source: Path, target: Path) -> None:
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
