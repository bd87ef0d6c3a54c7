r"""Pirates: a mechanism for subspaces turned into one that writes codewords.

Source: Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss: optimal bounds for
privacy-preserving principal component analysis*, STOC 2014.

`EigenvectorPirate` is Algorithm 5: pad the coalition's codewords with ones, scale and
disguise them (`dpaudit.fingerprinting.instances`), ask the mechanism for the first
principal component, undo the disguise, choose the sign by the padding, and round.

`SubspacePirate` is Algorithm 6, for k components: the coalition's codewords are hidden
among k - 1 clusters of codewords drawn afresh, each in a rotation of its own, in random
order; of the released subspace the vector is taken that half of the padding speaks for
most, and its other entries are rounded.

If the mechanism finds the principal subspace, the word is valid for the coalition on
most of the positions where it agrees, and a fingerprinting code traces it. So a private
mechanism does not find the subspace (Corollaries 25 and 32). Both are post-processing
of one release: what they return is as private as the release.

Where the paper is wrong, or silent:

- Algorithm 5, line 11 sums to 15n; the padding, the text and Lemma 23 go to 16n.
- Algorithm 6, line 20 counts :math:`|w_j| \ge \theta`. That is the same for w and -w,
  and blind to signs altogether, so c' may well be the complement of what is traced;
  the text asks for :math:`w_j \ge \theta` on the padding, where c_S = 1, and so does
  this module.
- That vector is the solution of a hard combinatorial problem, and the paper asks for no
  algorithm. Here it is the best, by line 20's count, of the path of an ascent on the
  concave :math:`\sum_j \min(w_j, \theta)` from the projection of the padding onto the
  subspace (`planted_vector`). For k = 1 that is Algorithm 5's choice of sign on half of
  the padding. It depends on the subspace alone, not on its basis.
- Line 18 multiplies a projector from the right only: its span is that of its rows.
- A sign of 0 counts as 1. A release that says that there is no subspace (NaN) becomes
  the word 0, which no score is moved by.
- theta is 1/(20 sqrt d), d the length of a row: the paper's 1/(80 sqrt n) for its
  d = 16n.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.attacks.base import consult
from dpaudit.errors import InputError
from dpaudit.fingerprinting.codes import TardosCode, check_cutoff, check_symbols
from dpaudit.fingerprinting.instances import PAD_RATIO, Disguise
from dpaudit.mechanism import HasComponents, Mechanism, Release
from dpaudit.validation import check_count, check_generator

__all__ = ["EigenvectorPirate", "SubspacePirate", "ask", "released_basis"]

SubspaceSource = Mechanism | Callable[..., Any]
"""A mechanism with components, or a callable ``(data, rng) -> array``."""

_STEPS = 40
_SYMMETRY = 1e-6


@dataclass(frozen=True)
class EigenvectorPirate:
    """Algorithm 5.

    Parameters
    ----------
    mechanism : Mechanism or callable
        What releases a first principal component, or what one follows from.
    pad_ratio : int
        Ones per symbol; 15 in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit.subspace import second_moment
    >>> pirate = EigenvectorPirate(lambda data, rng: second_moment(data))
    >>> rng = np.random.default_rng(0)
    >>> pirate.pirate([[1, 1, -1, 1], [1, -1, -1, 1], [1, 1, -1, -1]], rng=rng)
    array([ 1.,  1., -1.,  1.])
    """

    mechanism: SubspaceSource
    pad_ratio: int = PAD_RATIO

    def __post_init__(self) -> None:
        check_count("pad_ratio", self.pad_ratio)

    def pirate(self, codewords: ArrayLike, *, rng: np.random.Generator) -> Array:
        """Return a word of -1 and 1, or of 0 throughout, shape (n,)."""
        words = check_symbols("codewords", codewords)
        check_generator(rng)
        # Lines 1 to 8: the disguise is the random signed permutation.
        disguise = Disguise.draw(words.shape[1], pad_ratio=self.pad_ratio, rng=rng)
        rows = disguise.rows(words)
        # Lines 9 and 10.
        release = ask(self.mechanism, rows, rng)
        w = disguise.undo(released_basis(self.mechanism, release, rows.shape[1], 1))
        # Lines 11 to 16.
        vector = w[:, 0]
        return rounded(-vector if vector[words.shape[1] :].sum() <= 0 else vector)[
            : words.shape[1]
        ]


@dataclass(frozen=True)
class SubspacePirate:
    """Algorithm 6.

    Parameters
    ----------
    mechanism : Mechanism or callable
        What releases a k-dimensional subspace, or what one follows from.
    n_components : int
        k, at least 1.
    cutoff : float
        t of the Tardos codes that the other k - 1 clusters are drawn from: that of the
        coalition's code.
    pad_ratio : int
        Ones per symbol; 15 in the paper.
    """

    mechanism: SubspaceSource
    n_components: int
    cutoff: float
    pad_ratio: int = PAD_RATIO

    def __post_init__(self) -> None:
        check_count("n_components", self.n_components)
        check_cutoff("cutoff", self.cutoff)
        check_count("pad_ratio", self.pad_ratio)

    def pirate(self, codewords: ArrayLike, *, rng: np.random.Generator) -> Array:
        """Return a word of -1 and 1, or of 0 throughout, shape (n,)."""
        words = check_symbols("codewords", codewords)
        check_generator(rng)
        m, n = words.shape
        k = self.n_components
        # Lines 1 to 15. Only the coalition's own disguise is needed afterwards.
        disguises = [
            Disguise.draw(n, pad_ratio=self.pad_ratio, rotated=True, rng=rng)
            for _ in range(k)
        ]
        others = [
            TardosCode.generate(m, n, cutoff=self.cutoff, rng=rng).codewords
            for _ in range(k - 1)
        ]
        clusters = [
            each.rows(code)
            for each, code in zip(disguises, [words, *others], strict=True)
        ]
        # Line 16: the order hides which cluster is the coalition's.
        rows = np.concatenate([clusters[i] for i in rng.permutation(k)])
        # Lines 17 and 18.
        release = ask(self.mechanism, rows, rng)
        basis = released_basis(self.mechanism, release, rows.shape[1], k)
        # Lines 19 to 23.
        return rounded(planted_vector(disguises[0].undo(basis)))[:n]


def ask(mechanism: SubspaceSource, rows: Array, rng: np.random.Generator) -> Release:
    """Return one release on `rows`."""
    release = getattr(mechanism, "release", None)
    if release is not None:
        return cast(Release, release(rows, rng=rng))
    if not callable(mechanism):
        raise InputError(
            f"mechanism must have a release or be callable, got {mechanism!r}"
        )
    return cast(Release, mechanism(rows, rng))


def released_basis(
    mechanism: SubspaceSource, release: Release, dimension: int, n_components: int
) -> Array:
    """Return an orthonormal basis of the subspace that a release stands for.

    Parameters
    ----------
    mechanism : Mechanism or callable
        Its own `components` are used, if it has them.
    release : ndarray or mapping
        Otherwise: a vector (d,), a basis (d, k) or (k, d), or a symmetric matrix
        (d, d), such as a projector or a covariance.
    dimension, n_components : int
        d and k.

    Returns
    -------
    ndarray, shape (d, k)
        NaN throughout if there is no subspace.

    Raises
    ------
    InputError
        If no subspace of that dimension follows from such a release.
    """
    d = check_count("dimension", dimension)
    k = check_count("n_components", n_components, maximum=d)
    if isinstance(mechanism, HasComponents):
        if isinstance(release, np.ndarray):
            batch: Any = release[np.newaxis]
        else:
            batch = {key: np.asarray(x)[np.newaxis] for key, x in release.items()}
        basis = np.asarray(consult(mechanism.components, batch, k))[0]
    else:
        basis = _basis_of(release, d, k)
    if basis.shape != (d, k):
        raise InputError(
            f"n_components must be {k} vectors of length {d}, but the mechanism's "
            f"components have shape {basis.shape}"
        )
    if not np.isfinite(basis).all():
        return np.full((d, k), np.nan)
    # A basis of a few rounding errors' defect, or none at all, made orthonormal.
    return np.asarray(np.linalg.qr(basis).Q)


def _basis_of(release: Release, d: int, k: int) -> Array:
    if not isinstance(release, np.ndarray):
        raise InputError(
            "a mechanism whose releases are no arrays must have components, got "
            f"{type(release).__name__}"
        )
    if release.shape == (d, d) and d > 1:
        if not np.isfinite(release).all():
            return np.full((d, k), np.nan)
        symmetric = (release + release.T) / 2
        if np.abs(release - symmetric).max() <= _SYMMETRY * np.abs(symmetric).max():
            return np.asarray(np.linalg.eigh(symmetric).eigenvectors[:, : -k - 1 : -1])
    match release.shape:
        case (a,) if a == d and k == 1:
            return release[:, np.newaxis]
        case (a, b) if a == d and b == k:
            return release
        case (a, b) if a == k and b == d:
            return release.T
    raise InputError(
        f"a mechanism without components must release {k} vectors of length {d}, or a "
        f"symmetric {d} x {d} matrix, got shape {release.shape}"
    )


def planted_vector(basis: Array) -> Array:
    r"""Return the unit vector of a subspace that the padding speaks for most.

    Parameters
    ----------
    basis : ndarray, shape (d, k)
        Orthonormal, in the coordinates of the padded code (`Disguise.undo`); the last
        half of them is padding.

    Returns
    -------
    ndarray, shape (d,)
        With as many entries of at least 1/(20 sqrt d) in the last half as the search
        at the head of this module finds; the same for every basis of the subspace.
        NaN if the basis is.
    """
    d = len(basis)
    half = basis[d // 2 :]
    theta = 1 / (20 * np.sqrt(d))

    def unit(a: Array) -> Array:
        return np.asarray(a / max(float(np.linalg.norm(a)), 1e-300))

    start = half.sum(axis=0)
    if not start.any():  # orthogonal to the padding: as good as any other
        start = basis[0] if basis[0].any() else np.eye(basis.shape[1])[0]
    a = best = unit(start)
    most = np.count_nonzero(half @ best >= theta)
    for step in range(1, _STEPS if basis.shape[1] > 1 else 0):
        short = half @ a < theta
        if not short.any():
            break
        a = unit(a + unit(half[short].sum(axis=0)) / np.sqrt(step))
        count = np.count_nonzero(half @ a >= theta)
        if count > most:
            best, most = a, count
    return np.asarray(basis @ best)


def rounded(vector: Array) -> Array:
    """Return signs, 1 for 0; 0 throughout for NaN."""
    if np.isnan(vector).any():
        return np.zeros(len(vector))
    return np.where(vector < 0, -1.0, 1.0)
