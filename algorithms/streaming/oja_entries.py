"""The entries in the catalogue of Oja's algorithm and its private forms."""

from dpaudit.algorithms.entries import Entry, Fall
from dpaudit.algorithms.streaming.block_oja import BlockOja
from dpaudit.algorithms.streaming.minibatch_oja import MinibatchOja
from dpaudit.algorithms.streaming.planted import ClaimedOja
from dpaudit.algorithms.streaming.private_oja import PrivateOja
from dpaudit.algorithms.streaming.step_size_search import StepSizeSearch
from dpaudit.neighbours import Relation

__all__ = ["OJA"]

_REPLACE_ONE = (Relation.REPLACE_ONE,)

OJA: tuple[Entry, ...] = (
    Entry(
        name="oja",
        family="streaming",
        source="Oja, J. Math. Biology 1982; the claim is planted",
        summary="Oja without noise, held to pure DP; the claim is false",
        constructor=ClaimedOja.planted,
        approximate=False,
        falls=Fall(100),
        relations=_REPLACE_ONE,
        has_row_norm=False,
    ),
    Entry(
        name="private-oja",
        family="streaming",
        source="Liu et al., NeurIPS 2022, Algorithm 2; calibration by dpaudit",
        summary="Oja on shuffled rows, noise in every step, amplification by shuffling",
        constructor=PrivateOja.calibrated,
        approximate=True,
        epsilon=0.5,
        relations=_REPLACE_ONE,
        has_components=True,
    ),
    Entry(
        name="minibatch-oja",
        family="streaming",
        source="Liu et al., NeurIPS 2022, equation (7); calibration by dpaudit",
        summary="Oja on disjoint batches, smallest proven noise",
        constructor=MinibatchOja.calibrated,
        approximate=True,
        relations=_REPLACE_ONE,
        has_components=True,
    ),
    Entry(
        name="minibatch-oja-search",
        family="streaming",
        source="Liu et al., NeurIPS 2022, section 5; made private by dpaudit",
        summary="minibatch Oja on a grid of step sizes, the best run chosen privately",
        constructor=StepSizeSearch.calibrated,
        approximate=True,
        relations=_REPLACE_ONE,
        has_components=True,
    ),
    Entry(
        name="block-oja",
        family="streaming",
        source="Liu et al., NeurIPS 2022, section 7; private form by dpaudit",
        summary="k components by Oja with QR on disjoint batches",
        constructor=BlockOja.calibrated,
        approximate=True,
        relations=_REPLACE_ONE,
        has_components=True,
    ),
)
