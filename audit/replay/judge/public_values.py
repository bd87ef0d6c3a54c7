"""Values that were said not to depend on the data are held to that.

The code is replayed on D' with the noisy values of D, and must come to the same public
values. For a claim about the release, a value that differs is no violation by itself:
it may not show there. The transcript has public values too. There it is one, for
certain, if nothing random had been looked at before: the value is a function of the
data, so that the two laws of the transcript are mutually singular.
"""

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.execute.executor import Trace, both_again
from dpaudit.audit.replay.follow.tape import PublicValue, Tape
from dpaudit.audit.replay.judge.judgement import Judgement, Repeat
from dpaudit.outputs import arrays_of
from dpaudit.printable import printable

__all__ = ["compare_public"]


def compare_public(judgement: Judgement, first: Trace, second: Trace) -> None:
    """Add the public values that differ on the neighbour to the findings."""
    if not (first.tape.public or second.tape.public):
        return
    tape = first.tape
    again = first.again(data=judgement.pair.neighbour, script=tape.observations)
    judgement.executions += 1
    hidden = any(each.tape.coins or each.tape.unfollowed for each in (first, second))
    seen = judgement.sees == "transcript" and not hidden
    differences = _differences(tape, again.tape)
    for one, other, text in differences:
        proof = seen and judgement.followed and not one.after
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
    for key in ours | theirs:
        values, others, name = ours.get(key, []), theirs.get(key, []), printable(key[1])
        pairs = zip(values, others, strict=False)
        one, other = next((p for p in pairs if not _same(*p)), (None, None))
        if not values:
            one = other = others[0]
            text = f"{name} is noted on D' only"
        elif one is not None and other is not None:
            words = f"is {_words(one)} on D and {_words(other)} on D'"
            if _words(one) == _words(other):
                words = f"({_words(one)}) has other numbers on D'"
            text = f"{name} must not depend on the data, and {words}"
        elif again.script.diverged is None and len(values) != len(others):
            one = other = values[0]
            text = f"{name} is noted {len(values)} times on D and {len(others)}"
            text += " times on D'"
        else:
            continue
        found.append((one, other, text))
    return found


def _by_place(tape: Tape) -> dict[tuple[str, str], list[PublicValue]]:
    """Return the public values of each place and name, in their order."""
    places: dict[tuple[str, str], list[PublicValue]] = {}
    for each in tape.public:
        places.setdefault((each.place, each.name), []).append(each)
    return places


def _arrays(one: PublicValue) -> list[Array]:
    return [] if one.value.numbers is None else arrays_of(one.value.numbers)


def _same(one: PublicValue, other: PublicValue) -> bool:
    return one.value.layout == other.value.layout and all(
        np.allclose(x, y, rtol=1e-9, atol=0, equal_nan=True)
        for x, y in zip(_arrays(one), _arrays(other), strict=True)
    )


def _words(one: PublicValue) -> str:
    """Return a value in words, a number as it is."""
    arrays = _arrays(one)
    if len(arrays) != 1 or arrays[0].size > 4:
        return one.value.layout
    text = ", ".join(f"{each:.6g}" for each in arrays[0].ravel())
    return text if arrays[0].size == 1 else f"[{text}]"
