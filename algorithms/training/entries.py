"""The entries in the catalogue of models that are trained in private."""

from functools import partial

from dpaudit.algorithms.entries import Entry, Refutation
from dpaudit.algorithms.training import planted
from dpaudit.algorithms.training.dp_sgd import DPSGD
from dpaudit.neighbours import Relation

__all__ = ["TRAINING"]

_entry = partial(Entry, family="training", released="weights of a model")
_planted = partial(_entry, source="dpaudit, planted")

TRAINING: tuple[Entry, ...] = (
    _entry(
        name="dp-sgd",
        source="Abadi et al., CCS 2016, Algorithm 1; calibration by dpaudit",
        summary="logistic regression on clipped gradients of Poisson samples",
        constructor=DPSGD.calibrated,
    ),
    _planted(
        name="dp-sgd-clipped-batches",
        summary="DP-SGD, with sums clipped and not gradients; the claim is false",
        constructor=planted.BatchClippedSGD.planted,
        refutation=Refutation(100_000),
    ),
    _planted(
        name="dp-sgd-batch-means",
        summary="DP-SGD, divided by the batch's own size; the claim is false",
        constructor=planted.MeanBatchSGD.planted,
        refutation=Refutation(100),
    ),
    _planted(
        name="dp-sgd-fixed-batches",
        summary="DP-SGD with rows in turn, secret only on paper; the claim is false",
        constructor=planted.FixedBatchSGD.planted,
        refutation=Refutation(50_000),
    ),
    _planted(
        name="dp-sgd-rule-of-thumb",
        summary="DP-SGD with sigma = q sqrt(T)/epsilon; the claim is false",
        constructor=planted.rule_of_thumb,
        relations=(Relation.ADD_REMOVE,),
        refutation=Refutation(10_000),
    ),
    _planted(
        name="dp-sgd-private-count",
        summary="DP-SGD, divided by the number of rows; the claim is false",
        constructor=planted.PrivateCountSGD.planted,
        refutation=Refutation(1_000),
    ),
)
