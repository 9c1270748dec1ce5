"""`invoke try-script`: runs a script once, proposes patterns for the numbers that it prints, and writes its suite."""

import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

from tsuishi.artifacts import datasets
from tsuishi.base import files
from tsuishi.base.errors import UserError
from tsuishi.commands.chain import Chain
from tsuishi.environments.entry import Ready
from tsuishi.environments.probe import ask
from tsuishi.extras.scripts import notebooks
from tsuishi.extras.scripts.proposals import Doubt, Proposal, lines_of, proposals, suite_text
from tsuishi.machine.compatibility import accelerator_for
from tsuishi.plan.choice import choose
from tsuishi.plan.session import Session
from tsuishi.plan.trials import with_its_data
from tsuishi.specs.experiment import WORKLOAD, Experiment, ExperimentData, ExperimentFile, ScriptOrder, lacking
from tsuishi.specs.suite import read_suite

_TIMEOUT_S = 600.0
_FIRST_LINES = 5
# Of the output, which may be endless.
_MOST_BYTES, _TAIL_BYTES = 4 << 20, 64 << 10
# The argument of the workload, which names every file, is at most 128 KiB long.
_MOST_FILES = 300
# The folder of suites/ that no script may have.
_WORKLOADS = "workloads"


class ScriptFailed(UserError):
    """The script failed in an environment. `why`: the reason alone."""

    def __init__(self, name: str, environment: str, why: str, remedy: str) -> None:
        super().__init__(f"{name} in {environment}: {why}{remedy}; nothing is written")
        self.why = why


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
    with files.private_folder() as folder:  # laid out as suites/ will have it
        home = folder / suite.stem
        home.mkdir()
        copy = home / script.name
        if script.suffix == notebooks.SUFFIX:
            copy = copy.with_suffix(".py")
            copy.write_text(notebooks.script_of(script), encoding="utf-8")
        else:
            _copy(script, copy)
        for path in _given(chain, "files", script.parent):
            for file in _files(script.parent, path):
                _copy(script.parent / file, home / file)
        data = tuple(_data(chain, script.parent, path) for path in _given(chain, "data", script.parent))
        _try(chain, copy, script.parent, suite, data)


def _try(chain: Chain, script: Path, beside: Path, suite: Path, data: tuple[ExperimentData, ...]) -> None:
    """Run the copy of a script, propose patterns, and copy its folder to suites/. beside: the script's own folder."""
    session, options, folder = chain.session, chain.options, script.parents[1]
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    digests = {path: files.sha256_of(folder / path) for path in paths}
    if len(digests) > _MOST_FILES:
        raise UserError(f"--files: {len(digests)} files, and a suite takes {_MOST_FILES}: give data as --data")
    path = script.relative_to(folder).as_posix()
    experiment = Experiment(
        script=path,
        sha256=digests.pop(path),
        command=("python", "{script}", *_words(options.text("arguments"))),
        files=tuple(ExperimentFile(path=path, sha256=digest) for path, digest in digests.items()),
        data=data,
    )
    _refuse_others(folder, suite)
    timeout_s = float(session.choice.timeout_s or _TIMEOUT_S)
    (ready,) = built_for(session).values()
    printed, wall_s = output_of_script(session, ready, experiment, folder, beside, timeout_s)
    lines, words = lines_of(printed), session.words
    proposed, doubts = proposals(lines, {*words.quantities, *words.axes}, suite.stem, wall_s)
    _say(session, lines, proposed, doubts)
    for file in experiment.every_file:
        _copy(folder / file.path, suite.parent / file.path)
    with files.replacing(suite) as writing:
        writing.write(suite_text(script.name, experiment, proposed, timeout_s))
    read_suite(suite, session.words)
    (environment,) = session.choice.environments
    shown = session.checkout.from_here(suite.relative_to(session.checkout.root))
    session.screen.say(f"written: {shown}: read it, and remove or correct wrong entries")
    then = f"invoke build run-suite report --suite {suite.stem}"
    session.screen.say(f"then: {then} --profile quick --env {environment}")
    session.screen.say(f"or, to compare it with another environment: {then} --env OTHER,{environment}")


def built_for(session: Session) -> dict[str, Ready]:
    """The chosen environments, ready to be entered."""
    return session.build(choose(session.builder, session.choice, session.nvml).environments)


def output_of_script(
    session: Session, ready: Ready, experiment: Experiment, folder: Path, beside: Path | None, timeout_s: float
) -> tuple[bytes, float]:
    """What the script prints, of a long output its beginning and end, and its seconds. Raises ScriptFailed.

    folder: that of its files, as suites/ will have them. beside: the folder that they come from, where a missing module
    may lie; None: nothing is said of that.
    """
    output, tail = bytearray(), bytearray()

    def keep(piece: bytes) -> None:
        room = _MOST_BYTES - len(output)
        output.extend(piece[:room])
        tail.extend(piece[room:])
        del tail[:-_TAIL_BYTES]

    asked = ScriptOrder(
        folder=folder.absolute(),
        files=experiment.every_file,
        command=tuple(experiment.filled(word, {}) for word in experiment.command),
        variables={},
        patterns=(),
        numerals={},
        data=experiment.data,
    )
    order = with_its_data(asked, session.settings.cache)
    if open_to_it := ready.without_walls(Path(experiment.script).name):
        session.screen.say(open_to_it)
    wall_s, why_not = _ask(session, ready, order, timeout_s, keep)
    if why_not:
        remedy = lacking(why_not, beside, ready.environment) if beside else ""
        raise ScriptFailed(Path(experiment.script).name, ready.environment.name, why_not, remedy)
    return bytes(output + tail), wall_s


def _ask(
    session: Session, ready: Ready, order: ScriptOrder, timeout_s: float, keep: Callable[[bytes], None]
) -> tuple[float, str]:
    """Start the script and wait for its end. Returns its seconds, and why it failed; empty where it did not."""
    mounts = order.mounts()
    accelerator = accelerator_for(ready.environment, session.nvml, session.choice.accelerator)
    argument = {
        "case": {"protocol": "literal"},
        "accelerator": accelerator,
        "settings": {},
        "script": order.content(lambda path: ready.starter.inside(path, mounts[path])),
    }
    gpus = tuple(session.nvml.gpus[:1]) if accelerator == "cuda" else ()
    transcript, why_not = ask(
        ready.starter, ready.built, session.checkout, WORKLOAD, argument, timeout_s, gpus, mounts=mounts, on_log=keep
    )
    return sum((phase.end_s or phase.begin_s) - phase.begin_s for phase in transcript.phases()), why_not


def _say(session: Session, lines: list[str], proposed: list[Proposal], doubts: list[Doubt]) -> None:
    """Show every proposal with its line, and lines in doubt; without any proposal, the first lines."""
    say = session.screen.say
    if proposed:
        rows = [(proposal.metric, proposal.unit, proposal.count, proposal.example) for proposal in proposed]
        session.screen.table("Proposed", ("quantity", "unit", "lines joined", "the first line"), rows)
    else:
        say("no line looks like `name: number unit`: only the time of the whole script is measured")
        for line in lines[:_FIRST_LINES]:
            say(f"  {line}")
    for doubt in doubts[:_FIRST_LINES]:
        say(f"not proposed: {doubt.why}, in the line: {doubt.line.strip()}")


def _name(script: Path) -> str:
    """The name of the script's suite, and of its folder. Raises UserError where no file can have it."""
    name = re.sub(r"[^a-z0-9_]+", "_", script.stem.lower()).strip("_")
    name = name if name[:1].isalpha() and name != _WORKLOADS else f"{WORKLOAD}_{name}"
    if why := files.unfit(name):
        raise UserError(f"{script.name}: the script gives its suite the name: {why}")
    return name


def _words(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError as error:
        raise UserError(f"--arguments: {error}; given: {arguments}") from error


def _given(chain: Chain, option: str, folder: Path) -> list[str]:
    """The paths of an option, as from the folder of the script."""
    return [os.path.relpath(folder / path, folder) for path in chain.options.paths(option, folder)]


def _files(folder: Path, path: str) -> list[str]:
    """The file, or those in the folder and below, without hidden files and bytecode. Raises UserError where none is."""
    if ".." in Path(path).parts:
        raise UserError(f"--files: '{path}' leads out of the folder of the script: what it only reads is --data")
    if not (folder / path).is_dir():
        return [path]
    inside = (file.relative_to(folder) for file in (folder / path).rglob("*") if file.is_file())
    return sorted(str(file) for file in inside if not any(part.startswith((".", "__pycache__")) for part in file.parts))


def _data(chain: Chain, folder: Path, path: str) -> ExperimentData:
    """Data for the script, known by their digest from now on (see `datasets.linked`).

    Raises UserError where they are not there, or are the folder that the script itself is in.
    """
    data = (folder / path).resolve()
    if folder.resolve().is_relative_to(data):
        raise UserError(f"--data: '{path}' is the folder of the script, or has it within: name files or folders in it")
    digest = datasets.digest_of(data)
    place = datasets.folder(chain.session.settings.cache) / digest
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to(data)
    return ExperimentData(path=path, sha256=digest)


def _refuse_others(folder: Path, suite: Path) -> None:
    """Raise UserError where the folder of the script in suites/ has other files."""
    for there in filter(Path.is_file, (suite.parent / suite.stem).rglob("*")):
        ours = folder / there.relative_to(suite.parent)
        if not ours.is_file() or files.sha256_of(there) != files.sha256_of(ours):
            raise UserError(f"{there}: there already, and no such file of the script: remove it, or rename the script")


def _copy(source: Path, target: Path) -> None:
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(source, target)
        except OSError as error:
            raise UserError(f"{source}: {error.strerror}") from error
