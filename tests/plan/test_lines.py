"""What is printed before a run, and once environments have said what they can run."""

import io
from collections.abc import Iterable

import pytest
from rich.console import Console

from tests.synthetic_run import planned_trial
from tests.words import case
from tsuishi.base.screen import Screen
from tsuishi.plan.lines import print_briefly, print_changes
from tsuishi.plan.outline import Outline
from tsuishi.plan.trials import Matrix
from tsuishi.plan.worth import Costs
from tsuishi.specs.questions import MatrixCell, PlannedQuestion

CELLS = [MatrixCell(case(suite="bench", protocol="steady", devices=devices).id, "env") for devices in range(1, 10)]
TRIALS = {
    cell: planned_trial(case(suite="bench", protocol="steady", devices=devices), "env", 10.0)
    for devices, cell in enumerate(CELLS, 1)
}


def question(cell: MatrixCell, environment: str = "env") -> PlannedQuestion:
    number = CELLS.index(cell) + 1
    return PlannedQuestion(
        id=f"bench/{number}/{environment}", kind="measurement", title={"en": f"case {number}"}, worth=1.0,
        environments=(environment,), of=(cell._replace(environment=environment),),
    )  # fmt: skip


def outline(cells: Iterable[MatrixCell], further: int = 0, **unsupported: str) -> Outline:
    first = {
        cell: TRIALS[cell].model_copy(update={"unsupported": unsupported.get(f"case{number}", "")})
        for number, cell in enumerate(CELLS, 1)
    }
    asked = tuple(map(question, cells))
    trials = tuple(TRIALS[cell] for each in asked for cell in each.cells for _ in range(3))
    return Outline(Matrix(first, {}, ()), asked, (), trials, Costs(dict.fromkeys(CELLS, 10.0), {}, 1), further)


@pytest.fixture
def said() -> io.StringIO:
    return io.StringIO()


def screen(out: io.StringIO) -> Screen:
    return Screen(Console(file=out, width=200, highlight=False, soft_wrap=True))


def test_six_main_questions_have_a_line_each_and_the_others_are_counted(said: io.StringIO) -> None:
    print_briefly(screen(said), outline(CELLS[:8], further=3))
    *lines, last = said.getvalue().splitlines()
    assert lines == [f"  {number}. case {number} (env): 30 s" for number in range(1, 7)]
    assert last == (
        "  and 2 main questions more; then, as time is left, 3 further questions; all of this plan, and what more time "
        "would bring: --plan"
    )


def test_changes_of_a_plan_are_named_with_the_reason(said: io.StringIO) -> None:
    before = [question(CELLS[0]), question(CELLS[1]), question(CELLS[2]), question(CELLS[3], "gone")]
    print_changes(
        screen(said), outline(CELLS[1:2] + CELLS[4:5], case1="needs 4 GPUs"), before, {"gone": "failed its self-check"}
    )
    assert said.getvalue().splitlines() == [
        "not asked: case 1 (env): needs 4 GPUs",
        "not asked: case 3 (env): it no longer fits the time beside the others",
        "not asked: case 4 (gone): failed its self-check",
        "now asked: case 5 (env): 30 s",
    ]


def test_a_plan_that_did_not_change_says_nothing(said: io.StringIO) -> None:
    print_changes(screen(said), outline(CELLS[:2]), [question(CELLS[1]), question(CELLS[0])], {})
    assert said.getvalue() == ""
