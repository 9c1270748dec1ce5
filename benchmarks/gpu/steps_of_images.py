"""The steps of the second kit, each for one environment, by the functions of tsuishi's own tasks."""

import shutil
import subprocess
from collections.abc import Callable, Iterator

from benchmarks.gpu import filled_locks
from benchmarks.gpu.findings import FAIL, Finding, judged, not_here
from benchmarks.gpu.kit_of_images import LONGEST_WORDS, PATCH, ImagesKit
from tsuishi.base import units
from tsuishi.base.errors import UserError
from tsuishi.commands import build
from tsuishi.commands.chain import Chain
from tsuishi.extras.handover import exchange
from tsuishi.extras.handover.incoming import incoming_image
from tsuishi.locking.resolve import NewLock
from tsuishi.plan.choice import why_not_run
from tsuishi.results.attempts import last_attempts
from tsuishi.results.records import TrialRecord
from tsuishi.run.new_run import run_suite
from tsuishi.specs.statuses import OK, is_finding
from tsuishi.specs.suite import every_suite

Work = Callable[[ImagesKit, str], Iterator[Finding]]


def locked(kit: ImagesKit, name: str) -> Iterator[Finding]:
    """`lock`; then `fetch`, which holds every file to the hash that an index or a registry stated."""
    before = kit.environment(name)
    build.lock(_chain(kit, name, "lock"))
    after = kit.environment(name)
    findings = list(filled_locks.compared(before, after))
    yield from findings
    if any(finding.outcome == FAIL for finding in findings):
        return
    work = kit.session(name)
    build.fetch(work)
    lacking = work.builder.missing(after)
    words = f"{len(after.pins) + len(after.debs)} files and the base, {len(lacking)} of them missing; expected 0"
    yield judged(f"files of {name} by the hashes of the lock", not lacking, words)
    kit.proven.append(name)
    kit.patched()


def based(kit: ImagesKit, name: str) -> Iterator[Finding]:
    """`lock`, of which only the base's digest is kept, as other versions may be the newest now; then a pull by it."""
    path = kit.checkout.images / f"{name}.toml"
    work = kit.session(name)
    new = work.builder.locker(kit.screen.say).resolve(path)
    NewLock({path: new.files.get(path, path.read_text(encoding="utf-8"))}, new.difference).write()
    after = kit.environment(name)
    digest = after.base.digest if after.base else ""
    size = work.builder.engines.docker.bases.fetch(after, kit.screen.say, lambda size: None) if digest else 0
    words = f"{digest or 'no digest'}, an image of {units.megabytes(size)} by it; expected a digest and its image"
    yield judged(f"base of {name}", size > 0, words)
    if size:
        kit.proven.append(name)
        kit.patched()


def built(kit: ImagesKit, name: str) -> Iterator[Finding]:
    """`build`, which enters the environment and holds it to its promises."""
    chain = _chain(kit, name, "build")
    build.build(chain)
    ready = chain.session.builder.find(kit.environment(name))
    promised = ", ".join(f"{key} {version}" for key, version in kit.environment(name).promises.items())
    reported = "nothing that was built" if ready is None else f"{ready.built.realised_id}, with {promised}"
    yield judged(f"image of {name}", ready is not None, f"{reported}; expected an image that keeps its promises")


def ran(kit: ImagesKit, name: str) -> Iterator[Finding]:
    """`run-suite` of every suite that is of no adopted table, where the GPU runs the environment's own code."""
    work = kit.session(name)
    if refusal := why_not_run(work.builder, work.choice, work.nvml, kit.environment(name)):
        yield not_here(f"suites in {name}", refusal)
        return
    every = every_suite(kit.checkout.suites)
    for suite in (each.name for each in every if each.default or not each.source):
        try:
            run = run_suite(kit.session(name, suite), f"{name}-{suite}")
        except UserError as error:
            yield judged(f"{suite} in {name}", False, f"{kit.words(error)}; expected a run")
            continue
        kit.pack()
        yield of_trials(f"{suite} in {name}", list(last_attempts(run).values()))


def of_trials(what: str, trials: list[TrialRecord]) -> Finding:
    """Whether a suite ran: some trials are ok, and none has failed. `not here` where this machine has no case of it."""
    statuses = [trial.status for trial in trials]
    counted = ", ".join(f"{statuses.count(status)} {status}" for status in dict.fromkeys(statuses)) or "no trial"
    bad = [trial for trial in trials if not is_finding(trial.status)]
    reasons = list(dict.fromkeys(trial.reason for trial in bad or trials if trial.reason))
    if trials and not bad and OK not in statuses:
        return not_here(what, f"{counted}: {reasons[0] if reasons else 'no reason given'}")
    why = f" ({reasons[0][:LONGEST_WORDS]})" if bad and reasons else ""
    return judged(what, bool(trials) and not bad, f"{counted}{why}; expected some ok and none failed")


def exported(kit: ImagesKit, name: str) -> Iterator[Finding]:
    """`export`; then its checksum and its record are compared, as `import` does."""
    work = kit.session(name)
    (path,) = exchange.export(work.builder, kit.screen, (name,), kit.exports)
    ready = work.builder.find(kit.environment(name))
    assert ready is not None
    expected, archive = ready.built.details["image"]["tag"], incoming_image(kit.source, path)
    words = f"{path.name}, {units.megabytes(path.stat().st_size)}, holds {archive.tag}, expected {expected}"
    yield judged(f"archive of {name}", archive.tag == expected, words)


def patch_applies(kit: ImagesKit) -> Finding:
    """Whether `git apply` takes images.patch in the checkout, which it does not change."""
    path = kit.journal.folder / PATCH
    if not path.exists():
        return not_here(PATCH, "no lock was filled" if not kit.proven else "every lock is as it was")
    git = shutil.which("git")
    if git is None:
        return not_here(PATCH, "there is no git to try it with")
    command = [git, "-C", str(kit.source.root), "apply", "--check", str(path)]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    words = f"git apply --check ended with {tried.returncode} {tried.stderr.strip()[:LONGEST_WORDS]}".strip()
    return judged(f"{PATCH}, locks of {', '.join(kit.proven)}", tried.returncode == 0, f"{words}; expected 0")


def _chain(kit: ImagesKit, name: str, task: str) -> Chain:
    """The chain of a single task, with the session of the kit."""
    chain = Chain((task,))
    chain.session = kit.session(name)
    return chain


# The steps that prove a lock; then those that use the environment.
PROVING: tuple[tuple[str, Work], ...] = (("lock", locked), ("build", built))
STEPS = (*PROVING, ("run of every suite", ran), ("export", exported))
