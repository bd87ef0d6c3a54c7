r"""CoinPress: a covariance from second moments of rows whitened by earlier ones.

Source: Biswas, Dong, Kamath, Ullman, *CoinPress: practical private mean and covariance
estimation*, NeurIPS 2020. Read were the abstract and the authors' code (github.com/
twistedcubic/coin-press at 9c74725, `algos.py`; `demo.py` for the shares), which has
every step, and not the paper. Facts and formulas are from there.

The authors assume centred rows with a covariance of at most u I, for a public u. Here
R, the public norm of a row, is their radius for such a u: u = (R/gamma)^2, with

    gamma^2 = d + 2 sqrt(d ln 10) + 2 ln 10,      eta = sqrt(d/n) + d/(2 n),

where a standard normal row is longer than gamma with probability at most 1/10. So the
first step clips rows to R, as every mechanism here does, and R is all that it takes.
The number n of rows is public. rho is spent in shares; rho_i is that of step i.

1. B = I/sqrt(u).
2. For i = 1, ..., t: w_j = B x_j, scaled down to the length gamma if it is longer;

       Z_i = (1/n) sum_j w_j w_j^T + noise,   then made positive semi-definite;

   before the last step, B <- (Z_i + eta I)^(-1/2) B, by which later rows are whitened.
3. Output B^(-1) Z_t B^(-T).

`PublishedCoinPress`: shares 1/4 and 3/4; noise with an independent upper triangle, all
of it N(0, gamma^4/(rho_i n^2)); and Z is made positive by a singular value
decomposition U S V^T, as U S U^T, which turns negative eigenvalues into positive ones
of the same size. From the third step on the code whitens rows by the transpose of B,
which is no longer symmetric; it is with two. `CoinPress` differs in three things, of
which the proof needs none: noise of the Gaussian orthogonal ensemble, sqrt 2 times less
off the diagonal; negative eigenvalues become zero; and mu is exact. Its three steps
take a tenth each, and the rest: two such steps leave little of a bound that is loose.

**Sensitivity**, REPLACE_ONE. Given B, a row changes one w, which is no longer than
gamma whatever x and B are. By ||w w^T - z z^T||_F^2 = |w|^4 + |z|^4 - 2 <w, z>^2 the
mean moves by at most Delta = sqrt 2 gamma^2/n in the Frobenius norm, and its upper
triangle, as a vector, by no more. Two orthogonal w of length gamma attain both.

**Privacy.** In coordinates that keep that norm, Z_i has independent normal noise of
deviation Delta/mu_i, with mu_i^2 = 2 rho_i: it is mu_i-GDP given those before, on which
alone B depends (n being public), and all are sqrt(sum mu_i^2) = sqrt(2 rho)-GDP, which
implies rho-zCDP (Dong, Roth, Su, JRSS B 2022, Corollary 3.3; Bun, Steinke, TCC 2016,
Proposition 1.6); the output is a function of them. QED. So what is published holds, and
the noise is the least that does for rho-zCDP. What is loose is rho + 2 sqrt(rho ln(1/
delta)) for the epsilon of rho-zCDP (Bun and Steinke, Proposition 1.3), by which
`as_published` takes rho: at (1, 1e-5) the epsilon is 0.74.

**Utility**: docs/choosing.md#a-bound-that-is-too-large says when it pays.
"""

from dataclasses import dataclass
from functools import partial
from math import log, sqrt
from typing import Annotated, Any, ClassVar, Self, TypeAlias

import numpy as np

from dpaudit import ApproxDP, Claim, InputError, Pair, Relation
from dpaudit.algorithms.online.noise import pack, unpack
from dpaudit.algorithms.shared.bases import (
    Batched,
    GaussianSteps,
    Rng,
    Run,
    Values,
    answered,
    check_shares,
    drawn_in_parts,
    slices,
)
from dpaudit.algorithms.shared.constructors import GaussianCalibrated, hands_on
from dpaudit.arrays import Array
from dpaudit.blocks import Rows, peek
from dpaudit.gram import gram, prepared
from dpaudit.subspace import top_components
from dpaudit.validation import (
    Checked,
    Norm,
    Positive,
    check_fraction,
    check_length,
    check_positive,
    check_restarts,
)

__all__ = ["CoinPress", "PublishedCoinPress"]

_NUMBERS = 2**19  # of whitened rows, and of matrices, that are held at a time
_ROWS = 1_000  # of zeros beside the rows of the worst pair

_Shares: TypeAlias = Annotated[tuple[float, ...], partial(check_shares, 1)]


@dataclass(frozen=True, kw_only=True)
class CoinPress(GaussianSteps, Batched[Rows], Checked, GaussianCalibrated):
    """The mean second moment by CoinPress; releases have shape (d, d), and are PSD.

    Data may be whatever `dpaudit.blocks.blocks` takes and can be read more than once.
    A transcript has ``steps``, shape (size, t, d (d + 1)/2): the upper triangles of the
    Z_i, before they are made positive, over the deviation of noise.

    Parameters
    ----------
    claim : Claim
        What is promised under REPLACE_ONE.
    mu : float
        Of Gaussian DP, for all steps together.
    row_norm : float
        Public bound on the l2 norm of a row; longer rows are clipped onto it.
    shares : tuple of float
        Of mu^2, in proportion: of each step, at least one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = 0.05 * rng.standard_normal((20_000, 2)) * [1.0, 0.5]
    >>> release = CoinPress.calibrated(1.0, 1e-6).release(rows, rng=rng)
    >>> np.abs(release.round(4))
    array([[0.0025, 0.    ],
           [0.    , 0.0006]])
    """

    claim: Claim
    mu: Positive
    row_norm: Norm = 1.0
    shares: _Shares = (0.1, 0.1, 0.8)
    relation: ClassVar[Relation] = Relation.REPLACE_ONE

    ratio: ClassVar[float] = sqrt(2)
    """Deviation of the noise on the diagonal over that above it."""

    def draw(self, data: Rows, size: int, *, rng: Rng) -> Array:
        d, data = peek(data)
        return drawn_in_parts(
            size, (d, d), _NUMBERS // d**2, lambda part: self._run(data, part, rng)[2]
        )

    def components(self, releases: Array, n_components: int) -> Array:
        return top_components(releases, n_components)

    @property
    def step_scales(self) -> dict[str, float]:
        return {"steps": 1.0}

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a row at e_2 that replaces one at e_1, among rows of zeros.

        The first step loses all of its mu. The later ones do if what they whiten by
        keeps the two orthogonal, as it does more and more with the number of zeros. The
        default d is 2, the least that it can be.
        """
        one = np.zeros((_ROWS, check_length(dimension, 2, minimum=2)))
        other = one.copy()
        one[0, 0] = other[0, 1] = self.row_norm
        return Pair(one, other, self.relation)

    @staticmethod
    def positive(eigenvalues: Array) -> Array:
        """Return what becomes of the eigenvalues of Z."""
        return np.maximum(eigenvalues, 0.0)

    def _run(self, data: Rows, size: int, source: Rng | Values) -> Run:
        check_restarts(data)
        found = gram(data, row_norm=self.row_norm)
        if not (n := found.n_rows):
            raise InputError("data must have at least one row, got none")
        d = len(found.moment)
        gamma = sqrt(d + 2 * sqrt(d * log(10)) + 2 * log(10))
        eta = sqrt(d / n) + d / (2 * n)
        values, means = np.empty((2, size, len(self.shares), d * (d + 1) // 2))
        # B sqrt(u), and its inverse.
        whiten = unwhiten = np.broadcast_to(np.eye(d), (size, d, d))
        releases = np.empty((size, d, d))
        for step, share in enumerate(self.shares):
            mu = self.mu * sqrt(share / sum(self.shares))
            deviation = sqrt(2) * gamma**2 / mu
            if step:
                sums = self._moments(data, whiten, gamma)
            else:  # no clipped row is longer than gamma
                sums = found.moment * (gamma / self.row_norm) ** 2
            mean = means[:, step]
            mean[:] = pack(sums, self.ratio) / deviation
            at = slice(None), step
            values[at] = answered(source, "steps", at, mean)
            z = unpack(values[:, step], self.ratio) * (deviation / n)
            scales, axes = np.linalg.eigh(z)
            scales = self.positive(scales)
            if step < len(self.shares) - 1:
                roots = np.sqrt(scales + eta)[:, np.newaxis]
                whiten = _spectral(axes, 1 / roots) @ whiten
                unwhiten = unwhiten @ _spectral(axes, roots)
            else:
                roots = np.sqrt(scales) * (self.row_norm / gamma)
                factors = unwhiten @ (axes * roots[:, np.newaxis])
                releases = factors @ factors.swapaxes(-2, -1)
        return {"steps": values}, {"steps": means}, releases

    def _moments(self, data: Rows, whiten: Array, gamma: float) -> Array:
        """Return the sums of w w^T, shape (size, d, d)."""
        total = np.zeros(whiten.shape)
        for _, rows in prepared(data, self.row_norm):
            # Rows of zeros add nothing, and are most of the worst pair.
            rows = rows[rows.any(axis=1)] * (gamma / self.row_norm)
            for part in slices(len(total), _NUMBERS // max(rows.size, 1)):
                w = rows @ whiten[part].swapaxes(-2, -1)
                lengths = np.sqrt(np.einsum("...j,...j->...", w, w))[..., np.newaxis]
                w *= gamma / np.maximum(lengths, gamma)
                total[part] += w.swapaxes(-2, -1) @ w
        return total


def _spectral(axes: Array, values: Array) -> Array:
    return np.asarray((axes * values) @ axes.swapaxes(-2, -1))


@dataclass(frozen=True, kw_only=True)
class PublishedCoinPress(CoinPress):
    """CoinPress of two steps, to the letter of its authors' code."""

    shares: _Shares = (0.25, 0.75)
    ratio: ClassVar[float] = 1.0

    @hands_on("row_norm")
    @classmethod
    def as_published(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism for the rho at which rho-zCDP is (epsilon, delta)-DP."""
        epsilon = check_positive("epsilon", epsilon)
        surprise = -log(check_fraction("delta", delta))
        root = epsilon / (sqrt(epsilon + surprise) + sqrt(surprise))
        return cls(mu=sqrt(2) * root, claim=ApproxDP(epsilon, delta), **fields)

    @staticmethod
    def positive(eigenvalues: Array) -> Array:
        """Return their sizes."""
        return np.abs(eigenvalues)
