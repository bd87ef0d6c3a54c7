"""Signs that releases are not independent draws of one law.

Every statement of an audit assumes that, given the dataset, each release is drawn anew
from the same distribution, with the generator that it was handed. Two checks find the
usual ways to break this, and no more than these:

- the same seeds are used again after the audit: a release that differs from the first
  depends on the calls in between, or on randomness of the mechanism's own;
- a mechanism that leaves its generator untouched does not use it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpaudit.audit.arena import Arena
from dpaudit.audit.outputs import Batch
from dpaudit.errors import DPAuditError

__all__ = ["impurities", "same_release", "signs"]

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
    first = arena.first_look
    assert first is not None  # the pilot was drawn
    try:
        again = arena.replay_pilot()
        repeats = all(_same(a, b) for a, b in zip(first, again, strict=True))
        return signs(repeats=repeats, uses_rng=arena.uses_rng())
    except DPAuditError:
        # It refuses now what it took at the beginning.
        return signs(repeats=False, uses_rng=True)


def signs(*, repeats: bool, uses_rng: bool) -> tuple[str, ...]:
    """Return warnings about a mechanism.

    Parameters
    ----------
    repeats : bool
        Whether the same seed gave the same release at the end as at the beginning.
    uses_rng : bool
        Whether it ever drew from the generator that it was handed.
    """
    return (*(() if repeats else (_STATE,)), *(() if uses_rng else (_UNUSED,)))


def same_release(first: Any, second: Any) -> bool:
    """Say whether two releases, arrays or arrays by name, are equal; NaN equals NaN."""
    if isinstance(first, Mapping) or isinstance(second, Mapping):
        return (
            isinstance(first, Mapping)
            and isinstance(second, Mapping)
            and first.keys() == second.keys()
            and all(same_release(first[key], second[key]) for key in first)
        )
    first, second = np.asarray(first), np.asarray(second)
    numbers = first.dtype.kind in "fc" and second.dtype.kind in "fc"
    return np.array_equal(first, second, equal_nan=numbers)


def _same(first: Batch, second: Batch) -> bool:
    if not np.array_equal(first.all_labels, second.all_labels):
        return False
    if first.values is None or second.values is None:
        return first.values is second.values
    return same_release(first.values, second.values)
