r"""How Algorithm 5 divides its privacy: d histograms, then a Gaussian mean.

Source: Liu et al., NeurIPS 2022, Algorithm 5.

What one replaced row does. In each of the d histograms it moves from one bin to
another: 2 d counts move by 1, and those of non-empty bins have noise Lap(b). Given the
bins found, the mean of m truncated vectors moves by at most Delta in l2 norm, 2 W
sqrt(d)/m in a box and 2 W/m in a ball (`dpaudit.algorithms.streaming.mean_estimation`),
and has noise N(0, (Delta/mu)^2).

**Theorem.** Let all that be done `uses` times on the same rows, each time in knowledge
of all outputs before, with N = uses d histograms, each of which shows a lonely row with
probability q (`CountNoise.escape`), and l = -log(1 - q). With

.. math:: \mu_L = -2 \, \Phi^{-1}(e^{-1/(2 b)}/2), \qquad
          \mu_*^2 = 2 N \mu_L^2 + \text{uses} \, \mu^2,

the outputs together are (epsilon, delta)-DP under REPLACE_ONE for

.. math:: \delta = N q + \delta_{gauss}(\epsilon - N l; \mu_*).

Proof.

1. Lap(b) against its shift by 1 is mu_L-GDP. Its trade-off function is f(a) =
   e^(-1/b)/(4 a) between the points (e^(-1/b)/2, 1/2) and (1/2, e^(-1/b)/2), and
   straight from there to (0, 1) and (1, 0). On the Gaussian one, (Phi(-x),
   Phi(x - mu)), the product of both coordinates is log-concave in x and symmetric about
   x = mu/2, so at most Phi(-mu/2)^2, which for mu = mu_L is e^(-1/b)/4: it lies below f
   in the middle. It passes below the end points of the straight pieces and through
   (0, 1) and (1, 0), and is convex: it lies below those as well.
2. Adaptive composition (Dong, Roth, Su, *Gaussian differential privacy*, JRSS B 2022,
   Theorem 3.2): where no bin is empty on one side only, the losses of 2 N counts and
   `uses` means together are mu_*-GDP.
3. Let D and D' be the sides, with D first. A bin of one row on D that is empty on D' is
   shown with probability q; there is at most one in each histogram, so none is shown
   but with probability N q. Where none is shown, such bins have the likelihood ratio
   1 - q < 1; bins of one row on D' that are empty on D, one in each histogram at most,
   have the ratio 1/(1 - q). So there the ratio is at most e^(N l) times that of counts
   and means as in step 2, and events have P <= delta_gauss(epsilon - N l) +
   e^epsilon P'. QED.

**Normal noise on the counts** (`GaussianSplit`). With N(0, b^2) in place of Lap(b), and
mu_L = 1/b, the theorem holds as it stands: step 1 is then the definition of mu-GDP, and
steps 2 and 3 look at nothing but mu_L and q. At the same mu_L = 0.01 the deviation is
100, that of Laplace noise 177, and its tails are lighter: thresholds are three to four
times lower.

`CalibratedSplit` gives the thresholds the share `escape_share` of delta (N q, and
N l <= epsilon/2 besides, which binds where delta is not far below epsilon), takes the
largest mu_* for the rest, and gives the histograms the share `histogram_share` of
mu_*^2. `PublishedSplit` has the paper's: each histogram is (epsilon/(4 sqrt(2 d log(4/
delta))), delta/(4 d))-DP, all of them (epsilon/2, delta/2)-DP by advanced composition,
and so is the mean, by the classical Gaussian mechanism.

The constant of the mean. The window is +-W about a bin's edge for W = 3 K sqrt(Lambda)
log^a(m d/zeta), so a coordinate's range is 2 W = 6 K sqrt(Lambda) log^a(...), and the
classical noise for (epsilon/2, delta/2) is

.. math:: \frac{2 W \sqrt{d}}{m} \cdot \frac{\sqrt{2 \log(2.5/\delta)}}{\epsilon/2}
   = 12 \, K \sqrt\Lambda \, \log^a(m d/\zeta) \,
     \frac{\sqrt{2 d \log(2.5/\delta)}}{\epsilon \, m}.

**Equation 14 of the paper prints 8 for the 12**: the noise for a window of +-2 K ...,
so the mean has 3/2 of the mu that it should have. For epsilon < 0.9, the range of Lemma
6.2, that does not break the promise of Algorithm 5 as a whole: by the theorem above it
holds, because the classical Gaussian mechanism, advanced composition and adding up
leave more than that to spare. The slack ends at large epsilon: at delta = 1e-5 the mean
alone breaks the promise from epsilon = 33.6 on (with 12: from 115.3 on). And where
nothing is left to spare, as in `CalibratedSplit`, the 8 breaks it at every epsilon and
delta; that is the planted bug `SplitWithConstant8`, noise for a window of +-2 K ...,
where it is +-3. On the pair of `MeanEstimation.worst_case` it is the mean that differs,
by 3/2 of the mu that it was given. In `mean_with_constant_8` the histograms,
which do not differ, have a twentieth of the budget, so that the mean has nearly all of
it: 0.729 in place of 0.486 at (2, 1e-5), where delta is then 1.7e-3.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from math import erf, expm1, log, log1p, nextafter, sqrt

from scipy.special import log_ndtr

from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.streaming.thresholded_counts import (
    CountNoise,
    GaussianCounts,
    ThresholdedCounts,
)
from dpaudit.gaussian import classical_mu, gaussian_epsilon, gaussian_mu
from dpaudit.validation import (
    Checked,
    Count,
    Fraction,
    Positive,
    check_count,
    check_positive,
)

__all__ = [
    "CalibratedSplit",
    "GaussianSplit",
    "PublishedSplit",
    "Split",
    "SplitWithConstant8",
]

RANGE_CONSTANT = 12.0
"""What the paper's constant must be for its window; equation 14 has 8."""


@dataclass(frozen=True)
class MeanNoise(Checked):
    """The noise of one use of Algorithm 5.

    Parameters
    ----------
    counts : ThresholdedCounts
        Of each of the d histograms.
    mu : float
        The l2 sensitivity of the mean over the deviation of its noise, as far as the
        calibration knows.
    """

    counts: ThresholdedCounts
    mu: Positive


def laplace_scale(mu: float) -> float:
    """Return the b for which Lap(b) hides a shift by 1 as well as mu-GDP asks."""
    half = check_positive("mu", mu) / 2
    small = log1p(-erf(half / sqrt(2))) if half < 1 else log(2) + log_ndtr(-half)
    return float(-0.5 / small)


@dataclass(frozen=True)
class Split(Checked, ABC):
    """How Algorithm 5 divides (epsilon, delta), the promise."""

    epsilon: Positive
    delta: Fraction

    @abstractmethod
    def noise(self, dimension: int) -> MeanNoise:
        """Return the noise for vectors of length d."""

    @abstractmethod
    def budget(self, name: str) -> BudgetTree:
        """Return what the histograms and the mean cost, under that name."""


@dataclass(frozen=True)
class CalibratedSplit(Split):
    """The largest proven mu, as the head of this module says.

    Parameters
    ----------
    epsilon, delta : float
        The promise, for all uses together.
    histogram_share : float
        Of mu_*^2, in (0, 1).
    escape_share : float
        Of delta, in (0, 1).
    uses : int
        How often Algorithm 5 reads the same rows.

    Examples
    --------
    >>> noise = CalibratedSplit(1.0, 1e-6).noise(20)
    >>> round(noise.mu, 3), round(noise.counts.scale), round(noise.counts.threshold)
    (0.211, 75, 1383)
    """

    histogram_share: Fraction = 0.2
    escape_share: Fraction = 0.1
    uses: Count = 1

    def noise(self, dimension: int) -> MeanNoise:
        return _calibrated(self, check_count("dimension", dimension))

    def _noise(self, dimension: int) -> MeanNoise:
        histograms = self.uses * dimension
        escape = self._escape(histograms)
        total = self._total_mu(histograms, escape)
        each = sqrt(self.histogram_share / (2 * histograms)) * total
        return MeanNoise(
            self._counts(each, escape),
            sqrt((1 - self.histogram_share) / self.uses) * total,
        )

    def _counts(self, mu: float, escape: float) -> ThresholdedCounts:
        """Return the noise that hides one row of a bin as well as mu-GDP asks."""
        return CountNoise.of(laplace_scale(mu), escape)

    def budget(self, name: str) -> BudgetTree:
        escape = self._escape(1)
        total = self._total_mu(1, escape)
        parts, but = [], f" but for thresholds, delta {escape:.4g}"
        for part, share, more in (
            ("d histograms", self.histogram_share, but),
            ("mean of truncated vectors", 1 - self.histogram_share, ""),
        ):
            mu = sqrt(share) * total
            epsilon = gaussian_epsilon(self.delta - escape, mu)
            note = f"{mu:.4g}-GDP{more}"
            parts.append(BudgetTree(part, epsilon, self.delta, note=note))
        note = f"{total:.4g}-GDP and thresholds"
        if self.uses > 1:
            note += f", {self.uses} uses of the same rows together"
        return BudgetTree.accounted(name, self.epsilon, self.delta, *parts, note=note)

    def _escape(self, histograms: int) -> float:
        # So that the histograms cost at most half of epsilon by what they do not show.
        most = -expm1(-self.epsilon / (2 * histograms))
        return min(self.escape_share * self.delta / histograms, most)

    def _total_mu(self, histograms: int, escape: float) -> float:
        epsilon = self.epsilon + histograms * log1p(-escape)
        return gaussian_mu(epsilon, nextafter(self.delta - histograms * escape, 0))


@lru_cache(maxsize=256)
def _calibrated(split: CalibratedSplit, dimension: int) -> MeanNoise:
    # Every release asks, and the bisection takes milliseconds.
    return split._noise(dimension)


@dataclass(frozen=True)
class GaussianSplit(CalibratedSplit):
    """The same with normal noise on the counts: less of it, and lower thresholds."""

    histogram_share: Fraction = 0.05

    def _counts(self, mu: float, escape: float) -> ThresholdedCounts:
        return GaussianCounts.of(1 / mu, escape)


@dataclass(frozen=True)
class PublishedSplit(Split):
    """The split of Algorithm 5 as it is printed.

    Parameters
    ----------
    constant : float
        In the deviation of the noise: 12, or the 8 of equation 14.
    """

    constant: Positive = RANGE_CONSTANT

    def noise(self, dimension: int) -> MeanNoise:
        d = check_count("dimension", dimension)
        each = self.epsilon / (4 * sqrt(2 * d * log(4 / self.delta)))
        counts = CountNoise.as_published(each, self.delta / (4 * d))
        # The constant that the window needs is that of the classical mechanism.
        mu = classical_mu(self.epsilon / 2, self.delta / 2)
        return MeanNoise(counts, mu * (RANGE_CONSTANT / self.constant))

    def budget(self, name: str) -> BudgetTree:
        half = self.epsilon / 2, self.delta / 2
        return BudgetTree.sequential(
            name,
            BudgetTree("d histograms", *half, note="advanced composition"),
            BudgetTree("mean of truncated vectors", *half, note="classical Gaussian"),
        )


@dataclass(frozen=True)
class SplitWithConstant8(CalibratedSplit):
    """A planted bug: right if the windows were two thirds as wide as they are."""

    def noise(self, dimension: int) -> MeanNoise:
        right = super().noise(dimension)
        return replace(right, mu=right.mu * RANGE_CONSTANT / 8)
