"""The suites and workloads of an archive, as a checkout."""

import shutil
from pathlib import Path

from tests.bench import REAL
from tsuishi.extras.handover.replay import archived_checkout


def test_the_code_of_an_archive_is_taken_without_its_explanations(tmp_path: Path) -> None:
    suites = tmp_path / "unpacked" / "inputs" / "run" / "suites"
    suites.mkdir(parents=True)
    for name in ("axes.toml", "quantities.toml", "parity.toml"):
        shutil.copy(REAL.suites / name, suites)
    shutil.copytree(REAL.suites / "explanations", suites / "explanations")
    (suites / "workloads").mkdir()
    (suites / "workloads" / "run.py").touch()
    (tmp_path / "into").mkdir()
    into = archived_checkout(tmp_path / "a.zip", tmp_path / "unpacked", "run", tmp_path / "into" / "x", REAL)
    assert (into.suites / "parity.toml").is_file()
    assert not (into.suites / "explanations").exists()
