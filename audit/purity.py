"""Signs that releases are not independent draws of one law.

Every statement of an audit assumes that, given the dataset, each release is drawn anew
from the same distribution, with the generator that it was handed. Two checks find the
usual ways to break this, and no more than these:

- the same seeds are used again after the audit: a release that differs from the first
  depends on the calls in between, or on randomness of the mechanism's own;
- a mechanism that leaves its generator untouched does not use it.
"""

import hashlib
from collections.abc import Mapping

import numpy as np

from dpaudit.audit.arena import Arena
from dpaudit.audit.outputs import Batch
from dpaudit.errors import DPAuditError

__all__ = ["fingerprint", "impurities", "repeats"]

_STATE = (
    "the same seed gave another release at the end than at the beginning: the "
    "mechanism keeps state between calls, or draws randomness of its own"
)
_UNUSED = (
    "the mechanism does not use its rng: its releases are constant, or draw randomness "
    "from elsewhere"
)


def impurities(arena: Arena) -> tuple[str, ...]:
    """Return warnings about the mechanism on the pair of an arena."""
    try:
        found = [] if repeats(arena) else [_STATE]
        if not arena.uses_rng():
            found.append(_UNUSED)
    except DPAuditError:
        return (_STATE,)  # it refuses now what it took at the beginning
    return tuple(found)


def repeats(arena: Arena) -> bool:
    """Say whether the same streams give the first releases of an arena once more.

    Raises
    ------
    DPAuditError
        Whatever the mechanism raises of dpaudit's own.
    """
    assert arena.first_look is not None  # the pilot was drawn
    return fingerprint(*arena.first_look) == fingerprint(*arena.replay_pilot())


def fingerprint(*batches: Batch) -> bytes:
    """Return a digest of outputs, the same only if they are equal to the bit."""
    digest = hashlib.sha256()
    for batch in batches:
        values = {} if batch.values is None else batch.values
        parts = values if isinstance(values, Mapping) else {"": values}
        for name, part in sorted(parts.items()):
            shape = name, part.shape
            digest.update(repr(shape).encode())
            # Any NaN is like any other.
            digest.update(np.where(np.isnan(part), np.nan, part).tobytes())
        digest.update(repr(batch.all_labels.tolist()).encode())
    return digest.digest()
