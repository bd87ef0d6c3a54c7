r"""Primitives that are not trusted, audited by themselves from their releases.

A primitive M was declared: of two inputs x and x' its declaration says a claim (that of
its law, or the epsilon and delta of a promise whose sensitivity is kept). The two
inputs are those that it was handed on D and on D'
(`handed` of `dpaudit.audit.replay.judge.transcript`). `dpaudit.audit.audit` holds
releases of M(x) and of M(x') to that claim.

**One error probability.** Let a replay have the error alpha. Half of it is for the
primitives: with k of them audited, a declaration that is true is refuted with
probability at most alpha/(2k) each. The other half is for all else that a replay tests,
as it is without such primitives. So by the union bound nothing that is said at a
confidence is false with a probability above alpha. Which primitives are audited, at
most three, follows from executions that were made before, and not from their releases.

**What it says of the whole.** A declaration that is refuted does not refute the claim
of the mechanism. What follows may hide the output of the primitive, and the claim may
have room for what it costs. So it is one more suspicion, that rests on no proof from
the declared law; and what decides is a test of its own, of another half of the error:

- for those who see every noisy value, the outputs of the primitive within executions of
  the whole mechanism (`ShownOutputs`). They are a part of the transcript, hence a
  function of it: if they break the claim on D and D', then so does the transcript. No
  inputs are held fixed there, and nothing is taken for granted of what comes before.
- for those who see the release, releases of the mechanism. Where it returns the output
  as it is, or in a form from which it can be told, that is as good; where it hides it,
  nothing is refuted, and rightly so.

Where its declaration is not refuted, the primitive counts as one that is trusted.

Both tests take releases for independent: that the primitive draws anew in each call,
and keeps no noise. Its randomness may be anybody's, so it is not asked to be seeded.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from dpaudit.attacks import BITS, PORTFOLIO
from dpaudit.audit.harness import audit
from dpaudit.audit.judged import Verdict
from dpaudit.audit.replay.declare.libraries import declared_libraries
from dpaudit.audit.replay.declare.untrusted import Handed, UntrustedCall, listening
from dpaudit.audit.replay.laws.comparison import compare
from dpaudit.audit.sampling.draws import ways_to_draw
from dpaudit.audit.settings import Budget, Run
from dpaudit.claims import Claim, GaussianDP, PureDP
from dpaudit.errors import DPAuditError
from dpaudit.neighbours import Pair

__all__ = ["PrimitiveAudit", "ShownOutputs", "audit_primitives"]

_MOST = 3  # that are audited
_SECONDS = 30.0  # that all of them may take
_REFINE = 2.0  # so many times as many releases as refute, for a better bound
_SIDES = Pair([0.0], [1.0])  # of which the number says whose inputs are meant


@dataclass(frozen=True)
class PrimitiveAudit:
    """What releases say of the declaration of a primitive that is not trusted.

    Parameters
    ----------
    name : str
    where, where_neighbour : str
        ``file:line`` of the call on D, and on D'.
    promised : str
        What is declared of the two inputs, a claim in words.
    refuted : bool
        Whether that is false.
    confidence : float
    releases : int
        Of the primitive, on either side.
    epsilon_lower, at_delta : float
        It is not (e, `at_delta`)-DP of the two inputs for any e below `epsilon_lower`.
    bits : bool
        Whether that is said of doubles, rather than of real numbers.
    why_not : str
        Why there was no audit; else empty.
    """

    name: str
    where: str
    where_neighbour: str
    promised: str
    refuted: bool
    confidence: float
    releases: int = 0
    epsilon_lower: float = 0.0
    at_delta: float = 0.0
    bits: bool = False
    why_not: str = ""

    @property
    def finding(self) -> str:
        """What is wrong with it, if it is refuted."""
        numbers = " of its doubles" if self.bits else ""
        return (
            f"{self.name} costs more than it declares: {self.promised} is what it "
            f"promises for these inputs, and epsilon >= {self.epsilon_lower:.4g} at "
            f"delta = {self.at_delta:.3g} what its releases show{numbers}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-ready Python."""
        return asdict(self)

    def __str__(self) -> str:
        if self.why_not:
            return f"{self.name} was not audited: {self.why_not}"
        said = "refuted" if self.refuted else "not refuted"
        numbers = " over doubles" if self.bits else ""
        bound = f"epsilon >= {self.epsilon_lower:.4g} at delta = {self.at_delta:.3g}"
        return (
            f"{self.name}: its declaration, {self.promised} for these inputs, is "
            f"{said} in {self.releases:,} releases a side of its own{numbers}, at "
            f"confidence {self.confidence:g} ({bound})"
        )


@dataclass(frozen=True, eq=False)
class _Alone:
    """A primitive by itself, on what it was handed on D, and on D'."""

    calls: tuple[UntrustedCall, UntrustedCall]
    seedable: ClassVar[bool] = False

    def __call__(self, data: Any, rng: np.random.Generator) -> Any:
        """Return one output; the data say which side is meant."""
        return self.calls[int(data[0])].again(rng)


@dataclass(frozen=True)
class ShownOutputs:
    """A mechanism that shows what some primitives within it return, and no more.

    Parameters
    ----------
    mechanism : Mechanism or callable
    names : tuple of str
        Of primitives that are not trusted. If there are none, it shows its release.

    Examples
    --------
    >>> from dpaudit.audit.replay import primitive
    >>> @primitive("laplace", value="x", scale=1.0, trusted=False)
    ... def noisy(x):
    ...     return x
    >>> shown = ShownOutputs(lambda data, rng: 2 * noisy(3.0), ("noisy",))
    >>> shown.release(None, rng=np.random.default_rng(0))
    [3.0]
    """

    mechanism: Any
    names: tuple[str, ...]
    seedable: ClassVar[bool] = False

    def release(self, data: Any, *, rng: np.random.Generator) -> Any:
        """Execute the mechanism, and return the outputs in their order."""
        one, _ = ways_to_draw(self.mechanism)
        with declared_libraries(), listening(frozenset(self.names)) as outputs:
            released = one(data, rng)
        return outputs if self.names else released


def audit_primitives(
    several: Sequence[Handed], *, alpha: float, releases: int, seed: int, until: float
) -> list[PrimitiveAudit]:
    """Audit the primitives that promise least, and say what came of it.

    Parameters
    ----------
    several : sequence of Handed
    alpha : float
        In (0, 1): the probability that any true declaration is refuted.
    releases : int
        Most of each, on either side.
    seed : int
    until : float
        Of the clock, when they are to end.
    """
    chosen = _worst(several)
    seconds = min(_SECONDS, until - time.perf_counter()) / max(len(chosen), 1)
    confidence = 1 - alpha / max(len(chosen), 1)
    budget = Budget(releases, seconds=max(seconds, 0.1), refine=_REFINE)
    found = []
    for each, claim in chosen:
        call = each.calls[0]
        told: dict[str, Any] = {
            "name": call.name,
            "where": each.where,
            "where_neighbour": each.where_neighbour,
            "promised": str(claim),
            "confidence": confidence,
            "bits": call.bits,
        }
        attacks = (*PORTFOLIO, *BITS) if call.bits else None
        try:
            result = audit(
                _Alone(each.calls),
                pair=_SIDES,
                claim=claim,
                confidence=confidence,
                seed=seed,
                budget=budget,
                run=Run(attacks=attacks, name=call.name),
            )
        except DPAuditError as error:
            found.append(PrimitiveAudit(**told, refuted=False, why_not=str(error)))
            continue
        why_not = ""
        if result.verdict is Verdict.NO_VERDICT:
            why_not = "; ".join(result.warnings)
        found.append(
            PrimitiveAudit(
                **told,
                refuted=result.refuted,
                releases=result.samples,
                epsilon_lower=result.epsilon_lower,
                at_delta=result.at_delta,
                why_not=why_not,
            )
        )
    return found


def _worst(several: Sequence[Handed]) -> list[tuple[Handed, Claim]]:
    """Return the calls that may cost most, one of each primitive and place."""
    known: dict[tuple[str, str], tuple[float, Handed, Claim]] = {}
    for each in several:
        claim = _promised(each)
        if claim is None:
            continue
        loss = float(claim.epsilon_at(float(claim.parameters.get("delta", 1e-6))))
        key = each.calls[0].name, each.where
        if key not in known or loss > known[key][0]:
            known[key] = loss, each, claim
    ordered = sorted(known.values(), key=lambda found: -found[0])
    return [(each, claim) for _, each, claim in ordered[:_MOST]]


def _promised(each: Handed) -> Claim | None:
    """Return what is declared of two inputs; None if they are the same, or nothing."""
    law, other = (call.law for call in each.calls)
    compared = compare(law, other)
    if compared.bound is not None:
        return compared.bound
    if compared.singular or compared.note or not compared.known:
        return None
    if compared.mu is not None:
        return GaussianDP(compared.mu) if compared.mu > 0 else None
    supremum = compared.supremum
    short = float(f"{supremum:.9g}")
    epsilon = short if short >= supremum * (1 - 1e-11) else supremum
    return PureDP(epsilon) if 0 < epsilon < math.inf else None
