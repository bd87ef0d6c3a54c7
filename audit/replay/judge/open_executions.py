"""Executions in which nothing was looked at before the release: exact laws, proofs."""

from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.execute.executor import Trace, execute
from dpaudit.audit.replay.follow.steps import Steps
from dpaudit.audit.replay.judge.hidden import in_any_order, seeds
from dpaudit.audit.replay.judge.judgement import (
    RAISES,
    Judgement,
    distance_words,
    fail_alike,
    of_entry,
    returned_at,
    step_at,
    unconfirmed,
)
from dpaudit.audit.replay.laws.comparison import LawComparison, compare
from dpaudit.audit.replay.laws.composition import Composition
from dpaudit.audit.sampling.draws import draw_one
from dpaudit.claims import Claim

__all__ = ["judge_open"]


def judge_open(
    mechanism: Any, claim: Claim, first: Trace, second: Trace, judgement: Judgement
) -> None:
    """Compare the laws of the release on both sides, and hold them to the claim.

    Parameters
    ----------
    mechanism : Mechanism or callable
    claim : Claim
    first, second : Trace
        Open executions on D and on D'.
    judgement : Judgement
        Takes what is found.
    """
    pair = judgement.pair
    other_seed = first.tape.seed + 1
    judgement.executions = 2
    for trace, data in ((first, pair.data), (second, pair.neighbour)):
        plain = execute(mechanism, data, other_seed, follows=False)
        trace.returned = plain.returned
        if plain.tape.unfollowed or not _confirms(plain, trace, other_seed):
            unconfirmed(judgement, plain.tape.unfollowed, trace)
            return
        if not _really_raises(mechanism, data, trace):
            unconfirmed(judgement, [], trace)
            return
    if RAISES in (first.layout[: len(RAISES)], second.layout[: len(RAISES)]):
        judgement.executions += 1  # to see whether it does so without us
    if fail_alike(mechanism, first, second, judgement):
        return
    judgement.laws = first.law, second.law

    def again(turn: int) -> tuple[bool, int]:
        seed, seed_there = seeds(other_seed, turn)

        def here() -> bool:
            plain = execute(mechanism, pair.data, seed, follows=False)
            return _confirms(plain, first, seed)

        def there() -> bool:
            plain = execute(mechanism, pair.neighbour, seed_there, follows=False)
            return _confirms(plain, second, seed_there)

        return all(in_any_order(other_seed, turn, here, there)), 1

    judgement.again = again
    if first.layout != second.layout:
        judgement.loss, judgement.proven, judgement.suspicious = np.inf, True, True
        judgement.bare = True
        _scales_by_place(judgement, first, second)
        judgement.find(
            "structure",
            returned_at(mechanism, first),
            f"the release is {first.layout} on D and {second.layout} on D', "
            "whatever the noise is",
            neighbour=returned_at(mechanism, second),
            proof=True,
        )
        return
    compared = compare(first.law, second.law)
    judgement.loss = compared.supremum
    if not compared.known and not compared.singular:
        judgement.followed, judgement.suspicious, judgement.laws = False, True, None
        where = first.tape.place_of(int(first.release.index.max()))
        judgement.find("scale", where, "the noise of one side has another form")
        return
    if compared.singular:
        judgement.proven = judgement.suspicious = judgement.bare = True
        kind, where = of_entry(mechanism, first, compared.entry)
        _, there = of_entry(mechanism, second, compared.entry)
        judgement.find(kind, where, compared.singular, neighbour=there, proof=True)
        return
    parts = _parts_by_place(first, compared)
    judgement.steps = Steps(
        step_at(place, part, part.supremum) for place, part in parts.items()
    )
    spent = Composition.of([compared])
    judgement.proven = spent.refutes(claim)
    judgement.suspicious = judgement.proven or (
        compared.scales_differ and not spent.holds(claim)
    )
    if compared.scales_differ:
        _scales_by_unit(judgement, first, second, compared)
    elif judgement.proven:
        _too_far(judgement, list(parts.values()), compared, claim)


def _really_raises(mechanism: Any, data: Array, trace: Trace) -> bool:
    """Say whether a failure is one without us too; true where there is none."""
    if not trace.layout.startswith(RAISES):
        return True
    drawn = draw_one(mechanism, data, np.random.default_rng(trace.tape.seed))
    return drawn.layout == trace.layout


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


def _parts_by_place(trace: Trace, compared: LawComparison) -> dict[str, LawComparison]:
    """Return the units of the release, by the place where their noise was drawn."""
    if not trace.law.known:
        draws = trace.release.index[trace.release.index >= 0]
        return {trace.tape.place_of(int(draws.min())): compared}
    places: dict[str, list[int]] = {}
    for unit, number in enumerate(trace.law.draw.tolist()):
        places.setdefault(trace.tape.place_of(number), []).append(unit)
    return {place: compared.part(np.array(units)) for place, units in places.items()}


def _scales_by_unit(
    judgement: Judgement, first: Trace, second: Trace, compared: LawComparison
) -> None:
    unit = int(np.argmax(~compared.alike))
    judgement.find(
        "scale",
        first.tape.place_of(int(first.law.draw[unit])),
        f"the scale of the noise is {compared.scale[unit]:.6g} on D and "
        f"{compared.other_scale[unit]:.6g} on D'",
        neighbour=second.tape.place_of(int(second.law.draw[unit])),
        proof=judgement.proven,
    )


def _scales_by_place(judgement: Judgement, first: Trace, second: Trace) -> None:
    """Note places whose noise has another scale on the other side."""
    seen = []
    for trace in (first, second):
        scales: dict[str, float] = {}
        for number, scale in zip(trace.law.draw, trace.law.scale, strict=True):
            scales.setdefault(trace.tape.place_of(int(number)), float(scale))
        seen.append(scales)
    for place, scale in seen[0].items():
        other = seen[1].get(place, scale)
        if abs(other - scale) > 1e-9 * abs(scale):
            judgement.find(
                "scale",
                place,
                f"the scale of the noise is {scale:.6g} on D and {other:.6g} on D'",
            )


def _too_far(
    judgement: Judgement,
    parts: list[LawComparison],
    compared: LawComparison,
    claim: Claim,
) -> None:
    """Say which step costs too much, or that all of them do together."""
    costly = [step for step in judgement.steps if step.l1]
    alone = [
        step
        for step, part in zip(judgement.steps, parts, strict=True)
        if Composition.of([part]).refutes(claim)
    ]
    for step in alone:
        judgement.find("distance", step.place, distance_words(step), proof=True)
    if not alone:
        losses = ", ".join(f"{step.loss:.4g} at {step.place}" for step in costly)
        judgement.find(
            "budget",
            costly[-1].place,
            f"the losses of {len(costly)} steps add up to {compared.supremum:.6g}: "
            f"{losses}",
            proof=True,
        )
