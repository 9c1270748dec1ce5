"""A wrong file of a suite or a source: commands that do not need it name it in a line and go on; others end with it."""

import shutil
import tomllib
from pathlib import Path

import pytest

from tests.commands.test_tasks import checkout, invoke

SUITES = {
    "broken": "title = \n",
    "unknown-axis": 'title = "a"\nworkload = "training"\n[[groups]]\naxes = { nosuch = [1] }\n',
    "other-axis": '[new_axes.model]\nlabel.en = "model"\nvalues = ["a"]\n',
    "chart-over-nothing": '[new_quantities.deep_s]\nlabel.en = "deep"\nunit = "s"\nover = "nosuch"\n',
}
SOURCE = 'title = "x"\nlanguage = "en"\n[[hardware]]\nname = "a"\ntitle = "{}"\n'


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with a run of its only suite that is right, beside wrong suites and wrong sources."""
    made = checkout(tmp_path_factory.mktemp("wrong"), "ok")
    done = invoke(made, "build", "run-suite", "report", "--env", "host", "--name", "first", "--within", "none")
    assert done.returncode == 0, done.stdout + done.stderr
    for name, text in SUITES.items():
        (made / "suites" / f"{name}.toml").write_text(text)
    (made / "suites" / "nowhere.toml").symlink_to("no-such-file")
    published = made / "reports" / "published"
    (published / "folder").mkdir(parents=True)
    (published / "control.toml").write_text(SOURCE.format("a\\u0007"))
    (published / "folder" / "source.toml").write_bytes(b"\xff")
    return made


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("list",), [*SUITES, "nowhere"]),
        (("list", "--sources"), [*{*SUITES, "nowhere"} - {"unknown-axis"}, "control", "folder/source"]),
        (("run-suite", "--plan", "--env", "host"), [*SUITES, "nowhere", "control", "folder/source"]),
        (("report",), [*{*SUITES, "nowhere"} - {"unknown-axis"}, "control", "folder/source"]),
        (("doctor",), []),
    ],
)
def test_commands_that_do_not_need_wrong_files_name_each_in_a_line(
    root: Path, words: tuple[str, ...], wrong: list[str]
) -> None:
    done = invoke(root, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith("left out: ")]
    assert len(said) == len(wrong)
    assert {name for name in wrong if any(f"/{name}.toml: " in line for line in said)} == {*wrong}


@pytest.mark.parametrize("name", [*SUITES, "nowhere"])
def test_a_command_that_needs_a_wrong_suite_ends_with_its_line(root: Path, name: str) -> None:
    done = invoke(root, "run-suite", "--plan", "--env", "host", "--suite", name)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"error: {root / 'suites' / name}.toml: ")


@pytest.mark.parametrize("words", [("run-suite", "--plan", "--env", "host"), ("report",)])
def test_a_command_that_needs_a_wrong_source_ends_with_its_line(
    root: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    made = shutil.copytree(root, tmp_path / "checkout", symlinks=True)
    (suite,) = (path for path in (made / "suites").glob("*.toml") if path.stem == "bench")
    suite.write_text(f'source = "control"\n{suite.read_text()}')
    assert tomllib.loads(suite.read_text())["source"] == "control"
    done = invoke(made, *words)
    assert done.returncode == 1
    control = made / "reports" / "published" / "control.toml"
    assert done.stderr.splitlines()[-1].startswith(f"error: {control}: key 'hardware[0].title' holds U+0007")
