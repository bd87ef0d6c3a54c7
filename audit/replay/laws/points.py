"""Laws in a form in which they can be compared: constants, and noise that is turned.

Numbers that have one value for sure may stand where others have noise on a lattice.
Such laws are not singular to each other, as the constant may be an atom of the noise.
So a constant is taken for a draw of which 0 has probability 1, and compared as one.
And a uniform draw u may be 1 - u on the other side.
Laws are those of `dpaudit.audit.replay.laws.affine`.
"""

import math
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy import full  # the real one, in an execution too
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.coded import (
    Family,
    Lattice,
    code_of,
    groups_of,
    lattice_of,
)

__all__ = ["take_vectors", "turned", "turned_like", "with_points"]

SYMMETRIC = (Family.GAUSSIAN, Family.LAPLACE, Family.LOGISTIC)

_Law = TypeVar("_Law", bound=Any)
_POINT = Lattice(0, (0.0,), exact=True)
_SAME = 1e-9  # relative, of scales that are one, rounded differently
_NO_DRAW = -2  # a number that no entry has


def with_points(laws: list[_Law]) -> list[_Law]:
    """Return laws in which constants are laws on a lattice, where others have such."""
    units = [law.unit for law in laws]
    if all(np.array_equal(unit, units[0]) for unit in units):
        return laws
    if len(set(map(len, units))) > 1:
        return laws
    on = np.array([_on_lattice(law) for law in laws])
    constant = np.array([(law.unit < 0) & np.isfinite(law.mean) for law in laws])
    ratio = on[np.argmax(on != 0, axis=0), np.arange(on.shape[1])]
    mixed = constant.any(axis=0) & (ratio != 0) & (constant | (on != 0)).all(axis=0)
    if not mixed.any():
        return laws
    return [
        _joined(law, some, ratio[some]) if len(some) else law
        for law, some in ((x, np.flatnonzero(mixed & (x.unit < 0))) for x in laws)
    ]


def _joined(law: Any, entries: NDArray[np.intp], ratio: Array) -> Any:
    """Return a law in which some constants are on a lattice of one number."""
    first = np.concatenate([law.first, entries])
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    unit, ratios = np.array(law.unit), np.array(law.ratio)
    unit[unit >= 0] = rank[unit[unit >= 0]]
    unit[entries], ratios[entries] = rank[len(law.first) :], ratio
    code, count = code_of(_POINT), len(entries)
    draw = np.concatenate([law.draw, full(count, _NO_DRAW)])
    family = np.concatenate([law.family, full(count, code, dtype=np.intp)])
    alone = np.concatenate([law.alone, full(count, True)])
    return replace(
        law,
        unit=unit,
        ratio=ratios,
        first=first[order],
        draw=draw[order],
        family=family[order],
        alone=alone[order],
    )


def _on_lattice(law: Any) -> Array:
    """Return the ratio of each entry that has its own unit on a lattice; else 0."""
    counts = np.bincount(law.unit[law.unit >= 0], minlength=len(law.first))
    lone = [lattice_of(int(each)) is not None for each in law.family]
    held = np.append(np.array(lone, dtype=bool) & (counts == 1), False)
    return np.where(held[law.unit], law.ratio, 0.0)


def turned(law: Any, other: Any) -> NDArray[np.bool_]:
    """Say which units have noise of the other sign on the other side."""
    signs = [np.sign(each.ratio[each.first]) for each in (law, other)]
    return np.asarray(signs[0] * signs[1] < 0)


def turned_like(law: _Law, other: _Law) -> _Law:
    """Return a law whose uniform draws u are 1 - u where they are so in another."""
    if len(law.first) != len(other.first):
        return law
    units = turned(law, other) & (law.family == Family.UNIFORM)
    some = (law.unit >= 0) & np.append(units, False)[law.unit]
    if not some.any():
        return law
    mean = np.where(some, law.mean + law.ratio, law.mean)
    return replace(law, mean=mean, ratio=np.where(some, -law.ratio, law.ratio))


def take_vectors(law: Any, other: Any, made: Any) -> bool:
    """Give vectors the supremum of their loss, at their first units.

    False where the units of vectors of one law are not those of the other.
    """
    vectors = groups_of(law)
    sides = [[np.sort(g).tolist() for g, _ in v] for v in (vectors, groups_of(other))]
    both = zip(vectors, groups_of(other), strict=False)
    for (units, noise), (_, there) in both if sides[0] == sides[1] else ():
        most = noise.supremum(made.shift[units] / made.scale[units], there)
        scales = made.scale[units], made.other_scale[units]
        for suprema in (made.suprema, made.back):
            suprema[units] = 0.0
            suprema[units[0]] = most if np.allclose(*scales, _SAME, 0) else math.inf
    return sides[0] == sides[1]
