"""docs/your-own-experiment.md: its files, dropped into a copy of the checkout, are run, judged and reported."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.test_tasks import invoke
from tests.reports import markdown_of, table_of

pytestmark = pytest.mark.runs

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "your-own-experiment.md"
# A file's place, then its text.
FILE = re.compile(r"^`([a-z/_-]+\.(?:py|toml))`:\n\n```(?:python|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the files under version control, with those of the page beside them; run in `host` and reported.

    A probe of the tests answers in the place of the real one, which refuses an interpreter without a framework.
    """
    copy = tmp_path_factory.mktemp("checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    for name, text in FILE.findall(PAGE.read_text(encoding="utf-8")):
        assert not (copy / name).exists()
        (copy / name).write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "tests" / "workloads" / "probe.py", copy / "suites" / "workloads" / "experiments")
    asked = ("--suite", "attention", "--env", "host", "--profile", "quick", "--name", "own", "--out", "own")
    done = invoke(copy, "run-suite", "report", *asked)
    assert done.returncode == 0, done.stdout + done.stderr
    return copy


def table(checkout: Path, name: str) -> list[dict[str, str]]:
    return table_of(checkout / "reports" / "out" / "own", name)


def test_every_file_of_the_page_is_new_and_none_is_of_tsuishi() -> None:
    files = [name for name, _ in FILE.findall(PAGE.read_text(encoding="utf-8"))]
    assert len(files) == 4
    assert not [name for name in files if name.startswith("tsuishi/")]


def test_every_case_ran_and_the_usual_number_of_heads_is_in_no_id(checkout: Path) -> None:
    trials = table(checkout, "trials")
    assert len(trials) == 18
    assert {trial["status"] for trial in trials} == {"ok"}
    assert {(trial["sequence_length"], trial["heads"]) for trial in trials} == {
        (length, heads) for length in ("128", "256", "512") for heads in ("4", "8")
    }
    (run,) = (checkout / "results").glob("*-own")
    cases = [json.loads(path.read_text()) for path in (run / "records").glob("case-*.json")]
    assert sorted(str(case.get("heads")) for case in cases) == ["8"] * 3 + ["None"] * 3


def test_both_claims_have_a_verdict_that_rests_on_three_trials_a_case(checkout: Path) -> None:
    verdicts = {row["claim"]: row for row in table(checkout, "verdicts") if row["source"] == "attention-note"}
    assert set(verdicts) == {"a", "b"}
    for row in verdicts.values():
        assert row["verdict"] in ("reproduced", "direction only", "contradicted", "inconclusive")
        assert row["trials"] == "3"


def test_the_chart_of_the_pages_explanation_is_in_the_report_with_its_numbers(checkout: Path) -> None:
    report = json.loads((checkout / "reports" / "out" / "own" / "report.json").read_text(encoding="utf-8"))
    blocks = [block for section in report["sections"] if section["title"] == "attention" for block in section["blocks"]]
    (chart,) = [block for block in blocks if block.get("name", "").startswith("attention-steady-pairs")]
    assert (chart["title"], chart["caption"]) == ("Pairs of tokens a second", "Four heads; higher is better.")
    assert [row["sequence_length"] for row in chart["values"]["rows"]] == [128, 256, 512]
    drawn = [{name: str(value) for name, value in row.items()} for row in chart["values"]["rows"]]
    assert table(checkout, "pairs") == drawn


def test_the_report_names_axes_and_quantities_as_the_suite_does(checkout: Path) -> None:
    page = markdown_of(checkout / "reports" / "out" / "own")
    for text in ("sequence length", "heads", "tokens", "attention, mean", "memory of the scores"):
        assert text in page, text
    # Both sides of a comparison have words, also where one of them is the usual value.
    assert "attention, mean: heads 8 ÷ heads 4" in page.replace("\\", "")
    assert "over log sequence length: heads 4: " in page
    numbers = {(row["quantity"], row["unit"]) for row in table(checkout, "estimates")}
    assert {("attention_step_s", "s"), ("score_bytes", "B"), ("largest_error", "1")} <= numbers


def test_a_source_of_a_user_in_english_alone_fails_no_test_of_ours(checkout: Path) -> None:
    source = checkout / "reports" / "published" / "attention-note.toml"
    source.write_text(re.sub(', ja = "[^"]*"', "", source.read_text(encoding="utf-8")), encoding="utf-8")
    tests = [f"tests/specs/test_{name}.py" for name in ("claims", "deviation", "pictures")]
    chosen = ("-k", "language or marked or declares or (check and attention)")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, *chosen],
        cwd=checkout, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
