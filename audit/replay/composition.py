"""The exact privacy of independent steps together, and what that says of a claim.

Steps whose distances and scales are fixed compose: Gaussian ones to one Gaussian shift,
by the root of the sum of squares; pure ones by adding up suprema; others, and both
together, as privacy loss distributions of dp-accounting. With optimistic estimates
their deltas are lower bounds, with pessimistic ones upper bounds, of the true delta.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpaudit.audit.layers.exact import exact_verdict
from dpaudit.audit.replay.comparison import Comparison
from dpaudit.audit.replay.laws import Family
from dpaudit.claims import (
    ApproxDP,
    Claim,
    GaussianDP,
    PureDP,
    ZeroConcentratedDP,
    polygon_delta,
)
from dpaudit.neighbours import Pair

__all__ = ["Composition", "pure_epsilon"]

_MOST_DISTRIBUTIONS = 64
_EPSILONS = np.concatenate([np.linspace(0.0, 5.0, 101), np.linspace(5.1, 60.0, 110)])


def pure_epsilon(claim: Claim) -> float | None:
    """Return the epsilon of a pure claim, None of any other.

    A zero in a table may have been rounded, and is not taken for one.
    """
    if isinstance(claim, PureDP | ApproxDP) and not claim.parameters.get("delta", 0.0):
        return float(claim.parameters["epsilon"])
    return None


@dataclass(frozen=True)
class _Known:
    """What `exact_verdict` takes."""

    profile: Claim

    def exact_claim(self, pair: Pair) -> Claim:
        return self.profile


@dataclass(frozen=True)
class Composition:
    """Independent steps with fixed distances.

    Parameters
    ----------
    supremum : float
        Of the loss, both ways round.
    mu : float or None
        The Gaussian shift, if all that differs is Gaussian of one scale.
    parts : tuple of (family, ratio), or None
        The other steps, if they have one scale on both sides, and are not very many.
    bounds : tuple of Claim
        What is taken for true of steps whose laws are not known, beside these.
    """

    supremum: float
    mu: float | None
    parts: tuple[tuple[int, float], ...] | None
    bounds: tuple[Claim, ...] = ()

    @classmethod
    def of(cls, steps: Sequence[Comparison]) -> "Composition":
        """Return the composition of steps, singular and unknown ones included."""
        known = [step for step in steps if step.bound is None]
        bounds = tuple(step.bound for step in steps if step.bound is not None)
        return replace(cls._of_known(known), bounds=bounds)

    @classmethod
    def _of_known(cls, steps: Sequence[Comparison]) -> "Composition":
        supremum = float(sum(step.supremum for step in steps))
        mus = [step.mu for step in steps]
        if all(mu is not None for mu in mus):
            return cls(supremum, math.hypot(*[mu for mu in mus if mu is not None]), ())
        if any(step.singular or not step.known or step.scales_differ for step in steps):
            return cls(supremum, None, None)
        family, shift, scale = (
            np.concatenate([getattr(step, name) for step in steps])
            for name in ("family", "shift", "scale")
        )
        moved = shift != 0
        family, ratio = family[moved], shift[moved] / scale[moved]
        gaussian = family == Family.GAUSSIAN
        if (~gaussian).sum() > _MOST_DISTRIBUTIONS:
            return cls(supremum, None, None)
        others = zip(family[~gaussian].tolist(), ratio[~gaussian].tolist(), strict=True)
        parts = list(others)
        if gaussian.any():
            size = float(np.linalg.norm(ratio[gaussian]))
            parts.append((int(Family.GAUSSIAN), size))
        return cls(supremum, None, tuple(parts))

    def refutes(self, claim: Claim) -> bool:
        """Say whether the claim is false of these steps, for certain.

        Steps whose laws are not known are left out: to see less is no greater loss.
        """
        if math.isnan(self.supremum):
            return False
        pure = pure_epsilon(claim)
        if pure is not None:
            return self.supremum > pure + 1e-9 * (1 + pure)
        if self.mu is not None:
            return self._verdict(GaussianDP, self.mu, claim)
        distribution = self._distribution(pessimistic=False)
        if distribution is None:
            return False
        return bool((distribution > 1.0001 * claim.delta(_EPSILONS) + 1e-9).any())

    def holds(self, claim: Claim) -> bool:
        """Say whether the claim is true of these steps, for certain."""
        if self._adds_up(claim):
            return True
        if self.bounds:
            return False
        pure = claim.epsilon(0.0)
        if self.supremum <= pure * (1 + 1e-9) and math.isfinite(pure):
            return True
        if self.mu is not None:
            return not self._verdict(GaussianDP, self.mu, claim)
        distribution = self._distribution(pessimistic=True)
        if distribution is None:
            return False
        return bool((distribution <= 1.0001 * claim.delta(_EPSILONS) + 1e-12).all())

    @property
    def promised(self) -> float:
        """The sum of the epsilons of all bounds, infinite if one is not pure."""
        each = (pure_epsilon(bound) for bound in self.bounds)
        return float(sum(math.inf if epsilon is None else epsilon for epsilon in each))

    def _adds_up(self, claim: Claim) -> bool:
        """Say whether the claim follows by the simplest theorems of composition.

        Epsilons and deltas add up, and so do the rho of zero-concentrated privacy: mu^2
        / 2 of normal noise, epsilon^2 / 2 of what is pure (Bun, Steinke, 2016).
        """
        if math.isnan(self.supremum):
            return False
        allowed = claim.delta(_EPSILONS) + 1e-12
        kinds = {type(bound) for bound in self.bounds}
        if math.isfinite(self.supremum) and kinds <= {PureDP, ApproxDP}:
            each = [bound.parameters for bound in self.bounds]
            epsilon = self.supremum + sum(one["epsilon"] for one in each)
            delta = sum(one.get("delta", 0.0) for one in each)
            if isinstance(claim, PureDP | ApproxDP):
                most = claim.parameters["epsilon"] * (1 + 1e-9)
                enough = delta <= claim.parameters.get("delta", 0.0) * (1 + 1e-9)
                return bool(epsilon <= most and enough)
            if (polygon_delta(_EPSILONS, epsilon, delta) <= allowed).all():
                return True
        if not self.bounds or not kinds <= {PureDP, ZeroConcentratedDP}:
            return False
        own = self.supremum if self.mu is None else self.mu
        if not math.isfinite(own):
            return False
        rho = own**2 / 2 + sum(
            one["rho"] if "rho" in one else one["epsilon"] ** 2 / 2
            for one in (bound.parameters for bound in self.bounds)
        )
        return bool((ZeroConcentratedDP(rho).delta(_EPSILONS) <= allowed).all())

    @staticmethod
    def _verdict(kind: Any, parameter: float, claim: Claim) -> bool:
        if parameter <= 1e-100:
            return False
        if parameter > 1e6:
            return True
        known = _Known(kind(parameter))
        verdict = exact_verdict(known, _ANY, claim)
        return verdict is not None and verdict.refuted

    def _distribution(self, *, pessimistic: bool) -> Any:
        """Return bounds of delta at `_EPSILONS`, None where there are none."""
        parts = self.parts
        if parts is None or len(parts) > _MOST_DISTRIBUTIONS:
            return None
        if not parts:
            return np.zeros(len(_EPSILONS))
        known = (Family.LAPLACE, Family.GAUSSIAN)
        if not all(kind in known and 1e-6 < ratio < 50 for kind, ratio in parts):
            return None
        from dp_accounting.pld import privacy_loss_distribution as pld

        total = None
        for kind, ratio in parts:
            make = (
                pld.from_laplace_mechanism
                if kind == Family.LAPLACE
                else pld.from_gaussian_mechanism
            )
            one = make(
                1 / ratio,
                sensitivity=1.0,
                pessimistic_estimate=pessimistic,
                value_discretization_interval=1e-3,
            )
            total = one if total is None else total.compose(one)
        assert total is not None
        return np.asarray(total.get_delta_for_epsilon(_EPSILONS))


_ANY = Pair([0.0], [0.0, 1.0])
