r"""Iteratively reweighted least squares for robust PCA: what its two forms share.

An objective sum_i r_i, r_i the distance of row i from what is sought, is minimised by
turns: weights w_i = 1/max(r_i, floor) from the last solution, and then the solution of
the least squares problem sum_i w_i r_i^2. Each turn lowers the objective in which r is
replaced by r^2/(2 floor) + floor/2 below the floor (a majorisation).

**Nothing is promised**, and `claim` is None. `Reweighted.claiming` puts a false claim
on it for audits to refute.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.robust.ggd import PrincipalStart
from dpaudit.algorithms.robust.ggd_pairs import shown_pair
from dpaudit.algorithms.robust.glad import Array, spherise
from dpaudit.algorithms.robust.initialisation import PublicStart, Start, check_start
from dpaudit.algorithms.robust.retraction import settle
from dpaudit.algorithms.shared.bases import ReleasesBasis
from dpaudit.claims import Claim, PureDP
from dpaudit.errors import InputError
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_count, check_positive

__all__ = ["Reweighted"]


@dataclass(frozen=True, kw_only=True)
class Reweighted(ReleasesBasis, ABC):
    """Reweighted least squares; the release is a basis of shape (D, r).

    Parameters
    ----------
    n_components : int
        r; less than the length of a row.
    claim : Claim, optional
        What is promised under REPLACE_ONE; None, for nothing is.
    start : Start
        The subspace from which the first weights are. Default: that of PCA.
    iterations : int
        How many turns there are at most.
    floor : float
        The least distance that counts as one, > 0.
    """

    n_components: int
    claim: Claim | None = None
    start: Start = field(default_factory=PrincipalStart)
    iterations: int = 200
    floor: float = 1e-10

    def __post_init__(self) -> None:
        if self.claim is not None and not isinstance(self.claim, Claim):
            raise InputError(f"claim must be a Claim, got {self.claim!r}")
        check_start(self.start, self.relation)
        for name in ("n_components", "iterations"):
            object.__setattr__(self, name, check_count(name, getattr(self, name)))
        object.__setattr__(self, "floor", check_positive("floor", self.floor))

    @classmethod
    def claiming(cls, epsilon: float, *, n_components: int = 1) -> Mechanism:
        """Return 2 turns from a random start, with the false claim of epsilon-DP."""
        made = cls(
            n_components=n_components,
            claim=PureDP(epsilon),
            start=PublicStart(),
            iterations=2,
        )
        return cast(Mechanism, made)

    @property
    def relation(self) -> Relation:
        """REPLACE_ONE."""
        return Relation.REPLACE_ONE

    def rows(self, data: ArrayLike) -> Array:
        """Return spherised rows, or raise if there is no answer for them."""
        return spherise(data, min_rows=1, n_components=self.n_components)

    def draw(self, data: ArrayLike, size: int, *, rng: np.random.Generator) -> Array:
        """Return `size` releases, shape (size, D, r); they differ by their starts.

        Parameters
        ----------
        data : array_like, shape (N, D)
            Finite; no row of zeros; D > r.
        size : int
        rng : numpy.random.Generator

        Raises
        ------
        InputError
            If the data are not such an array.
        """
        rows = self.rows(data)
        size = check_count("size", size, minimum=0)
        r = self.n_components
        values: Mapping[str, Array] = self.start.draw(rows, r, size, rng=rng)
        starts = self.start.bases(values, rows.shape[1], r)
        releases = np.empty((size, rows.shape[1], r))
        for place in range(size):
            # Trials from a public start are all the same without one.
            if place and np.array_equal(starts[place], starts[place - 1]):
                releases[place] = releases[place - 1]
            else:
                releases[place] = settle(self._solved(rows, starts[place]))
        return releases

    def release(self, data: ArrayLike, *, rng: np.random.Generator) -> Array:
        """Return one release, shape (D, r)."""
        return np.asarray(self.draw(data, 1, rng=rng)[0])

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose one row turns the subspace; the default D is r + 1."""
        return shown_pair(self.n_components, dimension, count=2 * self.n_components)

    def weights(self, residuals: Array) -> Array:
        """Return w for residuals of shape (N, D)."""
        lengths = np.linalg.norm(residuals, axis=1)
        return np.asarray(1 / np.maximum(lengths, self.floor))

    @abstractmethod
    def _solved(self, rows: Array, start: Array) -> Array:
        """Return a basis of the answer, shape (D, r), from a first one."""
