r"""Which mechanism for private PCA to take: by errors that are measured.

How far noise turns the principal components depends on the length d of a row, the
number k of components, the budget and the relation, the number n of rows, and the
eigenvalues of their mean second moment. Where n and the eigenvalues are known, or n and
a gap, `recommend` measures every mechanism at once on a second moment like that
(`dpaudit.algorithms.estimators.turning`); all of that must be public, and no data are
read.

Where they are not, it looks at a grid that was measured before. There the k largest
eigenvalues are equal, and so are those below a gap of R^2/(10 k), in random axes, and
rows matter by

.. math:: \text{signal} = \frac{n \, \varepsilon \, \text{gap}}{R^2}

with rows no longer than R. (Of all eigenvalues with one gap these are turned most by
noise that is added to the second moment: it turns two axes by its entry over the
difference of their eigenvalues.) Every mechanism that reads the second moment alone,
and whose claim is proven, is on the grid: the median of the error, and the quantiles
between which four of five releases are. Between its points logarithms are interpolated;
outside of it nothing is said.

The estimator's ``mechanism="auto"`` is the answer of the grid, among the mechanisms
that release a second moment: of others some release nothing where the signal is too
weak. ``dpaudit report run recommend-grid`` measures the grid, and
``dpaudit report run recommend-held-out`` how good the advice is
(`dpaudit.reports.sections.choosing`).
"""

import csv
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import numpy as np

from dpaudit.algorithms.estimators.turning import (
    MECHANISMS,
    SEED,
    digits,
    even,
    expected,
    filled,
    releases,
    slow,
)
from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.neighbours import Relation
from dpaudit.validation import (
    check_count,
    check_fraction,
    check_nonnegative,
    check_positive,
)

__all__ = ["GRID", "Choice", "Grid", "Recommendation", "recommend", "shipped_grid"]

GRID: Mapping[str, tuple[float, ...]] = {
    "replaced": (0.0, 1.0),
    "delta": (0.0, 1e-9, 1e-5),
    "epsilon": (0.1, 1.0, 10.0),
    "d": (2.0, 5.0, 10.0, 20.0, 50.0, 100.0),
    "k": (1.0, 3.0, 10.0),
    "signal": (10.0, 30.0, 100.0, 1000.0, 10_000.0),
}
"""Where mechanisms were measured; pure ones at delta = 0 alone, for any delta."""

_FILE = "recommendations.csv"
_USUAL_SHARE = 0.1  # of R^2/k: the gap for which errors are shown where none is given
_MOST_COLUMNS = 1000  # for which measuring at once takes a minute
_STRONGEST = 1e9  # a signal: beyond it errors come near the last digits of doubles
_EVEN = (
    "eigenvalues are taken as equal above the gap, and below it: noise on the second "
    "moment turns others less, so a spectrum may give another order"
)


@dataclass(frozen=True)
class Choice:
    """A mechanism, and the error that it was measured to have.

    Parameters
    ----------
    mechanism : str
        Name in the catalogue.
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
    """

    choices: tuple[Choice, ...]
    notes: tuple[str, ...]
    measured: str


@dataclass(frozen=True)
class Grid:
    """Measured errors.

    Parameters
    ----------
    errors : mapping of str to ndarray
        By mechanism: low, median and high at every point of `GRID`, with the digits
        they are shown with, shape (2, 3, 3, 6, 3, 5, 3); NaN where it was not measured.
    origin : str
        The command that measured them, and the version of dpaudit.
    """

    errors: Mapping[str, Array]
    origin: str

    @classmethod
    def parse(cls, text: str) -> "Grid":
        """Read the table that ``dpaudit report run recommend-grid`` writes.

        Lines that begin with # say where it is from.
        """
        lines = text.splitlines()
        comments = [line[1:].strip() for line in lines if line.startswith("#")]
        shape = (*map(len, GRID.values()), 3)
        errors: dict[str, Array] = {}
        for row in csv.DictReader(line for line in lines if not line.startswith("#")):
            place = tuple(
                int(np.argmin(np.abs(np.array(points) - float(row[axis]))))
                for axis, points in GRID.items()
            )
            found = errors.setdefault(row["mechanism"], np.full(shape, np.nan))
            found[place] = [float(row[x]) for x in ("low", "median", "high")]
        return cls(errors, " ".join(comments))

    def at(
        self,
        *,
        replaced: bool,
        delta: float,
        epsilon: float,
        d: float,
        k: float,
        signal: float,
    ) -> dict[str, Array]:
        """Return low, median and high of every mechanism that was measured nearby.

        At a point of the grid these are the very numbers that are kept. What is off the
        grid is taken at its end.
        """
        point = {"epsilon": epsilon, "d": d, "k": k, "signal": signal}
        found = {}
        for mechanism, errors in self.errors.items():
            here = errors[int(replaced)]
            if not (_measured(here, "d", d) and _measured(here, "k", k)):
                continue
            value = _interpolated(here[0], point)
            if delta > 0 and value is None:
                value = _interpolated(here[1:], {"delta": delta, **point})
            if value is not None:
                found[mechanism] = value
        return found


def _measured(errors: Array, axis: str, value: float) -> bool:
    """Say whether a value is between two of an axis that were measured, or one of them.

    Of the axes after the relation; what is off the grid is at its end.
    """
    place = tuple(GRID).index(axis) - 1
    others = tuple(i for i in range(errors.ndim) if i != place)
    there = np.array(GRID[axis])[(~np.isnan(errors)).any(axis=others)]
    clamped = min(max(value, GRID[axis][0]), GRID[axis][-1])
    return bool(len(there) and there[0] <= clamped <= there[-1])


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
    row_norm: float = 1.0,
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
    row_norm : float
        Bound on the length of a row.
    among : collection of str, optional
        The mechanisms that are to be compared.
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
    check_positive("row_norm", row_norm)
    if n is not None:
        check_count("n", n, minimum=k + 1)
    widest = row_norm**2 / k
    if gap is not None:
        check_positive("gap", gap, largest=widest * (1 + 1e-9))
    budget = {"epsilon": epsilon, "delta": delta, "relation": relation}
    if spectrum is not None:
        if n is None or gap is not None:
            raise InputError(
                "spectrum needs n beside it, and no gap, got n = "
                f"{n!r} and gap = {gap!r}"
            )
        given = _checked_spectrum(spectrum, d, k, n, row_norm)
        return _at_once(filled(given, d=d, n=n), n, k, among, budget, ())
    if n is not None and gap is not None:
        eigenvalues = even(gap / row_norm**2, d=d, k=k, n=n)
        return _at_once(eigenvalues, n, k, among, budget, (_EVEN,))
    grid = shipped_grid() if grid is None else grid
    return _of_grid(grid, d, k, n, gap, row_norm, among, budget)


def _at_once(
    eigenvalues: Array,
    n: int,
    k: int,
    among: Collection[str] | None,
    budget: Mapping[str, Any],
    notes: tuple[str, ...],
) -> Recommendation:
    """Rank mechanisms by errors that are measured now."""
    signal = n * budget["epsilon"] * (eigenvalues[k - 1] - eigenvalues[k])
    if signal > _STRONGEST:
        raise InputError(
            "n epsilon gap/row_norm^2 must be at most "
            f"{_STRONGEST:g}, got {signal:.3g}: any mechanism will do there"
        )
    d, choices, beside = len(eigenvalues), [], []
    for name in MECHANISMS if among is None else among:
        if slow(name, d):
            beside.append(f"{name} is not measured: a release takes seconds")
            continue
        try:
            found = expected(name, eigenvalues, n=n, k=k, **budget)
        except InputError as error:
            beside.append(f"{name} is not measured: {error}")
            continue
        if found is not None:
            low, middle, high = found
            choices.append(Choice(name, middle, low, high))
    choices.sort(key=lambda choice: (choice.error, choice.high))
    fewest = min((releases(choice.mechanism, d) for choice in choices), default=0)
    origin = f"now, {fewest} releases or more of each (seed {SEED})"
    return Recommendation(tuple(choices), (*notes, *beside), origin)


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
        found = grid.at(
            replaced=budget["relation"] is Relation.REPLACE_ONE,
            delta=delta,
            epsilon=epsilon,
            d=d,
            k=k,
            signal=signal,
        )
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
    spectrum: Sequence[float], d: int, k: int, n: int, row_norm: float
) -> list[float]:
    """Return the eigenvalues in units of the squared length of a row, or raise."""
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
    if sum(values) > row_norm**2 * (1 + 1e-9):
        raise InputError(
            f"spectrum must add up to at most row_norm^2 = {row_norm**2:g}, the mean "
            f"squared length of a row, got {sum(values):g}"
        )
    positive = sum(value > 0 for value in values)
    if positive > n:
        raise InputError(
            f"spectrum must have at most n = {n} eigenvalues above 0, got {positive}"
        )
    return [value / row_norm**2 for value in values]


@cache
def shipped_grid() -> Grid:
    """Return the grid that ships with dpaudit."""
    path = files("dpaudit.algorithms.estimators").joinpath(_FILE)
    return Grid.parse(path.read_text(encoding="utf-8"))


def _interpolated(values: Array, point: Mapping[str, float]) -> Array | None:
    """Return what is between the points of a grid, linear in logarithms.

    Corners that were not measured are left out; None if all of those near were not.
    """
    places, weights = [0], np.ones(1)
    flat = values.reshape(-1, values.shape[-1])
    for axis, wanted in point.items():
        points = [each for each in GRID[axis] if each > 0]
        value = min(max(wanted, points[0]), points[-1])
        low = (
            min(int(np.searchsorted(points, value, side="right")), len(points) - 1) - 1
        )
        share = math.log(value / points[low]) / math.log(points[low + 1] / points[low])
        places = [
            place * len(points) + index for place in places for index in (low, low + 1)
        ]
        weights = np.outer(weights, [1 - share, share]).ravel()
    corners = flat[places]
    weights = np.where(np.isnan(corners[:, 0]), 0.0, weights)
    used = weights > 0
    if not used.any():
        return None
    if used.sum() == 1:  # what was measured is not rounded once more
        return np.asarray(corners[used][0])
    return np.asarray(np.exp(weights[used] @ np.log(corners[used]) / weights.sum()))
