"""A wheel in an empty home without git: `tsuishi check` and `tsuishi init` as somebody without a clone types them."""

import json
import os
import re
import site
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.commands.test_tasks import REAL

pytestmark = pytest.mark.runs
LINES = ("printed", "mine", "compared", "pins", "run")


class Installed:
    """An installed wheel and the empty home of its user."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.program = root / "env" / "bin" / "tsuishi"
        self.bare = root / "bin"
        for folder in (self.home, self.bare):
            folder.mkdir()
        # On the PATH, where a user has it.
        (self.bare / "tsuishi").symlink_to(self.program)

    def __call__(
        self, *words: str, folder: Path | None = None, program: Sequence[str] = ()
    ) -> "subprocess.CompletedProcess[str]":
        given = {"HOME": str(self.home), "PATH": str(self.bare), "LC_ALL": "C", "INVOKE_TSUISHI_ENGINE": "host"}
        given["INVOKE_TSUISHI_HOST_PYTHON"] = sys.executable
        if exclusive := os.environ.get("INVOKE_TSUISHI_EXCLUSIVE_ON"):
            given["INVOKE_TSUISHI_EXCLUSIVE_ON"] = exclusive
        command = [*(program or [str(self.bare / "tsuishi")]), *words]
        return subprocess.run(
            command, cwd=folder or self.home, env=given, capture_output=True, text=True, check=False, encoding="utf-8"
        )


@pytest.fixture(scope="module")
def tsuishi(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    root = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", f"--wheel-dir={root}", str(REAL.root)]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = root.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root / "env")], check=True)
    install = ["install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*pip, f"--python={root}/env/bin/python", *install], check=True)
    (packages,) = (root / "env" / "lib").glob("python*/site-packages")
    (packages / "ours.pth").write_text("\n".join(site.getsitepackages()))
    return Installed(root)


def lines_of(text: str) -> dict[str, str]:
    found = re.finditer(rf"^({'|'.join(LINES)})  +(\S.*)$", text, re.M)
    return {each[1]: each[2] for each in found}


def test_a_number_of_a_source_is_checked_in_five_lines(tsuishi: Installed) -> None:
    done = tsuishi("check", "conv2d-gce", "--row", "SciPy", "--env", "host", "--repetitions", "3")
    assert done.returncode == 0, done.stdout + done.stderr
    said = lines_of(done.stdout)
    assert tuple(said) == LINES
    assert said["printed"].startswith("0.222 (later_run_s): scipy, 840 images")
    assert re.match(r"\S+\sms \[\S+, \S+\], 3 trials in host on ", said["mine"]), said["mine"]
    assert re.match(r"mine is \S+ \[\S+, \S+\] times the printed; ", said["compared"]), said["compared"]
    assert "not on SciPy, one CPU: no verdict" in said["compared"]
    assert re.search(r"tsuishi \d[\d.]+ sha256:[0-9a-f]{64}, its packages as requirements\.lock", said["pins"])
    run_id, _, digest = said["run"].partition(", digest ")
    folder = tsuishi.home / ".local" / "share" / "tsuishi" / "checks" / "scipy-conv2d-gce"
    run = folder / "results" / run_id
    # The ratio is that of the two numbers above it, and the run is what its runner wrote.
    ours = float(said["mine"].split("\u00a0")[0]) / 1000
    assert float(said["compared"].split()[2]) == pytest.approx(ours / 0.222, rel=0.01)
    assert f"digest {digest}" in tsuishi("verify", "--run", str(run)).stdout
    git = json.loads((run / "run.json").read_text())["git"]
    assert (git["commit"], git["why_unknown"]) == (None, "there is no git here")
    assert git["package"].split()[1] in said["pins"]
    (page,) = re.findall(r"^the page: (.*)$", done.stdout, re.M)
    shown = Path(page).read_text()
    assert "conv2d" in shown
    assert "--resume" not in shown
    assert "more trials: tsuishi check conv2d-gce --row=SciPy --env=host --repetitions=24 --within=1h" in done.stdout


def test_the_answer_as_markdown_and_a_row_that_is_no_case(tsuishi: Installed, tmp_path: Path) -> None:
    words = ("check", "conv2d-gce", "--row", "SciPy", "--env", "host", "--repetitions", "3", "--markdown")
    done = tsuishi(*words, "--in", "here", "--lang", "ja", folder=tmp_path)
    assert re.search(r"^\| mine \| \S+\sms \[\S+ \S+\], 3 trials in host on ", done.stdout, re.M), (
        done.stdout + done.stderr
    )
    assert "| compared | mine is " in done.stdout
    assert (tmp_path / "here" / "tasks.py").exists()
    (page,) = re.findall(r"^the page: (.*)$", done.stdout, re.M)
    assert Path(page).exists()
    # What lies there already is its user's.
    own = tmp_path / "here" / "reports" / "published" / "own.toml"
    own.write_bytes((REAL.published / "conv2d-gce.toml").read_bytes())
    tsuishi(*words, "--in", str(tmp_path / "here"), "--plan")
    assert own.exists()
    refused = tsuishi(
        "check", "conv2d-gce", "--row", "4 ones framework V100", "--env", "host", "--column", "first_run_s"
    )
    assert refused.returncode == 1
    has = "error: the number is of 4 GPUs, and this machine has no GPU: the nearest that may be checked: "
    assert refused.stderr.startswith(has)
    assert "devices=1" in refused.stderr


def test_init_writes_a_tree_that_is_worked_in_and_brought_up_to_date(tsuishi: Installed, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    done = tsuishi("init", str(folder))
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in folder.iterdir()} >= {"tasks.py", "images", "suites", "reports", "templates"}
    suite = folder / "suites" / "conv2d.toml"
    suite.write_text(re.sub(r"^title = .*$", 'title = "my own"', suite.read_text(), count=1, flags=re.M))
    (folder / "tasks.py").unlink()
    again = tsuishi("init", str(folder))
    assert f"{suite}: changed by hand, and left as it is" in again.stdout
    assert (folder / "tasks.py").exists()
    listed = tsuishi("list", folder=folder / "suites")
    assert "my own" in listed.stdout, listed.stderr
    assert "my own" not in tsuishi("list").stdout
    # Plain Invoke runs the same tasks there.
    python = str(tsuishi.program.with_name("python"))
    plain = tsuishi("list", folder=folder / "suites", program=(python, "-m", "invoke"))
    assert plain.stdout.split() == re.sub(r"(?<=[(`])tsuishi |(?<=: )tsuishi ", "invoke ", listed.stdout).split()
