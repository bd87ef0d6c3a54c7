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
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np
from numpy import asarray, full  # the real ones, in an execution too
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.coded import (
    FIRST,
    STANDARD,
    Family,
    Lattice,
    code_of,
    is_joint,
    lattice_of,
    law_of,
)
from dpaudit.audit.replay.laws.whitening import factor_of, one_term_each

__all__ = ["AffineLaw", "log_density"]

_Families: TypeAlias = NDArray[np.integer[Any]]

_none = partial(full, 0, -1)


def log_density(family: NDArray[np.intp], u: Array) -> Array:
    """Return the log-densities of standard draws, each of its own family."""
    found: Any = np.nan
    for code in _codes(family):
        if (law := law_of(code)) is not None:
            found = np.where(family == code, law.log_density(u), found)
    return np.broadcast_to(found, np.shape(u))


def _codes(family: _Families) -> list[int]:
    """Return which families there are."""
    if not family.size or (family == family[0]).all():
        return family[:1].tolist()
    return np.unique(family).tolist()


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
        if (used == Family.UNKNOWN).any() or not _is_whole(index, coef, family):
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
    every = [standard.sample(rng, shape) for standard in STANDARD.values()]
    draws = np.select([family == kind for kind in STANDARD], every)
    for code in [each for each in _codes(family) if each >= FIRST]:
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


def _is_whole(index: NDArray[np.intp], coef: Array, family: NDArray[Any]) -> bool:
    """Say whether entries with draws of vectors are those of whole ones, of one scale.

    Parameters
    ----------
    index, coef : ndarray, shape (n, m)
        Terms; the index is -1 where there is none.
    family : ndarray of int
        Of all draws.
    """
    some = (index >= 0) & (coef != 0)
    joint = np.zeros(index.shape, dtype=bool)
    joint[some] = is_joint(family[index[some]])
    if not joint.any():
        return True
    if (some[joint.any(axis=1)].sum(axis=1) > 1).any():
        return False
    draws = np.unique(index[joint])
    sizes = np.abs(coef[joint])
    kinds = family[draws]
    while len(draws):
        d = law_of(int(kinds[0])).entries
        whole = draws[0] + np.arange(d)
        if not np.array_equal(draws[:d], whole) or (kinds[:d] != kinds[0]).any():
            return False
        mine = sizes[np.isin(index[joint], whole)]
        if not np.allclose(mine, mine[0], rtol=1e-9, atol=0) or math.isinf(mine[0]):
            return False
        draws, kinds = draws[d:], kinds[d:]
    return True
