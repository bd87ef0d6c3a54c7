"""Noise that code makes as a radius times a direction: one vector with a joint law.

A Gaussian vector divided by its norm is a direction, independent of the norm (its law
does not change by rotations); a direction times a radius of its own has a density that
`dpaudit.audit.replay.laws.drawn` knows, or is Gaussian again where the radius has the
law of the norm. The steps in between (the square of the norm, the norm, the direction)
are draws that are made of the Gaussian ones, and may be used once alone, as all that is
made of draws (`dpaudit.audit.replay.follow.made`).

In the plane a direction is an angle. Data with a von Mises draw added are a noisy value
modulo the circle (`dpaudit.audit.replay.laws.drawn`), and no other number.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.made import DerivedBlock, Joint
from dpaudit.audit.replay.follow.tape import Tape
from dpaudit.audit.replay.follow.tracked import Tracked, isinstance_tracked, numeric
from dpaudit.audit.replay.laws.by_name import Density
from dpaudit.audit.replay.laws.coded import Family, code_of, law_of
from dpaudit.audit.replay.laws.drawn import TURN, Angle, Dirichlet, JointNoise
from dpaudit.audit.replay.laws.expressions import Applied, Number, Root

__all__ = ["directed", "new_draws", "norm", "radius_of"]

_STEPS = frozenset({"divide", "true_divide", "matmul", "multiply", "sqrt"})
_MOST = 300  # entries of a vector
_Draws = NDArray[np.intp]


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    """Return the Euclidean norm of a vector of Gaussian draws, as `numpy.linalg.norm`.

    NotImplemented of anything else.
    """
    if ord not in (None, 2) or (ord == 2 and axis is None and np.ndim(x) != 1):
        return NotImplemented
    found = _vector(x, Family.GAUSSIAN)
    shape = np.linalg.norm(np.zeros(np.shape(x)), axis=axis, keepdims=keepdims).shape
    if found is None or math.prod(shape) != 1:
        return NotImplemented
    draws, scale = found
    return _norm_of(x.tape, draws, abs(scale), shape)


def directed(name: str, parts: Any) -> Any:
    """Return what a step on the way to a radius times a direction makes of draws.

    NotImplemented where it is none.
    """
    if name == "remainder":
        return _around(*parts)
    if name == "power" and not isinstance_tracked(parts[1]) and np.all(parts[1] == 0.5):
        name, parts = "sqrt", parts[:1]
    if name not in _STEPS:
        return NotImplemented
    if not all([isinstance_tracked(each) and each.noisy for each in parts]):
        return NotImplemented
    for each in parts:
        each.settle()
    if name == "sqrt":
        return _root(parts[0])
    if len(parts) != 2 or parts[0].tape is not parts[1].tape:
        return NotImplemented
    if name == "matmul":
        return _square(*parts)
    if name != "multiply":
        made = _shares(*parts)
        return _turned(*parts) if made is NotImplemented else made
    one, two = parts if parts[1].size == 1 else parts[::-1]
    return _stretched(one, two) if two.size == 1 < one.size else NotImplemented


def _around(value: Any, period: Any) -> Any:
    """Return data with angles added, modulo the circle: angles around the data.

    They are in units of which the circle has so many as the period says.
    """
    whole = numeric(period)
    if whole is None or whole.size != 1 or not (whole > 0).all():
        return NotImplemented
    if not (isinstance_tracked(value) and value.noisy) or value.bare:
        return NotImplemented
    value.settle()
    draws, tape, unit = value.tape.draws, value.tape, float(whole.ravel()[0]) / TURN
    if value.index.shape[1] != 1 or not 0 < value.size <= _MOST:
        return NotImplemented
    numbers, coef, mean = value.index[:, 0], value.coef[:, 0], value.centre.ravel()
    family = int(draws.families[numbers[0]])
    law = law_of(family)
    if not isinstance(law, Angle) or law.mu or not draws.are_fresh(numbers, family):
        return NotImplemented
    round_once = np.allclose(np.abs(coef), unit, rtol=1e-12, atol=0)
    if not (round_once and np.isfinite(mean).all()):
        return NotImplemented
    parts = []
    for one, at, times in zip(numbers, mean.tolist(), coef.tolist(), strict=True):
        code = code_of(Angle(at / unit % TURN, law.kappa, 0.0))
        if code is None:
            return NotImplemented

        def of(drawn: Array, at: float = at, times: float = times) -> Array:
            return np.asarray((at + times * drawn) / unit % TURN)

        roots = [np.array([one])]
        parts.append(new_draws(tape, Joint("angle"), code, unit, (1,), roots, of))
    made = Tracked.joined(tape, parts).reshape(value.shape)
    made.bare = False
    return made


def _vector(
    value: Any, family: int, centre: float = 0.0
) -> tuple[_Draws, float] | None:
    """Return the draws of a vector, and how much of them it is, if of drawn ones.

    They are distinct, of that family, all so many times over; what is added is the
    same, too, that many times `centre`.
    """
    if not (isinstance_tracked(value) and value.noisy and 1 < value.size <= _MOST):
        return None
    if value.index.shape[1] != 1:
        return None
    draws, coef = value.index[:, 0], value.coef[:, 0]
    made, scale = value.tape.draws, float(coef[0])
    if (draws < 0).any() or (coef != scale).any() or not 0 < abs(scale) < math.inf:
        return None
    if (np.abs(value.centre - centre * scale) > 1e-12 * abs(centre * scale)).any():
        return None
    if centre == 0.0 and not value.bare:
        return None
    free = made.may_go_into(draws) and not made.made.touches(draws)
    if not free or len(np.unique(draws)) < len(draws):
        return None
    return (draws, scale) if (made.families[draws] == family).all() else None


def _made(value: Any, kind: str) -> tuple[_Draws, float, float] | None:
    """Return what a whole block is made of, how often it is taken, and its shape."""
    draws = value.tape.draws
    if not value.bare or value.index.shape[1] != 1:
        return None
    numbers, coef = value.index[:, 0], value.coef[:, 0]
    if (numbers < 0).any() or (coef != coef[0]).any() or not np.isfinite(coef[0]):
        return None
    made = draws.made.of(numbers)
    joint = None if made is None else made.expression
    if made is None or not isinstance(joint, Joint) or joint.kind != kind:
        return None
    roots = np.array([each[0] for each in made.roots.values()], dtype=np.intp)
    free = draws.may_go_into(numbers) and draws.may_go_into(roots)
    whole = np.array_equal(numbers, made.start + np.arange(made.size))
    return (roots, float(coef[0]), joint.gamma) if whole and free else None


def new_draws(
    tape: Tape,
    kind: Joint,
    family: int,
    factor: float,
    shape: tuple[int, ...],
    roots: list[_Draws],
    of: Callable[..., Any],
) -> Tracked:
    """Return new draws that are made of others, whose values follow from theirs."""

    def values(seed: int = 0) -> Array:
        return np.ravel(of(*[tape.draws.values[each] for each in roots]))

    made = Tracked.fresh(tape, family, values().reshape(shape), values, factor)
    numbers, flat = made.index[:, 0], np.concatenate(roots)
    slots = {k: np.full(len(numbers), one) for k, one in enumerate(flat.tolist())}
    tape.draws.go_into(numbers, DerivedBlock(kind, slots))
    tape.draws.leave_gap(tape.first_place)
    return made


def _norm_of(
    tape: Tape, draws: _Draws, scale: float, shape: tuple[int, ...], power: int = 1
) -> Any:
    name = {1: "chi", 2: "chi2"}[power]
    code = code_of(Density(name, (float(len(draws)),)))
    if code is None:
        return NotImplemented

    def of(vector: Array) -> Any:
        return (vector**2).sum() ** (power / 2)

    return new_draws(tape, Joint(name), code, scale, shape, [draws], of)


def _square(one: Any, two: Any) -> Any:
    """Return the square of a norm, as the product of a vector with itself."""
    found, other = (_vector(each, Family.GAUSSIAN) for each in (one, two))
    if found is None or other is None or one.ndim != 1 or two.ndim != 1:
        return NotImplemented
    if not np.array_equal(found[0], other[0]) or found[1] != other[1]:
        return NotImplemented
    return _norm_of(one.tape, found[0], found[1] ** 2, (), 2)


def _root(value: Any) -> Any:
    """Return a norm, as the root of its square, or of a sum of squares."""
    if value.size != 1 or not value.bare:
        return NotImplemented
    whole = _made(value, "chi2")
    if whole is not None and whole[1] > 0:
        return _norm_of(value.tape, whole[0], math.sqrt(whole[1]), value.shape)
    draws, written = value.tape.draws, _written(value)
    if written is None or len(written[0]) < 2:
        return NotImplemented
    numbers, coef = written
    roots, factors = [], []
    for number in numbers:
        made = draws.made.of(np.array([number]))
        factor = None if made is None else _squared(made.expression)
        if made is None or not factor:
            return NotImplemented
        roots.append(made.roots[0][number - made.start])
        factors.append(abs(factor))
    scale, which = factors[0] * math.sqrt(max(coef, 0.0)), np.array(roots)
    free = draws.may_go_into(which) and draws.may_go_into(numbers)
    gaussian = (draws.families[which] == Family.GAUSSIAN).all()
    alike = len({*factors}) == 1 and len(np.unique(which)) == len(which)
    if not (gaussian and free and alike and 0 < scale < math.inf):
        return NotImplemented
    return _norm_of(value.tape, which, scale, value.shape)


def _squared(expression: Any) -> float | None:
    """Return c if an expression is the square of c times a Gaussian draw."""
    if not isinstance(expression, Applied):
        return None
    name, (inner, *more) = expression.name, expression.parts
    twice = name == "multiply" and more == [inner]
    if not (twice or name == "square" or (name == "power" and more == [Number(2.0)])):
        return None
    factor = 1.0
    if isinstance(inner, Applied) and inner.name == "multiply":
        number, inner = inner.parts
        if not isinstance(number, Number):
            return None
        factor = float(number.value)
    return factor if inner == Root(0, "gaussian") else None


def _turned(value: Any, length: Any) -> Any:
    """Return a multiple of a direction, as a vector divided by its norm."""
    shape, d = np.broadcast_shapes(value.shape, length.shape), value.size
    by, own = _made(length, "chi"), _vector(value, Family.GAUSSIAN)
    if by is None or not by[1] > 0 or length.size != 1 or math.prod(shape) != d:
        return NotImplemented
    radius = radius_of(value) if d == 1 else None
    if radius is not None:
        kinds, factor = (Joint("ratio", radius[2]), Family.UNKNOWN), radius[1] / by[1]
        roots = [by[0], radius[0]]

        def ratio(vector: Array, several: Array) -> Any:
            return several.sum() / np.sqrt((vector**2).sum())

        return new_draws(value.tape, *kinds, factor, shape, roots, ratio)
    longer = _made(value, "stretched")
    if longer is not None and np.array_equal(longer[0][:d], by[0]):
        times, gamma = longer[1] / by[1], longer[2]
        draws, lengths = longer[0][:d], longer[0][d:]
        return _together(value.tape, draws, lengths, gamma, times, shape)
    if own is None or not np.array_equal(own[0], by[0]):
        return NotImplemented
    kinds, factor = (Joint("direction"), Family.UNKNOWN), own[1] / by[1]
    return new_draws(value.tape, *kinds, factor, shape, [own[0]], _unit)


def _shares(value: Any, total: Any) -> Any:
    """Return gamma draws divided by their sum: a vector with a Dirichlet law."""
    if total.size != 1 or not 1 < value.size <= _MOST or value.index.shape[1] != 1:
        return NotImplemented
    draws, all_of = value.index[:, 0], total.index[0]
    coef = np.append(value.coef[:, 0], total.coef[0])
    whole = np.array_equal(np.sort(draws), np.sort(all_of)) and (draws >= 0).all()
    if not whole or (coef != coef[0]).any() or value.centre.any() or total.centre.any():
        return NotImplemented
    flat = Tracked(value.tape, value.centre.ravel(), value.terms, bare=True)
    alphas = [radius_of(flat[place : place + 1]) for place in range(len(draws))]
    alpha = tuple([each[2] for each in alphas if each is not None])
    code = code_of(Dirichlet(alpha)) if len(alpha) == len(draws) else None
    if code is None or len(np.unique(draws)) < len(draws):
        return NotImplemented

    def of(several: Array) -> Array:
        return np.asarray(several / several.sum())

    shape = np.broadcast_shapes(value.shape, total.shape)
    made = new_draws(value.tape, Joint("shares"), code, 1.0, shape, [draws], of)
    made.bare = False
    return made


def _unit(vector: Array) -> Array:
    return np.asarray(vector / np.sqrt((vector**2).sum()))


def radius_of(value: Any, own: bool = False) -> tuple[_Draws, float, float] | None:
    """Return the draws of a gamma draw, or of a sum of some; their scale and shape.

    With `own` they may be made of others, which are used up.
    """
    draws, written, shape = value.tape.draws, _written(value), 0.0
    if written is None or not (value.bare or own):
        return None
    numbers, scale = written
    free, made = draws.may_go_into(numbers), draws.made
    free &= not made.touches(numbers) or (own and made.part_from(numbers, draws.states))
    if not free or len(np.unique(numbers)) < len(numbers):
        return None
    for family in draws.families[numbers].tolist():
        law = law_of(family)
        if isinstance(law, Density) and law.name == "gamma":
            shape += law.parameters[0]
        elif family == Family.EXPONENTIAL:
            shape += 1.0
        else:
            return None
    return (numbers, scale, shape) if 0 < scale < math.inf else None


def _written(value: Any) -> tuple[_Draws, float] | None:
    """Return the draws of one number, and how often each is taken, if all alike."""
    made = value.tape.draws.made
    terms, shift = made.written(value.index[0], value.coef[0], made.sums)
    coef = [*terms.values()]
    if shift or not coef or not np.allclose(coef, coef[0], rtol=1e-12, atol=0):
        return None
    return np.array([*terms], dtype=np.intp), float(coef[0])


def _stretched(value: Any, radius: Any) -> Any:
    """Return a radius times a direction, a point of a cube, or a Gaussian vector."""
    shape, tape = np.broadcast_shapes(value.shape, radius.shape), value.tape
    found, direction = radius_of(radius), _made(value, "direction")
    plain, ratio = _vector(value, Family.GAUSSIAN), _made(radius, "ratio")
    if math.prod(shape) != value.size:
        return NotImplemented
    if plain is not None and ratio is not None and radius.size == 1:
        draws, lengths = ratio[0][: value.size], ratio[0][value.size :]
        if np.array_equal(draws, plain[0]):
            scale = ratio[1] * plain[1]
            return _together(tape, draws, lengths, ratio[2], scale, shape)
    if found is None:
        return NotImplemented
    lengths, times, gamma = found
    if direction is not None:
        by = direction[1] * times
        return _together(tape, direction[0], lengths, gamma, by, shape)
    cube = _vector(value, Family.UNIFORM, -0.5)
    if cube is not None:
        scale = cube[1] / 2 * times
        return _together(tape, cube[0], lengths, gamma, scale, shape, math.inf)
    if plain is None:
        return NotImplemented
    kinds, roots = (Joint("stretched", gamma), Family.UNKNOWN), [plain[0], lengths]

    def of(vector: Array, several: Array) -> Array:
        return several.sum() * vector

    return new_draws(tape, *kinds, plain[1] * times, shape, roots, of)


def _together(
    tape: Tape,
    draws: _Draws,
    lengths: _Draws,
    gamma: float,
    scale: float,
    shape: tuple[int, ...],
    order: float = 2.0,
) -> Any:
    """Return a radius, the sum of some draws, times a direction, or a point of a cube.

    Its law is known if the shape of the radius is the one for so many entries.
    """
    wanted = len(draws) + (order != 2.0)
    family: int | None = Family.UNKNOWN
    if abs(gamma - wanted) < 1e-9:
        family = code_of(JointNoise(len(draws), order))

    def of(vector: Array, several: Array) -> Array:
        one = _unit(vector) if order == 2.0 else 2 * vector - 1
        return several.sum() * one

    if family is None:
        return NotImplemented
    return new_draws(tape, Joint("vector"), family, scale, shape, [draws, lengths], of)
