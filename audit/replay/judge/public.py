"""Values that were said not to depend on the data, held to that.

The code is replayed on D' with the noisy values of D, and must come to the same public
values. To whoever sees the release a value that differs is no violation by itself: it
may not show there. Whoever sees the transcript sees public values too. Then it is one,
for certain, if nothing random had been looked at before: the value is a function of
the data, so that the two laws of the transcript are mutually singular.
"""

import numpy as np

from dpaudit.audit.replay.execute.executor import Trace
from dpaudit.audit.replay.follow.tape import PublicValue, Tape
from dpaudit.audit.replay.judge.hidden import both_again
from dpaudit.audit.replay.judge.judgement import Judgement, Repeat
from dpaudit.outputs import arrays_of
from dpaudit.printable import printable

__all__ = ["hold_public"]


def hold_public(sees: str, first: Trace, second: Trace, judgement: Judgement) -> None:
    """Say which public values differ on the neighbour.

    Parameters
    ----------
    sees : {"release", "transcript"}
    first, second : Trace
        Executions on D and on D'.
    judgement : Judgement
        Of the pair, so far; takes what is found.
    """
    if not (first.tape.public or second.tape.public):
        return
    tape = first.tape
    again = first.again(data=judgement.pair.neighbour, script=tape.observations)
    judgement.executions += 1
    quiet = not any(each.tape.coins or each.tape.unfollowed for each in (first, second))
    differences = _differences(tape, again.tape)
    for one, other, text in differences:
        proof = sees == "transcript" and quiet and judgement.followed and not one.after
        judgement.find("release", one.place, text, neighbour=other.place, proof=proof)
        if proof:
            judgement.proven, judgement.suspicious, judgement.loss = True, True, np.inf
            judgement.bare, judgement.again = True, _once_more(first, second, text)
    if differences and not judgement.proven:
        judgement.followed, judgement.shows_more = False, True
        judgement.suspicious |= judgement.laws is None  # where these are known, all is


def _once_more(first: Trace, second: Trace, text: str) -> Repeat:
    """Return what executes both sides from other seeds, and looks for a difference."""
    tape = first.tape

    def again(turn: int) -> tuple[bool, int]:
        sides = both_again(tape.seed, turn, (first, second), Trace.again)
        one, other = (trace.tape for trace in sides)
        differs = any(text == found for _, _, found in _differences(one, other))
        # `text` need not show all numbers of a value: those on D are what they were.
        as_before = all(text != found for _, _, found in _differences(tape, one))
        return differs and as_before, 1

    return again


def _differences(tape: Tape, again: Tape) -> list[tuple[PublicValue, PublicValue, str]]:
    """Return public values of one name and place that differ, and the words for it."""
    found = []
    ours, theirs = _by_place(tape), _by_place(again)
    for key, values in ours.items():
        others = theirs.get(key, [])
        name = printable(key[1])
        for one, other in zip(values, others, strict=False):
            if not _same(one, other):
                words = f"is {_words(one)} on D and {_words(other)} on D'"
                if _words(one) == _words(other):
                    words = f"({_words(one)}) has other numbers on D'"
                text = f"{name} must not depend on the data, and {words}"
                found.append((one, other, text))
                break
        else:
            if again.script.diverged is None and len(values) != len(others):
                text = f"{name} is noted {len(values)} times on D and {len(others)}"
                found.append((values[0], values[0], f"{text} times on D'"))
    for key, others in theirs.items():
        if key not in ours:
            text = f"{printable(key[1])} is noted on D' only"
            found.append((others[0], others[0], text))
    return found


def _by_place(tape: Tape) -> dict[tuple[str, str], list[PublicValue]]:
    """Return the public values of each place and name, in their order."""
    places: dict[tuple[str, str], list[PublicValue]] = {}
    for each in tape.public:
        places.setdefault((each.place, each.name), []).append(each)
    return places


def _same(one: PublicValue, other: PublicValue) -> bool:
    if one.value.layout != other.value.layout:
        return False
    if one.value.numbers is None or other.value.numbers is None:
        return True
    pairs = zip(
        arrays_of(one.value.numbers), arrays_of(other.value.numbers), strict=True
    )
    return all(np.allclose(x, y, rtol=1e-9, atol=0, equal_nan=True) for x, y in pairs)


def _words(one: PublicValue) -> str:
    """Return a value in words, a number as it is."""
    numbers = one.value.numbers
    if numbers is not None:
        arrays = list(arrays_of(numbers))
        if len(arrays) == 1 and np.size(arrays[0]) == 1:
            return f"{float(np.ravel(arrays[0])[0]):.6g}"
        if len(arrays) == 1 and np.size(arrays[0]) <= 4:
            text = ", ".join(f"{each:.6g}" for each in np.ravel(arrays[0]))
            return f"[{text}]"
    return one.value.layout
