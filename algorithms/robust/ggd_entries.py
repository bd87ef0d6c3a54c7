"""The entries in the catalogue of geodesic descent on GLAD."""

from dpaudit.algorithms.entries import Entry, Fall
from dpaudit.algorithms.robust.ggd import GeodesicDescent, MinibatchGeodesicDescent
from dpaudit.algorithms.robust.noiseless_ggd import NoiselessGGD
from dpaudit.algorithms.robust.private_ggd import PrivateGGD
from dpaudit.algorithms.robust.private_sggd import PrivateSGGD
from dpaudit.algorithms.robust.published_ggd import PublishedGGD, PublishedSGGD
from dpaudit.neighbours import Relation

__all__ = ["GGD"]

_REPLACE_ONE = (Relation.REPLACE_ONE,)
_EITHER = (Relation.REPLACE_ONE, Relation.ADD_REMOVE)

GGD: tuple[Entry, ...] = (
    Entry(
        name="ggd",
        family="robust",
        source="Maunu, Zhang, Lerman, JMLR 2019; the claim is planted",
        summary="geodesic descent on GLAD without noise, held to pure DP; false",
        constructor=GeodesicDescent.claiming,
        approximate=False,
        falls=Fall(3_000),
        relations=_REPLACE_ONE,
        has_row_norm=False,
        has_components=True,
    ),
    Entry(
        name="sggd",
        family="robust",
        source="Maunu, Yu, Lerman, MSML 2022, section 2.2; the claim is planted",
        summary="the same on random batches, held to pure DP; false",
        constructor=MinibatchGeodesicDescent.claiming,
        approximate=False,
        falls=Fall(3_000),
        relations=_REPLACE_ONE,
        has_row_norm=False,
        has_components=True,
    ),
    Entry(
        name="dp-ggd",
        family="robust",
        source="Maunu, Yu, Lerman, MSML 2022, Theorem 6; calibration by dpaudit",
        summary="full-batch descent on GLAD, smallest proven noise",
        constructor=PrivateGGD.calibrated,
        approximate=True,
        relations=_REPLACE_ONE,
        has_row_norm=False,
        has_components=True,
    ),
    Entry(
        name="dp-ggd-published",
        family="robust",
        source="Maunu, Yu, Lerman, MSML 2022, Theorem 6",
        summary="full-batch descent on GLAD, published noise, start not counted",
        constructor=PublishedGGD.as_published,
        approximate=True,
        relations=_REPLACE_ONE,
        has_row_norm=False,
        has_components=True,
    ),
    Entry(
        name="dp-sggd",
        family="robust",
        source="Maunu, Yu, Lerman, MSML 2022, Theorem 6; corrected by dpaudit",
        summary="descent on GLAD on Poisson samples, noise by an accountant",
        constructor=PrivateSGGD.calibrated,
        approximate=True,
        relations=_EITHER,
        has_row_norm=False,
        has_components=True,
    ),
    Entry(
        name="dp-sggd-published",
        family="robust",
        source="Maunu, Yu, Lerman, MSML 2022, Theorem 6",
        summary="descent on GLAD on random batches, published noise; false",
        constructor=PublishedSGGD.as_published,
        approximate=True,
        falls=Fall(5_000),
        relations=_REPLACE_ONE,
        has_row_norm=False,
        has_components=True,
    ),
    Entry(
        name="noiseless-ggd",
        family="robust",
        source="Maunu, Yu, Lerman, MSML 2022, Theorem 11",
        summary="descent on GLAD without noise, called private; false",
        constructor=NoiselessGGD.as_published,
        approximate=True,
        falls=Fall(100),
        relations=_REPLACE_ONE,
        has_row_norm=False,
        has_components=True,
    ),
)
