"""Audits that outlive their process: frozen between two rounds, thawed in another.

A checkpoint holds what was learned (`dpaudit.audit.game.freezing`). Every release comes
from a stream that is named by its place in the audit
(`dpaudit.audit.sampling.sampler`), so the rounds that follow are those that would have
followed.

That is so for a mechanism whose only randomness is the generator that it is handed, and
whose code is what it was. A key finds an audit by what the mechanism looks like
(`dpaudit.audit.keeping.identity`); other code may look the same. And what a mechanism
draws from elsewhere comes out differently when it is drawn again: to kill an audit
whenever it goes badly would give any number of tries at one error probability.
Therefore

1. the outcome of every round is put on record before it is reported, and a round
   that is drawn again must come out as it is on record;
2. before an audit goes on, and before the result of a finished one is returned, the
   pilot and a few releases of the last rounds are drawn again, on the pair that was
   played last and on the best, and must come out as they did, to the bit.

Else the audit is refused. This is sound. The first outcomes that are put on record for
rounds 1, 2, ... are one sequence, in however many processes they were drawn. Every
round is played with bets that were fixed before it, so its e-value has mean at most 1
given all that was told before; a round that is drawn again adds nothing to the
evidence, since it has to give what is on record; to refuse is to stop. So the evidence
is a supermartingale of the kind in `dpaudit.audit.betting.evidence`, stopped at some
time, and a true claim falls with probability at most alpha over all processes together.
Two things are assumed. A kill in the middle of a round knows nothing of the outcome,
which was not reported: mechanisms that end their own process are known only by releases
that do not repeat themselves. And the code is one: a change that shows neither in the
key nor in those releases (in one release of 10,000, say) is not noticed.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from dpaudit.audit.game.freezing import freeze, thaw
from dpaudit.audit.game.state import AuditState, SearchTrail
from dpaudit.audit.keeping.database import tell
from dpaudit.audit.keeping.identity import code_version
from dpaudit.audit.keeping.store import Checkpoint, Store
from dpaudit.audit.result import AuditResult
from dpaudit.claims import Claim
from dpaudit.errors import InputError

__all__ = ["Recorder"]

T = TypeVar("T")

_DIFFERENT = (
    "the audit in the store is not believed: what was drawn for it before comes out "
    "otherwise now, since the code of the mechanism is another, or draws randomness of "
    "its own or keeps state (or this machine rounds differently), and to draw it again "
    "would be a second try; begin another audit, with another seed or another store"
)
_EVERY = 1.0  # seconds between two checkpoints, at least
_SHARE = 0.01  # of the time that all of them may take, ...
_DEARER = 2.0  # ... if the next takes so many times as long as the last one


class Recorder:
    """Keeps one audit in a store while it runs.

    What cannot be written once the work has begun is a `StoreWarning`, and never the
    end of the audit.

    Parameters
    ----------
    store : Store
    key : str
        Of the audit, as `dpaudit.audit.keeping.identity.key_of` returns it.
    claim : Claim
        The very object that the audit uses.
    """

    def __init__(self, store: Store, key: str, claim: Claim) -> None:
        self._store, self._key = store, key
        self._supplied = {"claim": claim}
        self._warned = False
        self._started = time.perf_counter()
        self._due, self._spent = self._started + _EVERY, 0.0

    def finished(self, state: AuditState) -> AuditResult | None:
        """Return the result if the audit was finished before; nothing is written.

        Parameters
        ----------
        state : AuditState
            One that has not begun, and is of no use after a result was found.

        Raises
        ------
        InputError
            If the mechanism does not give what it gave then.
        """
        frozen = self._store.result(self._key)
        if frozen is None:
            return None
        match thaw(frozen, self._supplied):
            case AuditResult() as result, SearchTrail() as trail:
                state.follow(trail)
            case _:
                raise InputError(
                    f"{self._store!r} holds no result under the audit's key"
                )
        if not state.repeats():
            raise InputError(_DIFFERENT)
        return replace(result, from_store=True)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Make sure that work can be kept, and keep the store open meanwhile.

        Raises
        ------
        InputError
            If nothing can be written.
        """
        self._store.prepare()
        with self._store.held():
            yield

    def resume(self, state: AuditState) -> float:
        """Bring a fresh state to where it was; return the seconds it had taken.

        Raises
        ------
        InputError
            If the mechanism does not give what it gave then.
        """
        checkpoint = self._store.checkpoint(self._key)
        if checkpoint is None:
            return 0.0
        state.thaw(checkpoint.frozen)
        if not state.repeats():
            raise InputError(_DIFFERENT)
        return checkpoint.seconds

    def note(self, state: AuditState) -> None:
        """Put the outcome of a round on record, before it is reported.

        Raises
        ------
        InputError
            If another outcome is on record.
        """
        number, outcome = state.played - 1, state.outcome
        said = self._try(lambda: self._store.add_round(self._key, number, outcome))
        if said not in (None, outcome):
            raise InputError(_DIFFERENT)

    def keep(self, state: AuditState, seconds: float, *, closing: bool = False) -> None:
        """Write a checkpoint if it is time to, or the audit is `closing`: ends here."""
        begun = time.perf_counter()
        if not closing and begun < self._due:
            return

        def write() -> None:
            frozen = state.freeze()
            checkpoint = Checkpoint(state.samples, seconds, frozen)
            self._store.add_checkpoint(self._key, checkpoint)

        self._try(write)
        done = time.perf_counter()
        self._spent += done - begun
        affordable = (self._spent + _DEARER * (done - begun)) / _SHARE
        self._due = max(done + _EVERY, self._started + affordable)

    def finish(self, result: AuditResult, state: AuditState) -> None:
        """Write the result that the state came to."""

        def write() -> None:
            frozen = freeze((result, state.trail), self._supplied)
            record = result.to_dict()
            self._store.add_result(self._key, code_version(), record, frozen)

        self._try(write)

    def _try(self, write: Callable[[], T]) -> T | None:
        try:
            return write()
        except InputError as error:
            if not self._warned:
                tell(f"the audit goes on, but is not kept: {error}")
            self._warned = True
            return None
