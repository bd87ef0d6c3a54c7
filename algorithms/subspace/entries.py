"""The entries in the catalogue of mechanisms that release a subspace."""

from functools import partial

from dpaudit.algorithms.entries import Entry, Refutation
from dpaudit.algorithms.subspace import exact_exponential, published_private_subspace
from dpaudit.algorithms.subspace.exponential import DeflationExponential
from dpaudit.algorithms.subspace.gibbs import GibbsExponential
from dpaudit.algorithms.subspace.power_method import LaplacePowerMethod, PowerMethod
from dpaudit.algorithms.subspace.residual_step import ResidualStepPCA

__all__ = ["SUBSPACE"]

_entry = partial(Entry, family="subspace", released="k components")

SUBSPACE: tuple[Entry, ...] = (
    _entry(
        name="residual-step-pca",
        source="dpaudit; refined in steps like Biswas et al., NeurIPS 2020",
        summary="GOE noise, then noisy cross moments of residuals if they promise more",
        constructor=ResidualStepPCA.calibrated,
    ),
    _entry(
        name="power-method",
        source="Hardt, Price, NeurIPS 2014; calibration by dpaudit",
        summary="noisy power method, normal noise, smallest proven noise",
        constructor=PowerMethod.calibrated,
    ),
    _entry(
        name="power-method-published",
        source="Hardt, Price, NeurIPS 2014, as in Imtiaz, Sarwate, ICASSP 2016",
        summary="noisy power method, normal noise, published constant",
        constructor=PowerMethod.as_published,
    ),
    _entry(
        name="power-method-laplace",
        source="Hardt, Price, NeurIPS 2014; calibration by dpaudit",
        summary="noisy power method, Laplace noise, pure DP",
        constructor=LaplacePowerMethod.calibrated,
    ),
    _entry(
        name="power-method-laplace-published",
        source="Hardt, Price, NeurIPS 2014, as in Imtiaz, Sarwate, ICASSP 2016",
        summary="noisy power method, Laplace noise, published constant",
        constructor=LaplacePowerMethod.as_published,
    ),
    _entry(
        name="private-subspace",
        source="Dwork et al. 2014, Algorithm 2; corrected by dpaudit",
        summary="noisy projector if the eigengap is certified, else bottom",
        constructor=published_private_subspace.PrivateSubspace.calibrated,
    ),
    _entry(
        name="private-subspace-published",
        source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, Algorithm 2",
        summary="noisy projector, whatever the eigengap; the claim is false",
        constructor=published_private_subspace.PublishedPrivateSubspace.as_published,
        refutation=Refutation(100),
    ),
    _entry(
        name="exponential-pca",
        source="Chaudhuri, Sarwate, Sinha, JMLR 2013, PPCA with k = 1",
        released="one component",
        summary="one component by the exponential mechanism, drawn exactly, pure DP",
        constructor=exact_exponential.ExponentialMechanism.calibrated,
    ),
    _entry(
        name="exponential-pca-gibbs",
        source="Chaudhuri, Sarwate, Sinha, JMLR 2013, PPCA; sampler by dpaudit",
        summary="k components by a Markov chain; the claim is of its stationary law",
        constructor=GibbsExponential.calibrated,
    ),
    _entry(
        name="exponential-pca-acg",
        source="Chaudhuri, Sarwate, Sinha, JMLR 2013, PPCA; sampler by dpaudit",
        summary="k components drawn exactly by rejection, for k = 2 or 3, pure DP",
        constructor=exact_exponential.ExactExponential.calibrated,
    ),
    _entry(
        name="exponential-pca-deflation",
        source="Amin et al., NeurIPS 2019, Algorithm 1; calibration by dpaudit",
        summary="k components one after the other, each drawn exactly, pure DP",
        constructor=DeflationExponential.calibrated,
    ),
)
