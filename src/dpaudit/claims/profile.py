"""A privacy profile known at finitely many points, from an accountant for example."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.arrays import Array
from dpaudit.claims.polygons import SMALLEST, Claim, lines_tpr, polygon_delta
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.validation import check_fraction, check_nonnegative, check_positive

__all__ = ["NO_LOSS", "Profile"]

LARGEST_DELTA = 1 - np.finfo(np.float64).epsneg
"""What a delta that rounds to 1 is stored as."""

_MAX_KNOT = 700.0  # so that e^epsilon is a float
_MAX_POINTS = 100_000


class Profile(Claim):
    """A privacy profile known at finitely many points: delta(epsilons[i]) <= deltas[i].

    Between the points the claim is what they imply together: the support function of
    the polygon {p - e^epsilons[i] q <= deltas[i]} and its mirror images, which is the
    lower convex hull of the points over e^epsilon. Points above the hull are implied
    by the others and change nothing.

    Parameters
    ----------
    epsilons : sequence of float
        Strictly increasing, in [0, 700]; at most 100,000 of them.
    deltas : sequence of float
        In [0, 1), non-increasing, one per epsilon.

    Examples
    --------
    >>> from dpaudit.claims import ApproxDP
    >>> claim = Profile(epsilons=(1.0,), deltas=(1e-5,))
    >>> bool(np.isclose(claim.delta_at(0.5), ApproxDP(1.0, 1e-5).delta_at(0.5)))
    True
    """

    def __init__(self, epsilons: ArrayLike, deltas: ArrayLike) -> None:
        knots = tuple(check_nonnegative("epsilons", e) for e in _listed(epsilons))
        values = tuple(
            check_fraction("deltas", d, allow_zero=True) for d in _listed(deltas)
        )
        if not knots or len(knots) != len(values):
            raise InputError(
                "epsilons and deltas must be non-empty and of equal length, "
                f"got lengths {len(knots)} and {len(values)}"
            )
        for low, high in pairwise(knots):
            if low >= high:
                raise InputError(
                    f"epsilons must be strictly increasing, got {high} after {low}"
                )
        for high, low in pairwise(values):
            if low > high:
                raise InputError(
                    f"deltas must be non-increasing, got {low} after {high}"
                )
        if knots[-1] > _MAX_KNOT:
            raise InputError(f"epsilons must be at most {_MAX_KNOT:g}, got {knots[-1]}")
        super().__init__(epsilons=knots, deltas=values)
        slopes = np.concatenate([-np.array(knots[::-1]), np.array(knots)])
        # Not as 1 - e^-knot (1 - delta), in which a small delta would be lost.
        images = polygon_delta(slopes[: len(knots)], knots[::-1], values[::-1])
        self._slopes, self._deltas = _lower_hull(
            slopes, np.concatenate([images, np.array(values)])
        )

    @classmethod
    def from_pld(
        cls, pld: Any, *, max_epsilon: float = 30.0, points: int = 1001
    ) -> "Profile":
        """Tabulate a privacy loss distribution of ``dp_accounting.pld``.

        Parameters
        ----------
        pld : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
            A pessimistic one, so that its deltas are upper bounds.
        max_epsilon : float
            The largest epsilon tabulated; beyond it the claim is that of the last
            point.
        points : int
            The number of points, from 0 to `max_epsilon`.
        """
        epsilons = np.linspace(0.0, check_positive("max_epsilon", max_epsilon), points)
        deltas = np.asarray(pld.get_delta_for_epsilon(epsilons), dtype=np.float64)
        deltas = np.clip(deltas, 0.0, LARGEST_DELTA)
        return cls(epsilons, np.minimum.accumulate(deltas))

    def delta_at(self, epsilon: ArrayLike) -> Array:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        ratios = np.exp(self._slopes)
        with np.errstate(over="ignore", under="ignore"):
            inner = np.interp(np.exp(epsilon), ratios, self._deltas)
            outer = polygon_delta(epsilon, -self._slopes[0], self._deltas[-1])
        return np.where(epsilon >= self._slopes[0], inner, outer)

    def epsilon_at(self, delta: float) -> float:
        delta = check_fraction("delta", delta, allow_zero=True)
        if delta < self._deltas[-1]:
            return float("inf")
        after = int((self._deltas > delta).sum())
        if not after:
            return 0.0
        # By shares: ratios over differences of deltas would overflow.
        high, low = self._deltas[after - 1 : after + 1]
        share = (delta - low) / (high - low)
        near, far = np.exp(self._slopes[after - 1 : after + 1])
        return max(0.0, float(np.log(share * near + (1 - share) * far)))

    def tpr(self, fpr: ArrayLike) -> Array:
        # The points as given: mirroring the mirror images would lose all digits.
        return lines_tpr(
            fpr,
            np.array(self.parameters["epsilons"]),
            np.array(self.parameters["deltas"]),
        )


def _listed(values: ArrayLike) -> NDArray[Any]:
    listed = np.asarray(values)
    if listed.size > _MAX_POINTS:
        raise InputError(
            f"epsilons and deltas must have at most {_MAX_POINTS:,} entries, got "
            f"{listed.size:,}"
        )
    return listed.ravel()


def _lower_hull(slopes: Array, deltas: Array) -> tuple[Array, Array]:
    """Keep the vertices of the lower convex hull of the points (e^slope, delta)."""
    kept: list[tuple[float, float, float]] = []
    for slope, delta in zip(slopes.tolist(), deltas.tolist(), strict=True):
        ratio = float(np.exp(slope))
        if kept and ratio == kept[-1][0]:
            continue  # epsilon = 0 is its own mirror image
        while len(kept) >= 2:
            (r0, d0, _), (r1, d1, _) = kept[-2:]
            if (d1 - d0) * (ratio - r0) < (delta - d0) * (r1 - r0):
                break
            kept.pop()
        kept.append((ratio, delta, slope))
    # A final level stretch carries no more than its first point.
    while len(kept) >= 2 and kept[-1][1] >= kept[-2][1]:
        kept.pop()
    hull = np.array(kept)
    return hull[:, 2], hull[:, 1]


NO_LOSS = Profile(epsilons=(0.0,), deltas=(0.0,))
"""What is exactly true of neighbours whose output laws are the same."""


def lost(kind: Callable[[float], Claim], amount: float) -> Claim:
    """Return the claim of a kind for what a pair loses, or NO_LOSS for nothing."""
    if amount == 0:
        return NO_LOSS
    try:
        return kind(max(amount, SMALLEST))
    except InputError as error:
        raise UnsupportedError(f"no claim says what the pair loses: {error}") from None
