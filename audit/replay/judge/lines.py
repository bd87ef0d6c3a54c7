"""At which line a fault is: two executions, side by side, line by line.

A law says *that* two releases differ. Here both sides are executed again from the same
seed (with the same noisy values, where some were looked at), and every line is kept
(`dpaudit.audit.replay.follow.trail`). Then a fault is where a programmer would look:

- a **scale** that depends on data: where the coefficient of a draw first differs;
- **noise that is too small**: where the noise is added to the data, so that the two
  sides first differ by as much as in the release;
- **other noisy values**, or other words: from where on the two executions ran different
  lines, up to the first draw, or the return, that differs;
- **a number without noise**: where the returned variable got the number, or the return
  itself if the number is computed there.

A line decides no verdict: it is looked for after the verdict.
"""

import ast
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.audit.replay.follow.ending import Ended
from dpaudit.audit.replay.follow.generator import TWINS
from dpaudit.audit.replay.follow.outside import SEEDED
from dpaudit.audit.replay.follow.places import place_in
from dpaudit.audit.replay.follow.trail import Trail, parted, skipped
from dpaudit.audit.replay.judge.judgement import Findings
from dpaudit.audit.replay.judge.source import handed, handed_on, returns
from dpaudit.audit.replay.laws.comparison import LawComparison, equal
from dpaudit.printable import told_apart

__all__ = ["Lines", "find_singular"]

_DEEPEST = 8  # lines that hand on one thing
_Places: TypeAlias = tuple[str, str]
_Value: TypeAlias = Any  # of `dpaudit.audit.replay.follow.trail`
_Trace: TypeAlias = Any  # of `dpaudit.audit.replay.execute.executor`
_SEEDS = 40  # from which a number has to be the same, to be one without noise
_SEEDED = (
    "a generator is made of a seed that is not drawn: who knows it knows what is drawn"
)


class Lines:
    """The lines of an execution on D and of one on D'.

    Parameters
    ----------
    first, second : Trace
        Kept as `sides`.
    """

    def __init__(self, first: _Trace, second: _Trace) -> None:
        self.sides = first, second
        self._known: dict[str, tuple[Trail, Trail] | None] = {}

    def scale(self, draw: int) -> str | None:
        """Return where the coefficient of a draw first differs."""
        for one, other, rows, rows2 in self._noise(np.array([draw])):
            here, there = (
                np.unique(np.abs(each[1][each[1] != 0])) for each in (rows, rows2)
            )
            if len(here) != len(there):
                return None
            if not np.allclose(here, there, rtol=1e-9, atol=0):
                return one.place if one.place == other.place else None
        return None

    def any_scale(self, *, bare: bool = True) -> tuple[str, float, float] | None:
        """Return where draws have other scales, and these; if `bare`, draws alone."""
        here, there = self._values()
        if not bare and [e.place for e in here] != [e.place for e in there]:
            return None  # they are not the same arrays
        for one, other in zip(here, there, strict=False):
            added = bare and (one.centre.any() or other.centre.any())
            if one.place != other.place or added:
                continue
            here, there = (each.terms.coef for each in (one, other))
            if here.shape == there.shape and not np.allclose(here, there, rtol=1e-9):
                sizes = float(np.abs(here).max()), float(np.abs(there).max())
                return one.place, *sizes
        return None

    def noise(self, draws: NDArray[np.intp]) -> str | None:
        """Return where data meet draws, as far apart as they are in the end."""
        found: list[tuple[str, float]] = []
        for one, _, rows, rows2 in self._noise(draws):
            if rows[0].shape != rows2[0].shape or one.place == "?":
                continue
            size = np.abs(rows[1]).max(axis=1)
            with np.errstate(all="ignore"):
                apart = np.abs(rows[0] - rows2[0]) / size
            apart[np.isclose(rows[0], rows2[0], rtol=1e-12, atol=0)] = 0.0
            found.append((one.place, float(np.nanmax(apart, initial=0.0))))
        most = found[-1][1] if found else 0.0
        return next((at for at, far in found if far and far >= 0.999 * most), None)

    def structure(self) -> _Places | None:
        """Return where the two executions parted, or made another layout."""
        trails = self._trails()
        if trails is None:
            return None
        one, other = trails
        for event, event2 in zip(one.events, other.events, strict=False):
            if one.stack(event) != other.stack(event2):
                return parted(one, other, event, event2)
        count = min(len(one.events), len(other.events))
        ends = [*one.events[count:], one.end][0], [*other.events[count:], other.end][0]
        if one.stack(ends[0]) != other.stack(ends[1]):
            return parted(one, other, *ends)
        for name in self._returned(parts=True):
            trails = self._trails(name)
            if trails is not None and all(each.history for each in trails):
                sizes = [[len(numbers) for _, numbers in e.history] for e in trails]
                if sizes[0][-1] != sizes[1][-1]:
                    return _last_lines(trails, [_last_change(each) for each in sizes])
        return skipped(one, other) or self.ends()

    def number(self, entry: int) -> _Places | None:
        """Return where a number of the release without noise was made."""
        trails = self._trails()
        if trails is None:
            return None
        if trails[0].stack(trails[0].end) != trails[1].stack(trails[1].end):
            return parted(*trails, trails[0].end, trails[1].end)
        for name in self._returned() if self.lost(entry) is None else ():
            found = self._trails(name)
            if found is None or not all(each.history for each in found):
                continue
            sizes = [len(each.history[-1][1]) for each in found]
            if sizes == [len(each.value) for each in self.sides]:
                at = [_made_in(each.history, entry) for each in found]
                return self._bound(found, at)
        return self.ends()

    def _bound(self, trails: tuple[Trail, Trail], at: list[int]) -> _Places | None:
        """Return the lines that made entries of two histories.

        Of a line that only hands on a variable, the one before it that made that.
        """
        places = _last_lines(trails, at)
        for _ in range(_DEEPEST):
            if places is None or places[0] != places[1]:
                break
            counts = [
                trail.history[number][0]
                for trail, number in zip(trails, at, strict=True)
            ]
            frame = trails[0].frames[trails[0].end[0][0]]
            known = handed_on(frame.code.co_filename)
            name = known.get(frame.lines[counts[0] - 1])
            found = None if name is None else self._trails(name)
            if found is None:
                break
            at = [
                sum(before < count for before, _ in each.history) - 1
                for each, count in zip(found, counts, strict=True)
            ]
            if min(at) < 0 or any(
                each.history[number][0] != count - 1
                for each, number, count in zip(found, at, counts, strict=True)
            ):
                break
            trails, places = found, _last_lines(found, at) or places
        return places

    def meeting(self) -> _Places:
        """Return where noise and data meet last that differ, else where both return."""
        met = self.met()
        if met is not None:
            return met, met
        here, there = (each.returned_at for each in self.sides)
        return self.ends() or (here, there)

    def met(self) -> str | None:
        """Return where noise and data meet last that differ, None if they do not."""
        met = [
            str(one.place)
            for one, other in zip(*self._values(), strict=False)
            if one.place == other.place != "?"
            and not np.array_equal(one.centre, other.centre)
        ]
        return met[-1] if met else None

    def lost(self, entry: int) -> str | None:
        """Return where noise is added to a number of the release that is in none."""
        here, there = (float(each.value[entry]) for each in self.sides)
        shown = self.sides[0].release.index
        for one, other in zip(*self._values(), strict=False):
            if one.place == other.place and one.centre.shape == other.centre.shape:
                alike = (one.centre == here) & (other.centre == there)
                index = one.terms.index[alike] if alike.any() else np.empty(0)
                if (index >= 0).any() and not np.isin(index[index >= 0], shown).any():
                    return str(one.place)
        return None

    def in_outermost(self, place: str) -> bool:
        """Say whether a line is one of the mechanism itself, not of what it calls."""
        trails = self._trails()
        if trails is None:
            return True
        code = trails[0].frames[trails[0].end[0][0]].code
        lines = {line for *_, line in code.co_lines() if line}
        return place in {place_in(code.co_filename, line) for line in lines}

    def shared(self, entry: int) -> str | None:
        """Return where a number of the release came to have the noise that it has."""
        trails, whole = self._trails(), self.sides[0].release
        draws = whole.index[entry][whole.index[entry] >= 0]
        if trails is None or not len(draws):
            return None
        mean, own = whole.centre[entry], np.sort(whole.coef[entry])
        for each in trails[0].values:
            centre, coef, index = each.rows(draws)
            for x, row, which in zip(centre, coef, index, strict=True):
                used = np.isin(draws, which).all() and row.shape == own.shape
                if used and np.isclose(x, mean) and np.allclose(np.sort(row), own):
                    return each.place
        return None

    def ends(self) -> _Places | None:
        """Return where the mechanism returned."""
        trails = self._trails()
        if trails is None:
            return None
        here, there = (trail.place(trail.end[0]) for trail in trails)
        return here, there

    # -- the executions

    def _trails(self, watched: str = "") -> tuple[Trail, Trail] | None:
        if watched not in self._known:
            trails = Trail(watched), Trail(watched)
            for side, trail in zip(self.sides, trails, strict=True):
                given = side.tape.script
                script = side.tape.observations
                if given.values is not None:
                    script = given.values
                with suppress(Ended):  # the trail has no end
                    side.again(script=script, goes_on=given.goes_on, trail=trail)
            whole = all(each.whole and each.end for each in trails)
            self._known[watched] = trails if whole else None
        return self._known[watched]

    def _values(self) -> tuple[list[_Value], list[_Value]]:
        trails = self._trails()
        return ([], []) if trails is None else (trails[0].values, trails[1].values)

    def _noise(
        self, draws: NDArray[np.intp]
    ) -> Iterator[tuple[_Value, _Value, Any, Any]]:
        """Yield the arrays that hold some of the draws, on both sides, in order."""
        both = self._values(), (draws, self._beside(draws))
        sides = [
            [(e, e.rows(some)) for e in side] for side, some in zip(*both, strict=True)
        ]
        kept = ([each for each in side if len(each[1][0])] for side in sides)
        for (one, rows), (other, rows2) in zip(*kept, strict=False):
            yield one, other, rows, rows2

    def _beside(self, draws: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the draws on D' in the place of draws on D.

        Where rows are drawn, those after them have other numbers.
        """
        for one, other in zip(*self._values(), strict=False):
            index, there = one.terms.index, other.terms.index
            held = np.isin(index, draws)
            if held.any():
                alike = one.place == other.place and index.shape == there.shape
                return np.unique(there[held]) if alike else draws
        return draws

    def _returned(self, *, parts: bool = False) -> list[str]:
        """Return the variable that is returned, or with `parts` those of a tuple."""
        trails = self._trails()
        assert trails is not None
        (number, count), *_ = trails[0].end
        frame = trails[0].frames[number]
        value = returns(frame.code.co_filename).get(frame.lines[count - 1])
        value = handed(value)
        several = [value]
        if parts and isinstance(value, ast.Tuple | ast.List):
            several = [*value.elts]
        names = (each.id for each in several if isinstance(each, ast.Name))
        return list(dict.fromkeys(names))


def find_singular(
    findings: Findings,
    compared: LawComparison,
    lines: Lines,
    *,
    more: str = "",
    **how: Any,
) -> bool:
    """Say which number of two releases that are singular differs, and where it is made.

    One that no seed changes goes before one whose noise is only not followed. True if
    there is none but these.

    Parameters
    ----------
    findings : Findings
    compared : LawComparison
    lines : Lines
    more : str
        Words to follow.
    **how
        As for `Findings.add`.
    """
    first, second = lines.sides
    entry, hidden, text = compared.entry, False, compared.singular
    (kind, where), (_, there) = (each.origin(entry) for each in (first, second))
    if not (first.has_noise_at(entry) and second.has_noise_at(entry)):
        differ = np.flatnonzero(~equal(first.value, second.value)).tolist()
        differ = [each for each in differ if not first.has_noise_at(each)]
        tape = first.tape
        if tape.coins or tape.unfollowed or len(tape.observations):
            exact = _exact(first, differ)
            hidden = not exact
            if exact and exact[0] != entry:
                entry = exact[0]
                one, other = told_apart(first.value[entry], second.value[entry], 6)
                text = f"a number without noise is {one} on D and {other} on D'"
        for each in [] if hidden else first.tape.outside:
            if each.why == SEEDED:
                findings.add("release", each.place, _SEEDED, **how)
        where, there = lines.number(entry) or (where, there)
        twins = [each.place for each in tape.unfollowed if each.why == TWINS]
        lost = lines.lost(entry)
        if twins and not lines.in_outermost(twins[0]):
            where = there = twins[0]  # called from the line that returns
        elif lost is not None:
            text = f"{text} (noise is added to it at {lost}, and here it is without)"
    elif kind == "release":
        at = lines.shared(entry)
        where, there = at or where, at or there
    findings.add(kind, where, f"{text}{more}", neighbour=there, **how)
    return hidden


def _exact(trace: _Trace, numbers: list[int]) -> list[int]:
    """Return those numbers of a release that are the same from other seeds."""
    for turn in range(1, _SEEDS + 1):
        again = trace.again(trace.tape.seed + turn, follows=False)
        if again.layout != trace.layout or not numbers:
            return []
        numbers = [n for n in numbers if again.value[n] == trace.value[n]]
    return numbers


def _last_change(sizes: list[int]) -> int:
    """Return the number of the entry of a history that is as the last one is."""
    number = len(sizes) - 1
    while number and sizes[number - 1] == sizes[-1]:
        number -= 1
    return number


def _made_in(history: list[tuple[int, tuple[float, ...]]], entry: int) -> int:
    """Return which entry of a history made a number what it is in the end.

    Where the whole variable was bound, and other numbers of it were changed later, the
    last such change: it left this one out.
    """
    last = history[-1][1]
    number = len(history) - 1

    def as_it_is(numbers: tuple[float, ...]) -> bool:
        if len(numbers) <= entry:
            return False
        return numbers[entry] == last[entry] or numbers[entry] != numbers[entry]

    while number and as_it_is(history[number - 1][1]):
        number -= 1
    size = len(history[number][1])
    bound = not number or len(history[number - 1][1]) != size
    if bound and size > 1 and len(last) == size and (number or len(history) > 1):
        return len(history) - 1
    return number


def _last_lines(trails: tuple[Trail, Trail], at: list[int]) -> _Places | None:
    """Return the lines that made entries of two histories; where they parted, if so."""
    calls = [
        (trail.end[0][0], trail.history[number][0])
        for trail, number in zip(trails, at, strict=True)
    ]
    if not all(count for _, count in calls):
        return None
    places = [trail.place(call) for trail, call in zip(trails, calls, strict=True)]
    if places[0] != places[1]:
        return parted(*trails, (calls[0],), (calls[1],))
    return places[0], places[1]
