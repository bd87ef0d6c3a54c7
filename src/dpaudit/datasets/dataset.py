"""What every loader and generator returns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import InputError
from dpaudit.stacks import check_basis
from dpaudit.validation import check_matrix

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A named matrix of people and, where there is one, the truth about it.

    Parameters
    ----------
    name : str
        The name in the registry.
    rows : ndarray, shape (n, d)
        One row per person, finite, in the unit of the source. No preprocessing has
        been applied that depends on other rows.
    source : str
        Where the rows come from, precise enough to get them again.
    labels : ndarray of int, shape (n,), optional
        Classes, for example digits, or inlier (1) against outlier (0).
    subspace : ndarray, shape (d, k), optional
        Orthonormal basis of the subspace that the rows were drawn around.

    Raises
    ------
    InputError
        If an array is malformed, or the arrays do not fit together.

    Notes
    -----
    The arrays are stored as read-only copies: a mechanism under audit that writes to
    its input fails loudly, and no run can spoil the data of the next. Datasets compare
    by identity.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit.datasets import Dataset
    >>> Dataset("corner", np.eye(2), source="by hand", labels=np.array([0, 1]))
    Dataset('corner', rows of shape (2, 2), labels 0 to 1, source='by hand')
    """

    name: str
    rows: NDArray[np.float64]
    source: str
    labels: NDArray[np.int64] | None = None
    subspace: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        """Check the arrays against each other and freeze copies of them."""
        rows = check_matrix("rows", self.rows, min_rows=1)
        self._freeze("rows", rows)
        if self.labels is not None:
            labels = np.asarray(self.labels)
            if labels.shape != rows.shape[:1] or labels.dtype.kind not in "biu":
                raise InputError(
                    f"labels must be integers of shape {rows.shape[:1]}, "
                    f"got {labels.dtype} of shape {labels.shape}"
                )
            self._freeze("labels", labels.astype(np.int64))
        if self.subspace is not None:
            subspace = check_basis("subspace", self.subspace)
            if subspace.ndim != 2 or subspace.shape[0] != rows.shape[1]:
                raise InputError(
                    f"subspace must have shape ({rows.shape[1]}, k), "
                    f"got shape {subspace.shape}"
                )
            self._freeze("subspace", subspace)

    def _freeze(self, field: str, array: NDArray[np.generic]) -> None:
        copy = array.copy()
        copy.setflags(write=False)
        object.__setattr__(self, field, copy)

    def __repr__(self) -> str:
        """Describe the arrays by their shapes instead of printing them."""
        parts = [repr(self.name), f"rows of shape {self.rows.shape}"]
        if self.labels is not None:
            parts.append(f"labels {self.labels.min()} to {self.labels.max()}")
        if self.subspace is not None:
            parts.append(f"subspace of dimension {self.subspace.shape[1]}")
        return f"Dataset({', '.join(parts)}, source={self.source!r})"
