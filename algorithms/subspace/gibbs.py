r"""GibbsExponential: the exponential mechanism for k components by a Markov chain.

Source of the mechanism: Chaudhuri, Sarwate, Sinha, JMLR 14, 2013, algorithm PPCA, which
its authors ran with the Gibbs sampler of Hoff, *Simulation of the matrix
Bingham-von Mises-Fisher distribution*, JCGS 18, 2009. What is wanted is the law of
`dpaudit.algorithms.subspace.exponential`, k-frames V in R^d with density
proportional to exp(tr V^T S V). Here, in the basis of eigenvectors of S (eigenvalues
s_i), and where `dpaudit.algorithms.subspace.exponential` does not draw exactly
(k = 1, d - 1 and d; if k > d - k it is the complement that is drawn):

1. V is uniform among all k-frames.
2. A sweep: number the coordinates at random, and go through all d (d - 1)/2 pairs of
   them in the order of a round-robin tournament, whose d - 1 or d rounds consist of
   disjoint pairs.
3. For each pair turn the rows V_i, V_j of V in their plane by an angle theta drawn from
   its conditional law: 2 theta is von Mises about the angle of (x, y), with
   concentration |(x, y)|, where x = (s_i - s_j)/2 (|V_i|^2 - |V_j|^2) and
   y = (s_i - s_j) <V_i, V_j>.
4. Output V after `sweeps` sweeps.

Proof that the law wanted is stationary. Turning the rows by theta makes tr V^T S V =
sum s_i |V_i|^2 what it was without the two rows, plus (s_i + s_j)/2 (|V_i|^2 + |V_j|^2)
+ x cos 2 theta + y sin 2 theta. The uniform law does not change under rotations, so
given the orbit of V under the rotations of a plane, which theta is uniform without S,
its density with S is proportional to exp(x cos 2 theta + y sin 2 theta). Step 3 draws
from a conditional law given the orbit, and so leaves the law as it is. The numbering of
step 2 is independent of V.

Convergence. The angles have densities that are bounded away from 0, products of
rotations in coordinate planes reach every rotation, and d(d - 1)/2 sweeps contain every
order of planes: the chain is uniformly ergodic, and from the uniform start approaches
its stationary law at a geometric rate. How fast is not known; 4 to 20 sweeps were
enough where it was measured for k up to 15, and 30, the default, for more if gaps are
at most 1e6, but not beyond (docs/choosing.md#exact-draws-of-several-components).

Deviation from Hoff, who draws one column of V at a time given the others. With
eigenvalues that decay, his chain can need hundreds of sweeps: a column that is a
mixture of a sharp and of a vague direction can move by no more than the sharp one lets
it. In the planes of eigenvectors the directions are apart, no draw is ever rejected,
and a sweep costs d^2 k operations, where one over columns takes k eigendecompositions.

Privacy. The stationary law is pure epsilon-DP, and that is the claim. **A finite chain
is not proven to be**: if its law is within total variation eta of the stationary one on
both neighbours, it is (epsilon, (1 + e^epsilon) eta)-DP, and eta is not known. The
start is uniform, so that it says nothing about the data, and the number of sweeps is
public. The planes do depend on the data; this is no matter for the stationary law, but
means that composing the sweeps proves nothing, however few they are. The exact
alternative is `dpaudit.algorithms.subspace.exact_exponential`, for small k. NumPy draws
von Mises angles exactly up to a concentration of 1e6, and as normal ones beyond, which
by then is a difference in total variation of about 1e-7.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.subspace.base import uniform_frames
from dpaudit.algorithms.subspace.exponential import MatrixBinghamMechanism
from dpaudit.arrays import Array
from dpaudit.validation import Count

__all__ = ["GibbsExponential"]


class PlaneRotations:
    """Chains from frames, (size, d, k), whose stationary law is matrix Bingham.

    The eigenvalues of S have any order; its eigenvectors are the basis vectors.
    """

    def __init__(self, values: ArrayLike, frames: Array) -> None:
        self._values = np.asarray(values, dtype=np.float64)
        size, d, _ = frames.shape
        # Rows first: those of a round are then contiguous.
        self._rows = np.moveaxis(frames, 1, 0).copy()
        self._numbers = np.repeat(np.arange(d)[:, np.newaxis], size, axis=1)
        self._order = self._numbers
        self._rounds = tuple(_tournament(d))

    @property
    def frames(self) -> Array:
        """Where the chains are, shape (size, d, k)."""
        ordered = np.empty_like(self._rows)
        np.put_along_axis(ordered, self._order[..., np.newaxis], self._rows, axis=0)
        return np.moveaxis(ordered, 0, 1)

    def sweep(self, count: int, *, rng: Rng) -> None:
        """Move the chains by `count` sweeps, each independently of the others."""
        for _ in range(count):
            numbering = rng.permuted(self._numbers, axis=0)
            self._order = np.take_along_axis(self._order, numbering, axis=0)
            of_rows = numbering[..., np.newaxis]
            self._rows = np.take_along_axis(self._rows, of_rows, axis=0)
            values = self._values[self._order]
            for first, second in self._rounds:
                gaps = values[first] - values[second]
                one, two = self._rows[first], self._rows[second]
                x = gaps / 2 * ((one - two) * (one + two)).sum(axis=-1)
                y = gaps * (one * two).sum(axis=-1)
                angle = (np.arctan2(y, x) + rng.vonmises(0.0, np.hypot(x, y))) / 2
                cosine, sine = np.cos(angle)[..., None], np.sin(angle)[..., None]
                self._rows[first] = cosine * one + sine * two
                self._rows[second] = cosine * two - sine * one


@dataclass(frozen=True, kw_only=True)
class GibbsExponential(MatrixBinghamMechanism):
    """A basis V from a chain towards the density exp(coefficient tr V^T A V).

    The claim is that of the stationary law; a finite chain comes near it.

    Parameters
    ----------
    sweeps : int
        Public number of sweeps, at least 1. The default is too few for 20 components
        with gaps of 1e9, say: see the head of this module. Not used where draws are
        exact: n_components = 1, d - 1 or d.
    """

    sweeps: Count = 30

    def draw_frames(self, values: Array, k: int, size: int, *, rng: Rng) -> Array:
        chains = PlaneRotations(values, uniform_frames(size, len(values), k, rng=rng))
        chains.sweep(self.sweeps, rng=rng)
        return chains.frames


def _tournament(count: int) -> Iterator[tuple[NDArray[np.int_], NDArray[np.int_]]]:
    """Yield rounds of disjoint pairs, which are all pairs of `count` numbers."""
    # The circle method: one number stays, the others move on; a dummy makes them even.
    seats = np.arange(count + count % 2)
    for _ in range(len(seats) - 1):
        first, second = seats[: len(seats) // 2], seats[: len(seats) // 2 - 1 : -1]
        real = (first < count) & (second < count)
        yield first[real], second[real]
        seats[1:] = np.roll(seats[1:], 1)
