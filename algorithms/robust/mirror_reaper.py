r"""dp-MD-REAP and dp-SMD-REAP: mirror descent on REAPER, corrected.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, section 4.3 and Algorithm 2; Goes, Zhang, Arora, Lerman, *Robust stochastic
principal component analysis*, AISTATS 2014, for mirror descent without noise.

The noisy sums, their noise and the privacy proofs are those of
`dpaudit.algorithms.robust.gradient_reaper`: what is done with a noisy sum is
postprocessing, and the sensitivities hold for every symmetric P. The steps are those of
`dpaudit.algorithms.robust.reaper_steps.Entropic`: unlike the print, P stays in H, by
the Bregman projection with its cap at 1.
"""

from dataclasses import dataclass
from typing import ClassVar

from dpaudit.algorithms.robust.gradient_reaper import (
    PrivateGradientReaper,
    PrivateStochasticGradientReaper,
)
from dpaudit.algorithms.robust.reaper_steps import Entropic, Geometry

__all__ = ["PrivateMirrorReaper", "PrivateStochasticMirrorReaper"]


@dataclass(frozen=True, kw_only=True)
class PrivateMirrorReaper(PrivateGradientReaper):
    """dp-MD-REAP: full batches; the release is a basis of shape (D, r).

    Parameters
    ----------
    sigma, n_components, claim, iterations, step_sizes
        See `PrivateGradientReaper`.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = PrivateMirrorReaper.calibrated(1.0, 1e-5)
    >>> rows = np.repeat(np.eye(3), [5000, 100, 100], axis=0)
    >>> mechanism.release(rows, rng=np.random.default_rng(0)).shape
    (3, 1)
    """

    geometry: ClassVar[Geometry] = Entropic()


@dataclass(frozen=True, kw_only=True)
class PrivateStochasticMirrorReaper(PrivateStochasticGradientReaper):
    """dp-SMD-REAP: Poisson samples; the release is a basis of shape (D, r).

    Parameters
    ----------
    sigma, rate, batch_size, relation, n_components, claim, iterations, step_sizes
        See `PrivateStochasticGradientReaper`.
    """

    geometry: ClassVar[Geometry] = Entropic()
