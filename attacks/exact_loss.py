"""The exact privacy loss, where the mechanism knows it.

By the Neyman-Pearson lemma its level sets are the best events there are, provided that
the mechanism samples what it says it samples. The portfolio therefore does not rely on
it alone.
"""

from typing import cast

from dpaudit.arrays import Array
from dpaudit.attacks.base import Attack, Parameters, Target, consult_rows
from dpaudit.errors import UnsupportedError
from dpaudit.mechanism import HasPrivacyLoss, Release

__all__ = ["ExactLoss"]


class ExactLoss(Attack):
    """Score = log(density on D / density on D')."""

    name = "exact-loss"
    score_is = "the exact privacy loss"
    learns = False
    sufficient = True

    def applies(self, target: Target, releases: Release) -> bool:
        """Say whether the mechanism has a privacy loss in this case.

        What is stated about proper rows need not hold for NaN and infinite ones.
        """
        if not isinstance(target.mechanism, HasPrivacyLoss) or not target.pair.finite:
            return False
        try:
            self.score(target, {}, releases)
        except UnsupportedError:
            return False
        return True

    def score(self, target: Target, parameters: Parameters, releases: Release) -> Array:
        mechanism = cast(HasPrivacyLoss, target.mechanism)
        pair = target.pair
        return consult_rows(mechanism.privacy_loss, releases, pair.data, pair.neighbour)
