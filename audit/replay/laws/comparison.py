"""How far two laws of noisy values lie apart: distances, losses, suprema.

The head of `dpaudit.audit.replay.laws.affine` says what these are, and proves it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.affine import AffineLaw, log_density
from dpaudit.audit.replay.laws.apart import moved_by, suprema_of
from dpaudit.audit.replay.laws.coded import (
    FIRST,
    STANDARD,
    Family,
    groups_of,
    is_joint,
    lattice_of,
)
from dpaudit.audit.replay.laws.points import (
    SYMMETRIC,
    take_vectors,
    turned,
    turned_like,
    with_points,
)
from dpaudit.audit.replay.laws.whitening import rough_of, whitened
from dpaudit.claims import Claim
from dpaudit.printable import told_apart

__all__ = [
    "AnyLaw",
    "LawComparison",
    "are_one",
    "compare",
    "equal",
    "loss",
    "losses",
    "unit_losses",
]

_BARE = "a combination of numbers has no noise, and differs"
_FEWER = "fewer draws are behind as many numbers on one side"
_SAME = 1e-9  # relative: what differs by less is one scale, or one slope
_ROUNDED = 1e-12  # relative: what differs by less is one number, rounded differently
# Families of which the supremum of the loss is the distance divided by the scale.
_LINEAR = [*(family for family in STANDARD if STANDARD[family].linear), Family.CHOICE]
_MOST_APART = 256  # units of two kinds, or of two scales, that are compared
_none: Callable[[], Array] = partial(np.empty, 0)
_no_families: Callable[[], NDArray[np.intp]] = partial(np.array, [], np.intp)


@dataclass(frozen=True, eq=False)
class LawComparison:
    """How two laws of values with the same entries lie to each other.

    Parameters
    ----------
    singular : str or None
        Why they are mutually singular, if they are.
    entry : int
        Where that shows; or, if not, the entry of the largest distance.
    known : bool
        Whether the laws could be compared at all.
    shift : ndarray, shape (U,)
        The least distance of the first entries of the units: what rounding may have
        added is taken off.
    scale, other_scale : ndarray, shape (U,)
    family, other_family : ndarray of int, shape (U,)
    suprema : ndarray, shape (U,), optional
        Of the loss of each unit where it is not what family, shift and scale say.
    back : ndarray, shape (U,), optional
        The same of D' against D, where that is not the same.
    bound : Claim, optional
        Of laws that are not known: a claim that is assumed of the two of them.
    note : tuple of (str, str), optional
        Kind and words of a finding, where there is no such bound.
    """

    singular: str | None = None
    entry: int = 0
    known: bool = True
    shift: Array = field(default_factory=_none)
    scale: Array = field(default_factory=_none)
    other_scale: Array = field(default_factory=_none)
    family: NDArray[np.intp] = field(default_factory=_no_families)
    other_family: NDArray[np.intp] = field(default_factory=_no_families)
    suprema: Array | None = None
    back: Array | None = None
    bound: Claim | None = None
    note: tuple[str, str] | None = None

    @classmethod
    def of_unit(cls, family: Family, shift: float, **more: Any) -> "LawComparison":
        """Return a comparison of one unit, which has no scale."""
        one, kind = np.ones(1), np.array([family])
        made = cls(None, 0, True, np.array([shift]), one, one, kind, kind)
        return replace(made, **more)

    def part(self, units: NDArray[np.intp]) -> "LawComparison":
        """Return the comparison of some of the units."""
        names = ["shift", "scale", "other_scale", "family", "other_family"]
        names += [n for n in ("suprema", "back") if getattr(self, n) is not None]
        parts: dict[str, Any] = {name: getattr(self, name)[units] for name in names}
        return replace(self, **parts)

    @property
    def moved(self) -> bool:
        """Whether some input lies elsewhere on the other side."""
        return self.singular is not None or bool(self.shift.any())

    @property
    def scales_differ(self) -> bool:
        """Whether some unit has another scale or family on the other side."""
        return not bool(np.all(self.alike))

    @cached_property
    def alike(self) -> NDArray[np.bool_]:
        """Which units have one family and one scale on both sides."""
        scales = _near(self.scale, self.other_scale)
        return np.asarray(scales & (self.family == self.other_family))

    @property
    def same(self) -> bool:
        """Whether the two laws are one."""
        return self.known and not self.moved and not self.scales_differ

    @property
    def other_unit(self) -> int:
        """The first unit that is not alike."""
        return int(np.argmax(~self.alike))

    @property
    def supremum(self) -> float:
        """The supremum of the loss, the greater of the two ways round."""
        if self.singular or not self.known:
            return math.inf if self.singular else math.nan
        if self.suprema is not None:
            ways = [each for each in (self.suprema, self.back) if each is not None]
            return max(float(each.sum()) for each in ways)
        return float(self.by_unit.sum())

    @property
    def by_unit(self) -> Array:
        """The suprema that family, shift and scale say."""
        linear = np.isin(self.family, _LINEAR)
        moved = self.shift != 0
        with np.errstate(all="ignore"):
            units = np.where(linear, np.abs(self.shift) / self.scale, np.inf)
        return np.where(self.alike, np.where(moved, units, 0.0), np.inf)

    @property
    def mu(self) -> float | None:
        """The distance in standard deviations, if all that differs is Gaussian."""
        moved = (self.shift != 0) | ~self.alike
        if self.singular or not self.known or self.scales_differ:
            return None
        if not (self.family[moved] == Family.GAUSSIAN).all():
            return None
        return float(np.linalg.norm(self.shift[moved] / self.scale[moved]))

    @property
    def distances(self) -> tuple[float, float]:
        """The l1 and l2 distance of the inputs, over units; NaN for a choice."""
        if (self.family == Family.CHOICE).any():
            return math.nan, math.nan
        size = np.abs(self.shift)
        most = float(size.max(initial=0.0)) or 1.0  # whose square may be no number
        return float(size.sum()), most * float(np.linalg.norm(size / most))


class _ValueLaw(Protocol):
    """The law of a noisy value, which compares itself with one of its kind."""

    @property
    def kind(self) -> str:
        """What it is, for people: "a choice"."""
        ...

    def compared(self, other: Any) -> LawComparison:
        """Return how it lies to another law of its class."""
        ...

    def loss(self, other: Any, value: Array) -> float:
        """Return log p(value)/q(value), NaN where it is not known."""
        ...


AnyLaw: TypeAlias = AffineLaw | _ValueLaw


def compare(law: AnyLaw, other: AnyLaw) -> LawComparison:
    """Compare two laws of values with equally many entries."""
    if not (isinstance(law, AffineLaw) and isinstance(other, AffineLaw)):
        if isinstance(law, AffineLaw) or type(law) is not type(other):
            return LawComparison(f"{law.kind} on D is {other.kind} on D'")
        return law.compared(other)
    if not (law.followed and other.followed):
        return LawComparison(known=False)
    if len(law.mean) != len(other.mean):
        return LawComparison("there are more noisy numbers on one side")
    if not (law.known and other.known):
        white = whitened(law, other)
        if isinstance(white, tuple):
            return compare(white[0], white[1])
        odd = white is None or any(map(lattice_of, [*law.kinds, *other.kinds]))
        return LawComparison(None if odd else _BARE, white or 0, not odd)
    law, other = with_points([law, other])
    other = turned_like(other, law)
    x, x2 = law.mean, other.mean
    noisy, noisy2 = law.unit >= 0, other.unit >= 0
    if (noisy != noisy2).any():
        entry = int(np.argmax(noisy != noisy2))
        one = law if noisy[entry] else other
        if one.family[one.unit[entry]] >= FIRST:  # of which a number may be an atom
            return LawComparison(known=False)
        side = "D'" if noisy[entry] else "D"
        value = (x2 if noisy[entry] else x)[entry]
        return LawComparison(
            f"a number has noise on one side, and is {value:g} on {side}", entry
        )
    off_by = rough_of(law, other)
    with np.errstate(all="ignore"):
        alike = equal(x, x2) | (np.abs(x - x2) <= off_by)
    constant = ~noisy & ~alike
    if constant.any():
        entry = int(np.argmax(constant))
        return LawComparison(
            "a number without noise is {} on D and {} on D'".format(
                *told_apart(x[entry], x2[entry], 6)
            ),
            entry,
        )
    if not np.array_equal(law.unit, other.unit):
        if len(law.first) != len(other.first):
            where = int(np.argmax(law.unit != other.unit))
            return LawComparison(_FEWER, where)
        return LawComparison(known=False)
    entries = np.flatnonzero(noisy)
    lead = law.first[law.unit[entries]]
    entries, lead = entries[entries != lead], lead[entries != lead]
    slope, slope2 = (each.ratio[entries] / each.ratio[lead] for each in (law, other))
    line = x[entries] - slope * x[lead]
    line2 = x2[entries] - slope2 * x2[lead]
    rough = np.abs(x[entries]) + np.abs(x2[entries])
    rough = rough + np.abs(slope) * (np.abs(x[lead]) + np.abs(x2[lead]))
    rough = _SAME * rough + off_by[entries] + np.abs(slope) * off_by[lead]
    off = (np.abs(line - line2) > rough) | ~_near(slope, slope2)
    if off.any():
        place = int(np.argmax(off))
        here, there = told_apart(line[place], line2[place], 6)
        return LawComparison(
            "numbers that share one draw of noise differ by "
            f"{here} on D and by {there} on D'",
            int(entries[place]),
        )
    with np.errstate(all="ignore"):
        rough = 1e-12 * np.maximum(np.abs(x), np.abs(x2)) + off_by
        shift = np.where(alike, 0.0, np.maximum(np.abs(x - x2) - rough, 0.0))[law.first]
    entry = int(law.first[np.argmax(np.abs(shift))]) if len(shift) else 0
    scales, families = (law.scale, other.scale), (law.family, other.family)
    made = LawComparison(None, entry, True, shift, *scales, *families)
    made = _with_codes(law, other, made)
    return made if take_vectors(law, other, made) else LawComparison(known=False)


def are_one(law: AnyLaw, other: AnyLaw) -> bool:
    """Return ``compare(law, other).same``; of noise with units mostly without that.

    Laws of equal numbers are one, and a mean that moves by more than rounding makes
    two, whatever the scales are.
    """
    if isinstance(law, AffineLaw) and isinstance(other, AffineLaw):
        exact = law.rough is None and other.rough is None
        if law.known and other.known and np.array_equal(law.unit, other.unit):
            x, x2, ratio = law.mean, other.mean, law.ratio
            with np.errstate(all="ignore"):
                least = _ROUNDED * np.maximum(np.abs(x), np.abs(x2))
                moved = (np.abs(x - x2) > least)[law.first]
            if exact and moved.any():
                return False
            alike = np.array_equal(ratio, other.ratio) and np.array_equal(x, x2)
            alike = alike and np.array_equal(law.family, other.family)
            alike = alike and not is_joint(law.family).any()
            if alike and np.isfinite(ratio).all() and ratio[law.first].all():
                return True
    return compare(law, other).same


def _with_codes(law: AffineLaw, other: AffineLaw, made: LawComparison) -> LawComparison:
    """Return a comparison that knows the suprema of laws that have a code.

    And those of two families whose tails fall alike.
    """
    codes = made.family, made.other_family
    odd_sign = turned(law, other) & ~np.isin(codes[0], [*SYMMETRIC, Family.UNIFORM])
    odd = odd_sign | (codes[0] >= FIRST) | (codes[1] >= FIRST)
    odd |= (codes[0] != codes[1]) & np.isin(codes, _LINEAR[:-1]).all(axis=0)
    if not odd.any():
        return made
    odd &= ~(is_joint(codes[0]) | is_joint(codes[1]))
    means, ratios = zip(
        *((e.mean[e.first], e.ratio[e.first]) for e in (law, other)), strict=True
    )
    with np.errstate(all="ignore"):
        steps = np.where(made.shift == 0, 0.0, (means[1] - means[0]) / ratios[0])
    near = _near(made.scale, made.other_scale)
    suprema, back, shift = made.by_unit.copy(), made.by_unit.copy(), made.shift.copy()
    there = made.other_family.copy()
    for count, unit in enumerate(np.flatnonzero(odd).tolist()):
        one, two = (
            (int(code[unit]), float(mean[unit]), float(ratio[unit]))
            for code, mean, ratio in zip(codes, means, ratios, strict=True)
        )
        if not near[unit] and count >= _MOST_APART:
            suprema[unit] = back[unit] = math.nan
            continue
        step = float(steps[unit]) if near[unit] and not odd_sign[unit] else math.nan
        suprema[unit], back[unit] = suprema_of(one, two, step)
        odd_sign[unit] &= not max(suprema[unit], back[unit]) <= _SAME
        moved = moved_by(one[0], two[0]) if near[unit] and not odd_sign[unit] else None
        if moved is not None and not shift[unit]:
            shift[unit], there[unit] = moved, one[0]
    made = replace(made, suprema=suprema, back=back, shift=shift, other_family=there)
    if odd_sign.any():  # a scale of the other sign
        scales = np.where(odd_sign, -made.other_scale, made.other_scale)
        made = replace(made, other_scale=scales)
    return made


def loss(
    law: AnyLaw, other: AnyLaw, value: Array, compared: LawComparison | None = None
) -> float:
    """Return log p(value)/q(value) for a value that was drawn from one of the laws.

    Infinite where they are singular, NaN where they are not known. `compared` is how
    they lie to each other, if that is known.
    """
    compared = compare(law, other) if compared is None else compared
    if compared.singular or not compared.known:
        return math.inf if compared.singular else math.nan
    if not isinstance(law, AffineLaw):
        return law.loss(other, value)
    assert isinstance(other, AffineLaw)
    return float(losses(law, other, value))


def losses(law: AffineLaw, other: AffineLaw, values: Array) -> Array:
    """Return the losses of values, shape (..., n), where both laws have a density."""
    return np.asarray(unit_losses(law, other, values).sum(axis=-1))


def unit_losses(law: AffineLaw, other: AffineLaw, values: Array) -> Array:
    """Return the losses of values by unit, shape (..., U); otherwise as `losses`."""
    white = None if law.known else whitened(law, other)
    if isinstance(white, tuple):
        law, other, values = white[0], white[1], values @ white[2]
    law, other = with_points([law, other])
    logs = []
    with np.errstate(all="ignore"):
        for each in (law, other):
            ratio = each.ratio[each.first]
            u = (values[..., each.first] - each.mean[each.first]) / ratio
            logs.append(log_density(each.family, u) - np.log(np.abs(ratio)))
            for units, noise in groups_of(each):
                logs[-1][..., units[0]] += noise.log_joint(u[..., units])
        return _within_supremum(law, other, logs[0] - logs[1])


def _within_supremum(law: AffineLaw, other: AffineLaw, unit_loss: Array) -> Array:
    """Return losses by unit that are no larger than they can be, but for rounding.

    Beside a large mean little is left of a small difference.
    """
    x, x2, scale = law.mean[law.first], other.mean[law.first], law.scale
    size = 1e-12 * np.maximum(np.abs(x), np.abs(x2)) + rough_of(law, other)[law.first]
    most = np.maximum(np.abs(x - x2) - size, 0.0) / scale
    bounded = _near(scale, other.scale)
    bounded &= np.isin(law.family, _LINEAR) & (law.family == other.family)
    return np.asarray(np.where(bounded, np.clip(unit_loss, -most, most), unit_loss))


def _near(x: Array, x2: Array) -> NDArray[np.bool_]:
    """Say where two numbers are one scale, or one slope."""
    with np.errstate(all="ignore"):
        near = np.abs(x - x2) <= _SAME * np.abs(x2)
    return np.asarray((x == x2) | (near & np.isfinite(x2)))


def equal(x: Array, x2: Array) -> NDArray[np.bool_]:
    """Say where two numbers are one, up to rounding; NaN equals NaN."""
    with np.errstate(all="ignore"):
        near = np.abs(x - x2) <= _ROUNDED * np.maximum(np.abs(x), np.abs(x2))
    return np.asarray((x == x2) | near | (np.isnan(x) & np.isnan(x2)))
