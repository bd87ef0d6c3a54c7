r"""Executions that draw nothing but choices: all their outcomes, exact laws, proofs.

Let an execution on D draw choices alone, each with probabilities that are known once
those before it are made. The code does nothing else that is random. So the ways in
which the choices can turn out are the leaves of a tree. The probability of such an
outcome is the product of those along its branch; its release is found by executing the
code with these very choices. If there are few outcomes, all are executed, and the
release has an exactly known law on D, and so on D'.

Releases whose numbers agree up to rounding are taken for one. That is a function of the
release, which can only bring the two laws nearer. So a claim that is refuted then is
false.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.execute.executor import Trace
from dpaudit.audit.replay.follow.observations import Observation, Observations
from dpaudit.audit.replay.judge.hidden import both_again
from dpaudit.audit.replay.judge.judgement import Judgement, Step, Steps
from dpaudit.audit.replay.laws.choices import ROUNDING, ChoiceLaw, least_losses
from dpaudit.audit.replay.laws.comparison import compare
from dpaudit.audit.replay.laws.composition import pure_epsilon
from dpaudit.claims import Claim

__all__ = ["judge_finite"]

_MOST_OUTCOMES = 64
_EPSILONS = np.linspace(0.0, 60.0, 601)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """One way in which all choices turn out.

    Parameters
    ----------
    log : float
        Of its probability.
    off : float
        By how much the probability may be off, as those of its choices may.
    layout : str
    value : ndarray
        The numbers of the release.
    choices : tuple of bytes
        How they turned out.
    """

    log: float
    off: float
    layout: str
    value: Array
    choices: tuple[bytes, ...]


def judge_finite(
    claim: Claim, sees: str, first: Trace, second: Trace, judgement: Judgement
) -> bool:
    """Say whether all outcomes could be executed, and hold their laws to the claim.

    Parameters
    ----------
    claim : Claim
    sees : {"release", "transcript"}
        Only the release is dealt with here.
    first, second : Trace
        Executions on D and on D'.
    judgement : Judgement
        Takes the findings.
    """
    if sees != "release" or not (_draws_choices(first) and _draws_choices(second)):
        return False
    executions = 1
    laws: list[list[_Outcome]] = []
    for trace in (first, second):
        outcomes, executed = _outcomes(trace)
        executions = max(executions, executed + 1)
        if outcomes is None:
            return False
        laws.append(outcomes)
    if all(outcome.layout.startswith("raises ") for law in laws for outcome in law):
        return False
    judgement.executions = executions
    p, q, off, off_there = _masses(*laws)
    each = least_losses(p, off, q, off_there)
    judgement.loss = max(0.0, float(np.abs(each).max(initial=0.0)) - 1e-12)
    judgement.steps = _steps(first, second)
    pure = pure_epsilon(claim)
    if pure is not None:
        judgement.proven = judgement.loss > pure + 1e-9 * (1 + pure)
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
        _find_release(first, second, float(p[worst]), float(q[worst]), judgement)
    return True


def _in_tree(side: tuple[list[_Outcome], Trace], seed: int) -> bool:
    law, trace = side[0], side[1].again(seed)
    chosen = _choices(trace)
    return any(each.choices == chosen and _same(each, trace) for each in law)


def _draws_choices(trace: Trace) -> bool:
    tape = trace.tape
    return bool(
        tape.observations
        and not (tape.coins or tape.unfollowed or trace.unread)
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
        outcomes.append(
            _Outcome(log, off, outcome.layout, outcome.value, _choices(outcome))
        )
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


def _same(one: Trace | _Outcome, other: Trace) -> bool:
    return one.layout == other.layout and _near(one.value, other.value)


def _near(value: Array, other: Array) -> bool:
    return len(value) == len(other) and bool(
        np.allclose(value, other, rtol=1e-9, atol=1e-12, equal_nan=True)
    )


def _masses(
    outcomes: list[_Outcome], others: list[_Outcome]
) -> tuple[Array, Array, Array, Array]:
    """Return the probabilities of the distinct releases, on D and on D'.

    And by how much each may be off. Where a release is impossible on one side, it may
    be so as that of some choice was rounded to 0.
    """
    seen: list[_Outcome] = []
    masses: list[list[float]] = []
    for side, law in enumerate((outcomes, others)):
        for outcome in law:
            alike = (
                mass
                for known, mass in zip(seen, masses, strict=True)
                if known.layout == outcome.layout and _near(known.value, outcome.value)
            )
            mass = next(alike, None)
            if mass is None:
                mass = [0.0, 0.0, 0.0, 0.0]
                seen.append(outcome)
                masses.append(mass)
            mass[side] += math.exp(outcome.log)
            mass[2 + side] += outcome.off
    p, q, off, off_there = np.array(masses).T
    most = max((outcome.off for outcome in (*outcomes, *others)), default=0.0)
    most = max(most, ROUNDING) if most else 0.0
    return p, q, np.where(p > 0, off, most), np.where(q > 0, off_there, most)


def _steps(first: Trace, second: Trace) -> Steps:
    """Return the choices of the two executions, as far as they go together."""
    pairs = zip(first.tape.observations, second.tape.observations, strict=False)
    compared = [(one.place, compare(one.law, two.law)) for one, two in pairs]
    return Steps(Step.of(place, each, each.supremum) for place, each in compared)


def _find_release(
    first: Trace,
    second: Trace,
    p: float,
    q: float,
    judgement: Judgement,
) -> None:
    """Say which release is too probable on one side, and where that comes from."""
    costly = max(judgement.steps, key=lambda step: step.loss, default=None)
    moved = costly is not None and costly.loss > 0
    where = costly.place if costly and moved else first.returned_at
    judgement.find(
        "distance" if moved else "release",
        where,
        f"one release has probability {p:.6g} on D and {q:.6g} on D'",
        neighbour=where if moved else second.returned_at,
        proof=True,
    )
