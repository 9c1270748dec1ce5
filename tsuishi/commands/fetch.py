"""`invoke fetch` and `invoke fetch-data`: what environments are built from, and what training reads."""

from pathlib import Path

from tsuishi.artifacts import datasets
from tsuishi.artifacts.datasets import CIFAR10
from tsuishi.artifacts.network import Network
from tsuishi.base.errors import UserError
from tsuishi.plan.choice import computing
from tsuishi.plan.session import Session
from tsuishi.specs.environment import open_refusal, select_environments


def fetch(session: Session) -> None:
    """All that the chosen environments are built from, into the cache, whether or not they can be built here."""
    names, say = session.choice.environments, session.screen.say
    chosen = select_environments(session.rooms.images, names, computing(session.choice, session.nvml))
    for environment in chosen:
        if unknown := open_refusal(environment):
            if names:
                raise UserError(f"{environment.name}: {unknown}")
            say(f"left out: {environment.name}: {unknown}")
    if why_not := session.builder.engines.why_no_containers():
        say(f"base images are not fetched: {why_not}")
    session.building().fetch([environment for environment in chosen if environment.pinned and not environment.open])


def fetch_data(session: Session, url: str = "") -> Path:
    """Fetch the data set that training reads, and say where it is.

    It comes from the URL given, else from the configured places, else from its publishers. Raises UserError where it
    cannot be had; offline, where it is not in the cache.
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
