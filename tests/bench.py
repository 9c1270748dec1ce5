"""A small checkout to try things in: the real library and templates, with workloads that misbehave on purpose."""

import ast
import shutil
from pathlib import Path

from tests.words import describe
from tsuishi.base.checkout import Checkout
from tsuishi.specs.environment import COMPATIBILITY

HERE = Path(__file__).parent
REAL = Checkout()


def _behaviours() -> list[str]:
    """Names in the order of behave.BEHAVIOURS (read, not imported: it is a script for another interpreter)."""
    tree = ast.parse((HERE / "workloads" / "behave.py").read_text(encoding="utf-8"))
    (value,) = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    assert isinstance(value, ast.Tuple)
    return [element.id for element in value.elts if isinstance(element, ast.Name)]


BEHAVIOURS = _behaviours()


def make_checkout(root: Path, *behaviours: str, profile: str = "") -> Checkout:
    """A checkout under `root` with one suite, `bench`, whose cases are the behaviours named."""
    workloads = root / "suites" / "workloads"
    shutil.copytree(REAL.workloads, workloads, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (HERE / "workloads").glob("*.py"):
        shutil.copy(file, workloads / "experiments")
    describe(root / "suites")
    (root / "suites" / "explanations").symlink_to(REAL.suites / "explanations")
    devices = [BEHAVIOURS.index(name) + 1 for name in behaviours]
    (root / "suites" / "bench.toml").write_text(
        f"""
        title = "what workloads may do"
        workload = "behave"
        [profiles.quick]
        {profile}
        [[groups]]
        axes = {{ protocol = "steady", devices = {devices} }}
        """,
        encoding="utf-8",
    )
    (root / "images").mkdir()
    for name in ("host.toml", COMPATIBILITY):
        shutil.copy(REAL.images / name, root / "images")
    (root / "templates").symlink_to(REAL.templates)
    (root / "reports").mkdir()
    (root / "reports" / "published").mkdir()
    return Checkout(root)


def least_environment(python: str, base: str, more: str) -> str:
    """The specification of an environment without a framework; `more` is TOML beside, as its promises."""
    return f"""
        title = "as little as possible"
        framework = "any"
        accelerators = ["cpu"]
        python = "{python}"
        base = {{ reference = "{base}" }}
        {more}
        """


def link_checkout(root: Path) -> Checkout:
    """A checkout under `root` with the real workloads, environments and templates, and no suite yet."""
    describe(root / "suites")
    (root / "suites" / "workloads").symlink_to(REAL.workloads)
    for name in ("images", "templates"):
        (root / name).symlink_to(REAL.root / name)
    return Checkout(root)
