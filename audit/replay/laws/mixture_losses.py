r"""How far two mixtures lie apart: the largest loss, and the profile of deltas.

`dpaudit.audit.replay.laws.mixtures` says what mixtures are, and into which parts they
fall. Over parts the supremum of the loss is a maximum, and delta(epsilon), the integral
of (P - e^epsilon Q)_+, is a sum. In a part of

- **no coordinates** there are two probabilities;
- **one coordinate** the loss is looked for on a grid: around the centre of every term,
  on both sides of every kink and end of a density, far out in the tails, and closer and
  closer around the best, or at all numbers of a lattice
  (`dpaudit.audit.replay.laws.lattices`). It is no more than the supremum. For delta the
  line is cut into cells, whose probabilities are differences of distribution functions:
  those of a function of the release (which cell it is in), so that **their delta is no
  more than the true one**. Cells of a width h miss of it what is of the order of h^2;
- **several coordinates** losses are those of values that are drawn, and of corners, and
  of what is better nearby.

**From above** the loss of several coordinates is known as follows. Let f_c <= e^(S_cd)
g_d everywhere, for as many pairs of terms as it is known of. Take from each term c of P
shares w_cd >= 0 that add up to 1. Then P <= sum_d (sum_c p_c w_cd e^(S_cd)) g_d, which
is at most t Q if the sum over c is at most t q_d for every d. The least such t is that
of a linear programme, and no loss is above log t.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.choices import least_losses
from dpaudit.audit.replay.laws.coded import FIRST, Family, lattice_of, law_of
from dpaudit.audit.replay.laws.cuts import Cut
from dpaudit.audit.replay.laws.independence import blocks_of
from dpaudit.audit.replay.laws.lattices import endless, is_open_ended, on_lattices
from dpaudit.audit.replay.laws.mixtures import CommonSupport, MixtureTerms
from dpaudit.audit.replay.laws.one_draw import distribution

__all__ = ["Worst", "deltas", "no_more", "worst_of"]

_MOST_POINTS, _FEWEST = 12_000, 25
_FAR = (1e2, 1e3, 1e4)  # in scales
_SPREAD = 60.0
_DRAWN, _CORNERS, _ASCENTS = 500, 1500, 5
_MANY_DRAWN = 2000
_MOST_DENSITIES = 4_000_000  # that are computed at once
_BESIDE = 1e-6  # relative: so near an end, single precision decides where one is
_ALONE = 1e-9  # relative: so far from a point, it is no point alone
_LARGE = 30.0  # of a loss of two terms, from which on it is taken for infinite
_DIGITS = 4e-16  # that a distribution function may be off


@dataclass(frozen=True, eq=False)
class Worst:
    """The largest loss that was found, and where.

    Parameters
    ----------
    loss : float
    part : int
        In which part.
    at : ndarray, shape (U,)
        The value of its coordinates.
    back : bool
        Whether it is the loss of D' against D.
    """

    loss: float
    part: int
    at: Array
    back: bool


def worst_of(parts: list[CommonSupport]) -> Worst:
    """Return the largest loss of all parts, both ways round."""
    found = [
        _largest(side, number, back)
        for number, part in enumerate(parts)
        for back, side in ((False, part), (True, part.swapped))
    ]
    return max(found, key=lambda each: each.loss)


def deltas(parts: list[CommonSupport], epsilons: Array) -> Array:
    """Return lower bounds of delta, the greater of the two ways round.

    Of a part that is not one number in cells its whole probability alone is used.
    """
    one_way, back = np.zeros(len(epsilons)), np.zeros(len(epsilons))
    for part in parts:
        for side, total in ((part, one_way), (part.swapped, back)):
            p, q = _cells(side)
            for k, factor in enumerate(np.exp(epsilons).tolist()):
                total[k] += np.maximum(p - factor * q, 0.0).sum()
    if parts:
        one_way -= np.exp(epsilons) * parts[0].other_lost
        back -= np.exp(epsilons) * parts[0].lost
    return np.maximum(one_way, back)


def no_more(part: CommonSupport) -> float:
    """Return an upper bound of the loss of a part, both ways round.

    In one coordinate it is taken for what is found on the line, or on the lattice where
    its tails are known.
    """
    return max(_bound(part), _bound(part.swapped))


def _largest(part: CommonSupport, number: int, back: bool) -> Worst:
    if not part.dimensions:
        loss = float(least_losses(*part.masses)[0]) if len(part.one) else -math.inf
        return Worst(loss, number, np.empty(0), back)
    if part.dimensions > 1 and len(blocks := blocks_of(part)) > 1:
        return _together(part, blocks, number, back)
    y = _on_line(part)[:, np.newaxis] if part.dimensions == 1 else _values(part)
    if part.other_lost:
        y = part.one.sample(np.random.default_rng(part.dimensions), _MANY_DRAWN)
    found = _losses(part, y)
    if not part.other_lost:
        nearer = _nearer if part.dimensions == 1 else _ascended
        y, found = nearer(part, y, found)
    best = int(np.argmax(found))
    return Worst(float(found[best]), number, y[best], back)


def _together(part: CommonSupport, blocks: Any, number: int, back: bool) -> Worst:
    """Return the largest loss of independent blocks."""
    at, loss = np.empty(part.dimensions), float(least_losses(*part.masses)[0])
    for columns, block in blocks:
        worst = _largest(block, number, back)
        at[columns] = worst.at
        loss += worst.loss
    return Worst(loss, number, at, back)


def _losses(part: CommonSupport, y: Array) -> Array:
    """Return losses at points, -inf where a density ends; some at a time."""
    found = _at(part, y)
    for k in range(part.dimensions):
        ends, scale = _ends(part, k)
        found[_beside(y[:, k], ends, scale)] = -np.inf
        if len(ends):
            # Endless steps jump far out, too. What holds at a point alone has no mass.
            apart = np.zeros(y.shape)
            apart[:, k] = _ALONE * (scale + np.abs(y[:, k]))
            below, above = map(partial(_at, part), (y - apart, y + apart))
            found = np.minimum(found, np.maximum(below, above))
    return found


def _at(part: CommonSupport, y: Array) -> Array:
    """Return losses at points, some at a time."""
    step = max(1, _MOST_DENSITIES // (len(part.one) + len(part.other)))
    pieces = [part.loss(y[k : k + step]) for k in range(0, len(y), step)]
    return np.concatenate(pieces) if pieces else np.empty(0)


def _ends(part: CommonSupport, k: int) -> tuple[Array, float]:
    """Return where densities of a coordinate end, and the least scale."""
    mean, ratio, family = _column(part, k)
    ends = [np.empty(0)]
    for kind in np.unique(family).tolist():
        some, jumps = family == kind, Cut.ends_of(kind)
        ends.append((mean[some, np.newaxis] + np.outer(ratio[some], jumps)).ravel())
    return np.unique(np.concatenate(ends)), float(np.abs(ratio).min())


def _column(part: CommonSupport, k: int) -> tuple[Array, Array, NDArray[np.intp]]:
    """Return the centres, scales and families of all terms in one coordinate."""
    mean, ratio, family = (
        np.concatenate([getattr(part.one, name), getattr(part.other, name)])[:, k]
        for name in ("mean", "ratio", "family")
    )
    return mean, ratio, family


def _beside(y: Array, ends: Array, scale: float) -> NDArray[np.bool_]:
    """Say which points are so near an end that rounding may decide on which side."""
    if not len(ends):
        return np.zeros(len(y), dtype=bool)
    place = np.searchsorted(ends, y)
    near = np.minimum(
        np.abs(y - ends[np.maximum(place - 1, 0)]),
        np.abs(y - ends[np.minimum(place, len(ends) - 1)]),
    )
    return np.asarray(near <= _BESIDE * (scale + np.abs(y)))


def _on_line(part: CommonSupport) -> Array:
    """Return ascending points of one coordinate; on a lattice, all that matter."""
    mean, ratio, family = _column(part, 0)
    if lattice_of(int(family[0])) is not None:
        return on_lattices(mean, ratio, family)
    mean, ratio, family = np.unique(np.stack([mean, ratio, family]), axis=1)
    size, (ends, _) = np.abs(ratio), _ends(part, 0)
    count = max(_FEWEST, min(401, _MOST_POINTS // len(mean)))
    offsets = np.sinh(np.linspace(-1, 1, count) * math.asinh(_SPREAD))
    around = (mean[:, np.newaxis] + size[:, np.newaxis] * offsets).ravel()
    beside = [
        ends + sign * size.min() * near for sign in (-1, 1) for near in (1e-5, 1e-3)
    ]
    breaks = np.unique(np.concatenate([ends, mean]))
    inner = np.linspace(breaks[:-1], breaks[1:], 33)[1:-1].ravel()
    return np.unique(np.concatenate([around, *beside, breaks, inner, *_tails(part)]))


def _tails(part: CommonSupport) -> tuple[Array, Array]:
    """Return points far out on either side, the farthest last."""
    mean, ratio, _ = _column(part, 0)
    far = np.abs(ratio).max() * np.array(_FAR)
    return mean.min() - far, mean.max() + far


def _nearer(part: CommonSupport, y: Array, found: Array) -> tuple[Array, Array]:
    """Return points that come closer to the best, and the losses there."""
    _, _, family = _column(part, 0)
    best = int(np.argmax(found))
    if np.isinf(found[best]):
        return y, found
    if lattice_of(int(family[0])) is not None:
        end = endless(part)
        return (y, found) if end is None else (end, np.array([np.inf]))
    for tail in _tails(part):
        far = _losses(part, tail[:, np.newaxis])
        if far[-1] > far[-2] + 1 and far[-1] >= found[best]:  # there is no largest
            return tail[-1:, np.newaxis], np.array([np.inf])
    for _ in range(4):
        left, right = y[max(best - 1, 0), 0], y[min(best + 1, len(y) - 1), 0]
        y = np.append(np.linspace(left, right, 65), y[best, 0])[:, np.newaxis]
        y = np.sort(y, axis=0)
        found = _losses(part, y)
        best = int(np.argmax(found))
    return y, found


def _values(part: CommonSupport) -> Array:
    """Return values of several coordinates: drawn from either side, and corners."""
    terms, k = len(part.one) + len(part.other), part.dimensions
    most = max(20, _MOST_DENSITIES // (terms * k))
    rng = np.random.default_rng(k)
    drawn = [side.sample(rng, min(_DRAWN, most)) for side in (part.one, part.other)]
    count = min(_CORNERS, most)
    corners = np.stack([rng.choice(_marks(part, j), count) for j in range(k)], axis=1)
    return np.concatenate([*drawn, corners])


def _marks(part: CommonSupport, k: int) -> Array:
    """Return the centres of a coordinate, points beside them and far out."""
    mean, ratio, _ = _column(part, k)
    size = np.abs(ratio)
    marks = [
        mean + sign * near * size for near in (0.0, 1e-5, 0.5, 40.0) for sign in (-1, 1)
    ]
    return np.unique(np.concatenate(marks))


def _ascended(part: CommonSupport, y: Array, found: Array) -> tuple[Array, Array]:
    """Return the best of some values, moved to better ones a coordinate at a time."""
    best = np.argsort(-found)[:_ASCENTS]
    y, found = y[best].copy(), found[best].copy()
    if part.dimensions > 50:
        return y, found
    for k in [*range(part.dimensions)] * 2:
        marks = _marks(part, k)[:100]
        for row in range(len(y)):
            tried = np.repeat(y[row : row + 1], len(marks), axis=0)
            tried[:, k] = marks
            losses = _losses(part, tried)
            top = int(np.argmax(losses))
            if losses[top] > found[row]:
                y[row], found[row] = tried[top], losses[top]
    return y, found


def _cells(part: CommonSupport) -> tuple[Array, Array]:
    """Return at least what the cells have on D, and at most what they have on D'."""
    if not part.in_cells:
        p, off, q, off_there = part.masses
        return np.maximum(p - off, 0.0), q + off_there
    y = _on_line(part)
    y = y[~_beside(y, *_ends(part, 0))]
    here, there = (_cell_masses(terms, y) for terms in (part.one, part.other))
    p = np.maximum(here[0] - here[1], 0.0) @ part.one.surely
    return p, (there[0] + there[1]) @ part.other.at_most


def _cell_masses(terms: MixtureTerms, edges: Array) -> tuple[Array, Array]:
    """Return the probabilities of cells by term, and by how much they may be off."""
    if lattice_of(int(terms.family[0, 0])) is not None:  # a cell for each number
        masses = np.exp(terms.logs(edges[:, np.newaxis]))
        return masses, np.zeros(masses.shape)
    masses = np.empty((len(edges) + 1, len(terms)))
    off = np.empty(masses.shape)
    columns = zip(terms.mean[:, 0], terms.ratio[:, 0], terms.family[:, 0], strict=True)
    for number, (x, b, family) in enumerate(columns):
        u, law = (edges - x) / b, distribution(int(family))
        with np.errstate(over="ignore"):
            below, above = law.cdf(u), law.sf(u)
        if b < 0:
            below, above = above, below
        below, above = (
            np.concatenate([[0], below, [1]]),
            np.concatenate([[1], above, [0]]),
        )
        lower = below[1:] <= 0.5
        masses[:, number] = np.where(lower, np.diff(below), -np.diff(above))
        off[:, number] = _DIGITS * np.where(lower, below[1:], above[:-1])
    return masses, off


def _bound(part: CommonSupport) -> float:
    """Return an upper bound of the loss of D against D'."""
    if part.dimensions < 2:
        unknown = is_open_ended(part)
        return math.inf if unknown else _largest(part, 0, back=False).loss
    if len(blocks := blocks_of(part)) > 1:
        apart = sum(_bound(block) for _, block in blocks)
        return float(least_losses(*part.masses)[0]) + apart
    from scipy.optimize import linprog

    one, other = part.one, part.other
    suprema = _suprema(one, other)
    c, d = np.nonzero(suprema < _LARGE)
    if len(np.unique(c)) < len(one):
        return math.inf
    costs = one.at_most[c] * np.exp(suprema[c, d])
    q, pairs = other.surely, np.arange(len(c))
    shares = np.zeros((len(one), len(c) + 1))
    shares[c, pairs] = 1.0
    sums = np.zeros((len(other), len(c) + 1))
    sums[d, pairs], sums[:, -1] = costs, -q
    target = np.zeros(len(c) + 1)
    target[-1] = 1.0
    solved = linprog(
        target,
        A_ub=sums,
        b_ub=np.zeros(len(other)),
        A_eq=shares,
        b_eq=np.ones(len(one)),
    )
    if not solved.success:
        return math.inf
    w = np.maximum(solved.x[:-1], 0.0)  # whatever they are, the bound holds
    w = w / np.bincount(c, w, len(one))[c]
    needed = np.bincount(d, w * costs, len(other))
    with np.errstate(all="ignore"):
        return float(np.log(np.nan_to_num(needed / q, nan=0.0).max()))


def _suprema(one: MixtureTerms, other: MixtureTerms) -> Array:
    """Return the suprema of the losses of terms against terms, shape (m, n)."""
    x, b, kind = (each[:, np.newaxis] for each in (one.mean, one.ratio, one.family))
    x2, b2, kind2 = (
        each[np.newaxis] for each in (other.mean, other.ratio, other.family)
    )
    with np.errstate(all="ignore"):
        gap, grows = np.abs(x - x2), np.log(np.abs(b2 / b))
        wider = np.abs(b2) >= np.abs(b)
        inside = (np.sign(b) == np.sign(b2)) & (np.sign(b) * (x - x2) >= 0)
        known = {
            Family.LAPLACE: np.where(wider, grows + gap / np.abs(b2), np.inf),
            Family.LOGISTIC: np.where(b == b2, gap / np.abs(b), np.inf),
            Family.GAUSSIAN: np.where(
                b2 > b, grows + gap**2 / (2 * (b2**2 - b**2)), np.inf
            ),
            Family.EXPONENTIAL: np.where(
                wider & inside, grows + gap / np.abs(b2), np.inf
            ),
            Family.UNIFORM: np.where((x2 <= x) & (x + b <= x2 + b2), grows, np.inf),
        }
    total = np.select(
        [(kind == family) & (kind2 == family) for family in known],
        list(known.values()),
        np.inf,
    )
    coded = (kind >= FIRST) & (kind2 >= FIRST) & (b == b2)
    for c, d, k in np.argwhere(coded).tolist():
        codes = int(one.family[c, k]), int(other.family[d, k])
        if codes[0] == codes[1] or lattice_of(codes[0]) is None:
            shift = float((other.mean[d, k] - one.mean[c, k]) / one.ratio[c, k])
            found = law_of(codes[0]).supremum(shift, law_of(codes[1]))
            total[c, d, k] = np.inf if math.isnan(found) else found
    same = (kind == kind2) & (x == x2) & (b == b2)
    return np.asarray(np.where(same, 0.0, total).sum(axis=2))
