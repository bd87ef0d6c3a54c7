r"""Descent on GLAD on secret random batches, and the likelihood of its transcript.

Given V, the noisy sum Y over a batch is a mixture of normal laws
(`dpaudit.algorithms.robust.batch_mixtures`, with the terms g_j(V) of the distinct
rows). By the chain rule the product over the steps, times the law of what the start
publishes, is the exact likelihood of a transcript.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.algorithms.robust.batch_mixtures import BatchNumbers, Contrast
from dpaudit.algorithms.robust.descent import Descent
from dpaudit.algorithms.robust.glad import Array
from dpaudit.claims import Claim

__all__ = ["MinibatchDescent"]


@dataclass(frozen=True, kw_only=True)
class MinibatchDescent(Descent):
    """Descent on random batches, whose transcript has a known likelihood.

    Parameters
    ----------
    n_components, claim, start, iterations, step_sizes
        See `Descent`.
    """

    claim: Claim

    @abstractmethod
    def batch_numbers(self, counts: NDArray[np.intp]) -> BatchNumbers:
        """Return how often each distinct row is in a batch."""

    def transcript_loss(
        self, transcript: Mapping[str, Array], data: ArrayLike, other: ArrayLike
    ) -> Array:
        """Return log(density on `data`/density on `other`) of transcripts, (size,).

        Raises
        ------
        UnsupportedError
            If more than 4 rows of the two datasets together are distinct, or the loss
            of the start is not known.
        """
        ours, theirs = self.rows(data), self.rows(other)
        sides = Contrast.between(
            ours, theirs, law=self.batch_numbers, sigma=self.noise_scale
        )
        values = {k: v for k, v in transcript.items() if k != "steps"}
        total = self.start.loss(values, ours, theirs, self.n_components)
        bases = self.start.bases(values, ours.shape[1], self.n_components)
        for place, rate in enumerate(self.rates(len(ours))):
            noisy = transcript["steps"][:, place]
            total = total + sides.loss(*_products(sides.rows, bases, noisy))
            bases = self._moved(bases, rate * noisy)
        return np.asarray(total)


def _products(rows: Array, bases: Array, noisy: Array) -> tuple[Array, Array]:
    """Return <g_j, Y> and <g_j, g_l> in each trial, (trials, m) and (trials, m, m)."""
    coefficients = rows @ bases
    residuals = rows - coefficients @ bases.swapaxes(-2, -1)
    lengths = np.linalg.norm(residuals, axis=-1, keepdims=True)
    unit = np.divide(
        residuals, lengths, out=np.zeros_like(residuals), where=lengths > 1e-12
    )
    inner = np.sum((unit @ noisy) * coefficients, axis=-1)
    gram = (unit @ unit.swapaxes(1, 2)) * (coefficients @ coefficients.swapaxes(1, 2))
    return inner, gram
