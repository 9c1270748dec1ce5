"""Where folding stops: the most images of a folded tower, by the workload's search, and whether the step is there."""

from itertools import pairwise

from tsuishi.base.language import in_words, prose, t

from .observations import NotTested, Observations, amounts, towers
from .steps import Step, find_step

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


def about_more_images(measured: Observations, step: Step | None) -> str:
    """Where the step is with other numbers of images, and whether that is where folding predicts it."""
    others = [axes["images"] for axes in measured.other_sizes if {*axes} == {"images"}]
    counts = {images: [*measured.by_towers("later_run_s", images=images)] for images in others}
    measured_counts = {images: of for images, of in counts.items() if len(of) > 1}
    if not measured_counts or step is None:
        return NotTested(t("no such case was planned") if step else t("there is no step"))
    found = {images: find_step(measured, step.quantity, images=images) for images in measured_counts}
    sentences = [_with_images(images, found[images], measured_counts[images]) for images in found]
    folded_images, unfolded_images = (measured.search(f"{side}_images") for side in SIDES)
    if folded_images is None or unfolded_images is None:  # where folding stops is not known
        return prose(sentences)
    predicted = {images: _predicted(images, of, folded_images) for images, of in measured_counts.items()}
    there = {images: found[images] and (found[images].below, found[images].above) for images in found}  # type: ignore[union-attr]
    wrong = [images for images in found if there[images] != predicted[images]]
    if wrong:
        text = t(
            "Folding of up to {most:,.0f} images predicts it elsewhere with {images} images: the images of a tower are "
            "not the only cause.",
            most=folded_images,
            images=in_words(f"{images:,}" for images in wrong),
        )
        return prose([*sentences, text])
    if not any(there.values()):
        return prose(sentences)
    follows = t(
        "This is where folding of up to {most:,.0f} images predicts it. So the step follows the images of a tower: "
        "neither the number of devices nor the sum of all images makes it.",
        most=folded_images,
    )
    if measured.on_gpu:
        memory = t(
            "Too little memory on a GPU would follow them, too; the peak of its memory shows whether it is the cause."
        )
    else:
        memory = t("And GPU memory does not make it, as there is no GPU here.")
    return prose([*sentences, follows, memory])


def _with_images(images: int, step: Step | None, counts: list[int]) -> str:
    if step is None:
        return t(
            "With {images:,} images there is no step with up to {towers} ({each:,.0f} images a tower).",
            images=images,
            towers=towers(counts[-1:]),
            each=images / counts[-1],
        )
    return t(
        "With {images:,} images the step is {step} ({below:,.0f} and {above:,.0f} images a tower).",
        images=images,
        step=step,
        below=images / step.below,
        above=images / step.above,
    )


def _predicted(images: int, counts: list[int], folded_images: float) -> tuple[int, int] | None:
    """The two numbers of towers, among those measured, between which the images of a tower begin to be folded."""
    sides = (pair for pair in pairwise(counts) if images / pair[0] > folded_images >= images / pair[1])
    return next(sides, None)
