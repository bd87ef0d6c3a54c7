"""The entries in the catalogue of REAPER, and of the baselines without privacy."""

from dpaudit.algorithms.entries import Entry, Fall
from dpaudit.algorithms.robust.fms import FastMedianSubspace
from dpaudit.algorithms.robust.gradient_reaper import (
    PrivateGradientReaper,
    PrivateStochasticGradientReaper,
)
from dpaudit.algorithms.robust.irls import IterativeReaper
from dpaudit.algorithms.robust.mirror_reaper import (
    PrivateMirrorReaper,
    PrivateStochasticMirrorReaper,
)
from dpaudit.algorithms.robust.published_reaper import (
    PublishedGradientReaper,
    PublishedMirrorReaper,
    PublishedStochasticGradientReaper,
    PublishedStochasticMirrorReaper,
)
from dpaudit.neighbours import Relation

__all__ = ["REAPER"]

_REPLACE_ONE = (Relation.REPLACE_ONE,)
_EITHER = (Relation.REPLACE_ONE, Relation.ADD_REMOVE)
_PAPER = "Maunu, Yu, Lerman, MSML 2022, appendix A"

REAPER: tuple[Entry, ...] = (
    Entry(
        name="irls-reaper",
        family="robust",
        source="Lerman, McCoy, Tropp, Zhang, FoCM 2015; the claim is planted",
        summary="REAPER by reweighted least squares, held to pure DP; false",
        constructor=IterativeReaper.claiming,
        approximate=False,
        falls=Fall(5_000),
        relations=_REPLACE_ONE,
        has_row_norm=False,
        has_components=True,
    ),
    Entry(
        name="fms",
        family="robust",
        source="Lerman, Maunu, Information and Inference 2018; the claim is planted",
        summary="reweighted PCA for GLAD, held to pure DP; false",
        constructor=FastMedianSubspace.claiming,
        approximate=False,
        falls=Fall(5_000),
        relations=_REPLACE_ONE,
        has_row_norm=False,
        has_components=True,
    ),
    Entry(
        name="dp-gd-reap",
        family="robust",
        source=f"{_PAPER}; corrected by dpaudit",
        summary="gradient descent on REAPER, smallest noise",
        constructor=PrivateGradientReaper.calibrated,
        approximate=True,
        relations=_REPLACE_ONE,
        has_row_norm=False,
        has_components=True,
    ),
    Entry(
        name="dp-gd-reap-published",
        family="robust",
        source=_PAPER,
        summary="gradient descent on REAPER, published noise, far more than needed",
        constructor=PublishedGradientReaper.as_published,
        approximate=True,
        relations=_REPLACE_ONE,
        has_row_norm=False,
        has_components=True,
    ),
    Entry(
        name="dp-sgd-reap",
        family="robust",
        source=f"{_PAPER}; corrected by dpaudit",
        summary="gradient descent on REAPER on Poisson samples, noise by an accountant",
        constructor=PrivateStochasticGradientReaper.calibrated,
        approximate=True,
        relations=_EITHER,
        has_row_norm=False,
        has_components=True,
    ),
    Entry(
        name="dp-sgd-reap-published",
        family="robust",
        source=f"{_PAPER}, Algorithm 1",
        summary="gradient descent on REAPER on random batches, published noise; false",
        constructor=PublishedStochasticGradientReaper.as_published,
        approximate=True,
        falls=Fall(10_000),
        relations=_REPLACE_ONE,
        has_row_norm=False,
        has_components=True,
    ),
    Entry(
        name="dp-md-reap",
        family="robust",
        source=f"{_PAPER}; corrected by dpaudit",
        summary="mirror descent on REAPER, smallest noise",
        constructor=PrivateMirrorReaper.calibrated,
        approximate=True,
        relations=_REPLACE_ONE,
        has_row_norm=False,
        has_components=True,
    ),
    Entry(
        name="dp-md-reap-published",
        family="robust",
        source=_PAPER,
        summary="mirror descent on REAPER, published noise and projection",
        constructor=PublishedMirrorReaper.as_published,
        approximate=True,
        relations=_REPLACE_ONE,
        has_row_norm=False,
        has_components=True,
    ),
    Entry(
        name="dp-smd-reap",
        family="robust",
        source=f"{_PAPER}; corrected by dpaudit",
        summary="mirror descent on REAPER on Poisson samples, noise by an accountant",
        constructor=PrivateStochasticMirrorReaper.calibrated,
        approximate=True,
        relations=_EITHER,
        has_row_norm=False,
        has_components=True,
    ),
    Entry(
        name="dp-smd-reap-published",
        family="robust",
        source=f"{_PAPER}, Algorithm 2",
        summary="mirror descent on REAPER on random batches, published noise; false",
        constructor=PublishedStochasticMirrorReaper.as_published,
        approximate=True,
        falls=Fall(10_000),
        relations=_REPLACE_ONE,
        has_row_norm=False,
        has_components=True,
    ),
)
