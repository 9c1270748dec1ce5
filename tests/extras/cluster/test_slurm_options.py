"""Options of Slurm on the command line."""

import importlib
from pathlib import Path

import pytest

from tests.commands.test_tasks import checkout, invoke


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["run-suite", "--env", "host", "--partition", "main"],
            "error: --partition is an option of Slurm: give --executor slurm too",
        ),
        (
            ["run-suite", "--env", "host", "--gpu-hours", "8"],
            "error: --gpu-hours is an option of Slurm: give --executor slurm too",
        ),
        (
            ["run-suite", "--env", "host", "--nodes", "2"],
            "error: --nodes is an option of Slurm: give --executor slurm too",
        ),
        (
            ["run-suite", "--env", "host", "--executor", "slurm", "--gpu-hours", "many"],
            "error: --gpu-hours takes a number above 0; given: many",
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = invoke(checkout(tmp_path, "ok"), *arguments)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == f"{message}\n"


def test_the_help_takes_the_executors_from_the_setting() -> None:
    tasks = {task.name: task for task in importlib.import_module("tasks").namespace.tasks.values()}
    helps = {argument.name: argument.help for argument in tasks["run-suite"].get_arguments()}
    assert helps["executor"].startswith("local or slurm: ")
