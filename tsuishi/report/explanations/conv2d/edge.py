"""Where folding stops: the most images of a folded tower, by the workload's search, and whether the step is there."""

from tsuishi.base.language import prose, t
from tsuishi.report.explanations.conv2d.observations import Observations, amounts, towers
from tsuishi.report.explanations.conv2d.steps import Step

# The two sides of the edge: the first words of the search's metrics.
SIDES = ("largest_folded", "smallest_unfolded")


def about_edge(measured: Observations, step: Step | None) -> str:
    """The result of the search, and whether it predicts the place of the step."""
    folded_images, unfolded_images = (measured.search(f"{side}_images") for side in SIDES)
    if folded_images is None and unfolded_images is None:
        return measured.why_not(search="folding_edge", data="random")
    folded_size, unfolded_size = (amounts([measured.search(f"{side}_input_mib") or 0.0], "input_mib") for side in SIDES)
    if unfolded_images is None:
        return t(
            "One tower is folded with {images:,.0f} images ({size}), the most that was tried.",
            images=folded_images,
            size=folded_size,
        )
    if folded_images is None:
        return t(
            "One tower is not folded with {images:,.0f} images ({size}), and not with fewer.",
            images=unfolded_images,
            size=unfolded_size,
        )
    folded_s, unfolded_s = (amounts([measured.search(f"{side}_run_s") or 0.0], "run_s") for side in SIDES)
    edge = t(
        "One tower is folded up to {folded:,.0f} images ({folded_size}), and no longer with {unfolded:,.0f} "
        "({unfolded_size}). Later runs then take {folded_time} and {unfolded_time}.",
        unfolded=unfolded_images,
        unfolded_size=unfolded_size,
        folded=folded_images,
        folded_size=folded_size,
        folded_time=folded_s,
        unfolded_time=unfolded_s,
    )
    return prose([edge, _edge_and_step(measured, folded_images, step)])


def _edge_and_step(measured: Observations, folded_images: float, step: Step | None) -> str:
    """The fewest towers among which all images are divided into parts small enough for folding."""
    total = measured.base["images"]
    least = next(count for count in range(1, total + 1) if total / count <= folded_images)
    there = {"images": f"{total:,}", "towers": towers([least])}
    if step is None:
        return t("From {towers} on, each tower has at most so many of the {images} images.", **there)
    if step.above == least:
        return t(
            "From {towers} on, each tower has at most so many of the {images} images; the step is there, too.", **there
        )
    return t("From {towers} on, each tower has at most so many of the {images} images; the step is elsewhere.", **there)
