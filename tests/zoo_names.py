"""Writes tsuishi/specs/zoos/*.txt, or into another folder: the names of the networks of timm, torchvision and Keras.

Run it with the interpreter of an environment that has both of PyTorch's, and with that of an environment that has
TensorFlow: PYTHON tests/zoo_names.py [FOLDER].
"""

import sys
import textwrap
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "suites" / "workloads"))

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "tsuishi" / "specs" / "zoos"
    framework = "tensorflow" if find_spec("tensorflow") else "torch"
    zoos = import_module(f"frameworks.{framework}.zoos")
    for library in ("keras",) if framework == "tensorflow" else ("timm", "torchvision"):
        names = " ".join(sorted(zoos.names() if library == "keras" else zoos.names_of(library)))
        release = import_module(library).__version__.partition("+")[0]
        lines = textwrap.wrap(names, 118, break_on_hyphens=False, break_long_words=False)
        (folder / f"{library}.txt").write_text("\n".join([f"{library} {release}", *lines]) + "\n", encoding="utf-8")
