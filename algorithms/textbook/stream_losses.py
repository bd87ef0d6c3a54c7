r"""The exact law of a stream of answers against a noisy threshold, in logarithms.

With b2 for the unit of all counts and the notation of
`dpaudit.algorithms.textbook.sparse_vector`, the codes c_j in {below, above, not
reached} of a stream have the probability

.. math:: \int g(s) \, ds, \quad g(s) = \tfrac{r}{2} e^{-r |s - T|}
          \prod_{below} F(s - x_j) \prod_{above} (1 - F(s - x_j)), \quad r = b_2/b_1,

F(t) = e^t/2 for t < 0, else 1 - e^-t/2. All terms are positive, so that a sum of parts
with small *relative* errors has a small relative error, and the privacy loss of two
such sums an absolute one that is as small. Between the break points T and x_j each
factor is an exponential, or 1 minus half of one. The parts:

- *Both ends.* With m the first break point and u = e^(s - m), g du/u is u^(r - 1) times
  a polynomial in u of degree at most k, whatever the codes. Gauss's rule for that
  weight with k/2 + 1 nodes is exact. The upper end is its mirror image.
- *Panels.* For a factor, and hence by Leibniz for g with L = r + k, the i-th derivative
  is at most L^i g. On a panel of length h, n-point Gauss-Legendre quadrature then has
  the relative error e^(hL) (hL)^(2n) (n!)^4/((2n + 1) ((2n)!)^3) at most: for hL <= 12
  and n = 16 that is 2e-15.
- *Long gaps.* More than 40 away from both ends of a gap each factor is an exponential
  or 1, up to e^-40: so is g, and its integral is the length times the logarithmic mean
  of the values at the ends.

**Values that were compared** (SVT3). A value v tells that s <= v, so a stream with
values v_j has the density prod f(v_j - x_j) G(min v), f the density of the query noise
and G(v) the integral up to v of g without the factors of answers above. G is tabulated
once for each pattern of answers. Below the first break point g is an exponential, and
G(v) = g(v)/(r + number below). Beyond, on a cell with left end a, (G(v) - G(a))/G(a) is
the integral of the polynomial of degree 11 that equals g/G(a) at 12 Gauss nodes. Its
error: on the disc of radius R about a, a factor with x_j <= a is at most
exp(rho_j (e^R - 1)) times its value at a, rho_j = 1/(2 e^(a - x_j) - 1); one with
x_j > a, at most e^R times. Let z = 1 + r + the sum of rho_j (of 1 for x_j > a). By
Cauchy's estimate with e^R = 1 + n/z, a cell of length at most 1/(4z) has, for n = 12,
an interpolation error of at most (e/(4 log(1 + n)))^n/binomial(2n, n) = 5e-14 of g. And
log g slopes by at most 3.2 z on [a - 1/z, a], so that G(a) >= 0.3 g(a)/z. Together,
log G is exact to 1e-13. In long gaps it has a closed form.

What remains is rounding: some 1e-16 times the sizes of the logarithms that are added,
which are k times the range of the counts, in units of b2, at most. A release has the
same loss, to the last bit, in whatever batch it comes: an event {loss >= t} must not
split an atom by the order in which a sum was taken.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray
from scipy.special import exprel

from dpaudit.algorithms.shared.bases import slices
from dpaudit.arrays import Array

__all__ = ["StreamLaw"]

Codes = NDArray[np.intp]
Mask = NDArray[np.bool_]

BELOW, ABOVE, UNREACHED = 0, 1, 2
_FAR = 40.0
_STEEPEST = 12.0  # hL of a panel
_FINENESS = 4.0  # cells are at most 1/(4z) long
_CHUNK = 2**19  # numbers in one array of a computation


def unit_rule(count: int) -> tuple[Array, Array]:
    """Return the nodes and weights of Gauss and Legendre on [0, 1], shape (count,)."""
    nodes, weights = legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


def _integral_coefficients(count: int) -> Array:
    """Return what takes values at the nodes of a `unit_rule` to an integral from 0.

    Of the polynomial through the values, as a polynomial in 2t - 1, t in [0, 1]; shape
    (count, count + 1).
    """
    nodes, weights = unit_rule(count)
    degrees = np.arange(count)
    to_series = legendre.legvander(2 * nodes - 1, count - 1)
    to_series *= weights[:, np.newaxis] * (2 * degrees + 1)
    integrals = np.zeros((count, count + 1))
    for row, series in zip(integrals, np.eye(count), strict=True):
        integral = legendre.leg2poly(legendre.legint(series, lbnd=-1)) / 2
        row[: len(integral)] = integral
    return np.asarray(to_series @ integrals)


@lru_cache(maxsize=64)
def end_rule(count: int, ratio: float) -> tuple[Array, Array]:
    """Return nodes u and log(weight u^-ratio) of the rule for u^(ratio - 1) on [0, 1].

    Gauss's, shape (count,): exact for u^(ratio - 1) times polynomials of degree
    2 count - 1. By the eigenvalues of the Jacobi matrix (Golub, Welsch, *Calculation of
    Gauss quadrature rules*, 1969).
    """
    power, place = ratio - 1, np.arange(1.0, count)
    twice = 2 * place + power
    middle = [power / (power + 2), *(power**2 / (twice * (twice + 2)))]
    off = place * (place + power) / (twice * np.sqrt(twice**2 - 1))
    nodes, vectors = np.linalg.eigh(np.diag(np.add(middle, 1) / 2) + np.diag(off, -1))
    with np.errstate(divide="ignore"):  # of weights that are too small for a float
        log_weights = np.log(vectors[0] ** 2 / ratio)
    return nodes, log_weights - ratio * np.log(nodes)


def _log_sum(logs: Array) -> Array:
    """Return the logarithm of the sum over the last axis."""
    top = logs.max(axis=-1, keepdims=True)
    return np.asarray(top[..., 0] + np.log(np.exp(logs - top).sum(axis=-1)))


class Pieces(NamedTuple):
    """Intervals, by their ends, shape (m,) each."""

    left: Array
    right: Array

    def cut(self, fineness: Array) -> "Pieces":
        """Return the pieces cut into equal ones, at most 1/fineness long."""
        lengths = self.right - self.left
        counts = np.ceil(lengths * fineness).astype(np.intp)
        edges = np.repeat(self.left, counts)
        steps = np.repeat(lengths / np.maximum(counts, 1), counts)
        places = np.arange(len(edges)) - np.repeat(np.cumsum(counts) - counts, counts)
        return Pieces(edges + places * steps, edges + (places + 1) * steps)

    def nodes(self, on_unit: Array) -> Array:
        """Return the nodes of a rule on each piece, one piece after the other."""
        lengths = (self.right - self.left)[:, np.newaxis]
        return (self.left[:, np.newaxis] + lengths * on_unit).ravel()

    def log_weights(self, weights: Array) -> Array:
        """Return the log-weights of the rule."""
        return np.log(np.outer(self.right - self.left, weights)).ravel()

    def log_of_exponential(self, at_left: Array, at_right: Array) -> Array:
        """Return the log-integral over each piece of an exponential, by its ends."""
        mean = exprel(-np.abs(at_right - at_left)) * (self.right - self.left)
        return np.asarray(np.maximum(at_left, at_right) + np.log(mean))


_PANEL, _PANEL_WEIGHTS = unit_rule(16)
_CELL, _CELL_WEIGHTS = unit_rule(12)
_INTEGRAL = _integral_coefficients(12)


@dataclass(frozen=True, eq=False)
class StreamLaw:
    """The law of a stream of answers, exact counts x_j, that share a noisy threshold.

    The scales of the noise are b1 and b2, > 0.
    """

    answers: Array
    threshold: float
    threshold_scale: float
    query_scale: float

    def log_mass(self, codes: Codes) -> Array:
        """Return the log-probability of each row of codes, (count, k) -> (count,)."""
        first, last = self._breaks[[0, -1]]
        u, log_weights = end_rule(len(self.answers) // 2 + 1, self._ratio)
        near, far = self._gaps
        slope = self._ratio + len(self.answers)
        panels = near.cut(np.full(len(near.left), slope / _STEEPEST))
        at = np.concatenate(
            [first + np.log(u), last - np.log(u), panels.nodes(_PANEL), *far]
        )
        log_weights = np.concatenate(
            [log_weights, log_weights, panels.log_weights(_PANEL_WEIGHTS)]
        )
        total = np.empty(len(codes))
        for part in slices(len(codes), _CHUNK // len(at)):
            logs = self._log_integrand(codes[part], at)
            parts, ends = np.split(logs, [len(log_weights)], axis=1)
            parts += log_weights
            gaps = far.log_of_exponential(*np.split(ends, 2, axis=1))
            total[part] = _log_sum(np.hstack([parts, gaps]))
        return total

    def log_mass_up_to(self, values: Array, codes: Codes, of: Codes) -> Array:
        """Return log G(v) of each value, for the answers below in its pattern.

        v is infinite where nothing was above; `of` says which row of codes is its own.
        """
        cells, far = self._cells
        at = np.concatenate([cells.nodes(_CELL), *cells, self._breaks[:1]])
        codes = np.where(codes == BELOW, BELOW, UNREACHED)
        result = np.empty(len(values))
        scaled = values / self.query_scale
        for part in slices(len(codes), _CHUNK // len(at)):
            logs = self._log_integrand(codes[part], at)
            table = _Cumulative(cells, far, self._ratio, codes[part], logs)
            chosen = np.flatnonzero((of >= part.start) & (of < part.stop))
            result[chosen] = table.look_up(scaled[chosen], of[chosen] - part.start)
        return result

    @property
    def _ratio(self) -> float:
        return self.query_scale / self.threshold_scale

    @cached_property
    def _places(self) -> Array:
        return self.answers / self.query_scale

    @cached_property
    def _breaks(self) -> Array:
        return np.unique([self.threshold / self.query_scale, *self._places])

    @cached_property
    def _gaps(self) -> tuple[Pieces, Pieces]:
        """The pieces between break points, and middles of gaps that are long."""
        left, right = self._breaks[:-1], self._breaks[1:]
        long = right - left > 2 * _FAR
        starts = np.where(long, left + _FAR, right)
        stops = np.where(long, right - _FAR, right)
        near = Pieces(
            np.concatenate([left, stops[long]]), np.concatenate([starts, right[long]])
        )
        return near, Pieces(starts[long], stops[long])

    @cached_property
    def _cells(self) -> tuple[Pieces, Mask]:
        """The cells from the first break point on, and which are middles of gaps."""
        near, far = self._gaps
        last = self._breaks[-1:]
        # Beyond, what is left of g is an exponential of rate r, and less than e^-40.
        reach = last + _FAR * max(1.0, 1 / self._ratio)
        near = Pieces(np.append(near.left, last), np.append(near.right, reach))
        near = near.cut(np.ones(len(near.left)))
        tails = np.exp(-np.maximum(near.left - self._places[:, np.newaxis], 0.0))
        slope = 1 + self._ratio + (tails / (2 - tails)).sum(axis=0)
        near = near.cut(_FINENESS * slope)
        left = np.concatenate([near.left, far.left])
        order = np.argsort(left)
        right = np.concatenate([near.right, far.right])
        return Pieces(left[order], right[order]), order >= len(near.left)

    def _log_integrand(self, codes: Codes, at: Array) -> Array:
        """Return log g of each row of codes at each point, shape (count, N)."""
        noise = np.abs(at - self.threshold / self.query_scale)
        logs = np.tile(log(self._ratio / 2) - self._ratio * noise, (len(codes), 1))
        for place, column in zip(self._places, codes.T, strict=True):
            beyond = at - place
            factors = [_log_cdf(beyond), _log_cdf(-beyond), np.zeros_like(at)]
            logs += np.array(factors)[column]
        return logs


class _Cumulative:
    """Tables of log G on all cells, for some patterns of answers."""

    def __init__(
        self, cells: Pieces, far: Mask, ratio: float, codes: Codes, logs: Array
    ) -> None:
        inside, ends = np.split(logs[:, :-1], [len(far) * len(_CELL)], axis=1)
        inside = inside.reshape(len(codes), len(far), len(_CELL))
        lengths = cells.right - cells.left
        parts = np.log(lengths) + _log_sum(inside + np.log(_CELL_WEIGHTS))
        at_left, at_right = np.split(ends, 2, axis=1)
        parts = np.where(far, cells.log_of_exponential(at_left, at_right), parts)
        # Of the exponential that g is below the first break point.
        rate = ratio + np.count_nonzero(codes == BELOW, axis=1)
        below = logs[:, -1] - np.log(rate)
        sums = np.logaddexp.accumulate(np.column_stack([below, parts]), axis=1)[:, :-1]
        inside[:, far] = -np.inf
        shares = np.exp(inside - sums[..., np.newaxis]) * lengths[:, np.newaxis]
        # One product of a fixed shape per pattern: the same for every batch.
        shares = np.moveaxis(shares @ _INTEGRAL, 2, 0)
        self._cells, self._far, self._rate = cells, far, rate
        self._sums, self._at_left = sums, at_left
        self._rise = (at_right - at_left) / lengths
        self._shares = np.ascontiguousarray(shares).reshape(len(shares), -1)

    def look_up(self, values: Array, of: Codes) -> Array:
        """Return log G of values, shape (size,), given the pattern of each."""
        left, right = self._cells
        cell = np.maximum(np.searchsorted(left, values, side="right") - 1, 0)
        entry = of * len(left) + cell
        start, end = left[cell], right[cell]
        place = np.clip((2 * values - start - end) / (end - start), -1.0, 1.0)
        share = self._shares[-1][entry]
        for coefficients in self._shares[-2::-1]:
            share *= place
            share += coefficients[entry]
        result = self._sums.ravel()[entry] + np.log1p(share)
        result += self._rate[of] * np.minimum(values - left[0], 0.0)
        far = np.flatnonzero(self._far[cell])
        if len(far):
            entry, way = entry[far], values[far] - start[far]
            rise = self._rise.ravel()[entry] * way
            part = self._at_left.ravel()[entry] + np.maximum(rise, 0.0)
            with np.errstate(divide="ignore"):  # the way may be 0
                part += np.log(way * exprel(-np.abs(rise)))
            result[far] = np.logaddexp(self._sums.ravel()[entry], part)
        return result


def log_laplace_interval(low: Array, high: Array, *, scale: float) -> Array:
    """Return log P(low < Lap(scale) <= high), -inf where the interval is empty."""
    flip = low > 0  # the left tail is the one that floats resolve
    low, high = np.where(flip, -high, low) / scale, np.where(flip, -low, high) / scale
    across = -(np.expm1(np.minimum(low, 0.0)) + np.expm1(-np.maximum(high, 0.0)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # of empty
        inside = high + np.log(-np.expm1(low - high))
        logs = np.where(high > 0, np.log(across), inside) - log(2)
    return np.where(low < high, logs, -np.inf)


def _log_cdf(at: Array) -> Array:
    """Return log F of the standard Laplace distribution."""
    return np.where(at < 0, at - log(2), np.log1p(-np.exp(-np.abs(at)) / 2))
