"""What an audit can be told, beside what it is an audit of, and its defaults."""

import math
from dataclasses import dataclass
from typing import Any

from dpaudit.attacks import Attack
from dpaudit.audit.layers.layer import Layer
from dpaudit.claims import ApproxDP, Claim, PureDP
from dpaudit.errors import InputError
from dpaudit.validation import check_confidence, check_count, check_nonnegative

__all__ = ["Settings", "name_of", "reference_point", "stated"]

_REFERENCE_DELTAS = (1e-5, 1e-3, 0.1, 0.5, 0.9)
_SAMPLED = (Layer.BLACK_BOX, Layer.TRANSCRIPT)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What determines an audit of a mechanism on given pairs, or on those of a search.

    A store knows an audit by all of these fields (`dpaudit.audit.keeping.identity`):
    whatever changes a result is a field here. Who draws, where the work is kept and who
    watches it change none, and are not.

    Parameters
    ----------
    claim : Claim
    confidence : float
    max_samples, seed : int
    stop_when_refuted : bool
    refine : float
    layer : Layer
        Of those from which releases are drawn.
    bits : bool
    attacks : sequence of Attack
    name, reference : str or None
        As for `dpaudit.audit.audit`.

    Raises
    ------
    InputError
        If one of them is not allowed.
    """

    claim: Claim
    confidence: float
    max_samples: int
    seed: int
    stop_when_refuted: bool
    refine: float
    layer: Layer
    bits: bool
    attacks: tuple[Attack, ...]
    name: str | None
    reference: str | None

    def __post_init__(self) -> None:
        if not isinstance(self.claim, Claim):
            raise InputError(f"claim must be a Claim, got {self.claim!r}")
        if self.layer not in _SAMPLED:
            raise InputError(
                f"layer must be one of {[x.value for x in _SAMPLED]}, "
                f"got {self.layer!r}"
            )
        attacks = tuple(self.attacks)
        for attack in attacks:
            if not isinstance(attack, Attack):
                raise InputError(f"attacks must be instances of Attack, got {attack!r}")
        for field in ("name", "reference"):
            given = getattr(self, field)
            if not isinstance(given, str | None):
                raise InputError(f"{field} must be a string or None, got {given!r}")
        for field, checked in {
            "confidence": check_confidence("confidence", self.confidence),
            "max_samples": check_count("max_samples", self.max_samples, minimum=2),
            "seed": check_count("seed", self.seed, minimum=0),
            "stop_when_refuted": bool(self.stop_when_refuted),
            "refine": check_nonnegative("refine", self.refine),
            "layer": Layer(self.layer),
            "bits": bool(self.bits),
            "attacks": attacks,
        }.items():
            object.__setattr__(self, field, checked)

    @property
    def alpha(self) -> float:
        """The error probability of each statement of the audit."""
        return 1 - self.confidence


def stated(mechanism: Any, what: str, given: Any) -> Any:
    """Return what is given, else what the mechanism states.

    Raises
    ------
    InputError
        If it states none.
    """
    found = getattr(mechanism, what, None) if given is None else given
    if found is None:
        raise InputError(f"{what} is needed: the mechanism states none")
    return found


def name_of(mechanism: Any) -> str:
    """Return the name of a function, or of the class of an instance."""
    kind = mechanism if hasattr(mechanism, "__qualname__") else type(mechanism)
    return str(kind.__qualname__)


def reference_point(claim: Claim) -> tuple[float, float]:
    """Return where epsilon and delta are bounded: at the claim's own if it has them.

    Raises
    ------
    InputError
        If the claim promises nothing at any of the deltas that are tried.
    """
    if isinstance(claim, PureDP | ApproxDP):
        return claim.parameters["epsilon"], claim.parameters.get("delta", 0.0)
    for delta in _REFERENCE_DELTAS:
        epsilon = claim.epsilon(delta)
        if math.isfinite(epsilon):
            return max(epsilon, 0.1), delta
    raise InputError(f"the claim {claim} promises next to nothing")
