"""The second kit: `python -m benchmarks.gpu --images`, where there are a network, a container engine and a GPU.

It locks, builds, runs and exports the environments that were never locked, by the functions of tsuishi's own tasks. The
checkout is not changed: the locks are made in a copy, and images.patch holds them. docs/gpu.md says more.
"""

import os
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from invoke.config import Config
from rich.console import Console

from benchmarks.gpu import filled_locks
from benchmarks.gpu.findings import FAIL, Finding, judged, not_here
from benchmarks.gpu.journal import Journal, Spoken
from tsuishi.artifacts import intake
from tsuishi.base import units
from tsuishi.base.budget import Clock
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import EXIT_INTERRUPTED, EXIT_TRIAL_FAILED, EXIT_USER_ERROR, EngineLost, UserError
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings, read_settings
from tsuishi.commands import build
from tsuishi.commands.chain import Chain
from tsuishi.environments import exchange
from tsuishi.plan.choice import Choice, why_not_run
from tsuishi.plan.session import Session
from tsuishi.results.attempts import last_attempts
from tsuishi.results.records import TrialRecord
from tsuishi.run.new_run import run_suite
from tsuishi.specs.debian import apt_lock
from tsuishi.specs.environment import Accelerator, Environment, read_environment
from tsuishi.specs.statuses import is_finding
from tsuishi.specs.suite import known_suites

# By worth: the first two have open hashes, the last one only a base without digest, the largest of all.
ENVIRONMENTS = ("torch1.1-cu100", "tf1.13-cu100", "tf1.15-ngc")
PATCH = "images.patch"
_EXPORTS = "exports"
# Of an error, the text in a line; all of it is in the log.
_LONGEST_WORDS = 600


@dataclass
class ImagesKit:
    """The kit at work on the environments `names` of a checkout. `exports`: the folder of the archives."""

    journal: Journal
    settings: Settings
    accelerator: Accelerator
    names: tuple[str, ...] = ENVIRONMENTS
    source: Checkout = field(default_factory=Checkout)
    exports: Path = field(default_factory=lambda: Checkout().root / _EXPORTS)
    # The environments whose new locks images.patch holds, and why others go no further, by name.
    proven: list[str] = field(default_factory=list)
    ended: dict[str, str] = field(default_factory=dict)
    checkout: Checkout = field(init=False)
    screen: Screen = field(init=False)

    def __post_init__(self) -> None:
        root = self.journal.work / "checkout"
        shutil.copytree(self.source.images, root / "images")
        for name in ("suites", "templates", "reports"):
            (root / name).symlink_to(self.source.root.resolve() / name)
        self.checkout = Checkout(root)
        console = Console(file=Spoken(self.journal), highlight=False, soft_wrap=True, emoji=False, width=200)  # type: ignore[arg-type]
        self.screen = Screen(console)

    def environment(self, name: str) -> Environment:
        return read_environment(self.checkout.images / f"{name}.toml")

    def session(self, name: str, *suites: str) -> Session:
        """The session of a task that is given this environment. Suites run whole, in their smoke profile."""
        choice = Choice((name,), suites, profile="smoke", accelerator=self.accelerator)
        return Session(self.settings, choice, self.screen, self.checkout, clock=Clock(None), with_report=False)

    def words(self, error: Exception) -> str:
        """An error in a line; no folder of this machine is named in it."""
        places = self.checkout.root, self.exports, self.journal.folder
        text = str(error)
        for place in places:
            text = text.replace(f"{place}/", "")
        return text[:_LONGEST_WORDS]

    def files(self, checkout: Checkout, name: str) -> dict[str, str]:
        """The spec and the locks of an environment as they are in a checkout, by their path in it."""
        spec = checkout.images / f"{name}.toml"
        present = [file for file in (spec, spec.with_suffix(".lock"), apt_lock(spec)) if file.exists()]
        return {file.relative_to(checkout.root).as_posix(): file.read_text(encoding="utf-8") for file in present}

    def patched(self) -> None:
        """Write images.patch anew, with the locks that are proven; without any there is no such file."""
        before = {path: text for name in self.proven for path, text in self.files(self.source, name).items()}
        after = {path: text for name in self.proven for path, text in self.files(self.checkout, name).items()}
        part = self.journal.work / PATCH
        part.write_text(filled_locks.patch(before, after), encoding="utf-8")
        part.replace(self.journal.folder / PATCH)
        if not (self.journal.folder / PATCH).stat().st_size:
            (self.journal.folder / PATCH).unlink()

    def pack(self) -> None:
        """Keep every run that there is."""
        self.journal.pack(sorted(path.parent for path in self.settings.results.glob("*/run.json")))


def main(folder: Path, accelerator: Accelerator) -> int:
    """The whole kit with this machine's settings, into a new folder; the exit code."""
    journal = Journal(folder)
    try:
        kit = ImagesKit(journal, _settings(journal.work / "results"), accelerator)
        try:
            done(kit)
        finally:
            kit.pack()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_USER_ERROR
    except KeyboardInterrupt:
        journal.say("interrupted")
        return EXIT_INTERRUPTED
    finally:
        journal.say(f"{journal.counts()}; {folder}")
        journal.close()
    return EXIT_TRIAL_FAILED if any(finding.outcome == FAIL for _, finding in journal.findings) else 0


def _settings(results: Path) -> Settings:
    """The settings of the tasks: of invoke.yaml and of variables. Raises UserError for a wrong setting."""
    configuration = Config(project_location=Checkout().root)
    configuration.load_project()
    configured = dict(configuration.get("tsuishi") or {})
    return read_settings(configured, os.environ, {"engine": "docker", "results": results})


def done(kit: ImagesKit) -> None:
    """Every step for every environment that the step before has left; then whether the patch can be used.

    Without a container engine there is none of it.
    """
    engine = kit.session(*kit.names[:1]).builder.engines.docker.availability()
    if not engine.usable:
        kit.ended = dict.fromkeys(kit.names, f"no container engine: {engine.reason}; {engine.remedy}")
    for step, (title, work) in enumerate(STEPS, 1):
        for name in kit.names:
            _do(kit, step, title, work, name)
    kit.journal.add(len(STEPS) + 1, patch_applies(kit))


Work = Callable[[ImagesKit, str], Iterator[Finding]]


def _do(kit: ImagesKit, step: int, title: str, work: Work, name: str) -> None:
    """A step of an environment. Whatever goes wrong in it is a FAIL with the reason."""
    what = f"{title} of {name}"
    if name in kit.ended:
        kit.journal.add(step, not_here(what, kit.ended[name]))
        return
    kit.journal.say(f"-- step {step}: {what}")
    begun = len(kit.journal.findings)
    try:
        for finding in work(kit, name):
            kit.journal.add(step, finding)
    except (UserError, EngineLost, OSError) as error:
        kit.journal.keep(f"{what}: {error}")
        kit.journal.add(step, judged(what, False, f"{kit.words(error).removeprefix(f'{name}: ')}; expected no error"))
    except Exception as error:
        kit.journal.keep(traceback.format_exc())
        kit.journal.add(step, judged(what, False, f"{type(error).__name__}: {error}; expected no error"))
    if any(finding.outcome == FAIL for _, finding in kit.journal.findings[begun:]):
        _failed(kit, step, title, name)


def _failed(kit: ImagesKit, step: int, title: str, name: str) -> None:
    """After a FAIL of the lock or the build: no later step, and no change of its lock. What it was is in the log."""
    if step > len(_PROVING):
        return
    kit.ended[name] = f"the {title} failed"
    for path, text in kit.files(kit.checkout, name).items():
        if text != kit.files(kit.source, name).get(path):
            kit.journal.keep(f"not to be committed, {path}:\n{text}")
    if name in kit.proven:
        kit.proven.remove(name)
    kit.patched()


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


def built(kit: ImagesKit, name: str) -> Iterator[Finding]:
    """`build`, which enters the environment and holds it to its promises."""
    chain = _chain(kit, name, "build")
    build.build(chain, locked_only=True)
    ready = chain.session.builder.find(kit.environment(name))
    promised = ", ".join(f"{key} {version}" for key, version in kit.environment(name).promises.items())
    reported = "nothing that was built" if ready is None else f"{ready.built.realised_id}, with {promised}"
    yield judged(f"image of {name}", ready is not None, f"{reported}; expected an image that keeps its promises")


def ran(kit: ImagesKit, name: str) -> Iterator[Finding]:
    """`run-suite` of every suite, where the GPU runs the environment's own code."""
    work = kit.session(name)
    if refusal := why_not_run(work.builder, kit.checkout, work.choice, work.nvml, kit.environment(name)):
        yield not_here(f"suites in {name}", refusal)
        return
    for suite in known_suites(kit.checkout.suites):
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
    if trials and not bad and "ok" not in statuses:
        return not_here(what, f"{counted}: {reasons[0] if reasons else 'no reason given'}")
    why = f" ({reasons[0][:_LONGEST_WORDS]})" if bad and reasons else ""
    return judged(what, bool(trials) and not bad, f"{counted}{why}; expected some ok and none failed")


def exported(kit: ImagesKit, name: str) -> Iterator[Finding]:
    """`export`; then the archive is read from end to end, as `import` reads it."""
    work = kit.session(name)
    (path,) = exchange.export(work.builder, kit.screen, (name,), kit.exports)
    ready = work.builder.find(kit.environment(name))
    assert ready is not None
    expected, archive = ready.built.details["image"]["tag"], intake.read_archive(path)
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
    words = f"git apply --check ended with {tried.returncode} {tried.stderr.strip()[:_LONGEST_WORDS]}".strip()
    return judged(f"{PATCH}, locks of {', '.join(kit.proven)}", tried.returncode == 0, f"{words}; expected 0")


def _chain(kit: ImagesKit, name: str, task: str) -> Chain:
    """The chain of a single task, with the session of the kit."""
    chain = Chain((task,))
    chain.session = kit.session(name)
    return chain


# The steps that prove a lock; then those that use the environment.
_PROVING: tuple[tuple[str, Work], ...] = (("lock", locked), ("build", built))
STEPS = (*_PROVING, ("run of every suite", ran), ("export", exported))
