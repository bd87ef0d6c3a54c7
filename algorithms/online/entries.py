"""The entries in the catalogue of the online family: a release after every row."""

from functools import partial

from dpaudit.algorithms.entries import Entry, Refutation
from dpaudit.algorithms.online import tree_aggregation
from dpaudit.algorithms.online.doubling import DoublingOnlinePCA, ExactTestDoubling
from dpaudit.algorithms.online.factorised import FactorisedOnlinePCA, FactorisedSums

__all__ = ["ONLINE"]

_entry = partial(Entry, family="online", released="k components after every row")
_planted = partial(_entry, source="dpaudit; planted")

ONLINE: tuple[Entry, ...] = (
    _entry(
        name="tree-aggregation",
        source="Dwork et al., STOC 2014, section 2.3.2; calibration by dpaudit",
        released="a d × d sum after every row",
        summary="all prefix sums of x x^T by a binary tree, smallest proven noise",
        constructor=tree_aggregation.TreeAggregation.calibrated,
    ),
    _entry(
        name="tree-aggregation-published",
        source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, section 2.3.2",
        released="a d × d sum after every row",
        summary="all prefix sums of x x^T by a binary tree, published noise",
        constructor=tree_aggregation.TreeAggregation.as_published,
    ),
    _planted(
        name="tree-aggregation-fresh-noise",
        released="a d × d sum after every row",
        summary="a tree whose nodes are noised anew at every use; the claim is false",
        constructor=tree_aggregation.FreshNoiseTree.planted,
        refutation=Refutation(60_000),
        epsilon=2.0,
    ),
    _planted(
        name="tree-aggregation-reused-noise",
        released="a d × d sum after every row",
        summary="a tree whose levels have one noise each; the claim is false",
        constructor=tree_aggregation.ReusedNoiseTree.planted,
        refutation=Refutation(2_000),
    ),
    _entry(
        name="prefix-sums-factorised",
        source="Fichtenberger, Henzinger, Upadhyay, ICML 2023; calibration by dpaudit",
        released="a d × d sum after every row",
        summary="all prefix sums of x x^T by a root of the matrix of prefix sums",
        constructor=FactorisedSums.calibrated,
    ),
    _entry(
        name="follow-perturbed-leader",
        source="Dwork et al., STOC 2014, Algorithm 3; made private by dpaudit",
        summary="a subspace after every row, new noise in each step, composed by GDP",
        constructor=tree_aggregation.FollowPerturbedLeader.calibrated,
    ),
    _entry(
        name="follow-perturbed-leader-published",
        source="Dwork et al., STOC 2014, Algorithm 3; the claim is planted",
        summary="its noise is for one step, the claim for the whole: the paper says no",
        constructor=tree_aggregation.FollowPerturbedLeader.as_published,
        refutation=Refutation(15_000),
    ),
    _entry(
        name="online-pca",
        source="Dwork et al., STOC 2014, section 4.2; calibration by dpaudit",
        summary="a subspace after every row, noise of a tree, smallest proven noise",
        constructor=tree_aggregation.OnlinePCA.calibrated,
    ),
    _entry(
        name="online-pca-published",
        source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, section 4.2",
        summary="a subspace after every row, published noise of a tree; very loose",
        constructor=tree_aggregation.OnlinePCA.as_published,
    ),
    _entry(
        name="online-pca-factorised",
        source="Fichtenberger, Henzinger, Upadhyay, ICML 2023; for PCA by dpaudit",
        summary="a subspace after every row, noise of a root of prefix sums",
        constructor=FactorisedOnlinePCA.calibrated,
    ),
    _entry(
        name="online-pca-doubling",
        source="Dwork et al., STOC 2014, Algorithm 4; calibration by dpaudit",
        summary="online PCA in epochs that double a guess of OPT, proven noise",
        constructor=DoublingOnlinePCA.calibrated,
    ),
    _entry(
        name="online-pca-doubling-published",
        source="Dwork, Talwar, Thakurta, Zhang, STOC 2014, Algorithm 4",
        summary="online PCA in epochs, published noise and guesses; very loose",
        constructor=DoublingOnlinePCA.as_published,
    ),
    _planted(
        name="online-pca-doubling-exact-test",
        summary="online PCA in epochs whose ends are not private; the claim is false",
        constructor=ExactTestDoubling.planted,
        refutation=Refutation(100),
    ),
)
