"""Laws of functions of one draw, by its quantiles: continuous, and with steps.

The head of `dpaudit.audit.replay.laws.pushforward` says how, and what it proves.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.coded import MOST_STEPS, STANDARD, Lattice, law_of
from dpaudit.audit.replay.laws.expressions import Expression, Root, evaluate

__all__ = ["SYMMETRIC", "DrawLaw", "distribution", "kinds", "normal_form", "of_one"]

_TAILS = 10.0 ** -np.arange(3, 10)
_HALF = np.sort(np.concatenate([_TAILS, np.linspace(0.002, 0.5, 250)]))
_GRID = np.unique(np.concatenate([_HALF, 1 - _HALF]))  # symmetric about 1/2
_NEAR = 1e-6  # relative, of quantiles
_ROUGH = 2e-3  # the same, of values that were sorted
_LEAST = 1e-8  # of probabilities that are differences of others
_TAIL = 1e-7  # a probability, beyond which quantiles lose digits
_FAR = 2.0 ** np.arange(21) - 0.5  # steps up to where they go on alike
# By how much the logarithm of a density falls with each 1, far below and above; 0 where
# there is nothing.
_RATES = {
    "gaussian": (math.inf, math.inf),
    "half gaussian": (0.0, math.inf),
    "rayleigh": (0.0, math.inf),
    "laplace": (1.0, 1.0),
    "logistic": (1.0, 1.0),
    "exponential": (0.0, 1.0),
    "gumbel": (math.inf, 1.0),
    "planar radius": (0.0, 1.0),
}


@dataclass(frozen=True)
class DrawLaw:
    """The law of a + b X.

    Parameters
    ----------
    shift, scale : float
        a and b; b may be negative.
    kind : str
        Of X: those of `Root`, "lattice", or one of which there are no draws by
        themselves: "rayleigh", "half gaussian", "arcsine", "cauchy",
        "planar radius" (gamma of shape 2); or "coded".
    lattice : Lattice, optional
    exact : bool
        Whether it is known, not found by simulation.
    law : object, optional
        With "coded": another law that has a code.
    """

    shift: float
    scale: float
    kind: str
    lattice: Lattice | None = None
    exact: bool = True
    law: Any = None

    @classmethod
    def on_lattice(
        cls,
        values: Array,
        p: Array,
        least: float = 1e-13,
        falls: tuple[float, ...] = (),
    ) -> "DrawLaw | None":
        """Return the law of numbers with probabilities, if they lie on a + h Z.

        By how much the logarithm of a probability falls far out, below and above, may
        be given, for numbers that lie 1 apart.
        """
        if not np.isfinite(values).all():
            return None
        levels, where = np.unique(values.astype(np.float64), return_inverse=True)
        if len(levels) == 1:
            return None
        mass = np.zeros(len(levels))
        np.add.at(mass, where.ravel(), p)
        whole = (levels == np.rint(levels)).all()
        shift, h = (0.0, 1.0) if whole else (levels[0], np.diff(levels).min())
        k: Array = np.rint((levels - shift) / h)
        if np.abs(shift + h * k - levels).max() > 1e-9 * h or np.ptp(k) > MOST_STEPS:
            return None
        start = int(k[0])
        table = np.zeros(int(np.ptp(k)) + 1)
        table[(k - start).astype(np.intp)] = mass
        if min(mass[0], mass[-1]) < 1e-6:
            lattice = Lattice.of(start, table, least)
            sides = zip((lattice.below, lattice.above), falls, strict=False)
            far = (side if side == math.inf else fall * h for side, fall in sides)
            lattice = replace(lattice, far=tuple(far))
        else:
            lattice = Lattice.among(range(start, start + len(table)), table.tolist())
        return cls(float(shift), float(h), "lattice", lattice)

    @property
    def size(self) -> float:
        """|b|."""
        return abs(self.scale)

    @property
    def half_width(self) -> float:
        """The number that it is, or its negative, with one probability; else 0."""
        if self.lattice is None or len(self.lattice.log) > 64:
            return 0.0
        start, p = self.lattice.table()
        seen = np.flatnonzero(p)
        ends = self.shift + self.scale * (start + seen)
        if len(seen) != 2 or abs(ends.sum()) > 1e-12 * abs(ends[0]):
            return 0.0
        return float(abs(ends[0])) if abs(p[seen[0]] - 0.5) < 1e-12 else 0.0


@cache
def kinds() -> dict[str, Any]:
    """Return the laws that noise may have, by their names."""
    from scipy import stats

    return {
        **{family.words: each.law for family, each in STANDARD.items()},
        "rayleigh": stats.rayleigh(),
        "half gaussian": stats.halfnorm(),
        "arcsine": stats.arcsine(loc=-1, scale=2),
        "cauchy": stats.cauchy(),
        "planar radius": stats.gamma(2),
    }


SYMMETRIC = ("gaussian", "laplace", "logistic", "arcsine", "cauchy")


@cache
def _quantiles() -> dict[str, Array]:
    return {name: kind.ppf(_GRID) for name, kind in kinds().items()}


def distribution(of: int | Root) -> Any:
    """Return the law of a family of standard draws, or of a root, as SciPy has it.

    None if it is none that SciPy has, as of those on a lattice, or of two gamma draws.
    """
    if isinstance(of, Root) and of.law is None:
        return kinds()[of.kind]
    return getattr(of.law if isinstance(of, Root) else law_of(of), "law", None)


def normal_form(shift: float, scale: float, law: DrawLaw) -> DrawLaw:
    """Return a law with a positive scale where its kind is symmetric."""
    if law.kind in SYMMETRIC:
        scale = abs(scale)
    if law.kind == "uniform" and scale < 0:
        shift, scale = shift + scale, -scale
    return DrawLaw(shift + 0.0, scale, law.kind, law.lattice, law.exact, law.law)


def of_one(
    expression: Expression,
    root: Root,
    resolved: Callable[[Expression, Root, Array], bool],
) -> DrawLaw | None:
    """Return the law of a function of one draw.

    `resolved` says whether draws lie in each piece of what has steps in it.
    """
    if root.lattice is not None:
        start, p = root.lattice.table()
        values = evaluate(expression, _at(root, start + np.arange(len(p))))
        return DrawLaw.on_lattice(np.broadcast_to(values, p.shape), p)
    law = distribution(root)
    if law is None or not resolved(expression, root, law.ppf(_GRID)):
        return None

    def at(x: Array) -> Array:
        return evaluate(expression, _at(root, x)).astype(np.float64)

    def of(p: Array) -> Array:
        return at(law.ppf(p))

    values = of(_GRID)
    if values.shape != _GRID.shape or np.isnan(values).any():
        return None
    found = _ascending(values)
    if found is None and np.allclose(values, values[::-1], rtol=1e-7, atol=1e-12):
        half = of(_GRID / 2)  # the same as at 1 - p/2, and as probable as both
        found = _ascending(half)
        if found is not None and len(np.unique(found)) < len(found) // 2:
            return _by_steps(lambda p: of(p / 2))
    if found is None:
        return _by_sorting(of)
    if len(np.unique(found)) < len(found) // 2:
        return _by_steps(of, at, root.kind)
    return _matching(found, _NEAR)


def _ascending(values: Array) -> Array | None:
    """Return values that are monotone in ascending order."""
    steps = np.diff(values)
    if (steps <= 0).all():
        return values[::-1]
    return values if (steps >= 0).all() else None


def _at(root: Root, values: Array) -> list[Array]:
    return [values] * (root.slot + 1)


def _matching(quantiles: Array, near: float) -> DrawLaw | None:
    """Return which kind has these quantiles, at the points of the grid."""
    some = ~np.isnan(quantiles)
    if not np.isfinite(quantiles[some]).all():
        return None
    low, high = np.searchsorted(_GRID, (0.25, 0.75))
    for kind, own in _quantiles().items():
        for sign, q in ((1.0, own), (-1.0, -own[::-1])):
            scale = (quantiles[high] - quantiles[low]) / (q[high] - q[low])
            shift = quantiles[high] - scale * q[high]
            if abs(shift) <= near * abs(scale):
                shift = 0.0
            off = np.abs(quantiles - (shift + scale * q)) / (scale + np.abs(quantiles))
            if scale > 0 and (off[some] <= near).all():
                law = DrawLaw(0.0, 1.0, kind)
                rounded = _round(scale), _round(shift)
                return normal_form(rounded[1], sign * rounded[0], law)
            if kind in SYMMETRIC or kind == "uniform":
                break
    return None


def _round(number: float) -> float:
    """Return a number without the digits that the fit has made up."""
    return float(f"{number:.9g}")


def _by_sorting(of: Callable[[Array], Array]) -> DrawLaw | None:
    """Return the law of a function that goes up and down, by its sorted values.

    It is taken for that law, and its scale for one that is no smaller than it may be.
    """
    count = 2**18
    values = np.sort(of((np.arange(count) + 0.5) / count))
    inner = (_GRID > 1e-3) & (_GRID < 1 - 1e-3)
    found = np.where(inner, values[(_GRID * count).astype(np.intp)], np.nan)
    law = _matching(found, _ROUGH)
    if law is None:
        return None
    return replace(law, scale=law.scale * (1 + _ROUGH), exact=False)


def _by_steps(
    of: Callable[[Array], Array],
    at: Callable[[Array], Array] | None = None,
    kind: str = "",
) -> DrawLaw | None:
    """Return the law of a monotone function of one draw that has steps.

    Its probabilities lie between the p at which it comes past each level. Where it is
    given as one of the draw, too, and of which kind that is, its tails are known.
    """
    values = of(_GRID)
    levels = np.unique(values)
    if (levels == np.rint(levels)).all() and levels[-1] - levels[0] <= MOST_STEPS:
        levels = np.arange(levels[0], levels[-1] + 1, dtype=np.float64)
    elif len(levels) > 64:
        return None
    increasing = values[-1] >= values[0]
    left, right = np.zeros(len(levels) - 1), np.ones(len(levels) - 1)
    for _ in range(60):  # bisection
        middle = (left + right) / 2
        above = of(np.clip(middle, 1e-300, 1 - 1e-16)) > levels[:-1]
        past = above == increasing
        right, left = np.where(past, middle, right), np.where(past, left, middle)
    ends = np.concatenate([[0.0], left, [1.0]] if increasing else [[1.0], left, [0.0]])
    p = np.abs(np.diff(ends))
    falls = _falls(left, at, kind) if at is not None and kind in _RATES else ()
    falls = falls if increasing else falls[::-1]
    return DrawLaw.on_lattice(levels, np.where(p < 1e-14, 0.0, p), _LEAST, falls)


def _falls(past: Array, at: Callable[[Array], Array], kind: str) -> tuple[float, ...]:
    """Return by how much log-probabilities fall with each 1 between levels, far out.

    Where the draw is small and where it is large, and on average at least; 0 where that
    is not known. Given are the p at which a draw of a kind comes past levels, and what
    it becomes. Its steps must go on as the last ones do, as far as a million of them.
    """
    x = np.unique(kinds()[kind].ppf(past[(past > _TAIL) & (past < 1 - _TAIL)]))
    if len(x) < 2:
        return ()
    falls = []
    for (first, second), rate in zip((x[:2], x[:-3:-1]), _RATES[kind], strict=True):
        beyond = (first - second) * _FAR
        with np.errstate(all="ignore"):
            moved = at(first + beyond) - at(first - beyond[:1])
            off = np.abs(moved / moved[0] - _FAR - 0.5)
        wide = float(np.abs(moved[[0, -1]]).sum())
        even = bool((off <= 1 + 1e-5 * _FAR).all())
        falls.append(rate * abs(beyond[-1]) / wide if rate and even else 0.0)
    return tuple(falls)
