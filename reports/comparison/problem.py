"""The rows of a comparison, PCA of them without noise, and how others are held to it.

The rows are scaled down to the public norm, each by itself, and all mechanisms get the
same. Of a file that is read in blocks, their second moment is all that is kept. PCA
without noise is that of the rows as they are, so that what scaling down costs is
included. Nothing is centred: variance is about the origin.
"""

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import subspace
from dpaudit.arrays import Array
from dpaudit.datasets import load
from dpaudit.errors import InputError
from dpaudit.gram import Gram, clipped_gram
from dpaudit.neighbours import Pair, Relation
from dpaudit.reports.comparison.candidates import Setting
from dpaudit.rows import clip_rows
from dpaudit.validation import check_count, check_fraction, check_matrix, check_positive

__all__ = ["MEASURES"]

MEASURES = ("captured_variance", "largest_angle_degrees", "error_ratio")
"""Of components V beside V*, those of PCA without noise, and A the second moment:
tr(V^T A V) / tr(V*^T A V*); the largest principal angle between their spans; and
||X - X V V^T||_F^2 / ||X - X V* V*^T||_F^2, NaN where V* leaves no error."""

_DIGITS_NORM = 64.0  # as in the report: half of the largest length that a row can have
_PAIR_ROWS = 100
EXACT = 1e-12
"""Of the total variance: what is less is rounding."""


@dataclass(frozen=True, eq=False)
class PCAProblem:
    """Rows, and PCA of them without noise."""

    rows: Array | Gram  # scaled down to the row norm; of a file, what is read of it
    moment: Array  # the second moment of the rows as they were
    basis: Array  # its first components
    scaled: int  # how many rows were longer than the norm
    source: str
    setting: Setting

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows there are, and columns."""
        n = self.rows.n_rows if isinstance(self.rows, Gram) else len(self.rows)
        return n, len(self.moment)

    @property
    def scaled_moment(self) -> Array:
        """The second moment of the rows as they are scaled down."""
        if isinstance(self.rows, Gram):
            return self.rows.moment
        return subspace.second_moment(self.rows)

    def digest(self) -> str:
        """Return what tells the rows and the setting from others."""
        found = hashlib.sha256(repr((self.shape, self.setting)).encode())
        rows = self.rows.moment if isinstance(self.rows, Gram) else self.rows
        found.update(rows.tobytes())
        found.update(self.moment.tobytes())
        return found.hexdigest()

    def measure(self, bases: Array) -> dict[str, list[float]]:
        """Return `MEASURES` of bases, shape (size, d, k).

        NaN says that there are no components, which capture nothing.
        """
        total = float(np.trace(self.moment))
        best = float(subspace.captured_variance(self.basis, self.moment))
        some = np.isfinite(bases).all(axis=(1, 2))
        captured, angles = np.zeros(len(bases)), np.full(len(bases), 90.0)
        if some.any():
            captured[some] = subspace.captured_variance(bases[some], self.moment)
            radians = subspace.principal_angles(bases[some], self.basis)[:, -1]
            angles[some] = np.degrees(radians)
        least = total - best
        ratios = np.full(len(bases), math.nan)
        if least > EXACT * total:
            ratios = np.maximum(total - captured, least) / least
        values = (np.minimum(captured / best, 1.0), angles, ratios)
        return {
            name: each.tolist() for name, each in zip(MEASURES, values, strict=True)
        }


def problem_of(
    data: ArrayLike | Path | None = None,
    source: str = "data",
    row_norm: float | None = None,
    n_components: int | None = None,
    delta: float = 1e-5,
    relation: Relation | str = Relation.ADD_REMOVE,
) -> PCAProblem:
    """Return rows that are scaled down, and PCA of them without noise.

    Parameters are those of `compared`.
    """
    if data is None:
        digits = load("digits")
        rows, source = digits.rows, digits.source
        row_norm = _DIGITS_NORM if row_norm is None else row_norm
    norm = check_positive("row_norm", 1.0 if row_norm is None else row_norm)
    read: Array | Gram
    if isinstance(data, str | Path):
        found = clipped_gram(data, norm)
        moment, read, scaled = found.whole.moment, found.clipped, found.n_clipped
    else:
        if data is not None:
            rows = check_matrix(source, data, min_rows=2)
        moment, read = subspace.second_moment(rows), clip_rows(rows, norm)
        scaled = int((read != rows).any(axis=1).sum())
    d = len(moment)
    usual = min(10, (d + 1) // 2)
    k = check_count("components", usual if n_components is None else n_components)
    if k > d:
        raise InputError(
            f"components must be at most the columns of the data, {d}, got {k}"
        )
    if np.linalg.eigvalsh(moment)[-1] <= 0:
        raise InputError(f"{source} must have rows that are not zero")
    return PCAProblem(
        rows=read,
        moment=moment,
        basis=subspace.top_components(moment, k),
        scaled=scaled,
        source=source,
        setting=Setting(
            delta=check_fraction("delta", delta, allow_zero=True),
            relation=Relation.parse(relation),
            row_norm=norm,
            n_components=k,
        ),
    )


def pair_of(rows: Array, norm: float, relation: Relation) -> Pair:
    """Return neighbours made of the data, for a mechanism that names no worst case.

    The first 100 rows, and a row of the greatest length along the axis on which they
    vary least: it is added, or takes the place of one of that length along the next
    axis. A row along an axis moves the second moment by its whole sensitivity in the
    Frobenius norm and in that of the upper triangle.

    ``norm``: none of them is longer.
    """
    rows = rows[:_PAIR_ROWS]
    axes = np.argsort(np.einsum("ij,ij->j", rows, rows), kind="stable")
    edge = np.zeros((2, rows.shape[1]))
    edge[0, axes[0]] = norm
    if rows.shape[1] > 1:
        edge[1, axes[1]] = norm
    if relation is Relation.ADD_REMOVE:
        return Pair(rows, np.vstack([rows, edge[:1]]), Relation.ADD_REMOVE)
    first, second = (np.vstack([rows[:-1], each[np.newaxis]]) for each in edge)
    return Pair(first, second, Relation.REPLACE_ONE)
