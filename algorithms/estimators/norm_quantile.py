r"""A private quantile of the lengths of rows: the norm that a private PCA clips to.

The norms that may be chosen are public: g_j = 2^(-128 + j/4), j = 0, ..., 1024, from
the least single-precision numbers to the largest, in steps of a quarter of an octave.
B(j) is the number of rows no longer than g_j, n that of all rows, h(n) the number of
rows that are to be no longer: q n for the quantile that is asked for (`quantile`), or
max(n/2, 0.8 n - s) if none is, with s as below: the median of few rows, and of many
more. There noise is less than what a clip may turn, where rows are not elliptical.

1. (low, high) = (0, 1024).
2. Ten times: m = (low + high)/2; release y = B(m) - h(n) + noise; high = m if
   y >= -s, s the deviation of the noise, and else low = m.
3. The norm is g_high. It is post-processing, as is s: of few rows noise decides, and
   a norm that is too short costs less than one that is too long
   (`dpaudit.algorithms.estimators.private_pca`: directions are its limit).

**Sensitivity.** Whatever m is, a row adds 1 - q to y if it is no longer than g_m, and
-q else. ADD_REMOVE: y moves by at most Delta = max(q, 1 - q); by that in all ten steps
if the row is of zeros (q <= 1/2), or longer than all g_j. Where no quantile is asked
for, s is a public number, so h is the larger of two lines, and grows with each row by
from 1/2 to 0.8: Delta = 0.8, in all ten steps if the row is longer than all g_j, and
there are s/0.3 others or more. REPLACE_ONE: n is public, so by Delta = 1; in all ten
steps if a row of zeros becomes one longer than all g_j.

**Privacy.** Given the answers before it, m is one fixed number, the same for both of
two neighbours. Normal noise of deviation sqrt(10) Delta/mu makes each answer
mu/sqrt(10)-GDP, and all ten mu-GDP (Dong, Roth, Su, *Gaussian differential privacy*,
JRSS B 2022, Corollary 3.3, which allows each mechanism to depend on the outputs before
it); Laplace noise of scale 10 Delta/epsilon makes each (epsilon/10)-DP, and all ten
epsilon-DP (Dwork, Roth 2014, Theorem 3.16). Both are tight: on the pairs above y moves
by Delta in each step, so the ten answers are one Gaussian shift by mu, and where all
ten lie on the outer sides the losses of Laplace noise add up to epsilon. What follows
may use the norm as a public one, at the price of composition.

Rows are read once, and kept as the numbers of those in each step of the grid. A row
that is longer than the last norm is counted there, and clipped to what is released.

Sources: a search by noisy comparisons is folklore (for quantiles: Smith, *Privacy-
preserving statistical estimation with optimal convergence rates*, STOC 2011, by the
exponential mechanism; Durfee, *Unbounded differentially private quantile and maximum
estimation*, NeurIPS 2023, by the sparse vector technique). Noisy comparisons compose
with Gaussian noise without loss, which is why they are taken here. That clipping far
below the largest length helps covariances is in Dong, Liang, Yi, *Differentially
private covariance revisited*, NeurIPS 2022, which choose a norm by the sparse vector
technique.
"""

from abc import abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.shared.bases import (
    Batched,
    GaussianSteps,
    Rng,
    Run,
    Transcribed,
    Values,
    enough_rows,
    laplace_noise,
)
from dpaudit.algorithms.shared.constructors import GaussianCalibrated, PureCalibrated
from dpaudit.arrays import Array
from dpaudit.blocks import Rows
from dpaudit.claims import Claim
from dpaudit.gram import prepared
from dpaudit.neighbours import Neighbouring, Pair, Relation
from dpaudit.validation import Checked, Fraction, Positive, check_count, check_length

__all__ = ["GaussianNormQuantile", "LaplaceNormQuantile"]

_STEPS = 10
_LEAST, _MOST = 0.5, 0.8  # quantiles, where none is asked for
_PLACES = np.arange(2**_STEPS + 1)
NORMS: Array = np.ldexp(np.exp2(_PLACES % 4 / 4), _PLACES // 4 - 128)
"""The norms that may be chosen, but the first one."""


@dataclass(frozen=True, kw_only=True)
class NormQuantile(Transcribed, Batched[Rows], Checked):
    """Ten noisy comparisons; a release is a norm, of shape ().

    A transcript has the answers as ``steps``, shape (size, 10).

    Parameters
    ----------
    claim : Claim
        What is promised under `relation`.
    relation : Relation
    quantile : float or None
        The share of rows that are to be no longer than the norm, in (0, 1). None: from
        1/2 to 0.8, the more the more rows there are.
    """

    claim: Claim
    relation: Neighbouring = Relation.ADD_REMOVE
    quantile: Fraction | None = 0.5

    unit_deviation: ClassVar[float]
    """The standard deviation of the noise, over its scale."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """The scale of the noise of one comparison, in rows."""

    @abstractmethod
    def noise(self, size: int, rng: Rng) -> Array:
        """Return `size` numbers of that noise."""

    @property
    def deviation(self) -> float:
        """The standard deviation of that noise, in rows."""
        return self.unit_deviation * self.scale

    @property
    def sensitivity(self) -> float:
        """How far one row moves one comparison at most."""
        if self.relation is Relation.REPLACE_ONE:
            return 1.0
        level = _MOST if self.quantile is None else self.quantile
        return max(level, 1 - level)

    def wanted(self, n: float) -> float:
        """Return how many of n rows are to be no longer than the norm, h(n)."""
        if self.quantile is None:
            return max(_LEAST * n, _MOST * n - self.deviation)
        return self.quantile * n

    def draw(self, data: Rows, size: int, *, rng: Rng) -> Array:
        return self._run(data, check_count("size", size, minimum=0), rng)[2]

    def draw_repeated(self, data: Rows, times: float, size: int, *, rng: Rng) -> Array:
        """Return norms of data in which each row stands for so many, shape (size,)."""
        return self._run(data, size, rng, times=times)[2]

    def norm(self, data: Rows, centre: Array | None, *, rng: Rng) -> float:
        """Return the norm of one release on the rows about a centre."""
        return float(self._run(data, 1, rng, centre)[2][0])

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair on which every comparison moves as far as it can.

        A row of zeros joins another one, or (for a quantile above 1/2) one longer than
        all norms does; or that one takes the place of the other. Where no quantile is
        asked for, it joins so many of zeros that it counts 0.8. The default d is 1.
        """
        rows = np.zeros((2, check_length(dimension, 1)))
        rows[1, 0] = 2 * NORMS[-1]
        if self.relation is Relation.REPLACE_ONE:
            return Pair(rows[:1], rows[1:], self.relation)
        if self.quantile is None:
            copies = enough_rows(self.deviation // (_MOST - _LEAST) + 1)
            rows = np.concatenate([np.zeros((copies, rows.shape[1])), rows[1:]])
            return Pair(rows[:-1], rows, self.relation)
        joins = rows[:1] if self.quantile <= 0.5 else rows[1:]
        return Pair(rows[:1], np.concatenate([rows[:1], joins]), self.relation)

    def _run(
        self,
        data: Rows,
        size: int,
        source: Rng | Values,
        centre: Array | None = None,
        times: float = 1,
    ) -> Run:
        """Return what any such mechanism does; each row may stand for so many."""
        below = times * np.cumsum(counted(data, centre))
        means, seen = np.zeros((2, size, _STEPS))
        low, high = np.zeros(size, dtype=np.intp), np.full(size, len(NORMS) - 1)
        for step in range(_STEPS):
            middle = (low + high) // 2
            means[:, step] = below[middle] - self.wanted(below[-1])
            if isinstance(source, np.random.Generator):
                seen[:, step] = means[:, step] + self.noise(size, source)
            else:
                seen[:, step] = source["steps"][:, step]
            enough = seen[:, step] >= -self.deviation
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return {"steps": seen}, {"steps": means}, NORMS[high]


def counted(data: Rows, centre: Array | None = None) -> NDArray[np.intp]:
    """Return how many rows there are up to each norm, and above the one before."""
    counts = np.zeros(len(NORMS), dtype=np.intp)
    for block, rows in prepared(data, None, centre):
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        if not np.isfinite(lengths).all():  # of huge rows squares may overflow
            block.check_finite()
        places = np.searchsorted(NORMS, lengths).clip(max=len(NORMS) - 1)
        counts += np.bincount(places, minlength=len(NORMS))
    return counts


@dataclass(frozen=True, kw_only=True)
class GaussianNormQuantile(GaussianSteps, NormQuantile, GaussianCalibrated):
    """Normal noise, mu-GDP."""

    mu: Positive

    unit_deviation = 1.0

    @property
    def scale(self) -> float:
        return self.sensitivity * sqrt(_STEPS) / self.mu

    def noise(self, size: int, rng: Rng) -> Array:
        return self.scale * rng.standard_normal(size)

    @property
    def step_scales(self) -> dict[str, float]:
        return {"steps": self.scale}


@dataclass(frozen=True, kw_only=True)
class LaplaceNormQuantile(NormQuantile, PureCalibrated):
    """Laplace noise, epsilon-DP."""

    epsilon: Positive

    unit_deviation = sqrt(2)

    @property
    def scale(self) -> float:
        return self.sensitivity * _STEPS / self.epsilon

    def noise(self, size: int, rng: Rng) -> Array:
        return laplace_noise(size, self.scale, rng=rng)

    def transcript_loss(self, transcript: Values, data: Rows, other: Rows) -> Array:
        """Return the exact loss of all answers, shape (size,)."""
        near, far = (
            np.abs(transcript["steps"] - means["steps"]).sum(axis=1)
            for means in (self.step_means(transcript, rows) for rows in (data, other))
        )
        return np.asarray((far - near) / self.scale)
