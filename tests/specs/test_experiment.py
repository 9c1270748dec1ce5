"""Suites with a script: axes in its command and variables, and what is refused when the suite is read."""

import hashlib
import tomllib
from pathlib import Path

import pytest

from tests.words import describe
from tsuishi.base.errors import UserError
from tsuishi.specs.experiment import Pattern
from tsuishi.specs.suite import Suite, read_suite
from tsuishi.specs.vocabulary import vocabulary

SUITE = """
title = "theirs"
workload = "script"
[experiment]
script = "sub/theirs.py"
sha256 = "{digest}"
command = ["python", "{{script}}", "--batch={{batch_size}}"]
variables = {{ MODE = "{{mode}}" }}
[patterns.step]
line = 'loss (?P<loss>[0-9.]+)'
[[groups]]
axes = {{ protocol = "literal", batch_size = [8, 16], mode = "training" }}
"""


def read(folder: Path, given: str = "", put: str = "") -> Suite:
    """The suite, with `put` in the place of `given`."""
    suites = folder / "suites"
    describe(suites)
    (suites / "sub").mkdir(exist_ok=True)
    (suites / "sub" / "theirs.py").write_text("print('loss 1.0')\n")
    digest = hashlib.sha256((suites / "sub" / "theirs.py").read_bytes()).hexdigest()
    text = SUITE.format(digest=digest)
    assert given in text
    (suites / "theirs.toml").write_text(text.replace(given, put) if given else text, encoding="utf-8")
    return read_suite(suites / "theirs.toml", vocabulary(suites))


def test_axes_become_arguments_and_variables(tmp_path: Path) -> None:
    suite = read(tmp_path)
    orders = [suite.script_order(case, tmp_path) for case, _ in suite.cases("quick", "cpu")]
    assert [order.command for order in orders if order] == [
        ("python", "theirs.py", "--batch=8"),
        ("python", "theirs.py", "--batch=16"),
    ]
    assert [order.variables for order in orders if order] == [{"MODE": "training"}] * 2
    assert orders[0] is not None
    assert orders[0].patterns[0]["units"] == {"loss": "1"}
    assert orders[0].mounts() == {tmp_path / "sub/theirs.py": "/script/sub/theirs.py"}


def test_a_script_needs_no_placeholder_for_a_setting_of_the_process(tmp_path: Path) -> None:
    suite = read(tmp_path, "batch_size = ", "cpus = 1, threads = [2, 4], batch_size = ")
    cases = [case for case, _ in suite.cases("quick", "cpu")]
    assert {case.process["variables"]["OMP_NUM_THREADS"] for case in cases} == {"2", "4"}
    assert {case.process["cpus"] for case in cases} == {1}


@pytest.mark.parametrize(
    ("given", "put", "said"),
    [
        ("--batch={batch_size}", "", "the script does not get the axis 'batch_size'"),
        ("--batch={batch_size}", "{batchsize} {batch_size}", "unknown axis of this group 'batchsize'"),
        ('sha256 = "', 'sha256 = "0000" # "', "key 'experiment.sha256'"),
        ('"sub/theirs.py"', '"../theirs.py"', "leads out of the folder of the suite"),
        ('"sub/theirs.py"', '"gone.py"', "gone.py: No such file or directory"),
        ('["python", ', '["sh", ', 'its first word is "python"'),
        ("(?P<loss>", "(", "no named group in 'line'"),
        ("(?P<loss>", "(?P<loss>(", "no regular expression"),
        ("(?P<loss>", "(?P<unheard>", "no quantity is made of the group 'unheard'"),
        ('workload = "script"', 'workload = "parity"', "go together"),
        ("line = ", "begin = ", "give either 'line', or 'begin' and 'end'"),
        (
            "'loss (?P<loss>",
            "'(?P<a>1)(?P<unit>{unit})(?P<loss>",
            "the group 'unit' is of one number, and 'line' has a, loss",
        ),
        ("\n[[groups]]", "\nunits = { kB = 1e3 }\n[[groups]]", "units: no group takes a unit from the line"),
        ("\n[[groups]]", "\ndecimal = ';'\n[[groups]]", "key 'patterns.step.decimal'"),
    ],
)
def test_a_mistake_in_a_suite_is_refused_when_it_is_read(tmp_path: Path, given: str, put: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        read(tmp_path, given, put)
    assert said in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path / "suites" / "theirs.toml"))


@pytest.mark.parametrize("scale", ["0.001", "{ ms = 0.001, all = 0.001 }"])
def test_a_scale_is_of_all_numbers_of_a_line_or_of_each(scale: str) -> None:
    line = r"(?P<index>\d+): (?P<ms>[0-9.]+) of (?P<all>[0-9.]+) ms"
    pattern = Pattern.model_validate({"line": line, **tomllib.loads(f"scale = {scale}")})
    assert pattern.scale == {"ms": 0.001, "all": 0.001}


def test_another_script_than_the_suite_names_is_refused_with_its_digest(tmp_path: Path) -> None:
    read(tmp_path)
    script = tmp_path / "suites" / "sub" / "theirs.py"
    script.write_text("print('loss 2.0')\n")
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    with pytest.raises(UserError, match=f"sub/theirs.py has the SHA-256 {digest}, not "):
        read_suite(tmp_path / "suites" / "theirs.toml", vocabulary(tmp_path / "suites"))
