"""Workload training: what a literal step is made of, and printed times that do not grow with their batch."""

from collections.abc import Iterator

from tsuishi.report.parts.explanation import Explanation, Paragraph

from .printed_batches import batches_in_doubt
from .steps import RATE, Rates, add_rate, division


class TimesOfSteps(Explanation):
    """The parts of a literal step, and the printed batches that were checked here, by environment."""

    def paragraphs(self) -> dict[str, list[Paragraph]]:
        every = {environment: [*self._about(environment)] for environment in self.evidence.environments}
        return {environment: several for environment, several in every.items() if several}

    def _about(self, environment: str) -> Iterator[Paragraph]:
        steps = {case_id: step for case_id, _, step in self.timed(environment, "step_s")}
        yield from batches_in_doubt(self.evidence, self.suite, steps)
        rates: Rates = {}
        for case_id, _, rate in self.timed(environment, RATE):
            add_rate(rates, self.evidence.axes[case_id], rate)
        yield from division(rates)
