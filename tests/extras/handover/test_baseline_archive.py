"""A baseline may be an archive."""

from pathlib import Path

from tests.commands.test_baseline import NOW, THEN
from tests.extras.handover.archived import packed
from tests.job import invoke
from tests.report.sections.test_against_baseline import session
from tests.synthetic_run import listed
from tsuishi.results.directory import RunDirectory


def test_a_baseline_may_be_an_archive(tmp_path: Path) -> None:
    for day in (1, 2, 3):
        session(tmp_path / "results", day)
        session(tmp_path / "results", 10 + day, times=1.33)
    archive = tmp_path / "then.zip"
    packed(archive, [listed(RunDirectory(tmp_path / "results" / name)) for name in THEN.split(",")])
    named = invoke(tmp_path, "report", "--run", NOW, "--baseline", str(archive), "--fail-on", "slower", "--out", "zip")
    assert named.returncode == 4, named.stderr
