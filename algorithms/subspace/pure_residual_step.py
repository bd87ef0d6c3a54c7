r"""Residual steps without a delta: Wishart noise, then that of a cross moment's norm.

Source: dpaudit. The steps are those of `dpaudit.algorithms.subspace.residual_step`,
which has the words and the prior work. Epsilons add up, so there is one step only, and
its noise is that of the K-norm mechanism (Hardt, Talwar, *On the geometry of
differential privacy*, STOC 2010), with the nuclear norm, as d'Orsi and Novikov have it
for the second moment (*On purely private covariance estimation*, ALT 2026). We know of
no earlier publication of that for residuals, nor of the draws below.

In units of R, with e_1 a share of epsilon, and e_2 the rest:

1. N_1 = A + the noise of `dpaudit.algorithms.covariance.symmetric_noise` that is
   e_1-DP. Under ADD_REMOVE a twentieth of e_1 is for n + Laplace noise.
2. From N_1 and n alone: V, C and b as there.
3. If V is not found, or the step does not promise less error than N_1 has: N_2 = A +
   such noise that is e_2-DP. Output the first k eigenvectors of the mean of N_1 and
   N_2, weighted by precision.
4. Otherwise, with y = V^T x, r the coordinates of x in a basis of the complement of V,
   and w = min(1, C/(|r| |y|)), output a function of

       B/C = sum w r y^T/C,  M/b = sum min(w |y|^2/b, 1),  and noise Z,

   whose density is proportional to exp(-e_2 q(Z)), q(B, M) = max(||B||_*/s, |M|). The
   nuclear norm ||B||_* is the sum of the singular values; s = 1 under ADD_REMOVE and 2
   under REPLACE_ONE. V is moved by B as there, the response of each component being
   its share of M by its eigenvalue. Output V, orthonormal.

**Privacy.** Step 1 is e_1-DP. Given what it released, V, C, b and what follows are
fixed numbers, the same for both of two neighbours. Step 3 is e_2-DP. In step 4 a row
gives a matrix of rank 1 and length at most 1, so of nuclear norm at most 1, and a
number in [0, 1]. ADD_REMOVE: q of it is at most 1. REPLACE_ONE: the nuclear norm of a
difference is at most 2, and numbers differ by at most 1, so q is at most 1. It is a
norm, so that the loss at any Z, e_2 (q(Z + D) - q(Z)), is at most e_2 q(D) <= e_2. Each
mechanism may depend on the outputs before it (Dwork, Roth 2014, Theorem 3.16), so all
that is ever released is e_1 + e_2 = epsilon-DP; the output is a function of it. QED. No
smaller epsilon holds of that, by `worst_case`. ADD_REMOVE: e_1 is lost wherever the
noise of N_1 is positive semi-definite, and among that is some which leaves V in its
place, where q(D) = 1. REPLACE_ONE: N_1 loses nearly e_1 where its noise is a large
multiple of what has moved. That turns V and lifts what is inside of it, so that C,
which is at most 1/2, would leave nothing of the response; so step 3 follows, and loses
nearly e_2 in the same way. (By continuity all of this has positive probability.)

**How Z is drawn.** If G has a gamma law of shape D + 1, D = (d - k) k + 1, and U is
uniform in {q <= 1}, then Z = G U (Hardt, Talwar 2010). That body is a product: of an
interval, and of s times the unit ball of the nuclear norm. In that a point is its
direction, of nuclear norm 1, times the 1/((d - k) k)-th power of a uniform number. The
direction of an m x k matrix, m >= k, is that of B with density proportional to
exp(-||B||_*). Write B = Q H, with H symmetric positive semi-definite of eigenvalues h,
and Q of orthonormal columns: Q is uniform, and the density of H proportional to

.. math:: e^{-\mathrm{tr} H} \det(H)^{m - k} \prod_{i < j} (h_i + h_j) ,

by the Jacobian of the polar decomposition. But for the product this is the Wishart law
W_k(I/2, 2m - k + 1). The product is at most (2 tr H/k)^(k (k - 1)/2), as the geometric
mean is at most the arithmetic one. So keep a Wishart matrix with the probability
prod (h_i + h_j) k/(2 tr H). That hangs on its direction alone, and neither law's
direction on its trace: H/tr H then has the law wanted. If m < k, B^T is drawn.

Few are kept where k^3/m is large (k <= m): at 100 from one in 500 (many columns) to one
in 80,000 (k = m = 10), which takes half a second. Beyond that draws are refused.

**Utility.** Two draws of half of epsilon each are worth one of epsilon/sqrt(2): so much
is lost in step 3, against `symmetrised-wishart`. The noise of B is about sqrt(8) C
times that which A would have there for all of epsilon: sqrt(2) times where C is 1/2, so
that nothing is clipped. What comes of it: docs/choosing.md#without-a-delta.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.covariance.second_moment import wishart
from dpaudit.algorithms.covariance.symmetric_noise import SymmetrisedWishart
from dpaudit.algorithms.shared.bases import (
    Rng,
    Run,
    Values,
    check_rank,
    first_accepted,
    laplace_noise,
)
from dpaudit.algorithms.shared.constructors import PureCalibrated
from dpaudit.algorithms.subspace.base import uniform_frames
from dpaudit.algorithms.subspace.residual_plan import (
    StepPlan,
    StepsOnResiduals,
    leading,
    weighed,
)
from dpaudit.arrays import Array
from dpaudit.blocks import Rows
from dpaudit.errors import InputError
from dpaudit.gram import Gram, gram
from dpaudit.validation import Count, Fraction, Positive, check_restarts

__all__ = ["PureResidualStepPCA"]

_COUNT = 0.05  # of e_1, for the number of rows
_HARDEST = 100  # k^3/m, for which directions are drawn
_FEWEST, _NUMBERS = 8, 2**18  # proposals, and numbers in those, at a time


@dataclass(frozen=True, kw_only=True)
class PureResidualStepPCA(StepsOnResiduals, PureCalibrated):
    """Symmetrised Wishart noise on all rows, then K-norm noise on their residuals.

    A transcript has ``first`` and ``second``, the matrices of steps 1 and 3, shape
    (size, d, d); ``count``, shape (size, 1), the number of rows under ADD_REMOVE;
    ``steps``, shape (size, (d - k) k + 1): B/C and M/b. What is not drawn is 0.

    Parameters
    ----------
    epsilon : float
        Of pure DP, for all queries together.
    share : float
        Of epsilon, for the first query.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = 0.02 * rng.standard_normal((5_000, 20))
    >>> rows[:, 0] += 0.5 * rng.standard_normal(5_000)
    >>> mechanism = PureResidualStepPCA.calibrated(1.0, n_components=1)
    >>> release = mechanism.release(rows, rng=rng)
    >>> bool(abs(release[0, 0]) > 0.999)
    True
    """

    n_components: Count
    epsilon: Positive
    share: Fraction = 0.5

    def transcript_loss(self, transcript: Values, data: Any, other: Any) -> Array:
        """Return the exact loss of all that was released, shape (size,), for d <= 2."""
        one, two = (
            self._log_density(transcript, self.step_means(transcript, rows))
            for rows in (data, other)
        )
        return one - two

    def _log_density(self, values: Values, means: Values) -> Array:
        """Return that of a transcript up to a constant, shape (size,)."""
        noise = {name: values[name] - means[name] for name in means}
        matrix, size = self._wishart(self._first), len(noise["steps"])
        density = matrix.log_density(noise["first"])
        density += self._wishart(self._rest).log_density(noise["second"])
        if not self._replaced:
            density -= np.abs(noise["count"][:, 0]) / self._count_scale
        steps = noise["steps"][:, :-1].reshape(
            size, means["first"].shape[1] - self.n_components, self.n_components
        )
        length = np.linalg.svd(steps, compute_uv=False).sum(axis=1) / self._stepped
        gauge = np.maximum(length, np.abs(noise["steps"][:, -1]))
        return np.asarray(density - self._rest * gauge)

    @property
    def _first(self) -> float:
        """The epsilon of N_1."""
        return self.epsilon * self.share * (1.0 if self._replaced else 1 - _COUNT)

    @property
    def _rest(self) -> float:
        """e_2."""
        return self.epsilon * (1 - self.share)

    @property
    def _count_scale(self) -> float:
        return 1 / (_COUNT * self.share * self.epsilon)

    @property
    def _stepped(self) -> float:
        """s, how far B/C moves."""
        return 2.0 if self._replaced else 1.0

    def _wishart(self, epsilon: float) -> SymmetrisedWishart:
        return SymmetrisedWishart.calibrated(epsilon, relation=self.relation)

    def _noise(self, dimension: int) -> float:
        return self._stepped * sqrt(dimension + 1) / self._first

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
        _check_drawn(d, k)
        moment = found.moment * (times / self.row_norm**2)
        shapes: dict[str, tuple[int, ...]] = {} if self._replaced else {"count": (1,)}
        shapes |= {"first": (d, d), "second": (d, d), "steps": ((d - k) * k + 1,)}
        means = {name: np.zeros((size, *shape)) for name, shape in shapes.items()}
        values = {name: np.zeros((size, *shape)) for name, shape in shapes.items()}

        def answer(name: str, at: NDArray[np.intp], mean: Any, noise: Any) -> Array:
            means[name][at] = mean
            if isinstance(source, np.random.Generator):
                values[name][at] = means[name][at] + noise(len(at), source)
            else:
                values[name][at] = source[name][at]
            return np.asarray(values[name][at])

        def matrices(epsilon: float) -> Any:
            return lambda number, rng: self._wishart(epsilon).noise(number, d, rng=rng)

        every = np.arange(size)
        if not self._replaced:
            answer("count", every, count, self._laplace)
        first = answer("first", every, moment, matrices(self._first))
        plan = self._plan(values, d, count)
        bases, at = plan.basis, np.flatnonzero(~plan.steps)
        if len(at):
            second = answer("second", at, moment, matrices(self._rest))
            second = self._first**2 * first[at] + self._rest**2 * second
            bases[at] = leading(second, k)[1]
        if len(at := np.flatnonzero(plan.steps)):
            plan = plan.of(at)
            mean = times * self._summed(data, plan, _capped_sums, shapes["steps"][0])
            seen = answer("steps", at, mean, self._shaped_noise(d - k, k))
            bases[at] = self._moved(plan, seen)
        return values, means, bases

    def _laplace(self, size: int, rng: Rng) -> Array:
        return laplace_noise((size, 1), self._count_scale, rng=rng)

    def _shaped_noise(self, m: int, k: int) -> Any:
        """Return what draws Z, shape (size, m k + 1)."""

        def draw(size: int, rng: Rng) -> Array:
            matrix = self._stepped * uniform_in_nuclear_ball(size, m, k, rng=rng)
            number = rng.uniform(-1.0, 1.0, (size, 1))
            points = np.hstack([matrix.reshape(size, m * k), number])
            return points * rng.gamma(m * k + 2, 1 / self._rest, (size, 1))

        return draw

    def _queried(self, values: Values, d: int, count: float) -> tuple[Array, Array]:
        first = values["first"]
        counts = np.full(len(first), count) if self._replaced else values["count"][:, 0]
        return first, np.maximum(counts, 1.0)

    def _drawn(self, size: int, dimension: int, rng: Rng) -> Array:
        return self._wishart(self._first).noise(size, dimension, rng=rng)

    def _plan(self, values: Values, dimension: int, count: float) -> StepPlan:
        noise = self._noise(dimension) / sqrt(2)
        return StepPlan.made(
            *self._queried(values, dimension, count),
            self.n_components,
            noise=noise,
            whole_noise=noise,
            step_noise=self._deviation(dimension),
        )

    def _deviation(self, dimension: int) -> float:
        """Return about the deviation of an entry of B, over C; less in few columns."""
        longer = max(dimension - self.n_components, self.n_components)
        return self._stepped * sqrt(longer) / self._rest

    def _moved(self, plan: StepPlan, seen: Array) -> Array:
        """Return V after step 4, shape (size, d, k)."""
        size, d, k = plan.basis.shape
        cross = plan.outer @ seen[:, :-1].reshape(size, d - k, k)
        shares = plan.values / plan.values.sum(axis=1, keepdims=True)
        response = shares * (seen[:, -1] * plan.wide)[:, np.newaxis]
        cross = cross * plan.clip[:, np.newaxis, np.newaxis]
        return plan.turned(cross, response, plan.clip * self._deviation(d)).basis


def _capped_sums(rows: Array, plan: StepPlan) -> Array:
    """Return B/C in the axes outside of V, and M/b, shape (size, (d - k) k + 1)."""
    cross, squares = weighed(rows, plan)
    cross = plan.outer.swapaxes(-2, -1) @ cross / plan.clip[:, np.newaxis, np.newaxis]
    capped = np.minimum(squares.sum(axis=-1) / plan.wide[:, np.newaxis], 1.0)
    return np.hstack([cross.reshape(len(cross), -1), capped.sum(axis=1)[:, np.newaxis]])


def _check_drawn(d: int, k: int) -> None:
    """Raise if directions take too many proposals."""
    small, large = sorted((k, d - k))
    if small**3 > _HARDEST * large:
        raise InputError(
            f"n_components must be further from half of the {d} columns, for the noise "
            f"of a step to be drawn, got {k}: m^3 <= {_HARDEST} (d - m) must hold of "
            "the smaller one, m, of it and the rest; symmetrised-wishart takes any"
        )


def uniform_in_nuclear_ball(size: int, m: int, k: int, *, rng: Rng) -> Array:
    """Draw m x k matrices uniformly among those of nuclear norm at most 1."""
    small, large = sorted((m, k))
    above = np.triu_indices(small, 1)

    def propose(count: int) -> Array:
        degrees = 2 * large - small + 1
        shapes = wishart(count, small, degrees=degrees, scale=0.5, rng=rng)
        shapes /= shapes.trace(axis1=1, axis2=2)[:, np.newaxis, np.newaxis]
        values = np.linalg.eigvalsh(shapes)
        pairs = (values[:, above[0]] + values[:, above[1]]) * (small / 2)
        kept = np.log(pairs).sum(axis=1) >= -rng.standard_exponential(count)
        return shapes[kept]

    most = max(_FEWEST, _NUMBERS // small**2)
    shape = small, small
    polar = first_accepted(size, propose, shape=shape, fewest=_FEWEST, most=most)
    drawn = uniform_frames(size, large, small, rng=rng) @ polar
    drawn *= rng.random((size, 1, 1)) ** (1 / (m * k))
    return drawn if m >= k else drawn.swapaxes(-2, -1)
