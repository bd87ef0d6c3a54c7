r"""GibbsExponential: the exponential mechanism for k components by a Markov chain.

Source of the mechanism: Chaudhuri, Sarwate, Sinha, JMLR 14, 2013, algorithm PPCA, which
its authors ran with the Gibbs sampler of Hoff, *Simulation of the matrix
Bingham-von Mises-Fisher distribution*, JCGS 18, 2009. What is wanted is the law of
`dpaudit.algorithms.subspace.exponential`, k-frames V in R^d with density
proportional to exp(tr V^T S V). Here, in the basis of eigenvectors of S (eigenvalues
s_i), and where `dpaudit.algorithms.subspace.exponential` does not draw exactly
(k = 1, d - 1 and d; if k > d - k it is the complement that is drawn):

1. V is uniform among all k-frames.
2. A sweep: number the coordinates at random, and go through all d (d - 1)/2 pairs of
   them in the order of a round-robin tournament, whose d - 1 or d rounds consist of
   disjoint pairs.
3. For each pair turn the rows V_i, V_j of V in their plane by an angle theta drawn from
   its conditional law: 2 theta is von Mises about the angle of (x, y), with
   concentration |(x, y)|, where x = (s_i - s_j)/2 (|V_i|^2 - |V_j|^2) and
   y = (s_i - s_j) <V_i, V_j>.
4. Output V after `sweeps` sweeps.

Proof that the law wanted is stationary. Turning the rows by theta makes tr V^T S V =
sum s_i |V_i|^2 what it was without the two rows, plus (s_i + s_j)/2 (|V_i|^2 + |V_j|^2)
+ x cos 2 theta + y sin 2 theta. The uniform law does not change under rotations, so
given the orbit of V under the rotations of a plane, which theta is uniform without S,
its density with S is proportional to exp(x cos 2 theta + y sin 2 theta). Step 3 draws
from a conditional law given the orbit, and so leaves the law as it is. The numbering of
step 2 is independent of V.

Convergence. The angles have densities that are bounded away from 0, products of
rotations in coordinate planes reach every rotation, and d(d - 1)/2 sweeps contain every
order of planes: the chain is uniformly ergodic, and from the uniform start approaches
its stationary law at a geometric rate. How fast is not known. Measured, from the
uniform start and from the eigenvectors, for k up to 15, d up to 150, and spectra with
wide, narrow, repeated and decaying eigenvalues: the means of every P_ii, P = V V^T, and
of the utility could not be told from those of the stationary law after 4 to 10 sweeps
where the gaps of S were up to 1e6, and after 20 where one of 1e10 follows k + 1 equal
eigenvalues. (The numbering matters. In a fixed tournament the pairs of one coordinate
lie such that it needs 10 times as many.) The default is 30.

Deviation from Hoff, who draws one column of V at a time given the others. With
eigenvalues that decay, his chain can need hundreds of sweeps: a column that is a
mixture of a sharp and of a vague direction can move by no more than the sharp one lets
it. In the planes of eigenvectors the directions are apart, no draw is ever rejected,
and a sweep costs d^2 k operations, where one over columns takes k eigendecompositions.

Privacy. The stationary law is pure epsilon-DP, and that is the claim. **A finite chain
is not proven to be**: if its law is within total variation eta of the stationary one on
both neighbours, it is (epsilon, (1 + e^epsilon) eta)-DP, and eta is not known. The
start is uniform, so that it says nothing about the data, and the number of sweeps is
public. The planes do depend on the data; this is no matter for the stationary law, but
means that composing the sweeps proves nothing, however few they are. The exact
alternative is `dpaudit.algorithms.subspace.exact_exponential`, for small k. NumPy draws
von Mises angles exactly up to a concentration of 1e6, and as normal ones beyond, which
by then is a difference in total variation of about 1e-7.

**Diagnostics** of the convergence of chains: R-hat and the effective sample size.
Source: Vehtari, Gelman, Simpson, Carpenter, Bürkner, *Rank-normalization, folding, and
localization: an improved R-hat for assessing convergence of MCMC*, Bayesian Analysis
16, 2021, sections 3 and 4.

1. Each chain is split in two halves, so that a drift looks like two chains that differ.
2. Values are replaced by normal scores of their ranks among all S values,
   Phi^-1((rank - 3/8)/(S + 1/4)), so that nothing is asked of moments.
3. R-hat = sqrt((N - 1)/N + B/(N W)), where N is the length of a half, W the mean of the
   variances within halves, and B/N the variance of their means. It is near 1 if all
   halves have one distribution. Differences in spread show in the same of the
   distances from the median, and the larger of the two is returned.
4. The effective sample size is S/tau, tau = 1 + 2 sum rho_t, where the autocorrelation
   rho_t at lag t comes from all halves together: 1 - (W - mean autocovariance)/(W (N -
   1)/N + B/N). The sum ends where the sum of two neighbours, at even and odd lag, which
   is positive for reversible chains, ceases to be so, and these sums are made monotone
   (Geyer 1992).

They can show that chains have not converged, and never that they have.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.subspace.base import uniform_frames
from dpaudit.algorithms.subspace.exponential import MatrixBinghamMechanism
from dpaudit.arrays import Array
from dpaudit.checked import Count
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.validation import check_count, check_matrix

__all__ = ["GibbsExponential"]

_FEWEST_DRAWS = 8


class PlaneRotations:
    """Chains from frames, (size, d, k), whose stationary law is matrix Bingham.

    The eigenvalues of S have any order; its eigenvectors are the basis vectors.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> values = [300.0, 200.0, 100.0, 0.0]
    >>> chains = PlaneRotations(values, uniform_frames(1000, 4, 2, rng=rng))
    >>> chains.sweep(10, rng=rng)
    >>> (chains.frames**2).sum(axis=-1).mean(axis=0).round(1)
    array([1., 1., 0., 0.])
    """

    def __init__(self, values: ArrayLike, frames: Array) -> None:
        self._values = np.asarray(values, dtype=np.float64)
        size, d, _ = frames.shape
        # Rows first: those of a round are then contiguous.
        self._rows = np.moveaxis(frames, 1, 0).copy()
        self._numbers = np.repeat(np.arange(d)[:, np.newaxis], size, axis=1)
        self._order = self._numbers
        self._rounds = tuple(_tournament(d))

    @property
    def frames(self) -> Array:
        """Where the chains are, shape (size, d, k)."""
        ordered = np.empty_like(self._rows)
        np.put_along_axis(ordered, self._order[..., np.newaxis], self._rows, axis=0)
        return np.moveaxis(ordered, 0, 1)

    @property
    def utility(self) -> Array:
        """The utility tr V^T S V, shape (size,)."""
        squares = (self._rows**2).sum(axis=-1)
        return np.asarray((self._values[self._order] * squares).sum(axis=0))

    def sweep(self, count: int, *, rng: Rng) -> None:
        """Move the chains by `count` sweeps, each independently of the others."""
        for _ in range(count):
            numbering = rng.permuted(self._numbers, axis=0)
            self._order = np.take_along_axis(self._order, numbering, axis=0)
            of_rows = numbering[..., np.newaxis]
            self._rows = np.take_along_axis(self._rows, of_rows, axis=0)
            values = self._values[self._order]
            for first, second in self._rounds:
                self._turn(first, second, values[first] - values[second], rng=rng)

    def _turn(
        self,
        first: NDArray[np.int_],
        second: NDArray[np.int_],
        gaps: Array,
        *,
        rng: Rng,
    ) -> None:
        one, two = self._rows[first], self._rows[second]
        x = gaps / 2 * ((one - two) * (one + two)).sum(axis=-1)
        y = gaps * (one * two).sum(axis=-1)
        angle = (np.arctan2(y, x) + rng.vonmises(0.0, np.hypot(x, y))) / 2
        cosine, sine = np.cos(angle)[..., np.newaxis], np.sin(angle)[..., np.newaxis]
        self._rows[first] = cosine * one + sine * two
        self._rows[second] = cosine * two - sine * one


@dataclass(frozen=True, eq=False)
class ChainDiagnostics:
    """What chains say about their own convergence; it depends on the data.

    Parameters
    ----------
    utility : ndarray, shape (chains, sweeps)
        tr V^T A V after each sweep, from the first one on.
    discarded : int
        As many sweeps as a release takes. The two numbers are about those that follow.
    r_hat : float
        See `split_r_hat`.
    effective_sample_size : float
        See `effective_sample_size`.
    """

    utility: Array
    discarded: int
    r_hat: float
    effective_sample_size: float


@dataclass(frozen=True, kw_only=True)
class GibbsExponential(MatrixBinghamMechanism):
    """A basis V from a chain towards the density exp(coefficient tr V^T A V).

    The claim is that of the stationary law; a finite chain comes near it.

    Parameters
    ----------
    sweeps : int
        Public number of sweeps, at least 1. The default is three times what was
        measured to be enough, see the head of this module. Not used where draws are
        exact: n_components = 1, d - 1 or d.

    Examples
    --------
    >>> mechanism = GibbsExponential(n_components=2, epsilon=1.0)
    >>> rows = np.repeat(np.eye(5), [300, 200, 50, 10, 10], axis=0)
    >>> rng = np.random.default_rng(0)
    >>> releases = mechanism.draw(rows, 500, rng=rng)
    >>> (releases**2).sum(axis=-1).mean(axis=0).round(1)
    array([1., 1., 0., 0., 0.])
    >>> mechanism.diagnostics(rows, chains=4, sweeps=500, rng=rng).r_hat < 1.05
    True
    """

    sweeps: Count = 30

    def draw_frames(self, values: Array, k: int, size: int, *, rng: Rng) -> Array:
        chains = PlaneRotations(values, uniform_frames(size, len(values), k, rng=rng))
        chains.sweep(self.sweeps, rng=rng)
        return chains.frames

    def diagnostics(
        self, data: ArrayLike, *, chains: int = 4, sweeps: int = 200, rng: Rng
    ) -> ChainDiagnostics:
        """Return whether chains that go on after a release agree with one another.

        For choosing `sweeps` on data that are not private: the result depends on them.

        Parameters
        ----------
        data : array_like, shape (n, d)
        chains : int
            At least 2, each from a uniform start of its own.
        sweeps : int
            At least 8, after the `self.sweeps` that a release takes.

        Raises
        ------
        InputError
            If an argument is not what it should be.
        UnsupportedError
            If draws are exact (n_components = 1, d - 1 or d): there is no chain.
        """
        chains = check_count("chains", chains, minimum=2)
        sweeps = check_count("sweeps", sweeps, minimum=8)
        moment = self.moment(data)
        exponent, k = self.reduce(moment)
        d = len(exponent)
        if k < 2:
            raise UnsupportedError(
                f"there is no chain to diagnose: draws are exact for n_components = "
                f"{self.n_components} where rows have length {d}"
            )
        values = np.linalg.eigvalsh(exponent)
        state = PlaneRotations(values, uniform_frames(chains, d, k, rng=rng))
        utility = np.empty((chains, self.sweeps + sweeps))
        for column in utility.T:
            state.sweep(1, rng=rng)
            column[:] = state.utility
        utility /= self.coefficient
        if k < self.n_components:
            # What is drawn is the complement, with the opposite sign.
            utility += np.trace(moment)
        settled = utility[:, self.sweeps :]
        return ChainDiagnostics(
            utility=utility,
            discarded=self.sweeps,
            r_hat=split_r_hat(settled),
            effective_sample_size=effective_sample_size(settled),
        )


def _tournament(count: int) -> Iterator[tuple[NDArray[np.int_], NDArray[np.int_]]]:
    """Yield rounds of disjoint pairs, which are all pairs of `count` numbers."""
    # The circle method: one number stays, the others move on; a dummy makes them even.
    seats = np.arange(count + count % 2)
    for _ in range(len(seats) - 1):
        first, second = seats[: len(seats) // 2], seats[: len(seats) // 2 - 1 : -1]
        real = (first < count) & (second < count)
        yield first[real], second[real]
        seats[1:] = np.roll(seats[1:], 1)


def split_r_hat(traces: ArrayLike) -> float:
    """Return the rank-normalised split R-hat of chains.

    Parameters
    ----------
    traces : array_like, shape (chains, draws)
        Finite; at least 1 chain of at least 8 draws.

    Returns
    -------
    float
        About 1 for chains that have converged, where 1.01 is usually asked for;
        infinite for chains that stand still at different values, and NaN where all
        values are equal, which says nothing.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> chains = rng.standard_normal((4, 1000))
    >>> round(split_r_hat(chains), 2)
    1.0
    >>> round(split_r_hat(chains + np.arange(4)[:, np.newaxis]), 1)
    1.6
    """
    halves = _halves(traces)
    folded = np.abs(halves - np.median(halves))
    # A NaN wins: where all are equally far from the median, the ranks must speak.
    bulk, spread = (_r_hat(_normal_scores(values)) for values in (halves, folded))
    return float(np.fmax(bulk, spread))


def effective_sample_size(traces: ArrayLike) -> float:
    """Return how many independent draws say as much about the bulk of the values.

    Parameters
    ----------
    traces : array_like, shape (chains, draws)
        As for `split_r_hat`.

    Returns
    -------
    float
        At most S log10(S) for S values in all (chains that alternate say more than
        independent draws); NaN where all values are equal.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.standard_normal((4, 2000))
    >>> 0.9 < effective_sample_size(noise) / noise.size < 1.1
    True
    """
    scores = _normal_scores(_halves(traces))
    count, length = scores.shape
    within, between = _variances(scores)
    total = within * (length - 1) / length + between
    if total == 0:
        return float("nan")
    rho = 1 - (within - _autocovariances(scores).mean(axis=0)) / total
    rho[0] = 1.0
    pairs = rho[: length - length % 2].reshape(-1, 2).sum(axis=1)
    positive = pairs > 0
    end = len(pairs) if positive.all() else int(np.argmin(positive))
    tau = 2 * np.minimum.accumulate(pairs[:end]).sum() - 1
    size = count * length
    return float(size / max(tau, 1 / np.log10(size)))


def _halves(traces: ArrayLike) -> Array:
    """Return the halves of the chains as rows; the middle of an odd number is left."""
    traces = check_matrix("traces", traces, min_rows=1)
    draws = traces.shape[1]
    if draws < _FEWEST_DRAWS:
        raise InputError(
            f"traces must have at least {_FEWEST_DRAWS} draws in each chain, "
            f"got {draws}"
        )
    half = draws // 2
    return np.concatenate([traces[:, :half], traces[:, -half:]])


def _normal_scores(values: Array) -> Array:
    from scipy.stats import rankdata  # slow to import

    ranks = rankdata(values).reshape(values.shape)
    return np.asarray(ndtri((ranks - 0.375) / (values.size + 0.25)))


def _variances(scores: Array) -> tuple[float, float]:
    """Return W and B/N."""
    within = scores.var(axis=1, ddof=1).mean()
    return float(within), float(scores.mean(axis=1).var(ddof=1))


def _r_hat(scores: Array) -> float:
    length = scores.shape[1]
    within, between = _variances(scores)
    if within == 0:
        return float("inf") if between > 0 else float("nan")
    return float(np.sqrt((length - 1) / length + between / within))


def _autocovariances(scores: Array) -> Array:
    """Return those of each row at all lags, divided by the length less one."""
    length = scores.shape[1]
    centred = scores - scores.mean(axis=1, keepdims=True)
    # Padding with zeros keeps the ends apart.
    spectrum = np.abs(np.fft.rfft(centred, 2 * length, axis=1)) ** 2
    return np.asarray(np.fft.irfft(spectrum, axis=1)[:, :length] / (length - 1))
