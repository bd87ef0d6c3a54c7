r"""From executions to findings: what a pair of neighbours shows, and what that proves.

**Open executions.** Where nothing was looked at before the release, the code on a
dataset D did not depend on any draw: it was the same for all of them. So the one
execution gives the law of the release, words and joint law of the numbers, exactly; and
so does one on D'. What is said of the two laws (`dpaudit.audit.replay.laws.affine`) is
a proof. It takes for granted that there is no other randomness, for which
`dpaudit.audit.replay.execute.patches` looks out, and that the recorded code is the
code. For the latter, each side is executed a second time with ordinary numbers, from
*another* seed: the release must be, up to rounding, what the law says it is for those
draws.

**Choices among few outcomes.** Where nothing was looked at but choices with known
probabilities (`dpaudit.audit.replay.judge.finite`), all ways that they can turn out are
executed, and the law of the release, a mixture, is exact again: proofs, once more.
Where noisy values were compared and the executions below settle nothing, comparisons
are taken for choices, too (`Mode.decides`).

**Other executions.** Let y be the noisy values that the code looked at on D. The same y
are given back to it on D'. If it comes to the same calls, the loss of the transcript is
the sum of the losses of its values, each given those before it, and of the release
given all of them. If it comes to others, or to another release, then this transcript is
impossible on D'.

Let A be the transcripts of loss above epsilon. If one is drawn, then A has positive
probability on D (a set of measure zero is never drawn), and P(A) > e^epsilon Q(A), as
P(A) is the mean of e^loss 1_A under Q (and Q(A) = 0 where the loss is infinite). So one
transcript refutes a pure claim for those who see transcripts. It says nothing about the
release alone: a proof may hide noisy values (a noisy maximum, a test before a release,
secret batches). Coins, which are drawn and not seen, are hidden as well.

**Secret batches** of rows, drawn by a flip of each, are no coins: the loss of a
transcript is that of mixtures over the flip of the row that differs, given those of the
others (`dpaudit.audit.replay.judge.sampled`).
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit.audit.replay.execute.executor import Trace, execute
from dpaudit.audit.replay.follow.ending import Ended, StepCount
from dpaudit.audit.replay.follow.tape import Mode
from dpaudit.audit.replay.judge.closed_executions import judge_closed
from dpaudit.audit.replay.judge.exact_laws import judge_open
from dpaudit.audit.replay.judge.far_noise import look_at_tails, look_far
from dpaudit.audit.replay.judge.finite import judge_finite
from dpaudit.audit.replay.judge.judgement import TWO_MODES, Findings, Judgement
from dpaudit.audit.replay.judge.lines import Lines
from dpaudit.audit.replay.judge.public_values import compare_public
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.choices import ChoiceLaw
from dpaudit.audit.replay.laws.composition import most_loss, pure_epsilon
from dpaudit.claims import Claim
from dpaudit.neighbours import Pair

__all__ = ["judge"]

_TURNS = 3  # seeds, where noisy values are looked at
_MORE_TURNS = 14  # of a pair that is looked at closely: see `_judge_closed`
_LITTLE = 50_000  # steps, and numbers of D and that are looked at: then more follow
_PLAIN = 4  # executions that a turn takes where nothing is hidden
_VARIANTS = 12  # of entropy, of which a fair bit escapes each with probability 1/2
_MOST_LOOKS = 4  # numbers, after which all branches are executed in any case
_ONLY_TAKEN = (
    "the noise has a law that a simulation of it fits, whose scale is not known well "
    "enough to compare it with other noise, or with numbers"
)
_DECIDING = Mode(decides=True), Mode(decides=True, keeps=True)


def judge(
    mechanism: Any,
    pair: Pair,
    claim: Claim,
    seed: int,
    sees: str,
    *,
    public: bool = False,
    closely: bool = True,
) -> Judgement:
    """Execute a mechanism on both datasets of a pair, and say what differs.

    `public` says that everybody sees which rows are chosen; without `closely` code that
    looks at noise is executed from three seeds at most.
    """
    executed = partial(_both, mechanism, pair, seed)
    judgement = Judgement(pair, claim, sees)
    try:
        return _judge(judgement, executed, public=public, closely=closely)
    except Ended as ended:
        judgement = judgement.anew(executions=1 + judgement.executions)
        judgement.suspect("coin", ended.place, ended.why)
        judgement.suspicious = not ended.ordinary  # or releases go on as well
    return judgement


def _both(
    mechanism: Any, pair: Pair, seed: int, mode: Mode, turn: int = 0
) -> tuple[Trace, Trace]:
    """Execute a mechanism on both datasets from a seed."""
    seed += turn
    first = execute(mechanism, pair.data, seed, mode=mode)
    steps = partial(StepCount.beside, first.tape.steps.taken)
    return first, execute(mechanism, pair.neighbour, seed, mode=mode, steps=steps)


def _judge(
    judgement: Judgement, executed: Callable[..., Any], *, public: bool, closely: bool
) -> Judgement:
    """Judge both sides, if executions come to an end."""
    sees = judgement.sees
    first, second = executed(Mode(public=public))
    opening = first.tape.seed, first.tape.mode, first.tape.calls
    if any(trace.tape.selected and trace.tape.unfollowed for trace in (first, second)):
        first, second = executed(Mode(selects=False, public=public))
    if not _judge_exactly(judgement, first, second):
        judgement, read = _judge_closed(judgement, (first, second), executed, closely)
        pure = pure_epsilon(judgement.claim) is not None
        far = pure and sees == "release" and not public
        if far and judgement.followed and not judgement.suspicious:
            try:
                look_far(judgement, *read)
                look_at_tails(judgement, *read)
            except Ended as ended:
                judgement.suspect("coin", ended.place, ended.why)
        open_end = judgement.suspicious or not judgement.followed
        seen = first.tape.observations[: _MOST_LOOKS + 1]
        looked = sum(each.value.size for each in seen) <= _MOST_LOOKS
        undecided = sees == "release" and not (judgement.proven or public)
        for mode in _DECIDING if (open_end or looked) and undecided else ():
            decided, known = judgement.anew(), False
            judgement.executions += 1
            with suppress(Ended):  # of no way that was taken before
                sides = executed(mode)
                known = _judge_exactly(decided, *sides)
            settles = decided.proven or not decided.suspicious
            tested = open_end and not pure
            settles |= tested and decided.laws is not None
            if known and (settles or not mode.keeps):
                decided.executions += judgement.executions
                judgement, (first, second) = decided, sides
                break
    compare_public(judgement, first, second)
    if (first.unread or second.unread) and not judgement.proven:
        judgement.followed, judgement.shows_more = False, True
        judgement.find(
            "coin",
            first.returned_at,
            "the release holds an object that is neither numbers nor text, and may "
            f"show more: {first.layout}",
        )
    _vary(judgement, first, second)
    judgement.opening = opening
    judgement.meeting = Lines(first, second).meeting
    judgement.taken = *first.tape.taken, *second.tape.taken
    told = judgement.taken and judgement.suspicious
    if told and not _meets_itself(first, second, bare=judgement.bare):
        judgement.findings = judgement.findings.with_proof(None)
        judgement.proven = judgement.transcripts = False
        judgement.laws = None
        judgement.suspect("coin", judgement.taken[0].place, _ONLY_TAKEN)
    return judgement


def _meets_itself(first: Trace, second: Trace, *, bare: bool) -> bool:
    """Say whether noise that is taken for a law is compared with itself, shifted.

    Or not at all: what is `bare` differs without noise.

    Its scale is not known exactly. That refutes nothing where it is on both sides,
    for then both have the same error. Beside other noise it would, and so it would
    where numbers are compared with it.
    """
    sides = [[e.law for e in trace.tape.observations] for trace in (first, second)]
    if any(isinstance(law, ChoiceLaw) for side in sides for law in side):
        return False
    pairs = [(first.law, second.law), *zip(*sides, strict=False)]
    alike = len(sides[0]) == len(sides[1]) and all(
        _taken_for(first, one) == _taken_for(second, other) for one, other in pairs
    )
    return bare or alike


def _taken_for(trace: Trace, law: AffineLaw) -> list[Any]:
    """Return what each noise of a law is made of, None where its law is exact.

    Something that equals nothing where sums of noise do not tell that.
    """
    fits = trace.tape.draws.fits
    found = [
        next((made for start, stop, made in fits if start <= draw < stop), None)
        for draw in [*law.draw.tolist(), *law.columns.tolist()]
    ]
    sums = bool(fits) and not law.alone.all()  # of a sum one draw alone is named
    sums |= law.factor is not None and len({*found}) > 1
    return [object()] if sums else found


def _judge_exactly(judgement: Judgement, first: Trace, second: Trace) -> bool:
    """Judge executions that tell the law of the release; else return False."""
    if first.open and second.open and first.law.followed and second.law.followed:
        judge_open(judgement, first, second)
        return True
    return judge_finite(judgement, first, second)


def _judge_closed(
    begun: Judgement,
    lazy: tuple[Trace, Trace],
    executed: Callable[[Mode, int], tuple[Trace, Trace]],
    closely: bool,
) -> tuple[Judgement, tuple[Trace, Trace]]:
    """Judge executions in which noisy values were looked at, by some more of them.

    With those of the first seed, in the mode that was judged: noise to which data are
    added twice may be one noisy value or two, and it takes both modes to refute.
    """
    mode = lazy[0].tape.mode
    looked = sum(each.value.size for each in lazy[0].tape.observations)
    size = np.size(begun.pair.data) if isinstance(begun.pair.data, np.ndarray) else 0
    little = lazy[0].tape.steps.taken + looked + size <= _LITTLE
    most = _MORE_TURNS if closely else _TURNS
    over = partial(_over_seeds, begun, executed, most=most, little=little)
    eager = replace(mode, eager=True)
    worst, at, read = over(eager, executed(eager, 0), 0)
    worst.executions += 1
    if worst.followed and not worst.suspicious:
        return worst, read
    if at:  # the other mode, of the same draws
        lazy = executed(mode, at)
    other, last, lazy = over(mode, lazy, at)
    worst.executions += other.executions - (not at)
    if other.followed and not other.suspicious and not lazy[0].tape.coins:
        other.executions = worst.executions
        return other, lazy
    if last != at:  # of these draws there is nothing in the other mode
        other.proven = other.transcripts = False
    if worst.proven and not other.proven:
        worst.followed = False
        worst.find("coin", lazy[0].returned_at, TWO_MODES)
    worst.proven &= other.proven
    worst.transcripts &= other.transcripts
    # The eager mode may take values for others: 0 + noise is none before it is used.
    hides = other.loss <= most_loss(begun.claim) < worst.loss
    other_values = worst.loss == np.inf and other.suspicious and not hides
    if other.loss < worst.loss and (worst.proven or other_values):
        worst.loss, worst.steps = other.loss, other.steps
        worst.findings = other.findings
    if not worst.proven:
        scales = [each for each in other.findings if each.kind == "scale"]
        found = dict.fromkeys([*scales, *worst.findings])
        worst.findings = Findings(found).with_proof(None)
    return worst, read


def _over_seeds(
    begun: Judgement,
    executed: Callable[[Mode, int], tuple[Trace, Trace]],
    mode: Mode,
    opening: tuple[Trace, Trace],
    at: int,
    *,
    most: int,
    little: bool,
) -> tuple[Judgement, int, tuple[Trace, Trace]]:
    """Judge executions in a mode until one is suspicious, or that are many enough.

    What coins decide may be the same on both sides for one seed, and not for others. Of
    n independent executions none takes a way of probability p with probability
    (1 - p)^n: for p = 0.4 that is 0.22 of three, and 0.0008 of 14, as many as there are
    of code that does little, by what it draws and looks at and by the size of the data.

    Parameters
    ----------
    begun : Judgement
    executed : callable
        Executes both sides in a mode, from a seed of that number.
    mode : Mode
    opening : tuple of Trace
        In that mode, from the seed to begin with.
    at : int
        Its number.
    most : int
        Seeds.
    little : bool
        Whether the code does little.

    Returns
    -------
    tuple of Judgement, int and tuple of Trace
        The worst, the number of the last seed, and the executions from the first.
    """
    executions, turns, worst = 0, 0, None
    branches: tuple[set[int], set[int]] = (set(), set())
    seeds = [at, *(seed for seed in range(most) if seed != at)]
    while turns < most:
        if turns == _TURNS and not (little and executions <= _PLAIN * _TURNS):
            break
        traces = executed(mode, seeds[turns]) if turns else opening
        turns += 1
        found = begun.anew(mode=replace(mode, eager=False), branches=branches)
        for seen, trace in zip(branches, traces, strict=True):
            seen.add(hash((trace.tape.observations.path, trace.layout)))
        judge_closed(found, *traces)
        executions += found.executions
        if worst is None or found.rank > worst.rank:
            worst = found
        if found.suspicious or not found.followed:
            break
    assert worst is not None
    worst.executions, worst.turns = executions, turns
    return worst, seeds[turns - 1], opening


def _vary(judgement: Judgement, first: Trace, second: Trace) -> None:
    """Look whether the release depends on what comes from outside of the code.

    What refutes a claim is executed again anyway.
    """
    for trace in (first, second):
        if not trace.tape.outside or judgement.suspicious or not judgement.followed:
            continue
        judgement.executions += _VARIANTS
        for variant in range(1, _VARIANTS + 1):
            again = trace.again(variant=variant)
            if not trace.agrees(again, rtol=1e-7, atol=1e-9):
                judgement.unconfirmed(again.tape.unfollowed, trace)
                break
