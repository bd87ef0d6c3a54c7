r"""dp-GGD: full-batch descent on GLAD with normal noise in every step, corrected.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, (NGGD) with the noise of Theorem 6, whose constant is left open; the steps are
those of `dpaudit.algorithms.robust.descent` with B = N.

Privacy, REPLACE_ONE. N is the same on both sides, hence public. Given V, the sum of the
terms moves by at most 2 (`dpaudit.algorithms.robust.glad`), so step k is mu_k-GDP with
mu_k = 2/sigma whatever came before; V_k is a function of the transcript. The T steps
and a start that is mu_0-GDP compose to

    mu^2 = mu_0^2 + 4 T/sigma^2

(Dong, Roth, Su, *Gaussian differential privacy*, JRSS B 2022, Corollary 3.3), so
sigma = 2 sqrt(T)/sqrt(mu^2 - mu_0^2), the smallest that this proof allows. After a
start that is epsilon_0-DP without being Gaussian, the steps get (epsilon - epsilon_0,
delta). The release is a function of the transcript.

The paper's noise, with 1 for its constant, is sigma = sqrt(T) log(1/delta)/epsilon
(here on the sum: N times the print's). With that the steps are mu-GDP with mu =
2 epsilon/log(1/delta), for every T, N, B: that keeps (epsilon, delta) where
`dpaudit.gaussian.gaussian_delta` (epsilon, mu) <= delta: for delta <= 0.05 up to
epsilon = 1.3 at least, at 1e-5 up to 12 and beyond. (At epsilon = 1 it is 1.5 times the
noise that the steps need at delta = 1e-5, 1.9 times at 1e-9.)

Utility. The noise on the mean, sigma/N per entry, grows with sqrt(T) whatever the step
sizes are. A step of length eta_k = 2^-40 costs as much as one of length 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.robust.descent import Descent, HalvingSteps
from dpaudit.algorithms.robust.ggd_pairs import shown_pair
from dpaudit.algorithms.robust.glad import Array, term_sum
from dpaudit.algorithms.robust.initialisation import GaussianStart, Start
from dpaudit.algorithms.robust.noisy_descent import DEFAULT_ITERATIONS, Summing
from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.shared.step_sizes import StepSizes
from dpaudit.claims import ApproxDP, Claim, GaussianDP, PureDP
from dpaudit.errors import InputError
from dpaudit.gaussian import gaussian_epsilon, gaussian_mu
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_count, check_fraction, check_positive

__all__ = ["DEFAULT_START_SHARE", "PrivateGGD"]

DEFAULT_START_SHARE = 0.2
_SENSITIVITY = 2.0


@dataclass(frozen=True, kw_only=True)
class PrivateGGD(Descent):
    """Full-batch descent with normal noise; the release is a basis of V_T, (D, r).

    Parameters
    ----------
    sigma : float
        Standard deviation of every entry of the noise on the sum of the terms.
    n_components, claim, start, iterations, step_sizes
        See `Descent`; the claim is made under REPLACE_ONE.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = PrivateGGD.calibrated(1.0, 1e-5, n_components=2)
    >>> round(mechanism.sigma, 2)
    37.31
    >>> rows = np.repeat(np.eye(5), [5000, 5000, 100, 100, 100], axis=0)
    >>> basis = mechanism.release(rows, rng=np.random.default_rng(0))
    >>> basis.shape
    (5, 2)
    """

    claim: Claim
    sigma: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sigma", check_positive("sigma", self.sigma))

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        n_components: int = 1,
        iterations: int = DEFAULT_ITERATIONS,
        step_sizes: StepSizes | None = None,
        start: Start | None = None,
        start_share: float = DEFAULT_START_SHARE,
    ) -> "PrivateGGD":
        """Return the mechanism at the smallest proven sigma.

        Parameters
        ----------
        epsilon, delta : float
            The promise for start and steps together, under REPLACE_ONE.
        n_components, iterations
            See `Descent`.
        step_sizes : StepSizes, optional
            Default: `HalvingSteps`, the paper's.
        start : Start, optional
            How V_0 is chosen; its claim is counted. Default: a `GaussianStart`.
        start_share : float
            Of mu^2, for the default start.

        Raises
        ------
        InputError
            If a value is not allowed, or the start leaves nothing.
        """
        mu = gaussian_mu(epsilon, delta)
        if start is None:
            share = check_fraction("start_share", start_share)
            start = GaussianStart(sqrt(share) * mu, Relation.REPLACE_ONE)
        rest = _remaining_mu(epsilon, delta, start)
        return cls(
            sigma=sqrt(check_count("iterations", iterations)) * _SENSITIVITY / rest,
            n_components=n_components,
            claim=ApproxDP(epsilon, delta),
            start=start,
            iterations=iterations,
            step_sizes=HalvingSteps() if step_sizes is None else step_sizes,
        )

    @property
    def relation(self) -> Relation:
        """REPLACE_ONE."""
        return Relation.REPLACE_ONE

    @property
    def budget(self) -> BudgetTree:
        """Who spends what."""
        epsilon, delta = (self.claim.parameters[key] for key in ("epsilon", "delta"))
        mu = sqrt(self.iterations) * _SENSITIVITY / self.sigma
        steps = BudgetTree(
            "steps", gaussian_epsilon(delta, mu), delta, note=f"{mu:.4g}-GDP"
        )
        spent = self.start.claim
        if spent is None:
            return steps
        start = BudgetTree("start", spent.epsilon(delta), delta, note=f"{spent}")
        return BudgetTree.accounted("dp-ggd", epsilon, delta, start, steps)

    def noise_scale(self, count: int) -> float:
        return self.sigma

    def denominator(self, count: int) -> float:
        return float(count)

    def summing(self, rows: Array, rng: np.random.Generator) -> Summing:
        return lambda bases: term_sum(rows, bases)

    def step_means(
        self, transcript: Mapping[str, Array], data: ArrayLike
    ) -> dict[str, Array]:
        """Return the sums without their noise, and the start's means if Gaussian."""
        rows = self.rows(data)
        values = {k: v for k, v in transcript.items() if k != "steps"}
        steps = transcript["steps"]
        bases = self.start.bases(values, rows.shape[1], self.n_components)
        means = np.empty(steps.shape)
        for place, rate in enumerate(self.rates(len(rows))):
            means[:, place] = term_sum(rows, bases)
            bases = self._moved(bases, rate * steps[:, place])
        return {**self.start.means(values, rows, self.n_components), "steps": means}

    @property
    def step_scales(self) -> dict[str, float]:
        """The standard deviation of every entry, by name."""
        return {**self.start.scales, "steps": self.sigma}

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair whose one row shows in every step, and in V_T.

        See `dpaudit.algorithms.robust.ggd_pairs.shown_pair`, with rows enough for the
        steps to find their span. The default D is r + 1.
        """
        count = self.n_components * max(4, round(4 * self.sigma))
        return shown_pair(self.n_components, dimension, count=count)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case, and one with few rows beside the last."""
        few = shown_pair(self.n_components, None, count=2 * self.n_components)
        return self.worst_case(), few


def _remaining_mu(epsilon: float, delta: float, start: Start) -> float:
    """Return the mu that a start leaves for the steps."""
    match start.claim:
        case None:
            return gaussian_mu(epsilon, delta)
        case GaussianDP(parameters={"mu": spent}):
            whole = gaussian_mu(epsilon, delta)
            if spent < whole:
                return sqrt(whole**2 - spent**2)
        case PureDP(parameters={"epsilon": spent}):
            if spent < epsilon:
                return gaussian_mu(epsilon - spent, delta)
    raise InputError(
        f"start must leave some of epsilon {epsilon:g} and delta {delta:g}, "
        f"but it is {start.claim}"
    )
