r"""GGD without noise, which Theorem 11 calls private; it is not.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, section 4.5, Theorem 11: if S_rho(X_-i) > 0 and S^PCA_rho(X_-i) > 0 for all i,
"then GGD with PCA initialization is differentially private", because it finds the
inliers' subspace with or without row i. No epsilon or delta is given; any will do to
refute it.

1. V_0: the PCA subspace of the spherised rows.
2. T steps of GGD (`dpaudit.algorithms.robust.ggd`), no noise anywhere.
3. Output V_T.

**The claim is false**, three times over. The output is a function of the data, so on
any pair on which it differs it tells D from D' with certainty: delta = 1. After T steps
it does differ, also where the condition holds for both datasets and for each of them
without any one row: what they share is the limit, and V_T is as far from it as T steps
leave it (`NoiselessGGD.worst_case` is such a pair). And the condition is one on the
data, while the promise is one for all neighbours: nothing in the algorithm sees to it
that it holds.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.robust.descent import HalvingSteps
from dpaudit.algorithms.robust.ggd import GeodesicDescent
from dpaudit.algorithms.robust.ggd_pairs import shown_pair
from dpaudit.algorithms.robust.glad import Array
from dpaudit.algorithms.robust.noisy_descent import DEFAULT_ITERATIONS
from dpaudit.algorithms.shared.step_sizes import StepSizes
from dpaudit.claims import ApproxDP, Claim
from dpaudit.neighbours import Pair
from dpaudit.validation import check_count

__all__ = ["NoiselessGGD"]


@dataclass(frozen=True, kw_only=True)
class NoiselessGGD(GeodesicDescent):
    """GGD with PCA initialisation, and the claim of Theorem 11.

    It draws no randomness, so `dpaudit.testing.run_conformance`, which asks for some,
    does not pass it.

    Parameters
    ----------
    n_components, claim, start, iterations, step_sizes, step
        See `GeodesicDescent`.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = NoiselessGGD.as_published(1.0, 1e-5)
    >>> pair = mechanism.worst_case()
    >>> bases = [
    ...     mechanism.release(rows, rng=np.random.default_rng(0))
    ...     for rows in (pair.data, pair.neighbour)
    ... ]
    >>> bool(np.abs(bases[0] - bases[1]).max() > 1e-3)
    True
    """

    claim: Claim = field()

    @classmethod
    def as_published(
        cls,
        epsilon: float,
        delta: float,
        *,
        n_components: int = 1,
        iterations: int = DEFAULT_ITERATIONS,
        step_sizes: StepSizes | None = None,
    ) -> "NoiselessGGD":
        """Return GGD with a claim of (epsilon, delta), which Theorem 11 leaves open."""
        return cls(
            n_components=n_components,
            claim=ApproxDP(epsilon, delta),
            iterations=iterations,
            step_sizes=HalvingSteps() if step_sizes is None else step_sizes,
        )

    def draw(self, data: ArrayLike, size: int, *, rng: np.random.Generator) -> Array:
        """Return `size` copies of the one release there is, shape (size, D, r)."""
        one = super().draw(data, 1, rng=rng)
        return np.repeat(one, check_count("size", size, minimum=0), axis=0)

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair that meets the condition of Theorem 11; default D = r + 1.

        Nine inliers at each of the first r basis vectors, and one outlier
        (`dpaudit.algorithms.robust.ggd_pairs.shown_pair`).
        """
        return shown_pair(self.n_components, dimension, count=9 * self.n_components)
