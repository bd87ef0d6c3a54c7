r"""DP-SGD: logistic regression by stochastic gradient descent on clipped gradients.

Source: Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang, *Deep learning with
differential privacy*, CCS 2016, Algorithm 1; before them Song, Chaudhuri, Sarwate,
*Stochastic gradient descent with differentially private updates*, GlobalSIP 2013.

A row is (x, label); y = 1 for a label above 0 and else -1. With w_0 = 0 and a Poisson
batch (every row is in it with probability q, independently), for t = 0, ..., T - 1:

1. Y_t = sum of the g_i(w_t) over the batch + sigma C N(0, I), where g_i is the
   gradient y x/(1 + e^(y <w, x>)) of the log-likelihood, scaled down to length C if it
   is longer;
2. w_(t+1) = w_t + (eta/B) Y_t, where B is a public number.

The release is w_T. The transcript is all Y_t: every w_t follows from them.

**Privacy.** Given what came before, ||g_i(w_t)|| <= C, so a step is the Gaussian
mechanism on a Poisson sample, whatever w_t is, and T of them compose as
`dpaudit.algorithms.shared.subsampling` has it: the dominating pairs and their proofs
are there. A row and another label for it have opposite gradients of any length up to
C, so under REPLACE_ONE the terms are taken to be opposite. It matters that sums, and
not means over the batch that was drawn, are published, and that B, q, T, C and sigma
are public: `dpaudit.algorithms.training.planted` has what goes wrong otherwise.

**Numbers.** A row is kept as a unit vector and a length, which is cut at 1e300. The
products in <w, x> are of finite numbers then and may overflow, but to an infinity of
the right sign: no gradient is NaN, however large a row is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from dpaudit import ApproxDP, Claim, InputError, Pair, Relation, UnsupportedError
from dpaudit.algorithms.shared.bases import Batched, Rng, Values, slices
from dpaudit.algorithms.shared.batch_mixtures import MixturePair
from dpaudit.algorithms.shared.batches import Batches, PoissonBatches, RandomBatches
from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.arrays import Array
from dpaudit.neighbours import Neighbouring
from dpaudit.validation import (
    Checked,
    Count,
    Positive,
    check_count,
    check_length,
    check_matrix,
)

__all__ = ["DPSGD"]

DEFAULT_ROWS, DEFAULT_BATCH, DEFAULT_ITERATIONS = 1000, 100, 50
_LONGEST = 1e300
_WORK = 2**20  # numbers of the batches of the trials that run side by side


@dataclass(frozen=True, kw_only=True)
class DPSGD(Batched[ArrayLike], Checked):
    """Logistic regression by DP-SGD; releases are weights, shape (d,).

    Parameters
    ----------
    claim : Claim
        What is promised under `relation`.
    relation : Relation
        By default ADD_REMOVE.
    batches : Batches
        Which rows a step reads, and B.
    multiplier : float
        sigma > 0: the deviation of the noise on a sum, over C.
    clip_norm : float
        C > 0.
    iterations : int
        T >= 1.
    learning_rate : float
        eta > 0.
    """

    claim: Claim
    relation: Neighbouring = Relation.ADD_REMOVE
    batches: Batches
    multiplier: Positive
    clip_norm: Positive = 1.0
    iterations: Count = DEFAULT_ITERATIONS
    learning_rate: Positive = 1.0

    title: ClassVar[str] = "dp-sgd"
    """Who spends the whole budget."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.batches.check_relation(self.relation)

    @hands_on("iterations", "clip_norm", "learning_rate")
    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        relation: Relation | str = Relation.ADD_REMOVE,
        rows: int = DEFAULT_ROWS,
        batch_size: int = DEFAULT_BATCH,
        **fields: Any,
    ) -> "DPSGD":
        """Return the mechanism at the smallest noise of the accountant.

        The promise is for all steps together. There are about so many rows, a public
        number, of which B are in a batch on average.
        """
        relation = Relation.parse(relation)
        steps = fields.get("iterations", DEFAULT_ITERATIONS)
        batches = PoissonBatches.of_rows(rows, batch_size, epsilon, steps)
        multiplier = batches.noise_multiplier(
            epsilon, delta, steps=steps, relation=relation, replaced="opposite"
        )
        return cls(
            claim=ApproxDP(epsilon, delta),
            relation=relation,
            batches=batches,
            multiplier=multiplier,
            **fields,
        )

    @property
    def budget(self) -> BudgetTree:
        """Who spends what: all steps together, by the accountant."""
        note = f"{self.iterations} {self.batches}"
        return BudgetTree.of_claim(self.title, self.claim, note)

    def noise_scale(self, count: int) -> float:
        """Return sigma C, the deviation of the noise on a sum over `count` rows."""
        return self.multiplier * self.clip_norm

    def denominator(self, count: int) -> float:
        """Return B, by which a sum becomes a mean, for `count` rows."""
        return float(self.batches.size_for(count))

    def draw(self, data: ArrayLike, size: int, *, rng: Rng) -> Array:
        """Return `size` releases on rows (x, label), shape (n, d + 1)."""
        rows = self.rows(data)
        weights = np.zeros((check_count("size", size, minimum=0), rows.shape[1] - 1))
        for trials, _, noisy in self._steps(rows, size, rng):
            weights[trials] += noisy
        weights *= self.learning_rate / self.denominator(len(rows))
        return weights

    def transcript(self, data: ArrayLike, size: int, *, rng: Rng) -> Values:
        """Return the noisy sums of `size` runs, ``steps``, shape (size, T, d).

        From the same state of `rng`, `draw` returns the releases that follow.
        """
        rows = self.rows(data)
        size = check_count("size", size, minimum=0)
        steps = np.empty((size, self.iterations, rows.shape[1] - 1))
        for trials, step, noisy in self._steps(rows, size, rng):
            steps[trials, step] = noisy
        return {"steps": steps}

    def _steps(
        self, rows: Array, size: int, rng: Rng
    ) -> Iterator[tuple[slice, int, Array]]:
        """Yield noisy sums: of which runs, in which step, and the sums, (runs, d)."""
        count, d = len(rows), rows.shape[1] - 1
        rate = self.learning_rate / self.denominator(count)
        width = int(_WORK // ((1 + self.batches.size_for(count)) * (d + 1)))
        for some in slices(size, width):
            drawing = self.batches.drawing(rows, rng)
            weights = np.zeros((some.stop - some.start, d))
            for step in range(self.iterations):
                noisy = rng.standard_normal((len(weights), d))
                noisy *= self.noise_scale(count)
                noisy += self.summed(drawing(len(weights)), weights)
                yield some, step, noisy
                weights += rate * noisy

    def rows(self, data: ArrayLike) -> Array:
        """Return y x/||x|| and ||x|| of every row, shape (n, d + 1)."""
        checked = check_matrix("data", data, min_rows=self.batches.least_rows)
        if checked.shape[1] < 2:
            raise InputError(
                "data must have a column or more beside that of the labels, got shape "
                f"{checked.shape}"
            )
        self.batches.size_for(len(checked))
        x, labels = checked[:, :-1], checked[:, -1:]
        largest = np.abs(x).max(axis=1, keepdims=True)
        directions = x / np.where(largest > 0, largest, 1.0)
        lengths = np.linalg.norm(directions, axis=1, keepdims=True)
        directions /= np.where(lengths > 0, lengths, 1.0)
        directions *= np.where(labels > 0, 1.0, -1.0)
        with np.errstate(over="ignore"):
            return np.hstack([directions, np.minimum(lengths * largest, _LONGEST)])

    def summed(self, rows: Array, weights: Array) -> Array:
        """Return the sum of clipped gradients of each trial's rows at its weights.

        Rows are those of `rows`, (trials, B, d + 1) or (B, d + 1); zeros add nothing.
        """
        lengths = np.minimum(self.gradient_lengths(rows, weights), self.clip_norm)
        return np.asarray((lengths[:, np.newaxis] @ rows[..., :-1])[:, 0])

    def gradient_lengths(self, rows: Array, weights: Array) -> Array:
        """Return the lengths of gradients before they are clipped, (trials, B)."""
        with np.errstate(over="ignore"):
            margins = (rows[..., :-1] @ weights[:, :, np.newaxis])[..., 0]
            margins *= rows[..., -1]
        return np.asarray(expit(-margins) * rows[..., -1])

    def transcript_loss(
        self, transcript: Values, data: ArrayLike, other: ArrayLike
    ) -> Array:
        """Return log(density on `data`/density on `other`) of transcripts, (size,).

        It is known for random batches, and at most 4 distinct rows in both together.
        """
        ours, theirs = self.rows(data), self.rows(other)
        if not isinstance(self.batches, RandomBatches):
            raise UnsupportedError(f"no likelihood is known for {self.batches!r}")
        law, sigma = self.batches.numbers, self.noise_scale
        sides = MixturePair(ours, theirs, law=law, sigma=sigma)
        steps = transcript["steps"]
        rate = self.learning_rate / self.denominator(len(ours))
        total, weights = np.zeros(len(steps)), np.zeros(steps[:, 0].shape)
        for noisy in steps.swapaxes(0, 1):
            terms = self.gradient_lengths(sides.rows, weights)
            terms = np.minimum(terms, self.clip_norm)[..., np.newaxis]
            terms = terms * sides.rows[:, :-1]
            inner = (terms @ noisy[:, :, np.newaxis])[..., 0]
            total += sides.loss(inner, terms @ terms.swapaxes(1, 2))
            weights += rate * noisy
        return total

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return no rows, and one whose gradient is as long as C in every step.

        Or, under REPLACE_ONE, that row with either label. It is so long that its
        gradient is clipped wherever the weights are likely to be; they move by
        eta sigma C sqrt(T)/B or so. The default row has d = 1, and a label, which is
        counted in the dimension.
        """
        row = np.zeros((1, check_length(dimension, 2, minimum=2)))
        row[0, 0], row[0, -1] = 4 * self.clip_norm, 1.0
        if self.relation is Relation.ADD_REMOVE:
            return Pair(row[:0], row, self.relation)
        other = row.copy()
        other[0, -1] = -1.0
        return Pair(row, other, self.relation)
