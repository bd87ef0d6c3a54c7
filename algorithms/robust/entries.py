"""The entries in the catalogue of robust PCA: descent on GLAD, and on REAPER."""

from functools import partial

from dpaudit.algorithms.entries import Entry, Refutation
from dpaudit.algorithms.robust import ggd, private_mechanisms
from dpaudit.neighbours import Relation

__all__ = ["ROBUST"]

_entry = partial(Entry, family="robust", released="k components")

_EITHER = (Relation.REPLACE_ONE, Relation.ADD_REMOVE)
_APPENDIX = "Maunu, Yu, Lerman, MSML 2022, appendix A"
_corrected = partial(_entry, source=f"{_APPENDIX}; corrected by dpaudit")

ROBUST: tuple[Entry, ...] = (
    _entry(
        name="ggd",
        source="Maunu, Zhang, Lerman, JMLR 2019; the claim is planted",
        summary="geodesic descent on GLAD without noise, held to pure DP; false",
        constructor=ggd.GeodesicDescent.claiming,
        refutation=Refutation(3_000),
    ),
    _entry(
        name="sggd",
        source="Maunu, Yu, Lerman, MSML 2022, section 2.2; the claim is planted",
        summary="descent on GLAD by random batches, no noise, held to pure DP; false",
        constructor=ggd.MinibatchGeodesicDescent.claiming,
        refutation=Refutation(3_000),
    ),
    _entry(
        name="dp-ggd",
        source="Maunu, Yu, Lerman, MSML 2022, Theorem 6; calibration by dpaudit",
        summary="full-batch descent on GLAD, smallest proven noise",
        constructor=private_mechanisms.PrivateGGD.calibrated,
    ),
    _entry(
        name="dp-ggd-published",
        source="Maunu, Yu, Lerman, MSML 2022, Theorem 6",
        summary="full-batch descent on GLAD, published noise, start not counted",
        constructor=private_mechanisms.PrivateGGD.as_published,
    ),
    _entry(
        name="dp-sggd",
        source="Maunu, Yu, Lerman, MSML 2022, Theorem 6; corrected by dpaudit",
        summary="descent on GLAD on Poisson samples, noise by an accountant",
        constructor=private_mechanisms.PrivateSGGD.calibrated,
        relations=_EITHER,
    ),
    _entry(
        name="dp-sggd-published",
        source="Maunu, Yu, Lerman, MSML 2022, Theorem 6",
        summary="descent on GLAD on random batches, published noise; false",
        constructor=private_mechanisms.PrivateSGGD.as_published,
        refutation=Refutation(5_000),
    ),
    _entry(
        name="noiseless-ggd",
        source="Maunu, Yu, Lerman, MSML 2022, Theorem 11",
        summary="descent on GLAD without noise, called private; false",
        constructor=ggd.NoiselessGGD.as_published,
        refutation=Refutation(100),
    ),
    _entry(
        name="irls-reaper",
        source="Lerman, McCoy, Tropp, Zhang, FoCM 2015; the claim is planted",
        summary="REAPER by reweighted least squares, held to pure DP; false",
        constructor=ggd.IterativeReaper.claiming,
        refutation=Refutation(5_000),
    ),
    _entry(
        name="fms",
        source="Lerman, Maunu, Information and Inference 2018; the claim is planted",
        summary="reweighted PCA for GLAD, held to pure DP; false",
        constructor=ggd.FastMedianSubspace.claiming,
        refutation=Refutation(5_000),
    ),
    _corrected(
        name="dp-gd-reap",
        summary="gradient descent on REAPER, smallest noise",
        constructor=private_mechanisms.PrivateGradientReaper.calibrated,
    ),
    _entry(
        name="dp-gd-reap-published",
        source=_APPENDIX,
        summary="gradient descent on REAPER, published noise, far more than needed",
        constructor=private_mechanisms.PrivateGradientReaper.as_published,
    ),
    _corrected(
        name="dp-sgd-reap",
        summary="gradient descent on REAPER on Poisson samples, noise by an accountant",
        constructor=private_mechanisms.PrivateStochasticGradientReaper.calibrated,
        relations=_EITHER,
    ),
    _entry(
        name="dp-sgd-reap-published",
        source=f"{_APPENDIX}, Algorithm 1",
        summary="gradient descent on REAPER on random batches, published noise; false",
        constructor=private_mechanisms.PrivateStochasticGradientReaper.as_published,
        refutation=Refutation(10_000),
    ),
    _corrected(
        name="dp-md-reap",
        summary="mirror descent on REAPER, smallest noise",
        constructor=private_mechanisms.PrivateMirrorReaper.calibrated,
    ),
    _entry(
        name="dp-md-reap-published",
        source=_APPENDIX,
        summary="mirror descent on REAPER, published noise and projection",
        constructor=private_mechanisms.PrivateMirrorReaper.as_published,
    ),
    _corrected(
        name="dp-smd-reap",
        summary="mirror descent on REAPER on Poisson samples, noise by an accountant",
        constructor=private_mechanisms.PrivateStochasticMirrorReaper.calibrated,
        relations=_EITHER,
    ),
    _entry(
        name="dp-smd-reap-published",
        source=f"{_APPENDIX}, Algorithm 2",
        summary="mirror descent on REAPER on random batches, published noise; false",
        constructor=private_mechanisms.PrivateStochasticMirrorReaper.as_published,
        refutation=Refutation(10_000),
    ),
)
