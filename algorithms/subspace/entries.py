"""The entries in the catalogue of mechanisms that release a subspace."""

from dpaudit.algorithms.entries import Entry, Fall
from dpaudit.algorithms.subspace.deflation import DeflationExponential
from dpaudit.algorithms.subspace.exact_exponential import ExactExponential
from dpaudit.algorithms.subspace.exponential import ExponentialMechanism
from dpaudit.algorithms.subspace.gibbs import GibbsExponential
from dpaudit.algorithms.subspace.laplace_power_method import LaplacePowerMethod
from dpaudit.algorithms.subspace.power_method import PowerMethod
from dpaudit.algorithms.subspace.private_subspace import PrivateSubspace
from dpaudit.algorithms.subspace.published_private_subspace import (
    PublishedPrivateSubspace,
)

__all__ = ["SUBSPACE"]

SUBSPACE: tuple[Entry, ...] = (
    Entry(
        name="power-method",
        family="subspace",
        source="Hardt, Price, NeurIPS 2014; calibration by dpaudit",
        summary="noisy power method, normal noise, smallest proven noise",
        constructor=PowerMethod.calibrated,
        approximate=True,
        has_components=True,
    ),
    Entry(
        name="power-method-published",
        family="subspace",
        source="Hardt, Price, NeurIPS 2014, as in Imtiaz, Sarwate, ICASSP 2016",
        summary="noisy power method, normal noise, published constant",
        constructor=PowerMethod.as_published,
        approximate=True,
        has_components=True,
    ),
    Entry(
        name="power-method-laplace",
        family="subspace",
        source="Hardt, Price, NeurIPS 2014; calibration by dpaudit",
        summary="noisy power method, Laplace noise, pure DP",
        constructor=LaplacePowerMethod.calibrated,
        approximate=False,
        has_components=True,
    ),
    Entry(
        name="power-method-laplace-published",
        family="subspace",
        source="Hardt, Price, NeurIPS 2014, as in Imtiaz, Sarwate, ICASSP 2016",
        summary="noisy power method, Laplace noise, published constant",
        constructor=LaplacePowerMethod.as_published,
        approximate=False,
        has_components=True,
    ),
    Entry(
        name="private-subspace",
        family="subspace",
        source="Dwork et al. 2014, Algorithm 2; corrected by dpaudit",
        summary="noisy projector if the eigengap is certified, else bottom",
        constructor=PrivateSubspace.calibrated,
        approximate=True,
        has_components=True,
    ),
    Entry(
        name="private-subspace-published",
        family="subspace",
        source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, Algorithm 2",
        summary="noisy projector, whatever the eigengap; the claim is false",
        constructor=PublishedPrivateSubspace.as_published,
        approximate=True,
        falls=Fall(100),
        has_components=True,
    ),
    Entry(
        name="exponential-pca",
        family="subspace",
        source="Chaudhuri, Sarwate, Sinha, JMLR 2013, PPCA with k = 1",
        summary="one component by the exponential mechanism, drawn exactly, pure DP",
        constructor=ExponentialMechanism.calibrated,
        approximate=False,
        has_components=True,
    ),
    Entry(
        name="exponential-pca-gibbs",
        family="subspace",
        source="Chaudhuri, Sarwate, Sinha, JMLR 2013, PPCA; sampler by dpaudit",
        summary="k components by a Markov chain; the claim is of its stationary law",
        constructor=GibbsExponential.calibrated,
        approximate=False,
        has_components=True,
    ),
    Entry(
        name="exponential-pca-acg",
        family="subspace",
        source="Chaudhuri, Sarwate, Sinha, JMLR 2013, PPCA; sampler by dpaudit",
        summary="k components drawn exactly by rejection, for k = 2 or 3, pure DP",
        constructor=ExactExponential.calibrated,
        approximate=False,
        has_components=True,
    ),
    Entry(
        name="exponential-pca-deflation",
        family="subspace",
        source="Amin et al., NeurIPS 2019, Algorithm 1; calibration by dpaudit",
        summary="k components one after the other, each drawn exactly, pure DP",
        constructor=DeflationExponential.calibrated,
        approximate=False,
        has_components=True,
    ),
)
