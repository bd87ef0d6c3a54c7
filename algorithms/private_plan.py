"""What a fit of `PrivatePCA` does with the data, and what that costs.

A `Plan` is all that ever reads the data: `Plan.centre` for a private mean, then
`Plan.release` for the components. `Spent` is its receipt.
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.private_mean import MeanMechanism
from dpaudit.blocks import Rows, is_table
from dpaudit.claims import Claim
from dpaudit.errors import InputError
from dpaudit.gram import gram, row_sum
from dpaudit.neighbours import Relation
from dpaudit.validation import check_matrix

__all__ = ["Plan", "Spending", "Spent"]

Array = NDArray[np.float64]


@runtime_checkable
class _DrawsFromMoment(Protocol):
    """A mechanism that reads the data through their second-moment matrix only."""

    def draw_from(self, moment: Array, size: int, *, rng: np.random.Generator) -> Array:
        """Return `size` releases."""
        ...


@dataclass(frozen=True)
class Spending:
    """One release and the privacy it costs.

    Parameters
    ----------
    release : str
        ``"mean"`` or ``"components"``.
    mechanism : str
        The class that made it.
    claim : Claim
    """

    release: str
    mechanism: str
    claim: Claim


@dataclass(frozen=True)
class Spent:
    """All that a fit has spent: it is (epsilon, delta)-DP under the relation.

    Parameters
    ----------
    releases : tuple of Spending
        In the order in which they were made.
    epsilon, delta : float
        For all of them together.
    relation : Relation
    """

    releases: tuple[Spending, ...]
    epsilon: float
    delta: float
    relation: Relation


@dataclass(frozen=True)
class Plan:
    """The mechanisms of a fit, and what they cost together.

    Parameters
    ----------
    mechanism : Mechanism
        Releases the principal components.
    mean : MeanMechanism or None
        Releases the centre, if it is private.
    spent : Spent
    """

    mechanism: Any
    mean: MeanMechanism | None
    spent: Spent

    @classmethod
    def of(
        cls, mechanism: Any, mean: MeanMechanism | None, epsilon: float, delta: float
    ) -> "Plan":
        """Return the plan whose mechanisms cost (epsilon, delta) together."""
        steps = (("mean", mean), ("components", mechanism))
        releases = tuple(
            Spending(release, type(step).__name__, step.claim)
            for release, step in steps
            if step is not None
        )
        return cls(mechanism, mean, Spent(releases, epsilon, delta, mechanism.relation))

    def centre(self, data: Rows, *, rng: np.random.Generator) -> Array | None:
        """Return the private mean, shape (d,), or None if the plan has none."""
        if self.mean is None:
            return None
        sums = row_sum(data, row_norm=self.mean.row_norm)
        release = self.mean.draw_from(sums, 1, rng=rng)[0]
        return self.mean.mean(release, n_rows=sums.n_rows)

    def release(
        self,
        data: Rows,
        *,
        row_norm: float,
        centre: Array | None,
        rng: np.random.Generator,
    ) -> Array:
        """Return one release of the mechanism on the rows about the centre.

        Raises
        ------
        InputError
            If the mechanism reads single rows, and they are not in one array.
        """
        if isinstance(self.mechanism, _DrawsFromMoment):
            moment = gram(data, row_norm=row_norm, centre=centre).moment
            return self.mechanism.draw_from(moment, 1, rng=rng)[0]
        if not is_table(data):
            raise InputError(
                f"{type(self.mechanism).__name__} reads single rows, so X must be an "
                f"array, got {type(data).__name__}"
            )
        rows = check_matrix("X", data)  # type: ignore[arg-type]
        rows = rows if centre is None else rows - centre
        return np.asarray(self.mechanism.release(rows, rng=rng))
