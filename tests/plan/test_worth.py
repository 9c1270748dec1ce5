"""Which questions a time is spent on."""

from hypothesis import given
from hypothesis import strategies as st

from tsuishi.plan.worth import Costs, choose_questions, next_questions, with_more_time
from tsuishi.specs.questions import MatrixCell, PlannedQuestion


def comparison(
    name: str, worth: float = 1.0, environments: tuple[str, ...] = ("a",), stem: str = ""
) -> PlannedQuestion:
    """Two cases of its own in an environment, or one in each of two."""
    of, to = (MatrixCell(f"{name}-{side}", environments[0 if side == "of" else -1]) for side in ("of", "to"))
    asked_id = f"suite/{stem or name}/{name}"
    return PlannedQuestion(
        id=asked_id, kind="cases", title={"en": name}, worth=worth, quantity="step_s",
        environments=environments, of=(of,), to=(to,),
    )  # fmt: skip


def costs(
    *questions: PlannedQuestion, trial_s: float = 10.0, build_s: dict[str, float] | None = None, jobs: int = 1
) -> Costs:
    return Costs({cell: trial_s for one in questions for cell in one.cells}, build_s or {}, jobs)


def names(questions: tuple[PlannedQuestion, ...]) -> list[str]:
    return [one.title["en"] for one in questions]


def test_questions_are_few_enough_that_each_reaches_six_trials() -> None:
    questions = [comparison(name) for name in "abcdefgh"]
    # Two cells of 10 s: 120 s a question with six trials.
    chosen = choose_questions(questions, costs(*questions), left_s=480.0)
    assert (len(chosen.questions), chosen.trials) == (4, 6)


def test_where_fewer_than_three_fit_so_each_gets_three_trials() -> None:
    questions = [comparison(name) for name in "abcdefgh"]
    chosen = choose_questions(questions, costs(*questions), left_s=250.0)
    assert (len(chosen.questions), chosen.trials) == (4, 3)


def test_where_none_fits_with_three_trials_one_is_better_than_nothing() -> None:
    questions = [comparison("a")]
    assert choose_questions(questions, costs(*questions), left_s=25.0).trials == 1
    assert choose_questions(questions, costs(*questions), left_s=15.0).questions == ()


def test_six_are_the_most() -> None:
    questions = [comparison(name) for name in "abcdefgh"]
    assert len(choose_questions(questions, costs(*questions), left_s=1e6).questions) == 6


def test_with_time_for_more_than_six_what_fits_beside_them_is_known_too() -> None:
    """Their environments are built, so that the time is not left unused."""
    questions = [comparison(name, environments=(name,)) for name in "abcdefgh"]
    chosen = choose_questions(
        questions, costs(*questions, build_s=dict.fromkeys("abcdefgh", 5.0)), left_s=6 * 125 + 65.0 + 5
    )
    assert (len(chosen.questions), len(chosen.further)) == (6, 1)


def test_what_is_worth_most_per_second_comes_first() -> None:
    dear, cheap = comparison("dear", worth=5), comparison("cheap", worth=2)
    prices = Costs({**dict.fromkeys(dear.cells, 30.0), **dict.fromkeys(cheap.cells, 3.0)}, {})
    assert names(choose_questions([dear, cheap], prices, left_s=150.0).questions) == ["cheap"]
    assert names(choose_questions([dear, cheap], prices, left_s=1e4).questions) == ["cheap", "dear"]


def test_an_environment_that_takes_too_long_to_build_takes_its_questions_with_it() -> None:
    there, slow = comparison("there", environments=("a",)), comparison("slow", worth=9, environments=("b",))
    prices = costs(there, slow, build_s={"b": 500.0})
    assert names(choose_questions([there, slow], prices, left_s=400.0).questions) == ["there"]
    assert set(names(choose_questions([there, slow], prices, left_s=1000.0).questions)) == {"there", "slow"}


def test_environments_that_are_built_at_the_same_time_take_as_long_as_the_slowest() -> None:
    assert Costs({}, {"a": 60.0, "b": 100.0, "c": 20.0}, jobs=2).building_s(("a", "b", "c")) == 100.0
    assert Costs({}, {"a": 60.0, "b": 100.0, "c": 20.0}, jobs=1).building_s(("a", "b", "c")) == 180.0


def test_a_question_whose_cases_are_measured_anyhow_costs_nothing() -> None:
    one = comparison("one", worth=1)
    same = one.model_copy(update={"id": "suite/same/same", "title": {"en": "same"}, "worth": 0.5})
    other, last = comparison("other", worth=0.9), comparison("last", worth=0.8)
    chosen = choose_questions([one, same, other, last], costs(one, other, last), left_s=250.0)
    assert names(chosen.questions) == ["one", "same", "other"]


def test_the_same_question_elsewhere_is_worth_less_than_another() -> None:
    here, elsewhere = (comparison(name, worth=6, environments=(name,), stem="layout") for name in ("here", "there"))
    other = comparison("other", worth=4)
    chosen = choose_questions([here, elsewhere, other], costs(here, elsewhere, other), left_s=250.0)
    assert "other" in names(chosen.questions)


def test_next_questions_need_only_the_trials_that_are_not_done() -> None:
    one = comparison("one")
    assert next_questions([one], costs(one), 30.0, {}) == ()
    assert names(next_questions([one], costs(one), 30.0, {one.of[0]: 3, one.to[0]: 1})) == ["one"]


def test_more_time_brings_the_next_questions_and_says_how_much_time() -> None:
    first, second = comparison("first", worth=2), comparison("second", worth=1)
    more = with_more_time([second, first], costs(first, second), spare_s=15.0, done={})
    # Three trials of two cells of 10 s are 60 s, of which 15 s are left over.
    assert [(each.seconds, each.question) for each in more] == [(45.0, first), (105.0, second)]


def test_more_time_builds_no_environment_again_that_the_plan_builds() -> None:
    there, new = comparison("there", worth=2, environments=("a",)), comparison("new", worth=1, environments=("b",))
    of = costs(there, new, build_s={"a": 40.0, "b": 30.0})
    more = with_more_time([there, new], of, spare_s=0.0, done={}, environments=("a",))
    assert [(each.seconds, each.question) for each in more] == [(60.0, there), (150.0, new)]


QUESTIONS = st.lists(st.tuples(st.floats(0.1, 10), st.floats(0.1, 60)), min_size=1, max_size=8)


@given(QUESTIONS, st.floats(1, 1000))
def test_what_is_chosen_fits_and_is_the_same_each_time(drawn: list[tuple[float, float]], left_s: float) -> None:
    questions = [comparison(str(number), worth) for number, (worth, _) in enumerate(drawn)]
    prices = Costs(
        {cell: trial_s for one, (_, trial_s) in zip(questions, drawn, strict=True) for cell in one.cells}, {}
    )
    chosen = choose_questions(questions, prices, left_s)
    spent_s = sum(prices.trial_s[cell] * chosen.trials for one in chosen.questions for cell in one.cells)
    assert spent_s <= left_s * 1.0001
    assert choose_questions(list(reversed(questions)), prices, left_s) == chosen
