r"""What becomes of a suspicion: a refutation that stands, or the reason why not.

**State.** What keeps noise from one execution to the next is settled by nothing:
neither by one execution, nor by a test that takes releases for independent.

**Exact laws and losses** are drawn from, or held to the claim as they are. What refutes
it stands if all comes out as before when it is executed again. Where nothing stands,
releases decide.

**No loss above a pure claim goes with NOT_REFUTED.** One transcript of such a loss is a
violation to those who see transcripts, and may be one to others. So it is left open,
if tests do not show it.

Randomness that is not recorded
-------------------------------

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
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit.audit.harness import audit
from dpaudit.audit.replay.execute.executor import execute, place_of_definition
from dpaudit.audit.replay.follow.logs import DrawLog
from dpaudit.audit.replay.follow.observations import Unfollowed
from dpaudit.audit.replay.follow.tape import LAZY
from dpaudit.audit.replay.judge.judgement import TWO_MODES, Judgement, Repeat
from dpaudit.audit.replay.judge.kept import kept_noise
from dpaudit.audit.replay.judge.primitive_audits import (
    PrimitiveAudit,
    ShownOutputs,
    audit_primitives,
)
from dpaudit.audit.replay.judge.shown import ShownTranscripts
from dpaudit.audit.replay.judge.statistics import (
    ReplayedMechanism,
    SimulatedMechanism,
    refuted_by_losses,
)
from dpaudit.audit.replay.laws.composition import most_loss
from dpaudit.audit.sampling.draws import single_threaded
from dpaudit.audit.settings import Run
from dpaudit.claims import Claim
from dpaudit.errors import DPAuditError, MechanismError, UnsupportedError
from dpaudit.neighbours import Pair

__all__ = [
    "Settlement",
]

_MOST = 200  # executions again, on either side, or more if they take few seconds
_MOST_EVER, _SECONDS = 20_000, 10.0  # of the processor
_EPSILONS = np.linspace(0.0, 12.0, 241)
_SIMULATED = 20_000  # releases that cost no execution
_ANY = Pair([0.0], [1.0])
_HIDDEN = (
    "executed again, it did not come out as before each time (or the time was over): "
    "there may be randomness, or state, that is not seen"
)
_TOO_MANY = (
    "numbers without noise differ, and may have noise that is not seen: to tell by "
    "executing the code again would take more of them than are made"
)
_ABOVE = (
    "a loss of {:.4g} was seen, which is above the claim, and neither proof nor test "
    "settled it"
)
_MORE = (
    "steps of the distances that were seen cost more than is claimed, and no test "
    "settled it: a larger budget may"
)
_DIFFER = "releases differ by more than is claimed; here noise and data meet last"
_MAY_DIFFER = "releases may differ by too much; here noise and data meet last"
_STAYS = "is replaced by the code, and stays so"  # in the words of an execution
_OTHERWISE = (
    "from the same seed and data the code made {} draws at first, and {} later: what "
    "it keeps from one execution to the next cannot be judged"
)


@dataclass
class Settlement:
    """How a suspicion is settled.

    Parameters
    ----------
    mechanism : Mechanism or callable
    worst : Judgement
        Of the worst pair; takes what stands in the way of a verdict.
    log : DrawLog
        Of all executions.
    opened : Judgement
        Of the pair that was executed first.
    until : float
        Of the clock, when there is no time to execute again.
    options : dict
        Of `dpaudit.audit.audit`, for a test on releases,
    run : Run
        and where that is kept.
    refuted : bool
    samples : int
        Releases, or transcripts, that a test drew on either side.
    repeats : int
        Executions a side that repeated what refutes.
    executions : int
        That looked for state.
    exact : bool
        Whether what refutes is known of recorded noise, not of releases.
    witness : object or None
        Of releases.
    event : str or None
        The event of the releases that refutes, in words.
    primitives : list of PrimitiveAudit
        Those that are not trusted.
    """

    mechanism: Any
    worst: Judgement
    log: DrawLog
    opened: Judgement
    until: float
    options: dict[str, Any]
    run: Run
    refuted: bool = False
    samples: int = 0
    repeats: int = 0
    executions: int = 0
    exact: bool = False
    witness: Any = None
    event: str | None = None
    primitives: list[PrimitiveAudit] = field(default_factory=list)

    def settle(self) -> None:
        """Settle it, by what costs least."""
        worst = self.worst
        before = partial(kept_noise, self.mechanism, self.log.places)
        if worst.untrusted:
            within = [each.calls[0].held for each in worst.untrusted]
            before = partial(before, more=within)
            if not self._has_state(before):
                self._audit_primitives()
        if worst.suspicious and not self._has_state(before):
            self._test_exact_laws()
            tested = worst.sees == "transcript" and self.samples
            if not (self.exact or tested or self._has_state(self._draws_otherwise)):
                self._test_releases()
        elif worst.turns and not worst.suspicious:
            self._has_state(self._draws_otherwise)
        self._has_state()
        open_end = worst.followed and not self.refuted
        if not (open_end or worst.findings) and worst.meeting is not None:
            here, there = worst.meeting()
            text = _DIFFER if self.refuted else _MAY_DIFFER
            worst.find("release", here, text, neighbour=there)
        if open_end and worst.loss > most_loss(worst.claim):
            self._withdraw(_ABOVE.format(worst.loss))
        elif open_end and worst.exceeds:
            self._withdraw(_MORE)

    def _audit_primitives(self) -> None:
        """Hold primitives that are not trusted to what they declare.

        They have half of the error, and all else the other.
        """
        worst, options = self.worst, self.options
        alpha = (1 - options["confidence"]) / 2
        options["confidence"] = 1 - alpha
        self.primitives = audit_primitives(
            worst.untrusted,
            alpha=alpha,
            releases=options["budget"],
            seed=options["seed"],
            until=self.until,
        )
        for each in self.primitives:
            if each.why_not:
                worst.suspect("coin", each.where, str(each))
        false = [each for each in self.primitives if each.refuted]
        if false:
            worst.distrust([(e.where, e.where_neighbour, e.finding) for e in false])

    def _test_exact_laws(self) -> None:
        """Refute by proof, or by a test on exact laws or losses, if that stands."""
        worst = self.worst
        self.refuted = worst.proven
        self.exact = worst.proven or worst.laws is not None
        if self.exact and not self.refuted:
            # The laws are of this pair, be it of objects, which tell nothing more.
            pair = worst.pair.rows or _ANY
            simulated: Any = SimulatedMechanism(pair, *worst.laws)
            options = self.options | {"budget": _SIMULATED, "pair": pair}
            self.refuted = audit(simulated, **options).refuted
        elif not self.exact and worst.sees == "transcript" and worst.transcripts:
            self._test_transcripts()
        if not self.refuted or worst.again is None:
            return
        with single_threaded():
            alpha = (1 - self.options["confidence"]) / 2
            stands, self.repeats = _repeat(
                worst.again, worst.claim, alpha, bare=worst.bare, until=self.until
            )
        if not stands:
            # Noise that is not recorded has had its chance to come out alike, and has
            # another in the releases: they share the error.
            self.options["confidence"] = 1 - alpha
            self.exact = False
            late = time.perf_counter() > self.until
            self._withdraw(_HIDDEN if self.repeats or late else _TOO_MANY)

    def _test_transcripts(self) -> None:
        """Let the exact losses of transcripts bet against the claim, in both readings.

        A claim that is true in one of them is refuted with probability at most alpha.
        """
        worst, options, found = self.worst, self.options, []
        for mode in (replace(worst.mode, eager=True), worst.mode):
            followed = ReplayedMechanism(self.mechanism, mode=mode, pair=worst.pair)
            try:
                false, drawn = refuted_by_losses(
                    followed,
                    worst.pair,
                    worst.claim,
                    alpha=1 - options["confidence"],
                    most=options["budget"] // (4 if worst.remembers else 1),
                    seed=options["seed"],
                )
            except UnsupportedError:
                self.samples = 0
                return
            found.append(false)
            self.samples = max(self.samples, drawn)
            if not false:
                break
        self.exact, worst.followed = True, not worst.shows_more
        self.refuted = all(found)
        if found[0] and not self.refuted:
            self._withdraw(TWO_MODES)

    def _test_releases(self) -> None:
        """Let releases decide, unless the code would break what they are drawn by."""
        if any(_STAYS in each.message for each in self.worst.findings):
            return
        mechanism, run = self.mechanism, self.run
        shown = tuple(each.name for each in self.primitives if each.refuted)
        read: Any = None
        if shown:
            seen = shown if self.worst.sees == "transcript" else ()
            read = ShownOutputs(mechanism, seen)
        elif self.worst.sees == "release" and self.worst.pair.rows is not None:
            followed = partial(ReplayedMechanism, mechanism, mode=LAZY)
            pair, seed = self.worst.pair, self.options["seed"]
            read = ShownTranscripts.of(mechanism, followed, pair, seed)
        if read is not None:
            mechanism, run = read, replace(run, store=None, reference=None)
        try:
            found = audit(mechanism, **self.options, run=run)
        except MechanismError as error:
            if not str(error).startswith("the mechanism returns"):
                raise
            self.worst.suspect("coin", "?", str(error))
            return
        self.refuted, self.samples = found.refuted, found.samples
        if read is None:  # else it is one of what was read besides
            self.witness, self.event = found.witness, next(iter(found.findings), None)

    def _has_state(self, look: Callable[[], Unfollowed | None] | None = None) -> bool:
        """Say, and note, whether noise is kept: that of an execution, or by a look."""
        kept = next(iter(self.log.late), None)
        if kept is None and look is not None:
            kept = look()
        if kept is not None:
            self._withdraw(kept.why, kept.place)
            self.witness = None
        return kept is not None

    def _draws_otherwise(self) -> Unfollowed | None:
        """Look whether the first execution, when it is made again, draws as it did."""
        assert self.opened.opening is not None
        seed, mode, draws = self.opened.opening
        self.executions += 1
        try:
            data = self.opened.pair.data
            tape = execute(self.mechanism, data, seed, mode=mode).tape
        except DPAuditError:
            return None  # it is told by the releases
        if tape.calls == draws:
            return None
        place = tape.first_place or place_of_definition(self.mechanism)
        return Unfollowed(place, _OTHERWISE.format(draws, tape.calls))

    def _withdraw(self, why: str, place: str | None = None) -> None:
        """Note that nothing is proven, and why."""
        worst = self.worst
        self.refuted = False
        worst.withdraw(place or place_of_definition(self.mechanism), why)


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
    named = claim.parameters.get("epsilon")
    epsilons = _EPSILONS if named is None else np.append(_EPSILONS, float(named))
    epsilons = epsilons[epsilons < 30]
    delta = np.minimum(1.0, 1.0001 * np.asarray(claim.delta_at(epsilons)) + 1e-12)
    # log of (A + delta)/(A + 1), also where that is nearly 1
    logs = np.log1p(-(1 - delta) / (np.exp(epsilons) + 1))
    most = float(logs.min())
    return math.ceil(math.log(alpha) / (2 * most)) if most < 0 else 2**62


def _repeat(
    again: Repeat, claim: Claim, alpha: float, *, bare: bool, until: float
) -> tuple[bool, int]:
    """Execute a pair again, and say whether a refutation stands; and the executions.

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
        return False, 0
    enough = time.process_time() + _SECONDS
    for turn in range(1, (needed if bare else min(needed, _MOST)) + 1):
        late = turn > _MOST and time.process_time() > enough
        if bare and (late or time.perf_counter() > until):
            return False, made
        alike, executions = again(turn)
        made += executions
        if not alike:
            return False, made
    return True, made
