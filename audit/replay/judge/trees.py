"""Trees of choices: all ways in which they can turn out, and what is released then.

The head of `dpaudit.audit.replay.judge.finite` says what they are good for. A branch of
a probability that is too small to be told from rounding is left out: so a loop that
draws until something holds is a tree as well. How probable all that was left out may be
is kept (`Tree.lost`).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.audit.replay.execute.executor import Trace
from dpaudit.audit.replay.follow.observations import Observation, Observations
from dpaudit.audit.replay.laws.choices import ROUNDING, ChoiceLaw
from dpaudit.audit.replay.laws.coded import is_joint
from dpaudit.audit.replay.laws.mixtures import ReleaseLaw
from dpaudit.audit.replay.laws.thresholds import Event, ThresholdLaw, log_joint

__all__ = ["Tree", "draws_choices", "tree_of"]

_MOST_OUTCOMES = 64
_LEAST = 1e-13  # probability of an outcome that is no rounding
_MOST_KEPT = 128  # of an execution that does little, and keeps its draws
_LITTLE = 100  # draws
_MOST_DRAWS = 2_000  # of all of its executions, of which half are counted
_RAISED = 20  # executions that look for a failure that a branch has


@dataclass(frozen=True, eq=False)
class Tree:
    """All ways in which all choices can turn out.

    Parameters
    ----------
    trace : Trace
        Of an execution of the same mechanism on the same data.
    leaves : list of ReleaseLaw
        The laws of the release.
    traces : list of Trace
        The executions in which all choices turned out so.
    executions : int
    lost : float
        How probable outcomes may be that were left out, as their probabilities were
        rounded to 0.
    """

    trace: Trace
    leaves: list[ReleaseLaw]
    traces: list[Trace]
    executions: int
    lost: float

    def has(self, seed: int) -> bool:
        """Say whether fresh choices and noise give what the tree has for them."""
        trace = self.trace.again(seed)
        chosen = _choices(trace)
        known = any(
            _choices(each) == chosen and _same(each, trace) for each in self.traces
        )
        return known and (not len(trace.law.first) or _is_plain(trace))

    def like(self, trace: Trace) -> Trace | None:
        """Return the outcome of the same choices as in an execution, or None."""
        chosen = _choices(trace)
        return next((each for each in self.traces if _choices(each) == chosen), None)

    @property
    def really_fails(self) -> bool:
        """Whether failures in some branches are failures without us, too."""
        failing = {each.layout for each in self.traces if each.raises}
        for turn in range(_RAISED):
            if not failing:
                break
            plain = self.trace.again(self.trace.tape.seed + turn, follows=False)
            failing.discard(plain.layout)
        return not failing


def _is_plain(trace: Trace) -> bool:
    """Say whether an execution with ordinary numbers releases the same."""
    return trace.agrees(trace.plainly(), rtol=1e-7, atol=1e-9)


def _most(trace: Trace) -> int:
    """Return how many outcomes are executed at most."""
    tape = trace.tape
    little = tape.mode.keeps and tape.calls <= _LITTLE
    little &= not any(isinstance(e.law, ThresholdLaw) for e in tape.observations)
    return _MOST_KEPT if little else _MOST_OUTCOMES


def draws_choices(trace: Trace) -> bool:
    """Say whether what was looked at are choices, and the release has a known law."""
    tape, law = trace.tape, trace.law
    return bool(
        not (tape.coins or tape.unfollowed or tape.untrusted or trace.unread)
        and all(isinstance(each.law, ChoiceLaw) for each in tape.observations)
        and law.known
        and not is_joint(law.family).any()
        and not (len(law.first) and (law.rough is not None or tape.taken))
    )


def tree_of(trace: Trace) -> Tree | None:
    """Return all ways in which the choices of an execution can turn out.

    None if there are too many, or something else is random.
    """

    def along(script: Iterable[Observation], turn: int) -> Trace:
        seed = trace.tape.seed + turn
        return trace.again(seed, script=Observations(script), goes_on=True)

    most = _most(trace)
    if 1 + sum(_ways(each, most) for each in trace.tape.observations) > most:
        return None
    if not _is_plain(trace):
        return None
    leaves: list[ReleaseLaw] = []
    traces: list[Trace] = []
    waiting: list[list[Observation]] = [[]]
    executions, draws, lost = 1, 0, 0.0
    while waiting:
        if executions > (4 * most if most == _MOST_OUTCOMES else 2 * most + 1):
            return None
        script = waiting.pop()
        outcome = along(script, 0)
        made = outcome.tape.observations
        executions, draws = executions + 2, draws + outcome.tape.calls
        if outcome.tape.mode.keeps and draws > _MOST_DRAWS:
            return None
        if not (draws_choices(outcome) and _same(along(made, 1), outcome)):
            return None
        room = most - len(leaves) - len(waiting)
        branches, found = _branches(made, len(script), most, room), _probability(made)
        if branches is None or found is None:
            return None
        # Those with most choices open are next: too many are soon seen to be so.
        waiting = sorted([*waiting, *branches[0]], key=len, reverse=True)
        lost += branches[1]
        if found[0] > _LEAST:
            leaves.append(ReleaseLaw(*found, outcome.layout, outcome.law))
            traces.append(outcome)
        else:
            lost += sum(found)
    if abs(math.fsum(leaf.p for leaf in leaves) - 1) > 1e-9:
        return None
    return Tree(trace, leaves, traces, executions, lost)


def _branches(
    made: Observations, begun: int, most: int, room: int
) -> tuple[list[list[Observation]], float] | None:
    """Return the other ways from a choice on, and how probable those left out are.

    None if there is no room for so many.
    """
    branches: list[list[Observation]] = []
    lost = 0.0
    for place in range(begun, len(made)):
        others, left_out = _others(made[place], most)
        lost += left_out
        if len(branches) + len(others) >= room:
            return None
        for other in others:
            branch, p = [*made[:place], other], None
            # Of noisy numbers that were compared it costs more to know it.
            if not any(isinstance(each.law, ThresholdLaw) for each in branch):
                p = _probability(branch)
            if p is not None and p[0] <= _LEAST:
                lost += sum(p)
            else:
                branches.append(branch)
    return branches, lost


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
        part += math.log1p(ROUNDING * math.exp(min(-joint, 700.0)))
    p = math.exp(log)
    return p, p * math.expm1(min(part, 50.0))


def _law(observation: Observation) -> ChoiceLaw:
    assert isinstance(observation.law, ChoiceLaw)
    return observation.law


def _off(made: Observation) -> float:
    """Return the logarithm of how many times as probable a choice may be.

    Each of its parts has p + error at most, so one of p = 0 in the end has the error.
    """
    law = _law(made)
    own = law.log[np.arange(len(law.log)), np.asarray(made.value, dtype=np.intp)]
    return float(np.log1p(law.error * np.exp(np.minimum(-own, 700.0))).sum())


def _ways(made: Observation, most: int) -> int:
    """Return in how many other ways a choice can turn out, or some bound of them."""
    count, k = np.size(made.value), _law(made).outcomes
    return min(k ** min(count, _MOST_OUTCOMES) - 1, most)


def _others(made: Observation, most: int) -> tuple[list[Observation], float]:
    """Return a choice as it might have turned out otherwise.

    The second is how probable those may be of which the probability is 0.
    """
    law, ways = _law(made), _ways(made, most)
    if not 0 < ways < most:
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
