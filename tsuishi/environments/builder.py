"""Makes environments ready: builds them if necessary, enters them, and compares their versions with the promises."""

import re
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from tsuishi.artifacts.cache import Cache
from tsuishi.artifacts.pip_configuration import Sources, pip_sources
from tsuishi.base import toml
from tsuishi.base.checkout import Checkout
from tsuishi.base.errors import BuildError, UserError
from tsuishi.base.screen import Progress, Say
from tsuishi.base.settings import Settings
from tsuishi.engines.interface import Artefacts, Built, Engine
from tsuishi.environments.entry import Ready
from tsuishi.environments.provenance import environment_record
from tsuishi.environments.self_reports import SelfReport, SelfReports, broken_promises
from tsuishi.machine.gpus import Gpu
from tsuishi.machine.interpreters import find_python
from tsuishi.specs.environment import Environment

if TYPE_CHECKING:
    from tsuishi.artifacts.fetcher import Fetcher
    from tsuishi.environments.engine_choice import Engines
    from tsuishi.locking.resolve import Locker
    from tsuishi.stream.listener import Transcript

_PROBE = "probe"
# What is wrong where a package finds none of its own compiled operators.
_OTHER_BUILD = (
    ": a package was compiled for another build of the framework: require both from one index, with the same label (as "
    "+cpu), or leave the package out"
)
_PROBE_TIMEOUT_S = 300.0


class Builder:
    """Makes the environments of a checkout with the engines of this machine."""

    def __init__(self, settings: Settings, checkout: Checkout) -> None:
        self.settings = settings
        self.checkout = checkout
        self.cache = Cache(settings.cache)
        self.reports = SelfReports(settings.cache)
        # Interpreters of the host that were entered, by the names of their environments.
        self._entered: dict[str, Ready] = {}

    @cached_property
    def engines(self) -> "Engines":
        # Only what makes or enters an environment needs engines, which are slow to import.
        from tsuishi.environments.engine_choice import Engines

        return Engines(self.settings, self.checkout)

    def fetcher(self, say: Say, progress: Progress = lambda size: None) -> "Fetcher":
        """A fetcher of artefacts from the configured places."""
        from tsuishi.artifacts.fetcher import Fetcher
        from tsuishi.artifacts.network import Network

        return Fetcher(
            self.cache,
            self._sources(),
            say,
            progress,
            network=Network(self.settings.ca_bundle),
            mirrors=self.settings.mirrors,
            offline=self.settings.offline,
        )

    def locker(self, say: Say) -> "Locker":
        """A maker of locks from the configured places. Raises UserError with the setting `offline`."""
        from tsuishi.artifacts.network import Network
        from tsuishi.locking.resolve import Locker

        given = self.settings
        if given.offline:
            raise UserError("a lock needs indexes and registries: leave out --offline")
        network = Network(given.ca_bundle)
        python_of = partial(find_python, more_folders=given.pythons)
        return Locker(self._sources(), self.cache, network, given.mirrors, self.engines.docker, say, python_of)

    def find(self, environment: Environment) -> Ready | None:
        """The environment that was built and verified earlier.

        The host's interpreter, which may change between commands, only once this command has entered it (`enter`).
        """
        if not environment.pinned:
            return self._entered.get(environment.name)
        found = self._found(environment)
        return found and self._ready(self.engines.chosen_for(environment), *found)

    def is_built(self, environment: Environment, *, at_a_glance: bool = False) -> bool:
        """Whether `find` would find the environment. Starts no program in it. at_a_glance: as for `Engine.find`."""
        return self._found(environment, at_a_glance=at_a_glance) is not None

    def _found(self, environment: Environment, *, at_a_glance: bool = False) -> tuple[Built, SelfReport] | None:
        built = self.engines.chosen_for(environment).find(environment, at_a_glance=at_a_glance)
        if built is None or not environment.pinned:
            return None
        report = self.reports.find(environment.made_as, built)
        return None if report is None or broken_promises(environment, report) else (built, report)

    def missing(self, environment: Environment) -> list[str]:
        """The artefacts that a build needs and that the cache lacks, in words."""
        engine = self.engines.chosen_for(environment)
        if not environment.pinned or engine.find(environment) is not None:
            return []
        base = engine.bases.missing(environment) if engine.bases else ()
        pins = [pin for pin in environment.fetched if not self.cache.find(pin.sha256, environment.python)]
        debs = [deb.title for deb in environment.debs if not self.cache.find([deb.sha256])]
        return [*(f"{pin.name}=={pin.version}" for pin in pins), *debs, *base]

    def ensure(self, environment: Environment, say: Say, progress: Progress = lambda size: None) -> Ready:
        """The environment, ready to be entered; it is built if necessary, and compared with its promises.

        progress: gets the bytes that a build downloads. Raises BuildError where the environment cannot be made, or
        reports other versions than its promises.
        """
        ready = self.find(environment)
        if ready is not None:
            return ready
        engine = self.engines.chosen_for(environment)
        if refusal := engine.refusal(environment):
            raise BuildError(f"{environment.name}: {refusal}")
        built = engine.find(environment) or self._made(engine, environment, say, progress)
        say("entering it to see what it reports")
        report = self._ask(engine, built)
        if broken := broken_promises(environment, report):
            if engine.maker:
                engine.maker.discard(built)
            raise BuildError(f"{environment.name} does not report what it promises: {'; '.join(broken)}")
        if environment.pinned:
            report = self.reports.keep(built, report)
        else:  # only the report of a host interpreter tells its version and packages
            asked = [report.python, sorted(report.packages.items())]
            built = replace(built, realised_id="host:" + toml.digest(asked, 16))
        return self._ready(engine, built, report)

    def enter(self, environment: Environment, say: Say) -> None:
        """Ask an interpreter of the host what it is, once for this command: from now on `find` knows it.

        Raises BuildError as `ensure`.
        """
        self._entered[environment.name] = self.ensure(environment, say)

    def why_no_gpus(self, engine: Engine, built: Built, gpus: tuple[Gpu, ...]) -> str:
        """Why the framework of an environment cannot use GPUs that it is given; empty where it can."""
        transcript, failure = self._probe(engine, built, gpus)
        if failure or transcript.facts().flags.get("cuda_usable"):
            return failure
        return f"its framework cannot use the GPUs: {engine.starter.gpu_remedy()}"

    def _made(self, engine: Engine, environment: Environment, say: Say, progress: Progress) -> Built:
        if engine.maker is None:
            raise BuildError(
                f"{environment.name}: the {engine.name} engine makes no environments: choose another engine"
            )
        fetcher = self.fetcher(say, progress)
        artefacts = Artefacts(fetcher.fetch(environment), fetcher.fetch_debs(environment))
        return engine.maker.build(environment, artefacts, say, progress)

    def _ask(self, engine: Engine, built: Built) -> SelfReport:
        """The report of the environment about itself."""
        transcript, failure = self._probe(engine, built)
        if failure:
            name, made = built.environment.name, built.environment.pinned
            what = "was built but cannot be entered" if made else f"cannot be used ({built.python[0]})"
            way_out = _OTHER_BUILD if re.search(r"operator \S+::\S+ does not exist", failure) else ""
            raise BuildError(f"{name} {what}: {failure}{way_out}")
        return SelfReport.model_validate(transcript.facts().content())

    def _probe(self, engine: Engine, built: Built, gpus: tuple[Gpu, ...] = ()) -> "tuple[Transcript, str]":
        """The events of suites/workloads/experiments/probe.py, and why it failed; empty where it finished."""
        from tsuishi.environments.probe import ask

        argument: dict[str, Any] = {
            "case": {},
            # Only the interpreter itself knows whether it can use a GPU.
            "accelerator": "cpu" if built.environment.pinned and not gpus else "cuda",
            # System packages of an image are part of the environment; those of a machine are not recorded.
            "settings": {"container": bool(built.details.get("image"))},
        }
        return ask(engine.starter, built, self.checkout, _PROBE, argument, _PROBE_TIMEOUT_S, gpus)

    def _ready(self, engine: Engine, built: Built, report: SelfReport) -> Ready:
        record = environment_record(built, report, engine.starter.confinement(built.python[0]))
        cuda_cache = self.settings.cache / "cuda" / toml.digest(built.realised_id)
        return Ready(built.environment, engine.starter, replace(built, cuda_cache=cuda_cache), record)

    def _sources(self) -> Sources:
        """The package indexes and folders in tsuishi's settings; without any, those of pip's configuration."""
        given = self.settings
        return Sources(given.indexes, given.find_links) if given.indexes or given.find_links else pip_sources()
