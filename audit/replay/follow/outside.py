"""Notes of what comes from outside of the code under audit, and may be random."""

from typing import Any

from dpaudit.audit.replay.follow.observations import Unfollowed
from dpaudit.audit.replay.follow.places import place_of_caller

__all__ = ["note_outside"]


def note_outside(tape: Any, why: str) -> None:
    """Note on a tape, if any, that something comes from outside, and may be random."""
    if tape is None or tape.inside or tape.closed:
        return
    tape.steps.take()
    note = Unfollowed(place_of_caller(), why)
    if note not in tape.outside:
        tape.outside.append(note)
