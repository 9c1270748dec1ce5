"""The second kit: `python -m benchmarks.gpu --images`, where there are a network, a container engine and a GPU.

It locks, builds, runs and exports the environments that were never locked, by the functions of tsuishi's own tasks. The
checkout is not changed: the locks are made in a copy, and images.patch holds them. docs/gpu.md says more.
"""

import os
import sys
import traceback
from pathlib import Path

from invoke.config import Config

from benchmarks.gpu.findings import FAIL, judged, not_here
from benchmarks.gpu.journal import Journal
from benchmarks.gpu.kit_of_images import ENVIRONMENTS, ImagesKit
from benchmarks.gpu.steps_of_images import PROVING, STEPS, Work, based, locked, patch_applies
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import EXIT_INTERRUPTED, EXIT_TRIAL_FAILED, EXIT_USER_ERROR, EngineLost, UserError
from tsuishi.base.settings import Settings, read_settings
from tsuishi.environments.builder import Builder
from tsuishi.specs.environment import Accelerator, read_environments


def main(folder: Path, accelerator: Accelerator) -> int:
    """The whole kit with this machine's settings, into a new folder; the exit code."""
    journal = Journal(folder)
    try:
        settings = _settings(journal.work / "results")
        kit = ImagesKit(journal, settings, accelerator, ENVIRONMENTS, unpinned(Checkout()))
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


def unpinned(checkout: Checkout) -> tuple[str, ...]:
    """The other environments whose base has no digest yet."""
    environments = read_environments(checkout.images)
    return tuple(
        environment.name
        for environment in environments
        if environment.name not in ENVIRONMENTS and environment.base and not environment.base.digest
    )


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
    engine = Builder(kit.settings, kit.checkout).engines.docker.availability()
    if not engine.usable:
        kit.ended = dict.fromkeys((*kit.names, *kit.others), f"no container engine: {engine.reason}; {engine.remedy}")
    for step, (title, work) in enumerate(STEPS, 1):
        for name in kit.names:
            _do(kit, step, title, work, name)
        for name in kit.others if work is locked else ():
            _do(kit, step, "base", based, name)
    kit.journal.add(len(STEPS) + 1, patch_applies(kit))


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
    if step > len(PROVING):
        return
    kit.ended[name] = f"the {title} failed"
    for path, text in kit.files(kit.checkout, name).items():
        if text != kit.files(kit.source, name).get(path):
            kit.journal.keep(f"not to be committed, {path}:\n{text}")
    if name in kit.proven:
        kit.proven.remove(name)
    kit.patched()
