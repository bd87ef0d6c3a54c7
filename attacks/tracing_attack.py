r"""The tracing attack: who was in the data, for many canaries and from one release.

The rows of a hard instance (`dpaudit.fingerprinting.instances`) are codewords in
disguise. A release on some of them is undone as the pirates of `attacks.pirates` do,
which gives a word y for every cluster, and every canary gets the symmetric Tardos score
of its codeword,

.. math:: s_i = \sum_j y_j (c_{ij} - q_j)/\sqrt{1 - q_j^2}.

For a canary that is not in the data, whose codeword the release owes nothing to, it is
a sum of independent terms of mean zero, whatever the mechanism does. Scores depend on
the released subspace alone, not on its basis nor on the signs of its vectors.

`rounding` says what y is. "sign" is the paper's. "clip" keeps the entries of the
planted vector, in units of the root mean square of its padding and cut at 1: by how
much the rows agree is worth knowing too. On principal components without noise
(n = 256, r = 3) it separates 8 rows from strangers by 2.3 standard deviations instead
of 1.7, and 4 rows by 6.1 instead of 4.0. Both words are in [-1, 1], so all bounds of
`dpaudit.fingerprinting` hold for both.

Beside it stands `dpaudit.attacks.canary.Tracing`, a score for *pairs* of neighbours in
the portfolio of `dpaudit.audit.audit`: there all rows but one are known, and <y, x - z>
needs no code. Here no row is known to be in the data, but the law of all is.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.attacks.pirates import (
    SubspaceSource,
    planted_vector,
    released_basis,
    rounded,
)
from dpaudit.errors import InputError
from dpaudit.fingerprinting.calibration import conditional_p_values
from dpaudit.fingerprinting.codes import tracing_scores
from dpaudit.fingerprinting.instances import HardInstance
from dpaudit.mechanism import Release
from dpaudit.validation import check_count, check_name

__all__ = ["TracingAttack"]

_Rounding: TypeAlias = Literal["sign", "clip"]


@dataclass(frozen=True, eq=False)
class TracingAttack:
    """Membership scores of all rows of a hard instance.

    Parameters
    ----------
    instance : HardInstance
        Whose rows are the canaries, and whose clusters the components: k of both.
    rounding : {"sign", "clip"}

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit.subspace import second_moment
    >>> rng = np.random.default_rng(0)
    >>> instance = HardInstance.generate(6, 400, cutoff=0.01, pad_ratio=3, rng=rng)
    >>> attack = TracingAttack(instance)
    >>> def pca(data, rng):
    ...     return second_moment(data)
    >>> scores = attack.scores(pca, pca(attack.rows[:3], rng))
    >>> bool(scores[:3].min() > scores[3:].max())
    True
    """

    instance: HardInstance
    rounding: _Rounding = "clip"

    def __post_init__(self) -> None:
        if not isinstance(self.instance, HardInstance):
            raise InputError(f"instance must be a HardInstance, got {self.instance!r}")
        check_name("rounding", self.rounding, get_args(_Rounding))

    @property
    def rows(self) -> Array:
        """The canaries, shape (m, d)."""
        return self.instance.rows

    def words(self, mechanism: SubspaceSource, release: Release) -> list[Array]:
        """Return the pirated word of every cluster, each of shape (n,)."""
        k, (first, *_) = self.instance.n_clusters, self.instance.disguises
        basis = released_basis(mechanism, release, first.dimension, k)
        return [
            self._word(planted_vector(each.undo(basis)), each.length)
            if np.isfinite(basis).all()
            else np.zeros(each.length)
            for each in self.instance.disguises
        ]

    def scores(self, mechanism: SubspaceSource, release: Release) -> Array:
        """Return every canary's score, shape (m,), in the order of `rows`.

        Parameters
        ----------
        mechanism : Mechanism or callable
            Of which the release is one; its `components` are used if it has any.
        release : ndarray or mapping

        Raises
        ------
        InputError
            If the release does not give as many components as there are clusters.
        """
        words = self.words(mechanism, release)
        pairs = zip(self.instance.codes, words, strict=True)
        return np.concatenate([code.scores(word) for code, word in pairs])

    def p_values(self, mechanism: SubspaceSource, release: Release) -> Array:
        """Return for every canary an upper bound of a stranger's chance to score so.

        Whatever the mechanism does, an absent canary's is at most a with probability
        at most a (`dpaudit.fingerprinting.conditional_p_values`).
        """
        words = self.words(mechanism, release)
        return np.concatenate(
            [
                conditional_p_values(code.scores(word), code.biases, word)
                for code, word in zip(self.instance.codes, words, strict=True)
            ]
        )

    def stranger_scores(
        self,
        mechanism: SubspaceSource,
        release: Release,
        *,
        strangers: int,
        rng: np.random.Generator,
    ) -> list[Array]:
        """Return scores of codewords that nobody has, for every cluster.

        Parameters
        ----------
        mechanism, release
            As for `scores`.
        strangers : int
            How many per cluster.
        rng : numpy.random.Generator

        Returns
        -------
        list of ndarray, shape (strangers,)
            What `dpaudit.fingerprinting.calibrated_threshold` takes.
        """
        count = check_count("strangers", strangers)
        words = self.words(mechanism, release)
        return [
            tracing_scores(code.strangers(count, rng=rng), code.biases, word)
            for code, word in zip(self.instance.codes, words, strict=True)
        ]

    def _word(self, vector: ArrayLike, length: int) -> Array:
        w = np.asarray(vector)
        if self.rounding == "sign":
            return rounded(w[:length])
        scale = float(np.sqrt(np.mean(w[length:] ** 2)))
        return np.clip(w[:length] / max(scale, 1e-300), -1.0, 1.0)
