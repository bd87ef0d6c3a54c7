"""States as bytes, without what the reading side brings itself.

A state is pickled with stand-ins for objects that are supplied on either side: the
mechanism, the claim, the attacks, the datasets. So none of these needs to be picklable,
and what is kept holds only what was learned.
"""

import io
import pickle
from collections.abc import Mapping
from typing import Any

from dpaudit.errors import InputError

__all__ = ["freeze", "thaw"]


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
    """Return the state that was frozen.

    It may run any code: see `dpaudit.audit.keeping.store`.

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
