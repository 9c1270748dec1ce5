"""The tasks of the extras in the list of tasks."""

import subprocess
import sys

from tests.bench import REAL


def test_the_list_shows_every_task_once_and_those_of_each_extra_under_its_title() -> None:
    command = [sys.executable, "-m", "invoke", "--list"]
    result = subprocess.run(command, cwd=REAL.root, capture_output=True, text=True, check=True)
    lines = result.stdout.splitlines()
    titles = [number for number, line in enumerate(lines) if line and not line.startswith(" ")]
    assert [lines[number].partition(":")[0] for number in titles] == [
        "Available tasks", "A or B", "Explanations", "Handing over", "Releases of a framework", "Scripts of users",
        "Published tables"]  # fmt: skip
    named = [[line.split()[0] for line in lines[a:b] if line[:2] == "  " and line[2:3].strip()]
             for a, b in zip(titles, [*titles[1:], len(lines)], strict=True)]  # fmt: skip
    assert named[0][:3] == ["advisories", "build", "clean"]
    of_handing_over = ["archive", "export", "import", "publish", "replay", "sign"]
    assert named[1:] == [["ab"], ["explain"], of_handing_over, ["find"], ["try-script"], ["adopt", "check"]]
