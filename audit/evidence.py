r"""E-values against one half-plane of a privacy claim, exact in finite samples.

The null
--------
A claim says that for every event S the point (p, q) = (P(S), Q(S)) lies in a convex
set N. Every half-plane p - R q <= delta(log R), R > 0, contains N, so an e-value
against any one of them is an e-value against the claim. Which half-plane is used only
decides how fast evidence grows.

The e-value
-----------
Draw n_P releases on D, of which k hit the event, and n_Q on D', of which m do. Given
an alternative (p1, q1) with p1 - R q1 > delta, chosen before the draw, take

    E = (p1/p0)^k ((1-p1)/(1-p0))^(n_P-k) (q1/q0)^m ((1-q1)/(1-q0))^(n_Q-m) e^-slack

with p0 and q0 determined by a multiplier lambda >= 0 through

    n_P (p1 - p0)/(p0 (1 - p0)) = lambda,   n_Q (q0 - q1)/(q0 (1 - q0)) = lambda R,

and slack = max(0, lambda (delta - p0 + R q0)).

**Claim.** E[E] <= 1 for every (p, q) with p - R q <= delta, whatever lambda >= 0 is.

Proof. Without the last factor, E[E] = a^n_P b^n_Q, where
a = p p1/p0 + (1-p)(1-p1)/(1-p0) = 1 + (p - p0)(p1 - p0)/(p0 (1-p0)), and b likewise in
q. By 1 + x <= e^x,

    E[E] e^slack <= exp(n_P (a - 1) + n_Q (b - 1))
                  = exp(lambda (p - p0) - lambda R (q - q0))
                  = exp(lambda (p - R q) - lambda (p0 - R q0))
                 <= exp(lambda (delta - p0 + R q0)) <= e^slack.  QED

So no accuracy of any solver is needed for validity. For speed, lambda is chosen such
that (p0, q0) is the Kullback-Leibler projection of (p1, q1) on the half-plane, where
slack = 0 and log E grows at the rate n_P KL(p1||p0) + n_Q KL(q1||q0) under the
alternative: the largest that any e-value of this form has (Turner, Ly, Grunwald,
*Generic E-variables for exact sequential k-sample tests*, 2021, for classical nulls;
Grunwald, de Heide, Koolen, *Safe testing*, JRSS B 2024).
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["HalfPlaneBet", "growth", "project"]

Array: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = float | NDArray[np.floating[Any]] | NDArray[np.integer[Any]]

# Relative rounding of the alignment between the two equations that define (p0, q0).
_ROUNDING = 1e-14


def project(
    p1: Numbers,
    q1: Numbers,
    ratio: Numbers,
    delta: Numbers,
    n_p: Numbers,
    n_q: Numbers,
    *,
    halvings: int = 50,
) -> tuple[Array, Array]:
    """Project alternatives on half-planes p - ratio q <= delta, in KL divergence.

    Parameters
    ----------
    p1, q1 : array_like
        Alternatives strictly inside (0, 1), with p1 - ratio q1 > delta.
    ratio, delta : array_like
        The half-planes; ratio > 0. Everything broadcasts.
    n_p, n_q : array_like
        Numbers of releases, the weights of the two divergences.
    halvings : int
        Bisection steps; few suffice to compare growth rates.

    Returns
    -------
    p0, q0 : ndarray
        Points on the boundary line.
    """
    p1, q1, ratio, delta, n_p, n_q = (
        np.asarray(x, dtype=np.float64) for x in (p1, q1, ratio, delta, n_p, n_q)
    )
    # Along the line p = ratio q + delta the divergence is convex in q; its derivative
    # is negative at q = q1 and positive where p = p1.
    end = np.minimum((p1 - delta) / ratio, 1.0)
    low, high = np.broadcast_arrays(q1, end)
    for _ in range(halvings):
        q0 = (low + high) / 2
        p0 = ratio * q0 + delta
        rises = n_q * (q0 - q1) * (p0 * (1 - p0)) > ratio * n_p * (p1 - p0) * (
            q0 * (1 - q0)
        )
        low, high = np.where(rises, low, q0), np.where(rises, q0, high)
    q0 = (low + high) / 2
    return ratio * q0 + delta, q0


def growth(
    p1: Numbers, q1: Numbers, p0: Array, q0: Array, n_p: Numbers, n_q: Numbers
) -> Array:
    """Return n_p KL(p1 || p0) + n_q KL(q1 || q0) of Bernoulli laws, in nats."""
    return np.asarray(n_p * _divergence(p1, p0) + n_q * _divergence(q1, q0))


def _divergence(p: Numbers, q: Array) -> Array:
    p = np.asarray(p, dtype=np.float64)
    return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))


@dataclass(frozen=True)
class HalfPlaneBet:
    """A bet fixed before its round: log E is linear in the counts.

    Fields are arrays of one shape, one entry per null hypothesis.
    """

    hit_p: Array
    miss_p: Array
    hit_q: Array
    miss_q: Array
    slack: Array

    @classmethod
    def place(
        cls,
        p1: Numbers,
        q1: Numbers,
        ratio: Numbers,
        delta: Numbers,
        n_p: Numbers,
        n_q: Numbers,
    ) -> "HalfPlaneBet":
        """Bet on (p1, q1) against p - ratio q <= delta; see the module docstring."""
        arguments = (p1, q1, ratio, delta, n_p, n_q)
        return cls._place(*np.broadcast_arrays(*map(_float, arguments)))

    @classmethod
    def _place(
        cls, p1: Array, q1: Array, ratio: Array, delta: Array, n_p: Array, n_q: Array
    ) -> "HalfPlaneBet":
        p0, _ = project(p1, q1, ratio, delta, n_p, n_q)
        # Both points from the same multiplier, so that the proof applies to the
        # numbers as they are, not as they would be without rounding.
        multiplier = n_p * (p1 - p0) / (p0 * (1 - p0))
        q0 = _from_multiplier(q1, multiplier * ratio, n_q)
        slack = np.maximum(multiplier * (delta - p0 + ratio * q0), 0.0)
        slack += _ROUNDING * multiplier * (1 + ratio)
        return cls(
            np.log(p1 / p0),
            np.log((1 - p1) / (1 - p0)),
            np.log(q1 / q0),
            np.log((1 - q1) / (1 - q0)),
            slack,
        )

    def log_e(self, k: Numbers, m: Numbers, n_p: Numbers, n_q: Numbers) -> Array:
        """Return log E for k of n_p hits on D and m of n_q hits on D'."""
        return (
            k * self.hit_p
            + (n_p - k) * self.miss_p
            + m * self.hit_q
            + (n_q - m) * self.miss_q
            - self.slack
        )


def _float(value: Numbers) -> Array:
    return np.asarray(value, dtype=np.float64)


def _from_multiplier(q1: Array, multiplier: Array, n: Array) -> Array:
    """Solve n (q - q1) = multiplier q (1 - q) for q in [q1, 1), stably."""
    b = n - multiplier
    root = np.sqrt(b * b + 4 * multiplier * n * q1)
    with np.errstate(divide="ignore", invalid="ignore"):
        small = 2 * n * q1 / (b + root)
        large = (root - b) / (2 * multiplier)
    return np.where(b > 0, small, large)
