"""Puts suites/workloads on sys.path, as running one of its scripts does."""
import pathlib
import sys

WORKLOADS = pathlib.Path(__file__).resolve().parents[2] / "suites" / "workloads"
if str(WORKLOADS) not in sys.path:
    sys.path.insert(0, str(WORKLOADS))
