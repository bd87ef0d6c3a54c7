r"""Noise whose law is no affine image of a draw: on a lattice, or between bounds.

**On a lattice** a value is x + K with an integer K, P(K = k) proportional to e^(-|k|/b)
(Ghosh, Roughgarden, Sundararajan, *Universally utility-maximizing privacy mechanisms*,
2009), or to e^(-k^2/(2 sigma^2)) (Canonne, Kamath, Steinke, *The discrete Gaussian for
differential privacy*, 2020). If x - x' is no integer, then no value between the bounds
is possible on both sides, and the supremum is taken for infinite.

**Between bounds** l and u a value x + bZ, with Z standard Laplace, is

- clamped: what is beyond a bound becomes the bound (on a lattice, too);
- truncated: drawn until it lies between them;
- folded: reflected at the bounds until it does. For l <= x, y <= u the density at y is
  cosh((min(x, y) - l)/b) cosh((u - max(x, y))/b) / (b sinh((u - l)/b)): the product is
  half the sum of cosh((u - l - |x - y|)/b) and cosh((u + l - x - y)/b), which are the
  sums over all images of the density at y, of either parity. For u -> infinity it goes
  to cosh((min(x, y) - l)/b) e^(-(max(x, y) - l)/b) / b.

**Suprema.** Let x < x', and scale and bounds be the same. In all these cases the loss
log p(y)/q(y) does not increase in y. It is constant up to x, and beyond x'. Between
them it is -(y - x)/b + (x' - y)/b and a constant; of folded noise it is
log cosh((u - y)/b) - log cosh((y - l)/b) and a constant. At a bound where values are
clamped it is the log-ratio of two tails, which are averages of what was beyond. So the
largest absolute value is taken at a bound or right beside it, or anywhere beyond x and
x' where there is no bound. The loss of discrete normal noise, ((y - x')^2 - (y -
x)^2)/(2 sigma^2), has no supremum.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.coded import Family
from dpaudit.audit.replay.laws.comparison import LawComparison, equal
from dpaudit.printable import told_apart

__all__ = ["NonAffineLaw"]

_DISCRETE = (Family.DISCRETE_LAPLACE, Family.DISCRETE_GAUSSIAN)


@dataclass(frozen=True, eq=False)
class NonAffineLaw:
    """Independent entries with noise on a lattice, or between bounds.

    Parameters
    ----------
    family : Family
        ``CLAMPED_LAPLACE``, ``TRUNCATED_LAPLACE``, ``FOLDED_LAPLACE``,
        ``DISCRETE_LAPLACE`` (clamped) or ``DISCRETE_GAUSSIAN``.
    mean, scale : ndarray, shape (n,)
        x and b (or sigma), which is >= 0. Where it is 0 there is no noise. Where values
        are truncated or folded x lies between the bounds.
    low, high : ndarray, shape (n,)
        The bounds; infinite for discrete normal noise.
    """

    family: Family
    mean: Array
    scale: Array
    low: Array
    high: Array

    @property
    def kind(self) -> str:
        """What it is, for people."""
        return f"{self.family.words} noise"

    @property
    def noisy(self) -> NDArray[np.bool_]:
        """Which entries are no constants, shape (n,)."""
        return (self.scale > 0) & (self.low < self.high) & np.isfinite(self.mean)

    def compared(self, other: "NonAffineLaw") -> LawComparison:
        """Return how it lies to other noise."""
        if len(self.mean) != len(other.mean):
            return LawComparison("there are more noisy numbers on one side")
        if self.family != other.family:
            return LawComparison(f"{self.kind} on D is {other.kind} on D'")
        other = self._aligned(other)
        noisy = self.noisy | other.noisy
        ends = self._constant, other._constant
        constant = ~noisy & ~equal(*ends)
        if constant.any():
            entry = int(np.argmax(constant))
            here, there = told_apart(ends[0][entry], ends[1][entry], 6)
            text = f"a number without noise is {here} on D and {there} on D'"
            return LawComparison(text, entry)
        entries = np.flatnonzero(noisy)
        one, two = self._part(entries), other._part(entries)
        near = equal(one.mean, two.mean)
        shift = np.where(near, 0.0, np.abs(one.mean - two.mean))
        note = None
        odd = one.noisy != two.noisy
        if self.family in _DISCRETE:
            odd |= _off_lattice(one.mean, two.mean)
            if odd.any():
                note = "distance", "some values are possible on one side only"
            shift = np.where(odd, shift, np.round(shift))
        cut = (one.low != two.low) | (one.high != two.high)
        if cut.any():
            place = int(np.argmax(cut))
            both = (one.low, two.low), (one.high, two.high)
            low, high = (told_apart(x[place], y[place], 6) for x, y in both)
            cuts = f"[{low[0]}, {high[0]}] on D and [{low[1]}, {high[1]}] on D'"
            note = "scale", f"the bounds are {cuts}"
        kinds = np.full(len(entries), self.family)
        made = LawComparison(
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

    def loss(self, other: "NonAffineLaw", value: Array) -> float:
        """Return the loss of n entries."""
        y = np.asarray(value, dtype=np.float64).ravel()
        other = self._aligned(other)
        with np.errstate(all="ignore"):
            each = self._log(y) - other._log(y)
        # One value of positive probability on one side, and of none on the other.
        each = np.where(self._weighs(y) == other._weighs(y), each, np.inf)
        same = ~(self.noisy | other.noisy) & equal(self._constant, other._constant)
        return float(np.where(same, 0.0, each).sum())

    def _aligned(self, other: "NonAffineLaw") -> "NonAffineLaw":
        """Return other noise with these bounds, where they are so up to rounding."""
        low = np.where(equal(self.low, other.low), self.low, other.low)
        high = np.where(equal(self.high, other.high), self.high, other.high)
        return replace(other, low=low, high=high)

    @property
    def _constant(self) -> Array:
        """What entries are that have no noise, shape (n,)."""
        return np.clip(self.mean, self.low, self.high)

    def _weighs(self, y: Array) -> NDArray[np.bool_]:
        """Say which values have a probability, and no density."""
        if self.family in _DISCRETE:
            return np.ones(len(y), dtype=bool)
        clamped = self.family == Family.CLAMPED_LAPLACE
        return ~self.noisy | (clamped & ((y == self.low) | (y == self.high)))

    def _part(self, entries: NDArray[Any]) -> "NonAffineLaw":
        columns = (self.mean, self.scale, self.low, self.high)
        return NonAffineLaw(self.family, *[column[entries] for column in columns])

    def _suprema(self, other: "NonAffineLaw", shift: Array) -> Array:
        """Return the suprema of the losses, scales and bounds being the same."""
        if self.family == Family.DISCRETE_GAUSSIAN:
            return np.where(shift > 0, np.inf, 0.0)
        largest = np.zeros(len(shift))
        ends = (
            (self.low, 1.0, np.minimum(self.mean, other.mean)),
            (self.high, -1.0, np.maximum(self.mean, other.mean)),
        )
        for end, inwards, outermost in ends:
            # Where there is no bound, the loss is the same everywhere beyond x and x'.
            at = np.where(np.isfinite(end), end, outermost - inwards)
            beside = at
            if self.family == Family.DISCRETE_LAPLACE:
                whole = np.floor(inwards * (at - self.mean) + 1e-9) + 1
                beside = self.mean + inwards * whole
            inside = (beside >= self.low) & (beside <= self.high)
            with np.errstate(invalid="ignore"):  # where it is not asked for
                gap = np.abs(self._log(at) - other._log(at))
                gap_inside = np.abs(
                    self._log_inside(beside) - other._log_inside(beside)
                )
            largest = np.maximum(largest, np.where(np.isnan(gap), 0.0, gap))
            largest = np.where(inside, np.fmax(largest, gap_inside), largest)
        return largest

    def _log(self, y: Array) -> Array:
        """Return log-densities where values have one, log-probabilities elsewhere."""
        with np.errstate(all="ignore"):
            inside = self._log_inside(y)
            down = self._log_below(self.low - self.mean)
            up = self._log_below(self.mean - self.high)
        clamped = self.family in (Family.CLAMPED_LAPLACE, Family.DISCRETE_LAPLACE)
        constant = np.where(equal(y, self._constant), 0.0, -np.inf)
        outside = (y < self.low) | (y > self.high)
        at_low, at_high = clamped & (y == self.low), clamped & (y == self.high)
        ends = [~self.noisy, outside, at_low, at_high]
        return np.select(ends, [constant, -np.inf, down, up], inside)

    def _log_inside(self, y: Array) -> Array:
        x, b = self.mean, self.scale
        u = np.abs(y - x) / b
        if self.family in _DISCRETE:
            if self.family == Family.DISCRETE_LAPLACE:
                log = -u + np.log(np.tanh(1 / (2 * b)))
            else:
                sums = [discrete_gaussian_log_sum(float(each)) for each in b]
                log = -(u**2) / 2 - np.array(sums)
            return np.where(_off_lattice(y, x), -np.inf, log)
        if self.family == Family.FOLDED_LAPLACE:
            down = (np.minimum(x, y) - self.low) / b
            up = (self.high - np.maximum(x, y)) / b
            width = (self.high - self.low) / b
            # Of both factors e to what is in brackets, and of the divisor, cancels.
            logs = _log_cosh_less(down) + _log_cosh_less(up)
            log_sinh_less = np.log(-np.expm1(-2 * width)) - math.log(2)
            return logs - log_sinh_less - u - np.log(b)
        log = -u - np.log(2 * b)
        if self.family == Family.TRUNCATED_LAPLACE:
            tails = (np.expm1((self.low - x) / b), np.expm1((x - self.high) / b))
            log = log - np.log(-(tails[0] + tails[1]) / 2)
        return np.asarray(log)

    def _log_below(self, t: Array) -> Array:
        """Return the log-probability that the noise is no greater than t."""
        b = self.scale
        if self.family in _DISCRETE:
            whole = np.floor(t + 1e-9)
            log_all = np.log1p(np.exp(-1 / b))
            above = np.exp(-(np.maximum(whole, 0) + 1) / b - log_all)
            return np.where(whole < 0, whole / b - log_all, np.log1p(-above))
        tail = np.log1p(-np.exp(-np.maximum(t, 0) / b) / 2)
        return np.where(t < 0, t / b - math.log(2), tail)


def _log_cosh_less(t: Array) -> Array:
    """Return log cosh(t) - t for t >= 0, which may be infinite."""
    return np.asarray(np.log1p(np.exp(-2 * t)) - math.log(2))


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


def _off_lattice(x: Array, x2: Array) -> NDArray[np.bool_]:
    """Say where the difference of two numbers is no integer."""
    with np.errstate(invalid="ignore"):
        gap = x - x2
        return np.asarray(np.abs(gap - np.round(gap)) > 1e-9 * np.maximum(np.abs(x), 1))
