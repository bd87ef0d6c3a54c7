r"""Planted bug: Algorithm 4 that looks at the rows to see whether its guess is too low.

`ExactTestDoubling` takes X in line 8 from the exact prefix in place of the private one.
Its noise is right, and so is all else; but at which row an epoch ends, and V_1 comes
again, is then a function of the rows that has no noise. Where one row more in the
direction of the leader makes X pass the guess, everybody sees it: private at no
epsilon, and at no delta < 1. An audit must refute it; nobody should use it.

`EagerRule` makes epochs short, so that audits need few rows: the guess is 6 R^2 and the
margin 0. Privacy does not depend on either, so with the right line 8 it is as private
as any other rule.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.online.doubling import DoublingOnlinePCA
from dpaudit.algorithms.online.doubling_rules import CalibratedRule, Plan
from dpaudit.algorithms.online.doubling_stream import DoublingStream
from dpaudit.algorithms.online.triangles import unpack
from dpaudit.claims import ApproxDP
from dpaudit.errors import UnsupportedError
from dpaudit.gaussian import gaussian_mu
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_count

__all__ = ["EagerRule", "ExactTestDoubling"]

Array = NDArray[np.float64]

_GUESS = 6


@dataclass(frozen=True)
class EagerRule(CalibratedRule):
    """Least proven noise, and epochs of a few rows that begin with V_1.

    Parameters
    ----------
    mu : float
        The whole sequence is mu-GDP, if line 8 is right.
    """

    def plan(
        self, *, dimension: int, n_components: int, length: int, row_norm: float
    ) -> Plan:
        plan = super().plan(
            dimension=dimension,
            n_components=n_components,
            length=length,
            row_norm=row_norm,
        )
        return replace(plan, guess=_GUESS * row_norm**2, margin=0.0, forgets=True)


@dataclass(frozen=True, kw_only=True)
class ExactTestDoubling(DoublingOnlinePCA):
    """Online PCA with the doubling trick, and a test that is not private.

    Parameters
    ----------
    rule, claim, n_components, length, row_norm
        See `DoublingOnlinePCA`.
    """

    @classmethod
    def planted(
        cls,
        epsilon: float,
        delta: float,
        *,
        n_components: int = 1,
        length: int | None = None,
        row_norm: float = 1.0,
    ) -> "ExactTestDoubling":
        """Return the mechanism with the noise that is right, and the bug."""
        return cls(
            rule=EagerRule(gaussian_mu(epsilon, delta)),
            claim=ApproxDP(epsilon, delta),
            n_components=n_components,
            length=length,
            row_norm=row_norm,
        )

    def start(self, dimension: int, *, rng: np.random.Generator) -> DoublingStream:
        """Raise: nobody should run it on rows that arrive."""
        raise UnsupportedError("a planted bug has no stream")

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return 7 rows at e_1 of which one is zero on the other side.

        X is 7 R^2 after them or 6 R^2, and the guess is 6 R^2. The default d is k + 1;
        at least that.
        """
        k = self.n_components
        d = check_count(
            "dimension", k + 1 if dimension is None else dimension, minimum=k + 1
        )
        rows = np.zeros((_GUESS + 1, d))
        rows[:, 0] = self.row_norm
        other = rows.copy()
        other[0] = 0
        return Pair(rows, other, Relation.REPLACE_ONE)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case."""
        return (self.worst_case(),)

    def _tested(self, exact: Array, values: Array) -> Array:
        matrices = unpack(exact, self.rule.noise.ratio)
        spectra: Array = np.linalg.eigvalsh(matrices).astype(np.float64)
        return super()._tested(exact, spectra)
