"""The non-empty bins of many histograms, whatever their bins are.

The labels of bins are floats: whole numbers that a row is rounded to, and infinities
where that is what comes out (the logarithm of 0). There may be as many bins as there
are floats, so a histogram is kept as the list of those that are not empty.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array

__all__ = ["SparseCounts"]

Indices: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class SparseCounts:
    """How many items each non-empty bin has, for a number of histograms.

    The bins of a histogram follow each other, in the order of their labels.

    Parameters
    ----------
    histograms : int
        Their number; each has at least one item.
    owner : ndarray of int, shape (bins,)
        The histogram that a bin is of, from 0, not decreasing.
    labels : ndarray, shape (bins,)
    counts : ndarray of int, shape (bins,)
        All at least 1.

    Examples
    --------
    >>> found = SparseCounts.of(np.array([[7.0, -1.0, 7.0], [0.0, 0.0, 0.0]]))
    >>> found.owner, found.labels, found.counts
    (array([0, 0, 1]), array([-1.,  7.,  0.]), array([1, 2, 3]))
    """

    histograms: int
    owner: Indices
    labels: Array
    counts: Indices

    @classmethod
    def of(cls, labels: Array) -> "SparseCounts":
        """Count labels: one histogram for each row, shape (histograms, items)."""
        histograms, items = labels.shape
        # One label for 0, which has two signs.
        ordered = np.sort(labels, axis=1) + 0.0
        new = np.empty(labels.shape, dtype=bool)
        new[:, 0] = True
        np.not_equal(ordered[:, 1:], ordered[:, :-1], out=new[:, 1:])
        starts = np.flatnonzero(new)
        counts = np.diff(starts, append=ordered.size)
        return cls(histograms, starts // items, ordered.reshape(-1)[starts], counts)

    @classmethod
    def joined(cls, parts: Sequence["SparseCounts"]) -> "SparseCounts":
        """Return the counts of items that were counted in parts, at least one."""
        if len(parts) == 1:
            return parts[0]
        owner = np.concatenate([part.owner for part in parts])
        labels = np.concatenate([part.labels for part in parts])
        counts = np.concatenate([part.counts for part in parts])
        order = np.lexsort((labels, owner))
        owner, labels = owner[order], labels[order]
        new = np.ones(len(owner), dtype=bool)
        new[1:] = (owner[1:] != owner[:-1]) | (labels[1:] != labels[:-1])
        starts = np.flatnonzero(new)
        total = np.add.reduceat(counts[order], starts)
        return cls(parts[0].histograms, owner[starts], labels[starts], total)

    def repeated(self, times: int) -> "SparseCounts":
        """Return the same histograms again and again, `times` in all, in order."""
        shift = np.arange(times)[:, np.newaxis] * self.histograms
        return SparseCounts(
            self.histograms * times,
            (shift + self.owner).reshape(-1),
            np.tile(self.labels, times),
            np.tile(self.counts, times),
        )

    def largest(self, values: Array) -> Array:
        """Return the label of the bin with the largest value in each histogram.

        Parameters
        ----------
        values : ndarray, shape (bins,)
            One for each bin; -inf for bins that are out.

        Returns
        -------
        ndarray, shape (histograms,)
            NaN where all bins are out.
        """
        starts = np.searchsorted(self.owner, np.arange(self.histograms))
        best = np.maximum.reduceat(values, starts)
        # Of equal values, which noise does not make, the last label wins.
        winners = np.flatnonzero((values == best[self.owner]) & (values > -np.inf))
        chosen = np.full(self.histograms, np.nan)
        chosen[self.owner[winners]] = self.labels[winners]
        return chosen
