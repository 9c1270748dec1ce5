"""`invoke try-script` as a user calls it: what it proposes, what it writes, and that the suite then runs."""

import hashlib
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import nbformat
import pytest

from tests.bench import HERE, REAL
from tests.commands.test_tasks import checkout, invoke
from tests.house import EXTRAS
from tests.pinned import environment
from tests.reports import table_of
from tsuishi.extras.scripts.proposals import proposals
from tsuishi.specs.environment import read_environment
from tsuishi.specs.experiment import lacking

SCRIPTS = HERE / "scripts"


def given(tmp_path: Path, name: str) -> tuple[Path, Path]:
    """A checkout, and the script of somebody in another folder."""
    root = checkout(tmp_path / "checkout", "ok")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    return root, Path(shutil.copy(SCRIPTS / name, theirs))


def test_a_script_becomes_a_suite_that_runs(tmp_path: Path) -> None:
    root, script = given(tmp_path, "summary.py")
    arguments = ("--env", "host", "--arguments=--steps 3", "--files", "data/sizes.txt")
    (script.parent / "data").mkdir()
    (script.parent / "data" / "sizes.txt").write_text("8\n")
    tried = invoke(root, "try-script", str(script), *arguments)
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert "step_time_s" in tried.stdout
    assert "Step time: 10.5 ms" in tried.stdout
    doubt = r"^not proposed: 1234 s, but the whole script took [\d.]+ s, in the line: Budget: 1,234 s$"
    assert re.search(doubt, tried.stdout, re.M)
    assert "written: suites/summary.toml: read it" in tried.stdout
    text = (root / "suites" / "summary.toml").read_text(encoding="utf-8")
    suite = tomllib.loads(text)
    assert set(suite["patterns"]) == {"step_time_s", "summary_loss", "accuracy_percent", "throughput_images_s"}
    assert suite["experiment"]["command"] == ["python", "{script}", "--steps", "3"]
    described = {name: (each["label"], each["unit"]) for name, each in suite["new_quantities"].items()}
    assert described == {
        "step_time_s": ("Step time", "s"),
        "summary_loss": ("loss", "1"),
        "accuracy_percent": ("Accuracy", "%"),
        "throughput_images_s": ("Throughput", "images/s"),
    }
    assert "# proposed, lines joined: 3; the first: Step time: 10.5 ms, loss=1.000" in text
    assert suite["questions"][0]["quantity"] == "step_time_s"
    assert suite["patterns"]["step_time_s"] == {
        "line": r"(?<![\w.])Step time\s*[:=：]\s*(?P<step_time_s>{number})\s?(?P<unit>{unit})(?![\w/])"
    }
    (then,) = re.findall("^then: invoke (.*)$", tried.stdout, re.M)
    done = invoke(root, *then.split(), "--out", "summary")
    assert done.returncode == 0, done.stdout + done.stderr
    estimates = table_of(root / "reports" / "out" / "summary", "estimates")
    found = {row["quantity"]: float(row["value"]) for row in estimates}
    assert found["step_time_s"] == pytest.approx(0.0115)
    assert found["summary_loss"] == pytest.approx(0.5)
    assert found["accuracy_percent"] == 91.5
    assert found["throughput_images_s"] == 1234.5


NETWORKS = """
import os, time
time.sleep(0.1)
for epoch in (1, 2):
    for name, ms in (("mlp", 4.1), ("conv1d", 11.2), ("lstm", 64.2 if os.path.exists({!r}) else 21.4)):
        print("epoch %d: %s batch=1 latency: %.2f ms" % (epoch, name, ms))
"""


def test_the_one_network_of_three_that_became_slower_is_compared_by_itself(tmp_path: Path) -> None:
    root, script = given(tmp_path, "summary.py")
    script = script.with_name("nets.py")
    script.write_text(NETWORKS.format(str(tmp_path / "slow")))
    tried = invoke(root, "try-script", str(script), "--env", "host")
    assert tried.returncode == 0, tried.stdout + tried.stderr
    suite = tomllib.loads((root / "suites" / "nets.toml").read_text(encoding="utf-8"))
    labels = {name: each["label"] for name, each in suite["new_quantities"].items()}
    assert labels == {f"{name}_latency_s": f"{name} latency" for name in ("mlp", "conv1d", "lstm")}
    for name in ("then", "now"):
        asked = ("--suite", "nets", "--env", "host", "--repetitions", "1", "--within", "none", "--name", name)
        done = invoke(root, "run-suite", *asked, PATH="/nowhere")  # without a sandbox it sees the file
        assert done.returncode == 0, done.stdout + done.stderr
        (tmp_path / "slow").touch()
    now, then = (next((root / "results").glob(f"*-{name}")) for name in ("now", "then"))
    compared = invoke(root, "report", "--run", str(now), "--baseline", str(then), "--out", "gate")
    assert compared.returncode == 0, compared.stdout + compared.stderr
    page = (root / "reports" / "out" / "gate" / "baseline.md").read_text(encoding="utf-8")
    ratios = dict(re.findall(r"\| (\w+) latency, as printed by the script \| [^|]+\| [^|]+\| ([\d.]+) ", page))
    assert ratios == {"mlp": "1.00", "conv1d": "1.00", "lstm": "3.00"}


def test_the_page_for_users_shows_what_becomes_of_its_script(tmp_path: Path) -> None:
    root, script = given(tmp_path, "summary.py")
    page = (EXTRAS / "scripts" / "README.md").read_text(encoding="utf-8")
    theirs = script.with_name("theirs.py")
    theirs.write_text(page.partition("```python\n")[2].partition("```")[0])
    tried = invoke(root, "try-script", str(theirs), "--env", "host")
    assert tried.returncode == 0, tried.stdout + tried.stderr
    shown = page.partition("try-script ~/theirs.py --env tf2-cpu\n")[2].partition("$ ")[0]
    time = re.compile(r"0\.\d{4} s")
    assert [line.split() for line in time.sub("T s", tried.stdout).splitlines()[-6:-2]] == [
        line.split() for line in time.sub("T s", shown).splitlines()
    ]
    suite = tomllib.loads((root / "suites" / "theirs.toml").read_text(encoding="utf-8"))
    assert list(suite["patterns"]) == list(suite["new_quantities"]) == ["time_s"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("verify", "suites/bench.toml"), "`verify` takes a file as --archive suites/bench.toml"),
        (("find", "--suite", "bench", "--from", "host", "--to", "host"), "missing: --case, --quantity; a search has"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, command: tuple[str, ...], said: str) -> None:
    root = checkout(tmp_path, "ok")
    refused = invoke(root, *command)
    assert refused.returncode == 1
    assert said in refused.stderr


READS = """
from pathlib import Path
from models.deep.sizes import SIZE
found = [path.read_text() for path in sorted(Path("../data").rglob("*.txt"))]
print(f"Rate: {SIZE + sum(map(float, found))} images/s, with {Path('a,b.txt').read_text()}")
"""


def test_a_script_comes_with_its_folders_and_reads_data_that_nobody_copies(tmp_path: Path) -> None:
    root, script = given(tmp_path, "summary.py")
    script.write_text(READS)
    data = tmp_path / "data" / "of 2026"
    for file, text in {
        script.parent / "models" / "deep" / "sizes.py": "SIZE = 40",
        script.parent / "models" / ".hidden": "",
        script.parent / "a,b.txt": "a",
        data / "1.txt": "1.5",
        data / "2.txt": "1",
    }.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    lacks = invoke(root, "try-script", str(script), "--env", "host", "--files", "a,b.txt", "--data", "../data")
    assert "No module named 'models': models lies beside the script: give it with `try-script --files models`;" in (
        lacks.stderr
    )
    tried = invoke(root, "try-script", str(script), "--env", "host", "--files", "models,a,b.txt", "--data", "../data")
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert "Rate: 42.5 images/s, with a" in tried.stdout
    suites = root / "suites"
    copied = {str(path.relative_to(suites / "summary")) for path in suites.rglob("summary/**/*") if path.is_file()}
    assert copied == {"summary.py", "models/deep/sizes.py", "a,b.txt"}
    listed = ["sha256sum", "of 2026/1.txt", "of 2026/2.txt"]
    digest = hashlib.sha256(subprocess.check_output(listed, cwd=tmp_path / "data")).hexdigest()
    (named,) = tomllib.loads((suites / "summary.toml").read_text(encoding="utf-8"))["experiment"]["data"]
    assert named == {"path": "../data", "sha256": digest}
    asked = ("run-suite", "--suite", "summary", "--env", "host", "--within", "none", "--repetitions", "1")
    done = invoke(root, *asked)
    assert done.returncode == 0, done.stdout + done.stderr
    (data / "2.txt").write_text("2")
    altered = invoke(root, *asked)
    assert altered.returncode == 1
    assert altered.stdout == ""
    assert altered.stderr.startswith(f"error: the data ../data of a script were altered: {tmp_path / 'data'} has the ")
    shutil.move(tmp_path / "data", tmp_path / "moved")
    gone = invoke(root, *asked).stderr
    assert gone.startswith("error: the data ../data of a script are not known here: `ln -sfn <their file or folder> ")


def test_a_package_that_an_environment_lacks_is_named_with_what_mends_it(tmp_path: Path) -> None:
    (tmp_path / "here.py").write_text("")
    why = "the script ended with exit code 1: ModuleNotFoundError: No module named '{}'"
    pinned, host = environment(()), read_environment(REAL.images / "host.toml")
    assert lacking(why.format("here.part"), tmp_path, pinned).endswith("give it with `try-script --files here.py`")
    assert f"add it to `requires` of images/{pinned.name}.toml" in lacking(why.format("torch.nn"), tmp_path, pinned)
    assert "so it is a package: install it in the interpreter of host" in lacking(why.format("x"), tmp_path, host)
    assert lacking("ValueError: No module named 'x'", tmp_path, host) == ""


def notebook(path: Path, *cells: str) -> Path:
    """A notebook of these code cells, with a text between them."""
    made = nbformat.v4.new_notebook()
    made.cells = [nbformat.v4.new_markdown_cell("Time: 9 s"), *map(nbformat.v4.new_code_cell, cells)]
    nbformat.write(made, path)
    return path


def test_the_code_cells_of_a_notebook_are_a_script(tmp_path: Path) -> None:
    root, _ = given(tmp_path, "summary.py")
    (tmp_path / "theirs" / "rate.txt").write_text("41.5\n")
    cells = ("%matplotlib inline\nrate = float(open('rate.txt').read())", "print(f'Rate: {rate + 1} images/s')")
    theirs = notebook(tmp_path / "theirs" / "notes.ipynb", *cells)
    tried = invoke(root, "try-script", str(theirs), "--env", "host", "--files", "rate.txt")
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert "Rate: 42.5 images/s" in tried.stdout
    script = (root / "suites" / "notes" / "notes.py").read_text(encoding="utf-8")
    digest = hashlib.sha256(theirs.read_bytes()).hexdigest()
    assert script.startswith(f"# The code cells of notes.ipynb, SHA-256 {digest}, in their order.\n")
    assert "# %matplotlib inline\n" in script
    asked = ("--suite", "notes", "--env", "host", "--within", "none", "--out", "notes")
    done = invoke(root, "run-suite", "report", *asked)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("!pip install x", "code cell 2: '!pip install x' is for notebooks only: remove it, or write Python\n"),
        ("%timeit f()", "code cell 2: '%timeit f()' is for notebooks only: remove it, or write Python\n"),
        (None, "no notebook: "),
    ],
)
def test_what_no_script_can_run_is_refused_by_name(tmp_path: Path, text: str | None, said: str) -> None:
    root, _ = given(tmp_path, "summary.py")
    theirs = notebook(tmp_path / "notes.ipynb", "x = 1", text or "")
    if text is None:
        theirs.write_text("{}")
    tried = invoke(root, "try-script", str(theirs), "--env", "host")
    assert tried.returncode == 1
    assert said in tried.stderr
    assert tried.stderr.count("\n") == 1
    assert not (root / "suites" / "notes.toml").exists()


def test_a_script_that_fails_leaves_nothing_behind_and_what_it_could_read_was_said_before(tmp_path: Path) -> None:
    root, script = given(tmp_path, "crash.py")
    tried = invoke(root, "try-script", str(script), "--env", "host", PATH="/nowhere")
    assert "crash.py runs in host without a sandbox (bubblewrap (bwrap) is not installed): it can read your files" in (
        tried.stdout
    )
    assert tried.returncode == 1
    assert tried.stderr.endswith(
        "crash.py in host: the script ended with exit code 1: ValueError: shapes (3,) and (4,) do not fit; "
        "nothing is written\n"
    )
    assert not (root / "suites" / "crash.toml").exists()
    assert not (root / "suites" / "crash").exists()


def test_what_prints_no_named_number_is_said_to_have_only_its_time(tmp_path: Path) -> None:
    root, script = given(tmp_path, "no_flush.py")
    tried = invoke(root, "try-script", str(script), "--env", "host")
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert "only the time of the whole script is measured\n  begin 1\n  end 1\n" in tried.stdout
    suite = tomllib.loads((root / "suites" / "no_flush.toml").read_text(encoding="utf-8"))
    assert "patterns" not in suite
    assert suite["questions"][0]["quantity"] == "script_s"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "error: say in which environment, one, as in --env host\n"),
        (("--env", "host", "--files", "gone.txt"), "gone.txt: No such file or directory\n"),
        (("--env", "host", "--files", "../other.txt"), "leads out of the folder of the script: what it only reads is"),
        (("--env", "host", "--data", ".."), "--data: '..' is the folder of the script, or has it within"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    root, script = given(tmp_path, "logs.py")
    tried = invoke(root, "try-script", str(script), *arguments)
    assert tried.returncode == 1
    assert said in tried.stderr
    assert tried.stderr.count("\n") == 1


def test_a_suite_or_another_file_of_that_name_is_never_overwritten(tmp_path: Path) -> None:
    root, script = given(tmp_path, "logs.py")
    (root / "suites" / "logs").mkdir()
    (root / "suites" / "logs" / "logs.py").write_text("# another\n")
    other = invoke(root, "try-script", str(script), "--env", "host")
    assert other.returncode == 1
    assert "suites/logs/logs.py: there already, and no such file of the script: remove it" in other.stderr
    (root / "suites" / "logs.toml").write_text("")
    again = invoke(root, "try-script", str(script), "--env", "host")
    assert again.returncode == 1
    assert "suites/logs.toml: there is such a suite already" in again.stderr


# In the formats of TensorFlow, absl and PyTorch.
FRAMEWORKS_LOGS = (
    "2026-11-25 09:54:30.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on. You may see "
    "slightly different results. To turn them off, set the environment variable `TF_ENABLE_ONEDNN_OPTS=0`.",
    "2026-11-25 09:54:30.1: I tensorflow/core/common_runtime/process_util.cc:71] Tune: inter_op_parallelism_threads=2",
    "I0000 00:00:1795600470.123456     140 port.cc:153] Threads: 2",
    "E0000 00:00:1795600470.123456 140 cuda_dnn.cc:8310] factory: 1",
    "[W1125 09:54:30.123456789 NNPACK.cpp:61] Reason: 3 s",
    "[W NNPACK.cpp:79] Reason: 3 s",
    "[rank0]:[W105 09:54:30.123456789 ProcessGroup.cpp:61] Elapsed: 600 s",
)


@pytest.mark.parametrize("line", FRAMEWORKS_LOGS)
def test_nothing_is_proposed_from_what_a_framework_logs_about_itself(line: str) -> None:
    assert proposals([line], (), "theirs") == ([], [])
    assert proposals([line.partition("] ")[2]], (), "theirs")[0]


def test_what_a_script_logs_in_such_a_format_is_proposed() -> None:
    lines = ["I1125 09:54:30.123456 140 train.py:33] loss: 0.5", "2026-11-25 09:54:30: INFO train] step: 3 s"]
    assert [one.metric for one in proposals(lines, (), "theirs")[0]] == ["loss", "step_s"]
