"""Runs as others hand them over: with a chain, in an archive, and in archives that somebody altered."""

from pathlib import Path

from tests.synthetic_run import write_example
from tsuishi.results.directory import RunDirectory
from tsuishi.results.hash_chain import HashChain


def chained(run: RunDirectory) -> RunDirectory:
    """The run with the chain that a runner leaves."""
    trials = [f"trials/{folder.name}/trial.json" for folder in run.finished_folders()]
    HashChain(run.path).add([*run.files(), *trials])
    return run


def chained_example(path: Path) -> RunDirectory:
    """The example of tests.synthetic_run with a chain."""
    return chained(write_example(path))
