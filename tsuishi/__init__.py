"""tsuishi (追試): re-run published deep-learning performance experiments in pinned environments."""

__version__ = "0.1.0"
