"""The workload `script`, asked for what it is not seen to do in a run."""

from pathlib import Path

import pytest

from experiments import script


def test_what_a_framework_prints_at_its_import_is_no_output_of_the_script(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "noisy.py").write_text("import sys\nprint('lr: 1')\nsys.stderr.write('lr: 2')\n__version__ = '3'\n")
    assert script.versions(["noisy"], {"PYTHONPATH": str(tmp_path)}) == {"noisy": "3"}
    assert capfd.readouterr() == ("", "")


def test_why_a_framework_cannot_be_imported_is_in_the_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "broken.py").write_text("import gone_since\n")
    with pytest.raises(ImportError, match=r"^broken cannot be imported: see the log$"):
        script.versions(["broken"], {"PYTHONPATH": str(tmp_path)})
    assert "No module named 'gone_since'" in capfd.readouterr().err
