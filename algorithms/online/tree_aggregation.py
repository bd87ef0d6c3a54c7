r"""TreeAggregation: every prefix of a stream of x x^T, private at the price of log m.

Source: Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss: optimal bounds for
privacy-preserving principal component analysis*, STOC 2014, section 2.3.2.

1. Node t of the tree of `dpaudit.algorithms.online.noise_memory` is noised once, when
   row t has come, N(0, s^2) per coordinate, and never again.
2. After row t, output the sum of the noisy nodes that make up prefix t.

**Privacy.** A row is in h = floor(log2 m) + 1 nodes at most, and row 1 is in so many
(proof there). If it is replaced, each of these moves by at most sqrt 2 R^2 and the rest
stay, so the vector of all nodes moves by sqrt(2 h) R^2 at most, which is attained when
e_1 replaces e_2 in row 1: the sequence is mu-GDP with mu = sqrt(2 h) R^2/s, and with no
smaller one. `calibrated` takes the least s for (epsilon, delta).

**As published.** Every node has N(0, 50 log^3(m/delta)/epsilon^2) in each entry of its
triangle, and the sequence is claimed to be (epsilon, delta)-DP by 'sequential
composition'.

- For rows, W_t = x_t x_t^T, that is true with far too much noise: at (1, 1e-5) and
  m = 8 it is 0.0080-GDP where 0.268-GDP would do. (It fails from epsilon = 30,323 on
  there, since the noise falls like 1/epsilon where 1/sqrt epsilon is needed; and for
  m = 1 and a delta of 0.9, where log(m/delta) is nearly 0.)
- The section promises it for all symmetric W_t with ||W_t||_2 <= 1, in spectral norm.
  There it is **false for large d**: I in place of -I moves a triangle by 2 sqrt d, so
  mu = 2 epsilon sqrt(d h/(50 log^3(m/delta))), which passes 0.268 at (1, 1e-5), m = 8,
  for d >= 564. The constants know nothing of d.
- A changed row is said to affect log m entries of the tree; it is log2(m) + 1 of the
  complete tree, and m is assumed to be a power of two. Here it is any m.
- Section 4.2 has another variance, log^3(m/delta) Delta^2 with Delta^2 = 2 log(1.25/
  delta)/epsilon^2, for *each prefix*. What the tree gives is as many times the variance
  of a node as t has ones; the two agree in their order of growth only. Here the tree
  decides.

**Memory.** One matrix per level, and A_t: `dpaudit.algorithms.online.streams`.
"""

from dataclasses import dataclass
from math import sqrt

from dpaudit.algorithms.online.noise import PublishedNodeNoise
from dpaudit.algorithms.online.noise_memory import (
    NoiseMemory,
    StackMemory,
    accumulate,
    differences,
    tree_height,
)
from dpaudit.algorithms.online.streams import PublishedSums
from dpaudit.arrays import Array
from dpaudit.validation import check_count

__all__ = ["TreeAggregation"]


@dataclass(frozen=True, kw_only=True)
class TreeAggregation(PublishedSums):
    """Noisy prefixes from noisy nodes; releases have shape (n, d, d).

    `as_published` is section 2.3.2 to the letter.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = TreeAggregation.calibrated(1.0, 1e-5, length=1000)
    >>> round(mechanism.deviation() / 2**0.5, 3)  # above the diagonal of a node
    11.797
    >>> rows = np.eye(3)[[0, 0, 1, 2, 0]]
    >>> mechanism.release(rows, rng=np.random.default_rng(0)).shape
    (5, 3, 3)
    """

    published = PublishedNodeNoise

    def uses(self, length: int) -> int:
        """Return floor(log2 m) + 1."""
        return tree_height(length)

    def memory(self, width: int) -> NoiseMemory:
        return StackMemory(tree_height(check_count("length", self.length)), width)

    def mixed(self, sums: Array) -> Array:
        return accumulate(sums)

    def unmixed(self, prefixes: Array) -> Array:
        return differences(prefixes)

    def mu(self, n_rows: int | None = None) -> float:
        """Return the least mu for which the sequence is mu-GDP, over all pairs.

        Parameters
        ----------
        n_rows : int, optional
            Of the data, where no length is declared.
        """
        length = n_rows if self.length is None else self.length
        deviation = self.deviation(n_rows)
        height = tree_height(length) if length is not None else 0
        return sqrt(2 * height) * self.row_norm**2 / deviation
