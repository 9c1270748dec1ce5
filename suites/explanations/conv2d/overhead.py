"""The framework's own overhead: the time of a run however often it convolves, other ways to call it, and Keras."""

import math

from tsuishi.base.language import in_words, mark, prose, t
from tsuishi.estimates.line_fit import Point, fit
from tsuishi.report.parts.two_sides import Timed, compared

from .observations import KERAS, STEADY, NotTested, Observations, amounts, per_cent

_THROUGH_KERAS = {
    "first_run_s": mark("A first run takes {keras} through Keras, and {graph} in a graph that is fed: {verdict}."),
    "later_run_s": mark("A later run takes {keras} through Keras, and {graph} in that graph: {verdict}."),
}
# An overhead below this share of a run does not make it slow.
_SMALL = 0.1


def about_overhead(measured: Observations) -> str:
    """The line through runs of several chained convolutions: its offset is the overhead of a run."""
    lines = {images: text for images in _images(measured) if (text := _line(measured, images))}
    if not lines:
        return measured.why_not(**STEADY, chained=max(measured.values_of("chained"), default=10))
    sentences = [text for text, _ in lines.values()]
    overhead_s = min(most for _, most in lines.values())
    whole = {
        t("a warm run"): measured.value("compute_s", **STEADY),
        t("a first run"): measured.value("first_run_s"),
    }
    shares = {name: overhead_s / seconds for name, seconds in whole.items() if seconds}
    if not shares or max(shares.values()) >= _SMALL:
        return prose(sentences)
    answer = t(
        "Such an overhead is at most {shares} of all {images} images: it does not make them slow.",
        shares=in_words(t("{share} of {run}", share=_share(share), run=name) for name, share in shares.items()),
        images=f"{measured.base['images']:,}",
    )
    return prose([*sentences, answer])


def _images(measured: Observations) -> list[int]:
    others = [axes["images"] for axes in measured.other_sizes if {*axes} == {"images"}]
    return sorted({*others, measured.base["images"]})


def _line(measured: Observations, images: int) -> tuple[str, float] | None:
    """The sentence of a line, and its overhead in s at most (infinite: not known); None where there is no line."""
    every: dict[int, Timed] = {
        count: timed
        for count in (1, *measured.values_of("chained"))
        if (timed := measured.timed("compute_s", **STEADY, chained=count, images=images))
    }
    line = fit(Point(count, timed.value, timed.term) for count, timed in every.items())
    if line is None:
        return None
    interval = line.t_cost_interval
    # A single trial each, or few, give no upper limit of the overhead.
    most = math.inf if interval is None or line.kinked else max(0.0, interval.high)
    values = {
        "chained": in_words(every),
        "images": f"{images:,}",
        "overhead": amounts([line.t_cost], "compute_s"),
        "least": amounts([interval.low if interval else 0.0], "compute_s"),
        "most": amounts([most], "compute_s") if math.isfinite(most) else "",
        "compute": amounts([1 / line.v0], "compute_s"),
    }
    if line.kinked:
        seconds = amounts((timed.value for timed in every.values()), "compute_s")
        text = t(
            "A run of {chained} chained convolutions of {images} images takes {seconds}: no line, so overhead and "
            "computing cannot be separated.",
            **values,
            seconds=seconds,
        )
        return text, most
    if interval is None or not math.isfinite(most):
        text = t(
            "With {chained} chained convolutions of {images} images, a run takes {compute} for each "
            "(seen, not tested).",
            **values,
        )
    elif interval.low > 0:
        text = t(
            "With {chained} chained convolutions of {images} images, a run takes {overhead} ({least} to {most}) and "
            "{compute} for each.",
            **values,
        )
    else:
        text = t(
            "With {chained} chained convolutions of {images} images, a run takes {compute} for each, and an overhead "
            "of at most {most}.",
            **values,
        )
    return text, most


def _share(share: float) -> str:
    return per_cent(share) if share >= 0.005 else t("less than 1 %")


def about_call(measured: Observations) -> str:
    """A callable made of the session beside session.run, with few images and with all."""
    axes = {**STEADY, "call": "callable"}
    pairs = {
        images: (run, callable_)
        for images in _images(measured)
        if (callable_ := measured.timed("compute_s", **axes, images=images))
        and (run := measured.timed("compute_s", **STEADY, images=images))
    }
    if not pairs:
        return measured.why_not(**axes)
    return prose(
        t(
            "With {images:,} images a run takes {run} by session.run and {other} by a callable: {verdict}.",
            images=images,
            run=amounts([run.value], "compute_s"),
            other=amounts([other.value], "compute_s"),
            verdict=compared(run, other, "session.run", t("the callable")),
        )
        for images, (run, other) in pairs.items()
    )


def about_keras(measured: Observations) -> str:
    """Keras' predict beside one tower of a graph that is fed the same images."""
    sentences = []
    for quantity, template in _THROUGH_KERAS.items():
        keras, graph = measured.timed(quantity, **KERAS), measured.timed(quantity, feed="fed")
        if keras and graph:
            text = t(
                template,
                keras=amounts([keras.value], quantity),
                graph=amounts([graph.value], quantity),
                verdict=compared(keras, graph, "Keras", t("the graph")),
            )
            sentences.append(text)
    if not sentences:
        why = measured.why_not(**KERAS)
        return NotTested(t("a test needs the case that is fed, too")) if measured.value("first_run_s", **KERAS) else why
    return prose(sentences)
