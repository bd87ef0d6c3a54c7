"""The query that scalar additive noise answers: a sum of clipped scalars.

Rows are scalars in [0, sensitivity] (others are clipped, each row by itself). Under
ADD_REMOVE a row moves the sum by at most the sensitivity, and a row of the largest
size, added to one of size 0, by exactly that.
"""

from abc import ABC
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.textbook.base import (
    Array,
    TextbookMechanism,
    check_dimension,
    check_scalars,
)
from dpaudit.checked import Positive
from dpaudit.neighbours import Pair, Relation

__all__ = ["BoundedSum"]


@dataclass(frozen=True)
class BoundedSum(TextbookMechanism, ABC):
    """A mechanism on the sum of scalar rows, shape (n,) or (n, 1), under ADD_REMOVE.

    Parameters
    ----------
    sensitivity : float
        Rows are clipped to [0, sensitivity].
    """

    _: KW_ONLY
    sensitivity: Positive = 1.0

    relation: ClassVar[Relation] = Relation.ADD_REMOVE

    def answers(self, data: ArrayLike) -> Array:
        """Return the sum of the clipped rows, shape ()."""
        return np.asarray(check_scalars(data).clip(0.0, self.sensitivity).sum())

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a row of the largest size, added; rows have length 1."""
        check_dimension(dimension, 1)
        return Pair([0.0], [0.0, self.sensitivity], self.relation)
