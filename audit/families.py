"""Nested families of null hypotheses, for verdicts and for lower bounds.

A family is a grid of claims that grow with one parameter: (epsilon, delta)-DP in
epsilon at fixed delta, in delta at fixed epsilon, mu-GDP in mu. Each null is stored as
a few of the half-planes that contain it (see `dpaudit.audit.evidence`): p - R q <= d
for slopes R = e^epsilon' with d the null's own privacy profile at epsilon'.

The lower bound is the largest grid value all of whose smaller ones, itself included,
are rejected. It exceeds the true parameter with probability at most alpha: for that,
the smallest grid value at or above the truth would have to be rejected, and that single
null is true. The grid is fixed before the audit, so nothing else has to be corrected.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import ApproxDP, Claim, GaussianDP, PureDP, polygon_delta
from dpaudit.errors import InputError
from dpaudit.gaussian import gaussian_delta

__all__ = [
    "NullFamily",
    "delta_family",
    "epsilon_family",
    "mu_family",
    "single_null",
]

Array = NDArray[np.float64]

# Slopes as shares of a null's epsilon. The extreme ones are the sides of the polygon;
# the inner ones touch its corner, where two-valued mechanisms live.
_SHARES = np.array([1.0, 0.9, 0.7, 0.4, 0.0, -0.4, -0.7, -0.9, -1.0])
_STEP = 0.005  # relative resolution of the grids in epsilon and mu
_SMALL = 0.05
_LARGEST = 500.0  # e^500 is the order of the largest ratios handled


@dataclass(frozen=True)
class NullFamily:
    """Nested nulls with half-planes.

    Parameters
    ----------
    parameter : ndarray, shape (G,)
        Increasing.
    log_ratio, delta : ndarray, shape (G, S)
        Half-planes p - e^log_ratio q <= delta that contain each null.
    claimed : int or None
        Where in the grid the claim itself is.
    """

    parameter: Array
    log_ratio: Array
    delta: Array
    claimed: int | None

    def __len__(self) -> int:
        return len(self.parameter)

    def claim_only(self) -> "NullFamily":
        """Return the family of the claim alone."""
        if self.claimed is None:
            raise ValueError("the claim is not in this family")
        only = slice(self.claimed, self.claimed + 1)
        return NullFamily(
            self.parameter[only], self.log_ratio[only], self.delta[only], 0
        )


def epsilon_family(epsilon: float, delta: float, *, claimed: bool) -> NullFamily:
    """Nulls (e, delta)-DP for e around `epsilon`, which is on the grid."""
    grid, centre = _geometric_grid(epsilon)
    log_ratio = grid[:, np.newaxis] * _SHARES
    return NullFamily(
        grid,
        log_ratio,
        polygon_delta(log_ratio, grid[:, np.newaxis], delta),
        centre if claimed else None,
    )


def delta_family(epsilon: float, delta: float, *, claimed: bool) -> NullFamily:
    """Nulls (epsilon, d)-DP for d from 0, and from `delta`, which is on the grid."""
    rising = np.concatenate([np.geomspace(1e-9, 0.05, 300), np.linspace(0.05, 1, 400)])
    grid = np.unique(np.concatenate([[0.0, delta], rising[:-1]]))
    log_ratio = np.broadcast_to(epsilon * _SHARES, (len(grid), len(_SHARES)))
    return NullFamily(
        grid,
        log_ratio,
        polygon_delta(log_ratio, epsilon, grid[:, np.newaxis]),
        int(np.searchsorted(grid, delta)) if claimed else None,
    )


def mu_family(mu: float) -> NullFamily:
    """Nulls m-GDP for m around `mu`, which is on the grid."""
    grid, centre = _geometric_grid(mu)
    # A threshold t of the Gaussian pair is an event with log-slope m t - m^2/2.
    thresholds = np.linspace(-6.0, 6.0, 33)
    wide = grid[:, np.newaxis]
    log_ratio = wide * thresholds + np.sign(thresholds) * wide**2 / 2
    return NullFamily(grid, log_ratio, gaussian_delta(log_ratio, wide), centre)


def single_null(claim: Claim) -> NullFamily:
    """Return the claim alone, to be tested through its privacy profile."""
    levels = (1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9)
    # Slopes beyond the first finite epsilon would tell nothing new.
    reach = next((e for d in levels if np.isfinite(e := claim.epsilon(d))), 0.0)
    log_ratio = np.linspace(-1.0, 1.0, 65)[np.newaxis] * max(reach, 1e-3)
    return NullFamily(np.array([1.0]), log_ratio, claim.delta(log_ratio), 0)


def families_for(claim: Claim, delta: float, epsilon: float) -> dict[str, NullFamily]:
    """Return the families of an audit, the one that decides the verdict first.

    Parameters
    ----------
    claim : Claim
    delta, epsilon : float
        Where ``epsilon_lower`` and ``delta_lower`` are asked for.
    """
    polygonal = isinstance(claim, PureDP | ApproxDP)
    bounds = {
        "epsilon": epsilon_family(epsilon, delta, claimed=polygonal),
        "delta": delta_family(epsilon, delta, claimed=polygonal),
    }
    if polygonal:
        return bounds
    if isinstance(claim, GaussianDP):
        return {"mu": mu_family(claim.parameters["mu"])} | bounds
    return {"claim": single_null(claim)} | bounds


def _geometric_grid(centre: float) -> tuple[Array, int]:
    """Return a grid around a centre, and the place of the centre.

    From centre/20, or lower where that is not small, to 20 times the centre.
    """
    if centre > _LARGEST:
        raise InputError(
            f"claims beyond {_LARGEST:g} cannot be audited in double precision, "
            f"got {centre:g}"
        )
    down = int(np.log(max(20.0, centre / _SMALL)) / _STEP)
    up = int(np.log(20.0) / _STEP)
    grid = centre * np.exp(_STEP * np.arange(-down, up + 1))
    return grid[grid <= _LARGEST], down
