"""Noise that code makes of draws: a function of draws alone is a draw of its own law.

A logarithm of a uniform number, the difference of two exponential ones, the floor of
something: as long as no data went into it, such a number has the law that
`dpaudit.audit.replay.laws.pushforward` finds, in any execution. So it becomes a new
draw of that law, standard and independent of all others but of those that it is made
of. These may go into further functions (of the size and the sign of one uniform number,
say), until one of them is mixed with data or looked at; from then on their law is no
longer known by itself.

A number counts as a *function of draws alone* if nothing was added to the draws, or if
one and the same ordinary number was added to all of them and they are uniform or on a
lattice. That number may depend on the data (a stochastic rounding): the law then does
as well, and is compared as any other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.draws import Terms
from dpaudit.audit.replay.follow.made import DerivedBlock, Joint
from dpaudit.audit.replay.follow.observations import Unfollowed
from dpaudit.audit.replay.follow.places import place_of_caller
from dpaudit.audit.replay.follow.tape import Tape
from dpaudit.audit.replay.follow.tracked import Tracked, isinstance_tracked, numeric
from dpaudit.audit.replay.laws.coded import FIRST, Family, lattice_of, law_of, words_of
from dpaudit.audit.replay.laws.cuts import Cut
from dpaudit.audit.replay.laws.expressions import (
    Applied,
    Expression,
    Number,
    Root,
    evaluate,
)
from dpaudit.audit.replay.laws.one_draw import DrawLaw, distribution
from dpaudit.audit.replay.laws.pieces import few_values
from dpaudit.audit.replay.laws.pushforward import family_of, identify
from dpaudit.audit.replay.laws.rounded import WAYS, Rounded

__all__ = ["derived", "joined_noise", "rounded"]

_NAMES = {
    **{"true_divide": "divide", "fabs": "absolute", "float_power": "power"},
    **{name: f"special.{name}" for name in ("ndtri", "ndtr", "logit", "expit")},
    **{name: f"special.{name}" for name in ("erfinv", "erfcinv", "_lambertw")},
}
FUNCTIONS = frozenset(
    {
        *("absolute", "add", "arctan", "arctanh", "cbrt", "ceil", "clip", "copysign"),
        *("cos", "divide", "equal", "exp", "exp2", "expm1", "floor", "greater"),
        *("greater_equal", "less", "less_equal", "log", "log10", "log1p", "log2"),
        *("maximum", "minimum", "multiply", "negative", "not_equal", "power"),
        *("reciprocal", "rint", "sign", "sin", "sinh", "sqrt", "square", "subtract"),
        *("tan", "tanh", "trunc", "where", "remainder", "floor_divide", "searchsorted"),
        *("bitwise_and", "bitwise_or", "bitwise_xor"),
        *("logical_and", "logical_or", "logical_xor", "logical_not"),
    }
)
_MOST_GROUPS = 32
_LONGEST = 60  # nodes of an expression
_MOST_ROUNDED = 64  # numbers
_MOST_DIGITS = 12


@dataclass
class _Parts:
    """The arguments of a function, as expressions over slots of draws."""

    tape: Tape
    shape: tuple[int, ...]
    slots: list[NDArray[np.intp]]

    def of(self, value: Any) -> Expression | None:
        """Return an argument as an expression, None if it is none of draws alone."""
        if isinstance(value, Number):
            return value
        if not (isinstance_tracked(value) and value.noisy):
            number = numeric(value)
            if number is None or not number.size or (number != number.flat[0]).any():
                return None
            return Number(float(number.flat[0]))
        if value.tape is not self.tape:
            return None
        value = value.spread(self.shape)  # a choice is looked at if that repeats it
        value.settle()
        if not value.noisy or not value.size:
            return None
        index, coef = value.index, value.coef
        centre = value.centre.flat[0]
        if index.shape[1] != 1 or not np.isfinite(centre):
            return None
        if (value.centre != centre).any() or (coef != coef[0]).any():
            return None
        base = self._drawn(index[:, 0], bare=value.bare)
        if base is None:
            return None
        if coef[0, 0] != 1:
            base = Applied("multiply", (Number(float(coef[0, 0])), base))
        if centre:
            base = Applied("add", (base, Number(float(centre))))
        return base

    def _drawn(self, draws: NDArray[np.intp], *, bare: bool) -> Expression | None:
        """Return what draws are, one to each entry."""
        if not draws.size or (draws < 0).any():
            return None
        made = self.tape.draws.made.of(draws)
        if made is not None:
            moved = not bare and _is_noise(int(self.tape.draws.families[draws[0]]))
            if moved or isinstance(made.expression, Joint):
                return None
            behind = {}
            for slot, roots in made.roots.items():
                root = self._root(roots[draws - made.start], bare=True)
                if root is None:
                    return None
                behind[slot] = root
            return _over(made.expression, behind)
        return self._root(draws, bare=bare)

    def _root(self, draws: NDArray[np.intp], *, bare: bool) -> Root | None:
        """Return draws that are made of no others, as what is left of them by now."""
        families = self.tape.draws.families[draws]
        family = int(families[0])
        if (families != family).any() or family == Family.UNKNOWN:
            return None
        lattice = lattice_of(family)
        law = law_of(family)
        if not bare and _is_noise(family):
            return None
        place = self._slot(draws)
        if place is None:
            return None
        if lattice is not None:
            return Root(place, "lattice", lattice)
        if family >= FIRST:
            known = hasattr(distribution(family), "ppf")
            return Root(place, "coded", law=law) if known else None
        return Root(place, words_of(family))

    def _slot(self, draws: NDArray[np.intp]) -> int | None:
        """Return the slot of some draws, None if they cannot have one."""
        for place, others in enumerate(self.slots):
            if np.array_equal(others, draws):
                return place
            if np.isin(draws, others).any():
                return None
        if len(np.unique(draws)) < len(draws) or not self.tape.draws.may_go_into(draws):
            return None
        self.slots.append(draws)
        return len(self.slots) - 1


def _is_noise(family: int) -> bool:
    """Say whether draws are noise by themselves, so that sums with data are looked at.

    Those on a lattice and uniform ones are not, whatever number was added to them.
    """
    law = law_of(family)
    family = law.family if isinstance(law, Cut) else family
    return family not in (Family.UNIFORM, Family.UNKNOWN) and not lattice_of(family)


def derived(name: str, *parts: Any, known: bool = False, few: bool = False) -> Any:
    """Return a NumPy function of draws alone as a draw of its own law.

    NotImplemented where it is none, or with `known` where the law is no known one, with
    `few` where it may be of more than few values.
    """
    name = _NAMES.get(name, name)
    tracked = [each for each in parts if isinstance_tracked(each) and each.noisy]
    known_name = name in FUNCTIONS or "." in name
    if not known_name or not tracked or tracked[0].tape.closed:
        return NotImplemented
    if any(each.is_complex for each in tracked):
        return NotImplemented
    tape: Tape = tracked[0].tape
    try:
        others = [each for each in parts if not isinstance(each, Number)]
        shape = np.broadcast_shapes(*(np.shape(each) for each in others))
    except ValueError:
        return NotImplemented
    read = _Parts(tape, shape, [])
    expressions = [read.of(each) for each in parts]
    if not read.slots or any(each is None for each in expressions):
        if name in WAYS and len(parts) == 1:
            return _on_lattice(name, tracked[0])
        if name == "floor_divide" and tracked == [parts[0]]:
            return _on_lattice("floor", parts[0] / parts[1])
        grouped = tape.mode.keeps and not known
        return _in_groups(name, parts, shape, tape) if grouped else NotImplemented
    whole = Applied(name, tuple(each for each in expressions if each is not None))
    if _length(whole) > _LONGEST:
        return NotImplemented
    values = few_values(whole) if few or tape.mode.keeps else None
    if values is not None and np.ptp(values[0]) == 0:
        return np.full(shape, values[0][0], dtype=bool if whole.compares else float)
    if few and values is None:
        return NotImplemented
    law = identify(whole)
    if known and (
        law is None or (law.law is None and family_of(law)[2] == Family.UNKNOWN)
    ):
        return NotImplemented
    return _made(tape, whole, law, read.slots, shape)


def joined_noise(ufunc: Any, left: Any, right: Any) -> Any:
    """Return a sum of two noisy numbers whose noise together has a known law.

    Sums of Gaussian draws are known as such, and stay what they are.
    """
    parts = []
    for each in (left, right):
        if not (isinstance_tracked(each) and each.noisy and each.index.size):
            return NotImplemented
        families = each.tape.draws.families[each.index]
        kinds = map(lattice_of, np.unique(families).tolist())
        if (families == Family.GAUSSIAN).any() or Rounded in map(type, kinds):
            return NotImplemented
        parts.append(Tracked(each.tape, np.zeros(each.shape), each.terms, bare=True))
    made = derived(ufunc.__name__, *parts, known=True)
    if made is NotImplemented:
        return made
    draws, wide = made.tape.draws, [each.spread(made.shape) for each in parts]
    if ufunc is np.subtract:
        wide[1] = -wide[1]
    draws.made.added(
        made.index[:, 0],
        [(each.index[:, 0], each.coef[:, 0]) for each in wide],
        made.coef.flat[0],
        made.centre.flat[0],
    )
    for each in parts:
        draws.made.take_over(each.index[each.index >= 0], draws.states)
    with np.errstate(all="ignore"):
        mean = np.asarray(ufunc(left.centre, right.centre)) + made.centre
    return Tracked(made.tape, mean, made.terms, bare=left.bare and right.bare)


def rounded(name: str, value: Any, digits: Any = 0) -> Any:
    """Return data with noise, rounded to some digits, as draws on a lattice.

    Each entry has a law of its own, which holds the data
    (`dpaudit.audit.replay.laws.rounded`). NotImplemented where that is not followed.

    Parameters
    ----------
    name : {"rint", "floor", "ceil", "trunc"}
    value : Tracked
    digits : int
        Behind the point, or before it.
    """
    made = NotImplemented if digits else derived(name, value)
    return _on_lattice(name, value, digits) if made is NotImplemented else made


def _on_lattice(name: str, value: Any, digits: Any = 0) -> Any:
    tape: Tape = value.tape
    if not tape.mode.keeps or tape.closed:
        return NotImplemented
    value.settle()
    index, coef = value.index, value.coef
    few = index.shape[1] == 1 and 0 < len(index) <= _MOST_ROUNDED
    if not few or type(digits) is not int or abs(digits) > _MOST_DIGITS:
        return NotImplemented
    step, parts = 10.0**-digits, []
    wanted = zip(index, coef[:, 0] / step, value.centre.ravel() / step, strict=True)
    for draw, factor, centre in wanted:
        read = _Parts(tape, (1,), [])
        base = read._drawn(draw, bare=True)
        family = int(tape.draws.families[draw[0]])
        law = Rounded.rounding(name, family, float(centre), abs(float(factor)))
        if base is None or law is None:
            return NotImplemented
        scaled = Applied("multiply", (Number(float(factor)), base))
        whole = Applied(name, (Applied("add", (scaled, Number(float(centre)))),))
        found = identify(base)
        exact = found is not None and found.exact
        noise = DrawLaw(0.0, 1.0, "lattice", law, exact)
        parts.append(_made(tape, whole, noise, read.slots, (1,)))
    made = Tracked.joined(tape, parts) * step
    made.bare = False
    return made.reshape(value.shape)


def _in_groups(
    name: str, parts: Sequence[Any], shape: tuple[int, ...], tape: Tape
) -> Any:
    """Return a function of draws of few values, and of data that have few values.

    Each entry has the law that goes with its data. NotImplemented where that is none
    on a lattice.
    """
    columns, wide = [], []
    for each in parts:
        if isinstance(each, Number):
            return NotImplemented
        if isinstance_tracked(each) and each.noisy:
            each = each.spread(shape)
            each.settle()
        if isinstance_tracked(each) and each.noisy:
            index = each.index[:, :1]
            if each.index.shape[1] > 1:
                return NotImplemented
            blocks = np.where(index < 0, -1, tape.draws.blocks_of(index))
            columns += [each.centre.ravel(), each.coef[:, 0], blocks[:, 0]]
        else:
            number = numeric(each)
            if number is None:
                return NotImplemented
            each = np.broadcast_to(number, shape)
            columns.append(each.ravel())
        wide.append(each)
    groups, where = np.unique(np.stack(columns), axis=1, return_inverse=True)
    count = groups.shape[1]
    if not 1 < count <= _MOST_GROUPS:
        return NotImplemented
    made, places = [], []
    for group in range(count):
        some = np.flatnonzero(where.ravel() == group)
        one = [_part(each, some) for each in wide]
        if not any(map(isinstance_tracked, one)):
            return NotImplemented
        part = derived(name, *one, few=True)
        if part is NotImplemented:
            return NotImplemented
        made.append(part if isinstance_tracked(part) else Tracked.plain(tape, part))
        places.append(some)
    order = np.argsort(np.concatenate(places))
    return Tracked.joined(tape, made).taken(order.reshape(shape))


def _part(value: Any, some: NDArray[np.intp]) -> Any:
    """Return some entries of an array; one with noise only if there is any in them."""
    if not isinstance_tracked(value):
        return value.ravel()[some]
    part = value.taken(some)
    return part if (part.index >= 0).any() else part.centre


def _made(
    tape: Tape,
    whole: Expression,
    law: DrawLaw | None,
    slots: Sequence[NDArray[np.intp]],
    shape: tuple[int, ...],
) -> Tracked:
    """Return an expression over draws as draws of its law."""
    shift, scale, family = (0.0, 1.0, Family.UNKNOWN) if law is None else family_of(law)
    if shift:
        whole = Applied("subtract", (whole, Number(shift)))
    standard = whole if scale == 1 else Applied("divide", (whole, Number(scale)))

    def values(seed: int = 0) -> Array:  # of the draws as they are by then
        now = [tape.draws.values[slot] for slot in slots]
        return np.broadcast_to(evaluate(standard, now), slots[0].shape).astype(float)

    made_at = place_of_caller()
    made = Tracked.fresh(tape, family, values().reshape(shape), values)
    tape.draws.go_into(made.index[:, 0], DerivedBlock(standard, dict(enumerate(slots))))
    if law is not None and not law.exact:
        tape.taken.append(Unfollowed(made_at, words_of(family)))
        start = int(made.index[0, 0])
        tape.draws.fits.append((start, start + made.size, standard))
    block = made.terms.block
    terms = Terms(block=block, factor=scale)
    return Tracked(tape, np.full(shape, shift), terms, bare=not shift)


def _over(expression: Expression, behind: dict[int, Root]) -> Expression:
    """Return an expression over other draws, by the slots of those that it is over."""
    if isinstance(expression, Root):
        return behind[expression.slot]
    if isinstance(expression, Number):
        return expression
    parts = tuple(_over(part, behind) for part in expression.parts)
    return Applied(expression.name, parts)


def _length(expression: Expression) -> int:
    return 1 + sum(map(_length, getattr(expression, "parts", ())))
