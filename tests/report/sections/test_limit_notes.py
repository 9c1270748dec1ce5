"""What a reader of fractions of limits is told."""

from tsuishi.estimates.roofline import Device, Limit
from tsuishi.report.sections.quantity_tables import limit_notes


def test_notes_explain_what_is_above_1_and_what_is_not_measured() -> None:
    about, *others = limit_notes([0.5], {})
    assert about.startswith("Fraction of the limit (roofline model): the shortest possible time")
    assert others == []
    assert [note.split(":")[0] for note in limit_notes([1.5, None], {})[1:]] == ["Above 1", "Not measured"]


def test_notes_say_what_the_limits_are() -> None:
    found = {
        Device("m", "A"): {
            **{("flops_per_s", "fp32"): Limit(2e11), ("flops_per_s", "bf16"): Limit(1.5e13)},
            ("bytes_per_s", ""): Limit(3e12),
        },
        Device("n", "B"): {},
    }
    assert limit_notes([0.5], found)[1] == (
        "The best rates: A: 15.0\u00a0TFLOP/s in bf16, 200\u00a0GFLOP/s in fp32, 3.00\u00a0TB/s; "
        "B: memory not measured."
    )
