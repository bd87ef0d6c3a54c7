"""Draws of which something was seen, and that go on as draws of another law.

Code that compares a draw with a number sees on which side it lies, and may use it after
that: in another branch of an ``if``, or as the noise that passed a threshold. The
comparison is a choice with a known probability; given how it turned out, the draw is
one of the law that is left (`dpaudit.audit.replay.laws.cuts`), and independent of all
others as before. A comparison of many draws, and whole numbers that are drawn, wait
until the code looks at them: they may become part of a number that has a law.

All of this is done in executions whose mode `keeps` draws.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.made import State
from dpaudit.audit.replay.laws.choices import ROUNDING, ChoiceLaw
from dpaudit.audit.replay.laws.coded import code_of, lattice_of, law_of
from dpaudit.audit.replay.laws.cuts import Cut
from dpaudit.audit.replay.laws.expressions import Expression, evaluate, roots
from dpaudit.audit.replay.laws.one_draw import distribution
from dpaudit.audit.replay.laws.pieces import pieces
from dpaudit.audit.replay.laws.rounded import Rounded

__all__ = ["outcomes", "split"]

_MOST = 256  # outcomes
_LEAST = 1e-14  # probability of one

_Intervals = tuple[tuple[float, float], ...]


def split(
    tape: Any,
    which: NDArray[np.intp],
    ends: Array,
    above: NDArray[np.bool_],
    shape: tuple[int, ...],
    holds: Callable[[int, Array], Any],
) -> Any:
    """Return whether draws are above numbers, or below them, as choices.

    The draws go on as what is left of them. NotImplemented where there is no law.

    Parameters
    ----------
    tape : Tape
    which : ndarray of int, shape (n,)
        Which draws.
    ends : ndarray, shape (n,)
    above : ndarray of bool, shape (n,)
        Which of the two it is that is asked for.
    shape : tuple of int
        That the answers have.
    holds : callable
        Answers for the draw at a place, and any numbers in its stead: of numbers on a
        lattice an end itself has a probability.
    """
    draws = tape.draws
    fresh = np.isin(draws.states[which], (State.FRESH, State.CUT)).all()
    if not fresh or draws.made.mixed(which, draws.states):
        return NotImplemented
    p, held = np.empty(len(which)), (draws.values[which] > ends) == above
    for place, draw in enumerate(which):
        family = int(draws.families[draw])
        lattice, law = lattice_of(family), distribution(family)
        if lattice is not None:
            start, table = lattice.table()
            k = start + np.arange(len(table), dtype=np.float64)
            some = np.asarray(holds(place, k), dtype=np.bool_)
            p[place] = min(table[some].sum(), 1 - table[~some].sum())
            held[place] = holds(place, draws.values[draw])
        elif hasattr(law, "ppf"):
            p[place] = (law.sf if above[place] else law.cdf)(ends[place])
        else:
            return NotImplemented
    tape.selected = True
    law = ChoiceLaw.flips(p, len(p))
    found = tape.choose(law, held.astype(np.intp), shape).astype(np.bool_)
    for place, (draw, answer) in enumerate(zip(which, found.ravel(), strict=True)):
        end = float(ends[place])
        side = (end, np.inf) if answer == above[place] else (-np.inf, end)

        def left(u: Array, place: int = place, answer: Any = answer) -> Any:
            return holds(place, u) == answer

        whole = lattice_of(int(draws.families[draw])) is not None
        if not (
            _among(draws, draw, left) if whole else _cut(draws, int(draw), (side,))
        ):
            draws.use_up(np.array([draw]))
    return found[()]


def _cut(draws: Any, draw: int, intervals: _Intervals) -> bool:
    """Let it be known that a draw lies in one of some intervals.

    False if the law of what is left is not known.
    """
    family = int(draws.families[draw])
    known = law_of(family)
    if isinstance(known, Cut):
        family = known.family
        intervals = tuple(
            (max(a, c), min(b, d))
            for a, b in intervals
            for c, d in known.ends
            if max(a, c) < min(b, d)
        )
    if not intervals:
        return False
    made = Cut(family, intervals)
    code = code_of(made)
    if code is None or not made.law.mass > 0:
        return False
    value = float(draws.values[draw])
    if not any(low <= value <= high for low, high in intervals):  # of a script
        rank = float(distribution(int(draws.families[draw])).cdf(value))
        value = float(made.law.ppf(rank))
    _become(draws, draw, code, value)
    return True


def _become(draws: Any, draw: int, code: int, value: float) -> None:
    """Let a draw be one of another law, which is made of nothing."""
    alone = np.array([draw])
    _forget(draws, draw, None)
    made = draws.made.of(alone)
    if made is not None:
        for roots_ in made.roots.values():
            draws.states[roots_[alone - made.start]] = State.PARTLY
        draws.made.apart.add(draw)
    draws.families[draw] = code
    draws.states[draw], draws.values[draw] = State.CUT, value


def _forget(draws: Any, root: int, but: int | None) -> None:
    """Let others that are made of a draw, of which more is known, have no law."""
    for block in draws.made.blocks:
        for own in block.roots.values():
            for place in np.flatnonzero(own == root).tolist():
                other = block.start + place
                if other != but and draws.states[other] != State.SPENT:
                    draws.states[other] = State.PARTLY


def outcomes(tracked: Any) -> bool:
    """Decide numbers that are draws of few values, as choices; False if they are none.

    Each entry must have one draw, of which nothing was seen.
    """
    tape, draws = tracked.tape, tracked.tape.draws
    tracked.settle()
    index = tracked.index
    if index.shape[1] != 1:
        return False
    which = np.unique(index[index >= 0])
    tables = [_table(draws, int(draw)) for draw in which.tolist()]
    if not tables or None in tables or draws.made.mixed(which, draws.states):
        return False
    found = [table for table in tables if table is not None]
    width = max(len(values) for values, _ in found)
    log = np.full((len(which), width), -np.inf)
    places = np.zeros(len(which), dtype=np.intp)
    for row, (draw, (values, p)) in enumerate(zip(which.tolist(), found, strict=True)):
        log[row, : len(p)] = np.log(p)
        places[row] = np.argmin(np.abs(values - draws.values[draw]))
    tape.selected = True
    law = ChoiceLaw(log, "choice", ROUNDING)
    chosen = tape.choose(law, places, places.shape)
    flips = tracked.bare and (tracked.coef == 1).all() and _compared(draws, which)
    for draw, place, (values, _) in zip(which.tolist(), chosen, found, strict=True):
        _learn(draws, draw, float(values[min(int(place), len(values) - 1)]))
    tracked.settle()
    if flips:
        tracked.centre = tracked.centre.astype(np.bool_)
    elif (tracked.centre == np.rint(tracked.centre)).all():
        tracked.centre = tracked.centre.astype(np.intp)
    return True


def _compared(draws: Any, which: NDArray[np.intp]) -> bool:
    """Say whether draws are what comparisons gave."""
    made = [draws.made.of(np.array([draw])) for draw in which.tolist()]
    return all(getattr(each and each.expression, "compares", False) for each in made)


def _table(draws: Any, draw: int) -> tuple[Array, Array] | None:
    """Return what a draw may be, and how probably; None where that is too much."""
    if draws.states[draw] not in (State.FRESH, State.CUT):
        return None
    return _values_of(int(draws.families[draw]))


@lru_cache(maxsize=1024)
def _values_of(code: int) -> tuple[Array, Array] | None:
    """Return the values of draws of a law, and their probabilities."""
    lattice = lattice_of(code)
    if lattice is None or isinstance(lattice, Rounded):
        return None
    start, p = lattice.table()
    some = np.flatnonzero(p > _LEAST)
    if len(some) > _MOST:
        return None
    return start + some.astype(np.float64), p[some]


def _learn(draws: Any, draw: int, value: float) -> None:
    """Let a draw be known, and what it is made of be what is left."""
    made = draws.made.of(np.array([draw]))
    draws.states[draw], draws.values[draw] = State.SPENT, value
    if made is None:
        _forget(draws, draw, None)
        return
    place = draw - made.start
    behind = {slot: int(own[place]) for slot, own in made.roots.items()}
    for root in behind.values():
        _forget(draws, root, draw)
    over = roots(made.expression)
    if len(over) == 1 and len(behind) == 1:
        (root,) = behind.values()
        used = draws.made.used.pop(root, made.start) == made.start
        if used and _left(draws, root, made.expression, value):
            return
    for root in behind.values():
        draws.states[root] = State.PARTLY


def _left(draws: Any, root: int, expression: Expression, value: float) -> bool:
    """Let a draw be such that a function of it has a value; False if that fails."""
    ((slot, own),) = roots(expression).items()
    if own.lattice is not None:

        def held(k: Array) -> NDArray[np.bool_]:
            made = evaluate(expression, [k] * (slot + 1))
            return np.asarray(np.abs(made - value) <= 1e-9 * max(1.0, abs(value)))

        return _among(draws, root, held)
    found = pieces(expression, own)
    return found is not None and _cut(draws, root, found.where(value))


def _among(draws: Any, draw: int, held: Callable[[Array], Any]) -> bool:
    """Let something hold of a draw on a lattice; False if nothing is left of it."""
    lattice = lattice_of(int(draws.families[draw]))
    left = None if lattice is None else lattice.among_those(held)
    code = None if left is None else code_of(left)
    if left is None or code is None:
        return False
    value = float(draws.values[draw])
    if not held(np.array([value]))[0]:
        start, p = left.table()
        value = float(start + np.argmax(p))
    _become(draws, draw, code, value)
    return True
