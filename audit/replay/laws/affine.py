r"""Laws of noisy values: which density they have, and how far two of them lie apart.

A noisy value is an affine image x + L z of independent draws z. Its law is known here
if its entries fall into *units*: entries x_i + r_i u of one standard variable u, where
units are independent of each other. A unit is one draw of any family; or a combination
of Gaussian draws, which is one Gaussian variable again, if no other unit has a part in
those draws. Entries without a draw, and entries that are not finite, are constants.

Where units overlap there may be coordinates in which they do not
(`dpaudit.audit.replay.laws.whitening`).

Two laws P and Q are compared unit by unit:

- If their constants differ, or entries that hang together in one of them lie on another
  line in the other, then P and Q are concentrated on different affine subspaces S and
  T. One of the two sets gives the other law measure zero: let S not lie within T; then
  S and T meet in a proper subspace of S, of measure zero under P, so that P(T) = 0,
  while Q(T) = 1. So P and Q are **mutually singular**, and no claim holds.
- Otherwise both have densities on one subspace, in the coordinates of one entry of each
  unit, and the loss log p(y)/q(y) is a sum over units.

The supremum of the loss, both ways round, is a sum over units too, since they are
independent: |x - x'|/b for two Laplace or two logistic laws of one scale b, infinite
for every other pair of the families here that is not one law.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy import asarray, full  # the real ones, in an execution too
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.coded import (
    FIRST,
    Lattice,
    code_of,
    is_joint,
    is_whole,
    lattice_of,
    law_of,
)
from dpaudit.audit.replay.laws.whitening import factor_of, one_term_each

__all__ = ["STANDARD", "AffineLaw", "Family", "log_density", "words_of"]

_Families: TypeAlias = NDArray[np.integer[Any]]

_none = partial(full, 0, -1)


class Family(IntEnum):
    """Laws of a standard draw."""

    GAUSSIAN = 0
    LAPLACE = 1
    EXPONENTIAL = 2
    UNIFORM = 3
    GUMBEL = 4
    LOGISTIC = 5
    CHOICE = 6
    """No noise: of a choice nothing but the supremum of its loss is kept."""
    # Of declared primitives alone (`dpaudit.audit.replay.laws.non_affine`).
    CLAMPED_LAPLACE = 7
    TRUNCATED_LAPLACE = 8
    FOLDED_LAPLACE = 9
    DISCRETE_LAPLACE = 10
    DISCRETE_GAUSSIAN = 11
    TRUSTED = 12
    """A law that is not known, of which a bound is taken for true."""
    UNKNOWN = 13
    """A law that is not known. Beyond are `dpaudit.audit.replay.laws.coded`."""

    @property
    def words(self) -> str:
        """Its name, for people."""
        return self.name.lower().replace("_", " ")

    @classmethod
    def shown(cls, families: Iterable[int]) -> str:
        """Return the names of families, as a step shows them."""
        return "+".join(sorted(set(map(words_of, families))))


def words_of(family: int) -> str:
    """Return the name of a family, or of what has a code, for people."""
    if family >= FIRST:
        return "other"
    return Family(family).words


class _Standard(NamedTuple):
    """What is known of the standard draws of a family.

    Parameters
    ----------
    draw : callable
        Generator, size -> draws.
    log_density : callable
    linear : bool
        Whether the supremum of the loss of a shift is its size.
    """

    draw: Callable[[np.random.Generator, Any], Any]
    log_density: Callable[[Array], Array]
    linear: bool = False


STANDARD = {
    Family.GAUSSIAN: _Standard(
        lambda rng, size: rng.standard_normal(size),
        lambda u: -u * u / 2 - math.log(2 * math.pi) / 2,
    ),
    Family.LAPLACE: _Standard(
        lambda rng, size: rng.laplace(size=size),
        lambda u: -np.abs(u) - math.log(2),
        linear=True,
    ),
    Family.EXPONENTIAL: _Standard(
        lambda rng, size: rng.standard_exponential(size),
        lambda u: np.where(u >= 0, -u, -np.inf),
    ),
    Family.UNIFORM: _Standard(
        lambda rng, size: rng.random(size),
        lambda u: np.where((u >= 0) & (u <= 1), 0.0, -np.inf),
    ),
    Family.GUMBEL: _Standard(
        lambda rng, size: rng.gumbel(size=size), lambda u: -(u + np.exp(-u))
    ),
    Family.LOGISTIC: _Standard(
        lambda rng, size: rng.logistic(size=size),
        lambda u: -np.abs(u) - 2 * np.log1p(np.exp(-np.abs(u))),
        linear=True,
    ),
}
"""The families that are noise: a new one has its place here."""


def log_density(family: NDArray[np.intp], u: Array) -> Array:
    """Return the log-densities of standard draws, each of its own family."""
    here = [kind for kind in STANDARD if (family == kind).any()]
    with np.errstate(all="ignore"):
        if len(here) == 1 and (family == here[0]).all():
            return asarray(STANDARD[here[0]].log_density(u))
        every = [STANDARD[kind].log_density(u) for kind in here]
        found = np.full(np.shape(u), np.nan)
        if here:
            found = np.select([family == kind for kind in here], every, np.nan)
        for code in _codes(family):
            found = np.where(family == code, law_of(code).log_density(u), found)
    return np.asarray(found)


def _codes(family: _Families) -> list[int]:
    """Return the codes that there are among families."""
    if not family.size or family.max() < FIRST:
        return []
    return [code for code in np.unique(family).tolist() if code >= FIRST]


@dataclass(frozen=True, eq=False)
class AffineLaw:
    """The law of a noisy value with n entries and U units.

    Parameters
    ----------
    mean : ndarray, shape (n,)
        x.
    unit : ndarray of int, shape (n,)
        Of each entry; -1 for constants. Units are numbered by their first entries.
    ratio : ndarray, shape (n,)
        r; 0 for constants.
    first : ndarray of int, shape (U,)
        The first entry of each unit.
    draw : ndarray of int, shape (U,)
        A draw that each unit hangs on.
    family : ndarray of int, shape (U,)
    alone : ndarray of bool, shape (U,)
        Whether a unit is one draw, which its entries show; not a combination.
    known : bool
        Whether entries fall into units; if not, the four before are empty.
    factor : ndarray, shape (n, k), optional
        L, where the entries do not fall into units: of full column rank, or Gaussian.
    columns, kinds : ndarray of int, shape (k,)
        The draws of its columns, and their families.
    rough : ndarray, shape (n,), optional
        By how much x may be off, where larger numbers were taken off each other.
    """

    mean: Array
    unit: NDArray[np.intp]
    ratio: Array
    first: NDArray[np.intp]
    draw: NDArray[np.intp]
    family: NDArray[np.intp]
    alone: NDArray[np.bool_]
    known: bool = True
    factor: Array | None = None
    columns: NDArray[np.intp] = field(default_factory=_none)
    kinds: NDArray[np.intp] = field(default_factory=_none)
    rough: Array | None = None

    @classmethod
    def of(
        cls, mean: Array, index: NDArray[np.intp], coef: Array, family: _Families
    ) -> "AffineLaw":
        """Return the law of mean + (coef * draws[index]).sum(axis=1).

        Parameters
        ----------
        mean : ndarray, shape (n,)
        index, coef : ndarray, shape (n, m)
            Terms; the index is -1 where there is none.
        family : ndarray of int
            Of all draws.
        """
        n = len(mean)
        if not index.shape[1]:
            return cls._without_units(mean)
        used = family[index[index >= 0]]
        if (used == Family.UNKNOWN).any() or not is_whole(index, coef, family):
            return cls._unknown(mean)
        if index.shape[1] == 1 and _all_different(mean, index, coef):
            units, draws = np.arange(n), index[:, 0]
            kinds = family[draws].astype(np.intp)
            return cls(mean, units, coef[:, 0], units, draws, kinds, units >= 0)
        index = np.where((coef == 0) | ~np.isfinite(mean)[:, np.newaxis], -1, index)
        if not np.isfinite(coef[index >= 0]).all():
            return cls._unknown(mean)
        combined = np.empty(0, dtype=np.intp)
        if index.shape[1] > 1:
            found = one_term_each(index, coef, family, _table)
            sums = {} if found is None else found[3]
            codes = {draw: code_of(Lattice(*law)) for draw, law in sums.items()}
            if found is None or None in codes.values():
                whole = not is_joint(used).any()
                more = factor_of(mean, index, coef, family) if whole else {}
                return replace(cls._unknown(mean), **more)
            index, coef, combined, _ = found
            if sums:
                family = family.astype(np.intp)
                family[list(codes)] = np.array([*codes.values()], dtype=np.intp)
        draws, ratios = (
            (index[:, 0], coef[:, 0]) if index.shape[1] else (full(n, -1), np.zeros(n))
        )
        noisy = np.flatnonzero(draws >= 0)
        distinct, first, inverse = np.unique(
            draws[noisy], return_index=True, return_inverse=True
        )
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        unit = full(n, -1, dtype=np.intp)
        unit[noisy] = rank[inverse.ravel()]
        draw = distinct[order]
        return cls(
            mean=mean,
            unit=unit,
            ratio=np.where(unit >= 0, ratios, 0.0),
            first=noisy[first[order]],
            draw=draw,
            family=family[draw].astype(np.intp),
            alone=~np.isin(draw, combined),
        )

    @classmethod
    def of_block(cls, mean: Array, coef: float, start: int, family: int) -> "AffineLaw":
        """Return the law of finite numbers, each with the next draw.

        Parameters
        ----------
        mean : ndarray, shape (n,)
        coef : float
            Of every draw, finite and not 0.
        start : int
            The first draw.
        family : int
            Of all of them.
        """
        units, kinds, alone = _one_each(len(mean), family)
        ratio = np.broadcast_to(coef, len(mean))
        draws = units + start if start else units
        return cls(mean, units, ratio, units, draws, kinds, alone)

    @classmethod
    def _unknown(cls, mean: Array) -> "AffineLaw":
        return replace(cls._without_units(mean), known=False)

    @classmethod
    def _without_units(cls, mean: Array) -> "AffineLaw":
        none = np.empty(0, dtype=np.intp)
        unit, zero = np.broadcast_to(-1, mean.shape), np.broadcast_to(0.0, mean.shape)
        return cls(mean, unit, zero, none, none, none, none.astype(bool))

    @property
    def kind(self) -> str:
        """What it is, for people."""
        return "a noisy number"

    @property
    def followed(self) -> bool:
        """Whether the law is known in either form."""
        return self.known or self.factor is not None

    @property
    def scale(self) -> Array:
        """The scale of each unit at its first entry, shape (U,)."""
        return np.abs(self.ratio[self.first])

    def sample(self, size: int, *, rng: np.random.Generator) -> Array:
        """Return independent values, shape (size, n)."""
        if self.factor is not None:
            draws = _standard_draws(size, self.kinds, self.columns, rng)
            return asarray(self.mean + draws @ self.factor.T)
        draws = _standard_draws(size, self.family, self.draw, rng)
        padded = np.concatenate([draws, np.zeros((size, 1))], axis=1)
        return asarray(self.mean + self.ratio * padded[:, self.unit])


def _table(code: int) -> tuple[int, tuple[float, ...]] | None:
    """Return the table of a law on finitely many integers, None of others."""
    lattice = lattice_of(code)
    finite = lattice is not None and lattice.finite
    return (lattice.start, lattice.log) if lattice is not None and finite else None


def _standard_draws(
    size: int, family: _Families, draw: _Families, rng: np.random.Generator
) -> Array:
    """Return so many standard draws of each family, shape (size, U)."""
    shape = size, len(family)
    every = [standard.draw(rng, shape) for standard in STANDARD.values()]
    draws = np.select([family == kind for kind in STANDARD], every)
    for code in _codes(family):
        units = np.flatnonzero(family == code)
        units = units[np.argsort(draw[units])]  # vectors by their entries
        draws[:, units] = law_of(code).sample(rng, (size, len(units)))
    return draws


@lru_cache(maxsize=64)
def _one_each(
    n: int, family: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
    """Return the units, families and whether they are alone, of n draws."""
    units = np.arange(n)
    made = units, full(n, family, dtype=np.intp), units >= 0
    for each in made:
        each.flags.writeable = False
    return made


def _all_different(mean: Array, index: NDArray[np.intp], coef: Array) -> bool:
    """Say whether entries are finite, and each has the next draw, or a later one."""
    draws = index[:, 0]
    return bool(
        len(draws)
        and draws[0] >= 0
        and (draws[1:] > draws[:-1]).all()
        and coef.all()
        and np.isfinite(coef).all()
        and np.isfinite(mean).all()
    )
