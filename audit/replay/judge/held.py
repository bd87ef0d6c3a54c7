"""How much of a claim two transcripts have spent, one of each way round."""

from typing import NamedTuple, Self

import numpy as np

from dpaudit.audit.replay.laws.composition import Composition, most_loss, pure_epsilon
from dpaudit.claims import Claim

__all__ = ["PairLosses"]


class PairLosses(NamedTuple):
    """The losses of D given back on D', and of D' on D, held to a claim.

    Parameters
    ----------
    loss, promised : float
        The larger loss, without what trusted primitives promise, and that.
    unknown : bool
        Whether the loss of a way is not known, and that of the other is finite.
    over : bool
        Whether more was lost than the claim has.
    exceeds : bool
        Whether it would be broken over secret batches, or were distances fixed.
    may_exceed : bool
        Whether it would, or may be by what is promised.
    stands : bool
        Whether nothing that is known speaks against it.
    """

    loss: float
    promised: float
    unknown: bool
    over: bool
    exceeds: bool
    may_exceed: bool
    stands: bool

    @property
    def finite(self) -> bool:
        return self.loss < np.inf

    @classmethod
    def of(
        cls,
        claim: Claim,
        spent: tuple[Composition, Composition],
        losses: tuple[float, float],
        *,
        sampled: bool,
    ) -> Self:
        """Hold to a claim what the steps of either way spent, and what was lost.

        Losses may be nan. It is said whether batches are secret, and transcripts are
        what is released.
        """
        pure, most = pure_epsilon(claim) is not None, most_loss(claim)
        promised = max(each.promised for each in spent)
        known = [each for each in losses if not np.isnan(each)]
        loss = max(known, default=np.nan)
        unknown = len(known) < 2 and loss != np.inf
        # What is promised may be lost, or gained.
        over = loss > promised + most or (pure and loss == np.inf)
        kept = all(each.holds(claim) for each in spent)
        within = loss + promised <= most if pure else kept
        beyond = promised > 0 and not (within or over or unknown)
        # The supremum over secret batches is that of these distances, which others
        # follow.
        more = pure and sampled and spent[0].supremum > most
        fixed = not pure and spent[0].refutes(claim)
        return cls(
            loss=loss,
            promised=promised,
            unknown=unknown,
            over=over,
            exceeds=more or (sampled and fixed),
            may_exceed=beyond or more or fixed,
            stands=loss < np.inf and (kept or pure) and not (over or beyond or more),
        )
