"""What a fit of `PrivatePCA` does: the one place where it reads the data.

A `FitPlan` has the mechanisms that `dpaudit.algorithms.estimators.budget` has chosen,
and `Spent` as its receipt. It runs them in order: a private mean, the norm that rows
are clipped to, the components. Each is given what those before it have released as
constants, so together they are private by adaptive composition.

Where the norm R is private, the mechanism for the components is one for rows of length
1, and sees each row clipped to R and divided by it: whatever it is, nothing of it
depends on R, and its variances are multiplied by R^2 afterwards.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import Claim, InputError, Relation
from dpaudit.algorithms.covariance.second_moment import ReleasesMoment
from dpaudit.algorithms.estimators.norm_quantile import NormQuantile
from dpaudit.algorithms.estimators.private_mean import MeanMechanism
from dpaudit.algorithms.shared.bases import Rng, check_components
from dpaudit.algorithms.subspace.residual_plan import Described, StepsOnResiduals
from dpaudit.arrays import Array
from dpaudit.blocks import Rows, is_table, restarts
from dpaudit.gram import RowNorm, gram, prepared, row_sum
from dpaudit.rows import clip_rows, normalise_rows
from dpaudit.validation import check_matrix

__all__ = ["FitPlan"]


@dataclass(frozen=True)
class Spending:
    """``"mean"``, ``"norm"`` or ``"components"``, which class made it, and its cost."""

    release: str
    mechanism: str
    claim: Claim


@dataclass(frozen=True)
class Spent:
    """All that a fit has spent, in order: it is (epsilon, delta)-DP as a whole."""

    releases: tuple[Spending, ...]
    epsilon: float
    delta: float
    relation: Relation


@dataclass(frozen=True)
class _Prepared:
    """Rows that are made ready each time that they are read, block by block."""

    data: Rows
    row_norm: RowNorm
    centre: Array | None
    unit: float

    def __iter__(self) -> Iterator[Array]:
        if not restarts(self.data):
            raise InputError(
                "residual steps read X more than once, but an iterator can be read "
                f"once only, got {type(self.data).__name__}"
            )
        for _, rows in prepared(self.data, self.row_norm, self.centre):
            yield rows if self.unit == 1 else rows / self.unit


@dataclass(frozen=True)
class FitPlan:
    """The mechanism of the components, those before it, and what they cost."""

    mechanism: Any
    mean: MeanMechanism | None
    norm: NormQuantile | None
    spent: Spent

    @classmethod
    def of(
        cls,
        mechanism: Any,
        mean: MeanMechanism | None,
        norm: NormQuantile | None,
        epsilon: float,
        delta: float,
    ) -> "FitPlan":
        """Return the plan whose mechanisms cost (epsilon, delta) together."""
        steps = (("mean", mean), ("norm", norm), ("components", mechanism))
        releases = tuple(
            Spending(release, type(step).__name__, step.claim)
            for release, step in steps
            if step is not None
        )
        spent = Spent(releases, epsilon, delta, mechanism.relation)
        return cls(mechanism, mean, norm, spent)

    def centre(self, data: Rows, *, rng: Rng) -> Array | None:
        """Return the private mean, shape (d,), or None if the plan has none."""
        if self.mean is None:
            return None
        sums = row_sum(data, row_norm=self.mean.row_norm)
        release = self.mean.draw_from(sums, 1, rng=rng)[0]
        return self.mean.mean(release, n_rows=sums.n_rows)

    def fitted(
        self, data: Rows, k: int, *, row_norm: RowNorm, centre: Array | None, rng: Rng
    ) -> Described:
        """Return what one release says of the rows about the centre."""
        mechanism = self.mechanism
        unit = 1.0 if self.norm is None or row_norm == "directions" else row_norm
        if isinstance(mechanism, StepsOnResiduals):
            check_components(k, mechanism.rank)
            rows = _Prepared(data, row_norm, centre, unit)
            made = mechanism.described(rows, rng=rng)
        else:
            release = self._release(data, row_norm, centre, unit, rng)
            basis = mechanism.components(release, k)
            if not isinstance(mechanism, ReleasesMoment):
                return Described(basis, None)
            variances = np.sum(basis * (release @ basis), axis=0)
            found = mechanism.found(release, k)
            made = Described(basis, variances, found, float(np.trace(release)))
        scaled = None if made.variances is None else made.variances * unit**2
        return made._replace(variances=scaled, total=made.total * unit**2)

    def _release(
        self, data: Rows, row_norm: RowNorm, centre: Array | None, unit: float, rng: Rng
    ) -> Array:
        """Return one release on the rows about the centre, in a unit of length."""
        if hasattr(self.mechanism, "draw_from"):  # reads second moments alone
            moment = gram(data, row_norm=row_norm, centre=centre).moment / unit**2
            return np.asarray(self.mechanism.draw_from(moment, 1, rng=rng)[0])
        if not is_table(data):
            raise InputError(
                f"{type(self.mechanism).__name__} reads single rows, so X must be an "
                f"array, got {type(data).__name__}"
            )
        rows = check_matrix("X", data)  # type: ignore[arg-type]
        rows = rows if centre is None else rows - centre
        if row_norm == "directions":
            rows = normalise_rows(rows)
        elif self.norm is not None:
            rows = clip_rows(rows, row_norm) / unit
        return np.asarray(self.mechanism.release(rows, rng=rng))
