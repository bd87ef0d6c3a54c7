"""Algorithm 4, row by row."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.online.doubling_rules import Epochs
from dpaudit.algorithms.online.fenwick import tree_height
from dpaudit.algorithms.online.streams import RowStream
from dpaudit.algorithms.online.subspace_sequence import (
    leading_bases,
    orient,
    start_basis,
)
from dpaudit.algorithms.online.triangles import coordinates, pack_rows, unpack
from dpaudit.arrays import Array

__all__ = ["DoublingStream"]


class DoublingStream(RowStream):
    """The subspaces of `DoublingOnlinePCA`, row by row.

    The exact eigenvectors are computed for every row, since X needs the eigenvalues.

    Parameters
    ----------
    mechanism : DoublingOnlinePCA
        With a declared length.
    dimension : int
        d.
    rng : numpy.random.Generator
        Belongs to the stream from now on.

    Attributes
    ----------
    basis : ndarray, shape (d, k)
        With which the next row is met.
    """

    def __init__(
        self,
        mechanism: Any,
        dimension: int,
        *,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(
            mechanism,
            length=mechanism.length,
            row_norm=mechanism.row_norm,
            dimension=dimension,
            rng=rng,
        )
        self._rank = mechanism.n_components
        self._plan = mechanism.plan(self.dimension)
        self._ratio = mechanism.rule.noise.ratio
        self._moment = np.zeros(coordinates(self.dimension))
        levels = tree_height(self.length)
        self._epochs = Epochs(self._plan, 1, levels, len(self._moment))
        self.basis = start_basis(self.dimension, self._rank)

    @property
    def epoch(self) -> int:
        """How often the guess has been doubled."""
        return int(self._epochs.number[0])

    def add(self, row: ArrayLike) -> Array:
        """Take a row, and return the basis for the next one, shape (d, k).

        Raises
        ------
        InputError
            If it is no finite vector of length d, or one row too many.
        """
        self._moment += pack_rows(self.prepared(row), self._ratio)[0]
        self._epochs.advance()
        unit = self._rng.standard_normal((1, len(self._moment)))
        private = self._moment + self._epochs.noise_of_prefix(unit)[0]
        values, vectors = np.linalg.eigh(unpack(private, self._ratio))
        if self._plan.padded_to:
            padding = self._rng.standard_normal(len(private))
            padded = private + self._epochs.padding()[0] * padding
            self.basis = leading_bases(unpack(padded, self._ratio), self._rank)
        else:
            self.basis = orient(vectors[:, : -self._rank - 1 : -1])
        if self._epochs.end(values[-self._rank :].sum(keepdims=True))[0]:
            self._moment[:] = 0
            if self._plan.forgets:
                self.basis = start_basis(self.dimension, self._rank)
        return self.basis

    def _arrays(self) -> dict[str, Array]:
        epochs = self._epochs
        return {
            "moment": self._moment,
            "stack": epochs.stack,
            "epoch": np.array([epochs.number[0], epochs.step[0]], dtype=np.float64),
            "basis": self.basis,
        }

    def _load(self, arrays: dict[str, Array]) -> None:
        self._moment, self.basis = arrays["moment"], arrays["basis"]
        self._epochs.stack = arrays["stack"]
        number, step = arrays["epoch"].astype(np.int64)
        self._epochs.number[:], self._epochs.step[:] = number, step
