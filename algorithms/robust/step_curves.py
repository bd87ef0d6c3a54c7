r"""The divergences of one step on a Poisson sample, in closed form.

N(t) is a normal law of variance 1 at t, m = 1/multiplier how far a row moves it, q the
rate of the batches, and a curve the hockey-stick divergence of a pair as a function of
epsilon, of either sign. The pairs are those of `dpaudit.algorithms.robust.subsampling`;
delta(epsilon; m) is that of N(m) from N(0), `dpaudit.gaussian.gaussian_delta`.

- *A row leaves*: (1 - q) N(0) + q N(m) from N(0). What exceeds e^epsilon N(0) is q
  times what N(m) has in excess of e^inner N(0), e^inner = 1 + (e^epsilon - 1)/q: so the
  curve is q delta(inner; m), and 1 - e^epsilon where that e^inner is not positive.
- *A row joins*: N(0) from (1 - q) N(0) + q N(m). With w = 1 - (1 - q) e^epsilon it is
  what w N(0) has in excess of e^epsilon q N(m): w delta(log(e^epsilon q/w); m), and 0
  where w is not positive.
- *Opposite terms*: (1 - q) N(0) + q N(m) from (1 - q) N(0) + q N(-m). The loss grows
  with x, and is epsilon where w = e^(m x) solves w - e^epsilon/w = k, with
  k = (e^epsilon - 1) (1 - q) e^(m^2/2)/q; the curve is the difference of the tails.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import expm1, log, log1p
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpaudit.gaussian import gaussian_delta

__all__ = ["Curve", "Replaced", "gaussian_curve", "step_curves"]

Array = NDArray[np.float64]

Replaced: TypeAlias = Literal["opposite", "orthogonal"]
"""How the terms of a row and of its replacement lie where they are worst."""

_REACH = 10.0  # normal tails beyond have a mass below 1e-23
_LARGEST = 600.0  # of the losses that are told apart


@dataclass(frozen=True)
class Curve:
    """A divergence as a function of epsilon, and where most losses lie.

    Parameters
    ----------
    delta : callable
        From an array of epsilons to the divergences there.
    low, high : float
        Between them lie all losses but a share below 1e-22, or those that are larger
        than 600.
    """

    delta: Callable[[Array], Array]
    low: float
    high: float


def gaussian_curve(mu: float) -> Curve:
    """Return that of a Gaussian mechanism; mu > 0."""
    reach = min(mu * (mu / 2 + _REACH), _LARGEST)
    return Curve(lambda epsilon: gaussian_delta(epsilon, mu), -reach, reach)


def step_curves(
    multiplier: float, rate: float, replaced: Replaced | None
) -> tuple[Curve, ...]:
    """Return the curves of a step.

    Parameters
    ----------
    multiplier : float
        > 0.
    rate : float
        q in (0, 1].
    replaced : {"opposite", "orthogonal"}, optional

    Returns
    -------
    tuple of Curve
        For a row that leaves and one that joins; if `replaced` is "opposite" the one
        curve of that, which is the same both ways round.

    Examples
    --------
    >>> [float(c.delta(np.array(0.0)).round(4)) for c in step_curves(2.0, 0.5, None)]
    [0.0987, 0.0987]
    """
    m = 1 / multiplier
    most = min(m * (m / 2 + _REACH), _LARGEST)
    high = log1p(rate * expm1(most))
    low = -_mixed(-most, rate)
    if replaced == "opposite":
        high -= _mixed(-min(most + m**2, _LARGEST), rate)
        return (Curve(lambda e: _opposite(e, m, rate), -high, high),)
    return (
        Curve(lambda e: _leaves(e, m, rate), -low, high),
        Curve(lambda e: _joins(e, m, rate), -high, low),
    )


def _mixed(loss: float, rate: float) -> float:
    """Return log(1 - q + q e^loss) for a loss <= 0."""
    return loss if rate == 1 else log1p(rate * expm1(loss))


def _leaves(epsilon: Array, m: float, rate: float) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = np.log1p(np.expm1(epsilon) / rate)
    possible = np.isfinite(inner)
    excess = rate * gaussian_delta(np.where(possible, inner, 0.0), m)
    return np.where(possible, excess, -np.expm1(epsilon))


def _joins(epsilon: Array, m: float, rate: float) -> Array:
    weight = 1 - (1 - rate) * np.exp(epsilon)
    possible = weight > 0
    safe = np.where(possible, weight, 1.0)
    inner = log(rate) + epsilon - np.log(safe)
    return np.where(possible, safe * gaussian_delta(inner, m), 0.0)


def _opposite(epsilon: Array, m: float, rate: float) -> Array:
    # In logarithms of |k| and of w, which do not overflow.
    with np.errstate(divide="ignore"):
        log_k = np.log(np.abs(np.expm1(epsilon))) + m**2 / 2 - log(rate)
        log_k += np.log1p(-rate) if rate < 1 else -np.inf
    root = np.logaddexp(2 * log_k, np.log(4.0) + epsilon) / 2
    log_sum = np.logaddexp(log_k, root) - np.log(2.0)
    x = np.where(epsilon > 0, log_sum, epsilon - log_sum) / m
    ours = (1 - rate) * ndtr(-x) + rate * ndtr(m - x)
    theirs = (1 - rate) * ndtr(-x) + rate * ndtr(-m - x)
    return np.asarray(np.clip(ours - np.exp(epsilon) * theirs, 0.0, 1.0))
