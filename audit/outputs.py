"""What a mechanism returns: numbers in a usual layout, or a label for anything else.

Most outputs are ordinary: numbers in one layout, NaN and infinities included. What is
not (an exception, another shape, a word) has a label in their place, and attacks may
use labels as they use numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpaudit.mechanism import Release

__all__ = ["Batch", "arrays_of", "as_numbers", "layout_of", "map_arrays", "stack"]


@dataclass(frozen=True)
class Batch:
    """Some outputs of a mechanism, in order.

    Parameters
    ----------
    size : int
    values : Release or None
        The ordinary ones, stacked; None if there are none.
    labels : ndarray of str, shape (size,), or None
        What came instead of an ordinary release, '' for ordinary ones; None if all
        are ordinary.
    """

    size: int
    values: Release | None
    labels: NDArray[np.str_] | None = None

    @property
    def all_labels(self) -> NDArray[np.str_]:
        """Labels for all outputs."""
        return np.full(self.size, "") if self.labels is None else self.labels

    @property
    def ordinary(self) -> NDArray[np.bool_]:
        """Which outputs are ordinary, shape (size,)."""
        return self.all_labels == ""

    @property
    def bytes_each(self) -> float:
        """Memory per ordinary release, at least one byte."""
        if self.values is None:
            return 1.0
        arrays = arrays_of(self.values)
        return max(sum(a.nbytes for a in arrays) / max(len(arrays[0]), 1), 1.0)

    def section(self, part: slice) -> "Batch":
        """Return some of the outputs."""
        labels = None if self.labels is None else self.labels[part]
        if self.values is None:
            return Batch(len(self.all_labels[part]), None, labels)
        # Positions among all outputs become positions among the ordinary ones.
        kept = np.zeros(self.size, dtype=bool)
        kept[part] = True
        if self.labels is None:
            values = map_arrays(self.values, lambda array: array[part])
        else:
            among = kept[self.ordinary]
            values = map_arrays(self.values, lambda array: array[among])
        size = int(kept.sum())
        return Batch(size, values if len(arrays_of(values)[0]) else None, labels)

    def halves(self) -> tuple["Batch", "Batch"]:
        """Return the first half and the rest."""
        middle = self.size // 2
        return self.section(slice(middle)), self.section(slice(middle, None))

    @classmethod
    def join(cls, batches: Sequence["Batch"]) -> "Batch":
        """Return the outputs of several batches as one."""
        values = [batch.values for batch in batches if batch.values is not None]
        labelled = any(batch.labels is not None for batch in batches)
        return cls(
            sum(batch.size for batch in batches),
            _concatenate(values) if values else None,
            np.concatenate([batch.all_labels for batch in batches])
            if labelled
            else None,
        )


def as_numbers(output: Any, *, copy: bool = True) -> Release | None:
    """Return numbers as float arrays, None for anything else."""
    if isinstance(output, Mapping):
        if not output or not all(isinstance(key, str) for key in output):
            return None
        parts = {key: as_numbers(value, copy=copy) for key, value in output.items()}
        if any(value is None or isinstance(value, Mapping) for value in parts.values()):
            return None
        return cast(Release, parts)
    try:
        array = np.asarray(output)
    except (TypeError, ValueError):
        return None  # ragged
    if array.dtype.kind not in "biuf":
        return None
    # What is kept must be a copy: this may be the mechanism's own buffer. In one order,
    # because BLAS rounds by it, and it does not survive a journey between processes.
    return array.astype(np.float64, order="C", copy=copy)


def arrays_of(releases: Release) -> list[NDArray[np.float64]]:
    """Return the arrays that releases consist of."""
    return list(releases.values()) if isinstance(releases, Mapping) else [releases]


def map_arrays(
    releases: Release, change: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> Release:
    """Return releases with every array changed."""
    if isinstance(releases, Mapping):
        return {key: change(value) for key, value in releases.items()}
    return change(releases)


def layout_of(releases: Release, *, single: bool = False) -> str:
    """Return a word for the shape of one release."""
    first = 0 if single else 1
    if isinstance(releases, Mapping):
        parts = (f"{key}: {releases[key].shape[first:]}" for key in sorted(releases))
        return "shapes {" + ", ".join(parts) + "}"
    return f"shape {releases.shape[first:]}"


def stack(outputs: list[Release]) -> Release:
    """Return single releases of one layout as a batch."""
    if isinstance(outputs[0], Mapping):
        mappings = cast(list[Mapping[str, NDArray[np.float64]]], outputs)
        return {key: np.stack([m[key] for m in mappings]) for key in mappings[0]}
    return np.stack(cast(list[NDArray[np.float64]], outputs))


def _concatenate(batches: list[Release]) -> Release:
    if isinstance(batches[0], Mapping):
        mappings = cast(list[Mapping[str, NDArray[np.float64]]], batches)
        return {key: np.concatenate([m[key] for m in mappings]) for key in mappings[0]}
    return np.concatenate(cast(list[NDArray[np.float64]], batches))
