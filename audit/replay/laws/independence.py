r"""Mixtures whose coordinates are independent: losses that add up.

A random sign for each of several numbers makes a mixture of 2^k terms, and yet the
numbers are independent. Let the coordinates fall into blocks, and let what a term is in
one block be independent, with the probabilities of the terms, of what it is in the
others. Then the law is the product of those in the blocks. If that is so on D and on D'
with the same blocks, the loss is the sum of theirs, and so is its supremum.
"""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.mixtures import CommonSupport, MixtureTerms

__all__ = ["blocks_of"]

_MOST = 16  # coordinates
_EQUAL = 1e-11  # of probabilities


def blocks_of(part: CommonSupport) -> list[tuple[NDArray[np.intp], CommonSupport]]:
    """Return blocks of coordinates and what a part is there, given that it is it.

    There is one if nothing is independent of each other.
    """
    k = part.dimensions
    columns = [np.arange(k)]
    if k <= _MOST:
        sides = [
            (_named(each), each.p / each.p.sum()) for each in (part.one, part.other)
        ]
        blocks = {j: {j} for j in range(k)}
        for i, j in combinations(range(k), 2):
            if not all(
                _independent(names[:, [i]], names[:, [j]], p) for names, p in sides
            ):
                joined = blocks[i] | blocks[j]
                blocks |= dict.fromkeys(joined, joined)
        found = sorted({tuple(sorted(each)) for each in blocks.values()})
        if all(
            _independent(names[:, [*block]], np.delete(names, block, axis=1), p)
            for names, p in sides
            for block in found[:-1]
        ):
            columns = [np.array(block, dtype=np.intp) for block in found]
    over = [part.over(each) for each in columns]
    return [
        (each, replace(found, one=_sure(found.one), other=_sure(found.other)))
        for each, found in zip(columns, over, strict=True)
    ]


def _named(terms: MixtureTerms) -> NDArray[np.intp]:
    """Return which of the things it may be a term is in each coordinate."""
    names = [
        np.unique(np.stack(column), axis=1, return_inverse=True)[1].ravel()
        for column in zip(terms.mean.T, terms.ratio.T, terms.family.T, strict=True)
    ]
    return np.stack(names, axis=1)


def _independent(one: NDArray[np.intp], other: NDArray[np.intp], p: Array) -> bool:
    """Say whether two things that terms are are independent of each other."""
    rows, columns = (
        np.unique(each, axis=0, return_inverse=True)[1].ravel() for each in (one, other)
    )
    joint = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(joint, (rows, columns), p)
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return bool((np.abs(joint - product) <= _EQUAL * product).all())


def _sure(terms: MixtureTerms) -> MixtureTerms:
    """Return terms with probabilities that add up to 1."""
    p = terms.p / math.fsum(terms.p)
    off = terms.off / math.fsum(terms.p) + _EQUAL * p
    return replace(terms, p=p, off=off)
