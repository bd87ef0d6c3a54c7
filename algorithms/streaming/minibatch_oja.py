r"""Oja's algorithm on disjoint batches: `MinibatchOja` for one component, `BlockOja`.

Source: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and differentially private
PCA*, NeurIPS 2022, section 4, equation (7).

1. w_0: uniformly random on the unit sphere.
2. For t = 1, ..., T, with B = floor(n/T): w' = w_(t-1) + (eta_t/B) (sum of
   clip(A_i w_(t-1)) over the t-th batch + sigma z_t), z_t ~ N(0, I); w_t = w'/||w'||.
3. Output w_T.

In print the noise of a step is (w eta_t beta alpha/B) z_t, with alpha left open (the
multiplier of Algorithm 2, whose growth alone is given), and T = O(log^2 n) steps are
paid for one after the other ('serial composition'). A w in that place is no number; we
read it as a misprinted 2: Algorithm 2, of which this is the minibatch form, has
2 eta_t beta alpha, and 2 beta is how far apart two clipped products can be. So sigma is
2 alpha beta there. One thing is changed here: the batches are disjoint, so each matrix
is in one step only and the steps cost no more than one of them: sigma =
Delta/mu(epsilon, delta) with `dpaudit.gaussian.gaussian_mu`, whatever T is, where
Delta = 2 beta, or R^2 for rows in a ball of radius R. Proof:
`dpaudit.algorithms.streaming.noisy_oja`.

Utility. The noise per step is sigma/B = T Delta/(n mu) per coordinate: fewer and larger
batches have less of it, but each step leaves more of the start behind; with harmonic
step sizes the error is about sqrt(T d) Delta/(n mu (lambda_1 - lambda_2)). That noise
is in proportion to the norm of the gradients, not to their spread: where the spread
vanishes, as in Example 4.1, the error stays (`dpaudit.datasets.streaming_models`).

**k components** (section 7 of the paper, which names the extension): a k-dimensional
subspace in place of w_t, and a QR decomposition in place of the normalisation. The
private form is the same, with d x k matrices:

1. V_0: a basis of a uniformly random k-dimensional subspace.
2. For t = 1, ..., T, with B = floor(n/T): V_t = qr(V_(t-1) + (eta_t/B) (sum of
   clip(A_i V_(t-1)) over the t-th batch + sigma Z_t)), clipped in Frobenius norm.
3. Output V_T.

sigma = Delta/mu with Delta = 2 beta for any matrices, sqrt 2 R^2 for rows in a ball of
radius R (R^2 if k = 1); no k and no T. Proof:
`dpaudit.algorithms.streaming.noisy_oja`. What is paid for k components is sqrt 2 in
Delta, and sqrt k in the norm of Z_t.
"""

from dataclasses import dataclass
from typing import Any, Self

from dpaudit.algorithms.shared.bases import (
    ReleasesBasis,
    ReleasesVector,
    check_one_component,
)
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.algorithms.shared.step_sizes import Steps
from dpaudit.algorithms.streaming.noisy_oja import (
    NoisyOja,
)
from dpaudit.arrays import Array
from dpaudit.checked import Count
from dpaudit.claims import ApproxDP, GaussianDP
from dpaudit.gaussian import gaussian_mu
from dpaudit.validation import check_positive

__all__ = ["BlockOja", "MinibatchOja"]


@dataclass(frozen=True, kw_only=True)
class MinibatchOja(ReleasesVector, NoisyOja):
    """Private minibatch Oja for one component; the release is w_T, shape (d,).

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = MinibatchOja.calibrated(1.0, 1e-5)
    >>> round(mechanism.sigma, 4)
    3.7306
    >>> rows = np.repeat([[0.6, 0.8], [0.8, -0.6]], [9000, 1000], axis=0)
    >>> rows = np.random.default_rng(0).permutation(rows)
    >>> np.abs(mechanism.release(rows, rng=np.random.default_rng(1))).round(1)
    array([0.6, 0.8])
    """

    @hands_on("row_norm", "clip", "iterations")
    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        n_components: int = 1,
        step_sizes: Steps | None = None,
        **fields: Any,
    ) -> Self:
        """Return the mechanism at the smallest proven sigma, Delta/mu.

        Parameters
        ----------
        epsilon, delta : float
            The promise, under REPLACE_ONE.
        n_components : int
            1, and no other number.
        step_sizes : StepSizes, float or sequence of float, optional
            Default: `dpaudit.algorithms.streaming.noisy_oja.default_steps`.
        """
        check_one_component("minibatch-oja", n_components, others="block-oja")
        mu, claim = gaussian_mu(epsilon, delta), ApproxDP(epsilon, delta)
        return cls._at(1, mu, claim, step_sizes, **fields)

    @hands_on("row_norm", "clip", "iterations")
    @classmethod
    def from_mu(
        cls, mu: float, *, step_sizes: Steps | None = None, **fields: Any
    ) -> Self:
        """Return the mechanism that is mu-GDP, which no smaller sigma gives."""
        mu = check_positive("mu", mu)
        return cls._at(1, mu, GaussianDP(mu), step_sizes, **fields)

    def _shaped(self, bases: Array) -> Array:
        return bases[..., 0]

    def _bases(self, released: Array) -> Array:
        return released[..., None]


@dataclass(frozen=True, kw_only=True)
class BlockOja(ReleasesBasis, NoisyOja):
    """Private minibatch Oja for k components; the release is V_T, shape (d, k).

    Parameters
    ----------
    n_components : int
        k, at least 1 and at most d.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = BlockOja.calibrated(1.0, 1e-5, n_components=2)
    >>> round(mechanism.sigma, 4)
    5.2759
    >>> rows = np.eye(5)[np.arange(50) % 5]
    >>> mechanism.release(rows, rng=np.random.default_rng(0)).shape
    (5, 2)
    """

    n_components: Count

    @hands_on("row_norm", "clip", "iterations")
    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        n_components: int,
        step_sizes: Steps | None = None,
        **fields: Any,
    ) -> Self:
        """Return the mechanism at the smallest proven sigma, Delta/mu.

        The arguments are those of `MinibatchOja.calibrated`, but for k.
        """
        mu, claim = gaussian_mu(epsilon, delta), ApproxDP(epsilon, delta)
        fields["n_components"] = n_components
        return cls._at(n_components, mu, claim, step_sizes, **fields)
