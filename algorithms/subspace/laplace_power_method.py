"""The private power method with Laplace noise: pure differential privacy.

Source, steps and proof: `dpaudit.algorithms.subspace.power_method`. Each of the L steps
adds i.i.d. Laplace noise of scale b to A V, whose entries move by at most
sqrt(d k) Delta in sum, so the mechanism is epsilon-DP with
epsilon = L sqrt(d k) Delta/b. The scale of the noise depends on d, which is public.

Imtiaz and Sarwate take b = 2 k L sqrt(d)/epsilon. That keeps its promise, with
2 sqrt(k)/Delta times the noise needed: 2 sqrt k under ADD_REMOVE; sqrt(2 k) under
REPLACE_ONE for k >= 2, and 2 for k = 1.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from dpaudit.algorithms.subspace.power_method import (
    DEFAULT_ITERATIONS,
    NoisyPowerMethod,
    step_sensitivity,
)
from dpaudit.arrays import Array
from dpaudit.checked import Positive
from dpaudit.claims import PureDP
from dpaudit.neighbours import Relation
from dpaudit.validation import check_count, check_positive

__all__ = ["LaplacePowerMethod"]


@dataclass(frozen=True, kw_only=True)
class LaplacePowerMethod(NoisyPowerMethod):
    """The power method with Laplace noise, for pure differential privacy.

    Parameters
    ----------
    unit_scale : float
        Scale of every entry of the noise, over sqrt(d).
    iterations, n_components, claim, relation, row_norm
        See `NoisyPowerMethod`.

    Examples
    --------
    >>> LaplacePowerMethod.calibrated(0.5, n_components=4, iterations=3).unit_scale
    12.0
    """

    unit_scale: Positive

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        *,
        n_components: int,
        iterations: int = DEFAULT_ITERATIONS,
        relation: Relation | str = Relation.ADD_REMOVE,
        row_norm: float = 1.0,
    ) -> "LaplacePowerMethod":
        """Return the mechanism at the smallest proven scale, L sqrt(d k) Delta/eps."""
        epsilon = check_positive("epsilon", epsilon)
        sensitivity = step_sensitivity(n_components, relation, row_norm)
        steps = check_count("iterations", iterations)
        return cls(
            unit_scale=steps * sqrt(n_components) * sensitivity / epsilon,
            iterations=iterations,
            n_components=n_components,
            claim=PureDP(epsilon),
            relation=Relation.parse(relation),
            row_norm=row_norm,
        )

    @classmethod
    def as_published(
        cls,
        epsilon: float,
        *,
        n_components: int,
        iterations: int = DEFAULT_ITERATIONS,
        relation: Relation | str = Relation.ADD_REMOVE,
        row_norm: float = 1.0,
    ) -> "LaplacePowerMethod":
        """Return the mechanism as Imtiaz and Sarwate compare it, with their claim."""
        epsilon = check_positive("epsilon", epsilon)
        entries = check_count("n_components", n_components) * check_count(
            "iterations", iterations
        )
        sensitivity = check_positive("row_norm", row_norm) ** 2
        return cls(
            unit_scale=sensitivity * 2 * entries / epsilon,
            iterations=iterations,
            n_components=n_components,
            claim=PureDP(epsilon),
            relation=Relation.parse(relation),
            row_norm=row_norm,
        )

    def noise(self, size: int, dimension: int, *, rng: np.random.Generator) -> Array:
        scale = self.unit_scale * sqrt(dimension)
        return rng.laplace(scale=scale, size=(size, dimension, self.n_components))

    def deviation(self, dimension: int) -> float:
        return sqrt(2 * dimension) * self.unit_scale
