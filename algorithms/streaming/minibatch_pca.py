r"""What the forms of DP-PCA share: batches of two halves, private gradients, Oja steps.

With n matrices A_i (x_i x_i^T for rows x_i) in T batches of B = floor(n/T), one after
the other, and w_0 uniformly random on the unit sphere:

1. Lambda_t: `TopEigenvalue` of the gradients A_i w_(t-1) of the first floor(B/2) items
   of batch t.
2. g_t: `MeanEstimation` of those of the other half, with f Lambda_t for its Lambda.
   It is bottom if Lambda_t is bottom or 0.
3. w_t = (w_(t-1) + eta_t g_t)/||...||; bottom if a g_t was.

The last n - T B < T items are not looked at. T = floor(log(n)^2/c), at least 1, by the
paper's rule B = c n/log(n)^2; or batches have a given size. n is public: the relation
is REPLACE_ONE, and which half of which batch an item is in follows from its place.
(Under ADD_REMOVE one row more or less would move all the rows behind it.)

Both estimates may fail with probability zeta/(2 T) by the paper's analysis, which sets
the number of groups and the width of the windows.

A component has the sign by which its largest entry, in absolute value, is positive.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import floor, log
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.shared.step_sizes import HarmonicSteps, StepSizes
from dpaudit.algorithms.streaming.mean_estimation import MeanEstimation
from dpaudit.algorithms.streaming.moments import Moments, as_moments
from dpaudit.algorithms.streaming.private_steps import PrivateSteps, RowBatch
from dpaudit.algorithms.streaming.top_eigenvalue import TopEigenvalue
from dpaudit.arrays import Array
from dpaudit.checked import Checked, Positive
from dpaudit.claims import Claim
from dpaudit.errors import InputError
from dpaudit.neighbours import Relation
from dpaudit.validation import check_count, check_positive

__all__ = ["MinibatchPCA", "default_steps"]

_WORK = 2**19  # numbers of half a batch's gradients, over the trials side by side
_LEAST = 4  # a difference in the one half, and a mean in the other


def default_steps(row_norm: float | None) -> HarmonicSteps:
    """Return c1/(1 + t), c1 = 60/row_norm^2, or 20 if there is no norm.

    The 20 is for rows whose largest eigenvalue is about 1, the 60 for rows in a ball
    where it is a sixth of the squared radius.
    """
    if row_norm is None:
        return HarmonicSteps(20.0, 1.0)
    return HarmonicSteps(60 / check_positive("row_norm", row_norm) ** 2, 1.0)


@dataclass(frozen=True, kw_only=True)
class MinibatchPCA(Checked, ABC):
    """Principal components by Oja steps with private means of gradients.

    Parameters
    ----------
    scale_finder : TopEigenvalue
        Step 1, at what it may cost for one component.
    mean : MeanEstimation
        Step 2, at what it may cost for all components.
    claim : Claim
        What is promised under REPLACE_ONE.
    step_sizes : StepSizes
        Public, in the inverse unit of A_i.
    batch_constant : float
        c > 0; more of it makes fewer and larger batches.
    batch_size : int, optional
        B >= 4. Default: by c.
    row_norm : float, optional
        Longer rows are scaled down to it, each on its own. Privacy does not need it.
    """

    scale_finder: TopEigenvalue
    mean: MeanEstimation
    claim: Claim
    step_sizes: StepSizes
    batch_constant: Positive = 25.0
    batch_size: int | None = None
    row_norm: Positive | None = None

    scale_factor: ClassVar[float] = 1.0
    """f: what Lambda_t is multiplied by in step 2."""
    maker: ClassVar[type[PrivateSteps]] = PrivateSteps
    """Which items the estimates of a step read."""
    relation: ClassVar[Relation] = Relation.REPLACE_ONE

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size, minimum=_LEAST)

    @property
    @abstractmethod
    def rank(self) -> int:
        """k, the number of components."""

    @property
    @abstractmethod
    def budget(self) -> BudgetTree:
        """Who spends what."""

    @abstractmethod
    def components(self, releases: Array, n_components: int) -> Array:
        """Return releases as bases, shape (..., d, k), NaN for bottom.

        Raises
        ------
        InputError
            For any other number of components than the mechanism's.
        """

    def batches(self, count: int) -> tuple[int, int]:
        """Return (B, T) for n items.

        Raises
        ------
        InputError
            If they are fewer than 4, or fewer than a batch.
        """
        least = _LEAST if self.batch_size is None else self.batch_size
        if count < least:
            raise InputError(f"data must have at least {least} rows, got {count}")
        if self.batch_size is not None:
            return self.batch_size, count // self.batch_size
        steps = max(1, floor(log(count) ** 2 / self.batch_constant))
        steps = min(steps, count // _LEAST)
        return count // steps, steps

    def transcript(
        self, data: ArrayLike | Moments, size: int, *, rng: np.random.Generator
    ) -> dict[str, Array]:
        """Return every estimate on the way of `size` independent runs.

        Returns
        -------
        dict of ndarray
            ``starts``: w_0, shape (size, k, d); ``scales``: Lambda_t, shape
            (size, k, T); ``means``: g_t, shape (size, k, T, d). Bottom is NaN. (The
            bins on the way to g_t, which the proof gives away too, are left out.)
        """
        runs = self._draw(data, size, rng)
        del runs["components"]
        return runs

    def _draw(
        self, data: ArrayLike | Moments, size: int, rng: np.random.Generator
    ) -> dict[str, Array]:
        """Return transcripts, and the components, shape (size, d, k)."""
        moments = as_moments(data, row_norm=self.row_norm)
        d = moments.dimension
        if d < self.rank:
            raise InputError(
                f"n_components must be at most the length of a row, {d}, got "
                f"{self.rank}"
            )
        batch_size, steps = self.batches(moments.count)
        batches = [
            RowBatch(moments, step * batch_size, batch_size) for step in range(steps)
        ]
        size = check_count("size", size, minimum=0)
        runs = {
            "components": np.empty((size, d, self.rank)),
            "starts": np.empty((size, self.rank, d)),
            "scales": np.empty((size, self.rank, steps)),
            "means": np.empty((size, self.rank, steps, d)),
        }
        width = max(1, _WORK // (batch_size * d))
        for first in range(0, size, width):
            part = {key: value[first : first + width] for key, value in runs.items()}
            self._run(batches, part, rng)
        return runs

    def _run(
        self, batches: list[RowBatch], runs: dict[str, Array], rng: np.random.Generator
    ) -> None:
        """Fill in the runs of some trials."""
        found = runs["components"]
        rates = self.step_sizes.sizes(len(batches))
        for j in range(self.rank):
            deflated = found[:, :, :j] if j else None
            start = self._start(runs["starts"][:, j].shape, deflated, rng)
            component = self._steps(len(batches)).component(
                batches, rates, start, deflated=deflated, rng=rng
            )
            runs["starts"][:, j] = start
            runs["scales"][:, j] = component.scales
            runs["means"][:, j] = component.means
            found[:, :, j] = component.vectors
        # Bottom in one component is bottom in all.
        found[np.isnan(found).any(axis=(1, 2))] = np.nan

    def _steps(self, steps: int) -> PrivateSteps:
        zeta = self.scale_finder.zeta / (2 * steps)
        return self.maker(self.scale_finder, self.mean, self.scale_factor, zeta)

    def _start(
        self,
        shape: tuple[int, ...],
        deflated: Array | None,
        rng: np.random.Generator,
    ) -> Array:
        """Return uniformly random unit vectors, orthogonal to what was found."""
        start = rng.standard_normal(shape)
        if deflated is not None:
            start -= (start[:, np.newaxis] @ deflated @ deflated.swapaxes(1, 2))[:, 0]
        start /= np.linalg.norm(start, axis=1, keepdims=True)
        return np.nan_to_num(start)
