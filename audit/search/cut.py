"""A pair of neighbours in parts, and in words."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.arrays import Array
from dpaudit.domains import Domain
from dpaudit.neighbours import Pair, Relation

__all__ = ["PairCut"]

_TOLD = 4  # different rows that words name


@dataclass(frozen=True)
class PairCut:
    """A pair in parts: the common rows, and what stands between them on either side.

    Under ADD_REMOVE the datasets are the common rows without and with `after`, and
    `before` is not used.

    Examples
    --------
    >>> domain = Domain.parse("age:0..100 sex:{f,m}")
    >>> rows = np.array([[0, 0], [0, 0], [90, 1]])
    >>> PairCut.words(Pair(rows[:2], rows), domain)
    "D has 2 x (age=0 sex=f); D' has (age=90 sex=m) besides"
    """

    common: Sequence[Array]
    place: int
    before: Array
    after: Array

    @classmethod
    def of(cls, pair: Pair, domain: Domain) -> "PairCut":
        """Take a pair apart, each row projected on the domain."""
        shorter, longer = sorted((pair.data, pair.neighbour), key=len)
        matches = zip(shorter, longer, strict=False)
        differs = [not np.array_equal(one, two, equal_nan=True) for one, two in matches]
        place = differs.index(True) if any(differs) else len(shorter)
        rows = [domain.project(row) for row in longer]
        after = rows.pop(place)
        replaced = pair.relation is Relation.REPLACE_ONE
        before = domain.project(shorter[place]) if replaced else after
        return cls(rows, place, before, after)

    def pair(self, domain: Domain, relation: Relation) -> Pair | None:
        """Put the pair together, or return None if both datasets are the same."""
        head, tail = self.common[: self.place], self.common[self.place :]
        middle = [self.before] if relation is Relation.REPLACE_ONE else []
        if middle and np.array_equal(self.before, self.after, equal_nan=True):
            return None
        data, neighbour = (
            np.array([*head, *between, *tail]).reshape(-1, *domain.shape)
            for between in (middle, [self.after])
        )
        return domain.pair(data, neighbour, relation)

    @classmethod
    def words(cls, pair: Pair, domain: Domain) -> str:
        """Say what the datasets of a pair are; nothing if they have other rows."""
        if pair.rows is None or pair.rows.data.shape[1:] != domain.shape:
            return ""
        cut = cls.of(pair.rows, domain)
        counts = Counter(domain.told(row) for row in cut.common)
        told = [f"{n} x {row}" if n > 1 else row for row, n in counts.items()]
        others = f" and {len(told) - _TOLD} other rows" if len(told) > _TOLD else ""
        common = ", ".join(told[:_TOLD]) + others
        before, after = domain.told(cut.before), domain.told(cut.after)
        if pair.relation is Relation.REPLACE_ONE:
            beside = f" beside {common}" if common else ""
            return f"D has {before}; D' has {after} in its place{beside}"
        sides = ["D", "D'"]
        less, more = sides if len(pair.rows.data) == len(cut.common) else sides[::-1]
        return f"{less} has {common or 'no rows'}; {more} has {after} besides"
