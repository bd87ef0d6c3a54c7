r"""What becomes of a suspicion: a refutation that stands, or the reason why not.

**State.** What keeps noise from one execution to the next is settled by nothing:
neither by one execution, nor by a test that takes releases for independent.

**Exact laws and losses** are drawn from, or held to the claim as they are. What refutes
it stands if all comes out as before when it is executed again. Where nothing stands,
releases decide.

**No loss above a pure claim goes with NOT_REFUTED.** One transcript of such a loss is a
violation to those who see transcripts, and may be one to others. So it is left open,
if tests do not show it.

What is executed again for this is told by `dpaudit.audit.replay.judge.repeated`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from dpaudit.audit.harness import audit
from dpaudit.audit.replay.execute.executor import execute
from dpaudit.audit.replay.follow.ending import watched
from dpaudit.audit.replay.follow.logs import DrawLog
from dpaudit.audit.replay.follow.observations import Unfollowed
from dpaudit.audit.replay.follow.reached import place_of_definition
from dpaudit.audit.replay.follow.tape import LAZY
from dpaudit.audit.replay.judge.forms import FormDifference
from dpaudit.audit.replay.judge.judgement import TWO_MODES, Findings, Judgement
from dpaudit.audit.replay.judge.primitive_audits import (
    PrimitiveAudit,
    ShownOutputs,
    audit_primitives,
)
from dpaudit.audit.replay.judge.repeated import often, repeat
from dpaudit.audit.replay.judge.shown import ShownTranscripts
from dpaudit.audit.replay.judge.source import kept_noise
from dpaudit.audit.replay.judge.statistics import (
    ReplayedMechanism,
    SimulatedMechanism,
    refuted_by_losses,
)
from dpaudit.audit.replay.laws.composition import most_loss
from dpaudit.audit.sampling.draws import single_threaded
from dpaudit.audit.settings import Budget, Run
from dpaudit.errors import DPAuditError, MechanismError, UnsupportedError
from dpaudit.neighbours import Pair

__all__ = ["Settlement"]

_TEST = 3.0  # times the seconds of the budget, when a test of releases is ended
_SIMULATED = 20_000  # releases that cost no execution
_FORMS = 41  # names seeds
_ANY = Pair([0.0], [1.0])
_HIDDEN = (
    "executed again, it did not come out as before each time: there may be randomness, "
    "or state, that is not seen"
)
_TOO_MANY = (
    "what differs may have noise that is not seen: to tell by executing the code again "
    "would take more executions than are made, or than there is time for"
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
_NOT_TESTED = "to tell by executing the code again would take more than there is time"
_WHOSE = (
    "a number of the release is Python's on one side, and NumPy's on the other, which "
    "some who see it can tell: return float(...) or int(...) of it"
)
_OTHERWISE = (
    "from the same seed and data the code made {} draws at first, and {} later: what "
    "it keeps from one execution to the next cannot be judged"
)
_STAYS = "is replaced by the code, and stays so"  # in the words of an execution


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
    options, budget, run : dict, Budget and Run
        Of `dpaudit.audit.audit`, for a test on releases.
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
    budget: Budget
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
        if worst.opening is None and not worst.suspicious:
            return  # an ordinary execution comes to no end
        before = partial(kept_noise, self.mechanism, self.log.places)
        if worst.untrusted:
            within = [each.calls[0].held for each in worst.untrusted]
            before = partial(before, more=within)
            if not self._has_state(before):
                self._audit_primitives()
        if self._test_form(before):
            self._has_state()
            return
        if worst.suspicious and not self._has_state(before):
            self._test_exact_laws()
            tested = worst.sees == "transcript" and self.samples
            # Noise that was kept is a number without noise to all later executions.
            kept = self._has_state(self._draws_otherwise)
            if not (self.exact or tested or kept):
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
            self.withdraw(_ABOVE.format(worst.loss))
        elif open_end and worst.exceeds:
            self.withdraw(_MORE)

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

    def _test_form(self, before: Callable[[], Unfollowed | None]) -> bool:
        """Say whether the form of the release refutes the claim.

        By proof where nothing was looked at, if all comes out as before; else by how
        often it does, at half of the error that is left.
        """
        worst, options = self.worst, self.options
        # Far from those of other seeds: replays of seeds 0, 1, ... share no execution.
        own = np.random.SeedSequence(options["seed"], spawn_key=(_FORMS,))
        seed = int(own.generate_state(1)[0]) + _FORMS
        form = FormDifference(self.mechanism, worst.pair, seed)
        chosen = not worst.proven and form.is_chosen(worst.forms)
        self.executions += form.executions
        if not chosen:
            if form.unsure:
                worst.followed = False
                place = place_of_definition(self.mechanism)
                worst.find("structure", place, _WHOSE)
            return False
        if self._has_state(before) or self._has_state(self._draws_otherwise):
            return False
        certain = worst.formal and worst.followed and not form.of_numbers
        differs: bool | None = False
        with single_threaded():
            if certain:
                alpha = self._share_error()
                differs, repeats = repeat(
                    form.again, worst.claim, alpha, bare=True, until=self.until
                )
                certain = bool(differs)
                differs = True if certain else None
            if not certain and (form.otherwise or differs is False):
                alpha = self._share_error()
                differs, repeats = often(
                    form.again, worst.claim, alpha, until=self.until
                )
        if differs is False:
            return False
        here, there = form.places() or ("?", "?")
        if differs is None:
            worst.suspect("structure", here, f"{form}; {_NOT_TESTED}")
            return False
        self.refuted = True
        self.exact = worst.proven = certain
        worst.bare = True
        others, worst.findings = worst.findings, Findings()
        worst.find("structure", here, str(form), neighbour=there, proof=worst.proven)
        worst.findings.extend(others)
        if worst.proven:
            worst.loss, self.repeats = np.inf, repeats
        else:
            self.samples, self.event = repeats, str(form)
            worst.loss = np.inf if worst.loss == np.inf else np.nan  # unseen
        return True

    def _share_error(self) -> float:
        """Return half of the error that is left, and leave the other half."""
        alpha = (1 - self.options["confidence"]) / 2
        self.options["confidence"] = 1 - alpha
        return float(alpha)

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
            stands, self.repeats = repeat(
                worst.again, worst.claim, alpha, bare=worst.bare, until=self.until
            )
        if not stands:
            # Noise that is not recorded has had its chance to come out alike, and has
            # another in the releases: they share the error.
            self.options["confidence"] = 1 - alpha
            self.exact = False
            self.withdraw(_TOO_MANY if stands is None else _HIDDEN)

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
            self.withdraw(TWO_MODES)

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
            options = self.options | {"budget": self.budget}
            tested = partial(audit, mechanism, **options, run=run)
            found = watched(tested, times=_TEST)
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
            self.withdraw(kept.why, kept.place)
            self.witness = None
        return kept is not None

    def _draws_otherwise(self) -> Unfollowed | None:
        """Look whether the first execution, when it is made again, draws as it did."""
        if self.opened.opening is None:  # its executions were ended
            return None
        seed, mode, draws = self.opened.opening
        self.executions += not self.exact  # else it is one of those that repeat it
        try:
            data = self.opened.pair.data
            tape = execute(self.mechanism, data, seed, mode=mode).tape
        except DPAuditError:
            return None  # it is told by the releases
        if tape.calls == draws:
            return None
        place = tape.first_place or place_of_definition(self.mechanism)
        return Unfollowed(place, _OTHERWISE.format(draws, tape.calls))

    def withdraw(self, why: str, place: str | None = None) -> None:
        """Note that nothing is proven, and why."""
        worst = self.worst
        self.refuted = False
        worst.withdraw(place or place_of_definition(self.mechanism), why)
