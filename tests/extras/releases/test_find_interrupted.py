"""What an interrupted search says."""

from pathlib import Path

from tests.commands.test_chain import folder, invoke, with_task

__all__ = ["folder"]


def test_an_interrupted_search_goes_on_with_the_same_command(folder: Path) -> None:
    with_task(folder, "find", "stop()")
    result = invoke(folder, "find")
    said = "interrupted; the same command with `--resume latest` goes on\n"
    assert (result.returncode, result.stderr) == (130, said)
