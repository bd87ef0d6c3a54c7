r"""Private descent on GLAD and on REAPER, corrected and as published.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022; the steps are those of `dpaudit.algorithms.robust.descent`.

**On GLAD**: dp-GGD and dp-SGGD. (NGGD) and (NSGGD), Theorem 6, sections 3.3 and 5.1 of
the source.

**dp-GGD**, full batches. N is the same on both sides, hence public. Given V, the sum of
the terms moves by at most 2 under REPLACE_ONE (`dpaudit.algorithms.robust.objectives`),
so step k is mu_k-GDP with mu_k = 2/sigma whatever came before; V_k is a function of the
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

The default rate is the paper's, B = max(N sqrt(epsilon/(4 T)), 1).

**As published** (sigma is per entry of the noise on the *mean* of the terms; the
constants c and c_2 of Theorem 6 are left open, and 1 here):

- dp-GGD: sigma^2 = T log^2(1/delta)/(epsilon^2 N^2), all rows in every step;
- dp-SGGD: sigma^2 = (B/N)^2 T log(1/delta)/(epsilon^2 N^2), batches of
  B = max(N sqrt(epsilon/(4 T)), 1) rows drawn with replacement.

V_0 is from the Wishart mechanism at epsilon
(`dpaudit.algorithms.robust.initialisation.PublishedStart`), which the claim of
(epsilon, delta) does not count. N is the number of rows, so the relation is
REPLACE_ONE ("only differ in at most one data point").

dp-GGD's steps are mu-GDP with mu = 2 epsilon/log(1/delta), for every T, N, B: that is
(epsilon, delta) in a range (docs/robust.md#what-is-false-in-print), but without their
start: a transcript that has the Wishart mechanism's noisy matrix shows what that hides
badly, and on some pairs it is impossible on the other side. V_T does not show it.

**dp-SGGD's published claim is false.** A batch mean moves by up to 2/B when one of its
rows is replaced, and a row is in a step with probability about B/N; so the noise that
hides a mean over B rows is about what hides a mean over N, sigma^2 = c_2 T log(1/delta)
/(epsilon^2 N^2): c_2 q^2 T log(1/delta)/epsilon^2 is the variance of the noise on the
*sum*, in units of the clip, in Abadi et al. 2016, Theorem 1, and over B^2 that is the
former. The paper has it over N^2, too small by (B/N)^2 (docs/robust.md has numbers): a
transcript shows each of the steps that a row is in, and which row it was.

**On REAPER**: dp-GD-, dp-SGD-, dp-MD- and dp-SMD-REAP. Section 4.3 and appendix A,
Algorithms 1 and 2, of the source; Goes, Zhang, Arora, Lerman, *Robust stochastic
principal component analysis*, AISTATS 2014, for mirror descent without noise. P_0 is
public and costs nothing. Gradient and mirror descent differ in their geometry alone
(`dpaudit.algorithms.robust.geometries`), and what is done with a noisy sum is
postprocessing: the sensitivities of `dpaudit.algorithms.robust.objectives` hold for
every symmetric P, and so do the proofs.

The noise is symmetric, from the Gaussian orthogonal ensemble: in the coordinates of the
transcript every entry has the deviation sigma, and a movement of the sum by S is
||S||_F/sqrt 2.

**Full batch**, REPLACE_ONE. N is the same on both sides, hence public. Given P, the sum
of the terms moves by at most sqrt 2 in Frobenius norm, by 1 in these coordinates, so
each step is 1/sigma-GDP whatever came before, and T of them compose to
sqrt(T)/sigma-GDP (Dong, Roth, Su, JRSS B 2022, Corollary 3.3): sigma = sqrt(T)/mu. This
is exact: on `dpaudit.algorithms.robust.pairs.apart_pair` step 1 moves by that much. P_0
is public, the release a function of the transcript.

**Minibatches.** Batches are Poisson samples of rate q and B is public. A term has at
most the length 1 in Frobenius norm, 1/sqrt 2 in these coordinates, and sigma is 1/sqrt
2 times what `dpaudit.algorithms.shared.subsampling` computes for terms of length 1; the
proofs there are for any statistic of such terms. Under REPLACE_ONE, the paper's
relation and the default, the terms of two rows are at worst orthogonal:
`dpaudit.algorithms.robust.objectives` shows the inequality that the proof asks for.
That is exact too: the terms of step 1 on `apart_pair` are.

**As published** sigma^2 is 32 T log^2(T/delta)/(epsilon^2 N^2) of dp-GD-REAP and
dp-MD-REAP; dp-SGD-REAP and dp-SMD-REAP have the noise and the batches of dp-SGGD. The
noise is symmetric with the same deviation on the diagonal as above it. P_0 = A^T A,
A_ij ~ N(1, 0.01), is public, and far outside H. Step sizes 8/sqrt k. The projection of
gradient descent is the one in Algorithm 1's line, in Frobenius norm; that of mirror
descent is trace renormalisation, while ours is the Bregman projection with its cap at
1, so that P stays in H. One thing is not to the letter: (4.1) prints a sum over rows,
and its noise is for their mean; here it is the mean, which needs N times less.

**The published claims of the stochastic two are false**, for the same reason: the noise
is too small by B/N. A mean over B rows moves by up to sqrt 2/B.

The other two keep theirs with much to spare. In the norm of the upper triangle, in
which the noise is independent, the sum moves by no more than in Frobenius norm, sqrt 2;
so the steps are mu-GDP with mu = sqrt(T) sqrt 2/(sigma N) = epsilon/(4 log(T/delta)).
"""

from dataclasses import dataclass, field
from math import log, sqrt
from typing import Any, ClassVar

from dpaudit.algorithms.robust.geometries import Entropic, Euclidean, Renormalised
from dpaudit.algorithms.robust.initialisation import (
    CentralStart,
    GaussianStart,
    PublishedStart,
    RandomMatrixStart,
)
from dpaudit.algorithms.robust.objectives import Reaper
from dpaudit.algorithms.robust.pairs import (
    added_pair,
    apart_pair,
    balanced_pair,
    lone_pair,
    odd_pair,
    shown_pair,
)
from dpaudit.algorithms.robust.parts import Geometry, Objective, Start
from dpaudit.algorithms.robust.private_descent import (
    FullBatchDescent,
    RandomBatchDescent,
)
from dpaudit.algorithms.shared.batches import WithReplacement
from dpaudit.algorithms.shared.step_sizes import RootSteps, StepSizes
from dpaudit.gaussian import gaussian_mu
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_fraction

__all__ = [
    "PrivateGGD",
    "PrivateGradientReaper",
    "PrivateMirrorReaper",
    "PrivateSGGD",
    "PrivateStochasticGradientReaper",
    "PrivateStochasticMirrorReaper",
]


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

        By default it is a `GaussianStart`, which costs a share of the mu^2 of (epsilon,
        delta).
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

    The claim is made under REPLACE_ONE.

    Examples
    --------
    >>> mechanism = PrivateGGD.calibrated(1.0, 1e-5, n_components=2)
    >>> round(mechanism.noise.sigma, 2)
    37.31
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
    """dp-SGGD: descent on GLAD on random batches; the release is a basis of V_T."""

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


@dataclass(frozen=True, kw_only=True)
class _OnReaper:
    """The parts of descent on REAPER, as they are calibrated."""

    objective: Objective = field(default_factory=Reaper)
    geometry: Geometry = field(default_factory=Euclidean)
    start: Start = field(default_factory=CentralStart)
    step_sizes: StepSizes = field(default_factory=RootSteps)

    printed_geometry: ClassVar[Geometry] = Euclidean()

    @classmethod
    def printed(cls, epsilon: float, **fields: Any) -> dict[str, Any]:
        return {
            "objective": Reaper(diagonal_ratio=1.0),
            "geometry": cls.printed_geometry,
            "start": RandomMatrixStart(),
            **fields,
        }


@dataclass(frozen=True, kw_only=True)
class PrivateGradientReaper(_OnReaper, FullBatchDescent):
    """dp-GD-REAP: gradient descent on all rows; the release is a basis, shape (D, r).

    The claim is made under REPLACE_ONE. The deviation of the noise is that above the
    diagonal.
    """

    @staticmethod
    def printed_sigma(epsilon: float, delta: float, iterations: int) -> float:
        return sqrt(32 * iterations) * log(iterations / delta) / epsilon

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose one row moves every sum by about sqrt 2.

        See `dpaudit.algorithms.robust.pairs.apart_pair`, with rows enough for the steps
        to find their span (or 100 r: noise that hides so many hides one). The default D
        is r + 2.
        """
        count = self.n_components * min(max(4, round(4 * self.noise.sigma)), 100)
        return apart_pair(self.n_components, dimension, count=count)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case, and a pair whose one row turns the subspace.

        In the latter a sum moves by about 1 (`dpaudit.algorithms.robust.pairs`).
        """
        turned = shown_pair(self.n_components, None, count=2 * self.n_components)
        return self.worst_case(), turned


@dataclass(frozen=True, kw_only=True)
class PrivateStochasticGradientReaper(_OnReaper, RandomBatchDescent):
    """dp-SGD-REAP: gradient descent on random batches; otherwise as dp-GD-REAP."""

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose one row has a term of about length 1.

        See `dpaudit.algorithms.robust.pairs`: `lone_pair` under ADD_REMOVE, where the
        default D is r + 1, `apart_pair` under REPLACE_ONE, where it is r + 2.

        With batches as published it is `balanced_pair`, few rows of which the last
        breaks a tie, so that releases show it; there the default D is r + 1.
        (Transcripts show any row: on `odd_pair` at the paper's parameters their
        log-likelihood ratio is -20 without it, and 40,000 and more with it.)
        """
        r = self.n_components
        if isinstance(self.batches, WithReplacement):
            return balanced_pair(r, dimension, count=4 * (r + 1))
        adds = self.relation is Relation.ADD_REMOVE
        return (lone_pair if adds else apart_pair)(r, dimension, count=4 * r)


@dataclass(frozen=True, kw_only=True)
class PrivateMirrorReaper(PrivateGradientReaper):
    """dp-MD-REAP: mirror descent, all rows."""

    geometry: Geometry = field(default_factory=Entropic)
    printed_geometry: ClassVar[Geometry] = Renormalised()


@dataclass(frozen=True, kw_only=True)
class PrivateStochasticMirrorReaper(PrivateStochasticGradientReaper):
    """dp-SMD-REAP: mirror descent on random batches."""

    geometry: Geometry = field(default_factory=Entropic)
    printed_geometry: ClassVar[Geometry] = Renormalised()
