"""Signs that an audit does not see what it seems to see.

Every statement of an audit assumes that, given the dataset, each release is drawn anew
from the same distribution, with the generator that it was handed. Two checks find the
usual ways to break this, and no more than these:

- the same seeds are used again after the audit: a release that differs from the first
  depends on the calls in between, or on randomness of the mechanism's own;
- a mechanism that leaves its generator untouched does not use it.

And an audit sees only what it can read and compare: outputs of which the type alone is
known, and words that never occur twice, tell it nothing.
"""

from dpaudit.audit.arena import Arena
from dpaudit.errors import DPAuditError
from dpaudit.outputs import UNREAD

__all__ = ["impurities", "unreadable"]

_STATE = (
    "the same seed gave another release at the end than at the beginning: the "
    "mechanism keeps state between calls, or draws randomness of its own"
)
_UNUSED = (
    "the mechanism does not use its rng: its releases are constant, or draw randomness "
    "from elsewhere"
)

_NAMED = 3
_MOST = 0.5


def impurities(arena: Arena) -> tuple[str, ...]:
    """Return warnings about the mechanism on the pair of an arena."""
    found = []
    first = arena.first_look
    assert first is not None  # the pilot was drawn
    try:
        again = arena.replay_pilot()
        if not all(a.equals(b) for a, b in zip(first, again, strict=True)):
            found.append(_STATE)
        if not arena.uses_rng():
            found.append(_UNUSED)
    except DPAuditError:
        found.append(_STATE)  # it refuses now what it took at the beginning
    return tuple(found)


def unreadable(arena: Arena) -> tuple[str, ...]:
    """Return warnings about outputs that nothing could be learned from."""
    found = []
    if kinds := arena.arsenal.unread:
        names = ", ".join(kind.removeprefix(UNREAD) for kind in kinds[:_NAMED])
        more = ", ..." if len(kinds) > _NAMED else ""
        found.append(
            f"some outputs can be told by their type alone ({names}{more}): return "
            "numbers, words, or lists and dictionaries of them"
        )
    if arena.arsenal.unrepeated > _MOST:
        found.append(
            "most outputs are words that never occur twice, which cannot be compared: "
            "return the numbers that they hold"
        )
    return tuple(found)
