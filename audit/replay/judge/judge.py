r"""From executions to findings: what a pair of neighbours shows, and what that proves.

**Open executions.** Where nothing was looked at before the release, the code on a
dataset D did not depend on any draw: it was the same for all of them. So the one
execution gives the law of the release, words and joint law of the numbers, exactly; and
so does one on D'. What is said of the two laws (`dpaudit.audit.replay.laws.affine`) is
a proof. It takes for granted that there is no other randomness, for which
`dpaudit.audit.replay.execute.patches` watches, and that the recorded code is the code. For the latter, each side is executed a second time with ordinary numbers, from
*another* seed: the release must be, up to rounding, what the law says it is for those
draws.

**Choices among few outcomes.** Where nothing but choices with known probabilities was
drawn (`dpaudit.audit.replay.judge.finite`), all ways that they can turn out are
executed, and the law of the release is exact again: proofs, once more.

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

**Secret batches** of rows, drawn by a flip of each, are no coins: the loss of a
transcript is that of mixtures over the flip of the row that differs, for whoever sees
those of the others (`dpaudit.audit.replay.judge.sampled`).
"""

from dataclasses import replace
from typing import Any

from dpaudit.audit.replay.execute.executor import Trace, execute
from dpaudit.audit.replay.follow.tape import Mode
from dpaudit.audit.replay.judge.finite import judge_finite
from dpaudit.audit.replay.judge.judgement import TWO_MODES, Judgement, returned_at
from dpaudit.audit.replay.judge.open_executions import judge_open
from dpaudit.audit.replay.judge.public import hold_public
from dpaudit.audit.replay.judge.transcripts import judge_replayed
from dpaudit.claims import Claim
from dpaudit.neighbours import Pair

__all__ = ["Judgement", "judge"]

_TURNS = 3  # seeds, where noisy values are looked at


def judge(
    mechanism: Any,
    pair: Pair,
    claim: Claim,
    seed: int,
    sees: str,
    *,
    public: bool = False,
) -> Judgement:
    """Execute a mechanism on both datasets of a pair, and say what differs.

    `public` says that everybody sees which rows are chosen.
    """
    judgement = Judgement(pair)
    first, second = _executed(mechanism, pair, seed, Mode(public=public))
    opening = seed, first.tape.mode, first.tape.draws
    if any(trace.tape.selected and trace.tape.unfollowed for trace in (first, second)):
        mode = Mode(selects=False, public=public)
        first, second = _executed(mechanism, pair, seed, mode)
    if first.open and second.open and first.law.followed and second.law.followed:
        judge_open(mechanism, claim, first, second, judgement)
    elif not judge_finite(mechanism, claim, sees, first, second, judgement):
        judgement = _judge_closed(mechanism, pair, claim, seed, sees, (first, second))
    hold_public(mechanism, sees, first, second, judgement)
    if (first.unread or second.unread) and not judgement.proven:
        judgement.followed, judgement.shows_more = False, True
        judgement.find(
            "coin",
            returned_at(mechanism, first),
            "the release holds an object that is neither numbers nor text, and may "
            f"show more: {first.layout}",
        )
    judgement.opening = opening
    return judgement


def _executed(mechanism: Any, pair: Pair, seed: int, mode: Mode) -> tuple[Trace, Trace]:
    first, second = (
        execute(mechanism, data, seed, mode=mode)
        for data in (pair.data, pair.neighbour)
    )
    return first, second


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
    executions, mode = 0, replace(lazy[0].tape.mode, eager=True)
    worst: Judgement | None = None
    branches: tuple[set[int], set[int]] = (set(), set())
    for turn in range(_TURNS):
        eager = Judgement(pair, branches=branches, turns=turn + 1)
        traces = _executed(mechanism, pair, seed + turn, mode)
        for seen, trace in zip(branches, traces, strict=True):
            seen.add(hash((trace.tape.observations.path, trace.layout)))
        judge_replayed(mechanism, claim, sees, *traces, eager)
        executions += eager.executions
        if worst is None or eager.rank > worst.rank:
            worst = eager
        if eager.suspicious or not eager.followed:
            break
    assert worst is not None
    worst.executions, worst.turns = executions + 1, turn + 1
    worst.mode = lazy[0].tape.mode
    if worst.followed and not worst.suspicious:
        return worst
    if turn:  # the other mode, of the same draws
        lazy = _executed(mechanism, pair, seed + turn, worst.mode)
        worst.executions += 1
    judgement = Judgement(pair, mode=worst.mode, branches=branches, turns=worst.turns)
    judge_replayed(mechanism, claim, sees, lazy[0], lazy[1], judgement)
    worst.executions += judgement.executions - 1
    if judgement.followed and not judgement.suspicious and not lazy[0].tape.coins:
        judgement.executions = worst.executions
        return judgement
    # Noise to which data are added twice may be one noisy value or two: it takes both
    # readings to refute.
    if worst.proven and not judgement.proven:
        worst.followed = False
        worst.find("coin", returned_at(mechanism, lazy[0]), TWO_MODES)
    worst.proven &= judgement.proven
    worst.transcripts &= judgement.transcripts
    if worst.proven and judgement.loss < worst.loss:
        worst.loss, worst.findings, worst.steps = (
            judgement.loss,
            judgement.findings,
            judgement.steps,
        )
    if not worst.proven:
        worst.findings = [replace(finding, proof=None) for finding in worst.findings]
    return worst
