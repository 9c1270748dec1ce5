"""`invoke replay`: the cases of an archive or a run, measured on this machine, and a report of both side by side.

Without --signer nothing of the original run is executed: its plan chooses among the trials that this checkout makes
(resume.py), and workloads and specifications here must be those that it was measured with.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from tsuishi.base import files
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import UserError
from tsuishi.base.files import sha256_of
from tsuishi.base.home import expanded
from tsuishi.base.units import counted, duration
from tsuishi.commands.chain import Chain
from tsuishi.commands.report_runs import report_of
from tsuishi.commands.run_suite import measured_run
from tsuishi.environments.build_plan import plan_builds
from tsuishi.environments.entry import Ready
from tsuishi.extras.handover.archives import signature
from tsuishi.extras.handover.archives.archive_check import unpacked_runs
from tsuishi.extras.handover.archives.member_names import INPUTS
from tsuishi.extras.handover.archives.specifications import is_asked
from tsuishi.extras.handover.restoration import restore
from tsuishi.plan.choice import why_not_run
from tsuishi.plan.outline import Outline
from tsuishi.plan.planning import Plan, await_others, measurable
from tsuishi.plan.session import Session
from tsuishi.plan.trials import PlannedTrial
from tsuishi.results import directory
from tsuishi.results.directory import RunDirectory
from tsuishi.results.records import AnyRecord, EnvironmentRecord, WorkloadRecord
from tsuishi.results.run_record import OriginalRun, RunRecord
from tsuishi.results.verification import verify
from tsuishi.run.new_run import require_name, run_of_plan
from tsuishi.run.resume import environments_of_plan, planned_again, refuse_other_data, session_of_plan
from tsuishi.specs.environment import COMPATIBILITY, Environment, find_environment
from tsuishi.specs.trial_spec import Trial
from tsuishi.specs.vocabulary import AXES_FILE, QUANTITIES_FILE

_CONTAINERS = "docker"
_UNPACKED = "archive"
_SHOWN = 5

# The inputs that are taken. The template of a Dockerfile is not: it would be rendered outside of a container.
_TAKEN = ("suites", "images", "reports/published")
_NEEDED = (f"suites/{AXES_FILE}", f"suites/{QUANTITIES_FILE}", "suites/workloads/run.py")


class Original(NamedTuple):
    """A verified run, its root, and the session that replays it."""

    run: RunDirectory
    root: str
    session: Session


@dataclass(frozen=True)
class Replay:
    """The replayed part of a run: `trials` in `environments`. `left_out`: why environments are not used, by name.

    `session`: with the choice of the original run. `original`: as run.json of the replay names it.
    """

    session: Session
    original: OriginalRun
    recorded: RunRecord
    environments: tuple[Environment, ...]
    trials: tuple[PlannedTrial, ...]
    left_out: Mapping[str, str]

    @property
    def expected_s(self) -> float:
        return sum(trial.expected_s for trial in self.trials)


def replay(chain: Chain) -> None:
    """Replay the runs of an archive, or a run by its id or path. The chain gets an exit code if a trial failed.

    Raises UserError where the original is not verified, or was measured with other workloads or environments than this
    checkout has. With the option `signer`, an archive's own suites and workloads are run, in containers.
    """
    session, options = chain.session, chain.options
    require_name(options.text("name"))
    original = options.text("original")
    archive = path if (path := expanded(original)).is_file() else None
    with files.private_folder() as folder:
        if archive:
            originals = archived_originals(session, archive, options.text("signer"), folder)
        elif options.has("signer"):
            raise UserError("--signer goes with an archive: runs by themselves are not signed")
        else:
            originals = [_own(session, original)]
        planned = [plan_replay(each.session, each.run, each.root) for each in originals]
        for each in planned:
            if options.has("signer"):
                require_containers(each)
            if not chain.only_plans:
                builds = plan_builds(each.session.builder, each.environments, session.history)
                await_others(each.session, builds, measures=True)
            _say(each)
        if chain.only_plans:
            return
        made = []
        for found, each in zip(originals, planned, strict=True):
            ready = _environments(each, found.run, archive)
            made.append(measured_run(chain, partial(measure, each, ready, options.text("name") or "replay")))
        report_of(chain, [*(found.run for found in originals), *made])


def archived_originals(session: Session, archive: Path, signer: str, folder: Path) -> list[Original]:
    """The runs of an archive. signer: a public key or a file of allowed signers; one of them must have signed.

    Raises UserError where none of them did, and where the session names an engine without containers.
    """
    found = unpacked_runs(session, archive, folder / _UNPACKED)
    runs = zip(found.runs, found.roots, strict=True)
    if not signer:
        return [Original(run, root, session) for run, root in runs]
    if not signature.signers(archive, found.root, expanded(signer)):
        raise UserError(f"{archive}: no signer in {signer} has signed it: its code is not run")
    if session.settings.engine not in ("auto", _CONTAINERS):
        raise UserError(f"the code of an archive runs in containers only, not with --engine {session.settings.engine}")
    in_containers = session.settings.model_copy(update={"engine": _CONTAINERS})
    originals = []
    for number, (run, root) in enumerate(runs):
        into = folder / f"code-{number}"
        theirs = archived_checkout(archive, folder / _UNPACKED, run.run().run_id, into, session.checkout)
        originals.append(Original(run, root, replace(session, checkout=theirs, settings=in_containers)))
    session.screen.say(f"{archive}: its own suites and workloads are run, in containers: {signer} names who signed it")
    return originals


def archived_checkout(archive: Path, content: Path, run_id: str, into: Path, ours: Checkout) -> Checkout:
    """The inputs of a run as a checkout in the new folder `into`.

    content: the folder into which the archive was unpacked when it was verified. Templates, and the facts about GPUs,
    are those of our checkout. Raises UserError where the archive does not hold all inputs of the run.
    """
    inputs = content / INPUTS / run_id
    if missing := [name for name in _NEEDED if not (inputs / name).is_file()]:
        raise UserError(
            f"{archive}: it does not hold the code of run {run_id} ({', '.join(missing)}); `left_out` in its "
            "archive.json says why"
        )
    for name in _TAKEN:
        (inputs / name).mkdir(parents=True, exist_ok=True)
        # Explanations run outside of containers, too.
        shutil.copytree(inputs / name, into / name, ignore=shutil.ignore_patterns("explanations"))
    shutil.copy(ours.images / COMPATIBILITY, into / "images")
    (into / "templates").symlink_to(ours.templates)
    return Checkout(into)


def require_containers(planned: Replay) -> None:
    """Raise UserError where an environment of a replay would be entered without a container."""
    engines = planned.session.builder.engines
    for environment in planned.environments:
        if engines.chosen_for(environment).name != _CONTAINERS:
            raise UserError(
                f"the code of an archive runs in containers only, and {environment.name} is not a container"
            )


def _own(session: Session, name: str) -> Original:
    """The verified run by its id or path."""
    run = directory.open_run(session.settings.results, name)
    found = verify(run, session.words)
    if not found.is_verified:
        raise UserError(f"{found.faults[0]}; `invoke verify --run {name}` names every fault")
    return Original(run, found.root, session)


def _environments(planned: Replay, run: RunDirectory, archive: Path | None) -> dict[str, Ready]:
    """The environments of a replay by name, ready to be entered: from the archive, if it holds them."""
    if archive is None:
        return planned.session.build(planned.environments)
    names = {environment.name for environment in planned.environments}
    return restore(planned.session, archive, [run], names)


def plan_replay(given: Session, run: RunDirectory, root: str) -> Replay:
    """The replay of a verified run, with its root. Raises UserError where this checkout differs from the run's.

    Trials are left out that need another accelerator or more GPUs than this machine has.
    """
    recorded = run.run()
    records = [run.record(path.stem) for path in run.record_files()]
    if different := [*_differences(records, given.checkout)]:
        others = f" and {len(different) - _SHOWN} more" if len(different) > _SHOWN else ""
        raise UserError(
            f"run {run.id} was measured with files that differ here: {'; '.join(different[:_SHOWN])}{others}: "
            f"use the checkout of the run ({_commit(recorded)}), or only compare by `invoke report`"
        )
    if not recorded.plan:
        raise UserError(f"run {run.id} was stopped before it planned a trial: there is nothing to replay")
    session = session_of_plan(given, run.path, recorded, _engine(given, records))
    refuse_other_data(session, run, recorded)
    environments = environments_of_plan(session, recorded)
    left_out = dict(_unusable(session, environments, recorded.plan))
    entries = tuple(entry for entry in recorded.plan if entry.environment not in left_out)
    planned = planned_again(session, run.path, recorded.model_copy(update={"plan": entries}), environments)
    trials = tuple(trial for trial in planned if _fits(session, trial))
    if len(trials) < len(planned):
        few = f"{counted(len(planned) - len(trials), 'trial')} that need more GPUs than this machine has"
        session.screen.say(f"left out: {few}")
    if not trials:
        why = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise UserError(f"no trial of run {run.id} can be run here{': ' if why else ''}{why}")
    used = {trial.environment for trial in trials}
    choice = replace(session.choice, environments=tuple(name for name in environments if name in used))
    return Replay(
        replace(session, choice=choice),
        OriginalRun(run_id=recorded.run_id, root=root),
        recorded,
        tuple(environment for name, environment in environments.items() if name in used),
        trials,
        left_out,
    )


def _say(planned: Replay) -> None:
    """Print what a replay measures."""
    session, names = planned.session, [environment.name for environment in planned.environments]
    for name, reason in planned.left_out.items():
        session.screen.say(f"left out: {name}: {reason}")
    within_s = session.clock.within_s
    how_long = f"about {duration(planned.expected_s)}" if within_s is None else f"at most {duration(within_s)}"
    trials = counted(len(planned.trials), "trial")
    session.screen.say(f"replay of run {planned.original.run_id}: {trials} in {', '.join(names)}, {how_long}")


def measure(planned: Replay, ready: Mapping[str, Ready], name: str) -> RunDirectory:
    """Measure a replay as a new run with `name` in its id. ready: its environments, by name.

    Without a time, every trial is measured once; within a time, the questions of the original run get as many trials
    as there is time for.
    """
    session, recorded = planned.session, planned.recorded
    asked = tuple(question for question in recorded.questions if {*question.environments} <= {*ready})
    if session.clock.within_s is None:
        outlined = Outline(asked=asked, trials=planned.trials)
    else:
        matrix = measurable(session, [environment.as_built for environment in ready.values()], ready)
        outlined = Outline(matrix, asked)
    plan = Plan(planned.environments, planned.expected_s, outlined, planned.left_out)
    return run_of_plan(session, name, plan, ready, original=planned.original)


def _differences(records: Iterable[AnyRecord | None], checkout: Checkout) -> Iterator[str]:
    """The files of workloads, and the environments, whose records in a run differ from this checkout."""
    changed: dict[str, None] = {}

    @cache  # the records of all workloads name the same files
    def digest_here(path: Path) -> str:
        return sha256_of(path) if path.is_file() else ""

    for record in records:
        if isinstance(record, WorkloadRecord):
            for file, digest in (record.files or {}).items():
                if digest_here(checkout.workloads / file) != digest:
                    changed[f"workloads/{file}"] = None
        elif isinstance(record, EnvironmentRecord):
            here = find_environment(checkout.images, record.name)
            if here is None or not is_asked(record, here, checkout):
                changed[f"the specification or lock of {record.name}"] = None
    yield from changed


def _commit(recorded: RunRecord) -> str:
    commit = recorded.git and recorded.git.commit
    changed = " with uncommitted changes" if recorded.git and recorded.git.dirty else ""
    return f"commit {commit}{changed}" if commit else "its commit is not recorded"


def _engine(given: Session, records: Iterable[AnyRecord | None]) -> dict[str, str]:
    """The engine of the original run, unless the user names an engine, or the run has several."""
    engines = {record.engine for record in records if isinstance(record, EnvironmentRecord) and record.engine}
    return {"engine": engines.pop()} if given.settings.engine == "auto" and len(engines) == 1 else {}


def _unusable(
    session: Session, environments: Mapping[str, Environment], plan: Sequence[Trial]
) -> Iterator[tuple[str, str]]:
    """The environments that this machine cannot make or use as the plan does, each with the reason."""
    for name, environment in environments.items():
        refusal = session.builder.engines.refusal(environment)
        for accelerator in {entry.accelerator for entry in plan if entry.environment == name}:
            as_then = replace(session.choice, accelerator=accelerator or session.choice.accelerator)
            refusal = refusal or why_not_run(session.builder, as_then, session.nvml, environment)
        if refusal:
            yield name, refusal


def _fits(session: Session, trial: PlannedTrial) -> bool:
    return trial.accelerator != "cuda" or (trial.case.devices or 1) <= len(session.nvml)
