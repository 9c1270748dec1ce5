"""Workload input_pipeline: whether the pipeline or the device decides the time of a step, and what makes loads uneven.

Two causes are named for GPUs that towers do not load: pipelines, and images that are too small. The step beside its
pipeline alone, and beside images that are resident, tests the first; a larger batch of resident images the second.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tsuishi.base.language import in_words, prose, t
from tsuishi.report.parts.explanation import Explanation, Paragraph
from tsuishi.report.parts.two_sides import Timed, compared
from tsuishi.report.parts.wording import amount, capital, case_text, digits

_STEP, _LOADING, _IMBALANCE = "step_s", "loading_s", "gpu_imbalance"
_RESIDENT = "resident"


class _Case(NamedTuple):
    """A case of warm steps: its axes, and its quantities."""

    axes: dict[str, Any]
    timed: dict[str, Timed]

    @property
    def of_a_tower(self) -> int:
        """The images of a tower in a step."""
        return int(self.axes["batch_size"]) // int(self.axes["devices"])


class PipelineOrDevice(Explanation):
    """Sentences on each cause, by environment; a cause that was not tested has none."""

    def paragraphs(self) -> dict[str, list[Paragraph]]:
        found = {environment: [*self._about(environment)] for environment in self.evidence.environments}
        return {environment: several for environment, several in found.items() if several}

    def _about(self, environment: str) -> Iterator[Paragraph]:
        cases = self._cases(environment)
        texts = {
            t("Pipeline or device"): [*_pipelines(cases)],
            t("Small images"): [*_batches(cases)],
            t("Uneven load"): [*_loads(cases)],
        }
        yield from (Paragraph(topic, prose(sentences)) for topic, sentences in texts.items() if sentences)

    def _cases(self, environment: str) -> list[_Case]:
        cases: dict[str, _Case] = {}
        for case_id, quantity, timed in self.timed(environment, _STEP, _LOADING, _IMBALANCE):
            axes = self.evidence.axes[case_id]
            if axes["protocol"] == "steady":
                cases.setdefault(case_id, _Case(axes, {})).timed[quantity] = timed
        return sorted(cases.values(), key=lambda case: (case.axes["strategy"], case.axes["devices"], case.of_a_tower))


def _pipelines(cases: list[_Case]) -> Iterator[str]:
    """A sentence for each case with a pipeline: the step beside its batches alone, and beside a resident step."""
    resident = {_but(case, "pipeline"): case for case in cases if case.axes["pipeline"] == _RESIDENT}
    for case in cases:
        if case.axes["pipeline"] == _RESIDENT or not {_STEP, _LOADING} <= case.timed.keys():
            continue
        step, loading = case.timed[_STEP], case.timed[_LOADING]
        yield t(
            "{case}: a step takes {step}, and the pipeline alone {loading} for its batches; {comparison}.",
            case=_named(case),
            step=amount(step.value, "s"),
            loading=amount(loading.value, "s"),
            comparison=compared(step, loading, t("the step"), t("its pipeline")),
        )
        without = resident.get(_but(case, "pipeline"))
        if without and _STEP in without.timed:
            yield t(
                "With resident images: {comparison}.",
                comparison=compared(step, without.timed[_STEP], t("the step with its pipeline"), t("the step without")),
            )


def _batches(cases: list[_Case]) -> Iterator[str]:
    """A sentence for each pair of batch sizes of resident images: whether twice the images take twice the time."""
    resident = [case for case in cases if case.axes["pipeline"] == _RESIDENT and _STEP in case.timed]
    for small in resident:
        for large in resident:
            if _but(small, "batch_size") == _but(large, "batch_size") and small.of_a_tower < large.of_a_tower:
                yield t(
                    "{case}, resident: {times} times the images in a step; {comparison}. A device that small images "
                    "leave idle would take as long for both.",
                    case=_named(small),
                    times=digits(large.of_a_tower / small.of_a_tower),
                    comparison=compared(
                        large.timed[_STEP], small.timed[_STEP], t("the larger batch"), t("the smaller batch")
                    ),
                )


def _loads(cases: list[_Case]) -> Iterator[str]:
    """A sentence for each number of devices: how uneven their load is with each pipeline."""
    uneven: dict[frozenset[tuple[str, Any]], list[_Case]] = {}
    for case in cases:
        if _IMBALANCE in case.timed:
            uneven.setdefault(_but(case, "pipeline"), []).append(case)
    for of_several in uneven.values():
        if len(of_several) > 1:
            values = [f"{case.axes['pipeline']} {digits(case.timed[_IMBALANCE].value)}" for case in of_several]
            yield t(
                "{case}: the imbalance of the GPUs' load is {values}. With a queue for each tower no queue is "
                "shared, so the rest of the imbalance is not the queue's.",
                case=capital(case_text(of_several[0].axes, {"devices", "batch_size"})),
                values=in_words(values),
            )


def _but(case: _Case, axis: str) -> frozenset[tuple[str, Any]]:
    return frozenset((name, value) for name, value in case.axes.items() if name != axis)


def _named(case: _Case) -> str:
    return capital(case_text(case.axes, {"strategy", "devices", "batch_size", "pipeline"}))
