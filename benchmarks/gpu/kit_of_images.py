"""What the steps of the second kit work with: a copy of the checkout, its settings, and the patch of the locks."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from benchmarks.gpu import filled_locks
from benchmarks.gpu.journal import Journal, Spoken
from tsuishi.base.budget import Clock
from tsuishi.base.checkout import Checkout
from tsuishi.base.screen import Screen
from tsuishi.base.settings import Settings
from tsuishi.plan.choice import Choice
from tsuishi.plan.session import Session
from tsuishi.specs.debian import apt_lock
from tsuishi.specs.environment import Accelerator, Environment, read_environment

# By worth: the first two have open hashes, the last one only a base without digest, the largest of all.
ENVIRONMENTS = ("torch1.1-cu100", "tf1.13-cu100", "tf1.15-ngc")
# Other environments with open hashes, and why the kit does not make them.
NOT_MADE = {
    "mxnet-cu100": "no claim that can be tested is about it; `invoke lock --env mxnet-cu100` fills it in",
    "tf0.10-cu75": "for GPUs up to compute capability 5.2",
    "torch2-cpu-aarch64": "for another machine",
}
PATCH = "images.patch"
# Of an error, the text in a line; all of it is in the log.
LONGEST_WORDS = 600
_EXPORTS = "exports"


@dataclass
class ImagesKit:
    """The kit at work on the environments `names` of a checkout.

    others: environments that only lack the digest of their base. exports: the folder of the archives.
    """

    journal: Journal
    settings: Settings
    accelerator: Accelerator
    names: tuple[str, ...] = ENVIRONMENTS
    others: tuple[str, ...] = ()
    source: Checkout = field(default_factory=Checkout)
    exports: Path = field(default_factory=lambda: Checkout().root / _EXPORTS)
    # The environments whose new locks images.patch holds, and why others go no further, by name.
    proven: list[str] = field(default_factory=list)
    ended: dict[str, str] = field(default_factory=dict)
    checkout: Checkout = field(init=False)
    screen: Screen = field(init=False)

    def __post_init__(self) -> None:
        root = self.journal.work / "checkout"
        shutil.copytree(self.source.images, root / "images")
        for name in ("suites", "templates", "reports"):
            (root / name).symlink_to(self.source.root.resolve() / name)
        self.checkout = Checkout(root)
        console = Console(file=Spoken(self.journal), highlight=False, soft_wrap=True, emoji=False, width=200)  # type: ignore[arg-type]
        self.screen = Screen(console)

    def environment(self, name: str) -> Environment:
        return read_environment(self.checkout.images / f"{name}.toml")

    def session(self, name: str, *suites: str) -> Session:
        """The session of a task that is given this environment. Suites run whole, in their smoke profile."""
        choice = Choice((name,), suites, profile="smoke", accelerator=self.accelerator)
        return Session(self.settings, choice, self.screen, self.checkout, clock=Clock(None), with_report=False)

    def words(self, error: Exception) -> str:
        """An error in a line; no folder of this machine is named in it."""
        places = self.checkout.root, self.exports, self.journal.folder
        text = str(error)
        for place in places:
            text = text.replace(f"{place}/", "")
        return text[:LONGEST_WORDS]

    def files(self, checkout: Checkout, name: str) -> dict[str, str]:
        """The spec and the locks of an environment as they are in a checkout, by their path in it."""
        spec = checkout.images / f"{name}.toml"
        present = [file for file in (spec, spec.with_suffix(".lock"), apt_lock(spec)) if file.exists()]
        return {file.relative_to(checkout.root).as_posix(): file.read_text(encoding="utf-8") for file in present}

    def patched(self) -> None:
        """Write images.patch anew, with the locks that are proven; without any there is no such file."""
        before = {path: text for name in self.proven for path, text in self.files(self.source, name).items()}
        after = {path: text for name in self.proven for path, text in self.files(self.checkout, name).items()}
        part = self.journal.work / PATCH
        part.write_text(filled_locks.patch(before, after), encoding="utf-8")
        part.replace(self.journal.folder / PATCH)
        if not (self.journal.folder / PATCH).stat().st_size:
            (self.journal.folder / PATCH).unlink()

    def pack(self) -> None:
        """Keep every run that there is."""
        if runs := sorted(path.parent for path in self.settings.results.glob("*/run.json")):
            self.journal.pack(runs)
