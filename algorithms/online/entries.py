"""The entries in the catalogue of the online family: a release after every row."""

from dpaudit.algorithms.entries import Entry, Fall
from dpaudit.algorithms.online.doubling import DoublingOnlinePCA
from dpaudit.algorithms.online.online_pca import OnlinePCA
from dpaudit.algorithms.online.perturbed_leader import FollowPerturbedLeader
from dpaudit.algorithms.online.planted import FreshNoiseTree, ReusedNoiseTree
from dpaudit.algorithms.online.planted_doubling import ExactTestDoubling
from dpaudit.algorithms.online.tree_aggregation import TreeAggregation
from dpaudit.neighbours import Relation

__all__ = ["ONLINE"]

_REPLACE_ONE = (Relation.REPLACE_ONE,)

ONLINE: tuple[Entry, ...] = (
    Entry(
        name="tree-aggregation",
        family="online",
        source="Dwork et al., STOC 2014, section 2.3.2; calibration by dpaudit",
        summary="all prefix sums of x x^T by a binary tree, smallest proven noise",
        constructor=TreeAggregation.calibrated,
        approximate=True,
        relations=_REPLACE_ONE,
    ),
    Entry(
        name="tree-aggregation-published",
        family="online",
        source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, section 2.3.2",
        summary="all prefix sums of x x^T by a binary tree, published noise",
        constructor=TreeAggregation.as_published,
        approximate=True,
        relations=_REPLACE_ONE,
    ),
    Entry(
        name="tree-aggregation-fresh-noise",
        family="online",
        source="dpaudit; planted",
        summary="a tree whose nodes are noised anew at every use; the claim is false",
        constructor=FreshNoiseTree.planted,
        approximate=True,
        falls=Fall(60_000),
        epsilon=2.0,
        relations=_REPLACE_ONE,
    ),
    Entry(
        name="tree-aggregation-reused-noise",
        family="online",
        source="dpaudit; planted",
        summary="a tree whose levels have one noise each; the claim is false",
        constructor=ReusedNoiseTree.planted,
        approximate=True,
        falls=Fall(2_000),
        relations=_REPLACE_ONE,
    ),
    Entry(
        name="follow-perturbed-leader",
        family="online",
        source="Dwork et al., STOC 2014, Algorithm 3; made private by dpaudit",
        summary="a subspace after every row, new noise in each step, composed by GDP",
        constructor=FollowPerturbedLeader.calibrated,
        approximate=True,
        relations=_REPLACE_ONE,
        has_components=True,
    ),
    Entry(
        name="follow-perturbed-leader-published",
        family="online",
        source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, Algorithm 3",
        summary="the same with noise for one step, held to it as a whole: false",
        constructor=FollowPerturbedLeader.as_published,
        approximate=True,
        falls=Fall(15_000),
        relations=_REPLACE_ONE,
        has_components=True,
    ),
    Entry(
        name="online-pca",
        family="online",
        source="Dwork et al., STOC 2014, section 4.2; calibration by dpaudit",
        summary="a subspace after every row, noise of a tree, smallest proven noise",
        constructor=OnlinePCA.calibrated,
        approximate=True,
        relations=_REPLACE_ONE,
        has_components=True,
    ),
    Entry(
        name="online-pca-published",
        family="online",
        source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, section 4.2",
        summary="a subspace after every row, published noise of a tree; very loose",
        constructor=OnlinePCA.as_published,
        approximate=True,
        relations=_REPLACE_ONE,
        has_components=True,
    ),
    Entry(
        name="online-pca-doubling",
        family="online",
        source="Dwork et al., STOC 2014, Algorithm 4; calibration by dpaudit",
        summary="online PCA in epochs that double a guess of OPT, proven noise",
        constructor=DoublingOnlinePCA.calibrated,
        approximate=True,
        relations=_REPLACE_ONE,
        has_components=True,
    ),
    Entry(
        name="online-pca-doubling-published",
        family="online",
        source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, Algorithm 4",
        summary="online PCA in epochs, published noise and guesses; very loose",
        constructor=DoublingOnlinePCA.as_published,
        approximate=True,
        relations=_REPLACE_ONE,
        has_components=True,
    ),
    Entry(
        name="online-pca-doubling-exact-test",
        family="online",
        source="dpaudit; planted",
        summary="online PCA in epochs whose ends are not private; the claim is false",
        constructor=ExactTestDoubling.planted,
        approximate=True,
        falls=Fall(100),
        relations=_REPLACE_ONE,
        has_components=True,
    ),
)
