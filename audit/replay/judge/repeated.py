r"""Whether a refutation stands when it is executed again: randomness that hides.

Compiled code has noise that no recorder sees. What it returns looks like a number
without noise, if it comes out alike whenever it is looked at. So before a finding
refutes a claim, the pair that it is about is executed again, m times on either side.

**What the numbers without noise show.** Let S be a set of releases that has probability
1 on D, and 0 on D', if all randomness is what was recorded (the number is v; its layout
is this one). Let p be the true probability of S on D, and q that on D'. Each execution
has fresh draws, recorded and hidden, of its own (`both_again`: those on D' are others
than those on D), and all of them lie in S on D, and none on D', with probability
(p (1 - q))^m. With A = e^epsilon, a claim of (epsilon, delta) says

.. math:: p \le A q + \delta, \qquad 1 - q \le A (1 - p) + \delta.

In p and u = 1 - q this is a convex set that stays what it is if they change places,
and log(p u) is concave, so that the largest product has p = u = (A + delta)/(A + 1).
**If the claim is true, m executions a side come out as followed with probability at
most** ((A + delta)/(A + 1))^(2 m). Nothing is taken for granted of how hidden and
recorded draws depend on each other, as S is an event of the release. It was fixed by
executions before those m. The most telling epsilon of a profile is taken.

**What comes out so nearly always** is counted (`often`). In each pair of executions
S has p (1 - q) <= b = ((A + delta)/(A + 1))^2, and pairs are independent. So of m pairs
the number that come out so is no larger, in law, than that of m tosses that fall with
probability b, and a number that these reach with probability alpha at most refutes.

**Transcripts** of a pure claim are given back to both sides. If what the code makes of
given values keeps the claim for almost all of them, then the bound is the same: with
values of loss l the two factors are e^(epsilon - l) and e^(epsilon + l), and the
largest product A B (A - 1)(B - 1)/(A B - 1)^2 has A = B, their product being fixed.

**State** is no randomness: code may count its calls, and take turns. So it is drawn at
random which side comes first, each time (`in_any_order`). Releases that go by the
number of the call, and not by the data, come out as followed with probability at most
2^-m: all calls are given, and of the two in each turn one alone may be that on D.

**What exact laws of recorded noise show** (a loss that is too large) is a proof if all
randomness was recorded. The same executions show hidden randomness that by itself would
keep the claim, since what follows is processed further; they do not show what keeps it
only together with recorded noise, and no number of executions would: a loss may be
larger than claimed by as little as one likes.
"""

import math
import time

import numpy as np
from scipy.stats import binom

from dpaudit.audit.replay.judge.judgement import Repeat
from dpaudit.claims import Claim

__all__ = ["often", "repeat", "repeats_needed"]

_MOST = 200  # executions again, on either side, or more if they take few seconds
_MOST_EVER, _SECONDS = 20_000, 10.0  # of the processor
_TIMES = 3  # as many pairs are counted as would be needed if all came out as before
_EPSILONS = np.linspace(0.0, 12.0, 241)


def repeats_needed(claim: Claim, alpha: float) -> int:
    """Return after how many executions a side hidden noise is unlikely to be hidden.

    If the claim is true, a number without recorded noise differs in all of these with
    probability at most alpha.

    Parameters
    ----------
    claim : Claim
    alpha : float
        In (0, 1).

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> [repeats_needed(PureDP(epsilon), 0.001) for epsilon in (0.1, 1.0, 3.0, 8.0)]
    [6, 12, 72, 10298]
    """
    most = _log_most(claim)
    return math.ceil(math.log(alpha) / most) if most < 0 else 2**62


def _log_most(claim: Claim) -> float:
    """Return the logarithm of b, at the most telling epsilon."""
    named = claim.parameters.get("epsilon")
    epsilons = _EPSILONS if named is None else np.append(_EPSILONS, float(named))
    epsilons = epsilons[epsilons < 30]
    delta = np.minimum(1.0, 1.0001 * np.asarray(claim.delta_at(epsilons)) + 1e-12)
    # log of (A + delta)/(A + 1), also where that is nearly 1
    logs = np.log1p(-(1 - delta) / (np.exp(epsilons) + 1))
    return 2 * float(logs.min())


def often(
    again: Repeat, claim: Claim, alpha: float, *, until: float
) -> tuple[bool | None, int]:
    """Execute a pair again, and say whether it comes out as before too often.

    None where that would take more executions than are made, or than there is time.
    Also how many executions a side were made. Arguments as of `repeat`.
    """
    needed = repeats_needed(claim, alpha)
    if needed > _MOST_EVER:
        return None, 0
    pairs, made = min(_TIMES * needed, _MOST_EVER), 0
    least = int(binom.isf(alpha, pairs, math.exp(_log_most(claim)))) + 1
    enough, left = time.process_time() + _SECONDS, [least, pairs - least + 1]
    while min(left):
        late = made > _MOST and time.process_time() > enough
        if late or time.perf_counter() > until:
            return None, made
        alike, executions = again(made + 1)
        made += executions
        left[not alike] -= 1
    return not left[0], made


def repeat(
    again: Repeat, claim: Claim, alpha: float, *, bare: bool, until: float
) -> tuple[bool | None, int]:
    """Execute a pair again, and say whether a refutation stands; and the executions.

    None where that would take more of them than are made, or than there is time.

    Parameters
    ----------
    again : callable
    claim : Claim
    alpha : float
    bare : bool
        Whether the refutation rests on what has no recorded noise. Then it takes as
        many executions as are needed; else as many, or `_MOST` where that is fewer,
        at any time: no proof stands on none.
    until : float
        Of the clock, when it is too late for the former.
    """
    # And state that goes by the number of the call is to show.
    needed, made = max(repeats_needed(claim, alpha), math.ceil(-math.log2(alpha))), 0
    if bare and needed > _MOST_EVER:
        return None, 0
    enough = time.process_time() + _SECONDS
    for turn in range(1, (needed if bare else min(needed, _MOST)) + 1):
        late = turn > _MOST and time.process_time() > enough
        if bare and (late or time.perf_counter() > until):
            return None, made
        alike, executions = again(turn)
        made += executions
        if not alike:
            return False, made
    return True, made
