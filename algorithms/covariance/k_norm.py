r"""KNormCovariance: the second-moment matrix plus noise shaped like what a row can do.

1. Z of density proportional to exp(-g(Z)/s), g a norm of symmetric matrices.
2. Output A + Z.

Under ADD_REMOVE g is the nuclear norm, g(Z) = tr Z_+ + tr Z_-; under REPLACE_ONE it is
the larger part, g(Z) = max(tr Z_+, tr Z_-). With s = 1/epsilon the release is **pure
epsilon-DP** under either.

Proof. g is a norm: tr Z_+ is the largest tr(P Z) over 0 <= P <= I, so that it is
subadditive, and tr Z_- = tr (-Z)_+. So with D = A - A' the loss at any Z is
(g(Z + D) - g(Z))/s <= g(D)/s, and g(D) <= 1 for neighbours whose rows have norm at most
1: g(x x^T) = ||x||^2, and g(x x^T - y y^T) <= max(||x||^2, ||y||^2)
(`dpaudit.algorithms.covariance.second_moment`).

No smaller epsilon is true of a pair: at Z = t D, t > 0, the loss is g(D)/s, and it is
continuous in Z, so that it is as near as one likes with positive probability.

**Whose it is.** The mechanism with the nuclear norm is that of d'Orsi and Novikov (ALT
2026), who prove that its error is optimal in every Schatten norm from the second on if
rows are many, and project the release on a ball of that norm if they are few. (That is
processing after the release; it is not done here.) The other norm, which a replaced row
needs half the noise for, and the exact draws are ours.

**Why these norms.** It is the K-norm mechanism of Hardt and Talwar (STOC 2010), K being
the unit ball of g: the convex hull of all that a row can do to A. Of ADD_REMOVE, the
hull of the x x^T and -x x^T, because a matrix of nuclear norm 1 is a mixture of the
projections on its eigenvectors, with signs. Of REPLACE_ONE, the hull of the x x^T -
y y^T: if g(D) <= 1 then D_+ and D_- are mixtures of x x^T and of y y^T with ||x||,
||y|| <= 1, and D is the mixture of the differences. No norm whose ball is smaller would
do, and a larger one means more noise.

**How it is drawn.** Exactly, in every dimension: by rejection up to d = 7, by coupling
from the past beyond, with the proofs below. The loss has nothing to do with how: there
is no delta. How long a draw takes says nothing of the data either, since noise is drawn
without them.

That takes longer the larger d is, and under REPLACE_ONE, where between d and 2 d draws
are rejected for each that is kept, much longer. Where it would be more than about ten
seconds a draw on one core of these days, even in batches of a hundred (one by itself
takes several times as long), a draw is refused: beyond d = LARGEST[relation]. There
`dpaudit.algorithms.covariance.symmetric_noise.SymmetrisedWishart` is the next best pure
mechanism.

The gauge of the noise, g(Z)/s, has a gamma law of shape d (d + 1)/2 whatever g is, and
is independent of Z/g(Z), which is distributed by the cone measure of K: {g <= r} has
r^(d (d + 1)/2) times the volume of K.

**The draws** have density exp(-||Z||_*), and exp(-max(tr Z_+, tr Z_-)). Z_+ and Z_- are
the positive and the negative part of Z = Z_+ - Z_-, both positive semi-definite, and
||Z||_* = tr Z_+ + tr Z_- is the nuclear norm.

**Rejection, in few dimensions.** Draw E1, E2 i.i.d. W_d(I/2, d + 1), and keep
Z = E1 - E2 if and only if E1 - Z_+ >= 0.

Proof. With d + 1 degrees of freedom the density of (E1, E2) is proportional to
exp(-tr E1 - tr E2), on two cones. Write it in Z and V = E1 - Z_+: then E1 = Z_+ + V and
E2 = Z_- + V, the Jacobian is 1 (for fixed Z, E1 is a shift of V, and Z = E1 - E2), and
the density is proportional to exp(-||Z||_* - 2 tr V) where Z_+ + V >= 0 and Z_- + V
>= 0. What is kept is V >= 0, where both hold whatever Z is. So Z and V are independent
there, and Z has the density wanted. The share kept is measured as 1, .75, .44, .20,
.071, .020 and .004 for d = 1, ..., 7.

**Coupling from the past, in more.** The density is invariant under rotations: the
eigenvectors are uniform (Haar), and independent of the eigenvalues, whose density is
proportional, in decreasing order, to

.. math:: \prod_{i < j} (\lambda_i - \lambda_j) \, e^{-\sum_i |\lambda_i|} .

To redraw lambda_i given the others leaves this law as it is (a heat bath), and is
monotone if all copies use the same uniform number
(`dpaudit.algorithms.covariance.heat_bath`). A *block* is a random map of ordered
vectors made of such steps, the number of which is fixed beforehand:

1. Redraw lambda_d, ..., lambda_1; then lambda_1, ..., lambda_d, and this so many times.
2. Redraw lambda_1, ..., lambda_d once more, in another way. Let L <= lambda <= H be
   bounds that hold for whatever the block began with. Given its neighbours, lambda_i
   has a density proportional to

   .. math:: f(x) = \prod_{j < i} (\lambda_j - x)_+ \prod_{j > i} (x - \lambda_j)_+
             e^{-|x|}, \quad g(x) \le f(x) \le h(x),

   h with H_j for j < i and L_j for j > i, g the other way round. Draw x from h and v
   uniform, take x if v <= f(x)/h(x), and otherwise repeat: rejection, so that lambda_i
   has its law. If v <= g(x)/h(x) at the first attempt then x is taken whatever the
   block began with, and L_i = H_i = x from there on. A block in which that is so for
   all i is constant.

*The bounds* are what step 1 makes of +infinity and of -infinity. Of the former: let all
lambda_j be B + d - j and B grow. The factors with an infinite lambda_j become constant,
so the law of lambda_d, which is redrawn first, tends to that of Laplace, that of
lambda_(d-1) to one of density (x - lambda_d) e^-|x|, and so on: with given uniform
numbers all are finite after one pass, and since the steps are monotone, what B leads to
grows with B and is above what any vector leads to that lies below it. Hence so is the
limit. -infinity is finite after the pass from lambda_1 to lambda_d. There is no box
that a law would have to be cut to.

*A draw* is what a block makes of a vector of the law wanted that is independent of it:
that has the law, because each step keeps it. If the block is constant, the vector need
not be known. If not, draw one, by the same method, and send it through. Each block is
constant with the same positive probability, so this ends with probability 1: it is
coupling from the past (Propp, Wilson 1996) in blocks, and the law is exact however many
passes a block has. They are as many as make nearly every block constant. The bounds are
never looked at before they have run, and no block is given up or begun anew.

**max(tr Z_+, tr Z_-)** is ||Z||_*/2 + |tr Z|/2. So twice a matrix Y of the first law,
kept with probability exp(-|tr Y|), has the second law.

Numbers are doubles: the law is exact over the real numbers up to their rounding, like
that of any sampler that uses them, and a distribution function is inverted to 1e-12.

Sources: Hardt, Talwar, *On the geometry of differential privacy*, STOC 2010; d'Orsi,
Novikov, *On purely private covariance estimation*, ALT 2026 (arXiv:2510.26717); Propp,
Wilson, *Exact sampling with coupled Markov chains and applications to statistical
mechanics*, Random Structures and Algorithms 9, 1996; Murdoch, Green, *Exact
sampling from a continuous state space*, Scand. J. Statist. 25, 1998 (coalescence by a
common lower bound). We know of no earlier use for random matrices.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit import Claim, InputError, Pair, PureDP, Relation
from dpaudit.algorithms.covariance.heat_bath import log_weight, redraw
from dpaudit.algorithms.covariance.second_moment import (
    SecondMomentMechanism,
    second_moment_sensitivity,
    wishart,
)
from dpaudit.algorithms.shared.bases import Rng, drawn_in_parts, first_accepted
from dpaudit.algorithms.shared.constructors import PureCalibrated
from dpaudit.arrays import Array
from dpaudit.claims.profile import lost
from dpaudit.mechanism import MatrixNorm, Sensitivity
from dpaudit.validation import Positive

__all__ = ["BY_REJECTION", "KNormCovariance"]

LARGEST = {Relation.ADD_REMOVE: 100, Relation.REPLACE_ONE: 30}
"""The largest d at which a draw takes about ten seconds or less, in batches."""
_NORMS: dict[Relation, MatrixNorm] = {
    Relation.ADD_REMOVE: "nuclear",
    Relation.REPLACE_ONE: "larger-part",
}


@dataclass(frozen=True, kw_only=True)
class KNormCovariance(SecondMomentMechanism, PureCalibrated):
    """A + Z, the density of Z proportional to exp(-g(Z)/scale).

    The relation says which norm g is.

    Examples
    --------
    >>> mechanism = KNormCovariance.calibrated(epsilon=2.0)
    >>> mechanism.scale
    0.5
    """

    scale: Positive

    sensitivity_norm: ClassVar[MatrixNorm] = "nuclear"

    @classmethod
    def _at(cls, epsilon: float, claim: Claim, /, **fields: Any) -> Self:
        made = cls(scale=1.0, claim=claim, **fields)
        return replace(made, scale=made.sensitivity.value / epsilon)

    @property
    def sensitivity(self) -> Sensitivity:
        """How far A moves, in the norm that the noise is shaped by."""
        norm = _NORMS[self.relation]
        return second_moment_sensitivity(norm, self.relation, self.row_norm)

    def noise(self, size: int, dimension: int, *, rng: Rng) -> Array:
        """Return noise matrices, unless a draw would take more than ten seconds."""
        largest = LARGEST[self.relation]
        if dimension > largest:
            raise InputError(
                f"data must have at most {largest} columns under {self.relation.value} "
                f"for a draw of k-norm noise to take ten seconds or less, got "
                f"{dimension}; the next best pure mechanism is symmetrised-wishart"
            )
        balance = self.relation is Relation.REPLACE_ONE
        draw = by_rejection if dimension <= BY_REJECTION else by_coupling
        noise = draw(size, dimension, balance=balance, rng=rng)
        noise *= self.scale
        return noise

    def log_density(self, noise: Array) -> Array:
        """Return the log-density of Z up to a constant, (size, d, d) -> (size,)."""
        return -self.sensitivity.measure(noise) / self.scale

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        near, far = (releases - self.statistic(rows) for rows in (data, other))
        return self.log_density(near) - self.log_density(far)

    def exact_claim(self, pair: Pair) -> Claim:
        """Return the pure epsilon of a pair, the supremum of its loss."""
        difference = self._difference(pair.data, pair.neighbour)
        largest = float(self.sensitivity.measure(difference)) / self.scale
        return lost(PureDP, largest)


BY_REJECTION = 7
"""The largest dimension in which Wishart matrices are rejected."""
_WORK = 2**18  # numbers in a temporary array
_FEWEST = 8
_ROWS = 128  # vectors of eigenvalues that are coupled side by side
_PASSES = 7  # of a block, in units of d


def by_rejection(size: int, dimension: int, *, balance: bool, rng: Rng) -> Array:
    """Draw from the first law, or the second, out of pairs of Wishart matrices."""
    propose = partial(_from_wisharts, dimension=dimension, balance=balance, rng=rng)
    most = max(_FEWEST, _WORK // dimension**2)
    shape = (dimension, dimension)
    return first_accepted(
        size, propose, shape=shape, fewest=1 if most == size else _FEWEST, most=most
    )


def by_coupling(size: int, dimension: int, *, balance: bool, rng: Rng) -> Array:
    """Draw from the first law, or from the second, by coupling from the past."""

    def propose(count: int) -> Array:
        values = coupled_eigenvalues(count, dimension, rng=rng)
        if balance:
            values = 2 * values[_survives(values.sum(axis=1), rng)]
        return values

    values = first_accepted(
        size,
        propose,
        shape=(dimension,),
        fewest=_FEWEST if balance and size != _ROWS else 1,
        most=_ROWS if balance else max(size, 1),
    )
    # The signs of the columns of a basis do not matter.
    basis = np.linalg.qr(rng.standard_normal((size, dimension, dimension))).Q
    turned = (basis * values[:, np.newaxis, :]) @ basis.swapaxes(-2, -1)
    return np.asarray((turned + turned.swapaxes(-2, -1)) / 2)


def _survives(trace: Array, rng: Rng) -> Array:
    # Minus the logarithm of a uniform variable is exponential.
    return np.asarray(np.abs(trace) <= rng.standard_exponential(len(trace)))


def _from_wisharts(count: int, *, dimension: int, balance: bool, rng: Rng) -> Array:
    """Return what rejection leaves of so many pairs of Wishart matrices."""
    first, second = (
        wishart(count, dimension, degrees=dimension + 1, scale=0.5, rng=rng)
        for _ in range(2)
    )
    difference = first - second
    if balance:
        good = _survives(np.trace(difference, axis1=1, axis2=2), rng)
        first, difference = first[good], difference[good]
    values, vectors = np.linalg.eigh(difference)
    positive = vectors * np.maximum(values, 0)[:, np.newaxis, :]
    rest = first - positive @ vectors.swapaxes(-2, -1)
    if len(rest):
        difference = difference[np.linalg.eigvalsh(rest)[:, 0] >= 0]
    return np.asarray(2 * difference if balance else difference)


# Coupling


def coupled_eigenvalues(
    size: int, dimension: int, *, passes: int | None = None, rng: Rng
) -> Array:
    """Draw eigenvalues of the first law, in decreasing order, shape (size, d).

    A block has 7 d passes, or as many as are asked for: they decide how long a draw
    takes, and not its law.
    """
    passes = _PASSES * dimension if passes is None else passes
    return drawn_in_parts(
        size, (dimension,), _ROWS, lambda rows: _block(rows, dimension, passes, rng)
    )


def _block(rows: int, d: int, passes: int, rng: Rng) -> Array:
    """Return what blocks make of vectors of their law, shape (rows, d)."""
    upwards = rng.random((rows, d))
    downwards = rng.random((passes, rows, d))
    # Step 1, from +infinity and from -infinity.
    top, bottom = np.empty((2, rows, d))
    for i in reversed(range(d)):
        top[:, i] = redraw(top[:, i + 1 :], top[:, :0], upwards[:, i])
    for i in range(d):
        top[:, i] = _redrawn(top, i, downwards[0])
        bottom[:, i] = redraw(bottom[:, :0], bottom[:, :i], downwards[0, :, i])
    both = np.concatenate([top, bottom])
    for uniform in downwards[1:]:
        _pass(both, np.concatenate([uniform, uniform]))
    top, bottom = both[:rows], both[rows:]
    # Step 2, until something depends on what the block began with.
    met = np.full(rows, d)  # how many of the coordinates do not
    height = np.empty(rows)  # log(v h(x)) at the first that does, and x
    point = np.empty(rows)
    for i in range(d):
        live = np.flatnonzero(met == d)
        high, low = top[live], bottom[live]
        x = redraw(low[:, i + 1 :], high[:, :i], rng.random(len(live)))
        level = log_weight(x, low[:, i + 1 :], high[:, :i])
        level -= rng.standard_exponential(len(live))
        common = level <= log_weight(x, high[:, i + 1 :], low[:, :i])
        taken, left = live[common], live[~common]
        top[taken, i] = bottom[taken, i] = x[common]
        met[left], height[left], point[left] = i, level[~common], x[~common]
    open_ = np.flatnonzero(met < d)
    if len(open_):
        start = coupled_eigenvalues(len(open_), d, passes=passes, rng=rng)
        for i in reversed(range(d)):
            start[:, i] = _redrawn(start, i, upwards[open_])
        for uniform in downwards[:, open_]:
            _pass(start, uniform)
        parts = (each[open_] for each in (met, top, bottom, point, height))
        _finish(start, *parts, rng=rng)
        top[open_] = start
    return top


def _finish(values: Array, *parts: Array, rng: Rng) -> None:
    """Carry out step 2 on vectors for which it depends on where they came from."""
    met, top, bottom, point, height = parts
    for i in range(values.shape[1]):
        same, first, after = met > i, met == i, met < i
        values[same, i] = top[same, i]
        fresh = rng.random(int(after.sum()))
        values[after, i] = redraw(values[after, i + 1 :], values[after, :i], fresh)
        wait = np.flatnonzero(first)
        x, level = point[wait], height[wait]
        while len(wait):
            good = level <= log_weight(x, values[wait, i + 1 :], values[wait, :i])
            values[wait[good], i] = x[good]
            wait = wait[~good]
            low, high = bottom[wait, i + 1 :], top[wait, :i]
            x = redraw(low, high, rng.random(len(wait)))
            level = log_weight(x, low, high) - rng.standard_exponential(len(wait))


def _redrawn(values: Array, i: int, uniform: Array) -> Array:
    return redraw(values[:, i + 1 :], values[:, :i], uniform[:, i])


def _pass(values: Array, uniform: Array) -> None:
    for i in range(values.shape[1]):
        values[:, i] = _redrawn(values, i, uniform)
