"""Least squares of lines with relative weights, and the interval of a ratio of two estimates."""

import math
from collections.abc import Iterable
from typing import NamedTuple


class Interval(NamedTuple):
    """An interval; an end is infinite where the data do not bound it."""

    low: float
    high: float


UNBOUNDED = Interval(-math.inf, math.inf)


class Sums(NamedTuple):
    """The sums of least squares of 1 on (x / y, 1 / y): the line y = slope x + offset, with relative weights."""

    bb: float
    bc: float
    cc: float
    b1: float
    c1: float

    @property
    def line(self) -> tuple[float, float]:
        """The slope and the offset."""
        determinant = self.bb * self.cc - self.bc**2
        return (
            (self.cc * self.b1 - self.bc * self.c1) / determinant,
            (self.bb * self.c1 - self.bc * self.b1) / determinant,
        )

    @property
    def inverse(self) -> tuple[float, float, float]:
        """For a variance of 1: the variances of slope and offset, and their covariance."""
        determinant = self.bb * self.cc - self.bc**2
        return self.cc / determinant, self.bb / determinant, -self.bc / determinant


def sums(rows: Iterable[tuple[float, float, float]]) -> Sums:
    """The sums over rows (weight, x, y), y above 0. Two different x are needed for a line."""
    bb = bc = cc = b1 = c1 = 0.0
    for weight, x, y in rows:
        b, c = x / y, 1 / y
        bb, bc, cc = bb + weight * b * b, bc + weight * b * c, cc + weight * c * c
        b1, c1 = b1 + weight * b, c1 + weight * c
    return Sums(bb, bc, cc, b1, c1)


def ratio_interval(above: tuple[float, float], below: tuple[float, float], covariance: float, t: float) -> Interval:
    """Fieller's interval of above / below, each given as (value, variance); infinite where `below` may be 0."""
    (numerator, numerator_variance), (denominator, variance) = above, below
    ratio, g = numerator / denominator, t * t * variance / denominator**2
    if g >= 1:
        return UNBOUNDED
    middle = ratio - (g * covariance / variance if variance else 0)
    inner = numerator_variance - 2 * ratio * covariance + ratio**2 * variance
    inner -= g * (numerator_variance - covariance**2 / variance) if variance else 0
    half = t / denominator * math.sqrt(max(0.0, inner))
    return Interval((middle - half) / (1 - g), (middle + half) / (1 - g))
