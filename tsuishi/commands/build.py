"""`invoke build`, `lock`, `fetch` and `fetch-data`: the preparation of a run."""

from pathlib import Path
from typing import TYPE_CHECKING

from tsuishi.artifacts import datasets
from tsuishi.artifacts.datasets import CIFAR10
from tsuishi.artifacts.network import Network
from tsuishi.base.errors import UserError
from tsuishi.commands.chain import Chain
from tsuishi.plan.choice import asked_environments, fitting_defaults
from tsuishi.plan.planning import plan_builds_only, plan_run
from tsuishi.plan.session import Session
from tsuishi.specs.environment import check_framework, known_environments, named_files, open_refusal

if TYPE_CHECKING:
    from tsuishi.locking.resolve import Locker, NewLock


def build(chain: Chain) -> None:
    """Print the plan of the whole chain, then build, unless --plan is given. --no-locked-only: lock anew first."""
    if not chain.options.has("locked_only", default=True):
        lock(chain)
    session = chain.session
    measures = "run-suite" in chain.tasks and not chain.options.has("resume")
    chain.plan = (plan_run if measures else plan_builds_only)(session, only=chain.only_plans)
    if not chain.only_plans:
        session.build(chain.plan.environments)


def lock(chain: Chain) -> None:
    """Resolve the locks of the named environments anew, print the changes, and write them.

    With --plan nothing is written.
    """
    images, names = chain.session.checkout.images, chain.session.choice.environments
    if not names:
        known = known_environments(images)
        raise UserError(f"say which locks to make anew, as in --env {next(iter(known))}; known: {', '.join(known)}")
    named = named_files(images, names)
    for path in named.values():
        check_framework(path, chain.session.checkout.workloads)
    for name, path in named.items():
        write_lock(chain, name, locker(chain, name).resolve(path))


def locker(chain: Chain, name: str) -> "Locker":
    """The maker of locks, which prints its steps under a name."""
    return chain.session.builder.locker(lambda line: chain.session.screen.say(f"  {name}: {line}"))


def write_lock(chain: Chain, name: str, lock: "NewLock") -> None:
    """Print the changes of an environment's lock, and write it unless --plan is given."""
    say = chain.session.screen.say
    for line in lock.difference:
        say(f"{name}: {line}")
    files = ", ".join(path.name for path in lock.files)
    if not lock.files:
        say(f"{name}: nothing changed")
    elif chain.only_plans:
        say(f"{name}: would be written: {files}")
    else:
        lock.write()
        say(f"{name}: written: {files}")


def fetch(session: Session) -> None:
    """Fetch all that the chosen environments are built from into the cache, also where they cannot be built."""
    names, say = session.choice.environments, session.screen.say
    chosen = asked_environments(session.checkout.images, session.choice, session.nvml)
    for environment in chosen:
        if unknown := open_refusal(environment):
            if names:
                raise UserError(f"{environment.name}: {unknown}")
            say(f"left out: {environment.name}: {unknown}")
    if not names:
        chosen = fitting_defaults(session.checkout, session.choice, session.nvml)
    if why_not := session.builder.engines.why_no_containers():
        say(f"base images are not fetched: {why_not}")
    session.building.fetch([environment for environment in chosen if environment.pinned and not environment.open])


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
