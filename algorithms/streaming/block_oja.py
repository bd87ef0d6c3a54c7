r"""BlockOja: k private components by Oja's algorithm on disjoint batches, with QR.

Source: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and differentially private
PCA*, NeurIPS 2022, section 7, which names the extension: a k-dimensional subspace in
place of w_t, and a QR decomposition in place of the normalisation. Its private form is
that of `dpaudit.algorithms.streaming.minibatch_oja`, with d x k matrices:

1. V_0: a basis of a uniformly random k-dimensional subspace.
2. For t = 1, ..., T, with B = floor(n/T): V_t = qr(V_(t-1) + (eta_t/B) (sum of
   clip(A_i V_(t-1)) over the t-th batch + sigma Z_t)), clipped in Frobenius norm.
3. Output V_T.

sigma = Delta/mu with Delta = 2 beta for any matrices, sqrt 2 R^2 for rows in a ball of
radius R (R^2 if k = 1); no k and no T. Proof:
`dpaudit.algorithms.streaming.noisy_oja`. What is paid for k components is sqrt 2 in
Delta, and sqrt k in the norm of Z_t.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dpaudit.algorithms.shared.step_sizes import StepSizes, as_step_sizes
from dpaudit.algorithms.streaming.moments import Array
from dpaudit.algorithms.streaming.noisy_oja import DEFAULT_ITERATIONS, NoisyOja
from dpaudit.algorithms.streaming.oja_sensitivity import (
    batch_sensitivity,
    default_steps,
)
from dpaudit.claims import ApproxDP
from dpaudit.gaussian import gaussian_mu
from dpaudit.validation import check_count

__all__ = ["BlockOja"]


@dataclass(frozen=True, kw_only=True)
class BlockOja(NoisyOja):
    """Private minibatch Oja for k components; the release is V_T, shape (d, k).

    Parameters
    ----------
    n_components : int
        k, at least 1 and at most d.
    sigma, step_sizes, claim, iterations, row_norm, clip
        See `NoisyOja`.

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

    n_components: int

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "n_components", check_count("n_components", self.n_components)
        )
        super().__post_init__()

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        n_components: int,
        row_norm: float | None = 1.0,
        clip: float | None = None,
        iterations: int = DEFAULT_ITERATIONS,
        step_sizes: StepSizes | float | Sequence[float] | None = None,
    ) -> "BlockOja":
        """Return the mechanism at the smallest proven sigma, Delta/mu.

        Parameters
        ----------
        epsilon, delta : float
            The promise, under REPLACE_ONE.
        n_components, row_norm, clip, iterations
            See the class and `NoisyOja`; for general matrices row_norm=None and a clip.
        step_sizes : StepSizes, float or sequence of float, optional
            Default: `dpaudit.algorithms.streaming.oja_sensitivity.default_steps`.
        """
        mu = gaussian_mu(epsilon, delta)
        delta_of_sum = batch_sensitivity(n_components, row_norm=row_norm, clip=clip)
        return cls(
            n_components=n_components,
            sigma=delta_of_sum / mu,
            claim=ApproxDP(epsilon, delta),
            row_norm=row_norm,
            clip=clip,
            iterations=iterations,
            step_sizes=default_steps(row_norm, clip)
            if step_sizes is None
            else as_step_sizes(step_sizes),
        )

    @property
    def rank(self) -> int:
        """The number of components, k."""
        return self.n_components

    def _shaped(self, bases: Array) -> Array:
        return bases

    def _bases(self, released: Array) -> Array:
        return released
