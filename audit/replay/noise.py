r"""Noise that has no density: on a lattice, or clamped.

**Suprema.** Let x and x' be d > 0 apart, scales and bounds being the same. The loss of
Laplace noise (|y - x'| - |y - x|)/b goes down from d/b to -d/b (for x < x') as y grows.
On a lattice it takes both values, beyond x and x'. That of a clamped value is the same
between the bounds; at a bound it is the log-ratio of two tails, whose supremum is d/b
if the bound is beyond both x and x', and less otherwise. As it is monotone between the
bounds, the largest of its absolute values is at a bound or right beside it. The loss of
discrete normal noise, ((y - x')^2 - (y - x)^2)/(2 sigma^2), has no bound.

Noise on a lattice is x + K with an integer K: P(K = k) proportional to e^(-|k|/b)
(Ghosh, Roughgarden, Sundararajan, *Universally utility-maximizing privacy mechanisms*,
2009), or to e^(-k^2/(2 sigma^2)) (Canonne, Kamath, Steinke, *The discrete Gaussian for
differential privacy*, 2020). If x - x' is no integer, then no value between the bounds
is possible on both sides, and the supremum is infinite.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.comparison import Comparison
from dpaudit.audit.replay.laws import Family

__all__ = ["Noise", "discrete_gaussian_log_sum", "equal"]

_SAME = 1e-12  # relative: what differs by less is one number, rounded differently


@dataclass(frozen=True, eq=False)
class Noise:
    """Independent entries with noise on a lattice, or noise that is clamped.

    Parameters
    ----------
    family : Family
        ``CLAMPED_LAPLACE``, ``DISCRETE_LAPLACE`` or ``DISCRETE_GAUSSIAN``.
    mean, scale : ndarray, shape (n,)
        x and b (or sigma), which is >= 0. Where it is 0 there is no noise.
    low, high : ndarray, shape (n,)
        Between which values are clamped; infinite for discrete normal noise.
    """

    family: Family
    mean: Array
    scale: Array
    low: Array
    high: Array

    @property
    def kind(self) -> str:
        """What it is, for people."""
        return f"{self.family.name.lower().replace('_', ' ')} noise"

    @property
    def noisy(self) -> NDArray[np.bool_]:
        """Which entries are no constants, shape (n,)."""
        return (self.scale > 0) & (self.low < self.high) & np.isfinite(self.mean)

    def compared(self, other: "Noise") -> Comparison:
        """Return how it lies to other noise."""
        if len(self.mean) != len(other.mean):
            return _apart("there are more noisy numbers on one side")
        if self.family != other.family:
            return _apart(f"{self.kind} on D is {other.kind} on D'")
        noisy = self.noisy | other.noisy
        ends = self._constant, other._constant
        constant = ~noisy & ~equal(*ends)
        if constant.any():
            entry = int(np.argmax(constant))
            values = f"{ends[0][entry]:g} on D and {ends[1][entry]:g} on D'"
            return _apart(f"a number without noise is {values}", entry)
        entries = np.flatnonzero(noisy)
        one, two = self._part(entries), other._part(entries)
        near = equal(one.mean, two.mean)
        shift = np.where(near, 0.0, np.abs(one.mean - two.mean))
        note = None
        odd = one.noisy != two.noisy
        if self.family != Family.CLAMPED_LAPLACE:
            odd |= _off_lattice(one.mean, two.mean)
            if odd.any():
                note = "distance", "some values are possible on one side only"
            shift = np.where(odd, shift, np.round(shift))
        cut = ~(equal(one.low, two.low) & equal(one.high, two.high))
        if cut.any():
            place = int(np.argmax(cut))
            cuts = [f"[{e.low[place]:g}, {e.high[place]:g}]" for e in (one, two)]
            note = "scale", f"values are clamped to {cuts[0]} on D and {cuts[1]} on D'"
        kinds = np.full(len(entries), self.family)
        made = Comparison(
            None,
            int(entries[np.argmax(shift)]) if len(entries) else 0,
            True,
            shift,
            one.scale,
            np.where(cut, np.nan, two.scale),
            kinds,
            kinds,
            note=note,
        )
        alike = made.alike & ~odd
        suprema = np.full(len(entries), np.inf)
        suprema[alike] = one._part(alike)._suprema(two._part(alike), shift[alike])
        return replace(made, suprema=suprema)

    def loss(self, other: "Noise", value: Array) -> float:
        """Return the loss of n entries."""
        y = np.asarray(value, dtype=np.float64).ravel()
        with np.errstate(all="ignore"):
            each = self._log(y) - other._log(y)
        if self.family == Family.CLAMPED_LAPLACE:
            # One value of positive probability on one side, and of none on the other.
            each = np.where(self._weighs(y) == other._weighs(y), each, np.inf)
        # Constants that are one value are so up to rounding alone.
        same = ~(self.noisy | other.noisy) & equal(self._constant, other._constant)
        return float(np.where(same, 0.0, each).sum())

    @property
    def _constant(self) -> Array:
        """What entries are that have no noise, shape (n,)."""
        return np.clip(self.mean, self.low, self.high)

    def _weighs(self, y: Array) -> NDArray[np.bool_]:
        """Say which values have a probability, and no density."""
        return ~self.noisy | (y == self.low) | (y == self.high)

    def _part(self, entries: NDArray[Any]) -> "Noise":
        columns = (self.mean, self.scale, self.low, self.high)
        return Noise(self.family, *[column[entries] for column in columns])

    def _suprema(self, other: "Noise", shift: Array) -> Array:
        """Return the suprema of the losses, scales and bounds being the same."""
        if self.family == Family.DISCRETE_GAUSSIAN:
            return np.where(shift > 0, np.inf, 0.0)
        # Beyond an end that is infinite the loss is that without bounds.
        open_end = np.isinf(self.low) | np.isinf(self.high)
        largest = np.where(open_end, shift / self.scale, 0.0)
        for end, inwards in ((self.low, 1.0), (self.high, -1.0)):
            finite = np.isfinite(end)
            at = np.where(finite, end, 0.0)
            beside = at
            if self.family == Family.DISCRETE_LAPLACE:
                whole = np.floor(inwards * (at - self.mean) + 1e-9) + 1
                beside = self.mean + inwards * whole
            inside = finite & (beside >= self.low) & (beside <= self.high)
            for where, log in ((finite, Noise._log), (inside, Noise._log_inside)):
                y = at if where is finite else beside
                with np.errstate(invalid="ignore"):  # where it is not asked for
                    gap = np.abs(log(self, y) - log(other, y))
                largest = np.where(where, np.maximum(largest, gap), largest)
        return largest

    def _log(self, y: Array) -> Array:
        """Return log-densities where values have one, log-probabilities elsewhere."""
        with np.errstate(all="ignore"):
            down = self._log_below(self.low - self.mean)
            up = self._log_below(self.mean - self.high)
            inside = self._log_inside(y)
        constant = np.where(equal(y, self._constant), 0.0, -np.inf)
        outside = (y < self.low) | (y > self.high)
        ends = [~self.noisy, outside, y == self.low, y == self.high]
        return np.select(ends, [constant, -np.inf, down, up], inside)

    def _log_inside(self, y: Array) -> Array:
        u, b = np.abs(y - self.mean), self.scale
        if self.family == Family.CLAMPED_LAPLACE:
            return np.asarray(-u / b - np.log(2 * b))
        if self.family == Family.DISCRETE_LAPLACE:
            log = -u / b + np.log(np.tanh(1 / (2 * b)))
        else:
            sums = [discrete_gaussian_log_sum(float(each)) for each in b]
            log = -(u**2) / (2 * b**2) - np.array(sums)
        return np.where(_off_lattice(y, self.mean), -np.inf, log)

    def _log_below(self, t: Array) -> Array:
        """Return the log-probability that the noise is no greater than t."""
        b = self.scale
        with np.errstate(all="ignore"):
            if self.family == Family.CLAMPED_LAPLACE:
                tail = np.log1p(-np.exp(-np.maximum(t, 0) / b) / 2)
                return np.where(t < 0, t / b - math.log(2), tail)
            whole = np.floor(t + 1e-9)
            log_all = np.log1p(np.exp(-1 / b))
            above = np.exp(-(np.maximum(whole, 0) + 1) / b - log_all)
            return np.where(whole < 0, whole / b - log_all, np.log1p(-above))


def discrete_gaussian_log_sum(sigma: float) -> float:
    """Return the log of the sum of e^(-k^2/(2 sigma^2)) over all integers k.

    For sigma >= 1 by Poisson's summation: sqrt(2 pi) sigma times the sum of
    e^(-2 (pi sigma k)^2). Either series is cut where its terms are below e^-60.

    Examples
    --------
    >>> round(discrete_gaussian_log_sum(1.0), 6)
    0.918939
    """
    k = np.arange(1.0, 13.0)
    if not sigma > 0:
        return 0.0
    if sigma < 1:
        return math.log1p(2 * float(np.exp(-(k**2) / (2 * sigma**2)).sum()))
    more = 2 * float(np.exp(-2 * (math.pi * sigma * k) ** 2).sum())
    return math.log(2 * math.pi) / 2 + math.log(sigma) + math.log1p(more)


def equal(x: Array, x2: Array) -> NDArray[np.bool_]:
    """Say where two numbers are one, up to rounding; NaN equals NaN."""
    with np.errstate(invalid="ignore"):
        near = np.abs(x - x2) <= _SAME * np.maximum(np.abs(x), np.abs(x2))
    return np.asarray((x == x2) | near | (np.isnan(x) & np.isnan(x2)))


def _off_lattice(x: Array, x2: Array) -> NDArray[np.bool_]:
    """Say where the difference of two numbers is no integer."""
    with np.errstate(invalid="ignore"):
        gap = x - x2
        return np.asarray(np.abs(gap - np.round(gap)) > 1e-9 * np.maximum(np.abs(x), 1))


def _apart(reason: str, entry: int = 0) -> Comparison:
    none, kinds = np.empty(0), np.empty(0, dtype=np.intp)
    return Comparison(reason, entry, True, none, none, none, kinds, kinds)
