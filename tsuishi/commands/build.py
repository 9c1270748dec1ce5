"""`invoke build`, `lock`, `fetch` and `fetch-data`: the preparation of what a run needs."""

from functools import partial
from pathlib import Path

from tsuishi.artifacts import datasets
from tsuishi.artifacts.datasets import CIFAR10
from tsuishi.artifacts.network import Network
from tsuishi.base.errors import UserError
from tsuishi.base.screen import Screen
from tsuishi.commands.chain import Chain
from tsuishi.plan.choice import computing
from tsuishi.plan.planning import plan_builds_only, plan_run
from tsuishi.plan.session import Session
from tsuishi.specs.environment import known_environments, named_environments, open_refusal, select_environments


def build(chain: Chain, locked_only: bool) -> None:
    """Print the plan of the whole chain, then build, unless --plan is given. --no-locked-only: lock anew first."""
    if not locked_only:
        lock(chain)
    session = chain.session
    measures = "run-suite" in chain.tasks and not chain.options.has("resume")
    chain.plan = plan_run(session) if measures else plan_builds_only(session)
    if not chain.only_plans:
        session.build(chain.plan.environments)


def lock(chain: Chain) -> None:
    """Resolve the locks of the named environments anew, print the changes, and write them, unless --plan is given."""
    session = chain.session
    images, names, say = session.checkout.images, session.choice.environments, session.screen.say
    if not names:
        known = known_environments(images)
        raise UserError(f"say which locks to make anew, as in --env {next(iter(known))}; known: {', '.join(known)}")
    for name, path in named_environments(images, names).items():
        locked = session.builder.locker(partial(_say_indented, session.screen, name)).resolve(path)
        for line in locked.difference:
            say(f"{name}: {line}")
        files = ", ".join(path.name for path in locked.files)
        if not locked.files:
            say(f"{name}: nothing changed")
        elif chain.only_plans:
            say(f"{name}: would be written: {files}")
        else:
            locked.write()
            say(f"{name}: written: {files}")


def _say_indented(screen: Screen, name: str, line: str) -> None:
    screen.say(f"  {name}: {line}")


def fetch(session: Session) -> None:
    """Fetch all that the chosen environments are built from into the cache, also where they cannot be built."""
    names, say = session.choice.environments, session.screen.say
    chosen = select_environments(session.checkout.images, names, computing(session.choice, session.nvml))
    for environment in chosen:
        if unknown := open_refusal(environment):
            if names:
                raise UserError(f"{environment.name}: {unknown}")
            say(f"left out: {environment.name}: {unknown}")
    if why_not := session.builder.engines.why_no_containers():
        say(f"base images are not fetched: {why_not}")
    session.building().fetch([environment for environment in chosen if environment.pinned and not environment.open])


def fetch_data(session: Session, url: str = "") -> Path:
    """Fetch the data set that training reads, and print its path.

    It comes from the given URL, else from the configured places, else from its publishers. Raises UserError where none
    of them has it; offline, where it is not in the cache.
    """
    settings, data_set = session.settings, session.data_set or CIFAR10
    if settings.offline and datasets.at_hand(None, settings.cache, data_set) is None:
        raise UserError(
            f"offline, and {data_set.file} is not in the cache: carry {datasets.folder(settings.cache)} "
            "over from where `invoke fetch-data` got it, or give --data"
        )
    urls = [url] if url else datasets.places(settings.data_urls, data_set)
    with session.screen.fetching(data_set.file) as progress:
        network = Network(settings.ca_bundle)
        path = datasets.fetch(settings.cache, urls, progress.say, progress.downloaded, data_set, network)
    session.screen.say(f"data: {path}")
    return path
