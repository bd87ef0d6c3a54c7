r"""Mechanisms of the OpenDP library.

Written against opendp 0.16.0; the places named below are in its package.

**Claims.** Every measurement has a map from a distance d_in between datasets to a
privacy loss. Datasets are compared by the symmetric distance, the number of rows that
must be added or removed to get from one to the other: d_in = 1 is ADD_REMOVE, and
d_in = 2 covers REPLACE_ONE, one row away and another one in.

- Laplace, Gaussian: the library's own pipeline of clamp to [0, 1], sum and noise, on
  any number of rows; the claim is its map at d_in = 1. The noise has the smallest scale
  for which that is at most epsilon, found by the library's own search. Gaussian noise
  is mapped to zero-concentrated DP, and from there to epsilon at the given delta by the
  library's conversion, which is loose: sigma is 4.05 at (1, 1e-5), where 3.73 would do.
- eigenvector: ``extras/sklearn/_make_eigenvector:make_private_eigenvector``, the
  sampler below PCA, on the second-moment matrix. Its map is d_in/2 times
  ``unit_epsilon``, so it claims ``unit_epsilon`` at d_in = 2.
- PCA: ``sklearn.decomposition.PCA``, n_samples being public, so that only d_in = 2
  makes sense. **Its map at 2 is twice its argument epsilon** (PCA(epsilon=1) says 2:
  ``_prepare_fitter`` passes 2 epsilon/n_changes as ``unit_epsilon``, which is a loss
  per changed row already). The claim is what the map says, and the adapter passes half
  of it. A third of it each goes to the mean, the eigenvalues and the eigenvectors.
- PCA of centred data: ``sklearn.decomposition.make_private_pca``, the function below
  it, on rows of bounded norm around a known origin, so that no mean is estimated. Its
  argument is the loss at d_in = 2, split by its caller: here a tenth goes to the
  eigenvalues, the rest to the eigenvectors in equal parts.

So ADD_REMOVE for sums, REPLACE_ONE for all others.

**The eigenvector sampler is wrong**, as in `dpaudit.algorithms.third_party.diffprivlib`
and with the same constants: the inner function of ``make_private_eigenvector`` compares
a uniform number to e^-t over c (u^T Omega u)^(d/2), where that power belongs into the
numerator. See there for what follows from it, and for the dimensions in which a draw
does not return.

**Randomness.** OpenDP takes no generator: its noise is from the operating system, so no
release can be repeated (`seedable` is false).

**Features.** OpenDP asks users to opt in to what its maintainers have not vetted.
Drawing here does so, for the whole process: "contrib" for everything,
"idealized-numerics" and "honest-but-curious" for PCA.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.third_party import base
from dpaudit.arrays import Array

__all__ = [
    "OpenDPCentredPCA",
    "OpenDPEigenvector",
    "OpenDPGaussian",
    "OpenDPLaplace",
    "OpenDPPCA",
]

_EIGENVALUES_SHARE = 0.1


class _OpenDP:
    """What all adapters of this module say of themselves."""

    library: ClassVar[str] = "opendp"
    seedable: ClassVar[bool] = False


class _OpenDPNoise(_OpenDP, base.ScalarSum, ABC):
    """A sum that a measurement of the library randomises."""

    @abstractmethod
    def measurement(self) -> Any:
        """Return the library's measurement."""

    def _noisy_sum(self, rng: Rng) -> Callable[[Array], float]:
        measurement = self.measurement()
        return lambda rows: float(measurement(rows.tolist()))


@dataclass(frozen=True)
class OpenDPLaplace(_OpenDPNoise):
    """``then_clamp``, ``then_sum``, ``then_laplace``.

    Examples
    --------
    >>> OpenDPLaplace(epsilon=0.5).claim, OpenDPLaplace.relation.value
    (PureDP(epsilon=0.5), 'add-remove')
    """

    def measurement(self) -> Any:
        return _laplace_sum(self.epsilon)


@dataclass(frozen=True)
class OpenDPGaussian(_OpenDPNoise, base.ApproximateScalarSum):
    """``then_clamp``, ``then_sum``, ``then_gaussian``, at a fixed delta."""

    def measurement(self) -> Any:
        return _gaussian_sum(self.epsilon, self.delta)


@dataclass(frozen=True)
class OpenDPEigenvector(_OpenDP, base.EigenvectorMechanism):
    """``make_private_eigenvector`` on the second-moment matrix.

    The sign of a release is random. The claim is ``unit_epsilon``; the library divides
    the matrix by the square of the row norm.
    """

    def measurement(self, dimension: int, size: int) -> Any:
        """Return the library's measurement for `size` rows of length `dimension`."""
        dp = _opendp()
        arrays = import_module("opendp.extras.numpy")
        eigenvector = import_module("opendp.extras.sklearn._make_eigenvector")
        domain = arrays._sscp_domain(
            num_features=dimension, norm=self.row_norm, p=2, size=size, T=float
        )
        return eigenvector.make_private_eigenvector(
            domain, dp.symmetric_distance(), self.epsilon
        )

    def _eigenvector(self, moment: Array, size: int, rng: Rng) -> base.Sampler:
        measurement = self.measurement(len(moment), size)
        return lambda: np.asarray(measurement(moment), dtype=np.float64)


@dataclass(frozen=True)
class OpenDPPCA(_OpenDP, base.PCAMechanism):
    """``opendp.extras.sklearn.decomposition.PCA``.

    Releases have ``mean`` (d,), ``components`` (k, d), ``singular_values`` (k,),
    ``explained_variance`` (k,) and ``noise_variance`` (): all that a fitted model shows
    of the data. The claim for all of it is twice what the library's argument is called.
    The library clips rows around the private mean.
    """

    def model(self, dimension: int, size: int) -> Any:
        """Return an unfitted model for `size` rows of length `dimension`."""
        dp = _opendp()
        return dp.sklearn.decomposition.PCA(
            epsilon=self.epsilon / 2,
            row_norm=self.row_norm,
            n_samples=size,
            n_features=dimension,
            n_components=self.n_components,
        )

    def _sampler(self, data: ArrayLike, rng: Rng) -> base.Sampler:
        rows = self._rows(data)
        size, dimension = rows.shape
        shown = "mean", "components", *base.VARIANCES
        return lambda: base.read_off(self.model(dimension, size).fit(rows), *shown)


@dataclass(frozen=True)
class OpenDPCentredPCA(_OpenDP, base.PCAMechanism):
    """``make_private_pca`` of data that are centred already.

    Releases have ``components`` (k, d) and ``singular_values`` (d,). A tenth of epsilon
    is for the eigenvalues, the rest for the eigenvectors. The library clips rows.
    """

    def measurement(self, dimension: int, size: int) -> Any:
        """Return the library's measurement for `size` rows of length `dimension`."""
        dp = _opendp()
        decomposition = dp.sklearn.decomposition
        # The last one of d eigenvectors follows from the others.
        count = min(self.n_components, dimension - 1)
        share = (1 - _EIGENVALUES_SHARE) * self.epsilon / count
        domain = dp.numpy.array2_domain(
            norm=self.row_norm,
            p=2,
            origin=0.0,
            num_columns=dimension,
            size=size,
            T=float,
        )
        return decomposition.make_private_pca(
            domain,
            dp.symmetric_distance(),
            decomposition.PCAEpsilons(
                eigvals=_EIGENVALUES_SHARE * self.epsilon,
                eigvecs=[share] * count,
                mean=None,
            ),
            num_components=self.n_components,
        )

    def _sampler(self, data: ArrayLike, rng: Rng) -> base.Sampler:
        rows = self._rows(data)
        size, dimension = rows.shape
        measurement = self.measurement(dimension, size)

        def fit() -> dict[str, Array]:
            result = measurement(rows)
            return {
                "components": np.asarray(result.Vt)[: self.n_components],
                "singular_values": np.asarray(result.S),
            }

        return fit


def _opendp() -> Any:
    dp = import_module("opendp.prelude")
    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    return dp


# The search for the scale takes longer than a draw.
@lru_cache(maxsize=16)
def _laplace_sum(epsilon: float) -> Any:
    dp = _opendp()
    exact_sum = _clamped_sum(dp)
    return dp.binary_search_chain(
        lambda scale: exact_sum >> dp.m.then_laplace(scale), d_in=1, d_out=epsilon
    )


@lru_cache(maxsize=16)
def _gaussian_sum(epsilon: float, delta: float) -> Any:
    dp = _opendp()
    exact_sum = _clamped_sum(dp)

    def at_scale(scale: float) -> Any:
        concentrated = exact_sum >> dp.m.then_gaussian(scale)
        profile = dp.c.make_zCDP_to_approxDP(concentrated)
        return dp.c.make_fix_delta(profile, delta)

    return dp.binary_search_chain(at_scale, d_in=1, d_out=(epsilon, delta))


def _clamped_sum(dp: Any) -> Any:
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    clamped = (domain, dp.symmetric_distance()) >> dp.t.then_clamp((0.0, 1.0))
    return clamped >> dp.t.then_sum()
