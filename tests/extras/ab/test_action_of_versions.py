"""The second form of the action, in the steps of a workflow: two commits of the workspace."""

import sys

import pytest

from tests.extras.ab.repository import Repository
from tests.test_action import Runner, report_of, runner
from tsuishi.base.errors import EXIT_NOTHING_CHECKED, EXIT_VERDICT

__all__ = ["runner"]  # the fixture
pytestmark = pytest.mark.runs


def test_its_steps_compare_two_commits_of_the_workspace(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Green, red and undecided; the outputs are those of this job or empty."""
    for name, value in (("CACHE", runner.action / "cache"), ("HOST_PYTHON", sys.executable)):
        monkeypatch.setenv(f"INVOKE_TSUISHI_{name}", str(value))
    monkeypatch.setenv("XDG_DATA_HOME", str(runner.action / "data"))
    repository = Repository(runner.workspace)
    bench = "import pathlib, random, time\nbegin = time.perf_counter()\ntime.sleep({})\n{}"
    says = "print('step time: %.3f ms' % (1e3 * (time.perf_counter() - begin)))\n"
    scattered = "print('step time: %.3f ms' % random.lognormvariate(0, 3))\n"
    for text in (bench.format(0.05, says), bench.format(0.09, says), bench.format(0.01, scattered)):
        repository.commit(bench__py=text)
    slower, same = {"base": "HEAD~2", "head": "HEAD~1"}, {"base": "HEAD~1", "head": "HEAD~1", "slower": "1.5"}
    undecided = {"base": "HEAD", "head": "HEAD", "arguments": "--within 15s"}
    for inputs, expected in ((slower, EXIT_VERDICT), (same, 0), (undecided, EXIT_NOTHING_CHECKED)):
        code, printed = runner(command=f"'{sys.executable}' bench.py", **inputs)
        assert code == expected, printed
        report = report_of(runner)
        assert runner.summary.read_text() == (report / "summary.md").read_text()
        assert (report / "junit.xml").is_file()
    code, printed = runner(base="nowhere", command="true")
    assert code == 1
    assert "unknown commit" in printed
    assert (runner.output.read_text(), runner.summary.read_text()) == ("", ""), "not those of the job before"
