"""At which line a fault is: two executions, side by side, line by line.

A law says *that* two releases differ. Here both sides are executed again from the same
seed (with the same noisy values, where some were looked at), and every line is kept
(`dpaudit.audit.replay.follow.trail`). Then a fault is where a programmer would look:

- a **scale** that depends on data: where the coefficient of a draw first differs;
- **noise that is too small**: where it and the data meet, so that as much as in the end
  lies between the two sides;
- **other noisy values**, or other words: where the two executions parted, as far back
  from the first draw, or the return, that differs as they go by different lines;
- **a number without noise**: where the variable that is returned got it, or where the
  return is, if that makes it.

Nothing here decides anything: a verdict stands before a line is looked for.
"""

import ast
import linecache
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.audit.replay.execute.system import SEEDED
from dpaudit.audit.replay.follow.places import place_in
from dpaudit.audit.replay.follow.trail import Trail
from dpaudit.audit.replay.judge.judgement import Findings
from dpaudit.audit.replay.laws.comparison import LawComparison, equal

__all__ = ["Lines", "find_singular"]

_HANDED_ON = ("array", "asarray", "list", "tuple", "float", "int", "bool", "stack")
_Event: TypeAlias = tuple[tuple[int, int], ...]
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

    def any_scale(self) -> tuple[str, float, float] | None:
        """Return where draws that nothing was added to have other scales, and these."""
        for one, other in zip(*self._values(), strict=False):
            if one.place != other.place or one.centre.any() or other.centre.any():
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
            if _stack(one, event) != _stack(other, event2):
                return _parted(one, other, event, event2)
        count = min(len(one.events), len(other.events))
        ends = [*one.events[count:], one.end][0], [*other.events[count:], other.end][0]
        if _stack(one, ends[0]) != _stack(other, ends[1]):
            return _parted(one, other, *ends)
        for name in self._returned(parts=True):
            trails = self._trails(name)
            if trails is not None and all(each.history for each in trails):
                sizes = [[len(numbers) for _, numbers in e.history] for e in trails]
                if sizes[0][-1] != sizes[1][-1]:
                    return _last_lines(trails, [_last_change(each) for each in sizes])
        return self.ends()

    def number(self, entry: int) -> _Places | None:
        """Return where a number of the release without noise was made."""
        trails = self._trails()
        if trails is None:
            return None
        if _stack(trails[0], trails[0].end) != _stack(trails[1], trails[1].end):
            return _parted(*trails, trails[0].end, trails[1].end)
        for name in self._returned():
            found = self._trails(name)
            if found is None or not all(each.history for each in found):
                continue
            sizes = [len(each.history[-1][1]) for each in found]
            if sizes == [len(each.value) for each in self.sides]:
                at = [_made_in(each.history, entry) for each in found]
                return _last_lines(found, at)
        return self.ends()

    def meeting(self) -> _Places:
        """Return where noise and data meet that differ, else where both return."""
        met = [
            one.place
            for one, other in zip(*self._values(), strict=False)
            if one.place == other.place != "?"
            and not np.array_equal(one.centre, other.centre)
        ]
        if met:
            return met[-1], met[-1]
        here, there = (each.returned_at for each in self.sides)
        return self.ends() or (here, there)

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
        here, there = (_place(trail, trail.end[0]) for trail in trails)
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
        sides = [[(each, each.rows(draws)) for each in e] for e in self._values()]
        kept = ([each for each in side if len(each[1][0])] for side in sides)
        for (one, rows), (other, rows2) in zip(*kept, strict=False):
            yield one, other, rows, rows2

    def _returned(self, *, parts: bool = False) -> list[str]:
        """Return the variable that is returned, or with `parts` those of a tuple."""
        trails = self._trails()
        assert trails is not None
        (number, count), *_ = trails[0].end
        frame = trails[0].frames[number]
        value = _returns(frame.code.co_filename).get(frame.lines[count - 1])
        while isinstance(value, ast.Call) and len(value.args) == 1:
            if ast.unparse(value.func).rpartition(".")[2] not in _HANDED_ON:
                break
            value = value.args[0]
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
                one, other = first.value[entry], second.value[entry]
                text = f"a number without noise is {one:g} on D and {other:g} on D'"
        for each in [] if hidden else first.tape.outside:
            if each.why == SEEDED:
                findings.add("release", each.place, _SEEDED, **how)
        where, there = lines.number(entry) or (where, there)
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


@lru_cache(maxsize=256)
def _returns(file: str) -> dict[int, ast.expr | None]:
    """Return what is returned on the lines of a file."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return {}
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Return))
    return {
        line: node.value
        for node in found
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def _stack(trail: Trail, event: _Event) -> list[tuple[Any, int]]:
    """Return the functions, and lines in them, that an event stands in."""
    frames = ((trail.frames[number], count) for number, count in event)
    return [(frame.code, frame.lines[count - 1]) for frame, count in frames if count]


def _place(trail: Trail, call: tuple[int, int]) -> str:
    frame = trail.frames[call[0]]
    return place_in(frame.code.co_filename, frame.lines[call[1] - 1])


def _parted(one: Trail, other: Trail, a: _Event, b: _Event) -> _Places | None:
    """Return where two executions parted, on the way to two events."""
    before: _Places | None = None
    for call, call2 in zip(a, b, strict=False):
        frame, frame2 = one.frames[call[0]], other.frames[call2[0]]
        if frame.code is not frame2.code:
            return before
        at = frame.lines[: call[1]], frame2.lines[: call2[1]]
        if at[0][-1] != at[1][-1]:
            line = _fork(*at)
            place = None if line is None else place_in(frame.code.co_filename, line)
            return before if place is None else (place, place)
        before = _place(one, call), _place(other, call2)
    return before


def _fork(here: Sequence[int], there: Sequence[int]) -> int | None:
    """Return the last line that two ways have in common, before they end apart."""
    pairs = enumerate(zip(here, there, strict=False))
    first = next((n for n, (x, y) in pairs if x != y), min(len(here), len(there)))
    seen: tuple[set[int], set[int]] = (set(), set())
    for back in range(1, max(len(here), len(there)) + 1):
        for lines, known in zip((here, there), seen, strict=True):
            if back <= len(lines):
                known.add(lines[-back])
        common = seen[0] & seen[1]
        if common:
            start = here[first - 1] if first else None
            return start if start in common else min(common)
    return None


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
    places = [_place(trail, call) for trail, call in zip(trails, calls, strict=True)]
    if places[0] != places[1]:
        return _parted(*trails, (calls[0],), (calls[1],))
    return places[0], places[1]
