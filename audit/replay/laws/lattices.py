"""Mixtures of one number on a lattice: which numbers matter, and what is far out.

Tables end where probabilities are small, and a loss may have no bound beyond. Where
probabilities have formulas (`Lattice.exact`: geometric, Poisson, binomial ones), the
loss is computed far out, and grows there if it has no bound: Poisson laws of two means
lie k log(mean/mean') apart. Of other laws the rate is known at which they fall beyond
their tables. Where the slowest rates on both sides are one, a loss stays what it is at
the ends. Otherwise nothing is known of it: what was found proves what it proves, and no
bound from above (`is_open_ended`).
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.coded import SURE, Family, lattice_of, law_of
from dpaudit.audit.replay.laws.mixtures import CommonSupport, MixtureTerms

__all__ = ["endless", "is_open_ended", "on_lattices"]

_TAIL = math.log(1e-9)  # of the ends of tables that were cut
_MOST_ON_LATTICE = 100_000
_MOST_FAR, _WIDE = 2**28, 200  # steps, and at how many, of noise that a table cuts
_FAR = (1e5, 1e7, 1e9)  # steps
_GROWN = 1.0  # a loss, over two powers of ten; that of errors is below 1e-5


def on_lattices(mean: Array, ratio: Array, family: NDArray[np.intp]) -> Array:
    """Return the numbers that have a probability, none that errors make of two laws."""
    several, laws = [], [law_of(code) for code in family.tolist()]
    each = max(100, _MOST_ON_LATTICE // len(mean))
    ends = min(min(law.log[0], law.log[-1]) for law in laws)
    exact = len({*family.tolist()}) == 1 or all(law.exact for law in laws)
    least = SURE if ends < _TAIL and not exact else 0.0
    for x, b, law in zip(mean, ratio, laws, strict=True):
        start, p = law.table()
        k = np.sort(np.argsort(-p, kind="stable")[:each])
        several.append(x + b * (start + k[(p[k] > least) | (p[k] == p.max())]))
        if getattr(law, "family", None) == Family.LAPLACE:  # rounded: it has a formula
            far = np.rint(np.geomspace(1.0, min(60 * law.scale, _MOST_FAR), _WIDE))
            middle = round(law.centre)
            several += [x + b * (middle - far), x + b * (middle + far)]
    y = np.sort(np.concatenate(several))
    return np.asarray(y[np.diff(y, prepend=-np.inf) > 1e-6 * np.abs(ratio).min()])


def endless(part: CommonSupport) -> Array | None:
    """Return a number far out, shape (1, 1), where a loss grows without end, if any.

    That of D against D', of laws whose tails have formulas, or that have none.
    """
    columns = [
        np.concatenate([getattr(side, name)[:, 0] for side in (part.one, part.other)])
        for name in ("mean", "ratio", "family")
    ]
    mean, ratio, family = np.unique(np.stack(columns), axis=1)
    if part.other_lost or not all(_ends_known(law_of(int(code))) for code in family):
        return None
    for side in (-1, 1):
        far = mean + ratio * side * np.array(_FAR)[:, np.newaxis]
        near, farther, farthest = _losses(part, far)
        grown = (farthest > farther + _GROWN) & (farther > near + _GROWN)
        if grown.any():
            return far[-1:, np.flatnonzero(grown)[:1]]
    return None


def _losses(part: CommonSupport, y: Array) -> Array:
    """Return losses of one number, -inf where it is not possible."""
    sides = (part.one, part.one.surely), (part.other, part.other.at_most)
    with np.errstate(all="ignore"):
        here, there = (
            logsumexp(terms.logs(y.reshape(-1, 1)) + np.log(p), axis=1)
            for terms, p in sides
        )
        loss = np.where(here == -np.inf, -np.inf, here - there)
    return np.asarray(loss.reshape(y.shape))


def is_open_ended(part: CommonSupport) -> bool:
    """Say whether a loss of one number on a lattice may be more than what is found.

    And by any amount, as little is known of the tails.
    """
    if part.dimensions != 1 or lattice_of(int(part.one.family[0, 0])) is None:
        return False
    codes = np.unique(np.concatenate([part.one.family, part.other.family]))
    laws = [law_of(code) for code in codes.tolist()]
    unknown = [law for law in laws if not _ends_known(law)]
    if len(laws) == 1 or not unknown:
        return False
    if any(law.finite for law in unknown):  # a table that was cut, and no more
        return True
    one, other = (_slowest(terms) for terms in (part.one, part.other))
    return not np.allclose(one, other, rtol=1e-6, atol=0)


def _ends_known(law: Any) -> bool:
    """Say whether the tails of a law are known, or whether it has none."""
    return law.exact or (law.finite and min(law.log[0], law.log[-1]) > _TAIL)


def _slowest(terms: MixtureTerms) -> Array:
    """Return the rates at which terms on a lattice fall, down and up."""
    falls = []
    for ratio, code in zip(terms.ratio[:, 0], terms.family[:, 0], strict=True):
        law = law_of(int(code))
        ends = (law.below, law.above) if ratio > 0 else (law.above, law.below)
        falls.append([each / abs(ratio) for each in ends])
    return np.asarray(np.min(falls, axis=0))
