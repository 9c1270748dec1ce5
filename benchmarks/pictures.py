"""The kept report and the pictures of the documentation: `python -m benchmarks.pictures RUN` from the root, with .venv
active.

RUN is a run of the main job on two CPU cores without a GPU. It writes reports/two-cpu-cores, docs/report.png and
docs/first-screens/; the machine needs Chromium, and a font for Japanese. Each picture of the run has the SHA-256 of the
kept report.json as its text `Source`; a test holds it to that.
"""

import argparse
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.browser.look import started
from tests.gpu_run import add_steps, two_gpus
from tests.synthetic_run import TF, TORCH, SyntheticRun
from tests.words import WORDS
from tsuishi.base.checkout import Checkout
from tsuishi.base.files import sha256_of
from tsuishi.report.output.folder import make_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "reports" / "two-cpu-cores"
SCREENS = ROOT / "docs" / "first-screens"
_SCREEN = {"width": 1280, "height": 820}
# By the picture: the language of its report, and how its page is opened.
OF_THE_RUN: dict[Path, tuple[str, dict[str, Any]]] = {
    ROOT / "docs" / "report.png": ("en", {"viewport": _SCREEN}),
    SCREENS / "phone.png": ("en", {"viewport": {"width": 390, "height": 1688}}),
    SCREENS / "printed.png": ("en", {"viewport": {"width": 937, "height": 663}}),
    SCREENS / "japanese.png": ("ja", {"viewport": _SCREEN, "locale": "ja-JP"}),
}
TWO_GPUS = SCREENS / "two-gpus.png"
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", metavar="RUN")
    given = parser.parse_args()
    executable = shutil.which("chromium") or sys.exit("chromium is not installed")
    with tempfile.TemporaryDirectory() as folder, started(executable) as browser:
        reports = {language: reported(given.run, language) for language in ("en", "ja")}
        shutil.rmtree(KEPT)
        shutil.copytree(reports["en"], KEPT)
        for path, (language, options) in OF_THE_RUN.items():
            taken = screenshot(browser, reports[language], options, printed=path.stem == "printed")
            path.write_bytes(with_source(taken, sha256_of(KEPT / "report.json")))
        TWO_GPUS.write_bytes(screenshot(browser, of_two_gpus(Path(folder)), {"viewport": _SCREEN}))


def reported(run: str, language: str) -> Path:
    """The folder of the report of a run in a language."""
    command = [sys.executable, "-m", "invoke", "report", "--run", run, "--out", KEPT.name, "--lang", language]
    subprocess.run([*command, *["--all-charts"] * (language == "en")], cwd=ROOT, check=True)
    return ROOT / "reports" / "out" / (KEPT.name if language == "en" else f"{KEPT.name}-{language}")


def of_two_gpus(folder: Path) -> Path:
    """The folder of the report of a made-up run on two GPUs: some claims hold on it, and one does not."""
    run = two_gpus(SyntheticRun(folder / "20260101-000000-two_gpus"))
    for model, step_s, batch_sizes in (("cnn10", 0.034, (128, 256, 512, 1024)), ("wrn28_10", 0.34, (128, 256))):
        for batch_size in batch_sizes:
            of_case: dict[str, Any] = {"batch_size": batch_size, "model": model}
            longer = batch_size / 128
            add_steps(run, TORCH, longer * step_s, **of_case)
            add_steps(run, TORCH, 0.6 * longer * step_s, devices=2, strategy="data_parallel", **of_case)
            add_steps(run, TF, 1.47 * longer * step_s, **of_case)
    checkout = Checkout()
    return make_report([run.finish()], checkout.published, WORDS, checkout.templates, folder / "out").file.parent


def screenshot(browser: "Browser", report: Path, options: dict[str, Any], *, printed: bool = False) -> bytes:
    """A PNG of a report's first screen."""
    page = browser.new_page(**options)
    page.goto((report / "index.html").as_uri())
    if printed:
        page.emulate_media(media="print")
    page.wait_for_timeout(1000)  # charts that are seen become live
    taken = page.screenshot()
    page.close()
    return taken


def with_source(png: bytes, source: str) -> bytes:
    """A PNG with a text chunk `Source` in front of its data (PNG, third edition, 11.3.3)."""
    body = b"tEXtSource\0" + source.encode()
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    end_of_header = len(_SIGNATURE) + 25
    return png[:end_of_header] + chunk + png[end_of_header:]


def source_of(path: Path) -> str:
    """The text `Source` of a picture; empty without it."""
    _, found, rest = path.read_bytes().partition(b"tEXtSource\0")
    return rest[:64].decode() if found else ""


if __name__ == "__main__":
    main()
