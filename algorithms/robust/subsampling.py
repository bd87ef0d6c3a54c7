r"""Random batches of rows, and the noise that they need.

*Poisson sampling*: every row is in the batch with probability q, independently. This is
what privacy amplification needs, and the size of a batch is random: nothing but q is
public. *With replacement*: B places, each filled with one of the N rows, uniformly. A
row can be there twice; this is what the paper's section 3.3 says.

Noise under Poisson sampling, relation ADD_REMOVE. A step publishes Y = sum of g_i(V)
over the batch + sigma Z, with ||g_i(V)||_F <= 1 for every V, and is divided by a public
number. Let D' have the row x more than D. Given V and which rows of D are in the batch,
Y is N(m, sigma^2 I) on D, and on D' the mixture (1 - q) N(m, sigma^2 I) +
q N(m + g_x, sigma^2 I). The hockey-stick divergence is jointly convex, so averaging
over batches only lowers it, in both directions; it does not change with m, and grows
with ||g_x||. So the step on D' against D is dominated by (1 - q) N(0, sigma^2) +
q N(1, sigma^2) against N(0, sigma^2), and on D against D' by the reverse, for every V
that does not depend on this batch; and dominating pairs compose, also where the steps
are adaptive (Zhu, Dong, Wang, *Optimal accounting of differential privacy via
characteristic function*, AISTATS 2022, Theorems 10 and 11). The T-fold composition is
computed, with the start's part, by the privacy loss distributions of `dp_accounting`,
discretised so that its deltas are upper bounds. Nobody needs the number of rows: the
normaliser is public. With the size of the batch for a denominator, or under
REPLACE_ONE, this would not be a proof.
"""

from functools import lru_cache
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

_FINE = 1e-3  # of privacy loss; at 1e-4 the deltas are the same to 0.3 %
_COARSE = 1e-2
_MOST = 1e6


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
    interval: float = _FINE,
) -> float:
    """Return a delta at which a start and the steps after it are (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float
    multiplier : float
        sigma over the sensitivity, 1.
    rate : float
        q in (0, 1].
    steps : int
        T.
    start : GaussianDP or PureDP, optional
        What was spent before.
    interval : float
        Width of the discretisation.

    Raises
    ------
    UnsupportedError
        If the start is another kind of claim.
    """
    return float(
        _distribution(multiplier, rate, steps, start, interval).get_delta_for_epsilon(
            epsilon
        )
    )


@lru_cache(maxsize=256)
def noise_multiplier(
    epsilon: float,
    delta: float,
    *,
    rate: float,
    steps: int,
    start: Claim | None = None,
) -> float:
    """Return the least multiplier, up to 0.1 %, at which all is (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon, delta : float
        For the start and all steps together.
    rate, steps, start
        As for `subsampled_delta`.

    Returns
    -------
    float
        `subsampled_delta` there is at most `delta`.

    Raises
    ------
    InputError
        If the start has spent all already.

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
    if start is not None and float(start.delta(epsilon)) >= delta:
        raise InputError(
            f"start must leave some of epsilon {epsilon:g} and delta {delta:g}, "
            f"but it is {start}"
        )
    target = log(delta)

    def excess(multiplier: float, interval: float) -> float:
        found = subsampled_delta(
            epsilon,
            multiplier,
            rate=rate,
            steps=steps,
            start=start,
            interval=interval,
        )
        return log(max(found, 1e-300)) - target

    # What the central limit theorem says of many steps, or one step alone.
    guess = max(rate * sqrt(steps) / gaussian_mu(epsilon, delta), 0.3)
    low, high = _bracket(lambda z: excess(z, _COARSE), guess)
    while high / low > 1.01:
        middle = sqrt(low * high)
        low, high = (middle, high) if excess(middle, _COARSE) > 0 else (low, middle)
    low, high = _bracket(lambda z: excess(z, _FINE), high, factor=1.01)
    while high / low > 1.001:
        middle = sqrt(low * high)
        low, high = (middle, high) if excess(middle, _FINE) > 0 else (low, middle)
    return high


def _bracket(excess: Any, guess: float, factor: float = 1.5) -> tuple[float, float]:
    """Return multipliers a factor apart, of which the second has no excess only."""
    high = guess
    while excess(high) > 0:
        high *= factor
        if high > _MOST:
            raise InputError(
                "start must leave enough of epsilon and delta for the steps, but no "
                f"noise up to {_MOST:g} times their sensitivity is enough"
            )
    low = high / factor
    while excess(low) <= 0:
        low, high = low / factor, low
    return low, high


def _distribution(
    multiplier: float, rate: float, steps: int, start: Claim | None, interval: float
) -> Any:
    """Return the privacy loss distribution of the whole, both ways round."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    whole = pld.from_gaussian_mechanism(
        multiplier, value_discretization_interval=interval, sampling_prob=rate
    ).self_compose(steps)
    match start:
        case None:
            return whole
        case GaussianDP():
            before = pld.from_gaussian_mechanism(
                1 / start.parameters["mu"], value_discretization_interval=interval
            )
        case PureDP():
            before = pld.from_privacy_parameters(
                common.DifferentialPrivacyParameters(start.parameters["epsilon"], 0.0),
                value_discretization_interval=interval,
            )
        case _:
            raise UnsupportedError(
                f"start must cost a GaussianDP or a PureDP, got {start}"
            )
    return whole.compose(before)
