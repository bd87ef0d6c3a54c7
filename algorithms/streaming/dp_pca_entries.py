"""The entries in the catalogue of DP-PCA, of its parts, and of their planted bugs."""

from dpaudit.algorithms.entries import Entry, Fall
from dpaudit.algorithms.streaming.dp_pca import DPPCA
from dpaudit.algorithms.streaming.mean_estimation import MeanEstimation
from dpaudit.algorithms.streaming.planted import (
    OverlappingDPPCA,
    UnthresholdedHistogram,
    mean_with_constant_8,
)
from dpaudit.algorithms.streaming.private_histogram import PrivateHistogram
from dpaudit.algorithms.streaming.published_dp_pca import PublishedDPPCA
from dpaudit.algorithms.streaming.rank_k_dp_pca import RankKDPPCA
from dpaudit.algorithms.streaming.top_eigenvalue import TopEigenvalue
from dpaudit.neighbours import Relation

__all__ = ["DP_PCA"]

_REPLACE_ONE = (Relation.REPLACE_ONE,)
_PAPER = "Liu, Kong, Jain, Oh, NeurIPS 2022"

DP_PCA: tuple[Entry, ...] = (
    Entry(
        name="dp-pca",
        family="streaming",
        source=f"{_PAPER}, Algorithm 3; corrected by dpaudit",
        summary="Oja steps on private means of gradients, each half of a batch in full",
        constructor=DPPCA.calibrated,
        approximate=True,
        relations=_REPLACE_ONE,
        has_components=True,
    ),
    Entry(
        name="dp-pca-published",
        family="streaming",
        source=f"{_PAPER}, Algorithm 3",
        summary="the same with the print's constants, halves sharing the budget",
        constructor=PublishedDPPCA.as_published,
        approximate=True,
        epsilon=0.8,
        relations=_REPLACE_ONE,
        has_components=True,
    ),
    Entry(
        name="dp-pca-rank-k",
        family="streaming",
        source=f"{_PAPER}, section 7; composition by dpaudit",
        summary="k components by DP-PCA and deflation, composed by an accountant",
        constructor=RankKDPPCA.calibrated,
        approximate=True,
        relations=_REPLACE_ONE,
        has_components=True,
    ),
    Entry(
        name="private-histogram",
        family="streaming",
        source="Karwa, Vadhan, ITCS 2018, Lemma 2.3; calibration by dpaudit",
        summary="noisy counts of non-empty bins, those below a threshold left out",
        constructor=PrivateHistogram.calibrated,
        approximate=True,
        relations=_REPLACE_ONE,
        has_row_norm=False,
    ),
    Entry(
        name="private-histogram-published",
        family="streaming",
        source="Karwa, Vadhan, ITCS 2018, Lemma 2.3",
        summary="the same with the threshold of the print, which is a little high",
        constructor=PrivateHistogram.as_published,
        approximate=True,
        relations=_REPLACE_ONE,
        has_row_norm=False,
    ),
    Entry(
        name="top-eigenvalue",
        family="streaming",
        source=f"{_PAPER}, Algorithm 4; calibration by dpaudit",
        summary="the scale of a covariance, by a private histogram of groups",
        constructor=TopEigenvalue.calibrated,
        approximate=True,
        relations=_REPLACE_ONE,
        has_row_norm=False,
    ),
    Entry(
        name="mean-estimation",
        family="streaming",
        source=f"{_PAPER}, Algorithm 5; split of the budget by dpaudit",
        summary="noisy mean of vectors truncated about the fullest bins",
        constructor=MeanEstimation.calibrated,
        approximate=True,
        relations=_REPLACE_ONE,
        has_row_norm=False,
    ),
    Entry(
        name="mean-estimation-published",
        family="streaming",
        source=f"{_PAPER}, Algorithm 5, with 12 for the 8 of equation 14",
        summary="the same with the print's split of the budget",
        constructor=MeanEstimation.as_published,
        approximate=True,
        epsilon=0.8,
        relations=_REPLACE_ONE,
        has_row_norm=False,
    ),
    Entry(
        name="private-histogram-no-threshold",
        family="streaming",
        source="dpaudit, planted",
        summary="a private histogram that shows lonely rows; the claim is false",
        constructor=UnthresholdedHistogram.planted,
        approximate=True,
        falls=Fall(100),
        relations=_REPLACE_ONE,
        has_row_norm=False,
    ),
    Entry(
        name="mean-estimation-constant-8",
        family="streaming",
        source=f"{_PAPER}, equation 14, planted in mean-estimation",
        summary="noise for two thirds of the window; the claim is false",
        constructor=mean_with_constant_8,
        approximate=True,
        falls=Fall(1_000_000),
        epsilon=2.0,
        relations=_REPLACE_ONE,
        has_row_norm=False,
    ),
    Entry(
        name="dp-pca-overlapping-halves",
        family="streaming",
        source="dpaudit, planted",
        summary="DP-PCA that reads rows twice and pays once; the claim is false",
        constructor=OverlappingDPPCA.planted,
        approximate=True,
        falls=Fall(1_000_000),
        epsilon=3.5,
        relations=_REPLACE_ONE,
        has_row_norm=False,
    ),
)
