r"""StepwiseSums: every prefix with noise of its own, as Algorithm 3 makes them.

Row i is in the prefixes i, i + 1, ..., m, so in m of them at most. If it is replaced,
each moves by at most sqrt 2 R^2, and their noise is independent: the sequence is
mu-GDP with mu = sqrt(2 m) R^2/s, attained by row 1.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.online.noise import PublishedStepNoise
from dpaudit.algorithms.online.streamable import StreamableSums
from dpaudit.claims import ApproxDP, GaussianDP

__all__ = ["StepwiseSums"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class StepwiseSums(StreamableSums):
    """Prefixes with independent noise; releases have shape (n, d, d).

    Parameters
    ----------
    noise, claim, length, row_norm
        See `dpaudit.algorithms.online.prefix_sums.PrefixSums`.
    """

    @classmethod
    def of_steps(
        cls,
        epsilon: float,
        delta: float,
        *,
        length: int | None = None,
        row_norm: float = 1.0,
    ) -> "StepwiseSums":
        """Return the sums of Algorithm 3, with the claim of one step for them all."""
        return cls(
            noise=PublishedStepNoise(epsilon, delta),
            claim=ApproxDP(epsilon, delta),
            length=length,
            row_norm=row_norm,
        )

    @property
    def keeps_noise(self) -> bool:
        """False: every prefix has noise of its own."""
        return False

    def uses(self, length: int) -> int:
        """Return m."""
        return length

    def mixed(self, sums: Array) -> Array:
        return sums

    def unmixed(self, prefixes: Array) -> Array:
        return prefixes

    def step_claim(self, n_rows: int | None = None) -> GaussianDP:
        """Return what is true of any one prefix, by itself, under REPLACE_ONE."""
        return GaussianDP(sqrt(2) * self.row_norm**2 / self.deviation(n_rows))

    def composed_claim(self, n_rows: int | None = None) -> GaussianDP:
        """Return what is true of all prefixes together: sqrt m times the mu of one."""
        length = n_rows if self.length is None else self.length
        mu = self.step_claim(n_rows).parameters["mu"]
        return GaussianDP(mu * sqrt(length or 1))
