"""Pairs of neighbouring datasets that are worth an audit's time.

First the pair that is given, if one is, then those that the mechanism itself names,
brought into the domain where they lie outside it: a claim is about legal datasets, and
what happens beyond refutes nothing.
Where malformed rows are legal, they come next. Then structured pairs, in which one row
meets a dataset that makes it matter: no other row, copies of itself or of its opposite,
two balanced camps (a median or a top eigenvector then hangs on one row), a small camp
that becomes outliers beside a large one, or a spread-out dataset whose top or bottom
direction it takes. Where rows are vectors whose column
sums are the answers of counting queries, the answers follow the patterns of Ding et
al., *Detecting violations of differential privacy*, CCS 2018 (the same in Bichsel et
al., *DP-Sniper*, S&P 2021): one answer moves, all move, half of them, one against the
rest, or two halves change places. Then come pairs at the numbers with which a function
compares (`dpaudit.audit.search.suspects`). Beyond these there are random pairs without
end, and ascent: small moves of a pair that has done well.

Which pairs are proposed bears on how soon an audit finds a violation, never on whether
its verdict is right.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from dpaudit.arrays import Array
from dpaudit.attacks.base import consult
from dpaudit.audit.search.cut import PairCut
from dpaudit.audit.search.suspects import suspects
from dpaudit.domains import Box, Domain, UnitBall, WithNonfinite
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.mechanism import HasCanonicalPairs, HasWorstCase, Mechanism
from dpaudit.neighbours import Pair, Relation
from dpaudit.streams import stream

__all__ = ["Proposals"]

_MOST = 40
_TRIES = 20  # of random rows that make a pair of those beside them
_OUTVOTED = (5, 4, 10, 2)
_MOVES = {"differing": 0.5, "common": 0.3, "size": 0.15, "place": 0.05}


class Proposals:
    """Neighbouring pairs for one mechanism, domain and relation.

    Parameters
    ----------
    mechanism : Mechanism or callable
        Asked for `HasCanonicalPairs` and `HasWorstCase`.
    domain : Domain or None
        Without one, only the mechanism's own pairs are proposed.
    relation : Relation or str
        Every pair is one of neighbours under it, with rows of the domain alone.
    seed : int
        Of the random dataset behind some structured pairs.
    begin : Pair, optional
        With rows of the domain: the first.

    Raises
    ------
    InputError
        If there is neither a domain nor a pair that the mechanism names, a pair is
        under another relation, or the first is not of the domain.

    Examples
    --------
    >>> def black_box(data, rng):
    ...     return data.sum()
    >>> pair = Proposals(black_box, UnitBall(2), "add-remove", seed=0).first()[0]
    >>> len(pair.data), pair.neighbour.tolist()
    (0, [[1.0, 0.0]])
    """

    def __init__(
        self,
        mechanism: Mechanism | Callable[..., Any],
        domain: Domain | None,
        relation: Relation | str,
        seed: int,
        begin: Pair | None = None,
    ) -> None:
        self.domain = domain
        self.relation = Relation.parse(relation)
        distinct: dict[Any, Pair] = {}
        if begin is not None:
            _check_legal(begin, domain)
        given = [] if begin is None else [begin]
        for pair in (*given, *_canonical(mechanism, domain)):
            _check_relation(pair, self.relation)
            legal = pair if domain is None else _brought_into(domain, pair)
            if legal is not None:
                distinct.setdefault(_fingerprint(legal), legal)
        if domain is not None:
            for pair in _structured(mechanism, domain, self.relation, stream(seed)):
                distinct.setdefault(_fingerprint(pair), pair)
                if len(distinct) >= _MOST:
                    break
        if not distinct:
            raise InputError(
                "domain is needed: the mechanism names no pair of neighbours"
            )
        self._first = tuple(distinct.values())[:_MOST]

    @property
    def endless(self) -> bool:
        """Whether there are pairs beyond the first: only a domain has them."""
        return self.domain is not None

    def first(self) -> tuple[Pair, ...]:
        """Return the mechanism's own pairs, then structured ones; at most 40."""
        return self._first

    def random(self, rng: np.random.Generator) -> Pair:
        """Return a random pair.

        Raises
        ------
        InputError
            If there is no domain.
        """
        domain = self._required_domain()
        sizes = (0, 1, domain.n_rows, int(rng.integers(2 * domain.n_rows)))
        size = sizes[rng.integers(len(sizes))]
        rows = [_random_row(domain, rng) for _ in range(size)]
        if size and rng.random() < 0.5:
            rows = rows[:1] * size
        place = int(rng.integers(size + 1))
        refused = 0
        while True:
            cut = PairCut(
                rows, place, _random_row(domain, rng), _random_row(domain, rng)
            )
            pair = cut.pair(domain, self.relation)
            if pair is not None:
                return pair
            refused += 1
            if refused % _TRIES == 0:  # a set that has all there is tells none apart
                rows = rows[: len(rows) // 2]
                place = min(place, len(rows))
        raise AssertionError

    def ascend(self, pair: Pair, scale: float, rng: np.random.Generator) -> Pair:
        """Return a pair of the domain near to one that has done well.

        Moves a row that differs, moves a common row (or all its copies), adds or drops
        a common row, or changes the place of the row that differs. A pair outside the
        domain is first brought into it.

        Parameters
        ----------
        pair : Pair
            Under the relation.
        scale : float
            As in `Domain.nearby`, in (0, 1].
        rng : numpy.random.Generator

        Returns
        -------
        Pair
            A random one if the rows of `pair` do not have the domain's shape.

        Raises
        ------
        InputError
            If there is no domain, or the pair is under another relation.
        """
        domain = self._required_domain()
        _check_relation(pair, self.relation)
        if pair.rows is None or pair.rows.data.shape[1:] != domain.shape:
            return self.random(rng)
        start = PairCut.of(pair.rows, domain)
        for _ in range(20):
            moved = _move(start, domain, self.relation, scale, rng)
            candidate = moved.pair(domain, self.relation)
            if candidate and _fingerprint(candidate) != _fingerprint(pair):
                return candidate
        return self.random(rng)  # every move ended where it began

    def _required_domain(self) -> Domain:
        if self.domain is None:
            raise InputError("domain is needed to propose pairs beyond the mechanism's")
        return self.domain


def _move(
    cut: PairCut,
    domain: Domain,
    relation: Relation,
    scale: float,
    rng: np.random.Generator,
) -> PairCut:
    """Return one random move of a pair; half of all moves are of a differing row."""
    common, size = list(cut.common), len(cut.common)
    kinds, weights = zip(*_MOVES.items(), strict=True)
    kind = rng.choice(kinds, p=weights)
    if kind == "place" and size:
        return replace(cut, place=int(rng.integers(size + 1)))
    if kind == "size":
        if size and rng.random() < 0.5:
            index = int(rng.integers(size))
            del common[index]
            return replace(cut, common=common, place=cut.place - (index < cut.place))
        sources = [*common, cut.after, _random_row(domain, rng)]
        common.append(sources[rng.integers(len(sources))])
        return replace(cut, common=common)
    if kind == "common" and size:
        index = int(rng.integers(size))
        old, new = common[index], domain.nearby(common[index], scale, rng=rng)
        copies = rng.random() < 0.5
        for i, row in enumerate(common):
            if i == index or (copies and np.array_equal(row, old, equal_nan=True)):
                common[i] = new
        return replace(cut, common=common)
    if relation is Relation.REPLACE_ONE and rng.random() < 0.5:
        return replace(cut, before=domain.nearby(cut.before, scale, rng=rng))
    return replace(cut, after=domain.nearby(cut.after, scale, rng=rng))


def _canonical(
    mechanism: Mechanism | Callable[..., Any], domain: Domain | None
) -> list[Pair]:
    """Return the pairs that the mechanism names, where it can name any."""
    found: list[Pair] = []
    with suppress(UnsupportedError):
        if isinstance(mechanism, HasCanonicalPairs):
            found += consult(mechanism.canonical_pairs)
    with suppress(UnsupportedError):
        if isinstance(mechanism, HasWorstCase):
            shape = () if domain is None else domain.shape
            found.append(consult(mechanism.worst_case, *shape))
    return found


def _brought_into(domain: Domain, pair: Pair) -> Pair | None:
    """Return the pair if it is legal, else the nearest legal one, if there is any.

    There is none if rows have another shape, or if the row in which the datasets differ
    becomes the same in both.
    """
    if pair.rows is None or pair.rows.data.shape[1:] != domain.shape:
        return None
    rows = pair.rows
    if all(map(domain.contains, (*rows.data, *rows.neighbour))):
        return domain.pair(rows.data, rows.neighbour, pair.relation)
    if not (rows.finite or domain.nonfinite):
        return None
    return PairCut.of(rows, domain).pair(domain, pair.relation)


def _check_legal(pair: Pair, domain: Domain | None) -> None:
    rows = None if pair.rows is None else (*pair.rows.data, *pair.rows.neighbour)
    if domain is None or rows is None or not all(map(domain.contains, rows)):
        shapes = ""
        if domain and pair.rows and pair.rows.data.shape[1:] != domain.shape:
            shape = pair.rows.data.shape[1:]
            shapes = f" of shape {shape}, where the domain's is {domain.shape}"
        raise InputError(f"pair must have rows of the domain, got others{shapes}")


def _check_relation(pair: Pair, relation: Relation) -> None:
    if not isinstance(pair, Pair):
        raise InputError(f"a proposed pair must be a Pair, got {type(pair).__name__}")
    if pair.relation is not relation:
        raise InputError(
            f"the pair is one of neighbours under {pair.relation}, "
            f"but the audit is under {relation}"
        )


def _structured(
    mechanism: Any, domain: Domain, relation: Relation, rng: np.random.Generator
) -> Iterator[Pair]:
    """Yield structured pairs, those of most promise first."""
    if isinstance(domain, WithNonfinite):
        plain = domain.inner.extremes()[0]
        for row in domain.strange_rows():
            pair = PairCut([], 0, plain, row).pair(domain, relation)
            assert pair is not None  # a finite row and one that is not
            yield pair
        domain = domain.inner
    zero, top, *others = domain.extremes()
    other = others[0] if others else zero
    rival = other if isinstance(domain, UnitBall) else zero
    n = domain.n_rows
    camp = max(n // 2, 1)
    settings: list[list[Array]] = [
        [],
        [zero],
        [top] * n,
        [top] * camp + [rival] * camp,
        [zero] * n,
        [other] * n,
        [domain.random_row(rng=rng) for _ in range(n)],
    ]
    changes = [(zero, top), *((top, x) for x in others), *((zero, x) for x in others)]
    if relation is Relation.ADD_REMOVE:
        changes = [(zero, x) for x in (top, *others, zero)]
    ranked = sorted(
        (i + j, i, j) for i in range(len(settings)) for j in range(len(changes))
    )
    cuts = [PairCut(settings[i], len(settings[i]), *changes[j]) for _, i, j in ranked]
    special = [
        *suspects(mechanism, domain, relation),
        *_counting(domain, relation),
        *_spectral(domain, settings[-1]),
        *_outvoted(zero, top, n),
    ]
    # Half of the general pairs that are certain to be kept come before the special.
    early = max((_MOST - len(special)) // 2, 0)
    for cut in (*cuts[:early], *special, *cuts[early:]):
        pair = cut.pair(domain, relation)
        if pair is not None:
            yield pair


def _counting(domain: Domain, relation: Relation) -> Iterator[PairCut]:
    """Yield patterns in the column sums of categories, or of vectors with two extremes.

    Categories: each once, and one moves, or a user with all comes first. Vectors: in
    units of the width every answer is 1 before, or those of one half. Under REPLACE_ONE
    each moves by -1, 0 or 1; under ADD_REMOVE none can move down.
    """
    if rows := domain.spread():
        yield PairCut(rows, len(rows), rows[1], rows[0])
        yield from (PairCut(rows, 0, rows[0], row) for row in domain.extremes()[1:3])
    if not isinstance(domain, Box) or not domain.shape:
        return
    k = domain.shape[0]
    one = np.eye(k, dtype=np.intp)[0]
    half = np.where(np.arange(k) < k // 2, 1, 0)
    every = np.ones(k, dtype=np.intp)
    rest, other_half = every - one, every - half
    ups = [(every, one), (every, every), (every, rest), (every, other_half)]
    low = domain.corner(0 * one)
    for present, up in (*ups, (half, other_half)):
        yield PairCut([domain.corner(present)], 1, low, domain.corner(up))
    if relation is Relation.ADD_REMOVE:
        return
    yield PairCut([], 0, domain.corner(half), domain.corner(other_half))
    for move in (one - rest, rest - one, -one, -every, other_half - half):
        down, up = domain.corner(move < 0), domain.corner(move > 0)
        yield PairCut([domain.corner(move >= 0)], 1, down, up)


def _spectral(domain: Domain, common: Sequence[Array]) -> Iterator[PairCut]:
    """Yield a row along the top, then the bottom, principal direction of the others."""
    if not isinstance(domain, UnitBall) or domain.dimension == 1:
        return
    _, vectors = np.linalg.eigh(np.transpose(common) @ np.array(common))
    bottom, top = (domain.project(vectors[:, i] * domain.norm) for i in (0, -1))
    yield PairCut(common, len(common), bottom, top)
    yield PairCut(common, len(common), top, bottom)


def _outvoted(zero: Array, top: Array, n: int) -> Iterator[PairCut]:
    """Yield a small camp against a large one, at the shares where it becomes outliers.

    Rows are taken for outliers beyond so many deviations of the mean, beyond the
    quartiles or some multiple of the median. One row at 1 in s among zeros lies
    sqrt(s - 1) deviations from the mean: s = 5 and 10 are two and three; quartiles and
    medians change at s = 4 and 2. One row more or less of the large camp decides then
    over the whole of the small one. So does one more of the small camp, which lets all
    of it pass; where a row is replaced, that is the same as one less of the large one.
    """
    for share in _OUTVOTED:
        small = max(n // share, 1)
        large = (share - 1) * small
        for others in (large, large - 1):
            common = [top] * small + [zero] * others
            yield PairCut(common, len(common), top, zero)
    for share in _OUTVOTED:  # no pair where a row is replaced
        small = max(n // share, 1)
        common = [top] * small + [zero] * share * small
        yield PairCut(common, len(common), top, top)


def _random_row(domain: Domain, rng: np.random.Generator) -> Array:
    """Return a random row, one in four an extreme."""
    if rng.random() < 0.25:
        extremes = domain.extremes()
        return extremes[rng.integers(len(extremes))]
    return domain.random_row(rng=rng)


def _fingerprint(pair: Pair) -> frozenset[Any]:
    """Return what is the same for equal pairs only, whichever dataset comes first.

    An audit weighs both directions of a pair at once. Adding 0 turns -0 into 0.
    """
    sides = (pair.rows.data, pair.rows.neighbour) if pair.rows else ()
    return frozenset((side.shape, (side + 0.0).tobytes()) for side in sides)
