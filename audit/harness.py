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
from dpaudit.audit.game.pair_audit import OnePair, PairChoice
from dpaudit.audit.game.state import AuditState
from dpaudit.audit.layers.layer import Layer, view_transcript
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
from dpaudit.errors import InputError
from dpaudit.mechanism import HasCanonicalPairs, HasWorstCase, Mechanism
from dpaudit.neighbours import Pair, Relation
from dpaudit.object_pairs import ObjectPair
from dpaudit.streams import put_back

_EITHER = " or ".join(each.value for each in Relation)

if TYPE_CHECKING:
    from dpaudit.audit.keeping.checkpoint import Recorder
    from dpaudit.audit.search.proposals import Proposals

__all__ = ["audit", "pair_source"]

_LONGER = 1.4
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
    kept = nullcontext() if recorder is None else recorder.open()
    with single_threaded(), put_back(), kept:
        clock = _Clock(state, 0.0 if recorder is None else recorder.resume(state))
        interrupted = False
        for _ in state.rounds():
            interrupted = _told_to_end(state, clock, budget, run, recorder)
            if interrupted:
                break
        result = summarise(state, mechanism, settings, interrupted=interrupted)
        if source.domain is not None and result.refuted and not interrupted:
            from dpaudit.audit.search.shrinking import with_smaller

            told = partial(summarise, mechanism=mechanism, interrupted=False)
            ends = partial(_ends, clock, budget, run)
            result = with_smaller(result, state, settings, source.domain, told, ends)
            interrupted = result.interrupted
            if recorder is not None and interrupted:  # so that it goes on from here
                recorder.keep(state, clock.seconds, closing=True)
        assumed = None if source.domain is None else source.domain.note or None
        result = replace(result, seconds=clock.seconds, assumed=assumed)
        if recorder is not None and not interrupted:
            recorder.finish(result, state)
    return result


def pair_source(
    mechanism: Any,
    pair: Pair | tuple[Any, Any] | None,
    domain: Domain | str | None,
    relation: Relation | str | None,
    seed: int,
) -> "OnePair | Proposals":
    """Return where an audit's pairs come from: given, named by the mechanism, or found.

    Raises
    ------
    InputError
        If the arguments exclude each other, or name no pair, or more than one relation.
    """
    stated = getattr(mechanism, "relation", None)
    asked = None if relation is None else Relation.parse(relation)
    if asked is not None and stated not in (None, asked):
        raise InputError(
            f"the mechanism's claim is under {stated}, not {relation}; a claim is "
            "audited under its own relation"
        )
    wanted: Relation | str | None = None  # if there are pairs to search among
    if isinstance(domain, str):
        domain = Domain.parse(domain)
    if not isinstance(domain, Domain | None):
        raise InputError(f"domain must be a Domain or a string, got {domain!r}")
    if domain is not None:
        if not isinstance(pair, Pair | None):
            raise InputError(
                "pair must be a Pair where a domain is given, got "
                f"{type(pair).__name__}"
            )
        wanted = asked or stated or (None if pair is None else pair.relation)
        if wanted is None:
            raise InputError(
                f"relation is needed: the mechanism states none; {_EITHER}"
            )
    elif pair is None:
        if isinstance(mechanism, HasWorstCase):
            pair = mechanism.worst_case()
        elif isinstance(mechanism, HasCanonicalPairs):
            wanted = stated or asked or mechanism.canonical_pairs()[0].relation
        else:
            raise InputError(
                "pair or domain is needed: the mechanism names no worst case"
            )
    if wanted is not None:
        from dpaudit.audit.search.proposals import Proposals

        return Proposals(mechanism, domain, wanted, seed, cast(Pair | None, pair))
    if isinstance(pair, tuple):
        pair = _object_pair(pair, stated or asked)
    if not isinstance(pair, Pair):
        raise InputError(
            "pair must be a Pair, or a tuple of two datasets of any kind, got "
            f"{type(pair).__name__}"
        )
    stated = stated or asked or pair.relation
    if stated != pair.relation:
        raise InputError(
            f"the claim is under {stated}, but the pair is "
            f"{pair.relation}; a claim is audited under its own relation"
        )
    return OnePair(pair)


def _object_pair(sides: tuple[Any, ...], relation: Any) -> ObjectPair:
    if len(sides) != 2:
        raise InputError(
            f"pair must be a tuple of two datasets, got one of {len(sides)}"
        )
    if relation is None:
        raise InputError(
            f"relation is needed with a pair of datasets that are objects: {_EITHER}"
        )
    return ObjectPair(*sides, relation)


def _choice(source: "OnePair | Proposals", seed: int) -> PairChoice:
    """Return what chooses among the pairs of a source."""
    if isinstance(source, OnePair):
        return source
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
        return "told to"
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
    run: Run, mechanism: Any, source: "OnePair | Proposals", settings: Settings
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

        Of this process; a round takes longer than the one before by what it grows:
        two fifths where it may.
        """
        if most is None or len(self._laps) < _FEWEST_LAPS:
            return False
        (_, before), (_, now) = self._laps[-2:]
        return now + _LONGER * (now - before) > most

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
