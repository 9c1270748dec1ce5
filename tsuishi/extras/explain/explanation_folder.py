"""The folder in which an explanation is measured: a tree of its own, as `check` makes it, with a suite of corners."""

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import tomlkit

from tsuishi.base.budget import Clock
from tsuishi.base.errors import UserError
from tsuishi.commands.chain import Chain
from tsuishi.estimates.roofline import product_of
from tsuishi.extras.explain import unsaid
from tsuishi.extras.explain.design import FULL, are_decided
from tsuishi.extras.explain.difference import NAME, Difference, Unsaid, explained
from tsuishi.extras.tables import check
from tsuishi.plan.choice import choose, computing
from tsuishi.plan.planning import measurable
from tsuishi.report.sections.beside_published import cases_of
from tsuishi.results.directory import RunDirectory
from tsuishi.specs.case import PROTOCOL, SUITE, Value
from tsuishi.specs.environment import named_environments
from tsuishi.specs.suite import known_suites, read_suite
from tsuishi.verdicts.evidence import evidence_of

# Rounds without --repetitions.
_ROUNDS = "3"
# The protocol of warm steps.
_STEADY = "steady"
# The operations that show the limits of a device.
_PRODUCT, _COPY = "matmul", "memory_copy"
# Values of axes; None: not given.
Settings = Mapping[str, Value | None]


class ExplanationFolder:
    """The folder of an explanation: its suites, its main job, and what its environments refuse."""

    def __init__(self, chain: Chain, found: check.Found, asked: Difference) -> None:
        self.chain, self.found = chain, found
        self.clock: Clock | None = None
        self.inner, self.suite = check.prepare(chain, found)
        self.path = self.inner.suites / f"{self.suite}.toml"
        self.narrowed = self.path.read_text(encoding="utf-8")
        # The protocols that cannot run all corners, where another can.
        self.useless: frozenset[str] = frozenset()
        suites = [self.suite]
        if asked.limits and not asked.my_limits:
            suites.append(write_limits(found, self.inner.suites))
        environments = ",".join(dict.fromkeys((asked.theirs_in, asked.mine_in)))
        self.options = {"repetitions": _ROUNDS, "within": "none", "env": environments, "name": NAME}
        self.options |= {"profile": found.session.choice.profile, "suite": ",".join(suites)}

    def write(self, settings: Iterable[Settings]) -> None:
        """Write the suite: its cases with each of these settings (a value of None: not given).

        With a protocol, those that the suite has of it: each protocol has axes of its own.
        """
        document = tomlkit.parse(self.narrowed)
        groups, different = tomlkit.aot(), []
        for given in settings:
            said = {axis: value for axis, value in given.items() if value is not None}
            if said not in different:
                different.append(said)
        for group, said in itertools.product(document["groups"].unwrap(), different):
            protocol = group["axes"].get(PROTOCOL)
            if said.get(PROTOCOL, protocol) == protocol and protocol not in self.useless:
                groups.append(tomlkit.item({**group, "axes": {**group["axes"], **said}}))
        document["groups"] = groups
        self.path.write_text(tomlkit.dumps(document), encoding="utf-8")

    def job(self) -> Chain:
        """The main job that measures the suites. All have one clock."""
        sub = check.main_job(self.chain, self.found, self.inner, self.options, NAME)
        self.clock = self.clock or sub.session.clock
        sub.session = replace(sub.session, clock=self.clock)
        return sub

    def refusals(self) -> Callable[[Settings, str], dict[str, str]]:
        """Why a case with some settings cannot run in an environment, by protocol, as environments that are there say.

        They are made first, unless a plan is asked for. An empty reason: it can run, or nobody has said.
        """
        sub = self.job()
        session = sub.session
        known = choose(session.builder, session.choice, session.nvml).environments
        there = ((each.name, session.builder.find(each)) for each in known)
        ready = {name: each for name, each in there if each}
        if not sub.only_plans:
            ready |= session.build([each for each in known if each.name not in ready])
        elif len(ready) < len(known):
            session.screen.say("an environment is not built yet: it has not said which settings it can run")
        cells, words = measurable(session, known, ready), session.words

        def reasons(settings: Settings, environment: str) -> dict[str, str]:
            given = {**self.found.number.axes, SUITE: self.suite, **settings}
            selects = cases_of(words, given)
            (here,) = (each for each in cells.possible if each.environment.name == environment)
            cases = {case_id: case for case_id, case in here.cases.items() if selects(case.values)}
            return {case.protocol: here.refused.get(case_id, "") for case_id, case in cases.items()}

        return reasons

    def require(self, asked: Difference) -> None:
        """Raise UserError where an end cannot run, or a corner of a design whose settings can share no bar."""
        corners = asked.corners(asked.groups)
        every = self._reasons(asked)
        for (corner, (settings, environment)), reasons in zip(corners.items(), every, strict=True):
            is_end = len({*corner}) == 1
            if (is_end or len(asked.mine) > FULL) and all(reasons.values()):
                why = "; ".join(dict.fromkeys(reasons.values())) or "its suite has no such case"
                raise UserError(f"not separable: {asked.no_number_of(settings, environment)}: {why}")
        if PROTOCOL not in asked.mine:
            self._leave_out_protocols(every)

    def fitting(self, asked: Difference) -> Difference:
        """The difference without the last of the settings that the number does not state, until all corners can run.

        Up to FULL settings share a bar where a corner cannot.
        """
        while True:
            every = self._reasons(asked)
            protocols = self.protocols(every[0])
            refused = any(reasons.get(protocol) for reasons in every for protocol in protocols)
            if len(asked.may_be) <= FULL or not refused:
                self._leave_out_protocols(every)
                return asked
            *others, (axis, value) = asked.may_be.items()
            asked = asked.with_unsaid(dict(others), [f"{axis}={value} (cannot run beside the others)"])

    def _reasons(self, asked: Difference) -> list[dict[str, str]]:
        """Why each corner cannot run, as `refusals` gives it."""
        corners = asked.corners(asked.groups)
        self.write(settings for settings, _ in corners.values())
        return [*map(self.refusals(), *zip(*corners.values(), strict=True))]

    def _leave_out_protocols(self, reasons: Sequence[Mapping[str, str]]) -> None:
        """Measure the speed of a step by no protocol that cannot run all corners, where `steady` can."""
        useless = {protocol: reason for each in reasons for protocol, reason in each.items() if reason}
        if self.is_speed and _STEADY in reasons[0].keys() - useless.keys():
            self.useless = frozenset(useless)
            for protocol, reason in useless.items():
                self.chain.session.screen.say(f"not measured by the protocol {protocol}: {reason}")

    def unsaid(self, environment: str) -> Unsaid:
        """The settings that the number does not state, with values that can run."""
        images = self.inner.images
        (here,) = named_environments(images, (environment,))
        number, session = self.found.number, self.chain.session
        workload = read_suite(self.path, session.words).workload
        values = unsaid.unsaid_of(number, session.checkout.suites, workload, here.framework)
        self.write(unsaid.tried(values))
        refused, stated = self.refusals(), {axis: number.axes.get(axis) for axis in values}
        if (usual := refused(stated, environment)) and all(usual.values()):
            raise UserError(f"not separable: no number of {number.case} in {environment}: {next(iter(usual.values()))}")

        def why(settings: Settings) -> str:
            reasons = refused({**stated, **settings}, environment)
            return next(filter(None, map(reasons.get, self.protocols(usual))), "")

        return unsaid.chosen(values, why)

    def open_suite(self, asked: Difference, run: Path) -> str:
        """The suite of corners, where the trials of a run so far leave a bar undecided; else nothing."""
        try:
            found = explained(evidence_of(RunDirectory(run), self.inner.suites, self.inner.published), asked)
        except UserError:  # the report says why
            return ""
        return "" if are_decided(found.bars, found.factors) else self.suite

    def protocols(self, refused: Mapping[str, str]) -> list[str]:
        """The protocols that may give the number, of those that can run; refused: the reasons with usual settings.

        `steady` gives the speed of a step. Else it is not known which of several gives it: all have to run.
        """
        can = [protocol for protocol, reason in refused.items() if not reason]
        return [_STEADY] if self.is_speed and _STEADY in can else can

    @property
    def is_speed(self) -> bool:
        """Whether the number is the speed of a step, which `steady` gives."""
        quantity = self.found.number.quantity
        return quantity == "step_s" or quantity.startswith("throughput_")


def write_limits(found: check.Found, folder: Path) -> str:
    """Write the suite of limits with nothing but products in a number's precision, and copies; returns its name.

    Raises UserError where no suite measures them.
    """
    session, product = found.session, product_of(str(found.number.axes.get("precision", "")))
    accelerator = computing(session.choice, session.nvml)
    for name, suite in known_suites(session.checkout.suites).items():
        cases = [*read_suite(suite, session.words).cases(session.choice.profile, accelerator)]
        if {_PRODUCT, _COPY} <= {case.values.get("operation") for case, _ in cases}:
            wanted = ((_PRODUCT, product), (_COPY, None))
            of = [each for each in cases if (each[0].values["operation"], each[0].values.get("precision")) in wanted]
            check.write_cases(suite, folder / suite.name, of)
            return name
    raise UserError(f"{session.checkout.suites}: no suite measures {_PRODUCT} and {_COPY}, the limits of a device")
