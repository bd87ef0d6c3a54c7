"""`audit`: attack a mechanism until its claim falls, or the releases are spent.

Here the arguments become `dpaudit.audit.settings.Settings`, and it is settled who works
and where the work is kept. The work is done by a `dpaudit.audit.game.state.AuditState`,
and put into words by `dpaudit.audit.summary.summarise`.
"""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from dpaudit.attacks import PORTFOLIO
from dpaudit.audit.game.state import AuditState
from dpaudit.audit.layers.layer import Layer, view_transcript
from dpaudit.audit.pairs import OnePair, PairChoice, PairSource, pair_source
from dpaudit.audit.result import AuditResult
from dpaudit.audit.sampling.draws import Here, single_threaded
from dpaudit.audit.settings import (
    Budget,
    Progress,
    Run,
    Settings,
    refuse_with_objects,
    stated,
)
from dpaudit.audit.summary import summarise
from dpaudit.claims import Claim
from dpaudit.domains import Domain
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Pair, Relation

if TYPE_CHECKING:
    from dpaudit.audit.keeping.checkpoint import Recorder

__all__ = ["audit"]

_FRESH = 2**30  # the first number of pairs that no search has
_LONGER, _LOOKS = 10, 4000  # releases a side to shrink a pair: per one to refute, more
_TOLD_TO = "told to"  # end, by whom started the audit
_FEWEST_LAPS = 3  # before a round, after the pilot, and after one more


def audit(
    mechanism: Mechanism | Callable[..., Any],
    *,
    pair: Pair | tuple[Any, Any] | None = None,
    domain: Domain | str | None = None,
    relation: Relation | str | None = None,
    claim: Claim | None = None,
    confidence: float = 0.999,
    seed: int = 0,
    layer: Layer | str = Layer.BLACK_BOX,
    budget: Budget | int = Budget(),
    run: Run = Run(),
) -> AuditResult:
    """Attack a mechanism on neighbouring datasets, and say what that shows.

    The result is the same for any executor or none, and for an audit that was
    interrupted and resumed from its store as often as may be: all but its `seconds`.
    BLAS has one thread meanwhile, because it rounds by their number.

    Parameters
    ----------
    mechanism : Mechanism or callable
        A `~dpaudit.mechanism.Mechanism`, or any function ``(data, rng) -> array``.
        What it raises, and what it returns instead of numbers, are outputs too.
    pair : Pair or tuple, optional
        The neighbouring datasets. By default the mechanism's own worst case. A tuple
        ``(data, neighbour)`` is of any two objects of one type, such as lists of
        records or frames: see `dpaudit.object_pairs`. It takes a `relation`, and no
        store or executor; attacks read releases alone, and there is no witness.
    domain : Domain or str, optional
        Which datasets are legal: the audit then searches for a bad pair itself, from
        `pair` on if there is one. A string is parsed, as in ``"box:0,1:5"``.
    relation : Relation or str, optional
        For a search or a tuple, where the mechanism states none.
    claim : Claim, optional
        What to hold it to. By default the mechanism's own claim.
    confidence : float
        In (0, 1). A true claim is refuted with probability at most 1 - confidence.
    seed : int
        >= 0. The same seed gives the same result.
    layer : {"black-box", "transcript"}
        What the attacker sees: final releases, or every noisy value on the way. What
        is seen of the code itself is another audit's: `dpaudit.audit.replay`.
    budget : Budget or int
        How much the audit may do; a number is that of its releases a side, at most.
    run : Run
        Which attacks there are, who draws, where the work is kept, who watches it.

    Returns
    -------
    AuditResult

    Raises
    ------
    InputError
        If an argument is not allowed, or pair or claim is missing and the mechanism
        has none, or the mechanism's relation is not the pair's; if the mechanism
        cannot be sent to another process; if the store cannot be written to, or if
        what was drawn for the audit that it holds comes out differently now
        (`dpaudit.audit.keeping.checkpoint`).
    MechanismError
        If the mechanism does nothing but raise, or breaks the protocol.
    ExecutorError
        If the executor loses its workers. With a store the same audit goes on from its
        last checkpoint.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import Pair, PureDP
    >>> def half_the_noise(data, rng):
    ...     return data.sum() + rng.laplace(scale=0.5)
    >>> result = audit(half_the_noise, pair=Pair([0.0], [0.0, 1.0]), claim=PureDP(1.0))
    >>> str(result.verdict)
    'REFUTED'
    """
    budget = Budget.of(budget)
    refuse_with_objects("an audit", pair, run)
    settings = Settings(
        claim=stated(mechanism, "claim", claim),
        confidence=confidence,
        seed=seed,
        layer=cast(Layer, layer),
        budget=budget,
        attacks=PORTFOLIO if run.attacks is None else tuple(run.attacks),
        name=run.name,
        reference=run.reference,
    )
    transcript = settings.layer is Layer.TRANSCRIPT
    subject = view_transcript(mechanism) if transcript else mechanism
    source = pair_source(mechanism, pair, domain, relation, settings.seed)
    workers = _workers(run, subject)
    state = AuditState(subject, _choice(source, settings.seed), settings, workers)
    recorder = _recorder(run, mechanism, source, settings)
    if recorder is not None:
        with single_threaded():
            found = recorder.finished(state)
        if found is not None:
            return found
    with single_threaded(), nullcontext() if recorder is None else recorder.open():
        clock = _Clock(state, 0.0 if recorder is None else recorder.resume(state))
        interrupted = False
        for _ in state.rounds():
            interrupted = _told_to_end(state, clock, budget, run, recorder)
            if interrupted:
                break
        result = summarise(state, mechanism, settings, interrupted=interrupted)
        if source.domain is not None and result.refuted and not interrupted:
            until = partial(_ends, clock, budget, run)
            parts = state, settings, mechanism, source.domain
            result = _shrunk(result, *parts, until)
            interrupted = result.interrupted
            if recorder is not None and interrupted:  # so that it goes on from here
                recorder.keep(state, clock.seconds, closing=True)
        assumed = None if source.domain is None else source.domain.note or None
        result = replace(result, seconds=clock.seconds, assumed=assumed)
        if recorder is not None and not interrupted:
            recorder.finish(result, state)
    return result


def _shrunk(
    result: AuditResult,
    state: AuditState,
    settings: Settings,
    mechanism: Any,
    domain: Domain,
    ends: Callable[[], str],
) -> AuditResult:
    """Return a refutation with its pair in words, and a smaller one that falls too.

    See `dpaudit.audit.search.shrinking`.
    """
    from dpaudit.audit.search.cut import Cut
    from dpaudit.audit.search.shrinking import shrunk

    reasons = {""}

    def stop() -> bool:
        reasons.add(reason := ends())
        return bool(reason)

    def audited(pair: Pair, number: int, share: float) -> AuditResult | None:
        less = replace(settings.budget, releases=most, refine=0.0, stop=True)
        confidence = 1 - settings.alpha * share
        if confidence == 1:  # rounded
            return None
        own = replace(settings, confidence=confidence, budget=less)
        choice = OnePair(pair, _FRESH + number)
        again = AuditState(state.subject, choice, own, state.workers)
        if any(stop() for _ in again.rounds()):
            return None
        found = summarise(again, mechanism, own, interrupted=False)
        return replace(found, neighbours=Cut.words(pair, domain) or None)

    pair, refuted_at = state.best()[0].target.pair, state.refuted_at or state.samples
    most = min(settings.budget.releases, _LONGER * refuted_at + _LOOKS)
    found = shrunk(
        pair,
        domain,
        refuted_at=refuted_at,
        most=most,
        excess=lambda pair, n, size: state.excess_of(pair, _FRESH + n, size),
        audited=audited,
        stop=stop,
    )
    words = Cut.words(pair, domain) or None
    told_to = _TOLD_TO in reasons
    return replace(result, neighbours=words, shrunk=found, interrupted=told_to)


def _choice(source: PairSource, seed: int) -> PairChoice:
    """Return what chooses among the pairs of a source."""
    if not source.endless and len(first := source.first()) == 1:
        return OnePair(first[0])
    from dpaudit.audit.search.pair_search import PairSearch

    return PairSearch(source, seed)


def _workers(run: Run, subject: Any) -> Here:
    """Return who draws."""
    if run.executor is None:
        return Here()
    from dpaudit.audit.sampling.workers import Workers

    workers = Workers(run.executor)
    workers.check(subject)
    return workers


def _ends(clock: "_Clock", budget: Budget, run: Run) -> str:
    """Return why to end, if time is over or somebody wants it."""
    if run.should_stop is not None and run.should_stop():
        return _TOLD_TO
    late = budget.seconds is not None and clock.seconds > budget.seconds
    return "late" if late else ""


def _told_to_end(
    state: AuditState,
    clock: "_Clock",
    budget: Budget,
    run: Run,
    recorder: "Recorder | None",
) -> bool:
    """Keep and tell a round; return whether the audit is to be interrupted here."""
    clock.lap()
    if recorder is not None:
        recorder.note(state)
    if run.progress is not None:
        run.progress(clock.progress())
    # Where no pair was accepted yet, there is nothing to report.
    interrupted = bool(
        state.pairs
        and not state.finished
        and (
            clock.runs_out(budget.seconds)
            or (run.should_stop is not None and run.should_stop())
        )
    )
    if recorder is not None:
        recorder.keep(state, clock.seconds, closing=interrupted)
    return interrupted


def _recorder(
    run: Run, mechanism: Any, source: PairSource, settings: Settings
) -> "Recorder | None":
    """Return what keeps the audit, if there is a store."""
    if run.store is None:
        return None
    from dpaudit.audit.keeping.checkpoint import Recorder
    from dpaudit.audit.keeping.identity import key_of
    from dpaudit.audit.keeping.store import Store

    key = key_of(mechanism=mechanism, source=source, settings=settings)
    store = run.store if isinstance(run.store, Store) else Store(run.store)
    return Recorder(store, key, settings.claim)


class _Clock:
    """The time that an audit takes, over all processes that worked on it.

    Parameters
    ----------
    state : AuditState
    before : float
        Seconds that it took until now.
    """

    def __init__(self, state: AuditState, before: float) -> None:
        self._state, self._before = state, before
        self._drawn_before = state.samples
        self._started = time.perf_counter()
        # After every round: the releases a side, and the seconds of this process.
        self._laps = [(state.samples, 0.0)]

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return self._before + time.perf_counter() - self._started

    def lap(self) -> None:
        """Note the end of a round."""
        self._laps.append((self._state.samples, time.perf_counter() - self._started))

    def runs_out(self, most: float | None) -> bool:
        """Say whether another round would likely end later than so many seconds.

        Of this process; a round takes longer than the one before by what it grows.
        """
        if most is None or len(self._laps) < _FEWEST_LAPS:
            return False
        (_, before), (_, now) = self._laps[-2:]
        return now + (now - before) > most

    @property
    def _pace(self) -> float:
        """Seconds a release, over the rounds that drew the last half of them.

        The first rounds are small, and hardly cheaper than large ones.
        """
        drawn, now = self._laps[-1]
        half = (drawn + self._drawn_before) / 2
        since, then = next(lap for lap in reversed(self._laps) if lap[0] <= half)
        return (now - then) / max(drawn - since, 1)

    def progress(self) -> Progress:
        """Return how far the audit is."""
        state, seconds = self._state, self.seconds
        return Progress(
            samples=state.samples,
            max_samples=state.limit,
            pairs=state.pairs,
            epsilon_lower=state.tests["epsilon"].lower_bound,
            at_delta=state.at_delta,
            attack=state.favourite,
            seconds=seconds,
            seconds_left=self._pace * (state.limit - state.samples),
            resumed_at=self._drawn_before,
        )
