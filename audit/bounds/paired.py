r"""Both tails of a score as one pair of counts: an event on D, another one on D'.

Let U be an event meant to be frequent on D, and L a disjoint one meant to be frequent
on D'. A claim bounds P(U) <= g(Q(U)) and Q(L) <= g(P(L)) by one concave curve g (for
(epsilon, delta) and for mu-GDP alike), so by Jensen's inequality

    a = (P(U) + Q(L)) / 2 <= g(b),   b = (Q(U) + P(L)) / 2.

For rare events this is twice the signal for sqrt(2) times the noise. The counts of U
and of L among the same releases are dependent, though, and each event has a nuisance
parameter of its own. Both difficulties go away when the numbers of releases are drawn
rather than fixed: with independent Poisson(s) numbers of releases on D and on D', the
four counts are independent Poisson variables (splitting), so

    K = #U on D + #L on D' ~ Poisson(2 s a),   M = #U on D' + #L on D ~ Poisson(2 s b)

are independent, with one nuisance parameter. The exact tests of this package apply with
these two laws in place of binomial ones.

Of n releases at hand a side, a Poisson(s) number with s = n - 5 sqrt(n) + 5 is used. If
it exceeds n, which happens with probability below 1e-6, nothing is claimed; that can
only lower the error. The price is the share 5 / sqrt(n) of the releases. That a Poisson
count varies more than a binomial one costs nothing: the negative correlation of K and
M, lost as well, had cost as much.
"""

import math
from typing import NamedTuple

import numpy as np

from dpaudit.arrays import Array
from dpaudit.audit.bounds.laws import Poisson

__all__ = ["PairedCounts", "paired_law"]


def paired_law(releases: int) -> Poisson | None:
    """Return the law of both counts; None if `releases` a side are too few."""
    size = releases - 5 * math.sqrt(releases) + 5
    return Poisson(2 * size) if size > 0 else None


class PairedCounts(NamedTuple):
    """K and M of the module docstring, and the numbers of releases drawn.

    ``enough`` is False where more releases were drawn than there are.
    """

    right: int
    wrong: int
    drawn: tuple[int, int]
    enough: bool

    @classmethod
    def draw(
        cls,
        data: Array,
        neighbour: Array,
        lower: float,
        upper: float,
        law: Poisson,
        rng: np.random.Generator,
    ) -> "PairedCounts":
        """Count {score >= upper} and {score < lower} among a Poisson number of scores.

        Parameters
        ----------
        data, neighbour : ndarray, shapes (n,) and (n',)
            In random order, or the order in which they were drawn.
        lower, upper : float
            lower <= upper, so that the events are disjoint.
        law : Poisson
            From `paired_law`.
        rng : Generator
        """
        first, second = (int(number) for number in rng.poisson(law.scale / 2, 2))
        on_data, on_neighbour = data[:first], neighbour[:second]
        right = np.count_nonzero(on_data >= upper)
        right += np.count_nonzero(on_neighbour < lower)
        wrong = np.count_nonzero(on_neighbour >= upper)
        wrong += np.count_nonzero(on_data < lower)
        enough = first <= len(data) and second <= len(neighbour)
        return cls(int(right), int(wrong), (first, second), enough)
