r"""Descent on REAPER on secret random batches, and the likelihood of its transcript.

Rows that are equal have equal terms h(P), so a batch matters through the numbers
(K_1, ..., K_m) of the m distinct rows in it, and given P the noisy sum Y is a mixture
of normal laws over these numbers, in the coordinates of
`dpaudit.algorithms.robust.reaper_descent` (where the noise is independent):

.. math:: p(Y \mid P) \propto \sum_k P(K = k)
    \exp\Big(\frac{\langle \sum_j k_j h_j, Y \rangle}{\sigma^2}
    - \frac{\|\sum_j k_j h_j\|^2}{2 \sigma^2}\Big).

By the chain rule the product over the steps is the exact likelihood of a transcript,
and no attack on it is better (Neyman, Pearson). The laws of K are those of
`dpaudit.algorithms.robust.batch_mixtures`.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.algorithms.robust.batch_mixtures import BatchNumbers, Contrast
from dpaudit.algorithms.robust.glad import Array
from dpaudit.algorithms.robust.reaper import reaper_terms
from dpaudit.algorithms.robust.reaper_descent import ReaperDescent

__all__ = ["StochasticReaper"]


@dataclass(frozen=True, kw_only=True)
class StochasticReaper(ReaperDescent):
    """Descent on random batches, whose transcript has a known likelihood.

    Parameters
    ----------
    n_components, claim, iterations, step_sizes
        See `ReaperDescent`.
    """

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
            If more than 4 rows of the two datasets together are distinct.
        """
        ours, theirs = self.rows(data), self.rows(other)
        sides = Contrast.between(
            ours, theirs, law=self.batch_numbers, sigma=self.noise_scale
        )
        total = np.zeros(len(transcript["steps"]))
        path = self.replayed(transcript, len(ours), ours.shape[1])
        for place, matrices in enumerate(path):
            terms = self._flattened(reaper_terms(sides.rows, matrices))
            noisy = transcript["steps"][:, place, :, np.newaxis]
            inner = (terms @ noisy)[..., 0]
            total += sides.loss(inner, terms @ terms.swapaxes(1, 2))
        return total
