"""Audits that outlive their process: frozen between two rounds, thawed in another.

The state of an audit is pickled with stand-ins for what the resuming process brings
itself: the mechanism, the claim, the attacks, the datasets. So none of these needs to
be picklable, and a checkpoint holds only what was learned. Every release comes from a
stream that is named by its place in the audit (`dpaudit.audit.sampling`), so the rounds
that follow are those that would have followed.
"""

import io
import pickle
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpaudit.audit.database import StoreWarning
from dpaudit.audit.identity import code_version
from dpaudit.audit.result import AuditResult
from dpaudit.audit.store import Checkpoint, Store
from dpaudit.claims import Claim
from dpaudit.errors import InputError

if TYPE_CHECKING:
    from dpaudit.audit.campaign import Campaign

__all__ = ["Recorder", "freeze", "thaw"]

_EVERY = 1.0  # seconds between two checkpoints, at least
_SHARE = 0.01  # of the time that all of them may take, ...
_DEARER = 2.0  # ... if the next takes so many times as long as the last one


def freeze(state: Any, supplied: Mapping[str, Any]) -> bytes:
    """Return a state as bytes, without the objects that the thawing side supplies.

    Raises
    ------
    InputError
        If something else in it cannot be pickled.
    """
    file = io.BytesIO()
    try:
        _Pickler(file, supplied).dump(state)
    except Exception as error:
        raise InputError(f"the audit's state cannot be stored: {error}") from error
    return file.getvalue()


def thaw(frozen: bytes, supplied: Mapping[str, Any]) -> Any:
    """Return the state that was frozen. It may run any code: see `dpaudit.audit.store`.

    Parameters
    ----------
    frozen : bytes
    supplied : mapping of str to object
        Under the names that they had when the state was frozen.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    try:
        return _Unpickler(io.BytesIO(frozen), supplied).load()
    except Exception as error:
        raise InputError(
            f"the state of an audit cannot be read from its store: {error}"
        ) from error


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, supplied: Mapping[str, Any]) -> None:
        super().__init__(file, protocol=5)
        self._supplied = supplied  # alive, so that nothing else has their ids
        self._names = {id(value): name for name, value in supplied.items()}

    def persistent_id(self, obj: Any) -> str | None:
        return self._names.get(id(obj))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, supplied: Mapping[str, Any]) -> None:
        super().__init__(file)
        self._supplied = supplied

    def persistent_load(self, pid: str) -> Any:
        return self._supplied[pid]


class Recorder:
    """Keeps one audit in a store while it runs.

    What cannot be written once the work has begun is a `StoreWarning`, and never the
    end of the audit.

    Parameters
    ----------
    store : Store
    key : str
        Of the audit, as `dpaudit.audit.identity.key_of` returns it.
    claim : Claim
        The very object that the audit uses.
    """

    def __init__(self, store: Store, key: str, claim: Claim) -> None:
        store.prepare()
        self._store, self._key = store, key
        self._supplied = {"claim": claim}
        self._warned = False
        self._started = time.perf_counter()
        self._due, self._spent = self._started + _EVERY, 0.0

    def finished(self) -> AuditResult | None:
        """Return the result if the audit was finished before."""
        frozen = self._store.result(self._key)
        if frozen is None:
            return None
        result: AuditResult = thaw(frozen, self._supplied)
        return replace(result, from_store=True)

    def resume(self, campaign: "Campaign") -> float:
        """Bring a fresh campaign to where it was; return the seconds it had taken."""
        checkpoint = self._store.checkpoint(self._key)
        if checkpoint is None:
            return 0.0
        campaign.thaw(checkpoint.frozen)
        return checkpoint.seconds

    def keep(self, campaign: "Campaign", seconds: float, *, now: bool = False) -> None:
        """Write a checkpoint if it is time to, or `now`."""
        begun = time.perf_counter()
        if not now and begun < self._due:
            return

        def write() -> None:
            checkpoint = Checkpoint(campaign.samples, seconds, campaign.freeze())
            self._store.add_checkpoint(self._key, checkpoint)

        self._try(write)
        done = time.perf_counter()
        self._spent += done - begun
        affordable = (self._spent + _DEARER * (done - begun)) / _SHARE
        self._due = max(done + _EVERY, self._started + affordable)

    def finish(self, result: AuditResult) -> None:
        """Write the result."""

        def write() -> None:
            frozen = freeze(result, self._supplied)
            record = result.to_dict()
            self._store.add_result(self._key, code_version(), record, frozen)

        self._try(write)

    def _try(self, write: Callable[[], None]) -> None:
        try:
            write()
        except InputError as error:
            if not self._warned:
                said = f"the audit goes on, but is not kept: {error}"
                warnings.warn(said, StoreWarning, stacklevel=3)
            self._warned = True
