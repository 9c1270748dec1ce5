"""Chainer 5, on NumPy."""

RANK = 5
PACKAGES = ("cupy", "ideep4py")
