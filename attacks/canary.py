r"""Where releases show what differs between the datasets of a pair: the canary.

Mechanisms on rows x in R^d mostly see their data through means or through the
second-moment matrix, and what the canary does to these is known to an attacker who
knows both datasets. So nothing has to be learned. Below, x is the row that only D has
and x' the one that only D' has, which counts with the opposite sign.

`CanaryQuadratic` is for releases Y that are d x d matrices. A mechanism that perturbs
the second-moment matrix sum_i x_i x_i^T, scaled or not, moves its mean along
x x^T - x' x'^T. The inner product of Y with it is x^T Y x - x'^T Y x'. For a projector
Y on a subspace this is how much more of x than of x' the subspace contains. With a
known statistic, `dpaudit.attacks.stated.MeanShift` does the same for any query.

`CanaryOverlap` is how much of the canary a released subspace contains. A row x in the
data pulls the principal subspace towards itself, so :math:`\|V^T x\|^2` is larger on D
than on D'. It is the same for every orthonormal basis V of the subspace and for every
sign of an eigenvector, which a mechanism may choose as it likes. The residual
:math:`\|x - V V^T x\|^2` is :math:`\|x\|^2 - \|V^T x\|^2` and gives the same events. A
symmetric d x d release is judged by its top eigenvector, unless it is a projector:
there the top eigenvector is arbitrary, and the quadratic form is the overlap already.

`Tracing`: a release leans towards the canary more than towards other rows. The score of
Dwork, Smith, Steinke, Ullman and Vadhan (*Robust traceability from trace amounts*, FOCS
2015, section 3), and in spirit that of Tardos for fingerprinting codes: the inner
product <y, x - z> of a released vector of means or sums with the canary, minus that
with a reference z, which takes away what y owes to the population. As both datasets are
known, z is the mean of the rows that they share. Under replace-one the difference of
two such scores is <y, x - x'>. Of orthonormal bases, which have no sign, the squared
length of the projection of x - z is taken; where z = 0 this is the overlap.

`Reconstruction` is how badly a release reconstructs the canary. Models fit the rows
they were made from better than other rows, so a small loss on x speaks for D
(membership by a loss threshold: Yeom, Giacomelli, Fredrikson and Jha, *Privacy risk in
machine learning*, CSF 2018). For a released d x k matrix V the loss of principal
component analysis, :math:`\|x - V V^T x\|^2`; for a released vector y that is no
direction, the squared distance :math:`\|x - y\|^2`. It stands back where another attack
gives the same events: for orthonormal V the loss is a constant minus the overlap, and
under replace-one the difference of squared distances is linear in y, which is tracing.
"""

from typing import cast

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks.base import (
    Attack,
    Parameters,
    Target,
    canary_rows,
    common_mean,
    flatten,
    score_ordinary,
    shaped_as_bases,
    square_on_rows,
)
from dpaudit.attacks.stated import ExactLoss, MeanShift
from dpaudit.mechanism import Release
from dpaudit.neighbours import Pair, Relation
from dpaudit.subspace import second_moment

__all__ = ["CanaryOverlap", "CanaryQuadratic", "Reconstruction", "Tracing"]

_TOLERANCE = 1e-6


def _are_orthonormal(bases: Array) -> bool:
    """Say whether most of the finite matrices of a stack have orthonormal columns."""
    finite = bases[(np.abs(bases) < 2).all(axis=(1, 2))]
    if 2 * len(finite) <= np.isfinite(bases).all(axis=(1, 2)).sum():
        return False
    gram = finite.swapaxes(1, 2) @ finite
    defect = np.abs(gram - np.eye(bases.shape[2])).max(axis=(1, 2))
    return bool(np.median(defect) <= _TOLERANCE)


def _captured_length(bases: Array, rows: Array) -> Array:
    """Return the sum of ||V^T x||^2 over rows x, shape (size,); 0 for no rows."""
    return np.square(rows @ bases).sum(axis=(1, 2))


def _moment_difference(pair: Pair) -> Array:
    """Return x x^T - x' x'^T, shape (d, d); it is 0 if x' = -x."""
    ours, theirs = canary_rows(pair)
    return second_moment(ours) - second_moment(theirs)


class CanaryQuadratic(Attack):
    """Score = x^T Y x - x'^T Y x'."""

    name = "canary-quadratic"
    learns = False
    axes = 2

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether releases are d x d, rows in R^d, and the shift not known."""
        return (
            square_on_rows(target.pair, releases)
            and bool(_moment_difference(target.pair).any())
            and not MeanShift().applies(target, releases)
        )

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        return {"difference": _moment_difference(target.pair)}

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        difference = np.ravel(parameters["difference"])
        return score_ordinary(flatten(releases), lambda flat: flat @ difference)


class _OnRows(Attack):
    """An attack whose parameters are the canary rows."""

    learns = False
    axes = 1

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        ours, theirs = canary_rows(target.pair)
        return {"ours": ours, "theirs": theirs}


_MAX_DIMENSION = 32  # of matrices: eigenvectors of larger ones take too long


class CanaryOverlap(_OnRows):
    """Score = ||V^T x||^2 - ||V^T x'||^2."""

    name = "canary-overlap"

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether releases show a subspace of the space that rows live in."""
        pair = target.pair
        if square_on_rows(pair, releases):
            if not _have_top_eigenvectors(cast(Array, releases)):
                return False
        else:
            bases = shaped_as_bases(pair, releases)
            if bases is None or not _are_orthonormal(bases):
                return False
        known = MeanShift().applies(target, releases) or ExactLoss().applies(
            target, releases
        )
        return bool(_moment_difference(pair).any()) and not known

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        def overlap(releases: Array) -> Array:
            if square_on_rows(target.pair, releases):
                bases = _top_eigenvectors(releases)
            else:
                bases = cast(Array, shaped_as_bases(target.pair, releases))
            ours, theirs = parameters["ours"], parameters["theirs"]
            return _captured_length(bases, ours) - _captured_length(bases, theirs)

        return score_ordinary(cast(Array, releases), overlap)


def _have_top_eigenvectors(matrices: Array) -> bool:
    """Say whether finite releases are symmetric, and few of them are projectors."""
    finite = matrices[np.isfinite(matrices).all(axis=(1, 2))]
    if not len(finite) or finite.shape[1] > _MAX_DIMENSION:
        return False
    if not np.allclose(finite, finite.swapaxes(1, 2), rtol=1e-9, atol=0.0):
        return False
    bounded = np.clip(finite, -2, 2)  # entries of projectors are at most 1
    defect = np.abs(bounded @ bounded - bounded).max(axis=(1, 2))
    return bool(np.median(defect) > _TOLERANCE)


def _top_eigenvectors(matrices: Array) -> Array:
    """Return the top eigenvector of each symmetric part, shape (size, d, 1)."""
    _, vectors = np.linalg.eigh((matrices + matrices.swapaxes(1, 2)) / 2)
    return vectors[:, :, -1:]


class Tracing(Attack):
    """Score = <y, x - z>, or ||V^T (x - z)||^2; minus the same for x'."""

    name = "tracing"
    learns = False
    axes = 1

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether releases are d-vectors, or subspaces with a reference."""
        bases = shaped_as_bases(target.pair, releases)
        if bases is None or MeanShift().applies(target, releases):
            return False
        if _are_orthonormal(bases):
            return bool(common_mean(target.pair).any())
        ours, theirs = _centred(target)
        return bases.shape[2] == 1 and bool((ours.sum(0) - theirs.sum(0)).any())

    def fit(
        self, target: Target, on_data: Release, on_neighbour: Release
    ) -> Parameters:
        ours, theirs = _centred(target)
        both = [
            cast(Array, shaped_as_bases(target.pair, side))
            for side in (on_data, on_neighbour)
        ]
        signless = _are_orthonormal(np.concatenate(both))
        return {"ours": ours, "theirs": theirs, "signless": np.array([signless])}

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        ours, theirs = parameters["ours"], parameters["theirs"]

        def trace(bases: Array) -> Array:
            if parameters["signless"][0]:
                return _captured_length(bases, ours) - _captured_length(bases, theirs)
            return bases[:, :, 0] @ (ours.sum(axis=0) - theirs.sum(axis=0))

        bases = cast(Array, shaped_as_bases(target.pair, releases))
        return score_ordinary(bases, trace)


def _centred(target: Target) -> tuple[Array, Array]:
    reference = common_mean(target.pair)
    ours, theirs = canary_rows(target.pair)
    return ours - reference, theirs - reference


_LARGEST = 1e60  # its fourth power is finite


class Reconstruction(_OnRows):
    """Score = loss of x' - loss of x, as far as there is an x' and an x."""

    name = "reconstruction"

    def suits(self, target: Target, releases: Release) -> bool:
        """Say whether releases are vectors, or bases that are not orthonormal."""
        bases = shaped_as_bases(target.pair, releases)
        if bases is None or _are_orthonormal(bases):
            return False
        if bases.shape[2] == 1 and target.pair.relation is Relation.REPLACE_ONE:
            return False
        return not MeanShift().applies(target, releases)

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        vectors = cast(Array, releases).ndim == 2

        def advantage(bases: Array) -> Array:
            bases = np.clip(bases, -_LARGEST, _LARGEST)
            ours, theirs = parameters["ours"], parameters["theirs"]
            return _loss(bases, theirs, vectors) - _loss(bases, ours, vectors)

        bases = cast(Array, shaped_as_bases(target.pair, releases))
        return score_ordinary(bases, advantage)


def _loss(bases: Array, rows: Array, vectors: bool) -> Array:
    """Return the summed loss of the rows under each release, shape (size,)."""
    copies = (
        np.swapaxes(bases, 1, 2)
        if vectors
        else (rows @ bases) @ np.swapaxes(bases, 1, 2)
    )
    return np.square(rows - copies).sum(axis=(1, 2))
