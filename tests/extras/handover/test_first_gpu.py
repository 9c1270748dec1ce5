"""The archive of the first GPU: an H100's own telemetry, through verification and report."""

from pathlib import Path

from tests.job import invoke
from tsuishi.base.checkout import Checkout

ARCHIVE = Checkout().root / "reports" / "h100" / "limits.tsuishi.zip"


def test_the_run_of_the_first_gpu_is_verified_and_its_report_says_which_limits_the_power_cap_held_back(
    tmp_path: Path,
) -> None:
    verified = invoke(tmp_path, "verify", "--archive", str(ARCHIVE))
    assert "20261126-162831-kit_limits (8 trials)" in verified.stdout, verified.stderr
    made = invoke(tmp_path, "report", "--archive", str(ARCHIVE), "--out", "h100", "--lang", "en")
    assert made.returncode == 0, made.stderr
    (page,) = (tmp_path / "reports").rglob("report.md")
    text = page.read_text(encoding="utf-8")
    assert "1 × NVIDIA H100 80GB HBM3" in text
    assert "In 3 of 8 trials a GPU's clock was held back in measured phases, for up to 100 % of the time: sw" in text
    assert "bf16, matmul, 8192×8192 | host | answered | arithmetic: host 691 TFLOP/s" in text
