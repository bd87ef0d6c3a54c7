"""Private descent: how much noise the steps need, and what the papers print.

The proofs are in `dpaudit.algorithms.robust.private_mechanisms`. Both objectives are
treated alike: what a calibration needs of them is their `sensitivity`, how the terms of
two rows may lie (`replaced`) and by how much a norm shrinks in their coordinates
(`norm_ratio`).
"""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.robust.descent import (
    DEFAULT_ITERATIONS,
    NoisyDescent,
    published_values,
)
from dpaudit.algorithms.robust.parts import FixedNoise, PublishedNoise, Start, SumNoise
from dpaudit.algorithms.shared.bases import Values
from dpaudit.algorithms.shared.batch_mixtures import MixturePair
from dpaudit.algorithms.shared.batches import (
    AllRows,
    PoissonBatches,
    RandomBatches,
    WithReplacement,
)
from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.shared.constructors import hands_on
from dpaudit.arrays import Array
from dpaudit.claims import ApproxDP, Claim, GaussianDP, PureDP
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.gaussian import gaussian_epsilon, gaussian_mu
from dpaudit.neighbours import Relation
from dpaudit.validation import check_count, check_fraction, check_positive

__all__ = ["FullBatchDescent", "RandomBatchDescent"]


@dataclass(frozen=True, kw_only=True)
class PrivateDescent(NoisyDescent):
    """Private descent, and what an objective has of its own in its constructors."""

    claim: Claim

    title: ClassVar[str] = "descent"
    """Who spends the whole budget."""

    @classmethod
    def paid(
        cls, epsilon: float, delta: float, relation: Relation, **fields: Any
    ) -> dict[str, Any]:
        """Return the fields of a calibrated mechanism, with what it starts from."""
        return fields

    @classmethod
    def printed(cls, epsilon: float, **fields: Any) -> dict[str, Any]:
        """Return the fields, with those that a paper prints otherwise."""
        return fields


@dataclass(frozen=True, kw_only=True)
class FullBatchDescent(PrivateDescent):
    """Private descent on all rows, whose transcript has Gaussian steps."""

    batches: AllRows = field(default_factory=AllRows)
    noise: FixedNoise

    @hands_on("iterations", "step_sizes", also="paid", n_components=1)
    @classmethod
    def calibrated(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return the mechanism at the smallest proven sigma, under REPLACE_ONE.

        The promise is for start and steps together; refused is a start that leaves
        nothing of it.
        """
        claim = ApproxDP(epsilon, delta)
        fields = cls.paid(epsilon, delta, Relation.REPLACE_ONE, **fields)
        made = cls(claim=claim, noise=FixedNoise(1.0), **fields)
        rest = remaining_mu(epsilon, delta, made.start)
        sigma = sqrt(made.iterations) * made.objective.sensitivity / rest
        return replace(made, noise=FixedNoise(sigma))

    @hands_on("iterations", "step_sizes", also="printed", n_components=1)
    @classmethod
    def as_published(cls, epsilon: float, delta: float, **fields: Any) -> Self:
        """Return what the paper has, to the letter, with its claim and c = 1."""
        epsilon = check_positive("epsilon", epsilon)
        delta = check_fraction("delta", delta)
        steps = check_count("iterations", fields.get("iterations", DEFAULT_ITERATIONS))
        noise = FixedNoise(cls.printed_sigma(epsilon, delta, steps))
        fields = cls.printed(epsilon, **fields)
        return cls(claim=ApproxDP(epsilon, delta), noise=noise, **fields)

    @staticmethod
    @abstractmethod
    def printed_sigma(epsilon: float, delta: float, iterations: int) -> float:
        """Return the deviation of the noise on a sum, as it is printed."""

    @property
    def budget(self) -> BudgetTree:
        """Who spends what, as the claim has it."""
        mu = sqrt(self.iterations) * self.objective.sensitivity / self.noise.sigma
        delta = self.claim.parameters["delta"]
        epsilon, note = gaussian_epsilon(delta, mu), f"{mu:.4g}-GDP"
        steps = BudgetTree("steps", epsilon, delta, note=note)
        return _budget(self.title, self.claim, self.start, note, steps)

    def step_means(self, transcript: Values, data: ArrayLike) -> Values:
        """Return the sums without their noise, and the start's means if Gaussian."""
        rows = self.rows(data)
        means = np.empty(transcript["steps"].shape)
        path = self.replayed(transcript, len(rows), rows.shape[1])
        for place, points in enumerate(path):
            sums = self.objective.term_sum(rows, points)
            means[:, place] = self.objective.flattened(sums)
        start = self.start.means(published_values(transcript), rows)
        return {**start, "steps": means}

    @property
    def step_scales(self) -> dict[str, float]:
        return {**self.start.scales, "steps": self.noise.sigma}


@dataclass(frozen=True, kw_only=True)
class RandomBatchDescent(PrivateDescent):
    """Private descent on secret random batches, with a known likelihood."""

    batches: RandomBatches
    noise: SumNoise

    @hands_on("iterations", "step_sizes", also="paid", n_components=1)
    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        *,
        relation: Relation | str = Relation.REPLACE_ONE,
        rows: int = 2000,
        batch_size: int | None = None,
        **fields: Any,
    ) -> Self:
        """Return the mechanism at the smallest noise of the accountant.

        The promise is for start and steps together. There are about so many rows, a
        public number, of which B are in a batch on average, by default
        `dpaudit.algorithms.shared.batches.published_batch_size`.
        """
        relation = Relation.parse(relation)
        steps = fields.get("iterations", DEFAULT_ITERATIONS)
        batches = PoissonBatches.of_rows(rows, batch_size, epsilon, steps)
        fields = cls.paid(epsilon, delta, relation, **fields)
        made = cls(
            claim=ApproxDP(epsilon, delta),
            relation=relation,
            batches=batches,
            noise=FixedNoise(1.0),
            **fields,
        )
        multiplier = batches.noise_multiplier(
            epsilon,
            delta,
            steps=steps,
            relation=relation,
            replaced=made.objective.replaced,
            start=made.start.claim,
        )
        return replace(made, noise=FixedNoise(multiplier / made.objective.norm_ratio))

    @hands_on("iterations", "step_sizes", also="printed", n_components=1)
    @classmethod
    def as_published(
        cls,
        epsilon: float,
        delta: float,
        *,
        batch_size: int | None = None,
        **fields: Any,
    ) -> Self:
        """Return what the paper has, with its claim and c_2 = 1; REPLACE_ONE.

        B is by default that of the paper's rule, for the rows there are.
        """
        steps = fields.get("iterations", DEFAULT_ITERATIONS)
        fields = cls.printed(epsilon, **fields)
        return cls(
            noise=PublishedNoise.of_claim(epsilon, delta, steps),
            batches=WithReplacement.as_published(epsilon, steps, batch_size),
            claim=ApproxDP(epsilon, delta),
            **fields,
        )

    @property
    def budget(self) -> BudgetTree:
        """Who spends what; nothing is proven of other batches than Poisson samples."""
        if not isinstance(self.batches, PoissonBatches):
            raise UnsupportedError(f"nothing is proven of {self.batches!r}")
        note = f"{self.iterations} {self.batches}"
        return _budget(self.title, self.claim, self.start, note)

    def transcript_loss(
        self, transcript: Values, data: ArrayLike, other: ArrayLike
    ) -> Array:
        """Return log(density on `data`/density on `other`) of transcripts, (size,).

        It is known for at most 4 distinct rows in the two datasets together, if the
        loss of the start is.
        """
        ours, theirs = self.rows(data), self.rows(other)
        law, sigma = self.batches.numbers, self.noise_scale
        sides = MixturePair(ours, theirs, law=law, sigma=sigma)
        steps, values = transcript["steps"], published_values(transcript)
        total = np.zeros(len(steps))
        if values:
            total += self.start.loss(values, ours, theirs)
        path = self.replayed(transcript, len(ours), ours.shape[1])
        for place, points in enumerate(path):
            noisy = steps[:, place]
            total += sides.loss(*self.objective.products(sides.rows, points, noisy))
        return total


def remaining_mu(epsilon: float, delta: float, start: Start) -> float:
    """Return the mu that a start leaves for Gaussian steps, or raise if it is none."""
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


def _budget(
    title: str, claim: Claim, start: Start, note: str, *steps: BudgetTree
) -> BudgetTree:
    """Return what a start and the steps after it cost, the steps as parts or a note."""
    spent = start.claim
    if spent is None:
        return BudgetTree.of_claim("steps", claim, note)
    epsilon, delta = (claim.parameters[key] for key in ("epsilon", "delta"))
    first = BudgetTree("start", spent.epsilon_at(delta), delta, note=f"{spent}")
    note = "" if steps else note
    return BudgetTree.accounted(title, epsilon, delta, first, *steps, note=note)
