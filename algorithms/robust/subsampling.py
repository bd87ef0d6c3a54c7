r"""Random batches of rows, and the noise that they need.

*Poisson sampling*: every row is in the batch with probability q, independently. This is
what privacy amplification needs, and the size of a batch is random: nothing but q is
public. *With replacement*: B places, each filled with one of the N rows, uniformly. A
row can be there twice; this is what the paper's section 3.3 says.

Noise under Poisson sampling. A step publishes Y = sum of g_i(V) over the batch +
sigma Z, with ||g_i(V)||_F <= 1 for every V, and is divided by a public number. (With
the size of the batch for a denominator what follows would not be a proof.) Write N(u)
for N(u, sigma^2 I), and H(P, Q) for the hockey-stick divergence at some e^epsilon >= 1;
that below 1 is a function of H(Q, P), and all families of pairs here are symmetric.

*ADD_REMOVE.* Let D' have the row x more than D. Given V and which rows of D are in the
batch, Y is N(m) on D, and on D' the mixture (1 - q) N(m) + q N(m + g_x). H is jointly
convex, so averaging over batches only lowers it; it does not change with m, and grows
with ||g_x||. So the step on D' against D is dominated by (1 - q) N(0) + q N(1) against
N(0), and on D against D' by the reverse.

*REPLACE_ONE*, y for x. Given V and which of the other rows are in the batch, Y is
(1 - q) N(m) + q N(m + u) on D and (1 - q) N(m) + q N(m + v) on D', u = g_x, v = g_y.
With c = (e^epsilon - 1)(1 - q), in units of sigma,

.. math:: H = E\left[\left(q e^{X - |u|^2/2} - c
              - e^\epsilon q e^{Y - |v|^2/2}\right)_+\right],

X and Y jointly normal of mean 0 with the variances |u|^2, |v|^2 and the covariance
<u, v>. A convex function of a - b has mixed derivatives <= 0 where a grows with X and b
with Y, and the derivative of an expectation by the covariance is that of the mixed
derivative (Plackett, 1954; the positive part is a limit of smooth convex functions). So
**H falls as <u, v> grows**, for given lengths.

- *Opposite terms.* Hence no pair loses more than u and v in opposite directions. There
  the bracket grows along the one axis, so the best events are half-lines, and H is
  the largest of q P(N(|u|) > t) - c P(N(0) > t) - e^epsilon q P(N(-|v|) > t), which
  grows with |u| and |v|. So (1 - q) N(0) + q N(1) against (1 - q) N(0) + q N(-1)
  dominates all.
- *Orthogonal terms.* Suppose that -<u, v> <= sqrt((1 - |u|^2)(1 - |v|^2)) for any two
  terms, as for REAPER (`dpaudit.algorithms.robust.reaper`). If <u, v> > 0 then H is at
  most what it is for terms of the same lengths at right angles. So let <u, v> <= 0. The
  Gram matrix of u and v then has no eigenvalue above 1, so there is a matrix M of norm
  <= 1 that takes two orthonormal vectors to u and v, and with noise of the covariance
  sigma^2 (I - M M^T) it takes N(0) and the two normal laws about these vectors to N(0),
  N(u) and N(v): post-processing. For orthonormal terms the coordinates are independent,
  and the pair is a product: a row that leaves, in one, and a row that joins, in the
  other.

*All steps.* Each pair dominates for every V that does not depend on this batch, and
dominating pairs compose, also where the steps are adaptive (Zhu, Dong, Wang, *Optimal
accounting of differential privacy via characteristic function*, AISTATS 2022, Theorems
10 and 11). The T-fold composition is computed, with the start's part, from the
divergences of a step in closed form (`dpaudit.algorithms.robust.step_curves`) by the
privacy loss distributions of `dp_accounting`, discretised so that the deltas are upper
bounds (up to rounding, for which some 1e-15 a step are added).

*The grid.* A loss of a step is of the order q/(its multiplier). The grid is a 32nd of
that wide, so it is finer the smaller epsilon is, but has at most 2^16 points for a
step. What limits it is a step, or a start, that loses far more than others.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from math import ceil, floor, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.robust.step_curves import (
    Curve,
    Replaced,
    gaussian_curve,
    step_curves,
)
from dpaudit.claims import Claim, GaussianDP, PureDP
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.gaussian import gaussian_mu
from dpaudit.validation import check_count, check_fraction, check_positive

__all__ = [
    "noise_multiplier",
    "padded_with_zeros",
    "poisson_batches",
    "subsampled_delta",
    "taken",
    "with_replacement",
]

Array = NDArray[np.float64]

_COARSE, _FINE = 4, 32  # grid points per q/multiplier; at 64 deltas are 0.1 % less
_POINTS = 2**11  # for each of these, the most that a grid for one step has
_ROUNDING = 1e-15
_LEAST, _MOST = 0.1, 1e9  # multipliers


def poisson_batches(
    count: int, rate: float, size: int, *, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw `size` batches, each row in each with probability `rate`.

    Parameters
    ----------
    count : int
        N >= 0.
    rate : float
        q in (0, 1].
    size : int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int, shape (size, longest)
        The rows in each batch, in order, and then N as often as is needed to fill up.
    """
    cells = count * size
    if rate == 1:
        hits = np.arange(cells)
    else:
        # The gaps between the successes of a Bernoulli process are geometric.
        hits = np.empty(0, dtype=np.int64)
        last = -1
        while last < cells:
            expected = (cells - last) * rate
            some = int(expected + 4 * sqrt(expected) + 8)
            gaps = np.minimum(rng.geometric(rate, some), cells + 1)
            more = last + np.cumsum(gaps)
            hits = np.concatenate([hits, more])
            last = int(more[-1])
        hits = hits[hits < cells]
    owner, row = np.divmod(hits, max(count, 1))
    lengths = np.bincount(owner, minlength=size)
    places = np.arange(len(hits)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    batches = np.full((size, int(lengths.max(initial=0))), count, dtype=np.intp)
    batches[owner, places] = row
    return batches


def with_replacement(
    count: int, batch_size: int, size: int, *, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Draw `size` batches of independent uniform rows, shape (size, batch_size)."""
    return rng.integers(count, size=(size, batch_size))


def padded_with_zeros(rows: Array) -> Array:
    """Return rows and one of zeros, with which `poisson_batches` fills up."""
    zeros = np.zeros((*rows.shape[:-2], 1, rows.shape[-1]))
    return np.concatenate([rows, zeros], axis=-2)


def taken(rows: Array, batches: NDArray[np.intp]) -> Array:
    """Return the rows of each batch, shape (trials, B, D).

    Parameters
    ----------
    rows : ndarray, shape (N, D) or (trials, N, D)
        The same rows for all trials, or each trial's own.
    batches : ndarray of int, shape (trials, B)
    """
    if rows.ndim == 2:
        return np.asarray(rows[batches])
    return np.take_along_axis(rows, batches[..., np.newaxis], axis=1)


def subsampled_delta(
    epsilon: float,
    multiplier: float,
    *,
    rate: float,
    steps: int,
    start: Claim | None = None,
    replaced: Replaced | None = None,
    fineness: float = _FINE,
) -> float:
    """Return a delta at which a start and the steps after it are (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float
    multiplier : float
        sigma over the largest norm of a term, 1.
    rate : float
        q in (0, 1].
    steps : int
        T.
    start : GaussianDP or PureDP, optional
        What was spent before.
    replaced : {"opposite", "orthogonal"}, optional
        How the terms of a row and of its replacement lie at worst, under REPLACE_ONE;
        see the module docstring. Without it the relation is ADD_REMOVE.
    fineness : float
        How many points of the grid of losses there are to q/multiplier.

    Raises
    ------
    UnsupportedError
        If the start is another kind of claim.
    """
    whole = _distribution(multiplier, rate, steps, start, replaced, fineness)
    rounding = _ROUNDING * (100 + steps)
    return min(float(whole.get_delta_for_epsilon(epsilon)) + rounding, 1.0)


@lru_cache(maxsize=256)
def noise_multiplier(
    epsilon: float,
    delta: float,
    *,
    rate: float,
    steps: int,
    start: Claim | None = None,
    replaced: Replaced | None = None,
) -> float:
    """Return the least multiplier, up to 0.1 %, at which all is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon, delta : float
        For the start and all steps together.
    rate, steps, start, replaced
        As for `subsampled_delta`.

    Returns
    -------
    float
        `subsampled_delta` there is at most `delta`. About 0.1 where less would do.

    Raises
    ------
    InputError
        If the start has spent all already, or so much that the rest is lost in the grid
        of the accountant; or if delta is below what rounding may hide.

    Examples
    --------
    >>> round(noise_multiplier(0.8, 0.0224, rate=0.01, steps=2000), 2)
    1.07
    """
    epsilon = check_positive("epsilon", epsilon)
    delta = check_fraction("delta", delta)
    rate = check_positive("rate", rate)
    if rate > 1:
        raise InputError(f"rate must be at most 1, got {rate!r}")
    steps = check_count("steps", steps)
    if delta <= 10 * _ROUNDING * (100 + steps):
        raise InputError(
            f"delta must be more than {10 * _ROUNDING * (100 + steps):.3g} for {steps} "
            f"steps, of which rounding may hide a tenth, got {delta!r}"
        )
    if start is not None and float(start.delta(epsilon)) >= delta:
        raise InputError(
            f"start must leave some of epsilon {epsilon:g} and delta {delta:g}, "
            f"but it is {start}"
        )
    target = log(delta)

    def excess(multiplier: float, *, fineness: float) -> float:
        found = subsampled_delta(
            epsilon,
            multiplier,
            rate=rate,
            steps=steps,
            start=start,
            replaced=replaced,
            fineness=fineness,
        )
        return log(found) - target

    # What the central limit theorem says of many steps, or one step alone.
    guess = max(rate * sqrt(steps) / gaussian_mu(epsilon, delta), 0.3)
    high, factor = guess, 1.5
    for fineness, precision in ((_COARSE, 1.01), (_FINE, 1.001)):
        low, high = _bracket(partial(excess, fineness=fineness), high, factor)
        while high / low > precision:
            middle = sqrt(low * high)
            enough = excess(middle, fineness=fineness) <= 0
            low, high = (low, middle) if enough else (middle, high)
        factor = precision
    return high


def _bracket(
    excess: Callable[[float], float], guess: float, factor: float
) -> tuple[float, float]:
    """Return two multipliers, of which the second has no excess and the first has.

    Or the first has none either, and is the least that is looked at.
    """
    low = high = guess
    if excess(guess) <= 0:
        while low > _LEAST and excess(low := high / factor) <= 0:
            high, factor = low, factor**1.5
        return low, high
    while excess(high := low * factor) > 0:
        low, factor = high, factor**1.5
        if low > _MOST:
            raise InputError(
                "start must leave more of epsilon and delta for the steps: what it "
                f"leaves is lost in a grid of {_FINE * _POINTS} privacy losses, and no "
                f"noise up to {_MOST:g} times their sensitivity is enough"
            )
    return low, high


def _distribution(
    multiplier: float,
    rate: float,
    steps: int,
    start: Claim | None,
    replaced: Replaced | None,
    fineness: float,
) -> Any:
    """Return the privacy loss distribution of the whole, both ways round."""
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

    curves = step_curves(multiplier, rate, replaced)
    before = () if start is None else (_start_curve(start),)
    width = max(curve.high - curve.low for curve in (*curves, *before))
    interval = max(rate / multiplier, width / _POINTS) / fineness

    def law(curve: Curve) -> Any:
        low, high = floor(curve.low / interval), ceil(curve.high / interval)
        return pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
            interval, low, high, curve.delta(np.arange(low, high + 1) * interval)
        )

    ways = [law(curve) for curve in curves]
    if replaced == "orthogonal":
        ways = [pld_pmf.compose_pmfs(*ways)]
    whole = PrivacyLossDistribution(*ways).self_compose(steps)
    for curve in before:
        whole = whole.compose(PrivacyLossDistribution(law(curve)))
    return whole


def _start_curve(start: Claim) -> Curve:
    match start:
        case GaussianDP(parameters={"mu": mu}):
            return gaussian_curve(mu)
        case PureDP(parameters={"epsilon": epsilon}):
            return Curve(start.delta, -epsilon, epsilon)
    raise UnsupportedError(f"start must cost a GaussianDP or a PureDP, got {start}")
