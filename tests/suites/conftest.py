"""Puts suites/workloads on sys.path, as running one of its scripts does."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "suites" / "workloads"))
