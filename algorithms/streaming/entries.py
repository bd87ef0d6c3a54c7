"""The entries in the catalogue of Oja's algorithm, and of DP-PCA and its parts."""

from functools import partial

from dpaudit.algorithms.entries import Entry, Refutation
from dpaudit.algorithms.streaming import dp_pca, mean_estimation, private_histogram
from dpaudit.algorithms.streaming.minibatch_oja import BlockOja, MinibatchOja
from dpaudit.algorithms.streaming.oja import ClaimedOja, PrivateOja
from dpaudit.algorithms.streaming.step_size_search import StepSizeSearch
from dpaudit.algorithms.streaming.top_eigenvalue import TopEigenvalue
from dpaudit.algorithms.streaming.two_stage_pca import TwoStagePCA

__all__ = ["STREAMING"]

_entry = partial(Entry, family="streaming", released="one component")

_PAPER = "Liu, Kong, Jain, Oh, NeurIPS 2022"
_planted = partial(_entry, source="dpaudit, planted")

STREAMING: tuple[Entry, ...] = (
    _entry(
        name="oja",
        source="Oja, J. Math. Biology 1982; the claim is planted",
        summary="Oja without noise, held to pure DP; the claim is false",
        constructor=ClaimedOja.planted,
        refutation=Refutation(100),
    ),
    _entry(
        name="private-oja",
        source="Liu et al., NeurIPS 2022, Algorithm 2; calibration by dpaudit",
        summary="Oja on shuffled rows, noise in every step, amplification by shuffling",
        constructor=PrivateOja.calibrated,
        epsilon=0.5,
    ),
    _entry(
        name="minibatch-oja",
        source="Liu et al., NeurIPS 2022, equation (7); calibration by dpaudit",
        summary="Oja on disjoint batches, smallest proven noise",
        constructor=MinibatchOja.calibrated,
    ),
    _entry(
        name="minibatch-oja-search",
        source="Liu et al., NeurIPS 2022, section 5; made private by dpaudit",
        summary="minibatch Oja on a grid of step sizes, the best run chosen privately",
        constructor=StepSizeSearch.calibrated,
    ),
    _entry(
        name="block-oja",
        source="Liu et al., NeurIPS 2022, section 7; private form by dpaudit",
        released="k components",
        summary="k components by Oja with QR on disjoint batches",
        constructor=BlockOja.calibrated,
    ),
    _entry(
        name="dp-pca",
        source=f"{_PAPER}, Algorithm 3; corrected by dpaudit",
        summary="Oja steps on private means of gradients, each half of a batch in full",
        constructor=dp_pca.DPPCA.calibrated,
    ),
    _entry(
        name="dp-pca-tuned",
        source=f"{_PAPER}, Algorithm 3; parts by dpaudit",
        summary="dp-pca with normal counts, balls for boxes, steps of the power method",
        constructor=dp_pca.DPPCA.tuned,
    ),
    _entry(
        name="two-stage-pca",
        source=f"dpaudit, from parts of {_PAPER}",
        released="k components",
        summary="GOE noise on half of the rows, then a DP-PCA step on the other half",
        constructor=TwoStagePCA.calibrated,
    ),
    _entry(
        name="dp-pca-published",
        source=f"{_PAPER}, Algorithm 3",
        summary="DP-PCA with the paper's constants, halves sharing the budget",
        constructor=dp_pca.PublishedDPPCA.as_published,
        epsilon=0.8,
    ),
    _entry(
        name="dp-pca-rank-k",
        source=f"{_PAPER}, section 7; composition by dpaudit",
        released="k components",
        summary="k components by DP-PCA and deflation, composed by an accountant",
        constructor=dp_pca.RankKDPPCA.calibrated,
    ),
    _entry(
        name="private-histogram",
        source="Karwa, Vadhan, ITCS 2018, Lemma 2.3; calibration by dpaudit",
        released="counts of bins",
        summary="noisy counts of non-empty bins, those below a threshold left out",
        constructor=private_histogram.PrivateHistogram.calibrated,
    ),
    _entry(
        name="private-histogram-published",
        source="Karwa, Vadhan, ITCS 2018, Lemma 2.3",
        released="counts of bins",
        summary="noisy counts of bins, the threshold the paper's, a little high",
        constructor=private_histogram.PrivateHistogram.as_published,
    ),
    _entry(
        name="top-eigenvalue",
        source=f"{_PAPER}, Algorithm 4; calibration by dpaudit",
        released="one number",
        summary="the scale of a covariance, by a private histogram of groups",
        constructor=TopEigenvalue.calibrated,
    ),
    _entry(
        name="mean-estimation",
        source=f"{_PAPER}, Algorithm 5; split of the budget by dpaudit",
        released="a vector",
        summary="noisy mean of vectors truncated about the fullest bins",
        constructor=mean_estimation.MeanEstimation.calibrated,
    ),
    _entry(
        name="mean-estimation-published",
        source=f"{_PAPER}, Algorithm 5, with 12 for the 8 of equation 14",
        released="a vector",
        summary="noisy mean of truncated vectors, the paper's split of the budget",
        constructor=mean_estimation.MeanEstimation.as_published,
        epsilon=0.8,
    ),
    _planted(
        name="private-histogram-no-threshold",
        released="counts of bins",
        summary="a private histogram that shows lonely rows; the claim is false",
        constructor=private_histogram.UnthresholdedHistogram.planted,
        refutation=Refutation(100),
    ),
    _entry(
        name="mean-estimation-constant-8",
        source=f"{_PAPER}, equation 14, planted in mean-estimation",
        released="a vector",
        summary="noise for two thirds of the window; the claim is false",
        constructor=mean_estimation.mean_with_constant_8,
        refutation=Refutation(1_000_000),
        epsilon=2.0,
    ),
    _planted(
        name="dp-pca-overlapping-halves",
        summary="DP-PCA that reads rows twice and pays once; the claim is false",
        constructor=dp_pca.OverlappingDPPCA.planted,
        refutation=Refutation(1_000_000),
        epsilon=3.5,
    ),
)
