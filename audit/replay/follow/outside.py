"""Notes of what comes from outside of the code under audit, and may be random."""

from typing import Any

from dpaudit.audit.replay.follow.observations import Unfollowed
from dpaudit.audit.replay.follow.places import is_loading, place_of_caller

__all__ = ["SEEDED", "note_outside", "note_seeded", "seeded", "varying"]

_VARIES = "{}, and another execution gives another release"
SEEDED = "a generator has a seed that was not drawn"


def note_outside(tape: Any, why: str) -> None:
    """Note on a tape, if any, that something comes from outside, and may be random."""
    if tape is None or tape.inside or tape.closed or is_loading(tape):
        return
    tape.steps.take()
    note = Unfollowed(place_of_caller(), why)
    if note not in tape.outside:
        tape.outside.append(note)


def varying(tape: Any) -> list[Unfollowed]:
    """Return what another release may come from, and words: not from a seed."""
    varies = (each for each in tape.outside if each.why != SEEDED)
    return [Unfollowed(each.place, _VARIES.format(each.why)) for each in varies]


def seeded(tape: Any, made: Any) -> Any:
    """Return a generator of a seed that was not drawn, which may draw or not."""
    if not (tape.inside or tape.closed):
        tape.seeded.append((made, place_of_caller(), _state_of(made)))
    return made


def note_seeded(tape: Any) -> None:
    """Note on a tape where generators of such seeds were made, of those that drew."""
    for made, place, before in tape.seeded:
        note = Unfollowed(place, SEEDED)
        if (before is None or _state_of(made) != before) and note not in tape.outside:
            tape.outside.append(note)


def _state_of(made: Any) -> str | None:
    """Return in words what a generator draws next, None if it does not say."""
    bits = getattr(made, "bit_generator", getattr(made, "_bit_generator", made))
    try:
        return repr(made.getstate() if hasattr(made, "getstate") else bits.state)
    except Exception:
        return None
