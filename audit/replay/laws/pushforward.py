r"""Laws of functions of draws: which noise it is that code makes of other draws.

Code rarely draws Laplace noise as such. It takes a logarithm of a uniform number, the
difference of two exponential ones, a random sign times an exponential one, the floor of
something. Such a number is a function g(z) of independent standard draws z, and no
data. Its law is the pushforward of theirs under g, the same in every execution in which
the function is the same. So noise that is made this way is one draw of that law, as if
the code had asked for it.

`identify` says which law it is, a + b X with X of a known kind. It tries in this order:

1. **One draw, monotone.** If g(Q(p)) does not decrease for the quantile function Q of
   the draw, it is the quantile function of g(z); if it does not increase, it is so read
   backwards. If g(Q(p)) = g(Q(1 - p)), then g(Q(p/2)) takes its place. Two laws
   are one if their quantile functions are. So g(z) = a + b X holds if that function is
   a + b Q_X(p), or, for b < 0, a + b Q_X(1 - p), at every p of a grid with tails down
   to 1e-9, to a relative 1e-6. What passes that is not told from a + b X by losses.
   Where g has comparisons in it, the grid has a point in each of their pieces.
   The quantiles of a law F at a uniform number between a and b are a draw of that law,
   given that it lies between F^-1(a) and F^-1(b): P(F^-1(U) <= x) = (F(x) - a)/(b - a).
2. **Sums, products and logarithms of independent parts**, by identities:
   E - E' is Laplace, G - G' logistic (E exponential, G Gumbel, of one scale), a fair
   sign times E is Laplace, a fair sign times |N| is N, sqrt(2 E) N is Laplace (E given,
   it is N(0, 2 E), whose mixture has the characteristic function 1/(1 + t^2)), and
   sqrt(2 E) cos(2 pi U) is N (Box, Muller 1958). log(x y) = log x + log y.
3. **On a lattice.** If g(z) takes values in a + h Z alone, its probabilities are
   differences of the distribution function, found by bisection; those of sums and
   differences of independent such parts are convolutions.
4. **By simulation.** A million draws are made once, and their empirical distribution is
   held to that of each kind. It lies within 1.95/1000 of the true one with probability
   at least 0.999 (Massart 1990). What fits is *taken for* that law, and `exact` is
   False, so that a report can say so. The same holds where a function of one draw goes
   up and down, and its values were sorted. The scale is taken for 1.01 times (if
   sorted, 1.002 times) what the quartiles say, so that its error refutes nothing.
"""

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.by_name import Density, GammaDifference, law_by_name
from dpaudit.audit.replay.laws.coded import MOST_STEPS, Family, Lattice, code_of
from dpaudit.audit.replay.laws.cuts import Cut, WidenedLattice
from dpaudit.audit.replay.laws.expressions import (
    Applied,
    Expression,
    Number,
    Root,
    evaluate,
    roots,
)
from dpaudit.audit.replay.laws.one_draw import (
    SYMMETRIC,
    DrawLaw,
    distribution,
    kinds,
    normal_form,
    of_one,
)
from dpaudit.audit.replay.laws.pieces import few_values, resolved

__all__ = ["family_of", "identify"]

_OTHERS = {
    "cauchy": ("t", (1.0,)),
    "rayleigh": ("rayleigh", ()),
    "half gaussian": ("halfnorm", ()),
    "planar radius": ("gamma", (2.0,)),
}
"""Kinds that are no families, by their names in SciPy."""
_SIGNS = {"add": 1.0, "subtract": -1.0}
_MOST_PARTS = 1000
_SIMULATED = 2**20
_END = 1e-12  # of probabilities
_FITS = 1.95 / math.sqrt(_SIMULATED)


@lru_cache(maxsize=1024)
def identify(expression: Expression) -> DrawLaw | None:
    """Return the law of a function of draws, None where it is none that is known.

    Examples
    --------
    >>> u = Root(0, "uniform")
    >>> identify(Applied("negative", (Applied("log", (u,)),))).kind
    'exponential'
    """
    found = _by_structure(expression)
    if found is None:
        over = roots(expression)
        few = few_values(expression)
        if few is not None:
            found = DrawLaw.on_lattice(*few)
        elif len(over) == 1:
            found = of_one(expression, next(iter(over.values())), resolved)
        elif over:
            found, settled = _by_identity(expression)
            if found is None:
                found = _of_known(expression)
            if found is None and not settled:
                found = _by_simulation(expression, over)
    return found


def _by_structure(expression: Expression) -> DrawLaw | None:
    """Return the law of a draw, or of a multiple of what is known."""
    if isinstance(expression, Root):
        law = expression.law
        if isinstance(law, Density):
            coded = DrawLaw(0.0, 1.0, "coded", law=law)
            return law_by_name(law.name, law.parameters) or coded
        return DrawLaw(0.0, 1.0, expression.kind, expression.lattice, law=law)
    if isinstance(expression, Number):
        return None
    name, parts = expression.name, expression.parts
    if name.endswith((".ppf", ".isf")):
        named = [float(part.value) for part in parts[1:] if isinstance(part, Number)]
        return _quantiles(
            law_by_name(name[:-4], tuple(named)), name, identify(parts[0])
        )
    if name == "negative":
        return _affine(identify(parts[0]), -1.0, 0.0)
    numbers = [part.value for part in parts if isinstance(part, Number)]
    others = [part for part in parts if not isinstance(part, Number)]
    if len(numbers) != 1 or len(others) != 1:
        return None
    number, law, first = numbers[0], identify(others[0]), parts[0] is others[0]
    if name == "add":
        return _affine(law, 1.0, number)
    if name == "subtract":
        return _affine(law, *((1.0, -number) if first else (-1.0, number)))
    if name == "multiply" and number:
        return _affine(law, number, 0.0)
    if name == "divide" and first and number:
        return _affine(law, 1.0 / number, 0.0)
    return None


def _quantiles(law: DrawLaw | None, name: str, at: DrawLaw | None) -> DrawLaw | None:
    """Return the law of a law's quantiles at a uniform number, None at any other."""
    if law is None or at is None or at.kind != "uniform":
        return None
    low, high = sorted((at.shift, at.shift + at.scale))
    # A bound that rounding moved is none: there would be no draws beyond it.
    low, high = 0.0 if abs(low) < _END else low, 1.0 if abs(1 - high) < _END else high
    if (low, high) == (0.0, 1.0):
        return law
    code = family_of(law)[2]
    known = 0 <= low and high <= 1 and code != Family.UNKNOWN and law.lattice is None
    # Of a standard draw: the law is one, or the negative of one.
    way = "isf" if name.endswith("isf") == (law.scale > 0) else "ppf"
    inverse = getattr(distribution(code), way, None) if known else None
    if inverse is None:
        return None
    ends = sorted((float(inverse(low)), float(inverse(high))))
    return replace(law, kind="coded", law=Cut(code, ((ends[0], ends[1]),)))


def _affine(law: DrawLaw | None, factor: float, add: float) -> DrawLaw | None:
    if law is None:
        return None
    shift, scale = law.shift * factor + add, law.scale * factor
    return normal_form(shift, scale, law)


def _of_known(expression: Expression) -> DrawLaw | None:
    """Return the law of a function of one part whose law is known by itself."""
    assert isinstance(expression, Applied)
    inner = [part for part in expression.parts if not isinstance(part, Number)]
    law = identify(inner[0]) if len(inner) == 1 else None
    if law is None:
        return None
    root = Root(0, law.kind, law.lattice, law.law)
    scaled = Applied("multiply", (Number(law.scale), root))
    whole = Applied("add", (Number(law.shift), scaled))
    parts = tuple(whole if part is inner[0] else part for part in expression.parts)
    made = of_one(Applied(expression.name, parts), root, resolved)
    return None if made is None else replace(made, exact=made.exact and law.exact)


def _by_identity(expression: Expression) -> tuple[DrawLaw | None, bool]:
    """Return the law of a function of independent parts, and whether that is settled.

    A sum of parts whose laws are known is no law of these kinds, if it is none by an
    identity: it is not taken for one because it is near it.
    """
    assert isinstance(expression, Applied)
    name, parts = expression.name, expression.parts
    split = {"multiply": "add", "divide": "subtract"}
    inner = parts[0]
    if name == "log" and isinstance(inner, Applied) and inner.name in split:
        logs = tuple(Applied("log", (part,)) for part in inner.parts)
        return identify(Applied(split[inner.name], logs)), True
    if name not in ("add", "subtract", "multiply", "copysign") or len(parts) != 2:
        return None, False
    if set(roots(parts[0])) & set(roots(parts[1])):
        whole = _collected(expression)
        return (None, False) if whole is None else (identify(whole), True)
    first, second = (identify(part) for part in parts)
    if first is None or second is None:
        return None, False
    exact = first.exact and second.exact
    if name in ("add", "subtract"):
        other = second if name == "add" else _affine(second, -1.0, 0.0)
        assert other is not None
        made = _sum(first, other)
    elif name == "copysign":
        signed = second.half_width > 0 or (
            second.kind in SYMMETRIC and not second.shift
        )
        signed |= second.kind == "uniform" and second.shift == -second.scale / 2
        made = _signed(first) if signed else None
    else:
        made = _product(first, second) or _product(second, first)
    if made is None:
        return None, name != "multiply" or "lattice" in (first.kind, second.kind)
    return replace(made, exact=exact and made.exact), True


def _collected(expression: Expression) -> Expression | None:
    """Return a sum with each of its parts once, None where none occurs again."""
    found: dict[Expression, float] = {}
    constant, seen, steps = 0.0, 0, 0
    left = [(expression, 1.0)]
    while left and (steps := steps + 1) <= _MOST_PARTS:
        part, factor = left.pop()
        name = part.name if isinstance(part, Applied) else ""
        parts: tuple[Expression, ...] = getattr(part, "parts", ())
        numbers = [each for each in parts if isinstance(each, Number)]
        others = [each for each in parts if not isinstance(each, Number)]
        if isinstance(part, Number):
            constant += factor * part.value
        elif name in ("add", "subtract"):
            left += [(parts[0], factor), (parts[1], factor * _SIGNS[name])]
        elif name == "negative":
            left.append((parts[0], -factor))
        elif name == "multiply" and len(numbers) == len(others) == 1:
            left.append((others[0], factor * numbers[0].value))
        elif name == "divide" and others == [parts[0]] and numbers[0].value:
            left.append((parts[0], factor / numbers[0].value))
        else:
            seen += 1
            found[part] = found.get(part, 0.0) + factor
    size = max(map(abs, found.values()), default=0.0)
    kept = {part: f for part, f in found.items() if abs(f) > 1e-12 * size}
    if left or not 0 < len(kept) < seen:
        return None
    whole: Expression = Number(constant)
    for part, factor in kept.items():
        whole = Applied("add", (whole, Applied("multiply", (Number(factor), part))))
    return whole


def _sum(one: DrawLaw, two: DrawLaw) -> DrawLaw | None:
    shift = one.shift + two.shift
    kinds = {one.kind, two.kind}
    same = math.isclose(one.size, two.size, rel_tol=1e-9)
    opposite = one.scale * two.scale < 0
    if kinds == {"gaussian"}:
        return DrawLaw(shift, math.hypot(one.scale, two.scale), "gaussian")
    if kinds == {"exponential"} and same and opposite:
        return DrawLaw(shift, one.size, "laplace")
    if kinds == {"gumbel"} and same and opposite:
        return DrawLaw(shift, one.size, "logistic")
    if kinds == {"lattice"} and same:
        assert one.lattice is not None
        assert two.lattice is not None
        law = one.lattice.less_its_like(two.lattice) if opposite else None
        if law is not None:
            return DrawLaw(shift, one.scale, "lattice", law)
        (start, p), (start2, p2) = one.lattice.table(), two.lattice.table()
        ends = two.lattice.ends
        if opposite:
            start2, p2, ends = -(start2 + len(p2) - 1), p2[::-1], ends[::-1]
        if len(p) + len(p2) > 4 * MOST_STEPS:
            return None
        made = Lattice.of(start + start2, np.convolve(p, p2), 1e-13)
        made = replace(made, far=tuple(map(min, one.lattice.ends, ends)))
        return DrawLaw(shift, one.scale, "lattice", made)
    if kinds == {"lattice", "uniform"}:
        return _steps(*((one, two) if one.lattice is not None else (two, one)), shift)
    return _gammas(one, two, shift) if same else None


def _steps(whole: DrawLaw, uniform: DrawLaw, shift: float) -> DrawLaw | None:
    """Return the law of a number on a lattice with a uniform number on top."""
    width = uniform.scale / whole.size
    if whole.lattice is None or not 0 < width <= 1 + 1e-9:
        return None
    start, p = whole.lattice.table()
    if whole.scale < 0:
        start, p = -(start + len(p) - 1), p[::-1]
    lattice = whole.lattice if whole.scale > 0 else Lattice.of(start, p, 1e-13)
    steps = WidenedLattice(lattice, min(1.0, float(f"{width:.12g}")))
    return DrawLaw(shift, whole.size, "coded", law=steps)


def _gammas(one: DrawLaw, two: DrawLaw, shift: float) -> DrawLaw | None:
    """Return the law of a sum of gamma draws, or of differences of such."""
    shapes = [0.0, 0.0]
    for each in (one, two):
        pair = _shapes(each)
        if pair is None:
            return None
        shapes = [a + b for a, b in zip(shapes, pair, strict=True)]
    shape, other = (float(f"{a:.12g}") for a in shapes)
    scale = one.size if shape else -one.size
    if {shape, other} == {0.0, 1.0}:
        return DrawLaw(shift, scale, "exponential")
    if not (shape and other):
        return DrawLaw(shift, scale, "coded", law=Density("gamma", (shape or other,)))
    if shape == other == 1:
        return DrawLaw(shift, one.size, "laplace")
    return DrawLaw(shift, one.size, "coded", law=GammaDifference(shape, other))


def _shapes(law: DrawLaw) -> tuple[float, float] | None:
    """Return the shapes of the gamma draws that a number is the difference of."""
    if law.kind == "laplace":
        return 1.0, 1.0
    if law.kind == "exponential":
        shapes = 1.0, 0.0
    elif isinstance(law.law, GammaDifference):
        shapes = law.law.shape, law.law.other
    elif isinstance(law.law, Density) and law.law.name == "gamma":
        shapes = law.law.parameters[0], 0.0
    else:
        return None
    return shapes if law.scale > 0 else shapes[::-1]


def _signed(law: DrawLaw) -> DrawLaw | None:
    """Return the law of a number with a fair sign of its own."""
    if law.shift:
        return None
    if law.kind in SYMMETRIC:
        return law
    kind = {"exponential": "laplace", "half gaussian": "gaussian"}.get(law.kind)
    return None if kind is None else DrawLaw(0.0, law.size, kind)


def _product(one: DrawLaw, two: DrawLaw) -> DrawLaw | None:
    if one.half_width:
        return _affine(_signed(two), one.half_width, 0.0)
    if one.kind == "rayleigh" and not one.shift:
        other = {"gaussian": "laplace", "arcsine": "gaussian"}.get(two.kind)
        if other is not None and not two.shift:
            return DrawLaw(0.0, one.size * two.size, other)
    return None


def _by_simulation(expression: Expression, over: dict[int, Root]) -> DrawLaw | None:
    """Return the kind that a million draws fit, if they fit one."""
    rng = np.random.Generator(np.random.PCG64(20_260_101))  # in an execution, too
    draws: list[Array] = [np.empty(0)] * (max(over) + 1)
    for slot, root in over.items():
        own = root.law or root.lattice
        if own is not None:
            draws[slot] = own.sample(rng, _SIMULATED)
        else:
            draws[slot] = kinds()[root.kind].ppf(rng.random(_SIMULATED))
    values = evaluate(expression, draws)
    if values.shape != (_SIMULATED,) or not np.isfinite(values).all():
        return None
    values = np.sort(values.astype(np.float64))
    if len(np.unique(values[:1000])) < 500:
        return None
    quartiles = values[[_SIMULATED // 4, 3 * _SIMULATED // 4]]
    ranks = (np.arange(_SIMULATED) + 0.5) / _SIMULATED
    for kind, law in kinds().items():
        low, high = law.ppf((0.25, 0.75))
        scale = float((quartiles[1] - quartiles[0]) / (high - low))
        shift = float(quartiles[1] - scale * high)
        if abs(shift) > 0.01 * scale:
            continue
        if all(
            np.abs(law.cdf(values[::thin] / scale) - ranks[::thin]).max() <= _FITS
            for thin in (1024, 1)
        ):
            # The quartiles of a million draws are off by less than 0.01 of the scale.
            return DrawLaw(0.0, 1.01 * scale, kind, exact=False)
    return None


def family_of(law: DrawLaw) -> tuple[float, float, int]:
    """Return a law as shift, scale, and the family, or code, of standard draws."""
    if law.kind.upper() in Family.__members__:
        return law.shift, law.scale, Family[law.kind.upper()]
    other = law.law or law.lattice
    if law.kind in _OTHERS:
        other = Density(*_OTHERS[law.kind])
    if isinstance(other, GammaDifference) and other.shape != other.other:
        other = None  # the density is not known
    code = None if other is None else code_of(other)
    if code is not None:
        return law.shift, law.scale, code
    return 0.0, 1.0, Family.UNKNOWN
