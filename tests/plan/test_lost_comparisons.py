"""What a plan no longer compares, because an environment cannot be made here."""

from tsuishi.base.checkout import Checkout
from tsuishi.plan.choice import UsableEnvironments
from tsuishi.plan.planning import lost_comparisons
from tsuishi.specs.environment import named_environments

IMAGES = Checkout().images
WHY = "there is no CPython 3.6 here"


def lost(here: tuple[str, ...], left_out: tuple[str, ...]) -> list[str]:
    usable = UsableEnvironments(named_environments(IMAGES, here), dict.fromkeys(left_out, WHY))
    return [*lost_comparisons(usable, IMAGES)]


def test_a_framework_of_which_one_release_is_left_is_named_with_the_reason() -> None:
    alone = lost(("torch2-cpu", "tf2-cpu"), ("tf1.13-cpu", "torch1.1-cu90"))
    assert alone == [
        f"nothing is compared with tf2-cpu, as tf1.13-cpu is left out: {WHY}",
        f"nothing is compared with torch2-cpu, as torch1.1-cu90 is left out: {WHY}",
    ]


def test_where_two_are_left_or_none_was_wanted_nothing_is_said() -> None:
    assert lost(("torch2-cpu", "torch1.13-cpu"), ("torch1.1-cu90",)) == []
    assert lost(("torch2-cpu",), ()) == []
    assert lost(("torch2-cpu",), ("tf1.13-cpu",)) == []
