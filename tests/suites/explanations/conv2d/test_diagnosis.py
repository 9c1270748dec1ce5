"""The diagnosis of conv2d says what was measured: made-up evidence with different truths gives different texts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from suites.explanations.conv2d.diagnosis import ONE_TRIAL, diagnose
from suites.explanations.conv2d.observations import observations
from tests.gpu_run import two_gpus
from tests.report.compared import evidence_of, page_of
from tests.synthetic_run import TF, TORCH, SyntheticRun, conv2d_case
from tsuishi.report.parts.blocks import Heading, Text

# Of a case on so many towers: seconds of the first run and of later ones, and convolutions left in the graph.
Truth = Callable[[int, dict[str, Any]], tuple[float, float, int | None]]
COUNTS = (1, 2, 3, 4, 8)
INTERVENTIONS: list[dict[str, Any]] = [
    {}, {"graph_optimizers": "no_folding"}, {"graph_optimizers": "none"}, {"data": "random"}, {"feed": "fed"},
]  # fmt: skip
SCIPY = {"strategy": None, "feed": None, "graph_optimizers": None}


def folding_makes_it(towers: int, axes: dict[str, Any]) -> tuple[float, float, int]:
    """Folded from 4 towers on, unless that is switched off or the input is fed; identical towers are merged."""
    optimised = axes["graph_optimizers"] == "default"
    if optimised and axes["feed"] == "constant" and towers >= 4:
        return 0.4, 0.0004, 0
    merged = optimised and axes["feed"] == "constant" and axes["data"] == "ones"
    running = 0.36 / towers if merged else 0.36
    return running + (2.0 / towers if optimised else 0.05), running, 1 if merged else towers


def memory_makes_it(towers: int, axes: dict[str, Any]) -> tuple[float, float, int]:
    """Slow up to 3 towers whatever is done to the graph, which keeps all its convolutions."""
    running = 4.0 if towers <= 3 else 0.4
    return running + 0.1, running, towers


def folding_and_memory(towers: int, axes: dict[str, Any]) -> tuple[float, float, int]:
    """Folded from 4 towers on; but without folding these are far faster all the same."""
    first, later, left = memory_makes_it(towers, axes)
    return first, later, 0 if towers >= 4 and axes["graph_optimizers"] == "default" else left


def always_folded(towers: int, axes: dict[str, Any]) -> tuple[float, float, int]:
    folded = axes["graph_optimizers"] == "default" and axes["feed"] == "constant"
    return (1.0, 0.001, 0) if folded else (0.2, 0.05, towers)


def eager(towers: int, axes: dict[str, Any]) -> tuple[float, float, None]:
    return 0.06, 0.05, None


def add(run: SyntheticRun, environment: str, truth: Truth, counts: tuple[int, ...], *interventions: Any) -> None:
    for changes in interventions:
        for count in counts:
            case = conv2d_case(devices=count, **changes)
            first, later, left = truth(count, case.axes)
            samples = [("first_run", 0, 1, 840, first), *[("later_runs", index, 1, 840, later) for index in range(3)]]
            asked = [("convolutions_in_graph", count, "1"), ("convolutions_left_in_graph", left, "1")]
            metrics = asked if left is not None else []
            run.add(case, environment, samples, metrics=metrics, simulated=count > 1)


def told(run: SyntheticRun, environment: str = TF) -> dict[str, str]:
    """The paragraphs by topic."""
    found = diagnose(observations(evidence_of(run, published=True), "conv2d"))[environment]
    assert len(found) == len({paragraph.topic for paragraph in found}), "a topic twice: one of its texts would be lost"
    return {paragraph.topic: paragraph.text.removesuffix(f" {ONE_TRIAL}") for paragraph in found}


def full(tmp_path: Path, truth: Truth) -> dict[str, str]:
    run = SyntheticRun(tmp_path / "run")
    add(run, TF, truth, COUNTS, *INTERVENTIONS)
    return told(run)


def test_a_step_that_folding_makes(tmp_path: Path) -> None:
    text = full(tmp_path, folding_makes_it)
    assert text["In short"] == (
        "Later runs become faster from 3 to 4 towers, 120 and 0.400 ms: 300 times. First runs, which are all that the "
        "source timed: 787 and 400 ms. It looks like constant folding: the graph that ran was folded on the fast "
        "side and not on the slow one, and with folding switched off the step is gone (seen, not tested). The attempt "
        "to fold makes first runs longer even where nothing is folded in the end: by 1,950, 770 and 377 ms with 1 to 3 "
        "towers."
    )
    assert text["The graph that ran"] == (
        "No convolution remained in the graph that ran with 4 and 8 towers: they had been computed before, as "
        "constants. All convolutions remained in the graph that ran with 1 tower. 1 of 2 and 1 of 3 convolutions "
        "remained in the graph that ran with 2 and 3 towers."
    )
    assert "later runs take 360, 360, 360, 360 and 360 ms, instead of" in text["Folding switched off"]
    assert (
        "The step is gone: from 3 to 4 towers, 360 and 360 ms: 1.0 times, where it was 300 times."
        in text["Folding switched off"]
    )
    assert "The step is gone" in text["All graph optimisers switched off"]
    assert "50.0 ms longer than later runs: start-up" in text["All graph optimisers switched off"]
    assert text["Towers that are not alike"].endswith(
        "Towers full of ones are the same and had been merged: with 2 and 3 towers 1 instead of 2 and 1 instead of 3 "
        "were left."
    )
    assert text["Input fed in every run"].endswith("the graph that ran had convolutions to do every time.")
    assert "85 %, 85 %, 85 %, 99.9 % and 99.9 %" in text["First run and running"]


def test_a_step_that_something_else_makes(tmp_path: Path) -> None:
    text = full(tmp_path, memory_makes_it)
    assert text["In short"] == (
        "Later runs become faster from 3 to 4 towers, 4.00 and 0.400 s: 10 times. First runs, which are all that the "
        "source timed: 4.10 and 0.500 s. This is not, or not only, constant folding: it is not true that the graph "
        "that ran was folded on the fast side and not on the slow one and with folding switched off the step is gone."
    )
    assert "First runs step from 3 to 4 towers, 4.10 and 0.500 s: 8.2 times." in text["The step"]
    assert (
        "The step is still there: from 3 to 4 towers, 4.00 and 0.400 s: 10 times, where it was 10 times."
        in text["Folding switched off"]
    )
    assert text["Towers that are not alike"].endswith("No towers were merged: as many convolutions were left.")


def test_folding_that_is_not_the_cause_is_not_called_so(tmp_path: Path) -> None:
    text = full(tmp_path, folding_and_memory)
    assert text["In short"].endswith(
        "This is not, or not only, constant folding: it is not true that with folding switched off the step is gone."
    )


def test_no_step_where_everything_is_folded(tmp_path: Path) -> None:
    text = full(tmp_path, always_folded)
    assert text["In short"] == (
        "There is no step here to explain: the convolutions were folded away with 1, 2, 3, 4 and 8 towers alike."
    )
    assert text["The step"].endswith(
        "There is no step in first or later runs: they nowhere become faster by 1.5 times the factor that sharing "
        "the work saves."
    )
    assert "The step is" not in text["Folding switched off"]


def test_no_step_where_there_is_no_graph(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add(run, TORCH, eager, (3, 4), {}, {"feed": "fed"})
    reason = "Unsupported: graph_optimizers 'no_folding': PyTorch has no graph to optimise"
    run.add(conv2d_case(devices=4, graph_optimizers="no_folding"), TORCH, status="unsupported", reason=reason)
    text = told(run, TORCH)
    assert text["In short"] == (
        "There is no step here to explain: no graph was reported in which anything could have been folded."
    )
    assert text["The graph that ran"] == "No graph was reported, so none was folded."
    assert (
        "Folding switched off: unsupported: graph_optimizers 'no_folding': PyTorch has no graph to optimise."
        in text["Not tested here"]
    )
    assert "Folding switched off" not in text


def test_what_is_missing_leaves_the_cause_open(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add(run, TF, folding_makes_it, (3, 4), {})
    text = told(run)
    assert text["In short"].endswith(
        "The reason is open: the measurements do not show whether with folding switched off the step is gone."
    )
    topics, _, _ = text["Not tested here"].partition(": no such case was planned.")
    for topic in ("Folding switched off", "Towers that are not alike", "Input fed in every run", "Where folding stops"):
        assert topic in topics.split("; ")


def test_what_no_environment_tested_stands_once_on_the_page(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add(run, TF, folding_makes_it, (3, 4), {}, {"graph_optimizers": "no_folding"})
    add(run, TORCH, eager, (3, 4), {})
    made = page_of(evidence_of(run, published=True))
    texts = [block for section in made.sections for block in section.blocks if isinstance(block, Heading | Text)]
    start = next(index for index, block in enumerate(texts) if block.text == "What explains it")
    headings = [block.text for block in texts[start:] if isinstance(block, Heading)][1:4]
    assert headings == [TF, TORCH, "Each of these environments"]
    untested = [block.text for block in texts if isinstance(block, Text) and block.topic == "Not tested here"]
    of_tf, of_torch, of_both = untested
    assert of_tf == "More images: no such case was planned."
    assert of_torch.startswith("Folding switched off: no such case was planned. More images: there is no step.")
    assert of_both.startswith("All graph optimisers switched off; Towers that are not alike; Input fed in every run;")


def test_folding_off_on_the_fast_side_alone_is_enough_to_tell(tmp_path: Path) -> None:
    """As in profile smoke."""
    run = SyntheticRun(tmp_path / "run")
    add(run, TF, folding_makes_it, (3, 4), {})
    add(run, TF, folding_makes_it, (4,), {"graph_optimizers": "no_folding"})
    text = told(run)
    assert "It looks like constant folding" in text["In short"]
    assert "the step is gone (seen, not tested)." in text["In short"]
    assert text["Folding switched off"] == (
        "With 4 towers first runs take 410 ms, instead of 400 ms. With 4 towers later runs take 360 ms, instead of "
        "400 µs. With 4 towers a run is as slow as below the step. The switch drops the other rewrites of the "
        "session's older optimiser too: it changes more than one thing."
    )


def test_a_single_number_of_towers_explains_nothing(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add(run, TF, folding_makes_it, (4,), {})
    assert told(run)["In short"].startswith("Fewer than two numbers of towers were measured as the source ran them")


def test_one_trial_a_case_is_marked_and_two_are_not(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for repetition, marked in ((1, True), (2, False)):
        for count in (3, 4):
            run.add(conv2d_case(devices=count), TF, [("first_run", 0, 1, 840, 1.0 / count)], repetition)
        found = diagnose(observations(evidence_of(run, published=True), "conv2d"))[TF][0]
        assert (found.topic, found.text.endswith(ONE_TRIAL)) == ("In short", marked)


def test_a_step_without_a_graph_is_not_folding(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add(run, TORCH, lambda towers, axes: (*memory_makes_it(towers, axes)[:2], None), COUNTS, {})
    assert told(run, TORCH)["In short"].endswith(
        "This is not constant folding: no graph was reported in which anything could be folded."
    )


def test_one_slow_run_among_fast_ones_is_no_step(tmp_path: Path) -> None:
    def disturbed(towers: int, axes: dict[str, Any]) -> tuple[float, float, int]:
        return 1.0, 2.0 if towers == 3 else 0.05, 0

    run = SyntheticRun(tmp_path / "run")
    add(run, TF, disturbed, COUNTS, {})
    assert told(run)["In short"].startswith("There is no step here to explain")


def test_runs_of_a_millisecond_make_no_step(tmp_path: Path) -> None:
    def noisy(towers: int, axes: dict[str, Any]) -> tuple[float, float, int]:
        return 1.0, 0.004 if towers < 4 else 0.001, 0

    run = SyntheticRun(tmp_path / "run")
    add(run, TF, noisy, COUNTS, {})
    assert told(run)["In short"].startswith("There is no step here to explain")


def test_runs_that_scatter_as_much_as_they_differ_make_no_step(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for count, later_s in ((3, (0.01, 0.4, 0.4, 0.01, 0.5)), (4, (0.1, 0.01, 0.2, 0.1, 0.01))):
        later = [("later_runs", index, 1, 840, seconds) for index, seconds in enumerate(later_s)]
        run.add(conv2d_case(devices=count), TF, [("first_run", 0, 1, 840, 1.0), *later])
    assert told(run)["The step"].endswith(
        "There is no step in first or later runs: they nowhere become faster by 1.5 times the factor that sharing "
        "the work saves."
    )


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (
            {"largest_folded": 262, "smallest_unfolded": 263},
            "One tower is folded up to 262 images (9.99 MiB), and no longer with 263 (10.0 MiB). Later runs then take "
            "1.00 ms and 300 ms. From 4 towers on, each tower has at most so many of the 840 images; the step is "
            "there, too.",
        ),
        (
            {"largest_folded": 130, "smallest_unfolded": 131},
            "One tower is folded up to 130 images (4.96 MiB), and no longer with 131 (5.00 MiB). Later runs then take "
            "1.00 ms and 300 ms. From 7 towers on, each tower has at most so many of the 840 images; the step is "
            "elsewhere.",
        ),
        ({"largest_folded": 840}, "One tower is folded with 840 images (32.0 MiB), the most that was tried."),
        ({"smallest_unfolded": 2}, "One tower is not folded with 2 images (0.0763 MiB), and not with fewer."),
    ],
)
def test_the_edge_is_told_in_images_and_mib_and_held_against_the_step(
    tmp_path: Path, found: dict[str, int], text: str
) -> None:
    run = SyntheticRun(tmp_path / "run")
    add(run, TF, folding_makes_it, COUNTS, {})
    seconds = {"largest_folded": 0.001, "smallest_unfolded": 0.3}
    samples = [(f"{side}_run", index, 1, count, seconds[side]) for side, count in found.items() for index in range(2)]
    metrics = [(f"{side}_images", count, "1") for side, count in found.items()]
    metrics += [(f"{side}_input_mib", count * 40_000 / 2**20, "MiB") for side, count in found.items()]  # type: ignore[misc]
    run.add(conv2d_case(search="folding_edge", data="random"), TF, samples, metrics=metrics)
    assert told(run)["Where folding stops"] == text


def steady(run: SyntheticRun, environment: str, phases: tuple[float, float, float], **axes: Any) -> None:
    names = ("host_to_device", "compute", "device_to_host")
    samples = [(name, i, 1, 840, s) for name, s in zip(names, phases, strict=True) for i in range(3)]
    run.add(conv2d_case(protocol="steady", feed="resident", data="random", **axes), environment, samples)


def scipy(run: SyntheticRun, environment: str, implementation: str, seconds: float, **axes: Any) -> None:
    samples = [("first_run", 0, 1, 840, seconds), ("later_runs", 0, 1, 840, seconds)]
    run.add(conv2d_case(implementation=implementation, **SCIPY, **axes), environment, samples)


def test_the_sources_guesses_are_answered_from_the_cases(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add(run, TF, folding_makes_it, (1,), {}, {"feed": "fed"})
    steady(run, TF, (0.1, 0.3, 0.1))
    steady(run, TORCH, (0.1, 0.03, 0.1))
    steady(run, TF, (0.1, 1.0, 0.1), filter_size=10)
    steady(run, TF, (0.1, 0.5, 0.1), channels=10, images=84)
    scipy(run, TF, "scipy", 0.2)
    scipy(run, TF, "scipy_all_cores", 0.1)
    scipy(run, TF, "scipy_all_cores", 1.0, filter_size=10)
    scipy(run, TF, "scipy_all_cores", 0.1, channels=10, images=84)
    text = told(run)
    assert text["Transfer and compute"] == (
        "Warm, each timed on its own: with 1 tower host to device 20 %, compute 60 % and device to host 20 % of "
        "500 ms. The copies are within host memory."
    )
    assert text["SciPy on equal terms"] == (
        "The source's SciPy loop convolves one image of 40 kB 840 times on one core: 200 ms; the towers read 33.6 MB "
        "and write as much. On all 840 images and all cores SciPy takes 100 ms; the framework, fed the same images "
        "in one tower, 360 ms: the framework takes 3.6 times as long as SciPy (seen, not tested)."
    )
    assert text["Guess: TensorFlow is not made for this, others are"] == (
        "Computing alone takes 300 ms here, 30.0 ms in torch2-cpu: this environment takes 10 times as long as "
        "torch2-cpu (seen, not tested)."
    )
    assert text["Guess: a larger filter favours the GPU"] == (
        "SciPy on all cores takes 0.33 times as long as the framework with 3×3 and 1 channel, 1.0 times with 10×10 and "
        "1 channel: a larger filter favours the framework (seen, not tested), on this CPU; a GPU was not tested."
    )
    assert text["Guess: more channels favour the GPU"].endswith(
        "0.20 times with 3×3 and 10 channels: more channels favour SciPy (seen, not tested), on this CPU; a GPU was "
        "not tested."
    )
    assert text["Guess: copying results back is the bottleneck"].startswith(
        "With 1 tower it takes 20 % of copying, computing and copying back: the bottleneck is compute. Beside the "
        "first run, which is all that the source timed (2.36 s): warm 100 ms, 4 % of it. But device and host"
    )
    assert text["Guess: staying on the device hides the overhead"] == (
        "Warm, all 840 images on 1 tower, computing takes 300 ms; a first run, as the source timed it, 2.36 s. "
        "Beside the source's SciPy loop: the framework takes 1.5 times as long as SciPy (seen, not tested)."
    )
    assert (
        "GPU memory is too small for 1 to 3 GPUs: there was no GPU (input and output are 64 MiB together)."
        in (text["Not tested here"])
    )


def images_move_the_step(images: int, edge: int) -> Truth:
    """Folded where a tower has at most `edge` images."""

    def truth(towers: int, axes: dict[str, Any]) -> tuple[float, float, int]:
        folded = images / towers <= edge and axes["graph_optimizers"] == "default"
        return (0.4, 0.0004, 0) if folded else (0.9, 0.4, towers)

    return truth


@pytest.mark.parametrize(
    ("edge_there", "text"),
    [
        (
            262,
            "With 3,360 images there is no step with up to 8 towers (420 images a tower). With 1,680 images the step "
            "is from 6 to 7 towers, 400 and 0.400 ms: 1,000 times (280 and 240 images a tower). This is where folding "
            "of up to 262 images predicts it. So the step follows the images of a tower: neither the number of devices "
            "nor the sum of all images makes it. And GPU memory does not make it, as there is no GPU here.",
        ),
        (
            300,
            "With 3,360 images there is no step with up to 8 towers (420 images a tower). With 1,680 images the step "
            "is from 5 to 6 towers, 400 and 0.400 ms: 1,000 times (336 and 280 images a tower). Folding of up to 262 "
            "images predicts it elsewhere with 1,680 images: the images of a tower are not the only cause.",
        ),
    ],
)
def test_with_more_images_the_step_is_held_against_what_folding_predicts(
    tmp_path: Path, edge_there: int, text: str
) -> None:
    run = SyntheticRun(tmp_path / "run")
    add(run, TF, images_move_the_step(840, 262), (1, 2, 3, 4, 5, 6, 7, 8), {}, {"graph_optimizers": "no_folding"})
    for images in (1680, 3360):
        add(run, TF, images_move_the_step(images, edge_there), (1, 2, 3, 4, 5, 6, 7, 8), {"images": images})
    sides = [("largest_folded_images", 262, "1"), ("smallest_unfolded_images", 263, "1")]
    run.add(conv2d_case(search="folding_edge", data="random"), TF, [], metrics=sides)
    assert told(run)["More images"] == text


def test_where_folding_stops_nowhere_nothing_is_predicted(tmp_path: Path) -> None:
    """As TensorFlow 2.21: the most images that were tried are folded, which says nothing of more images."""
    run = SyntheticRun(tmp_path / "run")
    for images in (840, 1680):
        add(run, TF, images_move_the_step(images, 262), (1, 2, 3, 4, 5, 6, 7, 8), {"images": images})
    add(run, TF, images_move_the_step(840, 262), (4,), {"graph_optimizers": "no_folding"})
    run.add(conv2d_case(search="folding_edge", data="random"), TF, [], metrics=[("largest_folded_images", 840, "1")])
    assert told(run)["More images"].endswith("1,000 times (280 and 240 images a tower).")


def test_a_warm_device_takes_the_start_out_of_a_first_run(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    for warmed, first_s in (("none", 3.0), ("device", 2.9), ("convolution", 1.2)):
        add(run, TF, lambda towers, axes, first_s=first_s: (first_s, 1.0, towers), (1,), {"warmed": warmed})  # type: ignore[misc]
    reason = "Unsupported: autotune 'off': cuDNN searches on GPUs, and this is a CPU; 'default' would run"
    run.add(conv2d_case(autotune="off"), TF, status="unsupported", reason=reason)
    assert told(run)["First run and running"].endswith(
        "Where the device has added numbers in the same session before: a usual first run and a first run then are "
        "about as fast (seen, not tested) with 1 tower. With 1 tower first runs take 2.90 s, instead of 3.00 s. Where "
        "it has convolved an image before: a usual first run takes 2.5 times as long as a first run then (seen, not "
        "tested) with 1 tower. With 1 tower first runs take 1.20 s, instead of 3.00 s. So 10 % of the time that does "
        "not recur remain with 1 tower where the device has convolved before: this part is neither its start nor the "
        "loading of its libraries. Where cuDNN does not search for the fastest algorithm: not tested (unsupported: "
        "autotune 'off': cuDNN searches on GPUs, and this is a CPU; 'default' would run)."
    )


def test_the_overhead_of_a_run_is_the_offset_of_chained_runs(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add(run, TF, folding_makes_it, (1, 2), {})
    steady(run, TF, (0.1, 0.36, 0.1))
    steady(run, TF, (0.1, 0.3604, 0.1), call="callable")
    for chained in (1, 10, 100):
        steady(run, TF, (0.1, 0.002 + 0.001 * chained, 0.1), images=8, chained=chained)
    text = told(run)
    assert text["Guess: the framework's own overhead"] == (
        "With 1, 10 and 100 chained convolutions of 8 images, a run takes 2.00 ms (2.00 ms to 2.00 ms) and 1.00 ms "
        "for each. Such an overhead is at most 1 % of a warm run and less than 1 % of a first run of all 840 images: "
        "it does not make them slow."
    )
    assert text["Calling the session otherwise"] == (
        "With 840 images a run takes 360 ms by session.run and 360 ms by a callable: session.run and the callable are "
        "about as fast (seen, not tested)."
    )
    kinked = SyntheticRun(tmp_path / "kinked")
    add(kinked, TF, folding_makes_it, (1, 2), {})
    for chained, seconds in ((1, 0.003), (10, 0.010), (100, 1.0)):
        steady(kinked, TF, (0.1, seconds, 0.1), images=8, chained=chained)
    assert (
        "no line, so overhead and computing cannot be separated" in told(kinked)["Guess: the framework's own overhead"]
    )


def test_keras_is_held_against_a_graph_that_is_fed(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add(run, TF, folding_makes_it, (1, 2), {}, {"feed": "fed"})
    scipy(run, TF, "keras", 0.9)
    assert told(run)["Guess: Keras gives the same"] == (
        "A first run takes 900 ms through Keras, and 2.36 s in a graph that is fed: the graph takes 2.6 times as long "
        "as Keras (seen, not tested). A later run takes 900 ms through Keras, and 360 ms in that graph: Keras takes "
        "2.5 times as long as the graph (seen, not tested)."
    )


def test_the_peak_of_memory_is_held_against_the_card(tmp_path: Path) -> None:
    run = two_gpus(SyntheticRun(tmp_path / "run"))
    for count, peak in ((1, 170.0), (2, 90.0)):
        samples = [("first_run", 0, 1, 840, 1.0), ("later_runs", 0, 1, 840, 0.1)]
        metrics = [("peak_device_memory_mib", peak, "MiB")]
        run.add(conv2d_case(devices=count), TF, samples, metrics=metrics, device="RTX 2080 Ti")
    phases = [(name, i, 1, 840, 0.01) for name in ("host_to_device", "compute", "device_to_host") for i in range(3)]
    given = {"protocol": "steady", "feed": "resident", "data": "random"}
    for memory, factor in ((None, 1), ("pinned", 1), ("pageable", 3)):
        samples = [(name, i, 1, n, s * factor) for name, i, _, n, s in phases]
        run.add(conv2d_case(**given, host_memory=memory), TF, samples, device="RTX 2080 Ti")
    text = told(run)
    assert text["Guess: GPU memory is too small for 1 to 3 GPUs"].endswith(
        "At most 170 and 90 MiB were taken on a GPU with 1 and 2 towers, of 11,264 MiB: there was room for more."
    )
    assert text["Pinned host memory"].startswith(
        "Host to device: 30.0 ms with pageable host memory, 10.0 ms with pinned: pageable memory takes 3.0 times as "
        "long as pinned memory (seen, not tested). Device to host: "
    )


def several(tmp_path: Path, name: str, scipy_s: tuple[float, ...]) -> str:
    """What is said of SciPy on equal terms, where the framework takes about 0.3 s in each of five trials."""
    run = SyntheticRun(tmp_path / name)
    for number, (framework_s, other_s) in enumerate(zip((0.30, 0.31, 0.29, 0.305, 0.295), scipy_s, strict=True)):
        trial: dict[str, Any] = {"started_at": f"2026-07-0{number + 1}T10:00:00Z", "repetition": number + 1}
        fed = [("first_run", 0, 1, 840, framework_s), ("later_runs", 0, 1, 840, framework_s)]
        run.add(conv2d_case(feed="fed"), TF, fed, metrics=[("convolutions_left_in_graph", 1, "1")], **trial)
        alone = [("first_run", 0, 1, 840, other_s), ("later_runs", 0, 1, 840, other_s)]
        for implementation in ("scipy", "scipy_all_cores"):
            run.add(conv2d_case(implementation=implementation, **SCIPY), TF, alone, **trial)
    return told(run)["SciPy on equal terms"].rpartition(": ")[2]


def test_words_on_several_trials_follow_from_an_interval(tmp_path: Path) -> None:
    """The near end is said of a difference; a difference of nothing but the scatter is open, and a small one none."""
    slower = several(tmp_path, "slower", (0.61, 0.60, 0.59, 0.605, 0.595))
    assert slower.startswith("SciPy takes 2.0 times as long as the framework (at least 1.")
    equal = several(tmp_path, "equal", (0.305, 0.295, 0.30, 0.29, 0.31))
    assert equal == "the framework and SciPy are about as fast."
    noisy = several(tmp_path, "noisy", (0.25, 0.35, 0.45, 0.20, 0.50))
    assert noisy.endswith("open.")


def test_on_a_gpu_it_says_what_a_gpu_adds_and_on_a_cpu_that_none_was_there(tmp_path: Path) -> None:
    run = SyntheticRun(tmp_path / "run")
    add(run, TF, folding_makes_it, (3, 4), {})
    assert told(run)["What this does not explain"].startswith(
        "Nothing about GPUs was measured: the towers are simulated, and all of them run on the CPU."
    )
    gpu = SyntheticRun(tmp_path / "gpu")
    samples = [(name, i, 1, 840, 0.01) for name in ("host_to_device", "compute", "device_to_host") for i in range(3)]
    case = conv2d_case(protocol="steady", feed="resident", data="random")
    gpu.add(case, TF, samples, device="Tesla V100")
    text = told(gpu)
    assert text["What this does not explain"].startswith("On a GPU a first run also starts the device")
    assert text["Guess: GPU memory is too small for 1 to 3 GPUs"] == (
        "One GPU held all data (input and output are 64 MiB together) and convolved them in 10.0 ms: nothing was "
        "swapped."
    )
