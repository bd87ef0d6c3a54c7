r"""Laws of noisy values: which density they have, and how far two of them lie apart.

A noisy value is an affine image x + L z of independent draws z. Its law is known here
if its entries fall into *units*: entries x_i + r_i u of one standard variable u, where
units are independent of each other. A unit is one draw of any family; or a combination
of Gaussian draws, which is one Gaussian variable again, if no other unit has a part in
those draws. Entries without a draw, and entries that are not finite, are constants.

If the units of Gaussian draws overlap, but x + L z and x' + L' z have one covariance
L L^T = L' L'^T, the same is done in coordinates in which it is the identity on its
range.

Two laws P and Q are compared unit by unit:

- If their constants differ, or entries that hang together in one of them lie on another
  line in the other, then P and Q are concentrated on different affine subspaces S and
  T. One of the two sets gives the other law measure zero: let S not lie within T; then
  S and T meet in a proper subspace of S, of measure zero under P, so that P(T) = 0,
  while Q(T) = 1. So P and Q are **mutually singular**, and no claim holds.
- Otherwise both have densities on one subspace, in the coordinates of one entry of each
  unit, and the loss log p(y)/q(y) is a sum over units.

The supremum of the loss, both ways round, is a sum over units too, since they are
independent: |x - x'|/b for two Laplace or two logistic laws of one scale b, infinite
for every other pair of the families here that is not one law.
"""

import math
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array

__all__ = ["Comparison", "Family", "Law", "compare", "loss", "losses"]

_MOST_DENSE = 200_000  # entries of a matrix of terms
_SAME = 1e-9  # relative: what differs by less is one number, rounded differently


class Family(IntEnum):
    """Laws of a standard draw."""

    GAUSSIAN = 0
    LAPLACE = 1
    EXPONENTIAL = 2
    UNIFORM = 3
    GUMBEL = 4
    LOGISTIC = 5


def log_density(family: NDArray[np.intp], u: Array) -> Array:
    """Return the log-densities of standard draws, each of its own family."""
    size = np.abs(u)
    with np.errstate(all="ignore"):
        return np.select(
            [family == kind for kind in Family],
            [
                -u * u / 2 - math.log(2 * math.pi) / 2,
                -size - math.log(2),
                np.where(u >= 0, -u, -np.inf),
                np.where((u >= 0) & (u <= 1), 0.0, -np.inf),
                -(u + np.exp(-u)),
                -size - 2 * np.log1p(np.exp(-size)),
            ],
            np.nan,
        )


@dataclass(frozen=True, eq=False)
class Law:
    """The law of a noisy value with n entries and U units.

    Parameters
    ----------
    mean : ndarray, shape (n,)
        x.
    unit : ndarray of int, shape (n,)
        Of each entry; -1 for constants. Units are numbered by their first entries.
    ratio : ndarray, shape (n,)
        r; 0 for constants.
    first : ndarray of int, shape (U,)
        The first entry of each unit.
    draw : ndarray of int, shape (U,)
        A draw that each unit hangs on.
    family : ndarray of int, shape (U,)
    alone : ndarray of bool, shape (U,)
        Whether a unit is one draw, which its entries show; not a combination.
    known : bool
        Whether the entries fall into units; if not, the four before are empty.
    factor : ndarray, shape (n, k), optional
        L, where the entries do not fall into units, but all draws are Gaussian.
    """

    mean: Array
    unit: NDArray[np.intp]
    ratio: Array
    first: NDArray[np.intp]
    draw: NDArray[np.intp]
    family: NDArray[np.intp]
    alone: NDArray[np.bool_]
    known: bool = True
    factor: Array | None = None

    @classmethod
    def of(
        cls, mean: Array, index: NDArray[np.intp], coef: Array, family: NDArray[np.intp]
    ) -> "Law":
        """Return the law of mean + (coef * draws[index]).sum(axis=1).

        Parameters
        ----------
        mean : ndarray, shape (n,)
        index, coef : ndarray, shape (n, m)
            Terms; the index is -1 where there is none.
        family : ndarray of int
            Of all draws.
        """
        n = len(mean)
        index = np.where((coef == 0) | ~np.isfinite(mean)[:, np.newaxis], -1, index)
        if not np.isfinite(coef[index >= 0]).all():
            return cls._unknown(mean)
        combined = np.empty(0, dtype=np.intp)
        if index.shape[1] > 1:
            found = _one_term_each(index, coef, family)
            if found is None:
                return replace(
                    cls._unknown(mean), factor=_dense(mean, index, coef, family)
                )
            index, coef, combined = found
        draws, ratios = (
            (index[:, 0], coef[:, 0])
            if index.shape[1]
            else (np.full(n, -1), np.zeros(n))
        )
        noisy = np.flatnonzero(draws >= 0)
        distinct, first, inverse = np.unique(
            draws[noisy], return_index=True, return_inverse=True
        )
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        unit = np.full(n, -1, dtype=np.intp)
        unit[noisy] = rank[inverse.ravel()]
        draw = distinct[order]
        return cls(
            mean=mean,
            unit=unit,
            ratio=np.where(unit >= 0, ratios, 0.0),
            first=noisy[first[order]],
            draw=draw,
            family=family[draw].astype(np.intp),
            alone=~np.isin(draw, combined),
        )

    @classmethod
    def _unknown(cls, mean: Array) -> "Law":
        none = np.empty(0, dtype=np.intp)
        unit = np.full(len(mean), -1)
        alone = none.astype(bool)
        zero = np.zeros(len(mean))
        return cls(mean, unit, zero, none, none, none, alone, known=False)

    @property
    def followed(self) -> bool:
        """Whether the law is known in either form."""
        return self.known or self.factor is not None

    @property
    def scale(self) -> Array:
        """The scale of each unit at its first entry, shape (U,)."""
        return np.abs(self.ratio[self.first])

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Return independent values, shape (size, n)."""
        if self.factor is not None:
            normals = rng.standard_normal((size, self.factor.shape[1]))
            return np.asarray(self.mean + normals @ self.factor.T)
        shape = size, len(self.first)
        draws = np.select(
            [self.family == kind for kind in Family],
            [
                rng.standard_normal(shape),
                rng.laplace(size=shape),
                rng.standard_exponential(shape),
                rng.random(shape),
                rng.gumbel(size=shape),
                rng.logistic(size=shape),
            ],
        )
        padded = np.concatenate([draws, np.zeros((size, 1))], axis=1)
        return np.asarray(self.mean + self.ratio * padded[:, self.unit])


def _one_term_each(
    index: NDArray[np.intp], coef: Array, family: NDArray[np.intp]
) -> tuple[NDArray[np.intp], Array, NDArray[np.intp]] | None:
    """Return entries of one term each, None if that cannot be done.

    Terms of one draw are added up; of what is left, rows of several Gaussian draws that
    are multiples of each other are one variable, which goes by one of its draws: these
    draws come third.
    """
    m = index.shape[1]
    order = np.argsort(index, axis=1, kind="stable")
    index = np.take_along_axis(index, order, axis=1)
    coef = np.where(index >= 0, np.take_along_axis(coef, order, axis=1), 0.0)
    for column in range(m - 1, 0, -1):  # into the first of equal draws
        same = (index[:, column] == index[:, column - 1]) & (index[:, column] >= 0)
        coef[same, column - 1] += coef[same, column]
        index[same, column] = -1
    largest = np.abs(coef).max(axis=1, initial=0.0, keepdims=True)
    index = np.where(np.abs(coef) > 1e-14 * largest, index, -1)
    coef = np.where(index >= 0, coef, 0.0)
    order = np.argsort(-index, axis=1, kind="stable")
    index = np.take_along_axis(index, order, axis=1)
    coef = np.take_along_axis(coef, order, axis=1)
    width = int((index >= 0).sum(axis=1).max(initial=0))
    index, coef = index[:, :width], coef[:, :width]
    if width <= 1:
        return index, coef, np.empty(0, dtype=np.intp)
    norm = np.sqrt((coef**2).sum(axis=1))
    sign = np.where(coef[:, 0] < 0, -1.0, 1.0)
    with np.errstate(all="ignore"):
        shape = np.where(
            norm[:, np.newaxis] > 0, coef * (sign / norm)[:, np.newaxis], 0
        )
    keys = np.concatenate([index, np.round(shape, 12)], axis=1)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    rows = index[first]
    used = rows[rows >= 0]
    disjoint = len(np.unique(used)) == len(used)
    several = (rows >= 0).sum(axis=1) > 1
    parts = rows[several]
    gaussian = bool((family[parts[parts >= 0]] == Family.GAUSSIAN).all())
    if not (disjoint and gaussian):
        return None
    # A single term keeps its coefficient; a combination has the norm of its terms.
    lead = rows[inverse.ravel(), 0]
    return lead[:, np.newaxis], (sign * norm)[:, np.newaxis], rows[several, 0]


def _dense(
    mean: Array, index: NDArray[np.intp], coef: Array, family: NDArray[np.intp]
) -> Array | None:
    """Return the matrix of Gaussian terms, None if it is none, or a large one."""
    draws, column = np.unique(index[index >= 0], return_inverse=True)
    gaussian = bool((family[draws] == Family.GAUSSIAN).all())
    if not gaussian or len(mean) * len(draws) > _MOST_DENSE:
        return None
    if not np.isfinite(mean).all():
        return None
    factor = np.zeros((len(mean), len(draws)))
    rows = np.nonzero(index >= 0)[0]
    np.add.at(factor, (rows, column.ravel()), coef[index >= 0])
    return factor


def _whitened(law: Law, other: Law) -> "tuple[Law, Law, Array] | str | None":
    """Return two Gaussian laws of one covariance in coordinates that make it 1.

    The third is the matrix that leads there. A text says why they are singular; None
    that the covariances differ.
    """
    if law.factor is None or other.factor is None:
        return None
    covariances = [factor @ factor.T for factor in (law.factor, other.factor)]
    largest = np.abs(covariances[0]).max(initial=0.0)
    if np.abs(covariances[0] - covariances[1]).max(initial=0.0) > _SAME * largest:
        return None
    left, scales, _ = np.linalg.svd(law.factor, full_matrices=False)
    rank = int((scales > 1e-10 * scales.max(initial=0.0)).sum())
    basis = left[:, :rank]
    shift = law.mean - other.mean
    across = shift - basis @ (basis.T @ shift)
    size = np.abs(law.mean) + np.abs(other.mean)
    if np.abs(across).max(initial=0.0) > _SAME * max(1.0, size.max(initial=0.0)):
        return "a combination of numbers has no noise, and differs"
    into = basis / scales[:rank]
    units = np.arange(rank)
    ones = np.ones(rank)
    white = [
        Law(each.mean @ into, units, ones, units, units, 0 * units, ones < 0)
        for each in (law, other)
    ]
    return white[0], white[1], into


@dataclass(frozen=True, eq=False)
class Comparison:
    """How two laws of values with the same entries lie to each other.

    Parameters
    ----------
    singular : str or None
        Why they are mutually singular, if they are.
    entry : int
        Where that shows; or, if not, the entry of the largest distance.
    known : bool
        Whether the laws could be compared at all.
    shift : ndarray, shape (U,)
        The least distance of the first entries of the units: what rounding may have
        added is taken off.
    scale, other_scale : ndarray, shape (U,)
    family, other_family : ndarray of int, shape (U,)
    """

    singular: str | None
    entry: int
    known: bool
    shift: Array
    scale: Array
    other_scale: Array
    family: NDArray[np.intp]
    other_family: NDArray[np.intp]

    def part(self, units: NDArray[np.intp]) -> "Comparison":
        """Return the comparison of some of the units."""
        names = ("shift", "scale", "other_scale", "family", "other_family")
        return replace(self, **{name: getattr(self, name)[units] for name in names})

    @property
    def scales_differ(self) -> bool:
        """Whether some unit has another scale or family on the other side."""
        return not bool(np.all(self.alike))

    @property
    def alike(self) -> NDArray[np.bool_]:
        """Which units have one family and one scale on both sides."""
        return np.isclose(self.scale, self.other_scale, rtol=_SAME, atol=0) & (
            self.family == self.other_family
        )

    @property
    def supremum(self) -> float:
        """The supremum of the loss, the greater of the two ways round."""
        if self.singular or not self.known:
            return math.inf if self.singular else math.nan
        linear = np.isin(self.family, (Family.LAPLACE, Family.LOGISTIC))
        moved = self.shift != 0
        with np.errstate(all="ignore"):
            units = np.where(linear, np.abs(self.shift) / self.scale, np.inf)
        each = np.where(self.alike, np.where(moved, units, 0.0), np.inf)
        return float(each.sum())

    @property
    def mu(self) -> float | None:
        """The distance in standard deviations, if all that differs is Gaussian."""
        moved = (self.shift != 0) | ~self.alike
        if self.singular or not self.known or self.scales_differ:
            return None
        if not (self.family[moved] == Family.GAUSSIAN).all():
            return None
        return float(np.linalg.norm(self.shift[moved] / self.scale[moved]))

    @property
    def distances(self) -> tuple[float, float]:
        """The l1 and l2 distance of the inputs, over units."""
        return float(np.abs(self.shift).sum()), float(np.linalg.norm(self.shift))


def compare(law: Law, other: Law) -> Comparison:
    """Compare two laws of values with equally many entries."""
    if not (law.followed and other.followed):
        return _nothing(None, 0, known=False)
    if len(law.mean) != len(other.mean):
        return _nothing("there are more noisy numbers on one side", 0)
    if not (law.known and other.known):
        white = _whitened(law, other)
        if white is None or isinstance(white, str):
            return _nothing(white, 0, known=white is not None)
        return compare(white[0], white[1])
    x, x2 = law.mean, other.mean
    noisy, noisy2 = law.unit >= 0, other.unit >= 0
    if (noisy != noisy2).any():
        entry = int(np.argmax(noisy != noisy2))
        side = "D'" if noisy[entry] else "D"
        value = (x2 if noisy[entry] else x)[entry]
        return _nothing(
            f"a number has noise on one side, and is {value:g} on {side}", entry
        )
    alike = _equal(x, x2)
    constant = ~noisy & ~alike
    if constant.any():
        entry = int(np.argmax(constant))
        return _nothing(
            f"a number without noise is {x[entry]:g} on D and {x2[entry]:g} on D'",
            entry,
        )
    if not np.array_equal(law.unit, other.unit):
        if len(law.first) != len(other.first):
            where = int(np.argmax(law.unit != other.unit))
            return _nothing("fewer draws are behind as many numbers on one side", where)
        return _nothing(None, 0, known=False)
    entries = np.flatnonzero(noisy)
    lead = law.first[law.unit[entries]]
    entries, lead = entries[entries != lead], lead[entries != lead]
    slope, slope2 = (each.ratio[entries] / each.ratio[lead] for each in (law, other))
    line = x[entries] - slope * x[lead]
    line2 = x2[entries] - slope2 * x2[lead]
    rough = np.abs(x[entries]) + np.abs(x2[entries])
    rough = rough + np.abs(slope) * (np.abs(x[lead]) + np.abs(x2[lead]))
    off = (np.abs(line - line2) > _SAME * rough) | ~np.isclose(
        slope, slope2, rtol=_SAME, atol=0
    )
    if off.any():
        place = int(np.argmax(off))
        return _nothing(
            "numbers that share one draw of noise differ by "
            f"{line[place]:g} on D and by {line2[place]:g} on D'",
            int(entries[place]),
        )
    with np.errstate(all="ignore"):
        rough = 1e-12 * np.maximum(np.abs(x), np.abs(x2))
        shift = np.where(alike, 0.0, np.maximum(np.abs(x - x2) - rough, 0.0))[law.first]
    entry = int(law.first[np.argmax(np.abs(shift))]) if len(shift) else 0
    return Comparison(
        None,
        entry,
        True,
        shift,
        law.scale,
        other.scale,
        law.family,
        other.family,
    )


def loss(law: Law, other: Law, value: Array) -> float:
    """Return log p(value)/q(value) for a value that was drawn from one of the laws.

    Infinite where they are singular, NaN where they are not known.
    """
    compared = compare(law, other)
    if compared.singular or not compared.known:
        return math.inf if compared.singular else math.nan
    return float(losses(law, other, value))


def losses(law: Law, other: Law, values: Array) -> Array:
    """Return the losses of values, shape (..., n), where both laws have a density."""
    white = None if law.known else _whitened(law, other)
    if isinstance(white, tuple):
        law, other, values = white[0], white[1], values @ white[2]
    logs = []
    with np.errstate(all="ignore"):
        for each in (law, other):
            ratio = each.ratio[each.first]
            u = (values[..., each.first] - each.mean[each.first]) / ratio
            logs.append(log_density(each.family, u) - np.log(np.abs(ratio)))
        return np.asarray((logs[0] - logs[1]).sum(axis=-1))


def _equal(x: Array, x2: Array) -> NDArray[np.bool_]:
    """Say where two numbers are one, up to rounding; NaN equals NaN."""
    with np.errstate(all="ignore"):
        near = np.abs(x - x2) <= _SAME * 1e-3 * np.maximum(np.abs(x), np.abs(x2))
    return np.asarray((x == x2) | near | (np.isnan(x) & np.isnan(x2)))


def _nothing(reason: str | None, entry: int, *, known: bool = True) -> Comparison:
    none, kinds = np.empty(0), np.empty(0, dtype=np.intp)
    return Comparison(reason, entry, known, none, none, none, kinds, kinds)
