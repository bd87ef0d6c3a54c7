r"""The exact likelihood of noisy sums over secret random batches.

Given V, the noisy sum Y over a random batch is a mixture of normal laws, one for every
batch. Rows that are equal have equal terms g(V), so if the data hold m distinct rows,
n_j times the j-th, a batch matters through the numbers (K_1, ..., K_m) alone:

.. math:: p(Y \mid V) \propto \sum_{k} P(K = k)
    \exp\Big(-\frac{\|Y - \sum_j k_j g_j(V)\|_F^2}{2 \sigma^2}\Big),

K_j ~ Bin(n_j, q), independent, under Poisson sampling; K ~ Multinomial(B, n_j/N) with
replacement. That is a short sum where m is 2 or 3, as in the pairs of
`dpaudit.algorithms.robust.pairs`, and by the chain rule it gives the exact privacy
loss of a whole transcript, hence (Neyman, Pearson) the best attack on one. Numbers with
probability below e^-60 relative to the likeliest are left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.shared.bases import slices
from dpaudit.arrays import Array
from dpaudit.errors import UnsupportedError

__all__ = ["BatchNumbers", "MixturePair"]

_MAX_ROWS = 4
_MAX_TERMS = 20_000
_NEGLIGIBLE = 60.0
_WORK = 2**21


@dataclass(frozen=True, eq=False)
class BatchNumbers:
    """How often each distinct row is in a batch, (C, m), with which probability, (C,).

    With noise, a mixture: the law of a noisy sum over a random batch.
    """

    numbers: Array
    log_weights: Array

    def log_likelihood(self, inner: Array, gram: Array, sigma: float) -> Array:
        """Return log p(Y | V), up to ||Y||^2/(2 sigma^2) and the noise's constant.

        Given are <g_j, Y>, shape (trials, m), <g_j, g_l>, shape (trials, m, m), and the
        deviation of the noise on every entry.
        """
        numbers, variance = self.numbers, sigma**2
        result = np.empty(len(inner))
        pairs = numbers[:, :, np.newaxis] * numbers[:, np.newaxis]
        pairs = pairs.reshape(len(pairs), -1).T / (-2 * variance)
        linear = numbers.T / variance
        for some in slices(len(inner), _WORK // len(numbers)):
            exponent = inner[some] @ linear
            exponent += gram[some].reshape(len(exponent), -1) @ pairs
            exponent += self.log_weights
            # logsumexp, without scipy's overhead: this is called for every step.
            highest = exponent.max(axis=1)
            exponent -= highest[:, np.newaxis]
            result[some] = np.log(np.exp(exponent, out=exponent).sum(axis=1)) + highest
        return result


def poisson_numbers(counts: NDArray[np.intp], rate: float) -> BatchNumbers:
    """Return the law of the numbers under Poisson sampling, at the rate q.

    The counts say how often each distinct row is in the data; they may be 0. Too many
    numbers are refused.
    """
    from scipy.stats import binom  # slow to import

    axes, weights = [], []
    for count in counts.tolist():
        values = np.arange(count + 1)
        logs = np.asarray(binom.logpmf(values, count, rate))
        kept = logs > logs.max() - _NEGLIGIBLE
        axes.append(values[kept])
        weights.append(logs[kept])
    _check_terms(float(np.prod([float(len(axis)) for axis in axes])))
    numbers = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    total = sum(np.ix_(*weights), start=np.zeros(()))
    return BatchNumbers(
        numbers.reshape(-1, len(counts)).astype(float), np.asarray(total).ravel()
    )


def multinomial_numbers(counts: NDArray[np.intp], batch_size: int) -> BatchNumbers:
    """Return the law of the numbers in a batch that is drawn with replacement."""
    from scipy.stats import binom  # slow to import

    # One distinct row after the other, each a binomial share of what is left.
    numbers, logs = np.zeros((1, 0)), np.zeros(1)
    left = np.full(1, batch_size)
    rest = int(counts.sum())
    for count in counts.tolist():
        share = count / rest if rest else 0.0
        rest -= count
        parts: list[tuple[Array, Array, NDArray[Any]]] = []
        for start, log_weight, room in zip(numbers, logs, left, strict=True):
            values = np.arange(room + 1)
            weights = log_weight + binom.logpmf(values, room, share)
            kept = weights > -_NEGLIGIBLE - 20
            column = values[kept, np.newaxis].astype(float)
            before = np.broadcast_to(start, (len(column), len(start)))
            parts.append(
                (np.hstack([before, column]), weights[kept], room - values[kept])
            )
        numbers, logs, left = (
            np.concatenate(each) for each in zip(*parts, strict=True)
        )
        _check_terms(len(logs))
    return BatchNumbers(numbers, logs)


class MixturePair:
    """The mixtures of two datasets, of at most 4 distinct rows together.

    The law of a batch is given for how often each distinct row is in a dataset, and the
    deviation of the noise for the number of rows; `rows` are the distinct ones, (m, D).
    """

    def __init__(
        self,
        ours: Array,
        theirs: Array,
        *,
        law: Callable[[NDArray[np.intp]], BatchNumbers],
        sigma: Callable[[int], float],
    ) -> None:
        both = np.vstack([ours, theirs])
        self.rows, inverse = np.unique(both, axis=0, return_inverse=True)
        if len(self.rows) > _MAX_ROWS:
            raise UnsupportedError(
                f"the likelihood is a short sum for at most {_MAX_ROWS} distinct rows, "
                f"got {len(self.rows)}"
            )
        self._sides = [
            (law(np.bincount(kind, minlength=len(self.rows))), sigma(len(kind)))
            for kind in np.split(inverse.ravel(), [len(ours)])
        ]

    def loss(self, inner: Array, gram: Array) -> Array:
        """Return log(density on ours/density on theirs); see `BatchNumbers`."""
        here, there = (
            numbers.log_likelihood(inner, gram, sigma) for numbers, sigma in self._sides
        )
        return np.asarray(here - there)


def _check_terms(number: float) -> None:
    if number > _MAX_TERMS:
        raise UnsupportedError(
            f"the likelihood is a sum of at most {_MAX_TERMS} terms, got {number:.0f}"
        )
