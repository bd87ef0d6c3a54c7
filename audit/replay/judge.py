r"""From executions to findings: what a pair of neighbours shows, and what that proves.

**Open executions.** Where nothing was looked at before the release, the code on a
dataset D did not depend on any draw: it was the same for all of them. So the one
execution gives the law of the release, words and joint law of the numbers, exactly; and
so does one on D'. What is said of the two laws (`dpaudit.audit.replay.laws`) is a
proof. It takes for granted what the follower sees to: that there is no other randomness
(`dpaudit.audit.replay.patches` watches), and that the recorded code is the code. For
the latter, each side is executed a second time with ordinary numbers, from *another*
seed: the release must be, up to rounding, what the law says it is for those draws.

**Other executions.** Let y be the noisy values that the code looked at on D. The same y
are given back to it on D'. If it comes to the same calls, the loss of the transcript is
the sum of the losses of its values, each given those before it, and of the release
given all of them. If it comes to others, or to another release, then this transcript is
impossible on D'.

Let A be the transcripts of loss above epsilon. If one is drawn, then A has positive
probability on D (a set of measure zero is never drawn), and P(A) > e^epsilon Q(A), as
P(A) is the mean of e^loss 1_A under Q (and Q(A) = 0 where the loss is infinite). So one
transcript refutes a pure claim for whoever sees transcripts. It says nothing to whoever
sees releases only: a proof may hide noisy values (a noisy maximum, a test before a
release, secret batches). Coins, which are drawn and not seen, are hidden as well.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.composition import Composition, pure_epsilon
from dpaudit.audit.replay.executor import Trace, execute
from dpaudit.audit.replay.laws import Comparison, Family, compare, loss
from dpaudit.audit.replay.result import Finding, Step
from dpaudit.audit.replay.returns import place_of_return
from dpaudit.audit.replay.tape import Lost
from dpaudit.claims import Claim
from dpaudit.neighbours import Pair

__all__ = ["Judgement", "judge"]

_TURNS = 3  # seeds, where noisy values are looked at


@dataclass(eq=False)
class Judgement:
    """What the executions on one pair show.

    Parameters
    ----------
    pair : Pair
    findings : list of Finding
    steps : list of Step
    loss : float
    executions : int
        On either side.
    proven : bool
        Whether the claim is refuted by proof.
    suspicious : bool
        Whether something was found that may break the claim.
    followed : bool
        Whether all of the code could be followed.
    laws : tuple of Law, optional
        Of the release on D and on D', where they are exactly known.
    transcripts : bool
        Whether the losses of all transcripts are known: there are no coins.
    """

    pair: Pair
    findings: list[Finding] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    loss: float = 0.0
    executions: int = 0
    proven: bool = False
    suspicious: bool = False
    followed: bool = True
    laws: Any = None
    transcripts: bool = False

    def find(
        self,
        kind: str,
        where: str,
        message: str,
        *,
        neighbour: str | None = None,
        proof: bool = False,
    ) -> None:
        """Add a finding."""
        other = where if neighbour is None else neighbour
        found = Finding(kind, where, other, message, True if proof else None)
        # One of a kind at a place: a loop comes by many times.
        if not any((f.kind, f.where) == (kind, where) for f in self.findings):
            self.findings.append(found)

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """By which pairs are compared: the worst is the largest."""
        return self.proven, self.suspicious, self.loss


def judge(mechanism: Any, pair: Pair, claim: Claim, seed: int, sees: str) -> Judgement:
    """Execute a mechanism on both datasets of a pair, and say what differs."""
    shown = Judgement(pair)
    sides = pair.data, pair.neighbour
    first, second = (execute(mechanism, data, seed) for data in sides)
    if first.open and second.open and first.law.followed and second.law.followed:
        _judge_open(mechanism, claim, first, second, shown)
        return shown
    return _judge_closed(mechanism, pair, claim, seed, sees, (first, second))


def _judge_closed(
    mechanism: Any,
    pair: Pair,
    claim: Claim,
    seed: int,
    sees: str,
    lazy: tuple[Trace, Trace],
) -> Judgement:
    """Judge executions in which noisy values were looked at, by some more of them.

    What coins decide may be the same on both sides for one seed, and not for others.
    """
    executions = 0
    worst: Judgement | None = None
    for turn in range(_TURNS):
        eager = Judgement(pair)
        traces = [
            execute(mechanism, data, seed + turn, eager=True)
            for data in (pair.data, pair.neighbour)
        ]
        _judge_replayed(mechanism, claim, sees, traces[0], traces[1], eager)
        executions += 3
        if worst is None or eager.rank > worst.rank:
            worst = eager
        if eager.suspicious or not eager.followed:
            break
    assert worst is not None
    worst.executions = executions + 1
    if worst.followed and not worst.suspicious:
        return worst
    shown = Judgement(pair)
    _judge_replayed(mechanism, claim, sees, lazy[0], lazy[1], shown)
    worst.executions += 2
    if shown.followed and not shown.suspicious and not lazy[0].tape.coins:
        shown.executions = worst.executions
        return shown
    # Noise to which data are added twice may be one noisy value or two: it takes both
    # readings to refute.
    worst.proven &= shown.proven
    worst.transcripts &= shown.transcripts
    if not worst.proven:
        worst.findings = [replace(finding, proof=None) for finding in worst.findings]
    return worst


# -- nothing was looked at


def _judge_open(
    mechanism: Any, claim: Claim, first: Trace, second: Trace, shown: Judgement
) -> None:
    pair = shown.pair
    other_seed = first.tape.seed + 1
    shown.executions = 2
    for trace, data in ((first, pair.data), (second, pair.neighbour)):
        plain = execute(mechanism, data, other_seed, follows=False)
        if plain.tape.lost or not _confirms(plain, trace, other_seed):
            _unconfirmed(shown, plain.tape.lost, trace)
            return
    shown.laws = first.law, second.law
    if first.layout != second.layout:
        shown.loss, shown.proven, shown.suspicious = np.inf, True, True
        _scales_by_place(shown, first, second)
        shown.find(
            "structure",
            _returned_at(mechanism, first, pair.data),
            f"the release is {first.layout} on D and {second.layout} on D', "
            "whatever the noise is",
            neighbour=_returned_at(mechanism, second, pair.neighbour),
            proof=True,
        )
        return
    compared = compare(first.law, second.law)
    shown.loss = compared.supremum
    if compared.singular:
        shown.proven = shown.suspicious = True
        kind, where = _of_entry(mechanism, first, compared.entry, pair.data)
        _, there = _of_entry(mechanism, second, compared.entry, pair.neighbour)
        shown.find(kind, where, compared.singular, neighbour=there, proof=True)
        return
    parts = _parts_by_place(first, compared)
    shown.steps = [_step(place, part, part.supremum) for place, part in parts.items()]
    spent = Composition.of([compared])
    shown.proven = spent.refutes(claim)
    shown.suspicious = shown.proven or (
        compared.scales_differ and not spent.holds(claim)
    )
    if compared.scales_differ:
        _scales_by_unit(shown, first, second, compared)
    elif shown.proven:
        _too_far(shown, list(parts.values()), compared, claim)


def _confirms(plain: Trace, trace: Trace, seed: int) -> bool:
    """Say whether an ordinary execution gives the release that the trace says."""
    whole = trace.release
    if plain.layout != trace.layout or len(plain.value) != len(whole.centre):
        return False
    if not trace.tape.redrawn(seed):
        return False
    wanted = trace.tape.value(whole.centre, whole.index, whole.coef)
    with np.errstate(all="ignore"):
        size = np.where(whole.index >= 0, np.abs(whole.coef), 0.0).sum(axis=1)
        near = np.abs(plain.value - wanted) <= 1e-9 * np.abs(wanted) + 1e-7 * size
    same = (plain.value == wanted) | (np.isnan(plain.value) & np.isnan(wanted))
    return bool((near | same).all())


def _unconfirmed(shown: Judgement, lost: list[Lost], trace: Trace) -> None:
    shown.followed, shown.suspicious = False, True
    for each in lost[:1]:
        shown.find("coin", each.place, each.why)
    if not lost:
        place = trace.tape.place_of(0) if len(trace.tape.families) else "?"
        shown.find(
            "coin",
            place,
            "an ordinary execution gives another release than the one that was "
            "followed: there is randomness, or state, or arithmetic that is not seen",
        )


def _of_entry(mechanism: Any, trace: Trace, entry: int, data: Array) -> tuple[str, str]:
    """Return which kind of finding a number of the release is, and where."""
    whole = trace.release
    terms = whole.index[entry] if entry < len(whole.index) else np.empty(0, np.intp)
    used = terms[terms >= 0]
    if not len(used):
        return "release", _returned_at(mechanism, trace, data)
    place = trace.tape.place_of(int(used[0]))
    coef = whole.coef[entry][terms >= 0]
    return ("scale" if (coef == 0).all() else "release"), place


def _returned_at(mechanism: Any, trace: Trace, data: Array) -> str:
    return place_of_return(mechanism, data, trace.tape.seed)


def _parts_by_place(trace: Trace, compared: Comparison) -> dict[str, Comparison]:
    """Return the units of the release, by the place where their noise was drawn."""
    if not trace.law.known:
        draws = trace.release.index[trace.release.index >= 0]
        return {trace.tape.place_of(int(draws.min())): compared}
    places: dict[str, list[int]] = {}
    for unit, draw in enumerate(trace.law.draw.tolist()):
        places.setdefault(trace.tape.place_of(draw), []).append(unit)
    return {place: compared.part(np.array(units)) for place, units in places.items()}


def _step(place: str, compared: Comparison, loss_: float) -> Step:
    l1, l2 = compared.distances
    names = {Family(int(kind)).name.lower() for kind in compared.family}
    scale = float(compared.scale.min()) if len(compared.scale) else 0.0
    return Step(place, "+".join(sorted(names)), scale, l1, l2, loss_)


def _scales_by_unit(
    shown: Judgement, first: Trace, second: Trace, compared: Comparison
) -> None:
    unit = int(np.argmax(~compared.alike))
    shown.find(
        "scale",
        first.tape.place_of(int(first.law.draw[unit])),
        f"the scale of the noise is {compared.scale[unit]:.6g} on D and "
        f"{compared.other_scale[unit]:.6g} on D'",
        neighbour=second.tape.place_of(int(second.law.draw[unit])),
        proof=shown.proven,
    )


def _scales_by_place(shown: Judgement, first: Trace, second: Trace) -> None:
    """Note places whose noise has another scale on the other side."""
    seen = []
    for trace in (first, second):
        scales: dict[str, float] = {}
        for draw, scale in zip(trace.law.draw, trace.law.scale, strict=True):
            scales.setdefault(trace.tape.place_of(int(draw)), float(scale))
        seen.append(scales)
    for place, scale in seen[0].items():
        other = seen[1].get(place, scale)
        if abs(other - scale) > 1e-9 * abs(scale):
            shown.find(
                "scale",
                place,
                f"the scale of the noise is {scale:.6g} on D and {other:.6g} on D'",
            )


def _too_far(
    shown: Judgement, parts: list[Comparison], compared: Comparison, claim: Claim
) -> None:
    """Say which step costs too much, or that all of them do together."""
    costly = [step for step in shown.steps if step.l1]
    alone = [
        step
        for step, part in zip(shown.steps, parts, strict=True)
        if Composition.of([part]).refutes(claim)
    ]
    for step in alone:
        shown.find("distance", step.place, _distance(step), proof=True)
    if not alone:
        losses = ", ".join(f"{step.loss:.4g} at {step.place}" for step in costly)
        shown.find(
            "budget",
            costly[-1].place,
            f"the losses of {len(costly)} steps add up to {compared.supremum:.6g}: "
            f"{losses}",
            proof=True,
        )


def _distance(step: Step) -> str:
    return (
        f"the inputs lie {step.l1:.6g} apart (l2: {step.l2:.6g}), at scale "
        f"{step.scale:.6g}: the loss may be {step.loss:.6g}"
    )


# -- noisy values were looked at


def _judge_replayed(
    mechanism: Any,
    claim: Claim,
    sees: str,
    first: Trace,
    second: Trace,
    shown: Judgement,
) -> None:
    pair, seed, eager = shown.pair, first.tape.seed, first.tape.eager
    for trace, data in ((first, pair.data), (second, pair.neighbour)):
        plain = execute(mechanism, data, seed, follows=False)
        lost = [*trace.tape.lost, *plain.tape.lost]
        if lost or not _same_release(plain, trace):
            _unconfirmed(shown, lost, trace)
    script = first.tape.observations
    again = execute(mechanism, pair.neighbour, seed, script=script, eager=eager)
    script = second.tape.observations
    back = execute(mechanism, pair.data, seed, script=script, eager=eager)
    for lost_place in (*again.tape.lost, *back.tape.lost):
        shown.followed = False
        shown.find("coin", lost_place.place, lost_place.why)
    there = _Transcript.of(mechanism, first, again, pair, shown)
    here = _Transcript.of(mechanism, second, back, pair, None)
    shown.steps = there.steps
    shown.loss = max(there.loss, here.loss)
    spent = Composition.of(there.compared)
    possible = spent.holds(claim) and Composition.of(here.compared).holds(claim)
    pure = pure_epsilon(claim)
    over = pure is not None and shown.loss > pure + 1e-9 * (1 + pure)
    unknown = not np.isfinite(shown.loss) and not shown.loss == np.inf
    coins = [*first.tape.coins, *second.tape.coins]
    if shown.loss == np.inf:
        # What is the same on both sides may be a coin with a public centre.
        coins += [Lost(place, _BARE) for place in there.unmoved]
        coins += [Lost(place, _BARE) for place in here.unmoved]
    if unknown:
        shown.followed = False
        shown.find("coin", there.unknown_at, "noise of a form whose law is not known")
    if shown.followed and shown.loss < np.inf and not over:
        if possible or pure is not None:
            return
    shown.suspicious = True
    if (over and shown.loss < np.inf) or _exceeds(spent, claim):
        _say_costs(shown, there, claim)
    if coins:
        shown.followed = False
        for each in list(dict.fromkeys(coins))[:5]:
            shown.find("coin", each.place, each.why)
    shown.transcripts = shown.followed
    certain = shown.followed and sees == "transcript" and not coins
    shown.proven = bool(certain and over)
    if shown.proven:
        shown.findings = [
            replace(f, proof=True) if f.kind != "coin" else f for f in shown.findings
        ]
    else:
        shown.followed = False


_BARE = "noise is used as an ordinary number"


def _same_release(plain: Trace, trace: Trace) -> bool:
    if plain.layout != trace.layout or len(plain.value) != len(trace.value):
        return False
    return _close(plain.value, trace.value)


def _close(value: Array, other: Array) -> bool:
    return bool(np.allclose(value, other, rtol=1e-7, atol=1e-9, equal_nan=True))


def _exceeds(spent: Composition, claim: Claim) -> bool:
    """Say whether the steps, were their distances fixed, would break the claim."""
    return pure_epsilon(claim) is None and spent.refutes(claim)


@dataclass(eq=False)
class _Transcript:
    """A transcript of one dataset, and what it is on the other."""

    loss: float
    compared: list[Comparison]
    steps: list[Step]
    unknown_at: str = "?"
    unmoved: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        mechanism: Any,
        trace: Trace,
        again: Trace,
        pair: Pair,
        shown: Judgement | None,
    ) -> "_Transcript":
        made = cls(0.0, [], [])
        values, others = trace.tape.observations, again.tape.observations
        for one, other in zip(values, others, strict=False):
            compared = compare(one.law, other.law)
            step_loss = loss(one.law, other.law, one.value)
            made._add(one.place, compared, step_loss)
            if not compared.singular and not compared.shift.any():
                made.unmoved.append(one.place)
            if shown is not None and compared.singular:
                shown.find(
                    "release", one.place, compared.singular, neighbour=other.place
                )
            elif shown is not None and compared.scales_differ:
                unit = int(np.argmax(~compared.alike))
                shown.find(
                    "scale",
                    one.place,
                    f"the scale of the noise is {compared.scale[unit]:.6g} on D and "
                    f"{compared.other_scale[unit]:.6g} on D'",
                    neighbour=other.place,
                )
        if again.tape.diverged is not None or len(others) < len(values):
            made.loss = np.inf
            if shown is not None:
                _say_structure(shown, trace, again)
            return made
        if trace.layout != again.layout:
            made.loss = np.inf
            if shown is not None:
                shown.find(
                    "structure",
                    _returned_at(mechanism, trace, pair.data),
                    f"the release is {trace.layout} on D and {again.layout} on D', "
                    "all noisy values being the same",
                )
            return made
        compared = compare(trace.law, again.law)
        if compared.singular:
            made.loss = np.inf
            if shown is not None:
                kind, where = _of_entry(mechanism, trace, compared.entry, pair.data)
                shown.find(
                    kind,
                    where,
                    f"{compared.singular}, all noisy values being the same",
                )
        elif len(compared.shift) or not compared.known:
            place = "?"
            if len(trace.law.draw):
                place = trace.tape.place_of(int(trace.law.draw[0]))
            made._add(place, compared, loss(trace.law, again.law, trace.value))
        return made

    def _add(self, place: str, compared: Comparison, step_loss: float) -> None:
        self.loss += step_loss
        self.compared.append(compared)
        self.steps.append(_step(place, compared, step_loss))
        if np.isnan(step_loss) and self.unknown_at == "?":
            self.unknown_at = place


def _say_structure(shown: Judgement, trace: Trace, again: Trace) -> None:
    values, others = trace.tape.observations, again.tape.observations
    diverged = again.tape.diverged
    if diverged is not None:
        missing = len(others) < len(values)
        where = values[len(others)].place if missing else diverged.place
        shown.find("structure", where, diverged.why, neighbour=diverged.place)
        return
    fewer = len(values) - len(others)
    shown.find(
        "structure",
        values[len(others)].place,
        f"{fewer} noisy value(s) on D that are not on D'",
        neighbour="",
    )


def _say_costs(shown: Judgement, there: _Transcript, claim: Claim) -> None:
    """Say which steps cost more than the claim has, or that together they do."""
    pure = pure_epsilon(claim)
    alone = [
        step
        for step, compared in zip(there.steps, there.compared, strict=True)
        if (
            step.loss > pure
            if pure is not None
            else _exceeds(Composition.of([compared]), claim)
        )
    ]
    for step in alone[:5]:
        shown.find("distance", step.place, _distance(step))
    if not alone and there.steps:
        worst = max(there.steps, key=lambda step: step.loss)
        shown.find(
            "budget",
            worst.place,
            f"the losses of {len(there.steps)} steps add up to {there.loss:.6g}",
        )
