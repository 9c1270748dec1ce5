"""Writes tsuishi/specs/zoos/*.txt, or into another folder: the names of the networks of timm and torchvision.

Run it with the interpreter of an environment that has both: PYTHON tests/zoo_names.py [FOLDER].
"""

import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "suites" / "workloads"))

from frameworks.torch import zoos  # noqa: E402

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "tsuishi" / "specs" / "zoos"
    for library in ("timm", "torchvision"):
        names = " ".join(sorted(zoos.names_of(library)))
        release = sys.modules[library].__version__.partition("+")[0]
        lines = textwrap.wrap(names, 118, break_on_hyphens=False, break_long_words=False)
        (folder / f"{library}.txt").write_text("\n".join([f"{library} {release}", *lines]) + "\n", encoding="utf-8")
