r"""Executions with few choices, and noise that is not looked at: exact laws as well.

What is drawn and looked at are choices, each with probabilities that are known once
those before it are made. So the ways in which they can turn out are the leaves of a
tree. The probability of such an outcome is the product of those along its branch. What
is released for it is found by executing the code with these very choices: given them,
the code looks at nothing random, so that one execution has the law of the release. If
there are few outcomes, all are executed (`outcomes_of`), and the release has an exactly
known law on D, and so on D': a mixture (`dpaudit.audit.replay.laws.mixtures`). The two
trees may be of different shapes; nothing but the releases is compared.

Releases whose numbers agree up to rounding are taken for one. That is a function of the
release, which can only bring the two laws nearer. So a claim that is refuted then is
false.

Every branch is executed a second time from another seed: if the law of the release is
another one then, there is randomness that was not seen. What refutes a claim is
executed again with fresh choices and noise, followed and as it is.
"""

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from dpaudit.audit.replay.execute.executor import Trace, both_again
from dpaudit.audit.replay.follow.observations import Observation, Observations
from dpaudit.audit.replay.judge.judgement import Judgement, Step, Steps
from dpaudit.audit.replay.laws.choices import ROUNDING, ChoiceLaw
from dpaudit.audit.replay.laws.comparison import compare
from dpaudit.audit.replay.laws.composition import most_loss, pure_epsilon
from dpaudit.audit.replay.laws.loss_law import LossLaw
from dpaudit.audit.replay.laws.mixture_losses import Worst, deltas, no_more, worst_of
from dpaudit.audit.replay.laws.mixtures import Leaf, Part, Terms, parts_of
from dpaudit.audit.replay.laws.thresholds import Event, ThresholdLaw, log_joint
from dpaudit.claims import polygon_delta

__all__ = ["judge_finite"]

_MOST_OUTCOMES = 64
_LEAST = 1e-13  # probability of an outcome that is no rounding
_SECONDS = 20.0  # that the executions of a tree may take
_RAISED = 20  # executions that look for a failure that a branch has
_EPSILONS = np.linspace(0.0, 60.0, 601)
_NOT_SETTLED = (
    "the release has {} numbers whose noise goes by hidden choices: no loss above "
    "{:.4g} was found, and none above {:.4g} is possible, which does not settle the "
    "claim"
)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """One way in which all choices turn out.

    Parameters
    ----------
    p : float
        Its probability.
    off : float
        By how much that may be off, as those of its choices may.
    trace : Trace
        The execution in which they did.
    """

    p: float
    off: float
    trace: Trace

    @property
    def leaf(self) -> Leaf:
        """The law of the release, if they turn out so."""
        return Leaf(self.p, self.off, self.trace.layout, self.trace.law)


@dataclass(frozen=True, eq=False)
class _Tree:
    """All ways in which all choices can turn out.

    Parameters
    ----------
    outcomes : list of _Outcome
    executions : int
    lost : float
        How probable outcomes may be that were left out, as their probabilities were
        rounded to 0.
    """

    outcomes: list[_Outcome]
    executions: int
    lost: float


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
    claim, sides = judgement.claim, (first, second)
    if judgement.sees != "release" or not all(map(_draws_choices, sides)):
        return False
    if not any(len(trace.tape.observations) for trace in sides):
        return False
    trees = []
    for trace in sides:
        tree = _tree_of(trace)
        if tree is None:
            return False
        trees.append(tree)
    laws = [tree.outcomes for tree in trees]
    every = [outcome.trace for law in laws for outcome in law]
    if all(trace.raises for trace in every):
        return False
    noisy = any(len(trace.law.first) for trace in every)
    if noisy and (first.tape.mode.public or not all(map(_really_raise, sides, laws))):
        return False
    here, there = ([outcome.leaf for outcome in law] for law in laws)
    parts = parts_of(here, there, lost=trees[0].lost, other_lost=trees[1].lost)
    worst, wide = worst_of(parts), [part for part in parts if part.dimensions > 1]
    judgement.executions = max(tree.executions for tree in trees) + 1
    judgement.loss = max(0.0, worst.loss - 1e-12)
    _take_steps(judgement, first, second)
    if pure_epsilon(claim) is not None:
        judgement.proven = judgement.loss > most_loss(claim)
    else:
        named = claim.parameters.get("epsilon")
        epsilons = _EPSILONS if named is None else np.append(_EPSILONS, float(named))
        allowed = 1.0001 * claim.delta(epsilons) + 1e-9
        judgement.proven = bool((deltas(parts, epsilons) > allowed).any())
    judgement.suspicious = judgement.proven
    part = parts[worst.part]
    judgement.bare = judgement.loss == math.inf and not part.dimensions
    given = (laws[0], first), (laws[1], second)

    def again(turn: int) -> tuple[bool, int]:
        # The choices are fresh: what was released for them is in the tree.
        return all(both_again(first.tape.seed + 1, turn, given, _in_tree)), 1 + noisy

    judgement.again = again
    if judgement.proven:
        _find(judgement, worst, part, given)
    elif wide:
        most = max(judgement.loss, *map(no_more, wide))
        if (
            polygon_delta(_EPSILONS, most, 0.0) <= claim.delta(_EPSILONS) + 1e-12
        ).all():
            return True
        judgement.suspicious = True
        if pure_epsilon(claim) is None:
            judgement.laws = LossLaw(parts), LossLaw(parts, back=True)
        else:
            size = max(each.dimensions for each in wide)
            why = _NOT_SETTLED.format(size, judgement.loss, most)
            judgement.suspect("budget", first.returned_at, why)
    return True


def _take_steps(judgement: Judgement, first: Trace, second: Trace) -> None:
    """Note how the choices and the noise of two executions lie to each other."""
    pairs = zip(first.tape.observations, second.tape.observations, strict=False)
    compared = [(one.place, compare(one.law, two.law)) for one, two in pairs]
    if first.layout == second.layout and len(first.law.first):
        step = compare(first.law, second.law)
        if step.known and len(step.shift):
            compared.append((first.place_of(first.law.draw[0]), step))
    judgement.steps = Steps(Step.of(at, step, step.supremum) for at, step in compared)


_Side: TypeAlias = tuple[list[_Outcome], Trace]


def _find(
    judgement: Judgement, worst: Worst, part: Part, given: tuple[_Side, _Side]
) -> None:
    """Say where the probabilities, or the noise, of the worst release come from."""
    (here, first), (there, second) = given
    costly = max(judgement.steps, key=lambda step: step.loss, default=None)
    moved = costly.place if costly is not None and costly.loss > 0 else None
    if not part.dimensions:
        p, _, q, _ = (float(each[0]) for each in part.masses)
        kind = "distance" if moved else "release"
        text = f"one release has probability {p:.6g} on D and {q:.6g} on D'"
        where, neighbour = moved or first.returned_at, moved or second.returned_at
        judgement.find(kind, where, text, neighbour=neighbour, proof=True)
        return
    at = worst.at[np.newaxis]
    sides = [
        (outcomes[terms.leaf[term]], terms, term)
        for outcomes, terms in ((here, part.one), (there, part.other))
        for term in [int(np.argmax(terms.logs(at)[0] + np.log(terms.at_most)))]
    ]
    (one, terms, term), (other, terms2, term2) = sides
    with np.errstate(all="ignore"):
        choice = math.log(terms.p[term] / terms2.p[term2])
        noise = terms.logs(at)[0, term] - terms2.logs(at)[0, term2]
    places = [
        outcome.trace.place_of(outcome.trace.law.draw[0]) for outcome in (one, other)
    ]
    way = ("D'", "D") if worst.back else ("D", "D'")
    loss = f"e^{worst.loss:.6g}" if math.isfinite(worst.loss) else "any number of"
    text = f"a release is {loss} times as probable on {way[0]} as on {way[1]}"
    kind = "distance"
    if moved and abs(choice) > abs(noise):
        places = [moved, moved]
    else:
        both = (part.one, terms, term), (part.other, terms2, term2)
        scales = [set(np.abs(side.ratio).ravel().tolist()) for side, _, _ in both]
        kind = "distance" if scales[0] == scales[1] else "scale"
        shift = np.abs(terms.mean[term] - terms2.mean[term2])
        number = int(np.argmax(shift))
        words = [_words(each, row, number) for _, each, row in both]
        text += ": where choices turn out so, it is {} on D, and {} on D'".format(
            *words
        )
    judgement.find(kind, places[0], text, neighbour=places[1], proof=True)


def _words(terms: Terms, term: int, number: int) -> str:
    """Return one coordinate of a term of a mixture, for people."""
    mean, scale = terms.mean[term, number], abs(terms.ratio[term, number])
    return f"{mean:.6g} with noise of scale {scale:.6g}"


def _really_raise(trace: Trace, outcomes: list[_Outcome]) -> bool:
    """Say whether failures in some branches are failures without us, too."""
    failing = {each.trace.layout for each in outcomes if each.trace.raises}
    for turn in range(_RAISED):
        if not failing:
            break
        plain = trace.again(trace.tape.seed + turn, follows=False)
        failing.discard(plain.layout)
    return not failing


def _in_tree(side: _Side, seed: int) -> bool:
    """Say whether fresh choices and noise give what the tree has for them."""
    law, trace = side[0], side[1].again(seed)
    chosen = _choices(trace)
    known = any(
        _choices(each.trace) == chosen and _same(each.trace, trace) for each in law
    )
    return known and (not len(trace.law.first) or _is_plain(trace))


def _is_plain(trace: Trace) -> bool:
    """Say whether an execution with ordinary numbers releases the same."""
    return trace.agrees(trace.plainly(), rtol=1e-7, atol=1e-9)


def _draws_choices(trace: Trace) -> bool:
    """Say whether what was looked at are choices, and the release has a known law."""
    tape, law = trace.tape, trace.law
    return bool(
        not (tape.coins or tape.unfollowed or tape.untrusted or trace.unread)
        and all(isinstance(each.law, ChoiceLaw) for each in tape.observations)
        and law.known
        and not (len(law.first) and (law.rough is not None or tape.taken))
    )


def _tree_of(trace: Trace) -> _Tree | None:
    """Return all ways in which the choices of an execution can turn out.

    None if there are too many, it takes too long, or something else is random.
    """

    def along(script: Iterable[Observation], turn: int) -> Trace:
        seed = trace.tape.seed + turn
        return trace.again(seed, script=Observations(script), goes_on=True)

    if 1 + sum(map(_ways, trace.tape.observations)) > _MOST_OUTCOMES:
        return None
    if not _is_plain(trace):
        return None
    outcomes: list[_Outcome] = []
    waiting: list[list[Observation]] = [[]]
    executions, lost, until = 1, 0.0, time.perf_counter() + _SECONDS
    while waiting:
        if time.perf_counter() > until:
            return None
        script = waiting.pop()
        outcome = along(script, 0)
        made = outcome.tape.observations
        executions += 2
        if not (_draws_choices(outcome) and _same(along(made, 1), outcome)):
            return None
        for place in range(len(script), len(made)):
            others, left_out = _others(made[place])
            lost += left_out
            if len(outcomes) + len(waiting) + len(others) >= _MOST_OUTCOMES:
                return None
            waiting += [[*made[:place], other] for other in others]
        found = _probability(made)
        if found is None:
            return None
        if found[0] > _LEAST:
            outcomes.append(_Outcome(*found, outcome))
        else:
            lost += sum(found)
    total = math.fsum(outcome.p for outcome in outcomes)
    return _Tree(outcomes, executions, lost) if abs(total - 1) < 1e-9 else None


def _probability(made: Iterable[Observation]) -> tuple[float, float] | None:
    """Return the probability that all choices turn out so, and by how much it is off.

    None if it is not known.
    """
    events: list[Event] = []
    log = part = 0.0
    for each in made:
        law = _law(each)
        if isinstance(law, ThresholdLaw):
            events += law.came_about(each.value)
        else:
            log += law.log_probability(each.value)
            part += _off(each)
    if events:
        joint = log_joint(events)
        if joint is None:
            return None
        log += joint
        part += ROUNDING * math.exp(min(-joint, 700.0))
    p = math.exp(log)
    return p, p * math.expm1(min(part, 50.0))


def _law(observation: Observation) -> ChoiceLaw:
    assert isinstance(observation.law, ChoiceLaw)
    return observation.law


def _off(made: Observation) -> float:
    """Return by which part of itself the probability of a choice may be off."""
    law = _law(made)
    own = law.log[np.arange(len(law.log)), np.asarray(made.value, dtype=np.intp)]
    return float((law.error * np.exp(np.minimum(-own, 700.0))).sum())


def _ways(made: Observation) -> int:
    """Return in how many other ways a choice can turn out, or some bound of them."""
    count, k = np.size(made.value), _law(made).outcomes
    return min(k ** min(count, _MOST_OUTCOMES) - 1, _MOST_OUTCOMES)


def _others(made: Observation) -> tuple[list[Observation], float]:
    """Return a choice as it might have turned out otherwise.

    The second is how probable those may be of which the probability is 0.
    """
    law, ways = _law(made), _ways(made)
    if not 0 < ways < _MOST_OUTCOMES:
        return [made] * ways, 0.0
    count, k = law.log.shape
    every = np.stack(np.unravel_index(np.arange(k**count), (k,) * count), axis=-1)
    possible = [value for value in every if law.log_probability(value) > -math.inf]
    others = [
        replace(made, value=value)
        for value in possible
        if not np.array_equal(value, made.value)
    ]
    return others, law.error * (len(every) - len(possible))


def _choices(trace: Trace) -> tuple[bytes, ...]:
    values = (each.value for each in trace.tape.observations)
    return tuple(np.asarray(value, dtype=float).tobytes() for value in values)


def _same(one: Trace, other: Trace) -> bool:
    """Say whether two executions have one law of the release, up to rounding."""
    law, law2 = one.law, other.law
    if not len(law.first) and not len(law2.first):
        return other.agrees(one, rtol=1e-9, atol=1e-12)
    same = one.layout == other.layout and np.array_equal(law.unit, law2.unit)
    same = same and law.known and law2.known and law2.rough is None
    return same and all(
        np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)
        for a, b in (
            (law.mean, law2.mean),
            (law.ratio, law2.ratio),
            (law.family, law2.family),
        )
    )
