"""The exact privacy of independent steps together, and what that says of a claim.

Steps whose distances and scales are fixed compose: Gaussian ones to one Gaussian shift,
by the root of the sum of squares; pure ones by adding up suprema; others, and both
together, as privacy loss distributions of dp-accounting. With optimistic estimates
their deltas are lower bounds, with pessimistic ones upper bounds, of the true delta.
Steps over secret batches are mixtures (`dpaudit.audit.replay.laws.amplification`).
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.layers.exact import exact_verdict
from dpaudit.audit.replay.laws.amplification import NoisyShift, SampledComparison, units
from dpaudit.audit.replay.laws.coded import Family
from dpaudit.audit.replay.laws.comparison import LawComparison
from dpaudit.claims import (
    ApproxDP,
    Claim,
    GaussianDP,
    PureDP,
    ZeroConcentratedDP,
    polygon_delta,
)
from dpaudit.gaussian import gaussian_delta
from dpaudit.neighbours import Pair
from dpaudit.printable import told_apart

__all__ = ["Composition", "DeltaAt", "epsilons_of", "most_loss", "pure_epsilon"]

_MOST_DISTRIBUTIONS = 64  # that differ
_MOST_PARTS = 10_000
_MOST_POINTS = 2**18
_SINGLE = 1e-6  # what arithmetic in single precision may have added, relative
_DIGITS = 8  # to which distances are told apart
_EPSILONS = np.concatenate([np.linspace(0.0, 5.0, 101), np.linspace(5.1, 60.0, 110)])
_MOST_CORNERS = 1_000


def epsilons_of(claim: Claim) -> Array:
    """Return at which epsilons deltas are compared.

    A claim that is known at some points is a straight line in e^epsilon between them,
    and no delta of two laws lies above its chords: so it falls at a point first. Of a
    claim of more than 1,000 points, and of a curve, what falls between is not seen.
    """
    points = claim.parameters.get("epsilon", claim.parameters.get("epsilons", ()))
    points = np.ravel(np.asarray(points, dtype=np.float64))
    return np.union1d(_EPSILONS, points[:: 1 + len(points) // _MOST_CORNERS])


def pure_epsilon(claim: Claim) -> float | None:
    """Return the epsilon of a pure claim, None of any other.

    A zero in a table may have been rounded, and is not taken for one.
    """
    if isinstance(claim, PureDP | ApproxDP) and not claim.parameters.get("delta", 0.0):
        return float(claim.parameters["epsilon"])
    return None


def most_loss(claim: Claim) -> float:
    """Return the largest loss that a claim allows, but for rounding."""
    pure = pure_epsilon(claim)
    return math.inf if pure is None else pure + _SINGLE * (1 + pure)


@dataclass(frozen=True)
class DeltaAt:
    """A delta, beside what a claim allows.

    Parameters
    ----------
    epsilon : float
        Where it is most beyond the claim, or that of the claim.
    delta : float
        A lower bound of what the steps lose beyond epsilon. Where primitives are
        trusted to have a delta, and the claim holds, an upper one.
    allowed : float
        The delta that the claim has there.
    """

    epsilon: float
    delta: float
    allowed: float

    @classmethod
    def beyond(
        cls, claim: Claim, epsilons: Array, deltas: Array, *, slack: float
    ) -> "DeltaAt | None":
        """Return where deltas exceed a claim's by 0.01 % and the slack, if anywhere."""
        allowed = np.asarray(claim.delta_at(epsilons))
        over = deltas - (1.0001 * allowed + slack)
        at = int(np.argmax(over))  # of (epsilon, delta) that is epsilon
        if not over[at] > 0:
            return None
        return cls(float(epsilons[at]), float(deltas[at]), float(allowed[at]))

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready Python."""
        return asdict(self)

    def __str__(self) -> str:
        delta, allowed = told_apart(self.delta, self.allowed, 3)
        return (
            f"{delta} at epsilon {self.epsilon:.4g}, where the claim allows {allowed}"
        )


@dataclass(frozen=True)
class Composition:
    """Independent steps with fixed distances.

    Parameters
    ----------
    supremum : float
        Of the loss, both ways round.
    mu : float or None
        The Gaussian shift, if all that differs is Gaussian of one scale.
    parts : tuple of NoisyShift, or None
        The other steps, if they have one scale on both sides, and are not very many.
    bounds : tuple of Claim
        Assumed of steps whose laws are not known, beside these.
    """

    supremum: float
    mu: float | None
    parts: tuple[NoisyShift, ...] | None
    bounds: tuple[Claim, ...] = ()

    @classmethod
    def of(cls, steps: Sequence[LawComparison | SampledComparison]) -> "Composition":
        """Return the composition of steps, singular and unknown ones included."""
        sampled = [step for step in steps if isinstance(step, SampledComparison)]
        others = [step for step in steps if not isinstance(step, SampledComparison)]
        known = [step for step in others if step.bound is None]
        bounds = tuple(step.bound for step in others if step.bound is not None)
        return replace(cls._of_known(known, sampled), bounds=bounds)

    @classmethod
    def _of_known(
        cls, steps: Sequence[LawComparison], sampled: Sequence[SampledComparison]
    ) -> "Composition":
        suprema = [step.supremum for step in steps]
        supremum = float(sum(suprema) + sum(step.supremum for step in sampled))
        mus = [step.mu for step in steps]
        if not sampled and all(mu is not None for mu in mus):
            return cls(supremum, math.hypot(*[mu for mu in mus if mu is not None]), ())
        mixed = [step.part for step in sampled]
        if any(step.singular or not step.known or step.scales_differ for step in steps):
            return cls(supremum, None, None)
        family, ratio = units(steps)
        gaussian = family == Family.GAUSSIAN
        if (~gaussian).sum() > _MOST_PARTS:
            return cls(supremum, None, None)
        others = zip(family[~gaussian].tolist(), ratio[~gaussian].tolist(), strict=True)
        mixed += [NoisyShift(kind, size) for kind, size in others]
        if gaussian.any():
            size = float(np.linalg.norm(ratio[gaussian]))
            mixed.append(NoisyShift(int(Family.GAUSSIAN), size))
        parts = tuple(part for part in mixed if part is not None)
        known = len(parts) == len(mixed)
        moved = tuple(part for part in parts if part.ratio)
        return cls(supremum, None, moved if known else None)

    def refutes(self, claim: Claim) -> bool:
        """Say whether the claim is false of these steps, for certain.

        Steps whose laws are not known are left out: to see less is no greater loss.
        """
        if math.isnan(self.supremum):
            return False
        if pure_epsilon(claim) is not None:
            return self.supremum > most_loss(claim)
        if self.mu is not None:
            return _gaussian_refutes(self.mu, claim)
        return self.delta(claim) is not None

    def delta(self, claim: Claim) -> DeltaAt | None:
        """Return the delta that breaks a claim which is not pure, None if none is seen.

        Lower bounds of deltas are compared, and of steps whose laws are known. Of
        Gaussian steps that break none it is that at the epsilon of the claim.
        """
        if self.mu is not None:
            if not 1e-100 < self.mu <= 1e6:
                return None
            named = claim.parameters.get("epsilon")
            at = epsilons_of(claim)
            less = GaussianDP(self.mu * (1 - _SINGLE))
            found = DeltaAt.beyond(claim, at, less.delta_at(at), slack=0.0)
            if found is not None or named is None or self.bounds:
                return found
            allowed = float(claim.delta_at(named))
            return DeltaAt(named, float(less.delta_at(named)), allowed)

        at = epsilons_of(claim)

        def beyond(deltas: Array | None) -> DeltaAt | None:
            if deltas is None:
                return None
            return DeltaAt.beyond(claim, at, deltas, slack=1e-9)

        # A step alone, or the least distance for all, is quick, and often enough.
        for part in set(self.parts or ()):
            if found := beyond(_one_step(part, at)):
                return found
        sampled = any(part.rate < 1 for part in self.parts or ())
        if sampled and len(self.parts or ()) == 1:
            return None
        for parts in (_alike(self.parts, min), None if sampled else self.parts):
            whole = replace(self, parts=parts)._distribution(at, pessimistic=False)
            if found := beyond(whole):
                return found
        return None

    def holds(self, claim: Claim) -> bool:
        """Say whether the claim is true of these steps, for certain."""
        if self._adds_up(claim):
            return True
        if self.bounds:
            return False
        pure = claim.epsilon_at(0.0)
        if self.supremum <= pure * (1 + _SINGLE) and math.isfinite(pure):
            return True
        if self.mu is not None:
            return not _gaussian_refutes(self.mu, claim)
        at = epsilons_of(claim)
        # One distance for all is quick to compose, and often enough.
        for grouped in (_alike(self.parts, max), self.parts):
            whole = replace(self, parts=grouped)._distribution(at, pessimistic=True)
            if whole is None:
                return False
            if (whole <= 1.0001 * claim.delta_at(at) + 1e-12).all():
                return True
        return False

    @property
    def promised(self) -> float:
        """The sum of the epsilons of all bounds, infinite if one is not pure."""
        each = (pure_epsilon(bound) for bound in self.bounds)
        return float(sum(math.inf if epsilon is None else epsilon for epsilon in each))

    @property
    def _sums(self) -> tuple[float, float] | None:
        """All epsilons and all deltas added up, None where a step has neither."""
        kinds = {type(bound) for bound in self.bounds}
        if not (math.isfinite(self.supremum) and kinds <= {PureDP, ApproxDP}):
            return None
        each = [bound.parameters for bound in self.bounds]
        epsilon = self.supremum + sum(one["epsilon"] for one in each)
        return epsilon, sum(one.get("delta", 0.0) for one in each)

    @staticmethod
    def added(claim: Claim, ways: Sequence["Composition"]) -> DeltaAt | None:
        """Return the sum of the deltas of bounds, of ways for which a claim holds."""
        named, sums = claim.parameters.get("epsilon"), [each._sums for each in ways]
        delta = max((both[1] for both in sums if both is not None), default=0.0)
        if named is None or not delta:
            return None
        return DeltaAt(float(named), delta, float(claim.delta_at(named)))

    def _adds_up(self, claim: Claim) -> bool:
        """Say whether the claim follows by the simplest theorems of composition.

        Epsilons and deltas add up, and so do the rho of zero-concentrated privacy: mu^2
        / 2 of normal noise, epsilon^2 / 2 of what is pure (Bun, Steinke, 2016).
        """
        if math.isnan(self.supremum):
            return False
        at = epsilons_of(claim)
        allowed = claim.delta_at(at) + 1e-12
        kinds = {type(bound) for bound in self.bounds}
        if (sums := self._sums) is not None:
            epsilon, delta = sums
            if isinstance(claim, PureDP | ApproxDP):
                most = claim.parameters["epsilon"] * (1 + 1e-9)
                enough = delta <= claim.parameters.get("delta", 0.0) * (1 + 1e-9)
                return bool(epsilon <= most and enough)
            if (polygon_delta(at, epsilon, delta) <= allowed).all():
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
        return bool((ZeroConcentratedDP(rho).delta_at(at) <= allowed).all())

    def _distribution(self, epsilons: Array, *, pessimistic: bool) -> Any:
        """Return bounds of delta at epsilons, None where there are none."""
        if self.parts is None:
            return None
        bounds = (part.bounded(above=pessimistic) for part in self.parts)
        parts = Counter(_rounded(part, up=pessimistic) for part in bounds if part.ratio)
        if not parts:
            return np.zeros(len(epsilons))
        known = (Family.LAPLACE, Family.GAUSSIAN)
        if not all(p.family in known and 1e-6 < p.ratio < 50 for p in parts):
            return None
        if len(parts) > _MOST_DISTRIBUTIONS:
            return None
        # As fine as most losses need it, if the largest allow for it.
        losses = max(part.rate * part.ratio for part in parts)
        reach = sum(n * p.ratio * (p.ratio / 2 + 10) for p, n in parts.items())
        sampled = any(part.rate < 1 for part in parts)
        interval = max(
            min(losses / 30, 1e-2 if sampled else 1e-3), reach / _MOST_POINTS
        )
        total = None
        for part, count in parts.items():
            one = _one(part, pessimistic, interval).self_compose(count)
            total = one if total is None else total.compose(one)
        assert total is not None
        # One by one in a third of the time: of all at once every point is a step.
        return np.array([total.get_delta_for_epsilon(float(e)) for e in epsilons])


def _gaussian_refutes(mu: float, claim: Claim) -> bool:
    """Say whether a Gaussian shift of mu deviations refutes a claim."""
    if not 1e-100 < mu <= 1e6:
        return mu > 1
    less = GaussianDP(mu * (1 - _SINGLE))
    verdict = exact_verdict(SimpleNamespace(exact_claim=lambda _: less), _ANY, claim)
    return verdict is not None and verdict.refuted


def _alike(
    parts: tuple[NoisyShift, ...] | None, extreme: Callable[[float, float], float]
) -> tuple[NoisyShift, ...] | None:
    """Return parts with the least, or the greatest, ratio of their like."""
    if parts is None:
        return None
    above = extreme(0, 1) == 1
    ratios: dict[NoisyShift, float] = {}
    bounds = [part.bounded(above=above) for part in parts]
    for part in bounds:
        like = replace(part, ratio=0.0)
        ratios[like] = extreme(part.ratio, ratios.get(like, part.ratio))
    return tuple(replace(p, ratio=ratios[replace(p, ratio=0.0)]) for p in bounds)


def _one_step(part: NoisyShift, epsilons: Array) -> Array:
    """Return lower bounds of delta at epsilons of a sampled part by itself.

    What (1 - q) P + q P_in has more than e^epsilon P is q times what P_in has more than
    1 + (e^epsilon - 1)/q times P.
    """
    if part.family != Family.GAUSSIAN or part.replaced or part.rate == 1:
        return np.zeros(len(epsilons))
    inner = np.log1p(np.expm1(epsilons) / part.rate)
    return np.asarray(part.rate * gaussian_delta(inner, part.ratio))


def _rounded(part: NoisyShift, *, up: bool) -> NoisyShift:
    """Return a part whose ratio has eight digits, and is no less, or no greater."""
    ratio = float(f"{part.ratio:.{_DIGITS - 1}e}")
    off = 10.0 ** (1 - _DIGITS)
    if up and ratio < part.ratio:
        ratio *= 1 + off
    if not up and ratio > part.ratio:
        ratio *= 1 - off
    return replace(part, ratio=ratio)


def _one(part: NoisyShift, pessimistic: bool, interval: float) -> Any:
    """Return the privacy loss distribution of a part."""
    from dp_accounting.pld import privacy_loss_distribution as pld
    from dp_accounting.privacy_accountant import NeighboringRelation

    options: dict[str, Any] = {
        "pessimistic_estimate": pessimistic,
        "use_connect_dots": pessimistic,
        "value_discretization_interval": interval,
        "sampling_prob": part.rate,
    }
    if part.family == Family.LAPLACE:
        return pld.from_laplace_mechanism(1 / part.ratio, **options)
    if part.replaced:
        options["neighboring_relation"] = NeighboringRelation.REPLACE_ONE
    return pld.from_gaussian_mechanism(1 / part.ratio, **options)


_ANY = Pair([0.0], [0.0, 1.0])
