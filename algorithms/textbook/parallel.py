r"""Several mechanisms on the same data, all releases published.

Source: Bichsel, Steffen, Bogunovic, Vechev, *DP-Sniper*, IEEE S&P 2021.

**LaplaceParallel**: 20 Laplace mechanisms at epsilon/20 each. The release is one
answer, 20 times, with independent noise; by the argument at the head of
`dpaudit.algorithms.textbook.sums` its true epsilon is the l1 distance 20 over the
scale 20/epsilon: the claim is exact. It is attained on {all values <= 0} for the sums 0
and 1.

**SVT34Parallel**: SVT3 and SVT4 with cutoff 2, each at the epsilon that is claimed for
both. The releases are independent, so the losses of their events add up; SVT3 alone is
private at no epsilon (see `dpaudit.algorithms.textbook.sparse_vector`: its loss on
streams of length k reaches k epsilon/4). At k = 10 more is lost on another pair, the
worst case of SVT4: there SVT4 alone comes close to (1 + 12)/4 epsilon.
"""

from dataclasses import KW_ONLY, dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.algorithms.textbook.counts import CountingMechanism
from dpaudit.algorithms.textbook.stream_codes import check_releases
from dpaudit.algorithms.textbook.sums import BoundedSum, LaplaceNoise
from dpaudit.algorithms.textbook.svt import SVT3, SVT4
from dpaudit.arrays import Array
from dpaudit.checked import Count
from dpaudit.neighbours import Pair

__all__ = ["LaplaceParallel", "SVT34Parallel"]


@dataclass(frozen=True)
class LaplaceParallel(BoundedSum, LaplaceNoise):
    """Copies of the Laplace mechanism that share epsilon: exactly epsilon-DP.

    Releases have shape (copies,). Rows are scalars, shape (n,) or (n, 1).

    Parameters
    ----------
    epsilon : float
        The claim, > 0, for all copies together.
    sensitivity : float
        Rows are clipped to [0, sensitivity].
    copies : int
        >= 1.
    """

    _: KW_ONLY
    copies: Count = 20

    @property
    def scale(self) -> float:
        """Copies sensitivity/epsilon."""
        return self.copies * self.sensitivity / self.epsilon

    @property
    def true_epsilon(self) -> float:
        """The claim is exact."""
        return self.epsilon

    def answers(self, data: ArrayLike) -> Array:
        """Return the sum of the clipped rows, repeated, shape (copies,)."""
        return np.full(self.copies, super().answers(data))


@dataclass(frozen=True)
class SVT34Parallel(CountingMechanism):
    """SVT3 and SVT4 side by side: not private.

    Releases have shape (2 k,), k the length of a row: the k codes of `SVT3`, then the k
    codes of `SVT4`.

    Parameters
    ----------
    epsilon : float
        The claim, > 0.
    threshold : float
        The public T of both, >= 0.
    cutoff : int
        Answers above that end each stream, >= 1.
    """

    _: KW_ONLY
    threshold: float = 1.0
    cutoff: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "threshold", self.parts[0].threshold)

    @property
    def parts(self) -> tuple[SVT3, SVT4]:
        """The two mechanisms."""
        return (
            SVT3(self.epsilon, threshold=self.threshold, cutoff=self.cutoff),
            SVT4(self.epsilon, threshold=self.threshold, cutoff=self.cutoff),
        )

    @property
    def true_epsilon(self) -> float:
        """Infinite, because that of SVT3 is."""
        return inf

    def _sample(self, answers: Array, size: int, *, rng: np.random.Generator) -> Array:
        return np.hstack([p._sample(answers, size, rng=rng) for p in self.parts])

    def privacy_loss(self, releases: Array, data: ArrayLike, other: ArrayLike) -> Array:
        """Return the exact loss, shape (size,): what the parts lose, together.

        NaN where a release is impossible.

        Raises
        ------
        InputError
            If releases do not have two columns for each column of either dataset.
        """
        length = len(self.answers(data))
        halves = np.split(check_releases(releases, 2 * length), 2, axis=1)
        first, second = (
            part.privacy_loss(half, data, other)
            for part, half in zip(self.parts, halves, strict=True)
        )
        return first + second

    def worst_case(self, dimension: int | None = None) -> Pair:
        """Return the worst case of SVT4.

        Event: both streams below throughout, then `cutoff` times above; SVT3 with
        values >= 1.
        """
        return self.parts[1].worst_case(dimension)

    def canonical_pairs(self) -> tuple[Pair, ...]:
        """Return the worst case, that of SVT3, then the other pairs of SVT4."""
        first, second = self.parts
        return self.worst_case(), first.worst_case(), *second.canonical_pairs()[1:]
