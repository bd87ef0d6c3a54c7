r"""The noise that steps on Poisson samples need, by an accountant.

Under Poisson sampling every row is in a batch with probability q, independently
(`dpaudit.algorithms.shared.batches`). A step publishes Y = sum of g_i(V) over the batch
+ sigma Z, with ||g_i(V)||_F <= 1 for every V, and is divided by a public number. (With
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
  terms, as for REAPER (`dpaudit.algorithms.robust.objectives`). If <u, v> > 0 then H is
  at most what it is for terms of the same lengths at right angles. So let <u, v> <= 0.
  The Gram matrix of u and v then has no eigenvalue above 1, so there is a matrix M of
  norm <= 1 that takes two orthonormal vectors to u and v, and with noise of the
  covariance sigma^2 (I - M M^T) it takes N(0) and the two normal laws about these
  vectors to N(0), N(u) and N(v): post-processing. For orthonormal terms the coordinates
  are independent, and the pair is a product: a row that leaves, in one, and a row that
  joins, in the other.

*All steps.* Each pair dominates for every V that does not depend on this batch, and
dominating pairs compose, also where the steps are adaptive (Zhu, Dong, Wang, *Optimal
accounting of differential privacy via characteristic function*, AISTATS 2022, Theorems
10 and 11). The T-fold composition is computed, with the start's part, from the
divergences of a step in closed form, as the law of a sum of independent privacy losses
(`_Losses`), discretised so that the deltas are upper bounds (up to rounding, for which
some 1e-15 a step are added).

*The law of a loss*, on a grid l_1 < ... < l_n with gaps h (Doroshenko, Ghazi, Kamath,
Kumar, Manurangsi, *Connect the dots: tighter discrete approximations of privacy loss
distributions*, PETS 2022). The curve, delta(l), is a convex function of e^l. The law
with the masses p_i and the mass delta(l_n) at infinity has the curve that agrees with
it on the grid and is linear in e^l between, so nowhere less: the sum over the losses
above l of p_i (1 - e^(l - l_i)) has the slope -(the sum of p_i e^-l_i over the losses
above l) in e^l, so p_i is e^(l_i) times what the slope gains at l_i, and

    p_i = (delta_(i+1) - delta_i)/(e^h - 1) - (delta_i - delta_(i-1)) e^h/(e^h - 1),

where the first term is 0 for i = n, and 1 - delta_1 replaces the second for i = 1.

*Their sum.* The law of T losses is the T-th power of its Fourier transform, of a length
that holds all but a mass of 1e-15 (`_TAIL`), which is added at infinity. Where that is
follows from Chernoff's bound, P(sum >= t) <= E[e^(a loss)]^T e^(-a t), for a few a.

*The grid.* A loss of a step is of the order q/(its multiplier). The grid is a 32nd of
that wide, so it is finer the smaller epsilon is, but has at most 2^16 points for a
step. What limits it is a step, or a start, that loses far more than others.

*The divergences of a step.* N(t) is a normal law of variance 1 at t, m = 1/multiplier
how far a row moves it, q the rate of the batches, and a curve the hockey-stick
divergence of a pair as a function of epsilon, of either sign. delta(epsilon; m) is that
of N(m) from N(0), `dpaudit.gaussian.gaussian_delta`.

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
from functools import lru_cache, partial
from math import ceil, expm1, floor, log, log1p, sqrt
from typing import Any, Self

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtr

from dpaudit import Claim, GaussianDP, InputError, PureDP, UnsupportedError
from dpaudit.algorithms.shared.bases import Replaced
from dpaudit.arrays import Array
from dpaudit.gaussian import gaussian_delta, gaussian_mu
from dpaudit.validation import check_count, check_fraction, check_positive

__all__ = ["noise_multiplier"]

_COARSE, _FINE = 4, 32  # grid points per q/multiplier; at 64 deltas are 0.1 % less
_POINTS = 2**11  # for each of these, the most that a grid for one step has
_ROUNDING = _TAIL = 1e-15
_LEAST, _MOST = 0.1, 1e9  # multipliers
_REACH = 10.0  # normal tails beyond have a mass below 1e-23
_LARGEST = 600.0  # of the losses that are told apart


@dataclass(frozen=True)
class _Curve:
    """A divergence as a function of epsilons, and where most losses lie.

    All are between low and high, but a share below 1e-22, or those larger than 600.
    """

    delta: Callable[[Array], Array]
    low: float
    high: float


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

    The arguments are those of `noise_multiplier`, and how many points of the grid of
    losses there are to q/multiplier.
    """
    curves = _step_curves(multiplier, rate, replaced)
    before = () if start is None else (_start_curve(start),)
    width = max(curve.high - curve.low for curve in (*curves, *before))
    interval = max(rate / multiplier, width / _POINTS) / fineness
    ways = [_Losses.of(curve, interval) for curve in curves]
    if replaced == "orthogonal":
        ways = [ways[0].beside(ways[1])]
    ways = [way.times(steps) for way in ways]
    for curve in before:
        ways = [way.beside(_Losses.of(curve, interval)) for way in ways]
    found = max(way.delta_at(epsilon) for way in ways)
    return min(found + _ROUNDING * (100 + steps), 1.0)


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
    rate : float
        q in (0, 1].
    steps : int
        T.
    start : GaussianDP or PureDP, optional
        What was spent before.
    replaced : {"opposite", "orthogonal"}, optional
        How the terms of a row and of its replacement lie at worst, under REPLACE_ONE;
        see the module docstring. Without it the relation is ADD_REMOVE.

    Returns
    -------
    float
        sigma over the largest norm of a term. `subsampled_delta` there is at most
        `delta`. About 0.1 where less would do.

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
    rate = check_positive("rate", rate, largest=1.0)
    steps = check_count("steps", steps)
    if delta <= 10 * _ROUNDING * (100 + steps):
        raise InputError(
            f"delta must be more than {10 * _ROUNDING * (100 + steps):.3g} for {steps} "
            f"steps, of which rounding may hide a tenth, got {delta!r}"
        )
    if start is not None and float(start.delta_at(epsilon)) >= delta:
        raise InputError(
            f"start must leave some of epsilon {epsilon:g} and delta {delta:g}, "
            f"but it is {start}"
        )
    target = log(delta)
    given: dict[str, Any] = {"rate": rate, "steps": steps}
    given |= {"start": start, "replaced": replaced}

    def excess(multiplier: float, *, fineness: float) -> float:
        found = subsampled_delta(epsilon, multiplier, fineness=fineness, **given)
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


@dataclass(frozen=True)
class _Losses:
    """The law of a privacy loss on a grid; see the module docstring.

    The losses are (lowest + i) intervals, of the mass i; the rest is at infinity.
    """

    interval: float
    lowest: int
    masses: Array
    infinite: float

    @classmethod
    def of(cls, curve: _Curve, interval: float) -> Self:
        """Return the law on the grid whose curve is nowhere less than that one."""
        low, high = floor(curve.low / interval), ceil(curve.high / interval)
        losses = np.arange(low, high + 1, dtype=np.float64) * interval
        deltas = np.minimum.accumulate(curve.delta(losses))  # but for rounding
        falls, gap = np.diff(deltas), expm1(interval)
        masses = np.append(falls / gap, 0.0)
        masses[0] += 1 - deltas[0]
        masses[1:] -= falls * ((1 + gap) / gap)
        return cls(interval, low, np.maximum(masses, 0.0), float(deltas[-1]))

    def times(self, count: int) -> "_Losses":
        """Return the law of the sum of so many such losses."""
        size, last = len(self.masses), (len(self.masses) - 1) * count
        rates = np.arange(1, 21)[:, np.newaxis] / size
        moments = np.exp(rates * np.arange(size))
        room = log(2 / _TAIL)
        above = (count * np.log(moments @ self.masses) + room) / rates[:, 0]
        below = (count * np.log((1 / moments) @ self.masses) + room) / rates[:, 0]
        low = min(max(0, floor(-below.min())), last)
        high = max(min(last, ceil(above.min())), low)
        length = next_fast_len(max(high - low + 1, size), real=True)
        whole = irfft(rfft(self.masses, length) ** count, length)
        masses = np.roll(whole, -low)[: high - low + 1]
        infinite = _TAIL - expm1(count * log1p(-self.infinite))
        return _Losses(self.interval, self.lowest * count + low, masses, infinite)

    def beside(self, other: "_Losses") -> "_Losses":
        """Return the law of the sum of two independent losses."""
        size = len(self.masses) + len(other.masses) - 1
        length = next_fast_len(size, real=True)
        ours, theirs = (rfft(each.masses, length) for each in (self, other))
        masses = irfft(ours * theirs, length)[:size]
        infinite = self.infinite + other.infinite - self.infinite * other.infinite
        return _Losses(self.interval, self.lowest + other.lowest, masses, infinite)

    def delta_at(self, epsilon: float) -> float:
        """Return the hockey-stick divergence at epsilon."""
        losses = (self.lowest + np.arange(len(self.masses))) * self.interval
        larger = losses > epsilon
        shares = -np.expm1(epsilon - losses[larger])
        return self.infinite + float(self.masses[larger] @ shares)


def _start_curve(start: Claim) -> _Curve:
    match start:
        case GaussianDP(parameters={"mu": mu}):
            reach = min(mu * (mu / 2 + _REACH), _LARGEST)
            return _Curve(lambda epsilon: gaussian_delta(epsilon, mu), -reach, reach)
        case PureDP(parameters={"epsilon": epsilon}):
            return _Curve(start.delta_at, -epsilon, epsilon)
    raise UnsupportedError(f"start must cost a GaussianDP or a PureDP, got {start}")


def _step_curves(
    multiplier: float, rate: float, replaced: Replaced | None
) -> tuple[_Curve, ...]:
    """Return the curves of a step: for a row that leaves, and one that joins.

    If `replaced` is "opposite" it is the one curve of that, the same both ways round.
    """
    m = 1 / multiplier
    most = min(m * (m / 2 + _REACH), _LARGEST)
    high = log1p(rate * expm1(most))
    low = -_mixed(-most, rate)
    if replaced == "opposite":
        high -= _mixed(-min(most + m**2, _LARGEST), rate)
        return (_Curve(lambda e: _opposite(e, m, rate), -high, high),)
    return (
        _Curve(lambda e: _leaves(e, m, rate), -low, high),
        _Curve(lambda e: _joins(e, m, rate), -high, low),
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
    weight = 1 - (1 - rate) * np.expm1(epsilon) / rate  # w/q, right where q is tiny
    possible = weight > 0
    safe = np.where(possible, weight, 1.0)
    inner = epsilon - np.log(safe)
    return np.where(possible, rate * safe * gaussian_delta(inner, m), 0.0)


def _opposite(epsilon: Array, m: float, rate: float) -> Array:
    # In logarithms of |k| and of w, which do not overflow.
    with np.errstate(divide="ignore"):
        log_k = np.log(np.abs(np.expm1(epsilon))) + m**2 / 2 - log(rate)
        log_k += np.log1p(-rate) if rate < 1 else -np.inf
    root = np.logaddexp(2 * log_k, np.log(4.0) + epsilon) / 2
    log_sum = np.logaddexp(log_k, root) - np.log(2.0)
    x = np.where(epsilon > 0, log_sum, epsilon - log_sum) / m
    moved = rate * (ndtr(m - x) - np.exp(epsilon) * ndtr(-m - x))
    delta = moved - (1 - rate) * np.expm1(epsilon) * ndtr(-x)
    return np.asarray(np.clip(delta, 0.0, 1.0))
