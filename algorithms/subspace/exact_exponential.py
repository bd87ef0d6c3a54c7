"""ExactExponential: the exponential mechanism for k components, drawn exactly.

Source of the mechanism: Chaudhuri, Sarwate, Sinha, JMLR 14, 2013, algorithm PPCA. Its
density and the proof of its privacy are in
`dpaudit.algorithms.subspace.matrix_bingham`, how it is drawn in
`dpaudit.algorithms.subspace.matrix_acg`: by rejection, which is practical for k = 2 and
k = 3 (or d - 2, d - 3), and for more in few dimensions.

Privacy. Pure epsilon: the law of the release is exact, however many proposals it takes.
That number depends on the data, though, and so does the time that a release takes:
whoever can measure it is not covered by the proof. For the same reason nothing here
gives up when acceptance is low; the decision not to start must not depend on the data.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.subspace.base import Array
from dpaudit.algorithms.subspace.bingham_normaliser import log_bingham_normaliser
from dpaudit.algorithms.subspace.matrix_acg import MatrixACG
from dpaudit.algorithms.subspace.matrix_bingham import MatrixBinghamMechanism
from dpaudit.claims import NO_LOSS, Claim, PureDP
from dpaudit.errors import UnsupportedError
from dpaudit.neighbours import Pair
from dpaudit.validation import check_count

__all__ = ["ExactExponential"]

_BUDGET = 2**18  # numbers in a temporary array


@dataclass(frozen=True, kw_only=True)
class ExactExponential(MatrixBinghamMechanism):
    """A basis V with density proportional to exp(coefficient tr V^T A V), exactly.

    Draws take long where acceptance is low: see
    `dpaudit.algorithms.subspace.matrix_acg.wide_gap_acceptance` before using it for
    k > 2.

    Parameters
    ----------
    n_components, epsilon, relation, row_norm
        See `MatrixBinghamMechanism`.

    Examples
    --------
    >>> mechanism = ExactExponential(n_components=2, epsilon=1.0)
    >>> rows = np.repeat(np.eye(4), [300, 200, 50, 10], axis=0)
    >>> releases = mechanism.draw(rows, 500, rng=np.random.default_rng(0))
    >>> releases.shape
    (500, 4, 2)
    >>> (releases**2).sum(axis=-1).mean(axis=0).round(2)
    array([1.  , 0.99, 0.01, 0.  ])
    """

    def draw_frames(
        self, values: Array, k: int, size: int, *, rng: np.random.Generator
    ) -> Array:
        return MatrixACG(values, k).draw(size, rng=rng)

    @property
    def true_epsilon(self) -> float:
        """epsilon: the supremum over all pairs of rows with d > k."""
        return self.epsilon

    def acceptance(
        self, data: ArrayLike, *, size: int = 10_000, rng: np.random.Generator
    ) -> float:
        """Return an estimate of the acceptance probability, from `size` proposals.

        For planning: it depends on the data, is not private, and releases do not use
        it. 1 where no frames are proposed (k = 1, d - 1 or d).

        Raises
        ------
        InputError
            If `data` is not a finite matrix, its rows are shorter than k, or `size`
            is not an integer >= 1.
        """
        exponent, k = self.reduce(self.moment(data))
        size = check_count("size", size)
        if k < 2:
            return 1.0
        sampler = MatrixACG(np.linalg.eigvalsh(exponent), k)
        chunk = max(1, _BUDGET // (len(exponent) * k))
        total = 0.0
        for start in range(0, size, chunk):
            frames = sampler.propose(min(chunk, size - start), rng=rng)
            total += float(np.exp(sampler.log_acceptance(frames)).sum())
        return total / size

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, shape (size, d, k) -> (size,).

        Raises
        ------
        UnsupportedError
            Unless k is 1, d - 1 or d: Z(A) has no closed form otherwise.
        """
        difference, shift = self._difference(data, other)
        captured = (releases * (difference @ releases)).sum(axis=(-2, -1))
        return np.asarray(captured - shift)

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the pure epsilon of the pair: the largest loss, either way round.

        tr V^T (A - A') V ranges from the sum of the k least eigenvalues of A - A' to
        that of the k largest, and the density is positive and continuous.

        Raises
        ------
        UnsupportedError
            As `privacy_loss`.
        """
        difference, shift = self._difference(pair.data, pair.neighbour)
        values, k = np.linalg.eigvalsh(difference), self.n_components
        if k == len(values) or values[0] == values[-1]:
            return NO_LOSS
        return PureDP(float(max(values[-k:].sum() - shift, shift - values[:k].sum())))

    def _difference(self, data: ArrayLike, other: ArrayLike) -> tuple[Array, float]:
        """Return c (A - A'), and log Z(A) - log Z(A')."""
        moments = np.stack([self.moment(rows) for rows in (data, other)])
        moments *= self.coefficient
        values = np.asarray(np.linalg.eigvalsh(moments), dtype=np.float64)
        log_z, other_log_z = self._log_normaliser(values)
        return moments[0] - moments[1], float(log_z - other_log_z)

    def _log_normaliser(self, values: Array) -> Array:
        k, d = self.n_components, values.shape[-1]
        if k == 1:
            return log_bingham_normaliser(values)
        if k == d:
            return np.asarray(values.sum(axis=-1))
        if k == d - 1:
            # tr V^T S V = tr S - w^T S w with w orthogonal to V.
            return values.sum(axis=-1) + log_bingham_normaliser(-values)
        raise UnsupportedError(
            f"the exact loss is known for n_components = 1, {d - 1} or {d} where rows "
            f"have length {d}, got {k}"
        )
