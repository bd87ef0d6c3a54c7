"""`audit`: attack a mechanism until its claim falls, or the releases are spent.

Here the arguments become `dpaudit.audit.settings.Settings`, and it is settled who works
and where the work is kept.
The work is done by a `dpaudit.audit.game.state.AuditState`, and put into words by
`dpaudit.audit.summary.summarise`.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from dpaudit.attacks import BITS, PORTFOLIO, Attack
from dpaudit.audit.game.progress import Clock, Progress
from dpaudit.audit.game.state import AuditState
from dpaudit.audit.keeping.checkpoint import Recorder
from dpaudit.audit.keeping.identity import key_of
from dpaudit.audit.keeping.store import Store
from dpaudit.audit.layers.layer import Layer, view_transcript
from dpaudit.audit.result import AuditResult
from dpaudit.audit.sampling.workers import Workers, single_threaded
from dpaudit.audit.search.pair_search import PairSearch
from dpaudit.audit.search.sources import pair_source
from dpaudit.audit.settings import Settings, stated
from dpaudit.audit.summary import summarise
from dpaudit.claims import Claim
from dpaudit.domains import Domain
from dpaudit.errors import InputError
from dpaudit.mechanism import Mechanism
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_positive

__all__ = ["EXECUTIONS", "audit"]

EXECUTIONS = 200
"""Most of them, on either side, that a replay adds for a statistical test."""


def audit(
    mechanism: Mechanism | Callable[..., Any],
    *,
    pair: Pair | None = None,
    domain: Domain | str | None = None,
    relation: Relation | str | None = None,
    claim: Claim | None = None,
    confidence: float = 0.999,
    max_samples: int = 200_000,
    max_seconds: float | None = None,
    seed: int = 0,
    stop_when_refuted: bool = True,
    refine: float = 0.0,
    layer: Layer | str = Layer.BLACK_BOX,
    bits: bool = False,
    attacks: Sequence[Attack] | None = None,
    name: str | None = None,
    reference: str | None = None,
    executor: Executor | None = None,
    store: Store | str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> AuditResult:
    """Attack a mechanism on neighbouring datasets, and say what that shows.

    The result is the same for any `executor` or none, and for an audit that was
    interrupted and resumed from its `store` as often as may be: all but its `seconds`.
    BLAS has one thread meanwhile, because it rounds by their number.

    Parameters
    ----------
    mechanism : Mechanism or callable
        A `~dpaudit.mechanism.Mechanism`, or any function ``(data, rng) -> array``.
        What it raises, and what it returns instead of numbers, are outputs too.
    pair : Pair, optional
        The neighbouring datasets. By default the mechanism's own worst case.
    domain : Domain or str, optional
        Which datasets are legal, instead of a pair: the audit then searches for a bad
        pair itself. A string is parsed, as in ``"box:0,1:5"``.
    relation : Relation or str, optional
        For a search, where the mechanism states none.
    claim : Claim, optional
        What to hold it to. By default the mechanism's own claim.
    confidence : float
        In (0, 1). A true claim is refuted with probability at most 1 - confidence.
    max_samples : int
        Most releases to draw on either side, >= 2; on average of the two sides, where
        one of them needs more.
    max_seconds : float, optional
        > 0: about how long to go on at most. The audit ends before a round that would
        likely take longer, as if `should_stop` had said so; the pilot, of ten releases
        a side, and one more round are always played.
    seed : int
        >= 0. The same seed gives the same result.
    stop_when_refuted : bool
        Whether to stop as soon as the claim is refuted, or to go on to `max_samples`
        for tighter lower bounds.
    refine : float
        >= 0: an audit that would stop at its refutation goes on for so many times as
        many releases, within `max_samples`, for better bounds.
    layer : {"black-box", "transcript", "replay"}
        What the attacker sees: final releases, or every noisy value on the way. With
        "replay" the mechanism is recorded and replayed instead (`dpaudit.audit.replay`,
        which takes more options), and the result is a `ReplayResult`.
    bits : bool
        Whether to audit the doubles that are returned, with attacks on their bits,
        rather than the mechanism over the real numbers.
    attacks : sequence of Attack, optional
        By default `dpaudit.attacks.PORTFOLIO`, or `dpaudit.attacks.BITS`.
    name : str, optional
        For the result; by default that of the mechanism's class or function.
    reference : str, optional
        ``module:object`` under which a witness finds the mechanism, where it is not
        a dataclass or a function of a module.
    executor : concurrent.futures.Executor, optional
        Who draws the releases, and who is sent the mechanism and a dataset with every
        few of them: `dpaudit.audit.process_pool`, the ``get_executor()`` of a Dask
        client, ... Threads gain only where the mechanism leaves Python's lock, and may
        call it twice at a time. By default this thread draws.
    store : Store or path, optional
        Where the audit is kept while it runs. The same audit (of the same code) with
        the same store goes on where the last was interrupted; if it was finished, its
        result comes back, with `from_store` set. A few releases are drawn again first,
        and must come out as they did: a mechanism with randomness of its own is
        refused. A store is to be trusted like code: see `dpaudit.audit.keeping.store`.
    progress : callable, optional
        Called with a `Progress` after every round.
    should_stop : callable, optional
        Asked after every round whether to end the audit here. Its verdict and bounds
        hold no less, whatever the reason, since they hold at all rounds at once. The
        result is marked as `interrupted`, and is not kept; the state is, so that the
        same audit can still be finished.

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
    if layer == Layer.REPLAY:
        from dpaudit.audit.replay import replay

        unused = executor, attacks, max_seconds
        if bits or any(option is not None for option in unused):
            raise InputError(
                "layer 'replay' takes no attacks, bits, executor or max_seconds"
            )
        replayed = replay(
            mechanism,
            pair=pair,
            domain=domain,
            relation=relation,
            claim=claim,
            confidence=confidence,
            max_samples=min(max_samples, EXECUTIONS),
            seed=seed,
            name=name,
            reference=reference,
            store=store,
        )
        return cast(AuditResult, replayed)
    if max_seconds is not None:
        max_seconds = check_positive("max_seconds", max_seconds)
    if attacks is None:
        attacks = BITS if bits else PORTFOLIO
    settings = Settings(
        claim=stated(mechanism, "claim", claim),
        confidence=confidence,
        max_samples=max_samples,
        seed=seed,
        stop_when_refuted=stop_when_refuted,
        refine=refine,
        layer=cast(Layer, layer),
        bits=bits,
        attacks=tuple(attacks),
        name=name,
        reference=reference,
    )
    transcript = settings.layer is Layer.TRANSCRIPT
    subject = view_transcript(mechanism) if transcript else mechanism
    source = pair_source(mechanism, pair, domain, relation, settings.seed)
    workers = Workers(executor)
    workers.check(subject)
    recorder = None
    state = AuditState(subject, PairSearch(source, settings.seed), settings, workers)
    if store is not None:
        key = key_of(mechanism=mechanism, source=source, settings=settings)
        kept_in = store if isinstance(store, Store) else Store(store)
        recorder = Recorder(kept_in, key, settings.claim)
        with single_threaded():
            found = recorder.finished(state)
        if found is not None:
            return found
    interrupted = False
    kept = nullcontext() if recorder is None else recorder.open()
    with single_threaded(), kept:
        before = 0.0 if recorder is None else recorder.resume(state)
        clock = Clock(state, before)
        for _ in state.rounds():
            clock.lap()
            if recorder is not None:
                recorder.note(state)
            if progress is not None:
                progress(clock.progress())
            # Where no pair was accepted yet, there is nothing to report.
            interrupted = bool(
                state.pairs
                and not state.finished
                and (
                    clock.runs_out(max_seconds)
                    or (should_stop is not None and should_stop())
                )
            )
            if recorder is not None:
                recorder.keep(state, clock.seconds, closing=interrupted)
            if interrupted:
                break
        result = summarise(
            state,
            mechanism=mechanism,
            name=name,
            reference=reference,
            layer=settings.layer,
            bits=settings.bits,
            interrupted=interrupted,
        )
        result = replace(result, seconds=clock.seconds)
        if recorder is not None and not interrupted:
            recorder.finish(result, state)
    return result
