"""Which mechanism for private PCA to take: by errors that are measured.

Where n and the eigenvalues of the mean second moment are known, or n and a gap,
`recommend` measures every mechanism at once on a second moment like that
(`dpaudit.algorithms.estimators.measured`); all of that must be public, and no data are
read.

Where they are not, it looks at a grid that was measured before, which knows no other
eigenvalues than k equal ones above a gap and equal ones below. Of all with one gap
these are turned most by noise that is added to the second moment: it turns two axes by
its entry over the difference of their eigenvalues. What the grid does not reach is
refused.

All that is for rows of a public norm R. Where a spectrum is given, `recommend` says too
what comes of no bound: of a private norm, or of directions (`PrivatePCA`). How good the
advice is: docs/choosing.md#how-good-the-advice-is.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dpaudit import InputError, Relation
from dpaudit.algorithms.estimators.measured import (
    GRID,
    MECHANISMS,
    OF_ROWS,
    SEED,
    Grid,
    digits,
    even,
    expected,
    filled,
    releases,
    shipped_grid,
    slow,
)
from dpaudit.algorithms.estimators.without_bound import WITHOUT_BOUND
from dpaudit.arrays import Array
from dpaudit.validation import (
    check_count,
    check_fraction,
    check_nonnegative,
    check_norm,
    check_positive,
)

__all__ = ["Choice", "Recommendation", "recommend"]

_USUAL_SHARE = 0.1  # of R^2/k: the gap for which errors are shown where none is given
_MOST_COLUMNS = 1000  # for which measuring at once takes a minute
_STRONGEST = 1e9  # a signal: beyond it errors come near the last digits of doubles
_EVEN = (
    "eigenvalues are taken as equal above the gap, and below it: with others noise on "
    "the second moment has less error, so a spectrum may give another order"
)
_ROWS = (
    "{} reads rows, and is measured on normal ones; on others with the same "
    "eigenvalues its error may be smaller or larger"
)
_ASIDE = (
    "not ranked: {}, which on normal rows errs {:g} ({:g} to {:g}); near a subspace it "
    "is often far better, and where it finds nothing it loses about 1.4 times"
)
_UNBOUNDED = (
    "without a bound rows are clipped to a private norm, or brought to length 1 "
    "(PrivatePCA(row_norm=...)). Measured on normal rows: with heavier tails this "
    "gains more; where rows are not elliptical, it also turns components"
)
_LOST = 0.7  # an error, as a sine: about 45 degrees
_NOTHING = (
    "hardly anything is found of all components by any of these: the least error is "
    "{:g}, and 0.7 is an angle of 45 degrees. It takes more rows, a larger epsilon or "
    "fewer components"
)
_ALONE = "errors without a bound on rows are measured where a spectrum is given"
_UNIT = 0.01  # the mean squared length of rows without a bound: none is as long as 1


@dataclass(frozen=True)
class Choice:
    """A mechanism, and the error that it was measured to have.

    Parameters
    ----------
    mechanism : str
        Name in the catalogue; of those without a bound, with ``@private`` or
        ``@directions`` after it.
    error, low, high : float
        The sine of the largest angle between the released components and those without
        noise: the median of releases, and the quantiles at 10 % and 90 %.
    at_worst : float, optional
        How many times the least error its error is, over the signals of the grid;
        None where n and the gap are known.
    """

    mechanism: str
    error: float
    low: float
    high: float
    at_worst: float | None = None


@dataclass(frozen=True)
class Recommendation:
    """Mechanisms, the best one first.

    Parameters
    ----------
    choices : tuple of Choice
        By `Choice.at_worst` where it is known, else by the error.
    notes : tuple of str
        What was assumed, and what was not measured.
    measured : str
        Where the errors are from.
    without_bound : tuple of Choice
        What comes of a private norm, and of directions, by the error; empty where that
        was not measured.
    """

    choices: tuple[Choice, ...]
    notes: tuple[str, ...]
    measured: str
    without_bound: tuple[Choice, ...] = ()


def recommend(
    *,
    d: int,
    k: int,
    epsilon: float,
    delta: float,
    relation: Relation = Relation.ADD_REMOVE,
    n: int | None = None,
    gap: float | None = None,
    spectrum: Sequence[float] | None = None,
    row_norm: float | None = 1.0,
    among: Collection[str] | None = None,
    grid: Grid | None = None,
) -> Recommendation:
    """Return the mechanisms for private PCA with the least measured error.

    Where n is known, and a gap or the spectrum, errors are measured at once, and rank
    the mechanisms. Otherwise the first is the one that is never much worse than the
    best: mechanisms are ranked by the largest ratio of their error to the least one,
    over all signals of the grid that are possible.

    Parameters
    ----------
    d, k : int
        Columns, at most 1000, and components; k < d.
    epsilon, delta : float
        The budget; delta = 0 asks for pure DP.
    relation : Relation
    n : int, optional
        Rows, more than k.
    gap : float, optional
        Between the k-th and the next eigenvalue of the mean second moment of the rows,
        in their units; at most row_norm^2/k. The k largest are taken as equal, and so
        are the others; all together are row_norm^2.
    spectrum : sequence of float, optional
        In place of a gap: the largest eigenvalues, more than k of them, in order. The
        others are taken as equal, and as large as they can be.
    row_norm : float or None
        Bound on the length of a row; None if none is known, which takes a spectrum.
    among : collection of str, optional
        The mechanisms that are to be compared, those without a bound as `Choice` has
        them.
    grid : Grid, optional
        Default: the one that ships with dpaudit.

    Returns
    -------
    Recommendation

    Raises
    ------
    InputError
        If an argument is not what it should be, or if the grid would have to answer and
        does not reach so far.

    Examples
    --------
    >>> found = recommend(d=20, k=3, epsilon=1.0, delta=1e-6, n=100_000, gap=0.05)
    >>> found.choices[0].mechanism
    'private-subspace'
    """
    check_count("d", d, minimum=2, maximum=_MOST_COLUMNS)
    check_count("k", k, maximum=d - 1)
    check_positive("epsilon", epsilon)
    check_fraction("delta", delta, allow_zero=True)
    if n is not None:
        check_count("n", n, minimum=k + 1)
    budget = {"epsilon": epsilon, "delta": delta, "relation": relation}
    if row_norm is None:
        if spectrum is None or n is None or gap is not None:
            raise InputError(
                "row_norm may be None only with n and a spectrum, and no gap, got n = "
                f"{n!r}, spectrum = {spectrum!r} and gap = {gap!r}"
            )
        given = _checked_spectrum(spectrum, d, k, n, None)
        eigenvalues = filled(given, d=d, n=n, total=math.inf)
        unit = math.sqrt(eigenvalues.sum() / _UNIT)
        names = WITHOUT_BOUND if among is None else among
        return _at_once(eigenvalues / unit**2, n, k, names, budget, (), unit)
    check_norm("row_norm", row_norm)
    widest = row_norm**2 / k
    if gap is not None:
        check_positive("gap", gap, largest=widest * (1 + 1e-9))
    steps, pure_steps = OF_ROWS
    with_bound = (steps, *MECHANISMS)
    aside = () if among is not None or delta else (pure_steps,)
    if spectrum is not None:
        if n is None or gap is not None:
            raise InputError(
                "spectrum needs n beside it, and no gap, got n = "
                f"{n!r} and gap = {gap!r}"
            )
        given = _checked_spectrum(spectrum, d, k, n, row_norm)
        names = (*with_bound, *WITHOUT_BOUND) if among is None else among
        eigenvalues = filled(given, d=d, n=n)
        return _at_once(eigenvalues, n, k, names, budget, (), row_norm, aside)
    if n is not None and gap is not None:
        eigenvalues = even(gap / row_norm**2, d=d, k=k, n=n)
        names = with_bound if among is None else among
        notes = _EVEN, _ALONE
        return _at_once(eigenvalues, n, k, names, budget, notes, row_norm, aside)
    grid = shipped_grid() if grid is None else grid
    return _of_grid(grid, d, k, n, gap, row_norm, among, budget)


def _at_once(
    eigenvalues: Array,
    n: int,
    k: int,
    names: Collection[str],
    budget: Mapping[str, Any],
    notes: tuple[str, ...],
    unit: float,
    aside: tuple[str, ...] = (),
) -> Recommendation:
    """Rank mechanisms by errors that are measured now, with eigenvalues in unit^2.

    Of those aside the error is said in a note.
    """
    signal = n * budget["epsilon"] * (eigenvalues[k - 1] - eigenvalues[k])
    if signal > _STRONGEST:
        raise InputError(
            "n epsilon gap/row_norm^2 must be at most "
            f"{_STRONGEST:g}, got {signal:.3g}: any mechanism will do there"
        )
    d, ranked, beside = len(eigenvalues), [], []
    if n < d:
        beside.append(f"n = {n} is below d = {d}: {d - n} eigenvalues are 0")
    for name in (*names, *aside):
        if slow(name, d):
            if name not in WITHOUT_BOUND:
                beside.append(f"{name} is not measured: a release takes seconds")
            continue
        try:
            own = {"unit": unit} if name in WITHOUT_BOUND else {}
            found = expected(name, eigenvalues, n=n, k=k, **budget, **own)
        except InputError as error:
            beside.append(f"{name} is not measured: {error}")
            continue
        if found is not None:
            low, middle, high = found
            ranked.append(Choice(name, middle, low, high))
    for x in ranked:
        if x.mechanism in aside:
            beside.append(_ASIDE.format(x.mechanism, x.error, x.low, x.high))
    ranked = [x for x in ranked if x.mechanism not in aside]
    ranked.sort(key=lambda choice: (choice.error, choice.high))
    choices = tuple(x for x in ranked if x.mechanism not in WITHOUT_BOUND)
    others = tuple(x for x in ranked if x.mechanism in WITHOUT_BOUND)
    if choices and choices[0].error > _LOST:
        beside.insert(0, _NOTHING.format(choices[0].error))
    beside += [_ROWS.format(x.mechanism) for x in choices if x.mechanism in OF_ROWS]
    if others:
        beside.append(_UNBOUNDED)
    if others and choices:
        times = digits(others[0].error / choices[0].error)
        beside.append(
            f"the least error without a bound is {times:g} times the least with it"
        )
    fewest = min((releases(choice.mechanism, d) for choice in ranked), default=0)
    origin = f"now, {fewest} releases or more of each (seed {SEED})"
    return Recommendation(choices, (*notes, *beside), origin, others)


def _of_grid(
    grid: Grid,
    d: int,
    k: int,
    n: int | None,
    gap: float | None,
    row_norm: float,
    among: Collection[str] | None,
    budget: Mapping[str, Any],
) -> Recommendation:
    """Rank mechanisms by how much worse than the best they can be on the grid."""
    epsilon, delta = budget["epsilon"], budget["delta"]
    for axis, value in {"d": d, "k": k, "epsilon": epsilon, "delta": delta}.items():
        ends = [each for each in GRID[axis] if each > 0]
        if value > 0 and not ends[0] <= value <= ends[-1]:
            raise InputError(
                f"{axis} must be from {ends[0]:g} to {ends[-1]:g} unless n is given, "
                f"and a gap or a spectrum, got {value!r}"
            )

    def at(signal: float) -> dict[str, Array]:
        replaced = budget["relation"] is Relation.REPLACE_ONE
        point = {"delta": delta, "epsilon": epsilon, "d": d, "k": k, "signal": signal}
        found = grid.at(replaced=replaced, **point)
        return {x: found[x] for x in found if among is None or x in among}

    signals = GRID["signal"]
    shown = signals[len(signals) // 2]
    missing = "neither n nor a gap is" if gap is None else "n is not"
    if n is not None:
        if n < d:
            raise InputError(
                f"n must be at least d = {d} unless a gap or a spectrum is given, got "
                f"{n!r}"
            )
        most = n * epsilon / k
        if most < signals[0]:
            raise InputError(
                f"n epsilon/k must be at least {signals[0]:g} unless a gap or a "
                f"spectrum is given, got {most:.3g}"
            )
        signals = tuple(each for each in signals if each <= most)
        shown = min(max(_USUAL_SHARE * most, signals[0]), signals[-1])
        missing = "no gap is"
    notes = (
        f"{missing} given: ranked by how many times the least error it is at worst, "
        f"for n epsilon gap/row_norm^2 from {signals[0]:g} to {signals[-1]:g}",
        f"errors are those where that is {shown:.3g}, and the gap "
        f"{_USUAL_SHARE * row_norm**2 / k:.3g}",
        _EVEN,
        _ALONE,
    )
    everywhere, here = [at(each) for each in signals], at(shown)
    choices = []
    for name in here:
        ratio = max(
            found[name][1] / min(error[1] for error in found.values())
            for found in everywhere
        )
        low, middle, high = map(digits, here[name])
        choices.append(Choice(name, middle, low, high, digits(ratio)))
    choices.sort(key=lambda choice: (choice.at_worst, choice.error))
    return Recommendation(tuple(choices), notes, f"{grid.origin}, and interpolated")


def _checked_spectrum(
    spectrum: Sequence[float], d: int, k: int, n: int, row_norm: float | None
) -> list[float]:
    """Return the eigenvalues in units of row_norm^2 if there is one, or raise."""
    values = [check_nonnegative("spectrum", value) for value in spectrum]
    if not k < len(values) <= d:
        raise InputError(
            f"spectrum must have from {k + 1} to {d} eigenvalues, got {len(values)}"
        )
    if any(b > a for a, b in pairwise(values)) or values[k - 1] == values[k]:
        raise InputError(
            f"spectrum must fall, and between eigenvalues {k} and {k + 1} by more than "
            f"0, got {values!r}"
        )
    if row_norm is not None and sum(values) > row_norm**2 * (1 + 1e-9):
        raise InputError(
            f"spectrum must add up to at most row_norm^2 = {row_norm**2:g}, the mean "
            f"squared length of a row, got {sum(values):g}"
        )
    positive = sum(value > 0 for value in values)
    if positive > n:
        raise InputError(
            f"spectrum must have at most n = {n} eigenvalues above 0, got {positive}"
        )
    return [value / (row_norm or 1.0) ** 2 for value in values]
