r"""Residual steps: noise on the second moment, then on what its subspace leaves out.

Source: dpaudit. To propose from a noisy query, and to refine by a second one that is
clipped to what the first has shown, is the idea of CoinPress for covariances (Biswas,
Dong, Kamath, Ullman, *CoinPress: practical private mean and covariance estimation*,
NeurIPS 2020) and of DP-PCA, whose noise follows the spread of gradients (Liu, Kong,
Jain, Oh, NeurIPS 2022; for k components, *An iterative algorithm for differentially
private k-PCA with adaptive noise*, NeurIPS 2025). Both clip the rows, or products with
a direction. Here what is clipped is the cross moment of the residuals, which is all
that turns a subspace, and the clip is in proportion to the geometric mean of the
variance inside of the subspace and of that outside: on rows near a subspace it is far
below the squared length of a row. We know of no earlier publication of that query, nor
of the choice in step 3 that loses nothing.

In units of R, the public bound on the length of a row x; mu^2 is spent in shares
s_0, ..., s_L that add up to 1, and mu_l^2 = s_l mu^2:

1. N_1 = A + noise of the Gaussian orthogonal ensemble, (Delta_1/mu_1)-scaled: normal,
   of deviation Delta_1/mu_1 on the diagonal and Delta_1/(sqrt 2 mu_1) off it. Under
   ADD_REMOVE also t n + normal noise of deviation Delta_1/mu_1, with t = 0.1.
2. From N_1 and n (the noisy one under ADD_REMOVE) alone: V, its first k eigenvectors;
   l, its eigenvalues, less what the noise lifts them by; the mean variances inside of V
   and outside; the clip C; and the errors to be expected of either way on: for the
   steps with what the clip adds, which weighs the rows of a sample anew.
3. If the steps do not promise less: N_2 = A + such noise for all that is left of mu^2.
   Output the first k eigenvectors of the mean of N_1 and N_2, weighted by precision.
   That mean is what one draw with all of mu would have given: nothing is lost, under
   ADD_REMOVE but for what t n has cost (s_0 t^2/(1 + t^2) of mu^2, 0.25 %).
4. Otherwise for l = 1, ..., L: with y = V^T x, r = x - V y and w = min(1, C/(|r| |y|)),

       B = sum w r y^T + noise,    M = sum clip(w y^2) + noise,

   y^2 by entries, and as a vector clipped to the length b. The noise of B has the
   deviation Delta_2/mu_l, that of M b/(eta C) times as much. M measures how much of the
   second moment the clip has left (the *response*). V is moved by B (I - V V^T is taken
   of its noise too), over the gaps between each eigenvalue inside and each outside
   times the response, and times a weight: the variance of V over itself and that of the
   step. Where the response shows that C was too large, C and b are smaller in the next.
5. After each step but the last V is held against N_1, whose rows were not clipped to C.
   If (I - V V^T) N_1 V would turn V further than its noise explains (by two deviations,
   over the mean gap or over each one), the clip has moved V, and step 3 follows with
   what is left of mu^2.
6. Output V, orthonormal.

**Sensitivities.** For rows of length at most 1:

- Step 1, ADD_REMOVE: the matrix x x^T and the number t are added, of joint length
  sqrt(|x|^4 + t^2) <= Delta_1 = sqrt(1 + t^2). REPLACE_ONE: n is public, |x x^T -
  z z^T|_F <= Delta_1 = sqrt 2. Step 3: 1 and sqrt 2.
- Step 4: whatever V, C, b and eta are, a row gives a pair (B, eta C/b M) whose first
  part is no longer than C, as |w r y^T|_F = w |r| |y|, and whose second is not negative
  in any entry and no longer than eta C. ADD_REMOVE: one such pair, of length at most
  Delta_2 = C sqrt(1 + eta^2). REPLACE_ONE: the first parts differ by at most 2 C, the
  second ones by at most sqrt 2 eta C, because |u - v|^2 <= |u|^2 + |v|^2 where u, v >=
  0; so Delta_2 = C sqrt(4 + 2 eta^2). The first is attained by rows half-way between a
  vector of V and one outside, on either side, if they are longer than sqrt(2 C); then
  the second parts are the same, so that 1/sqrt(1 + eta^2/2) of mu_l is lost at most
  that is 0.978 for eta = 0.3.

**Privacy.** A query of l2 sensitivity Delta with independent normal noise of deviation
Delta/mu in an orthonormal basis is mu-GDP (Dong, Roth, Su, *Gaussian differential
privacy*, JRSS B 2022, Theorem 2.7). For symmetric matrices with the Frobenius norm the
diagonal, and sqrt 2 times what is above it, are coordinates in such a basis. Step 1 is
mu_1-GDP. Given what was released so far, V, C, b, and what follows, step 3 or 4, are
fixed numbers: the same for both of two neighbours (n is public, or the noisy one). Step
l of 4 is mu_l-GDP, and step 3 after it (or after step 1, with l = 0) is
sqrt(sum_(j > l) mu_j^2)-GDP and the last. Corollary 3.3 there allows each mechanism to
depend on the outputs before it, so all that is ever released is sqrt(sum mu_l^2) =
mu-GDP; the output is a function of it. QED.
`calibrated` takes the mu that is exactly (epsilon, delta), by
`dpaudit.gaussian.gaussian_mu`.

**Warnings are private too.** Whether the components were found above the noise is said
by N_1 alone (`found`), so it may be said aloud.

**Utility**: docs/private-pca.md#residual-steps.
"""

from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Annotated, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.covariance.second_moment import symmetric_gaussian
from dpaudit.algorithms.online.noise import pack, unpack
from dpaudit.algorithms.shared.bases import (
    GaussianSteps,
    Rng,
    Run,
    Values,
    answered,
    check_rank,
    check_shares,
)
from dpaudit.algorithms.shared.constructors import GaussianCalibrated
from dpaudit.algorithms.subspace.residual_plan import (
    RESPONSE,
    StepPlan,
    StepsOnResiduals,
    clipped_sums,
    leading,
)
from dpaudit.arrays import Array
from dpaudit.blocks import Rows
from dpaudit.gram import Gram, gram
from dpaudit.validation import Count, Positive, check_restarts

__all__ = ["ResidualStepPCA"]

_COUNT = 0.1  # t: of a row in the noisy number of rows, where its second moment has 1

_Shares: TypeAlias = Annotated[tuple[float, ...], partial(check_shares, 2)]


@dataclass(frozen=True, kw_only=True)
class ResidualStepPCA(GaussianSteps, StepsOnResiduals, GaussianCalibrated):
    """GOE noise on all rows, then noisy cross moments of their residuals.

    A transcript has the queries over the deviation of noise. ``first``: the matrix in
    coordinates that keep its length, and under ADD_REMOVE the number of rows.
    ``second``: the matrix of step 3, or 0 where there is none; ``steps``, shape (size,
    L, (d + 1) k): B and M of each step 4, or 0.

    Parameters
    ----------
    mu : float
        Of Gaussian DP, for all queries together.
    shares : tuple of float
        Of mu^2, in proportion: of the first query and of each step, at least one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = 0.02 * rng.standard_normal((5_000, 20))
    >>> rows[:, 0] += 0.5 * rng.standard_normal(5_000)
    >>> mechanism = ResidualStepPCA.calibrated(1.0, 1e-6, n_components=1)
    >>> release = mechanism.release(rows, rng=rng)
    >>> bool(abs(release[0, 0]) > 0.9999)
    True
    """

    n_components: Count
    mu: Positive
    shares: _Shares = (0.25, 0.05, 0.08, 0.62)

    @property
    def step_scales(self) -> dict[str, float]:
        return dict.fromkeys(("first", "second", "steps"), 1.0)

    def _mu(self, *steps: int) -> float:
        """Return what some queries have of mu, together."""
        return self.mu * sqrt(sum(self.shares[x] for x in steps) / sum(self.shares))

    @property
    def _later(self) -> range:
        return range(1, len(self.shares))

    @property
    def _moved(self) -> float:
        """How far a matrix moves."""
        return sqrt(2) if self._replaced else 1.0

    @property
    def _stepped(self) -> float:
        """Delta_2/C."""
        return sqrt(4 + 2 * RESPONSE**2) if self._replaced else sqrt(1 + RESPONSE**2)

    def _deviation(self, step: int) -> float:
        """Return that of the noise of a query: of the first, or of one over C."""
        if step:
            return self._stepped / self._mu(step)
        return (self._moved if self._replaced else sqrt(1 + _COUNT**2)) / self._mu(0)

    def _run(
        self,
        data: Rows,
        size: int,
        source: Rng | Values,
        found: Gram | None = None,
        times: float = 1.0,
    ) -> Run:
        check_restarts(data)
        found = gram(data, row_norm=self.row_norm) if found is None else found
        d, k, count = len(found.moment), self.n_components, times * found.n_rows
        check_rank(k, d)
        moment = pack(found.moment * (times / self.row_norm**2), sqrt(2))
        known = moment if self._replaced else np.append(moment, _COUNT * count)
        shapes = {
            "first": known.shape,
            "second": moment.shape,
            "steps": (len(self._later), (d + 1) * k),
        }
        means = {name: np.zeros((size, *shape)) for name, shape in shapes.items()}
        values = {name: np.zeros((size, *shape)) for name, shape in shapes.items()}

        def answer(name: str, at: Any, mean: Array) -> Array:
            means[name][at] = mean
            values[name][at] = answered(source, name, at, means[name][at])
            return np.asarray(values[name][at])

        first = answer("first", slice(None), known / self._deviation(0))
        moments = self._queried(values, d, count)[0]
        plan = self._plan(values, d, count)
        bases = plan.basis

        def redraw(at: NDArray[np.intp], later: range) -> None:
            if len(at):
                precision = self._mu(*later) / self._moved
                second = answer("second", at, moment * precision) * precision
                second += first[at, : len(moment)] / self._deviation(0)
                bases[at] = leading(unpack(second, sqrt(2)), k)[1]

        redraw(np.flatnonzero(~plan.steps), self._later)
        at = np.flatnonzero(plan.steps)
        plan = plan.of(at)
        for step in self._later:
            if not len(at):
                break
            scale = self._deviation(step) * plan.clip
            mean = self._summed(data, plan, clipped_sums, (d + 1) * k)
            mean *= (times / scale)[:, np.newaxis]
            plan = plan.moved(answer("steps", (at, step - 1), mean), scale)
            if later := self._later[step:]:
                noise = self._deviation(0) / sqrt(2)
                fits = plan.fits(moments[at], noise)
                redraw(at[~fits], later)
                at, plan = at[fits], plan.of(fits)
        bases[at] = plan.basis
        return values, means, bases

    def _queried(self, values: Values, d: int, count: float) -> tuple[Array, Array]:
        known = values["first"] * self._deviation(0)
        counts = np.full(len(known), count)
        if not self._replaced:
            known, counts = known[:, :-1], known[:, -1] / _COUNT
        return unpack(known, sqrt(2)), np.maximum(counts, 1.0)

    def _noise(self, dimension: int) -> float:
        return self._deviation(0)

    def _drawn(self, size: int, dimension: int, rng: Rng) -> Array:
        wide = self._deviation(0)
        return symmetric_gaussian(size, dimension, wide / sqrt(2), wide, rng=rng)

    def _plan(self, values: Values, dimension: int, count: float) -> StepPlan:
        return StepPlan.made(
            *self._queried(values, dimension, count),
            self.n_components,
            noise=self._deviation(0) / sqrt(2),
            whole_noise=self._moved / (sqrt(2) * self.mu),
            step_noise=self._stepped / self._mu(*self._later),
        )
