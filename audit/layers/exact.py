r"""The exact layer: a claim against a privacy profile that is known, without sampling.

A mechanism with an `exact_claim` states the tightest claim that holds on a pair. Let
delta* be the pair's true profile. The claim under test holds on the pair if the
tightest one is below it everywhere, and is false if delta*(e) > claim.delta_at(e) at
one e: then it is refuted with certainty, up to the proof behind the exact claim.

Where delta* is known. Every claim is an upper bound of delta*; how far it *is* delta*
depends on its form:

- `GaussianDP`: everywhere, and positive;
- `Profile`: at its points; between them it is a chord of a convex curve, beyond the
  last a constant, and both are upper bounds. A single point at epsilon 0 describes a
  constant profile, and is exact everywhere;
- `ApproxDP`: at its epsilon;
- `PureDP`: delta* = 0 from its epsilon on, and delta* > 0 at every smaller one. Nothing
  more: a Laplace mechanism's profile lies well below that of randomised response at the
  same epsilon;
- others: nowhere.

Where the tightest claim exceeds the one under test, but not at an e where it is known
to be delta*, the comparison is undecided.

Rounding. A claim that holds with equality must not fall to the last digits, and both
curves are computed in floating point, from parameters that themselves come out of
bisections. So the claim is first relaxed, by s = 4e-12 (1 + |e|) in epsilon, by one
part in 1e9 in delta, and by 1e-15:

.. math:: \delta^*(e) > (1 + 10^{-9}) \; \delta_{claim}(e - s) + 10^{-15}

at one e refutes *by number*; a violation smaller than that is not reported, and HOLDS
says that there is none larger. The rounding error of every profile of `dpaudit.claims`
is far below it.

A pure claim (`PureDP`, or `ApproxDP` with delta 0) is refuted *by sign* as well: it
promises delta 0 at its epsilon, and is false where delta* is known to be positive
there, of whatever size. That is a statement of mathematics: no delta is computed for
it, so none is too small for it, and only the epsilons are held apart by s. Thus a
Gaussian mechanism breaks every pure claim, even at an epsilon where its delta is below
the smallest double; and it keeps, up to the tolerance, every claim of a positive delta
that it exceeds by less than 1e-15. A zero in a table (`Profile`) is a number like its
others: it may have been rounded, or have underflowed, and is compared by number only.

Where one looks. delta* is convex in e^epsilon, and a claim made of (epsilon, delta)
points is linear in it between its knots, so its largest violation is at a knot or as
far out as one looks; for smooth claims a fine grid is refined about its best point.
Negative epsilons follow from positive ones by symmetry.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.judged import PrintedResult
from dpaudit.claims import ApproxDP, Claim, GaussianDP, Profile, PureDP
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanism import HasExactClaim
from dpaudit.neighbours import Pair

__all__ = ["ExactOutcome", "ExactVerdict", "check_relation", "exact_verdict"]

_RELATIVE, _ABSOLUTE, _SHIFT = 1e-9, 1e-15, 4e-12
_VISIBLE = 1e-12  # where a claim is about zero, it is not near anything
_POINTS = 2001
_ZOOMS, _ZOOM_POINTS = 4, 101
_LARGEST = 700.0  # so that e^epsilon is a float


class ExactOutcome(StrEnum):
    """What an exact comparison on one pair can say about a claim."""

    REFUTED = "REFUTED"
    HOLDS = "HOLDS_ON_PAIR"
    UNDECIDED = "UNDECIDED"


@dataclass(frozen=True)
class ExactVerdict(PrintedResult):
    """What an exactly known profile says about a claim.

    Parameters
    ----------
    outcome : ExactOutcome
    epsilon : float
        Where the profile exceeds the claim the most; if it does nowhere, where it comes
        nearest in relative terms.
    exact_delta : float or None
        The exact delta there, as a double; that of a Gaussian profile is positive also
        where the double is 0. None where `profile` only bounds it from above; where the
        claim is refuted, None means that it is positive.
    claimed_delta : float
    tolerance : float
        By how much the exact delta had to exceed the claimed one there; 0 where the
        claim is refuted by sign.
    claim, profile : Claim
    largest_epsilon : float
        The end of the range that was searched, from 0.
    """

    derived = ("excess",)

    outcome: ExactOutcome
    epsilon: float
    exact_delta: float | None
    claimed_delta: float
    tolerance: float
    claim: Claim
    profile: Claim
    largest_epsilon: float

    @property
    def refuted(self) -> bool:
        """Whether the claim is false on the pair, beyond rounding."""
        return self.outcome is ExactOutcome.REFUTED

    @property
    def excess(self) -> float | None:
        """The exact delta less the claimed one; negative where the claim has room."""
        if self.exact_delta is None:
            return None
        return self.exact_delta - self.claimed_delta

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON-ready Python."""
        return super().to_dict() | {"profile": str(self.profile)}

    def __str__(self) -> str:
        words = {
            ExactOutcome.REFUTED: "REFUTED exactly, without sampling",
            ExactOutcome.HOLDS: "holds on this pair, up to the tolerance",
            ExactOutcome.UNDECIDED: f"not decided by {self.profile}",
        }
        if self.exact_delta == 0 and isinstance(self.profile, GaussianDP):
            exact = "positive, but below 1e-300"
        elif self.exact_delta is not None:
            exact = f"{self.exact_delta:.6g}"
        elif self.refuted:
            exact = "positive"
        else:
            exact = f"at most {float(self.profile.delta_at(self.epsilon)):.6g}"
        return (
            f"{self.claim}: {words[self.outcome]}; at epsilon {self.epsilon:.6g} the "
            f"exact delta is {exact}, the claim {self.claimed_delta:.6g} "
            f"(tolerance {self.tolerance:.1g})"
        )


def exact_verdict(
    mechanism: Any, pair: Pair, claim: Claim | None = None
) -> ExactVerdict | None:
    """Hold a claim against the exact profile of a pair; None where none is known.

    Parameters
    ----------
    mechanism : Mechanism
    pair : Pair
    claim : Claim, optional
        By default the mechanism's own.

    Raises
    ------
    InputError
        If there is no claim, or the mechanism's relation is not the pair's.

    Examples
    --------
    >>> from dpaudit.algorithms import SymmetricNoise
    >>> mechanism = SymmetricNoise.as_published(1.0)
    >>> verdict = exact_verdict(mechanism, mechanism.worst_case())
    >>> verdict.refuted, round(verdict.epsilon, 4), round(verdict.exact_delta, 4)
    (True, 1.0, 0.6321)
    """
    if claim is None:
        claim = getattr(mechanism, "claim", None)
    if not isinstance(claim, Claim):
        raise InputError(f"claim must be a Claim, got {claim!r}")
    check_relation(mechanism, pair)
    if not isinstance(mechanism, HasExactClaim):
        return None
    try:
        profile = mechanism.exact_claim(pair)
    except UnsupportedError:
        return None
    largest, corners = _reach(profile, claim), _knots(claim, _LARGEST)
    at = np.concatenate(
        [
            np.linspace(0.0, largest, _POINTS),
            np.geomspace(1e-6, 1.0, _POINTS // 4) * largest,
            _knots(profile, largest),
            corners,
            # Where the relaxed claim has its corners.
            corners + 2 * _SHIFT * (1 + corners),
        ]
    )
    if isinstance(profile, GaussianDP) and not len(corners):
        at = _refined(profile, claim, at, largest)
    margins = profile.delta_at(at) - _relaxed(claim, at)
    known = _is_exact(profile, at)
    positive, by_sign = _positive_where_none_is_claimed(profile, claim), False
    if np.any(margins[known] > 0):
        outcome, place = ExactOutcome.REFUTED, at[known][margins[known].argmax()]
    elif positive is not None:
        outcome, place, by_sign = ExactOutcome.REFUTED, positive, True
    elif np.any(margins > 0):
        outcome, place = ExactOutcome.UNDECIDED, at[margins.argmax()]
    else:
        outcome = ExactOutcome.HOLDS
        place = at[(profile.delta_at(at) / (_relaxed(claim, at) + _VISIBLE)).argmax()]
    claimed = float(claim.delta_at(place))
    certain = bool(_is_exact(profile, np.array([place]))[0])
    return ExactVerdict(
        outcome=outcome,
        epsilon=float(place),
        exact_delta=float(profile.delta_at(place)) if certain else None,
        claimed_delta=claimed,
        tolerance=0.0 if by_sign else float(_relaxed(claim, place)) - claimed,
        claim=claim,
        profile=profile,
        largest_epsilon=largest,
    )


def check_relation(mechanism: Any, pair: Pair) -> None:
    """Raise `InputError` unless the mechanism's relation is that of the pair."""
    if not isinstance(pair, Pair):
        raise InputError(f"pair must be a Pair, got {type(pair).__name__}")
    # Adapters may state none, as None.
    relation = getattr(mechanism, "relation", None) or pair.relation
    if relation != pair.relation:
        raise InputError(
            f"the mechanism's claim is under {relation}, but the pair is "
            f"{pair.relation}; a claim is audited under its own relation"
        )


def _relaxed(claim: Claim, epsilon: Array | float) -> Array:
    """Return what the exact delta must exceed to refute."""
    delta = claim.delta_at(epsilon - _SHIFT * (1 + np.abs(epsilon)))
    return delta * (1 + _RELATIVE) + _ABSOLUTE


def _is_exact(profile: Claim, epsilon: Array) -> NDArray[np.bool_]:
    """Say where the tightest claim is the profile itself; see the module docstring."""
    match profile:
        case GaussianDP():
            return np.ones(len(epsilon), dtype=bool)
        case Profile():
            knots = np.array(profile.parameters["epsilons"])
            constant = knots.tolist() == [0.0]
            return np.isin(epsilon, knots) | constant
        case ApproxDP():
            return np.equal(epsilon, profile.parameters["epsilon"])
        case PureDP():
            return np.greater_equal(epsilon, profile.parameters["epsilon"])
    return np.zeros(len(epsilon), dtype=bool)


def _positive_where_none_is_claimed(profile: Claim, claim: Claim) -> float | None:
    """Return the epsilon of a pure claim, if delta* is positive there by mathematics.

    See the module docstring.
    """
    if not isinstance(profile, PureDP | GaussianDP):
        return None
    if not isinstance(claim, PureDP | ApproxDP):
        return None
    claimed, exact = claim.epsilon_at(0.0), profile.epsilon_at(0.0)
    return claimed if claimed + _SHIFT * (1 + claimed) < exact else None


def _refined(profile: Claim, claim: Claim, at: Array, largest: float) -> Array:
    """Add points about the place where the profile exceeds the claim the most."""
    width = largest / (_POINTS - 1)
    for _ in range(_ZOOMS):
        best = at[(profile.delta_at(at) - _relaxed(claim, at)).argmax()]
        zoomed = best + np.linspace(-width, width, _ZOOM_POINTS)
        at = np.concatenate([at, zoomed[(zoomed >= 0) & (zoomed <= largest)]])
        width *= 4 / _ZOOM_POINTS
    return at


def _knots(claim: Claim, largest: float) -> Array:
    """Return where the profile of a claim has corners."""
    parameters = claim.parameters
    knots = np.ravel(parameters.get("epsilons", parameters.get("epsilon", ())))
    return np.asarray(knots[knots <= largest], dtype=np.float64)


def _reach(profile: Claim, claim: Claim) -> float:
    """Return an epsilon beyond which neither curve changes by what is tolerated."""
    ends = [1.0, *_knots(profile, _LARGEST), *_knots(claim, _LARGEST)]
    for curve in (profile, claim):
        end = curve.epsilon_at(_ABSOLUTE)
        if np.isfinite(end):
            ends.append(end)
    return float(min(max(ends), _LARGEST))
