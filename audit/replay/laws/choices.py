r"""Choices: primitives whose output is one of finitely many outcomes.

`ChoiceLaw` is the law of independent choices, `NamedChoiceLaw` of those among outcomes
that have names. A mechanism makes them by
``rng.choice(k, p=p)`` (the exponential mechanism, randomised response), or as the place
of the largest of noisy numbers, `noisy_maximum`: then the noisy numbers themselves are
not seen, and the whole is one choice.

**Noisy maxima.** Let the numbers be x_i + b Z_i with independent Z_i, and P_i the
probability that the i-th is the largest.

- Z_i standard Gumbel: P_i is proportional to e^(x_i/b), by the well-known identity.
- Z_i standard exponential. The largest is at least max x, so with
  a_i = e^((x_i - max x)/b) and s = e^(-(t - max x)/b) for the largest number t,
  P_i = a_i int_0^1 prod_{j != i} (1 - a_j s) ds: a polynomial, which Gauss-Legendre
  nodes integrate exactly. (So permute-and-flip, which has the same law: Ding et al.,
  *The permute-and-flip mechanism is identical to report-noisy-max with exponential
  noise*, 2021.)
- Z_i standard Laplace: P_i = int f(t - x_i) prod_{j != i} F(t - x_j) dt. Between two
  neighbouring x_j all factors are analytic; beyond the least and the greatest they are
  polynomials in e^t and e^(-t). So Gauss-Legendre nodes do on each piece, cut to length
  b, what they do for polynomials. From 45 b above the second greatest to 45 b below the
  greatest, if that is so far ahead, the integrand is e^(x_i/b)/4 for all others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.coded import Family
from dpaudit.audit.replay.laws.comparison import LawComparison
from dpaudit.errors import InputError
from dpaudit.printable import ADDRESS

__all__ = ["ROUNDING", "ChoiceLaw", "least_losses", "nodes_between", "noisy_maximum"]

MOST_CANDIDATES = 1000  # of a noisy maximum
_TAIL, _DEGREE = 45.0, 24  # e^-45 is beyond the precision of numbers
ROUNDING = 1e-12  # of probabilities that the code under audit computed
_SIZEABLE = 1e-9  # beside which 0 is no rounding


@dataclass(frozen=True, eq=False)
class ChoiceLaw:
    """The law of c independent choices among k outcomes each.

    Parameters
    ----------
    log : ndarray, shape (c, k)
        Logarithms of probabilities, each row of which adds up to 1. Of choices that
        have the same it is one row, broadcast: a batch has as many flips as rows.
    kind : str
        What makes the choice, for people.
    error : float
        By how much each probability may be off.
    """

    log: Array
    kind: str = "choice"
    error: float = 0.0

    @classmethod
    def of(cls, p: Array, count: int = 1, kind: str = "choice") -> "ChoiceLaw":
        """Return `count` choices with probabilities p, shape (k,)."""
        with np.errstate(divide="ignore"):
            log = np.log(np.asarray(p, dtype=np.float64))
        return cls(np.broadcast_to(log, (count, len(log))), kind, ROUNDING)

    @classmethod
    def flips(cls, p: Array, count: int) -> "ChoiceLaw":
        """Return flips that turn out as 1, not 0, with probabilities p, shape (c,).

        If c is 1, they all have one.
        """
        if len(p) > 1 and (p == p[0]).all():
            p = p[:1]
        with np.errstate(divide="ignore"):
            log = np.log(np.stack([1 - p, p], axis=-1))
        return cls(np.broadcast_to(log, (count, 2)), "flip", ROUNDING)

    @property
    def outcomes(self) -> int:
        """The number k of outcomes."""
        return int(self.log.shape[1])

    @property
    def alike(self) -> bool:
        """Whether all choices have the same probabilities, kept as one row."""
        return len(self.log) == 1 or (len(self.log) > 1 and not self.log.strides[0])

    def without(self, place: int) -> "ChoiceLaw":
        """Return the law of all choices but one."""
        if self.alike:
            log = np.broadcast_to(self.log[0], (len(self.log) - 1, self.outcomes))
        else:
            log = np.delete(self.log, place, axis=0)
        return ChoiceLaw(log, self.kind, self.error)

    def log_probability(self, value: Array) -> float:
        """Return the log-probability of c outcomes; -inf where one is impossible."""
        places = np.asarray(value).ravel()
        if places.size and not (0 <= places.min() and places.max() < self.outcomes):
            return -math.inf
        if self.alike and places.size > 1:
            if self.outcomes == 2:
                ones = np.count_nonzero(places)
                counts = np.array([places.size - ones, ones])
            else:
                counts = np.bincount(places.astype(np.intp), minlength=self.outcomes)
            taken = counts > 0
            return float(counts[taken] @ self.log[0, taken])
        return float(self.log[np.arange(len(places)), places.astype(np.intp)].sum())

    def loss(self, other: "ChoiceLaw", value: Array) -> float:
        """Return the loss of c outcomes."""
        return self.log_probability(value) - other.log_probability(value)

    def compared(self, other: "ChoiceLaw") -> LawComparison:
        """Compare two laws of choices, as one unit."""
        return LawComparison.of_unit(Family.CHOICE, self.supremum(other))

    def supremum(self, other: "ChoiceLaw") -> float:
        """Return the supremum of the loss, the greater of the two ways round."""
        if len(self.log) != len(other.log):
            return math.inf
        first, second, count = self.log, other.log, 1
        if self.alike and other.alike:
            first, second, count = first[:1], second[:1], len(first)
            if np.array_equal(first, second):
                return 0.0
        k = max(self.outcomes, other.outcomes)
        if self.outcomes != other.outcomes:
            first, second = (
                np.pad(log, ((0, 0), (0, k - log.shape[1])), constant_values=-np.inf)
                for log in (first, second)
            )
        # Of equal rows every loss is 0.
        differ = (first != second).any(axis=1)
        first, second = first[differ], second[differ]
        error = max(self.error, other.error)
        if error:
            p, q = np.exp(first), np.exp(second)
            gaps = least_losses(p, np.full_like(p, error), q, np.full_like(q, error))
        else:
            with np.errstate(invalid="ignore"):
                gaps = np.where(first == second, 0.0, first - second)
        # What rounding may have added to a probability is taken off.
        ends = gaps.max(axis=1, initial=0.0), -gaps.min(axis=1, initial=0.0)
        return max(max(0.0, count * float(end.sum()) - 1e-12) for end in ends)


@dataclass(frozen=True, eq=False)
class NamedChoiceLaw(ChoiceLaw):
    """Choices among outcomes that have names.

    Parameters
    ----------
    names : tuple
        Of the k outcomes. Outcomes of one name on D and on D' are the same.
    """

    names: tuple[Any, ...] = ()
    keys: tuple[Any, ...] = field(init=False, repr=False, default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(map(_key, self.names)))

    @classmethod
    def among(
        cls, log: Array, names: Sequence[Any], kind: str, error: float = 0.0
    ) -> "NamedChoiceLaw":
        """Return choices; log, shape (c, k). Outcomes of one name are one outcome."""
        made = cls(log, kind, error, tuple(names))
        if len(made.names) != log.shape[1]:
            raise InputError(
                f"there must be as many candidates as scores, got {len(made.names)} "
                f"and {log.shape[1]}"
            )
        # In one order, if the candidates have different ones on D and on D'.
        keys = sorted(set(made.keys), key=repr)
        joined = np.full((len(log), len(keys)), -np.inf)
        columns = {key: column for column, key in enumerate(keys)}
        for place, key in enumerate(made.keys):
            column = columns[key]
            joined[:, column] = np.logaddexp(joined[:, column], log[:, place])
        named = tuple(made.names[made.keys.index(k)] for k in keys)
        return cls(joined, kind, error, named)

    def places(self, output: Any) -> tuple[NDArray[np.intp], tuple[int, ...]]:
        """Return which outcomes these are, shape (c,), and the shape that they have.

        Raises
        ------
        LookupError
            If there are no such outcomes, or not so many.
        """
        columns = {key: place for place, key in enumerate(self.keys)}
        if len(self.log) == 1 and _key(output) in columns:
            return np.array([columns[_key(output)]]), ()
        several = np.asarray(output)
        found = [columns[_key(each)] for each in several.ravel()]
        if len(found) != len(self.log):
            raise LookupError
        return np.array(found, dtype=np.intp), several.shape

    def loss(self, other: ChoiceLaw, value: Array) -> float:
        """Return the loss of c outcomes."""
        assert isinstance(other, NamedChoiceLaw)
        keys = [self.keys[int(place)] for place in value]
        if any(key not in other.keys for key in keys):
            return math.inf
        there = np.array([other.keys.index(key) for key in keys], dtype=np.intp)
        found = other.log_probability(there.astype(np.float64))
        return self.log_probability(value) - found

    def supremum(self, other: ChoiceLaw) -> float:
        """Return the supremum of the loss, the greater of the two ways round."""
        assert isinstance(other, NamedChoiceLaw)
        if self.keys == other.keys:
            return super().supremum(other)
        keys, wide = list(dict.fromkeys((*self.keys, *other.keys))), []
        for each in (self, other):
            log = np.full((len(each.log), len(keys)), -np.inf)
            log[:, [keys.index(key) for key in each.keys]] = each.log
            wide.append(ChoiceLaw(log, error=each.error))
        return wide[0].supremum(wide[1])


def _key(name: Any) -> Any:
    """Return what an outcome goes by: equal numbers are one outcome.

    Raises
    ------
    InputError
        If it goes by where it lies in memory, which is elsewhere on the other dataset.
    """
    if isinstance(name, np.ndarray):
        return name.shape, name.tobytes()
    if isinstance(name, np.generic):
        name = name.item()
    if isinstance(name, bool | int | float):
        return float(name)
    text = repr(name)
    if not isinstance(name, str | bytes) and ADDRESS.search(text):
        raise InputError(
            f"outcomes must have a repr that says which is which, got {text}"
        )
    return text


def least_losses(p: Array, off: Array, q: Array, off_there: Array) -> Array:
    """Return the least |log p/q| of probabilities that may be off, with its sign."""
    with np.errstate(all="ignore"):
        above = np.log(np.maximum(p - off, 0)) - np.log(q + off_there)
        below = np.log(p + off) - np.log(np.maximum(q - off_there, 0))
    least = np.where(above > 0, above, np.where(below < 0, below, 0.0))
    least = np.where((q == 0) & (p > _SIZEABLE), np.inf, least)
    return np.asarray(np.where((p == 0) & (q > _SIZEABLE), -np.inf, least))


def noisy_maximum(mean: Array, scale: float, family: int) -> Array | None:
    """Return the log-probabilities that each noisy number is the largest.

    Parameters
    ----------
    mean : ndarray, shape (k,)
        Finite.
    scale : float
        b > 0.
    family : Family
        Of the noise, which is added.

    Returns
    -------
    ndarray, shape (k,), or None
        None for families, and for so many numbers, that nothing is known of.

    Examples
    --------
    >>> np.exp(noisy_maximum(np.array([0.0, 1.0]), 1.0, Family.GUMBEL)).round(4)
    array([0.2689, 0.7311])
    """
    if len(mean) > MOST_CANDIDATES:
        return None
    with np.errstate(over="ignore"):
        x = np.maximum((mean - mean.max()) / scale, -1e300)
    if family == Family.GUMBEL:
        return np.asarray(log_softmax(x))
    if family == Family.EXPONENTIAL:
        nodes, weights = np.polynomial.legendre.leggauss(len(x) // 2 + 1)
        others = _products_of_others(1 - np.exp(x) * (nodes[:, np.newaxis] + 1) / 2)
        return np.asarray(x + np.log(others.T @ (weights / 2)))
    if family == Family.LAPLACE:
        second = float(np.sort(x)[-2:][0])
        gap = -2 * _TAIL - second
        reach = [second - _TAIL, second + _TAIL, -_TAIL, _TAIL]
        ends = [reach[:2], reach[2:]] if gap > 0 else [reach[::3]]
        pieces = [_nodes_around(np.unique(x), *each) for each in ends]
        t, weights = (
            np.concatenate(each)[:, np.newaxis] for each in zip(*pieces, strict=True)
        )
        density = -np.abs(t - x) - math.log(2)
        under = np.where(t < x, density, np.log1p(-np.exp(density)))
        under = under.sum(axis=1, keepdims=True) - under
        log = np.asarray(logsumexp(density + under, axis=0, b=weights))
        if gap > 0:
            log = np.where(x < 0, np.logaddexp(log, x + math.log(gap / 4)), log)
        return log
    return None


def _products_of_others(factors: Array) -> Array:
    """Return the products along rows with each entry left out in turn."""
    ones = np.ones((len(factors), 1))
    left = np.cumprod(np.hstack([ones, factors[:, :-1]]), axis=1)
    right = np.cumprod(np.hstack([ones, factors[:, :0:-1]]), axis=1)[:, ::-1]
    return np.asarray(left * right)


def _nodes_around(means: Array, low: float, high: float) -> tuple[Array, Array]:
    """Return nodes and weights on pieces from low to high that no mean lies within."""
    ends = np.array([low, *means[(means > low) & (means < high)], high])
    cuts = [
        np.linspace(low, high, 2 + int(high - low))[:-1] for low, high in pairwise(ends)
    ]
    return nodes_between(np.concatenate([*cuts, ends[-1:]]))


def nodes_between(ends: Array) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes, and weights, on the pieces between some ends."""
    nodes, weights = np.polynomial.legendre.leggauss(_DEGREE)
    middle, half = (ends[1:] + ends[:-1]) / 2, (ends[1:] - ends[:-1]) / 2
    t = middle[:, np.newaxis] + half[:, np.newaxis] * nodes
    return t.ravel(), (half[:, np.newaxis] * weights).ravel()
