r"""dp-GGD and dp-SGGD: descent on GLAD with normal noise, corrected and as published.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, (NGGD) and (NSGGD), Theorem 6, sections 3.3 and 5.1; the steps are those of
`dpaudit.algorithms.robust.descent`.

**dp-GGD**, full batches. N is the same on both sides, hence public. Given V, the sum of
the terms moves by at most 2 under REPLACE_ONE (`dpaudit.algorithms.robust.glad`), so
step k is mu_k-GDP with mu_k = 2/sigma whatever came before; V_k is a function of the
transcript. The T steps and a start that is mu_0-GDP compose to

    mu^2 = mu_0^2 + 4 T/sigma^2

(Dong, Roth, Su, *Gaussian differential privacy*, JRSS B 2022, Corollary 3.3), so
sigma = 2 sqrt(T)/sqrt(mu^2 - mu_0^2), the smallest that this proof allows. After a
start that is epsilon_0-DP without being Gaussian, the steps get (epsilon - epsilon_0,
delta). The release is a function of the transcript.

**dp-SGGD**, random batches. Three things differ from the paper, each because the
privacy proof needs it:

- batches are Poisson samples of rate q, not drawn with replacement;
- a sum becomes a mean by the public expected batch size B = q times a public number of
  rows, not by the size that the batch happens to have;
- sigma is what `dpaudit.algorithms.shared.subsampling` computes, for the promised
  (epsilon, delta) of the start and all T steps. The proof is there. The terms of two
  rows can be nearly opposite and of length 1, so under REPLACE_ONE, the paper's
  relation and the default, they are taken to be.

The default rate is the paper's, B = max(N sqrt(epsilon/(4 T)), 1). At N = 2000,
T = 2000, epsilon = 0.8, delta = 1/sqrt N it is q = 0.01, and the multiplier 1.697
without a start: 0.085 on the mean, where the paper has 5.4e-4. Under ADD_REMOVE it is
1.075, noise that a replaced row sees through to epsilon = 1.63 at that delta.

**As published** (sigma is per entry of the noise on the *mean* of the terms; the
constants c and c_2 of Theorem 6 are left open, and 1 here):

- dp-GGD: sigma^2 = T log^2(1/delta)/(epsilon^2 N^2), all rows in every step;
- dp-SGGD: sigma^2 = (B/N)^2 T log(1/delta)/(epsilon^2 N^2), batches of
  B = max(N sqrt(epsilon/(4 T)), 1) rows drawn with replacement.

V_0 is from the Wishart mechanism at epsilon
(`dpaudit.algorithms.robust.initialisation.PublishedStart`), which the claim of
(epsilon, delta) does not count. N is the number of rows, so the relation is
REPLACE_ONE ("only differ in at most one data point").

dp-GGD's steps are mu-GDP with mu = 2 epsilon/log(1/delta), for every T, N, B: they keep
(epsilon, delta) where `dpaudit.gaussian.gaussian_delta` (epsilon, mu) <= delta: for
delta <= 0.05 up to epsilon = 1.3 at least, at 1e-5 up to 12 and beyond. (At epsilon = 1
the noise is 1.5 times what the steps need at delta = 1e-5, 1.9 times at 1e-9.) But that
is without their start: a transcript that has the Wishart mechanism's noisy matrix shows
what that hides badly, and on some pairs it is impossible on the other side. V_T does
not show it.

**dp-SGGD's published claim is false.** A batch mean moves by up to 2/B when one of its
rows is replaced, and a row is in a step with probability about B/N; so the noise that
hides a mean over B rows is about what hides a mean over N, sigma^2 = c_2 T log(1/delta)
/(epsilon^2 N^2): c_2 q^2 T log(1/delta)/epsilon^2 is the variance of the noise on the
*sum*, in units of the clip, in Abadi et al. 2016, Theorem 1, and over B^2 that is the
former. The paper has it over N^2, too small by (B/N)^2. At N = 2000, T = 2000,
epsilon = 0.8, delta = 1/sqrt N it is 5.4e-4 against a movement of up to 0.1: a
transcript shows each of the about 20 steps that a row is in, and which row it was.
"""

from dataclasses import dataclass
from math import log, sqrt
from typing import Any, ClassVar

from dpaudit.algorithms.robust.initialisation import GaussianStart, PublishedStart
from dpaudit.algorithms.robust.pairs import added_pair, odd_pair, shown_pair
from dpaudit.algorithms.robust.parts import Start
from dpaudit.algorithms.robust.private_descent import (
    FullBatchDescent,
    RandomBatchDescent,
)
from dpaudit.algorithms.shared.batches import WithReplacement
from dpaudit.gaussian import gaussian_mu
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_fraction

__all__ = ["PrivateGGD", "PrivateSGGD"]


class _OnGlad:
    """Where descent on GLAD starts."""

    @classmethod
    def paid(
        cls,
        epsilon: float,
        delta: float,
        relation: Relation,
        *,
        start: Start | None = None,
        start_share: float = 0.2,
        **fields: Any,
    ) -> dict[str, Any]:
        """Return the fields with V_0 from a start whose claim is counted.

        Parameters
        ----------
        epsilon, delta : float
            The promise for start and steps together.
        relation : Relation
        start : Start, optional
            Default: a `GaussianStart`.
        start_share : float
            What that costs, of the mu^2 of (epsilon, delta).
        **fields
            The others.
        """
        if start is None:
            mu = gaussian_mu(epsilon, delta)
            share = check_fraction("start_share", start_share)
            start = GaussianStart(sqrt(share) * mu, relation)
        return {"start": start, **fields}

    @classmethod
    def printed(
        cls, epsilon: float, *, start: Start | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Return the fields; by default V_0 is from a `PublishedStart` at epsilon."""
        return {"start": PublishedStart(epsilon) if start is None else start, **fields}


@dataclass(frozen=True, kw_only=True)
class PrivateGGD(_OnGlad, FullBatchDescent):
    """dp-GGD: descent on GLAD on all rows; the release is a basis of V_T.

    Parameters
    ----------
    n_components, claim, noise, start, iterations, step_sizes
        See `FullBatchDescent`; the claim is made under REPLACE_ONE.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = PrivateGGD.calibrated(1.0, 1e-5, n_components=2)
    >>> round(mechanism.noise.sigma, 2)
    37.31
    >>> rows = np.repeat(np.eye(5), [5000, 5000, 100, 100, 100], axis=0)
    >>> basis = mechanism.release(rows, rng=np.random.default_rng(0))
    >>> basis.shape
    (5, 2)
    >>> mechanism = PrivateGGD.as_published(0.8, 2000**-0.5, iterations=2000)
    >>> round(mechanism.noise.sigma / 2000, 3)  # on the mean of 2000 rows
    0.106
    """

    title: ClassVar[str] = "dp-ggd"

    @staticmethod
    def printed_sigma(epsilon: float, delta: float, iterations: int) -> float:
        return sqrt(iterations) * log(1 / delta) / epsilon

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose one row shows in every step, and in V_T.

        See `dpaudit.algorithms.robust.pairs.shown_pair`, with rows enough for the steps
        to find their span. The default D is r + 1.
        """
        count = self.n_components * max(4, round(4 * self.noise.sigma))
        return shown_pair(self.n_components, dimension, count=count)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case, and one with few rows beside the last."""
        few = shown_pair(self.n_components, None, count=2 * self.n_components)
        return self.worst_case(), few


@dataclass(frozen=True, kw_only=True)
class PrivateSGGD(_OnGlad, RandomBatchDescent):
    """dp-SGGD: descent on GLAD on random batches; the release is a basis of V_T.

    Examples
    --------
    >>> mechanism = PrivateSGGD.calibrated(1.0, 1e-5, n_components=2)
    >>> mechanism.batches
    PoissonBatches(rate=0.112, batch_size=224.0)
    >>> mechanism = PrivateSGGD.as_published(0.8, 2000**-0.5, iterations=2000)
    >>> round(mechanism.noise_scale(2000) / 20, 6)  # on the mean of 20 rows
    0.000545
    """

    title: ClassVar[str] = "dp-sggd"

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose one row shows in the steps that it is in.

        See `dpaudit.algorithms.robust.pairs`: `added_pair` under ADD_REMOVE,
        `shown_pair` under REPLACE_ONE. With batches as published `odd_pair`, where for
        r = 1 there are two distinct rows, so that the likelihood of a transcript is a
        short sum. The default D is r + 1.
        """
        r = self.n_components
        if isinstance(self.batches, WithReplacement):
            return odd_pair(r, dimension, count=99)
        adds = self.relation is Relation.ADD_REMOVE
        return (added_pair if adds else shown_pair)(r, dimension, count=4 * r)
