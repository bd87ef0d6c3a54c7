"""Named constructors that mechanisms of clipped rows share: noise for a promise."""

from abc import ABC, abstractmethod
from typing import Any, Self

from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.claims import ApproxDP, Claim, GaussianDP, PureDP
from dpaudit.gaussian import gaussian_mu
from dpaudit.validation import check_positive

__all__ = ["GaussianCalibrated", "PureCalibrated"]


class PureCalibrated(ABC):
    """A mechanism that has the least noise for a pure epsilon."""

    @classmethod
    @abstractmethod
    def _at(cls, epsilon: float, claim: Claim, **fields: Any) -> Self:
        """Return the mechanism at the least noise for epsilon, with the claim."""

    @hands_on("relation", "row_norm")
    @classmethod
    def calibrated(cls, epsilon: float, **fields: Any) -> Self:
        """Return the mechanism at the least noise proven to be epsilon-DP."""
        epsilon = check_positive("epsilon", epsilon)
        return cls._at(epsilon, PureDP(epsilon), **fields)


class GaussianCalibrated(ABC):
    """A mechanism that has the least noise for a mu of Gaussian DP."""

    @classmethod
    @abstractmethod
    def _at(cls, mu: float, claim: Claim, **fields: Any) -> Self:
        """Return the mechanism at the least noise for mu, with the claim."""

    @hands_on("relation", "row_norm")
    @classmethod
    def calibrated(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism at the least noise that is (epsilon, delta)-DP."""
        mu = gaussian_mu(epsilon, delta)
        return cls._at(mu, ApproxDP(epsilon, delta), **fields)

    @hands_on("relation", "row_norm")
    @classmethod
    def from_mu(cls, mu: float, **fields: Any) -> Self:
        """Return the mechanism at the least noise that is mu-GDP."""
        return cls._at(mu, GaussianDP(mu), **fields)
