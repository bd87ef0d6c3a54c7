"""Nested families of null hypotheses, for verdicts and for lower bounds.

A family is a grid of claims that grow with one parameter: (epsilon, delta)-DP in
epsilon at fixed delta, in delta at fixed epsilon, mu-GDP in mu; or a single claim. It
says for any event which half-planes to hold it to.

The lower bound is the largest grid value all of whose smaller ones, itself included,
are rejected. It exceeds the true parameter with probability at most alpha: for that,
the smallest grid value at or above the truth would have to be rejected, and that single
null is true. The grid is fixed before the audit, so nothing else has to be corrected.

The verdict is read off the same bound: a claim on the grid is refuted if the bound
reaches it, so if all nulls up to the claim itself are rejected. Both are one statement
with one error. Whatever the truth, let g be the smallest grid value at or above it; the
bound passes the truth, and a true claim is refuted, only if g is rejected, and that has
probability at most alpha.

To reject the claim as soon as its own null is rejected would be a valid test, too, but
not beside this bound. Raised to the claim by such a verdict, the bound would be wrong
if either g or the claim's null, two true nulls, were rejected, and their bets may win
on disjoint events: the error would be that of two tests. Little is lost: as bets
against smaller nulls grow faster, the claim's null is nearly always the last to fall.
"""

import math
from abc import ABC, abstractmethod
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpaudit.arrays import Array
from dpaudit.claims import ApproxDP, Claim, GaussianDP, PureDP, polygon_delta
from dpaudit.errors import InputError
from dpaudit.gaussian import gaussian_delta, gaussian_epsilon

__all__ = ["NullFamily", "Polygons", "families_for", "verdict_family"]

_STEP = 0.001  # relative resolution of the grids in epsilon and mu
_SMALL, _LARGE = 0.05, 40.0
_LARGEST = 500.0  # e^500 is the order of the largest ratios handled


class NullFamily(ABC):
    """Nested nulls.

    Parameters
    ----------
    parameter : ndarray, shape (G,)
        Increasing.
    claimed : int or None
        Where in the grid the claim itself is.
    """

    def __init__(self, parameter: Array, claimed: int | None) -> None:
        self.parameter = parameter
        self.claimed = claimed

    def __len__(self) -> int:
        return len(self.parameter)

    @abstractmethod
    def half_planes(
        self, nulls: NDArray[np.intp], p: Array, q: Array
    ) -> tuple[Array, Array]:
        """Return the half-planes that hold events of p >= q to each null.

        Parameters
        ----------
        nulls : ndarray of int, shape (M,)
        p, q : ndarray, shape (T,) or (M, T)
            Estimated probabilities; where the half-planes should be tight.

        Returns
        -------
        log_ratio, delta : ndarray, shape (M, T, C)
            Every null implies p' - e^log_ratio q' <= delta for the true p' and q' of
            every event, whatever the estimates.
        """

    def shown_epsilon(self, p: float, q: float, delta: float) -> float:
        """Return how bad an event of p >= q outside the one null is, as an epsilon.

        Comparable with what the null, a claim, allows at the same delta, and larger.

        Parameters
        ----------
        p, q : float
        delta : float
            Where epsilon is meant; that of (epsilon, delta)-DP itself.
        """
        return _event_epsilon(p, q, delta)

    @abstractmethod
    def only(self, null: int) -> "NullFamily":
        """Return the family of one null, which counts as the claim."""

    def claim_only(self) -> "NullFamily":
        """Return the family of the claim alone."""
        if self.claimed is None:
            raise ValueError("the claim is not in this family")
        return self.only(self.claimed)


class Polygons(NullFamily):
    """(epsilon, delta)-DP; either may be the parameter.

    Both sides of the polygon hold every event: slope e^epsilon near the origin, slope
    e^-epsilon near (1, 1); where they meet, two-valued mechanisms live.
    """

    def __init__(
        self, parameter: Array, claimed: int | None, epsilon: Array, delta: Array
    ) -> None:
        super().__init__(parameter, claimed)
        self._nulls = epsilon, delta
        self._log_ratio = np.stack([epsilon, -epsilon], axis=1)
        self._delta = polygon_delta(
            self._log_ratio, epsilon[:, np.newaxis], delta[:, np.newaxis]
        )

    def half_planes(
        self, nulls: NDArray[np.intp], p: Array, q: Array
    ) -> tuple[Array, Array]:
        shape = (len(nulls), p.shape[-1], 2)
        return (
            np.broadcast_to(self._log_ratio[nulls, np.newaxis], shape),
            np.broadcast_to(self._delta[nulls, np.newaxis], shape),
        )

    @staticmethod
    @lru_cache(maxsize=16)
    def side_by_side(*families: "Polygons") -> "Polygons":
        """Return the nulls of several families, of which none counts as the claim."""
        grids = ((each.parameter, *each._nulls) for each in families)
        columns = zip(*grids, strict=True)
        parameter, epsilon, delta = map(np.concatenate, columns)
        return Polygons(parameter, None, epsilon, delta)

    def only(self, null: int) -> "Polygons":
        parts = (x[null : null + 1] for x in (self.parameter, *self._nulls))
        parameter, epsilon, delta = parts
        return Polygons(parameter, 0, epsilon, delta)


class GaussianNulls(NullFamily):
    """mu-GDP for a grid of mu: every event is held to one tangent of the curve."""

    def half_planes(
        self, nulls: NDArray[np.intp], p: Array, q: Array
    ) -> tuple[Array, Array]:
        mu = self.parameter[nulls][:, np.newaxis]
        # In the Gaussian pair N(mu, 1) and N(0, 1) the event is {x >= threshold}: the
        # tangent is taken half way between the thresholds that p and q suggest.
        threshold = (mu - ndtri(p) - ndtri(q)) / 2
        log_ratio = (mu * threshold - mu**2 / 2)[..., np.newaxis]
        return log_ratio, gaussian_delta(log_ratio, mu[..., np.newaxis])

    def shown_epsilon(self, p: float, q: float, delta: float) -> float:
        """Return the epsilon of the smallest Gaussian claim that allows the event.

        At one delta the event itself may show much less: a Gaussian claim is broken
        as well by events that a claim at this delta would allow.
        """
        return gaussian_epsilon(delta, float(ndtri(p) - ndtri(q)))

    def only(self, null: int) -> "GaussianNulls":
        return GaussianNulls(self.parameter[null : null + 1], 0)


class ProfileNull(NullFamily):
    """One claim, known by its privacy profile on a grid of slopes."""

    def __init__(self, claim: Claim) -> None:
        super().__init__(np.array([1.0]), 0)
        self._claim = claim
        levels = (1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9)
        # Slopes beyond the first finite epsilon would tell nothing new.
        reach = next((e for d in levels if np.isfinite(e := claim.epsilon_at(d))), 0.0)
        self._log_ratio = np.linspace(-1.0, 1.0, 129) * max(reach, 1e-3)
        self._delta = claim.delta_at(self._log_ratio)

    def half_planes(
        self, nulls: NDArray[np.intp], p: Array, q: Array
    ) -> tuple[Array, Array]:
        # The tightest slope in standard errors, and its neighbours.
        unit = np.exp(-np.maximum(self._log_ratio, 0.0))
        ratio = np.exp(np.minimum(self._log_ratio, 0.0))
        p, q = p[..., np.newaxis], q[..., np.newaxis]
        excess = unit * (p - self._delta) - ratio * q
        variance = unit**2 * p * (1 - p) + ratio**2 * q * (1 - q)
        tight = np.argmax(excess / np.sqrt(variance), axis=-1)
        near = np.clip(tight[..., np.newaxis] + [0, -1, 1], 0, len(ratio) - 1)
        shape = (len(nulls), *near.shape[-2:])
        return (
            np.broadcast_to(self._log_ratio[near], shape),
            np.broadcast_to(self._delta[near], shape),
        )

    def shown_epsilon(self, p: float, q: float, delta: float) -> float:
        """Return the epsilon that the event shows, or the claim's if that is larger.

        A curve may be broken by an event that shows less at this delta than the claim
        allows there. Whatever shows more on this event is further outside the claim.
        """
        return max(_event_epsilon(p, q, delta), self._claim.epsilon_at(delta))

    def only(self, null: int) -> "ProfileNull":
        return self


def _epsilon_family(epsilon: float, delta: float, *, claimed: bool) -> NullFamily:
    """Nulls (e, delta)-DP for e around `epsilon`, which is on the grid."""
    grid, centre = _geometric_grid(epsilon)
    return Polygons(grid, centre if claimed else None, grid, np.full_like(grid, delta))


def _delta_family(epsilon: float, delta: float, *, claimed: bool) -> NullFamily:
    """Nulls (epsilon, d)-DP for d from 0, and from `delta`, which is on the grid."""
    rising = np.concatenate([np.geomspace(1e-9, 0.05, 300), np.linspace(0.05, 1, 400)])
    grid = np.unique(np.concatenate([[0.0, delta], rising[:-1]]))
    claim = int(np.searchsorted(grid, delta)) if claimed else None
    return Polygons(grid, claim, np.full_like(grid, epsilon), grid)


def verdict_family(claim: Claim) -> NullFamily:
    """Return the family that holds the claim itself and decides the verdict."""
    if isinstance(claim, PureDP | ApproxDP):
        epsilon, delta = claim.parameters["epsilon"], claim.parameters.get("delta", 0.0)
        return _epsilon_family(epsilon, delta, claimed=True)
    if isinstance(claim, GaussianDP):
        return GaussianNulls(*_geometric_grid(claim.parameters["mu"]))
    return ProfileNull(claim)


def families_for(claim: Claim, delta: float, epsilon: float) -> dict[str, NullFamily]:
    """Return the families of an audit, the one that decides the verdict first.

    Parameters
    ----------
    claim : Claim
    delta, epsilon : float
        Where ``epsilon_lower`` and ``delta_lower`` are asked for; the claim's own
        where it has them.
    """
    verdict = verdict_family(claim)
    if isinstance(claim, PureDP | ApproxDP):
        return {
            "epsilon": verdict,
            "delta": _delta_family(epsilon, delta, claimed=True),
        }
    return {
        "mu" if isinstance(claim, GaussianDP) else "claim": verdict,
        "epsilon": _epsilon_family(epsilon, delta, claimed=False),
        "delta": _delta_family(epsilon, delta, claimed=False),
    }


def _event_epsilon(p: float, q: float, delta: float) -> float:
    """Return the epsilon at `delta` that an event or its complement shows; p >= q.

    Examples
    --------
    >>> round(_event_epsilon(0.5, 0.1, 0.0), 4)
    1.6094
    """
    event = (p - delta) / q
    complement = math.inf if p >= 1 else (1 - q - delta) / (1 - p)
    return math.log(max(event, complement, 1.0))


def _geometric_grid(centre: float) -> tuple[Array, int]:
    """Return a grid around a centre, and the place of the centre.

    From centre/20, or lower where that is not small, to 20 times the centre, or higher
    where that is not large.
    """
    if centre > _LARGEST:
        raise InputError(
            f"claims beyond {_LARGEST:g} cannot be audited in double precision, "
            f"got {centre:g}"
        )
    down = int(np.log(max(20.0, centre / _SMALL)) / _STEP)
    up = int(np.log(max(20.0, _LARGE / centre)) / _STEP)
    grid = centre * np.exp(_STEP * np.arange(-down, up + 1))
    return grid[grid <= _LARGEST], down
