r"""Executions whose laws are exactly known: what is said of them is a proof.

**Nothing was looked at** before the release (`judge_open`): one execution has the law.

**Nothing but choices** was drawn (`judge_finite`), each with probabilities that are
known once those before it are made. The code does nothing else that is random. So the
ways in which the choices can turn out are the leaves of a tree. The probability of such
an outcome is the product of those along its branch; its release is found by executing
the code with these very choices. If there are few outcomes, all are executed, and the
release has an exactly known law on D, and so on D'.

Releases whose numbers agree up to rounding are taken for one. That is a function of the
release, which can only bring the two laws nearer. So a claim that is refuted then is
false.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.execute.executor import Trace, both_again
from dpaudit.audit.replay.follow.observations import Observation, Observations
from dpaudit.audit.replay.judge.judgement import Judgement, Step, Steps
from dpaudit.audit.replay.laws.choices import ROUNDING, ChoiceLaw, least_losses
from dpaudit.audit.replay.laws.comparison import LawComparison, compare
from dpaudit.audit.replay.laws.composition import (
    Composition,
    most_loss,
    pure_epsilon,
)
from dpaudit.audit.sampling.draws import draw_one

__all__ = ["judge_finite", "judge_open"]

_MOST_OUTCOMES = 64
_EPSILONS = np.linspace(0.0, 60.0, 601)


def judge_open(judgement: Judgement, first: Trace, second: Trace) -> None:
    """Compare the laws of the release on both sides, and hold them to the claim.

    Parameters
    ----------
    judgement : Judgement
        Takes the findings.
    first, second : Trace
        Open executions on D and on D'.
    """
    claim = judgement.claim
    other_seed = first.tape.seed + 1
    judgement.executions = 2
    for trace in (first, second):
        plain = trace.again(other_seed, follows=False)
        trace.returned = plain.returned
        unfollowed = plain.tape.unfollowed
        confirmed = not unfollowed and _confirms(plain, trace)
        if not (confirmed and _really_raises(trace)):
            judgement.unconfirmed(unfollowed, trace.tape.first_place)
            return
    if first.raises or second.raises:
        judgement.executions += 1  # to see whether it does so without us
    if judgement.fails_alike((first.layout, second.layout), first.returned_at):
        return
    judgement.laws = first.law, second.law

    def again(turn: int) -> tuple[bool, int]:
        return all(both_again(other_seed, turn, (first, second), _repeats)), 1

    judgement.again = again
    if first.layout != second.layout:
        judgement.loss, judgement.bare = np.inf, True
        judgement.proven = judgement.suspicious = True
        _find_scales_by_place(judgement, first, second)
        judgement.find(
            "structure",
            first.returned_at,
            f"the release is {first.layout} on D and {second.layout} on D', "
            "whatever the noise is",
            neighbour=second.returned_at,
            proof=True,
        )
        return
    compared = compare(first.law, second.law)
    judgement.loss = compared.supremum
    if not compared.known and not compared.singular:
        judgement.laws = None
        where = first.place_of(first.release.index.max())
        judgement.suspect("scale", where, "the noise of one side has another form")
        return
    if compared.singular:
        judgement.proven = judgement.suspicious = judgement.bare = True
        kind, where = first.origin(compared.entry)
        _, there = second.origin(compared.entry)
        judgement.find(kind, where, compared.singular, neighbour=there, proof=True)
        return
    parts = _parts_by_place(first, compared)
    judgement.steps = Steps(
        Step.of(place, part, part.supremum) for place, part in parts.items()
    )
    spent = Composition.of([compared])
    judgement.proven = spent.refutes(claim)
    judgement.suspicious = judgement.proven or (
        compared.scales_differ and not spent.holds(claim)
    )
    if compared.scales_differ:
        unit = compared.other_unit
        judgement.findings.add_scale(
            first.place_of(first.law.draw[unit]),
            compared.scale[unit],
            compared.other_scale[unit],
            neighbour=second.place_of(second.law.draw[unit]),
            proof=judgement.proven,
        )
    elif judgement.proven:
        costly = [step for step in judgement.steps if step.l1]
        alone = [
            step
            for step, part in zip(judgement.steps, parts.values(), strict=True)
            if Composition.of([part]).refutes(claim)
        ]
        losses = ", ".join(f"{step.loss:.4g} at {step.place}" for step in costly)
        total = f"{len(costly)} steps add up to {compared.supremum:.6g}: {losses}"
        judgement.find_costs(alone, costly[-1].place, total, proof=True)


def _really_raises(trace: Trace) -> bool:
    """Say whether a failure is one without us too; true where there is none."""
    if not trace.raises:
        return True
    rng = np.random.default_rng(trace.tape.seed)
    return draw_one(trace.mechanism, trace.data, rng).layout == trace.layout


def _confirms(plain: Trace, trace: Trace) -> bool:
    """Say whether an ordinary execution gives the release that the trace says."""
    whole, draws = trace.release, trace.tape.draws
    if plain.layout != trace.layout or len(plain.value) != len(whole.centre):
        return False
    if not draws.redrawn(plain.tape.seed):
        return False
    wanted = draws.value(whole.centre, whole.index, whole.coef)
    with np.errstate(all="ignore"):
        size = np.where(whole.index >= 0, np.abs(whole.coef), 0.0).sum(axis=1)
        near = np.abs(plain.value - wanted) <= 1e-9 * np.abs(wanted) + 1e-7 * size
    same = (plain.value == wanted) | (np.isnan(plain.value) & np.isnan(wanted))
    return bool((near | same).all())


def _repeats(trace: Trace, seed: int) -> bool:
    return _confirms(trace.again(seed, follows=False), trace)


def _parts_by_place(trace: Trace, compared: LawComparison) -> dict[str, LawComparison]:
    """Return the units of the release, by the place where their noise was drawn."""
    if not trace.law.known:
        draws = trace.release.index[trace.release.index >= 0]
        return {trace.place_of(draws.min()): compared}
    places = _units_by_place(trace)
    if len(places) == 1:
        return dict.fromkeys(places, compared)
    return {place: compared.part(units) for place, units in places.items()}


def _units_by_place(trace: Trace) -> dict[str, NDArray[np.intp]]:
    """Return the units of the release, by the place where their noise was drawn."""
    places: dict[str, list[NDArray[np.intp]]] = {}
    blocks = trace.tape.draws.blocks_of(trace.law.draw)
    order = np.argsort(blocks, kind="stable")
    ends = np.flatnonzero(np.diff(blocks[order], append=-1)) + 1
    for units in np.split(order, ends[:-1]) if len(order) else []:
        place = trace.place_of(trace.law.draw[units[0]])
        places.setdefault(place, []).append(units)
    joined = {place: np.sort(np.concatenate(each)) for place, each in places.items()}
    return dict(sorted(joined.items(), key=lambda item: int(item[1][0])))


def _find_scales_by_place(judgement: Judgement, first: Trace, second: Trace) -> None:
    """Note places whose first noise has another scale on the other side."""
    scales = [
        {at: float(trace.law.scale[units[0]]) for at, units in places.items()}
        for trace, places in ((each, _units_by_place(each)) for each in (first, second))
    ]
    for place, scale in scales[0].items():
        other = scales[1].get(place, scale)
        if abs(other - scale) > 1e-9 * abs(scale):
            judgement.findings.add_scale(place, scale, other)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """One way in which all choices turn out.

    Parameters
    ----------
    log : float
        Of its probability.
    off : float
        By how much the probability may be off, as those of its choices may.
    trace : Trace
        The execution in which they did.
    """

    log: float
    off: float
    trace: Trace


def judge_finite(judgement: Judgement, first: Trace, second: Trace) -> bool:
    """Say whether all outcomes could be executed, and hold their laws to the claim.

    Only for claims about the release.

    Parameters
    ----------
    judgement : Judgement
        Takes the findings.
    first, second : Trace
        Executions on D and on D'.
    """
    claim = judgement.claim
    if judgement.sees != "release" or not all(map(_draws_choices, (first, second))):
        return False
    executions = 1
    laws: list[list[_Outcome]] = []
    for trace in (first, second):
        outcomes, executed = _outcomes(trace)
        executions = max(executions, executed + 1)
        if outcomes is None:
            return False
        laws.append(outcomes)
    if all(outcome.trace.raises for law in laws for outcome in law):
        return False
    judgement.executions = executions
    p, q, off, off_there = _masses(*laws)
    each = least_losses(p, off, q, off_there)
    judgement.loss = max(0.0, float(np.abs(each).max(initial=0.0)) - 1e-12)
    pairs = zip(first.tape.observations, second.tape.observations, strict=False)
    compared = [(one.place, compare(one.law, two.law)) for one, two in pairs]
    judgement.steps = Steps(Step.of(at, step, step.supremum) for at, step in compared)
    if pure_epsilon(claim) is not None:
        judgement.proven = judgement.loss > most_loss(claim)
    else:
        factor = np.exp(_EPSILONS)[:, np.newaxis]
        delta = np.maximum(
            np.maximum(p - factor * q, 0).sum(axis=1),
            np.maximum(q - factor * p, 0).sum(axis=1),
        )
        judgement.proven = bool((delta > 1.0001 * claim.delta(_EPSILONS) + 1e-9).any())
    judgement.suspicious, judgement.bare = judgement.proven, judgement.loss == math.inf
    sides = (laws[0], first), (laws[1], second)

    def again(turn: int) -> tuple[bool, int]:
        # The choices are fresh: what was released for them is in the tree.
        return all(both_again(first.tape.seed + 1, turn, sides, _in_tree)), 1

    judgement.again = again
    if judgement.proven:
        worst = int(np.argmax(np.abs(each)))
        costly = max(judgement.steps, key=lambda step: step.loss, default=None)
        moved = costly.place if costly is not None and costly.loss > 0 else None
        judgement.find(
            "distance" if moved else "release",
            moved or first.returned_at,
            f"one release has probability {p[worst]:.6g} on D and {q[worst]:.6g} on D'",
            neighbour=moved or second.returned_at,
            proof=True,
        )
    return True


def _in_tree(side: tuple[list[_Outcome], Trace], seed: int) -> bool:
    law, trace = side[0], side[1].again(seed)
    chosen = _choices(trace)
    return any(
        _choices(each.trace) == chosen and _same(each.trace, trace) for each in law
    )


def _draws_choices(trace: Trace) -> bool:
    tape = trace.tape
    return bool(
        tape.observations
        and not (tape.coins or tape.unfollowed or tape.untrusted or trace.unread)
        and all(isinstance(each.law, ChoiceLaw) for each in tape.observations)
        and trace.law.known
        and not len(trace.law.first)
    )


def _outcomes(trace: Trace) -> tuple[list[_Outcome] | None, int]:
    """Return all outcomes of a tree, None if that cannot be done, and the executions.

    Every branch is executed a second time from another seed: if the release is another
    one then, there is randomness that was not seen.
    """

    def along(script: Iterable[Observation], turn: int) -> Trace:
        seed = trace.tape.seed + turn
        return trace.again(seed, script=Observations(script), goes_on=True)

    if not _same(trace, trace.plainly()):
        return None, 1
    outcomes: list[_Outcome] = []
    waiting: list[list[Observation]] = [[]]
    executed = 1
    while waiting:
        script = waiting.pop()
        outcome = along(script, 0)
        made = outcome.tape.observations
        executed += 2
        if not (_draws_choices(outcome) and _same(along(made, 1), outcome)):
            return None, executed
        for place in range(len(script), len(made)):
            others = _others(made[place])
            if len(outcomes) + len(waiting) + len(others) >= _MOST_OUTCOMES:
                return None, executed
            waiting += [[*made[:place], other] for other in others]
        log = sum(_law(each).log_probability(each.value) for each in made)
        off = math.exp(log) * math.expm1(min(sum(map(_off, made)), 50.0))
        outcomes.append(_Outcome(log, off, outcome))
    total = math.fsum(math.exp(outcome.log) for outcome in outcomes)
    return (outcomes if abs(total - 1) < 1e-9 else None), executed


def _law(observation: Observation) -> ChoiceLaw:
    assert isinstance(observation.law, ChoiceLaw)
    return observation.law


def _off(made: Observation) -> float:
    """Return by which part of itself the probability of a choice may be off."""
    law = _law(made)
    own = law.log[np.arange(len(law.log)), np.asarray(made.value, dtype=np.intp)]
    return float((law.error * np.exp(np.minimum(-own, 700.0))).sum())


def _others(made: Observation) -> list[Observation]:
    """Return a choice as it might have turned out otherwise."""
    law = _law(made)
    count, k = law.log.shape
    if k**count > _MOST_OUTCOMES:
        return [made] * _MOST_OUTCOMES
    every = np.stack(np.unravel_index(np.arange(k**count), (k,) * count), axis=-1)
    return [
        replace(made, value=value)
        for value in every
        if not np.array_equal(value, made.value)
        and law.log_probability(value) > -math.inf
    ]


def _choices(trace: Trace) -> tuple[bytes, ...]:
    values = (each.value for each in trace.tape.observations)
    return tuple(np.asarray(value, dtype=float).tobytes() for value in values)


def _same(one: Trace, other: Trace) -> bool:
    return other.agrees(one, rtol=1e-9, atol=1e-12)


def _masses(
    outcomes: list[_Outcome], others: list[_Outcome]
) -> tuple[Array, Array, Array, Array]:
    """Return the probabilities of the distinct releases, on D and on D'.

    And by how much each may be off. Where a release is impossible on one side, it may
    be so as that of some choice was rounded to 0.
    """
    masses: list[tuple[Trace, Array]] = []
    for side, law in enumerate((outcomes, others)):
        for outcome in law:
            alike = (mass for known, mass in masses if _same(known, outcome.trace))
            mass = next(alike, None)
            if mass is None:
                mass = np.zeros(4)
                masses.append((outcome.trace, mass))
            mass[[side, 2 + side]] += math.exp(outcome.log), outcome.off
    p, q, off, off_there = np.array([mass for _, mass in masses]).T
    most = max((outcome.off for outcome in (*outcomes, *others)), default=0.0)
    most = max(most, ROUNDING) if most else 0.0
    return p, q, np.where(p > 0, off, most), np.where(q > 0, off_there, most)
