r"""PrivateOja: Oja's algorithm on shuffled rows, with noise in every step.

Source: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and differentially private
PCA*, NeurIPS 2022, Algorithm 2.

1. Permute A_1, ..., A_n at random; w_0: uniformly random on the unit sphere.
2. For t = 1, ..., n: w' = w_(t-1) + eta_t (clip_beta(A_t w_(t-1)) + 2 beta alpha z_t),
   z_t ~ N(0, I); w_t = w'/||w'||.
3. Output w_n.

In print alpha = C log(n/delta)/(epsilon sqrt n) with C left open, so the algorithm
cannot be run as printed; `PrivateOja.as_published` takes the C that one chooses. Here
alpha is the smallest that is proven for n, epsilon and delta by amplification by
shuffling: `dpaudit.algorithms.streaming.amplification.amplified_multiplier`. The noise
is Delta alpha with Delta = 2 beta for any matrices, and R^2 (or 2 beta, if less) for
rows in a ball of radius R.

Privacy, under REPLACE_ONE. Publish all noisy products Y_1, ..., Y_n, but not the order;
w_n is a function of w_0 and these. Y_t is normal with a mean that depends on the person
whose turn it is and on w_(t-1), which earlier outputs determine. Given w_(t-1) = w the
means lie in a ball of radius Delta/2 about a centre that w determines:

- the centre 0 and the radius beta, as clipped;
- for rows also (R^2/2) w and R^2/2: a clipped product is y y^T w for a y with ||y|| <=
  R (`dpaudit.algorithms.streaming.moment_products`); ||y y^T w - (||y||^2/2) w|| =
  ||y||^2/2, because 2 y y^T/||y||^2 - I is a reflection; and from there to the centre
  it is (R^2 - ||y||^2)/2.

So step t is a local randomiser of the kind that the theorem wants, adaptive in the
outputs before it, and the theorem covers adaptive ones.

Every epsilon is covered, and every n: where shuffling hides nothing, alpha is that of
one Gaussian step. `dpaudit.algorithms.streaming.minibatch_oja` needs less noise, and is
much faster; it is the algorithm to use.
"""

from dataclasses import dataclass, replace
from math import log, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.shared.bases import (
    Batched,
    ReleasesVector,
    Rng,
    check_one_component,
    drawn_in_parts,
)
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.algorithms.shared.step_sizes import (
    HarmonicSteps,
    Steps,
    StepSizes,
    as_step_sizes,
)
from dpaudit.algorithms.streaming.amplification import amplified_multiplier
from dpaudit.algorithms.streaming.moments import Moments, as_moments, own_products
from dpaudit.algorithms.streaming.noisy_oja import batch_sensitivity, unit_of
from dpaudit.algorithms.streaming.oja import oblique_pair
from dpaudit.arrays import Array
from dpaudit.checked import Checked, Positive
from dpaudit.claims import ApproxDP
from dpaudit.neighbours import Pair, Relation
from dpaudit.validation import check_count, check_fraction, check_length, check_positive

__all__ = ["PrivateOja"]

_NUMERATOR, _OFFSET = 20.0, 300.0
_WORK = 2**22  # entries of the orders of the trials that run side by side
_STATE = 2**20  # and of their vectors
_ROWS = 500  # of the canonical pair


@dataclass(frozen=True, kw_only=True)
class PrivateOja(ReleasesVector, Batched[ArrayLike | Moments], Checked):
    """Oja's algorithm on shuffled rows with noise; the release is w_n, shape (d,).

    Parameters
    ----------
    claim : ApproxDP
        What is promised, under REPLACE_ONE.
    step_sizes : StepSizes
        Public.
    row_norm : float, optional
        R: longer rows are scaled down to it, each on its own. With it the data must be
        rows; without it they may be matrices, shape (n, d, d).
    clip : float, optional
        beta: longer products A_i w are scaled down to it. One of the two is needed.
    multiplier : float, optional
        alpha. By default the smallest that is proven for the claim and the number of
        rows.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = PrivateOja.calibrated(0.5, 1e-5)
    >>> round(mechanism.noise_scale(10_000), 3)
    1.536
    >>> rows = np.repeat([[0.6, 0.8], [0.8, -0.6]], [1800, 200], axis=0)
    >>> mechanism.release(rows, rng=np.random.default_rng(0)).shape
    (2,)
    """

    claim: ApproxDP
    step_sizes: StepSizes
    row_norm: float | None = 1.0
    clip: float | None = None
    multiplier: Positive | None = None

    relation: ClassVar[Relation] = Relation.REPLACE_ONE

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("delta", self.claim.parameters["delta"])
        unit_of(self.row_norm, self.clip)

    @hands_on("row_norm", "clip")
    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        n_components: int = 1,
        step_sizes: Steps | None = None,
        **fields: Any,
    ) -> "PrivateOja":
        """Return the mechanism whose noise is the least proven for the rows it gets.

        Parameters
        ----------
        epsilon, delta : float
            The promise.
        n_components : int
            1, and no other number.
        step_sizes : StepSizes, float or sequence of float, optional
            Default: c1/(c2 + t) with c1 = 20 over the largest ||A_i w||, c2 = 300.
        """
        check_one_component("private-oja", n_components, others="block-oja")
        unit = unit_of(fields.get("row_norm", 1.0), fields.get("clip"))
        return cls(
            claim=ApproxDP(epsilon, check_fraction("delta", delta)),
            step_sizes=as_step_sizes(
                step_sizes, HarmonicSteps(_NUMERATOR / unit, _OFFSET)
            ),
            **fields,
        )

    @classmethod
    def as_published(
        cls,
        epsilon: float,
        delta: float,
        *,
        clip: float,
        count: int,
        constant: float,
        step_sizes: Steps | None = None,
    ) -> "PrivateOja":
        """Return Algorithm 2 to the letter, for the constant C that it leaves open.

        Nothing is proven about it: Lemma 3.1 says 'large enough', of C.

        Parameters
        ----------
        epsilon, delta : float
            The paper's promise.
        clip : float
            beta.
        count : int
            n.
        constant : float
            C, in alpha = C log(n/delta)/(epsilon sqrt n).
        step_sizes
            As for `calibrated`.
        """
        made = cls.calibrated(
            epsilon, delta, row_norm=None, clip=clip, step_sizes=step_sizes
        )
        count = check_count("count", count)
        constant = check_positive("constant", constant)
        alpha = constant * log(count / delta) / (epsilon * sqrt(count))
        return replace(made, multiplier=alpha)

    def noise_scale(self, count: int) -> float:
        """Return the standard deviation of the noise for that many rows."""
        multiplier = self.multiplier
        if multiplier is None:
            epsilon, delta = (self.claim.parameters[k] for k in ("epsilon", "delta"))
            multiplier = amplified_multiplier(epsilon, delta, count)
        return multiplier * batch_sensitivity(1, row_norm=self.row_norm, clip=self.clip)

    def draw(self, data: ArrayLike | Moments, size: int, *, rng: Rng) -> Array:
        """Return `size` independent releases, shape (size, d).

        Parameters
        ----------
        data : array_like, shape (n, d) or (n, d, d), or Moments
        """
        moments = as_moments(data, row_norm=self.row_norm)
        return drawn_in_parts(
            size,
            (moments.dimension,),
            min(_WORK // moments.count, _STATE // moments.dimension),
            lambda number: self._run(moments, number, rng, None),
        )

    def transcript(
        self, data: ArrayLike | Moments, size: int, *, rng: Rng
    ) -> dict[str, Array]:
        """Return the start and every noisy product of `size` independent runs.

        Returns
        -------
        dict of ndarray
            ``start``: w_0, shape (size, d); ``steps``: Y_1, ..., Y_n, shape (size, n,
            d).
        """
        moments = as_moments(data, row_norm=self.row_norm)
        seen: list[Array] = []
        self._run(moments, check_count("size", size, minimum=0), rng, seen)
        return {"start": seen[0], "steps": np.stack(seen[1:], axis=1)}

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return a pair of 500 rows.

        All rows, or matrices x x^T, are at e_1; one is half-way between e_1 and e_2 on
        one side, and between e_1 and -e_2 on the other (R e_1 against a zero row for
        d = 1). Nobody knows whose turn is when, so no place is worse than another. The
        default d is 2, the least in which the direction moves. This is the canonical
        pair, and not proven to be the worst.
        """
        return oblique_pair(
            check_length(dimension, 2),
            count=_ROWS,
            unit=unit_of(self.row_norm, self.clip),
            matrices=self.row_norm is None,
        )

    def _run(
        self, moments: Moments, size: int, rng: Rng, seen: list[Array] | None
    ) -> Array:
        """Return w_n of each trial; keep the start and the products, if asked to."""
        n, d = moments.count, moments.dimension
        scale, rates = self.noise_scale(n), self.step_sizes.sizes(n)
        order = rng.permuted(np.tile(np.arange(n), (size, 1)), axis=1)
        vectors = rng.standard_normal((size, d))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        if seen is not None:
            seen.append(vectors)
        each = size * d * (1 if moments.holds_rows else d)
        width = max(1, _STATE // max(1, each))
        for first in range(0, n, width):
            turns = moments.read(order[:, first : first + width].T)
            noise = scale * rng.standard_normal((len(turns), size, d))
            for turn, noisy, eta in zip(turns, noise, rates[first:], strict=False):
                noisy += own_products(turn, vectors, self.clip)
                if seen is not None:
                    seen.append(noisy)
                vectors = vectors + eta * noisy
                vectors /= np.sqrt(np.einsum("td,td->t", vectors, vectors))[:, None]
        return vectors
