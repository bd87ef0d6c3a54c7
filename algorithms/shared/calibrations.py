"""Named constructors that mechanisms of clipped rows share: noise for a promise."""

from abc import ABC, abstractmethod
from typing import Self

from dpaudit.claims import ApproxDP, Claim, GaussianDP, PureDP
from dpaudit.gaussian import gaussian_mu
from dpaudit.neighbours import Relation
from dpaudit.validation import check_positive

__all__ = ["GaussianCalibrated", "PureCalibrated"]


class PureCalibrated(ABC):
    """A mechanism that has the least noise for a pure epsilon."""

    @classmethod
    @abstractmethod
    def _at(
        cls, epsilon: float, claim: Claim, relation: Relation, row_norm: float
    ) -> Self:
        """Return the mechanism at the least noise for epsilon, with the claim."""

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        *,
        relation: Relation | str = Relation.ADD_REMOVE,
        row_norm: float = 1.0,
    ) -> Self:
        """Return the mechanism at the least noise proven to be epsilon-DP."""
        epsilon = check_positive("epsilon", epsilon)
        return cls._at(epsilon, PureDP(epsilon), Relation.parse(relation), row_norm)


class GaussianCalibrated(ABC):
    """A mechanism that has the least noise for a mu of Gaussian DP."""

    @classmethod
    @abstractmethod
    def _at(cls, mu: float, claim: Claim, relation: Relation, row_norm: float) -> Self:
        """Return the mechanism at the least noise for mu, with the claim."""

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        relation: Relation | str = Relation.ADD_REMOVE,
        row_norm: float = 1.0,
    ) -> Self:
        """Return the mechanism at the least noise that is (epsilon, delta)-DP."""
        mu, claim = gaussian_mu(epsilon, delta), ApproxDP(epsilon, delta)
        return cls._at(mu, claim, Relation.parse(relation), row_norm)

    @classmethod
    def from_mu(
        cls,
        mu: float,
        *,
        relation: Relation | str = Relation.ADD_REMOVE,
        row_norm: float = 1.0,
    ) -> Self:
        """Return the mechanism at the least noise that is mu-GDP."""
        return cls._at(mu, GaussianDP(mu), Relation.parse(relation), row_norm)
