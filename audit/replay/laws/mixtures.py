r"""Mixtures: releases of which hidden choices decide what noise they have.

Given all choices, a release has words and numbers, and the numbers are x + L z with
independent draws z (`dpaudit.audit.replay.laws.affine`). Let the choices turn out as c
with probability p_c on D, and q_c on D'. Then the laws of the release are the mixtures
P = sum_c p_c F_c and Q = sum_c q_c G_c: choices may be others on D', and so many more.

**Supports.** Numbers without noise, and numbers that share a draw, confine F_c to an
affine subspace, in which it has a density: in the coordinates of one entry of each
unit, or, where these lie on a lattice, as probabilities. Two laws on different affine
subspaces, on a lattice and not, or of other words, are mutually singular: let S not lie
within T; then S and T meet in a proper subspace of S, which has measure zero for the
law on S. So P and Q fall into parts, one for each support, and within a part both have
a density with respect to one measure. The loss at a release is

.. math:: \log \sum_c p_c f_c(y) - \log \sum_c q_c g_c(y)

over the c with its support. (Two subspaces are different if they are described by other
units: entries that hang together. Numbers that agree up to rounding are taken for one,
which brings P and Q nearer, and so do coordinates that are the same in all terms: they
cancel.)

**What refutes a pure claim** is one y at which the loss is above epsilon, where both
densities are continuous and that of P is positive: then so is it near y, a set A with
P(A) > 0 and P(A) > e^epsilon Q(A). It makes no difference how y was found.

**Probabilities may be off**, as those of choices may. What they may be off is taken
off them on one side, and added on the other. Where leaves were left out on D' whose
probabilities were rounded to 0, what they would have in a far tail may be all that is
there. So then the loss is taken at values alone that are drawn from P, which are in no
set of so small a probability.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.affine import AffineLaw
from dpaudit.audit.replay.laws.choices import ROUNDING
from dpaudit.audit.replay.laws.coded import (
    FIRST,
    Family,
    Lattice,
    lattice_of,
    law_of,
)

__all__ = ["CommonSupport", "MixtureTerms", "ReleaseLaw", "parts_of"]

_SAME = 1e-12  # relative, of numbers that are one
_CLOSE = 1e-9  # relative, of scales, and of what confines numbers
_SIZEABLE = 1e-9  # beside which 0 is no rounding


@dataclass(frozen=True, eq=False)
class ReleaseLaw:
    """A law of the release, given how all choices turn out.

    Parameters
    ----------
    p : float
        The probability that they do.
    off : float
        By how much that may be off.
    layout : str
        The words.
    law : AffineLaw
        Of the numbers; its entries fall into units.
    """

    p: float
    off: float
    layout: str
    law: AffineLaw


@dataclass(frozen=True, eq=False)
class MixtureTerms:
    """The terms of a mixture on one support, with m terms and U coordinates.

    Parameters
    ----------
    leaf : ndarray of int, shape (m,)
        Which leaf each is.
    p, off : ndarray, shape (m,)
    mean, ratio : ndarray, shape (m, U)
        A coordinate is mean + ratio times a standard draw.
    family : ndarray of int, shape (m, U)
    """

    leaf: NDArray[np.intp]
    p: Array
    off: Array
    mean: Array
    ratio: Array
    family: NDArray[np.intp]

    @classmethod
    def of(cls, leaves: Sequence[ReleaseLaw], numbers: Sequence[int]) -> "MixtureTerms":
        """Return the terms that some of the leaves are."""
        some = [leaves[number] for number in numbers]
        laws = [leaf.law for leaf in some]
        shape = len(some), len(laws[0].first) if laws else 0
        mean = np.array([law.mean[law.first] for law in laws]).reshape(shape)
        ratio = np.array([law.ratio[law.first] for law in laws]).reshape(shape)
        kinds = np.array([law.family for law in laws], dtype=np.intp).reshape(shape)
        even = np.isin(kinds, (Family.GAUSSIAN, Family.LAPLACE, Family.LOGISTIC))
        ratio = np.where(even, np.abs(ratio), ratio)
        back = (kinds == Family.UNIFORM) & (ratio < 0)
        mean, ratio = np.where(back, mean + ratio, mean), np.where(back, -ratio, ratio)
        p = np.array([leaf.p for leaf in some])
        off = np.array([leaf.off for leaf in some])
        return cls(np.array(numbers, dtype=np.intp), p, off, mean, ratio, kinds)

    def __len__(self) -> int:
        return len(self.p)

    @property
    def surely(self) -> Array:
        """The least that the probabilities may be."""
        return np.maximum(self.p - self.off, 0.0)

    @property
    def at_most(self) -> Array:
        """The most that the probabilities may be."""
        return self.p + self.off

    def over(self, columns: NDArray[np.intp]) -> "MixtureTerms":
        """Return terms of some coordinates; those that become equal are added up."""
        mean, ratio = self.mean[:, columns], self.ratio[:, columns]
        family = self.family[:, columns]
        first, where = np.zeros(1, dtype=np.intp), np.zeros(len(self), dtype=np.intp)
        if len(columns):
            whole = np.concatenate([mean, ratio, family], axis=1)
            found = np.unique(whole, axis=0, return_index=True, return_inverse=True)
            first, where = found[1], found[2].ravel()
        p, off = np.zeros(len(first)), np.zeros(len(first))
        np.add.at(p, where, self.p)
        np.add.at(off, where, self.off)
        return MixtureTerms(
            self.leaf[first], p, off, mean[first], ratio[first], family[first]
        )

    def logs(self, y: Array) -> Array:
        """Return the log-densities of all terms at points; shape (N, U) -> (N, m)."""
        total = np.zeros((len(y), len(self)))
        with np.errstate(all="ignore"):
            for k in range(self.mean.shape[1]):
                ratio, kinds = self.ratio[:, k], self.family[:, k]
                u = (y[:, k, np.newaxis] - self.mean[:, k]) / ratio
                for family in np.unique(kinds).tolist():
                    some = np.flatnonzero(kinds == family)
                    total[:, some] += law_of(family).log_density(u[:, some])
                size = np.log(np.abs(ratio))
                total -= np.where(_on_lattice(kinds), 0.0, size)
        return total

    def rounding(self, y: Array, logs: Array) -> Array:
        """Return by how much the log-density of the mixture may be off, shape (N,)."""
        off = np.zeros(logs.shape)
        with np.errstate(all="ignore"):
            for k in range(self.mean.shape[1]):
                x, ratio = self.mean[:, k], np.abs(self.ratio[:, k])
                at = y[:, k, np.newaxis]
                steep = np.maximum(np.abs(at - x) / ratio, 1.0)
                for family in np.unique(self.family[:, k]).tolist():
                    if (lattice := lattice_of(family)) is not None:
                        steep[:, self.family[:, k] == family] = _steepest(lattice)
                off += _SAME * (np.abs(at) + np.abs(x)) / ratio * steep
            weights = np.exp(logs - logs.max(axis=1, keepdims=True, initial=-np.inf))
            weights = np.nan_to_num(weights * self.p)
            return np.asarray(
                (weights * off).sum(1) / np.maximum(weights.sum(1), 1e-300)
            )

    def sample(self, rng: np.random.Generator, size: int) -> Array:
        """Return independent values, shape (size, U)."""
        chosen = rng.choice(len(self), size, p=self.p / self.p.sum())
        made = np.empty((size, self.mean.shape[1]))
        for term in np.unique(chosen).tolist():
            rows = np.flatnonzero(chosen == term)
            for k, family in enumerate(self.family[term].tolist()):
                drawn = law_of(family).sample(rng, len(rows))
                made[rows, k] = self.mean[term, k] + self.ratio[term, k] * drawn
        return made


@dataclass(frozen=True, eq=False)
class CommonSupport:
    """What both mixtures are on one support.

    Parameters
    ----------
    one, other : MixtureTerms
        On D and on D', in the coordinates that are not the same in all terms. One of
        them may have no terms.
    unseen : float
        How probable what is left out of such a one may be.
    lost, other_lost : float
        How probable all leaves together may be that were left out on D, and on D', as
        their probabilities were rounded to 0.
    """

    one: MixtureTerms
    other: MixtureTerms
    unseen: float = 0.0
    lost: float = 0.0
    other_lost: float = 0.0

    @property
    def dimensions(self) -> int:
        """How many coordinates there are; where one side is empty, none matters."""
        if not (len(self.one) and len(self.other)):
            return 0
        return int(self.one.mean.shape[1])

    @property
    def in_cells(self) -> bool:
        """Whether it is one number, and it is known how probable each interval is."""
        sides = self.one, self.other
        codes = {code for side in sides for code in side.family.ravel().tolist()}
        return self.dimensions == 1 and all(
            hasattr(law_of(code), "law") or lattice_of(code) for code in codes
        )

    @property
    def swapped(self) -> "CommonSupport":
        """The same with D and D' exchanged."""
        return replace(
            self,
            one=self.other,
            other=self.one,
            lost=self.other_lost,
            other_lost=self.lost,
        )

    def over(self, columns: NDArray[np.intp]) -> "CommonSupport":
        """Return the part in some of its coordinates."""
        one, other = self.one.over(columns), self.other.over(columns)
        return replace(self, one=one, other=other)

    @property
    def masses(self) -> tuple[Array, Array, Array, Array]:
        """The probability on D, by how much it may be off, and both on D'."""
        each = [
            np.array([math.fsum(p), (math.fsum(off) if len(p) else self.unseen) + lost])
            for p, off, lost in (
                (self.one.p, self.one.off, self.lost),
                (self.other.p, self.other.off, self.other_lost),
            )
        ]
        return each[0][:1], each[0][1:], each[1][:1], each[1][1:]

    def loss(self, y: Array) -> Array:
        """Return what the loss at points is at least, shape (N,); -inf if not known."""
        with np.errstate(all="ignore"):
            logs, others = self.one.logs(y), self.other.logs(y)
            here = logsumexp(logs + np.log(self.one.surely), axis=1)
            there = logsumexp(others + np.log(self.other.at_most), axis=1)
            sizeable = np.where(self.one.p > _SIZEABLE, self.one.p, 0.0)
            sure = logsumexp(logs + np.log(sizeable), axis=1)
            off = self.one.rounding(y, logs) + self.other.rounding(y, others)
            found = here - there - off
        found = np.where(there == -np.inf, np.where(sure > -np.inf, np.inf, 0), found)
        return np.asarray(np.where((here == -np.inf) | np.isnan(found), -np.inf, found))

    def exact_loss(self, y: Array) -> Array:
        """Return the losses at points, as they are computed."""
        if not (len(self.one) and len(self.other)):
            return np.full(len(y), math.inf if len(self.one) else -math.inf)
        with np.errstate(all="ignore"):
            here, there = (
                logsumexp(each.logs(y) + np.log(each.p), axis=1)
                for each in (self.one, self.other)
            )
            return np.asarray(here - there)


def _steepest(lattice: Lattice) -> float:
    """Return by how much a log-probability changes with a step at most."""
    with np.errstate(invalid="ignore"):  # between two numbers that are impossible
        steps = np.abs([*np.diff(lattice.log), lattice.below, lattice.above])
    return float(steps[np.isfinite(steps)].max(initial=0.0))


def parts_of(
    leaves: Sequence[ReleaseLaw],
    others: Sequence[ReleaseLaw],
    *,
    lost: float = 0.0,
    other_lost: float = 0.0,
) -> list[CommonSupport]:
    """Return the parts that two mixtures fall into, by their supports.

    Parameters
    ----------
    leaves, others : sequence of ReleaseLaw
        On D and on D'.
    lost, other_lost : float
        As of `CommonSupport`.
    """
    found: list[tuple[ReleaseLaw, tuple[list[int], list[int]]]] = []
    for side, several in enumerate((leaves, others)):
        for number, leaf in enumerate(several):
            alike = (both for known, both in found if _one_support(known, leaf))
            both = next(alike, None)
            if both is None:
                both = ([], [])
                found.append((leaf, both))
            both[side].append(number)
    off = max((leaf.off for leaf in (*leaves, *others)), default=0.0)
    unseen = max(off, ROUNDING) if off else 0.0
    return [
        _apart(
            CommonSupport(
                MixtureTerms.of(leaves, here),
                MixtureTerms.of(others, there),
                unseen,
                lost,
                other_lost,
            )
        )
        for _, (here, there) in found
    ]


def _apart(part: CommonSupport) -> CommonSupport:
    """Return a part in the coordinates that are not the same in all terms."""
    one, other, m = part.one, part.other, len(part.one)
    if not (m and len(other)):
        return part
    mean = np.concatenate([one.mean, other.mean])
    ratio = np.concatenate([one.ratio, other.ratio])
    family = np.concatenate([one.family, other.family])
    columns = []
    for k in range(mean.shape[1]):
        mean[:, k] = _snapped(mean[:, k], _SAME)
        ratio[:, k] = _snapped(ratio[:, k], _CLOSE)
        whole = np.stack([mean[:, k], ratio[:, k], family[:, k]])
        if (whole != whole[:, :1]).any():
            columns.append(k)
    one = replace(one, mean=mean[:m], ratio=ratio[:m])
    other = replace(other, mean=mean[m:], ratio=ratio[m:])
    return replace(part, one=one, other=other).over(np.array(columns, dtype=np.intp))


def _snapped(values: Array, near: float) -> Array:
    """Return numbers of which those that differ by rounding are one."""
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    apart = np.diff(ascending) > near * np.abs(ascending[1:])
    first = np.concatenate([[0], np.cumsum(apart)]).astype(np.intp)
    starts = np.flatnonzero(np.concatenate([[True], apart]))
    made = np.empty(len(values))
    made[order] = ascending[starts[first]]
    return made


def _one_support(one: ReleaseLaw, other: ReleaseLaw) -> bool:
    """Say whether two laws of the release have densities to one measure."""
    law, law2 = one.law, other.law
    if one.layout != other.layout or len(law.mean) != len(law2.mean):
        return False
    if not np.array_equal(law.unit, law2.unit):
        return False
    lattices = _on_lattice(law.family), _on_lattice(law2.family)
    if not np.array_equal(*lattices):
        return False
    constant = law.unit < 0
    value, value2 = law.mean[constant], law2.mean[constant]
    if not np.allclose(value, value2, rtol=_CLOSE, atol=1e-12, equal_nan=True):
        return False
    rest = np.flatnonzero(~constant)
    lead = law.first[law.unit[rest]]
    slope, slope2 = (each.ratio[rest] / each.ratio[lead] for each in (law, law2))
    if not np.allclose(slope, slope2, rtol=_CLOSE, atol=0):
        return False
    line = law.mean[rest] - slope * law.mean[lead]
    line2 = law2.mean[rest] - slope2 * law2.mean[lead]
    size = np.abs(law.mean) + np.abs(law2.mean)
    rough = _CLOSE * (size[rest] + np.abs(slope) * size[lead])
    return bool((np.abs(line - line2) <= rough + 1e-12).all())


def _on_lattice(families: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Say which families are on a lattice."""
    if not families.size or families.max() < FIRST:
        return np.zeros(families.shape, dtype=bool)
    return np.array([lattice_of(int(each)) is not None for each in families])
