r"""Hard instances for private subspaces: fingerprinting codes dressed as rows.

Source: Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss: optimal bounds for
privacy-preserving principal component analysis*, STOC 2014, Algorithms 5 and 6.

A codeword c in {-1, 1}^n becomes a row of length d = (1 + r) n, r = 15 in the paper:

1. pad c with r n ones, and scale the result to length 1;
2. apply a secret signed permutation P: row^T <- row^T P;
3. where there is more than one cluster, also a secret rotation R of its own.

The first principal component of m such rows points at the padding and, with smaller
entries, at the symbols that most codewords share (Lemma 23: if all share it, its sign
is right and its size at least 1/(40 sqrt n), for r = 15). `Disguise` holds the secrets
of one cluster: `rows` goes from codewords to rows, `undo` takes a basis V of a released
subspace back to P R V, whose columns are in the code's own coordinates.
`HardInstance` is k clusters together. A subspace is alpha-useful if it captures at
most alpha less than the best of its dimension (`usefulness_gap`, `is_useful`).

Where the paper is wrong: A is m x 16n, not m x n (line 7; line 12 of Algorithm 6, whose
rotation in line 13 is 16n x 16n); Corollary 25's proof means gamma_1 m-useful, not
gamma_1 sqrt m. Lemma 30's proof takes the projections of a frame of m vectors, turned
at random in R^d, for independent N(0, 1/d) variables. They are not, but d times the sum
of their squares is smaller than chi^2_m in the convex order (g = ||g|| u with u uniform
and independent of ||g||: E[f(||g||^2 s) | u] >= f(d s) for convex f, by Jensen), so its
exponential moments are smaller and the tail bound holds. In Theorem 21 the last step
holds if delta <= e^eps (1 - 2 xi), which the text does not say and every use satisfies.
The theorem replaces codeword i by codeword m + 1, so it is about REPLACE_ONE. The
abstract's relation, add or remove, is as well served without that codeword: compare the
coalitions [m] and [m] minus i.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.fingerprinting.codes import TardosCode, check_symbols
from dpaudit.stacks import check_basis
from dpaudit.validation import (
    check_count,
    check_generator,
    check_matrix,
    check_nonnegative,
    check_real,
)

__all__ = ["PAD_RATIO", "Disguise", "HardInstance", "is_useful", "usefulness_gap"]

PAD_RATIO = 15
"""Ones per symbol of a codeword, as in the paper."""


@dataclass(frozen=True, eq=False, repr=False)
class Disguise:
    """The secret map from codewords to rows, and back for subspaces.

    Parameters
    ----------
    length : int
        n, the length of a codeword.
    places : ndarray of int, shape (d,)
        Where the symbols and ones go: a permutation.
    signs : ndarray, shape (d,)
        -1 or 1.
    rotation : ndarray, shape (d, d), optional
        R, orthogonal.

    Examples
    --------
    >>> import numpy as np
    >>> disguise = Disguise.draw(2, pad_ratio=1, rng=np.random.default_rng(0))
    >>> row = disguise.rows([[1, -1]])
    >>> disguise.undo(row.T).ravel()
    array([ 0.5, -0.5,  0.5,  0.5])
    """

    length: int
    places: NDArray[np.int64]
    signs: Array
    rotation: Array | None = None

    @classmethod
    def draw(
        cls,
        length: int,
        *,
        pad_ratio: int = PAD_RATIO,
        rotated: bool = False,
        rng: np.random.Generator,
    ) -> "Disguise":
        """Draw the secrets.

        Parameters
        ----------
        length : int
            n.
        pad_ratio : int
            r, at least 1.
        rotated : bool
            Whether there is a rotation: d^2 numbers, and of the order of d^3 steps.
        rng : numpy.random.Generator
        """
        n = check_count("length", length)
        d = n * (1 + check_count("pad_ratio", pad_ratio))
        check_generator(rng)
        places = rng.permutation(d)
        signs = rng.choice([-1.0, 1.0], d)
        rotation = None
        if rotated:
            q, r = np.linalg.qr(rng.standard_normal((d, d)))
            # Without the signs the law would not be the uniform one (Mezzadri 2007).
            rotation = q * np.sign(np.diagonal(r))
        return cls(n, places, signs, rotation)

    @property
    def dimension(self) -> int:
        """The length d of a row."""
        return len(self.places)

    def rows(self, codewords: ArrayLike) -> Array:
        """Return codewords as rows of length 1, shape (m, d)."""
        words = check_symbols("codewords", codewords, self.length)
        rows = np.empty((len(words), self.dimension))
        rows[:, self.places[: self.length]] = words * self.signs[: self.length]
        rows[:, self.places[self.length :]] = self.signs[self.length :]
        rows /= np.sqrt(self.dimension)
        return rows if self.rotation is None else rows @ self.rotation

    def undo(self, basis: ArrayLike) -> Array:
        """Return P R V: what a basis means in the coordinates of the padded code.

        Parameters
        ----------
        basis : array_like, shape (d, k)

        Returns
        -------
        ndarray, shape (d, k)
            The first n rows belong to the symbols, the others to the padding. NaN
            where the basis is: no subspace stays none.
        """
        v = check_real("basis", basis)
        if v.ndim != 2 or len(v) != self.dimension:
            raise InputError(
                f"basis must have {self.dimension} rows, got shape {v.shape}"
            )
        turned = v if self.rotation is None else self.rotation @ v
        undone: Array = turned[self.places] * self.signs[:, np.newaxis]
        return undone


@dataclass(frozen=True, eq=False, repr=False)
class HardInstance:
    """Clusters of codewords as the rows of one matrix, with all secrets.

    Parameters
    ----------
    codes : tuple of TardosCode
        One per cluster, with biases of its own, all of the same length.
    disguises : tuple of Disguise
        One per cluster.

    Raises
    ------
    InputError
        If there is no cluster, or the lengths do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> HardInstance.generate(4, 32, pad_ratio=3, cutoff=0.01, rng=rng)
    HardInstance(4 rows of length 128, 1 cluster)
    """

    codes: tuple[TardosCode, ...]
    disguises: tuple[Disguise, ...]

    def __post_init__(self) -> None:
        sizes = {each.dimension for each in self.disguises}
        if not self.codes or len(self.codes) != len(self.disguises) or len(sizes) > 1:
            raise InputError(
                "codes and disguises must be equally many, at least one, for rows of "
                f"one length, got {len(self.codes)} and {len(self.disguises)} for "
                f"lengths {sorted(sizes)}"
            )
        for code, disguise in zip(self.codes, self.disguises, strict=True):
            if code.length != disguise.length:
                raise InputError(
                    f"codes and disguises must have the same length, got {code.length} "
                    f"and {disguise.length}"
                )

    @classmethod
    def generate(
        cls,
        n_users: int,
        length: int,
        *,
        n_clusters: int = 1,
        cutoff: float,
        pad_ratio: int = PAD_RATIO,
        rng: np.random.Generator,
    ) -> "HardInstance":
        """Draw codes and secrets.

        Parameters
        ----------
        n_users : int
            m, the codewords of one cluster.
        length : int
            n, the length of a codeword.
        n_clusters : int
            k. Clusters are rotated if there are more than one.
        cutoff : float
            t, in (0, 1/2).
        pad_ratio : int
            r, at least 1.
        rng : numpy.random.Generator
        """
        k = check_count("n_clusters", n_clusters)
        codes = [
            TardosCode.generate(n_users, length, cutoff=cutoff, rng=rng)
            for _ in range(k)
        ]
        disguises = [
            Disguise.draw(length, pad_ratio=pad_ratio, rotated=k > 1, rng=rng)
            for _ in range(k)
        ]
        return cls(tuple(codes), tuple(disguises))

    @property
    def n_clusters(self) -> int:
        """k, the number of clusters and the dimension of the subspace wanted."""
        return len(self.codes)

    @property
    def rows(self) -> Array:
        """All rows, cluster by cluster, shape (sum of m, d)."""
        pairs = zip(self.codes, self.disguises, strict=True)
        return np.concatenate([d.rows(code.codewords) for code, d in pairs])

    @property
    def labels(self) -> NDArray[np.int64]:
        """The cluster of each row."""
        return np.repeat(np.arange(self.n_clusters), [c.n_users for c in self.codes])

    def __repr__(self) -> str:
        count = sum(code.n_users for code in self.codes)
        clusters = (
            "1 cluster" if self.n_clusters == 1 else f"{self.n_clusters} clusters"
        )
        return (
            f"HardInstance({count} rows of length {self.disguises[0].dimension}, "
            f"{clusters})"
        )


def usefulness_gap(rows: ArrayLike, basis: ArrayLike) -> float:
    r"""Return by how much a subspace captures less than the best one of its dimension.

    :math:`\sum_{i \le k} \sigma_i(A)^2 - \lVert A V \rVert_F^2`, the least alpha for
    which the subspace is alpha-useful.

    Parameters
    ----------
    rows : array_like, shape (m, d)
        A.
    basis : array_like, shape (d, k)
        Orthonormal; NaN throughout (bottom) captures nothing.

    Returns
    -------
    float
        At least 0.

    Examples
    --------
    >>> usefulness_gap([[1.0, 0.0], [0.0, 0.5]], [[0.0], [1.0]])
    0.75
    """
    a = check_matrix("rows", rows)
    v = check_real("basis", basis)
    if v.ndim != 2 or len(v) != a.shape[1]:
        raise InputError(f"basis must have {a.shape[1]} rows, got shape {v.shape}")
    # The squares of the singular values, from the smaller of the two Gram matrices.
    gram = a @ a.T if len(a) <= a.shape[1] else a.T @ a
    best = float(np.linalg.eigvalsh(gram)[-v.shape[1] :].clip(0.0).sum())
    if np.isnan(v).all():
        return best
    captured = float(np.sum((a @ check_basis("basis", v)) ** 2))
    return max(best - captured, 0.0)


def is_useful(rows: ArrayLike, basis: ArrayLike, alpha: float) -> bool:
    """Say whether a subspace is alpha-useful; a tie within 1e-9 of the rows counts.

    Parameters
    ----------
    rows, basis
        As for `usefulness_gap`.
    alpha : float
        At least 0. The paper's is gamma k m for k m rows and a small constant gamma.
    """
    alpha = check_nonnegative("alpha", alpha)
    scale = float(np.sum(np.square(np.asarray(rows, dtype=np.float64))))
    return usefulness_gap(rows, basis) <= alpha + 1e-9 * scale
