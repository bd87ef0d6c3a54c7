r"""Mechanisms of diffprivlib, IBM's differential privacy library.

Written against diffprivlib 0.6.6; the places named below are in its package.

**Claims.** A mechanism of `diffprivlib.mechanisms` claims epsilon (and delta) for a
query whose sensitivity it is told; which neighbours that is for is up to the query.

- Laplace, Gaussian, GaussianAnalytic are told sensitivity 1, that of a sum of rows in
  [0, 1] under ADD_REMOVE. Gaussian has the classical constant, and accepts epsilon <= 1
  only; GaussianAnalytic has the calibration of Balle and Wang (ICML 2018).
- Bingham samples a unit vector u with utility u^T A u. Its sensitivity defaults to 1,
  and its one caller in the library, ``models/utils.py:covariance_eig``, hands it
  X^T X / norm^2 with this default. A row of length <= 1 that is replaced moves the
  utility by at most 1. The adapter passes row_norm^2, which is the same.
- PCA claims epsilon for what it releases. That a row is replaced, not added, follows
  from ``covariance_eig``: the eigenvalues get noise for the l1 sensitivity 2, which is
  that of replacing a unit row (adding one needs 1), and from the use of the number of
  rows as public. It is told that the data are centred, so that no epsilon goes to a
  mean: of k components of d > k, each takes epsilon/(k + 1), and the eigenvalues too.

So REPLACE_ONE for Bingham and PCA. There is no Wishart mechanism any more: it was
removed for the flaw of `dpaudit.algorithms.covariance.symmetric_noise`, and PCA has
used ``covariance_eig`` in its place since.

**The eigenvector sampler is wrong** (``mechanisms/bingham.py``, ``Bingham.randomise``).
With M = epsilon (lambda_max I - A)/(4 sensitivity) and t = u^T M u, the density wanted
is proportional to e^-t. Candidates have the density (1 + 2t/b)^(-d/2) (angular central
Gaussian with Omega = I + 2M/b), so they must be accepted with probability
e^-t (1 + 2t/b)^(+d/2)/c, where c = e^(-(d-b)/2) (d/b)^(d/2) is the maximum of the
numerator (Kent, Ganeiber, Mardia 2018, section 3). The code divides by
(1 + 2t/b)^(d/2) instead of multiplying. What it releases has a density proportional to
e^-t (1 + 2t/b)^-d: too sharp, by a factor that grows with d
(docs/findings.md#eigenvectors-in-two-libraries), and **for larger d a draw does not
return**.

**Randomness.** The library takes a `numpy.random.RandomState`; the adapter gives it one
on top of the bit generator of the caller. Without one the library would use
`secrets.SystemRandom`, with the same code behind it.
"""

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.third_party import base
from dpaudit.arrays import Array
from dpaudit.validation import check_positive

__all__ = [
    "DiffprivlibBingham",
    "DiffprivlibGaussian",
    "DiffprivlibGaussianAnalytic",
    "DiffprivlibLaplace",
    "DiffprivlibPCA",
]


class _Diffprivlib:
    """What all adapters of this module say of themselves."""

    library: ClassVar[str] = "diffprivlib"
    seedable: ClassVar[bool] = True


class _DiffprivlibNoise(_Diffprivlib, base.ScalarSum, ABC):
    """A sum that a scalar mechanism of the library randomises."""

    mechanism: ClassVar[str]
    """Its name in the library, which is told the claim and a sensitivity of 1."""

    def _noisy_sum(self, rng: Rng) -> Callable[[Array], float]:
        mechanism = getattr(_mechanisms(), self.mechanism)(
            **self.claim.parameters, sensitivity=1, random_state=_random_state(rng)
        )
        return lambda rows: float(mechanism.randomise(float(rows.sum())))


@dataclass(frozen=True)
class DiffprivlibLaplace(_DiffprivlibNoise):
    """``diffprivlib.mechanisms.Laplace`` on a sum."""

    mechanism: ClassVar[str] = "Laplace"


@dataclass(frozen=True)
class DiffprivlibGaussian(_DiffprivlibNoise, base.ApproximateScalarSum):
    """``diffprivlib.mechanisms.Gaussian`` on a sum: the classical constant."""

    epsilon: Annotated[float, partial(check_positive, largest=1.0)] = 1.0
    mechanism: ClassVar[str] = "Gaussian"


@dataclass(frozen=True)
class DiffprivlibGaussianAnalytic(_DiffprivlibNoise, base.ApproximateScalarSum):
    """``diffprivlib.mechanisms.GaussianAnalytic`` on a sum: the least noise."""

    mechanism: ClassVar[str] = "GaussianAnalytic"


@dataclass(frozen=True)
class DiffprivlibBingham(_Diffprivlib, base.EigenvectorMechanism):
    """``diffprivlib.mechanisms.Bingham`` on the second-moment matrix.

    The sign of a release is random. The sensitivity is the square of the row norm.
    """

    def _eigenvector(self, moment: Array, size: int, rng: Rng) -> base.Sampler:
        mechanism = _mechanisms().Bingham(
            epsilon=self.epsilon,
            sensitivity=self.row_norm**2,
            random_state=_random_state(rng),
        )
        return lambda: np.asarray(mechanism.randomise(moment), dtype=np.float64)


@dataclass(frozen=True)
class DiffprivlibPCA(_Diffprivlib, base.PCAMechanism):
    """``diffprivlib.models.PCA`` of data that are centred already.

    Releases have ``components`` (k, d), ``singular_values`` (k,),
    ``explained_variance`` (k,) and ``noise_variance`` (): all that a fitted model shows
    of the data, and the claim is for all of it. The row norm is what the library calls
    ``data_norm``.
    """

    def _sampler(self, data: ArrayLike, rng: Rng) -> base.Sampler:
        library = import_module("diffprivlib")
        rows, random_state = self._rows(data), _random_state(rng)

        def fit() -> dict[str, Array]:
            model = library.models.PCA(
                n_components=self.n_components,
                epsilon=self.epsilon,
                data_norm=self.row_norm,
                centered=True,
                random_state=random_state,
                # By default all models of a process report to one accountant.
                accountant=library.BudgetAccountant(),
            ).fit(rows)
            return base.read_off(model, "components", *base.VARIANCES)

        return fit


def _mechanisms() -> Any:
    return import_module("diffprivlib.mechanisms")


def _random_state(rng: Rng) -> np.random.RandomState:
    return np.random.RandomState(rng.bit_generator)
