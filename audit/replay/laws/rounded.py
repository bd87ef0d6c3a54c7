r"""Data with noise, rounded: a whole number whose law holds the data.

Let K be c + s Z, rounded down, up, towards 0 or to the nearest integer, where Z is a
Laplace or a Gaussian draw. K = k says that c + s Z lies in the cell of k, an interval,
so that P(K = k) is a difference of two values of a distribution function.

Of Laplace noise all cells on one side of c that are equally wide, and do not hold it,
have probabilities in geometric proportion, e^(-1/s). So

- **of one scale s**, and centres c and c', the cells beyond both have a ratio of
  e^(|c - c'|/s) on one side and its inverse on the other, and no cell has more: as the
  densities have not. This is the supremum of the loss, both ways round.
- **of two scales s > s'** the ratio of the cells grows by e^(1/s' - 1/s) with each one,
  without bound: the loss of K has no bound, as that of the noise. The other way round
  it may have one, which is not computed.

Of Gaussian noise log P(K = k) falls like -(k - c)^2/(2 s^2), up to what is of the order
of log k: the loss has no bound if c or s differ.

So rounding never hides a tail that the noise shows, whatever the data are.

**Delta.** Whatever cells the line falls into, the sum over them of what P has more than
e^epsilon Q, where it is more, is no more than delta(epsilon), and that of the noise
itself is no less than that of the rounded number, whose cells these may be.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.special import log_ndtr

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.apart import atoms_of
from dpaudit.audit.replay.laws.coded import (
    MOST_STEPS,
    STANDARD,
    SURE,
    Family,
    Lattice,
    lattice_of,
)

__all__ = ["WAYS", "Rounded", "as_noise", "least_delta"]

_SAME = 1e-9  # relative: what differs by less is one scale
_CENTRE = 1e-12  # relative: what differs by less is one number, rounded differently
_FARTHEST = 12.0  # scales to which a table goes of Gaussian noise
_CELLS = {"rint": (-0.5, 0.5), "floor": (0.0, 1.0), "ceil": (-1.0, 0.0)}
_FINE, _WIDE = 16, 40.0  # cells to a scale; scales
_MOST_CELLS, _MOST_UNITS = 2**13, 16
WAYS = frozenset({*_CELLS, "trunc"})
"""What NumPy calls them."""


_Sides: TypeAlias = tuple[Array, Array]  # of cells: their probabilities by two laws


@dataclass(frozen=True)
class Rounded(Lattice):
    """The law of a rounded number, as a lattice.

    Parameters
    ----------
    way : {"rint", "floor", "ceil", "trunc"}
    family : int
        LAPLACE or GAUSSIAN.
    centre, scale : float
    """

    way: str = "rint"
    family: int = Family.LAPLACE
    centre: float = 0.0
    scale: float = 1.0

    @classmethod
    def rounding(
        cls, way: str, family: int, centre: float, scale: float
    ) -> "Rounded | None":
        """Return the law of centre + scale times a draw, rounded; None if too wide."""
        known = family in (Family.LAPLACE, Family.GAUSSIAN)
        if not (known and math.isfinite(centre) and 0 < scale < math.inf):
            return None
        # Cells beyond c, and beyond those of 0, are all alike.
        reach = 2.0 if family == Family.LAPLACE else _FARTHEST * scale
        low = math.floor(min(centre, 0.0 if way == "trunc" else centre) - reach)
        high = math.ceil(max(centre, 0.0 if way == "trunc" else centre) + reach)
        if high - low > MOST_STEPS or max(abs(low), abs(high)) > 2**50:
            return None
        k = np.arange(low, high + 1, dtype=np.float64)
        if way == "trunc":
            ends = np.where(k > 0, k, k - 1), np.where(k < 0, k, k + 1)
        else:
            ends = k + _CELLS[way][0], k + _CELLS[way][1]
        log = _log_between(family, *((end - centre) / scale for end in ends))
        # Of Gaussian noise what lies beyond falls faster; it is below 1e-31.
        below, above = float(log[1] - log[0]), float(log[-2] - log[-1])
        if family == Family.LAPLACE:  # whose steps may be less than what rounding adds
            below = above = 1 / scale
        table = low, tuple(log.tolist()), below, above, False
        return cls(*table, way, family, centre, scale)

    def suprema(self, shift: float, other: Any = None) -> tuple[float, float]:
        """Return the suprema of the loss against another, shifted, and back."""
        there = self if other is None else other
        if not isinstance(there, Rounded):
            return super().suprema(shift, other)
        step = round(shift)
        if abs(shift - step) > _SAME * max(1.0, abs(shift)):
            return math.inf, math.inf
        if self.way != there.way or (step and self.way == "trunc"):
            return math.nan, math.nan
        if self.family != there.family:
            return math.nan, math.nan
        moved = self._apart(there, step)
        if self._one_scale(there):
            most = moved / self.scale
            if self.family == Family.GAUSSIAN and moved:
                most = math.inf
            return most, most
        if self.family == Family.GAUSSIAN:
            return math.inf, math.inf
        # The wider one has the tail; the other way round it is not computed.
        return (math.inf, 0.0) if self.scale > there.scale else (0.0, math.inf)

    def sample(self, rng: np.random.Generator, size: Any) -> Array:
        """Return independent rounded numbers: a table may be too short for them."""
        drawn = STANDARD[Family(self.family)].sample(rng, size)
        return np.asarray(getattr(np, self.way)(self.centre + self.scale * drawn))

    def moves(self, other: Any) -> float | None:
        """Return how far the centre is moved, None if something else differs."""
        if not isinstance(other, Rounded) or not self._one_scale(other):
            return None
        alike = (self.way, self.family) == (other.way, other.family)
        return self._apart(other, 0) if alike else None

    def _one_scale(self, other: "Rounded") -> bool:
        return math.isclose(self.scale, other.scale, rel_tol=_SAME)

    def _apart(self, other: "Rounded", step: int) -> float:
        """Return the least distance of the centres: what rounding added is off."""
        size = max(abs(self.centre), abs(other.centre), abs(step))
        return max(0.0, abs(self.centre - other.centre - step) - _CENTRE * size)


def _log_between(family: int, low: Array, high: Array) -> Array:
    """Return log-probabilities that a standard draw lies between numbers."""
    flip = low + high > 0  # to the side whose tail is small
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    if family == Family.GAUSSIAN:
        one, two = log_ndtr(low), log_ndtr(high)
        return np.asarray(two + np.log1p(-np.exp(one - two)))
    with np.errstate(divide="ignore", invalid="ignore"):  # cells hold 0 or they do not
        across = np.log(-np.expm1(low) - np.expm1(-np.maximum(high, 0.0)))
        inside = high + np.log(-np.expm1(low - high))
    return np.asarray(np.where(high > 0, across, inside) - math.log(2))


def as_noise(compared: Any) -> Any:
    """Return a comparison with distances and scales of the noise that was rounded."""
    scale, other = compared.scale.copy(), compared.other_scale.copy()
    shift = compared.shift.copy()
    kinds = zip(compared.family.tolist(), compared.other_family.tolist(), strict=True)
    for unit, (one, two) in enumerate(kinds):
        laws = lattice_of(one), lattice_of(two)
        if isinstance(laws[0], Rounded) and isinstance(laws[1], Rounded):
            shift[unit] *= scale[unit]
            scale[unit] *= laws[0].scale
            other[unit] *= laws[1].scale
    return replace(compared, scale=scale, other_scale=other, shift=shift)


def least_delta(
    law: AffineLaw, other: AffineLaw, compared: Any, epsilons: Array
) -> Array:
    """Return what delta of two laws is at least, from some units, each by itself.

    Of Laplace and Gaussian noise, rounded or not, and of what has probabilities on a
    lattice; of other laws 0.

    Parameters
    ----------
    law, other : AffineLaw
    compared : LawComparison
        Of them.
    epsilons : ndarray
    """
    least = np.zeros(len(epsilons))
    differ = ~compared.alike | (compared.shift != 0)
    exact = law.rough is None and other.rough is None
    for unit in np.flatnonzero(differ)[:_MOST_UNITS].tolist() if exact else ():
        entry = int(law.first[unit])
        one, two = (
            (int(e.family[unit]), float(e.mean[entry]), float(e.ratio[entry]))
            for e in (law, other)
        )
        least = np.maximum(least, _deltas_of(one, two, epsilons))
    return least


def _deltas_of(one: Any, two: Any, epsilons: Array) -> Array:
    """Return what delta of two numbers is at least."""
    exact = all(getattr(lattice_of(code), "exact", False) for code, _, _ in (one, two))
    cells = None if exact else _cells_between(_noise_of(*one), _noise_of(*two))
    if cells is not None:
        return _delta_of(cells, cells, epsilons)
    tables = atoms_of(one, two)
    if tables is None:
        return np.zeros(len(epsilons))
    if exact:
        return _delta_of(tables, tables, epsilons)
    some = np.maximum(*tables) > SURE
    least, most = zip(*(Lattice.bounds(p[some]) for p in tables), strict=True)
    return _delta_of(least, most, epsilons)


def _cells_between(one: Any, two: Any) -> _Sides | None:
    """Return the probabilities of cells by two of `_noise_of`, None if they differ."""
    if one is None or two is None or one[:2] != two[:2]:
        return None
    (way, step, kind, centre, scale), (_, _, kind2, centre2, scale2) = one, two
    size = max(scale, scale2)
    width = step * max(1, round(min(scale, scale2) / _FINE / step)) if step else 0
    width = width or min(scale, scale2) / _FINE
    low = min(centre, centre2) - _WIDE * size
    high = max(centre, centre2) + _WIDE * size
    if not (high - low) / width < _MOST_CELLS:
        return None
    start = width * math.floor(low / width)
    ends = start + width * np.arange(math.ceil((high - start) / width) + 1)
    ends = ends[np.abs(ends) > width / 2] if way == "trunc" else ends
    ends += step / 2 if way == "rint" else 0.0
    ends = np.concatenate([[-np.inf], ends, [np.inf]]).astype(np.float64)
    p, q = (
        np.exp(_log_between(kind, (ends[:-1] - at) / by, (ends[1:] - at) / by))
        for kind, at, by in ((kind, centre, scale), (kind2, centre2, scale2))
    )
    return p, q


def _delta_of(least: _Sides, most: _Sides, epsilons: Array) -> Array:
    """Return the deltas of two laws by what cells have at least, and at most."""
    ratios = np.exp(epsilons)[:, np.newaxis]
    ways = [least[k] - ratios * most[1 - k] for k in (0, 1)]
    return np.asarray(np.max([np.maximum(w, 0.0).sum(axis=1) for w in ways], axis=0))


def _noise_of(
    code: int, mean: float, ratio: float
) -> tuple[str, float, int, float, float] | None:
    """Return how a number is rounded and by which steps, and its noise."""
    law = lattice_of(code)
    if isinstance(law, Rounded) and not mean and ratio > 0:
        step = float(ratio)
        return law.way, step, law.family, step * law.centre, step * law.scale
    if code in (Family.LAPLACE, Family.GAUSSIAN):
        return "", 0.0, code, mean, abs(ratio)
    return None
