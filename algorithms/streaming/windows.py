r"""What vectors are truncated to, about the place where most of them are.

`Tail` is the box of Liu et al., NeurIPS 2022, Algorithm 5; `Ball` is ours. Both are
sized by Lambda, the largest eigenvalue of the covariance of the vectors, and by numbers
that are public. Neither has to be right: privacy does not depend on the size.

**In doubles.** A vector in units of the size becomes whole numbers of steps of 1/L,
L a power of 2, a function of that vector and the window alone. Sums of m of them are
exact if m L <= 2^53. In a box each of the numbers is in -L .. L, so that two vectors
differ by at most 2 L sqrt d in l2 norm; in a ball they are rounded towards 0, so the
l2 norm of a vector is at most L, and two differ by at most 2 L. (In the ball a vector
is multiplied by L min(1, (1 - s)/N) with its norm N as computed and s = (d + 8) 2^-50.
The sum of d squares, its root, and the products are each off by a factor of
1 +- 2^-53 an operation, together by less than 1 +- (d + 5) 2^-53: s outweighs that,
and the norm before the last rounding is at most L. Numbers are cut to +-2^500 before
they are squared, so nothing overflows.)

**How large.** A box takes sqrt d times its half-width to hide a vector, a ball its
radius. The vectors are about sqrt(tr H) <= sqrt(Lambda d) from their mean, so the
radius is a multiple of sqrt(Lambda) (sqrt d + 1): of the same order as the half-width,
without the sqrt d. Bins are centred on the multiples of their width: where a mean has
entries near 0, as that of a gradient has in most directions, they are in the middle of
a bin and not at an edge between two.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.validation import Checked, Fraction, Nonnegative, Positive

__all__ = ["Ball", "Tail", "Window"]

_HUGE = 2.0**500


class Window(Checked, ABC):
    """The bins that vectors are found by, and the set about them that they are cut to.

    Privacy does not depend on `width` and `size`.
    """

    offset: ClassVar[float]
    """Bin i is [i - offset, i + 1 - offset) widths, and the window's centre i widths.

    So 0 is for a window about the left edge, 1/2 for one about the middle.
    """
    separable: ClassVar[bool]
    """Whether a vector is truncated entry by entry."""

    @abstractmethod
    def width(self, eigenvalue: ArrayLike) -> Array:
        """Return tau, the width of a bin, for Lambda."""

    @abstractmethod
    def size(self, of: ArrayLike, m: int, d: int, zeta: float | None = None) -> Array:
        """Return W, the half-width or the radius, for Lambda, m and d.

        Where it matters, zeta is how likely a failure may be, by the paper's analysis.
        """

    @abstractmethod
    def diameter(self, dimension: int) -> float:
        """Return how far two truncated vectors can be apart in l2 norm, in units of W.

        It is the same of vectors in whole steps.
        """

    @abstractmethod
    def steps(self, inside: Array, most: float) -> Array:
        """Return truncated vectors in whole steps, of which L are W.

        They are given in units of W, from the centre, (..., d), and overwritten.
        """

    def labels(self, vectors: Array, widths: Array) -> Array:
        """Return the bins of numbers: whole numbers, or infinities."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            places = vectors / widths
            if self.offset:
                places += self.offset
            return np.asarray(np.floor(places, out=places))


@dataclass(frozen=True)
class Tail(Window):
    """A box about the left edge of a bin: as far as vectors are thought to lie.

    Parameters
    ----------
    scale : float
        K > 0.
    power : float
        a >= 0: 1/2 for Gaussian vectors, 1 for products of two Gaussian numbers.
    zeta : float
        In (0, 1): how likely a failure may be, by the paper's analysis.
    """

    scale: Positive = 0.1
    power: Nonnegative = 1.0
    zeta: Fraction = 0.01

    offset, separable = 0.0, True

    def width(self, eigenvalue: ArrayLike) -> Array:
        return np.sqrt(eigenvalue) * (2**0.25 * self.scale * log(25) ** self.power)

    def size(self, of: ArrayLike, m: int, d: int, zeta: float | None = None) -> Array:
        factor = log(m * d / (self.zeta if zeta is None else zeta)) ** self.power
        return np.sqrt(of) * (3 * self.scale * factor)

    def diameter(self, dimension: int) -> float:
        return 2 * sqrt(dimension)

    def steps(self, inside: Array, most: float) -> Array:
        np.clip(inside, -1.0, 1.0, out=inside)
        inside *= most
        return np.rint(inside, out=inside)


@dataclass(frozen=True)
class Ball(Window):
    """A ball about the middle of a bin.

    Parameters
    ----------
    scale : float
        > 0: the radius is scale sqrt(Lambda) (sqrt d + 1).
    bin_width : float
        > 0: tau/sqrt(Lambda).

    Examples
    --------
    >>> ball = Ball(scale=1.0, bin_width=2.0)
    >>> float(ball.size(4.0, 1000, 9)), float(ball.width(4.0))
    (8.0, 4.0)
    >>> ball.steps(np.array([[3.0, 4.0], [0.3, -0.4]]), 1000.0)
    array([[ 599.,  799.],
           [ 300., -400.]])
    """

    scale: Positive = 1.0
    bin_width: Positive = 1.0

    offset, separable = 0.5, False

    def width(self, eigenvalue: ArrayLike) -> Array:
        return np.sqrt(eigenvalue) * self.bin_width

    def size(self, of: ArrayLike, m: int, d: int, zeta: float | None = None) -> Array:
        return np.sqrt(of) * (self.scale * (sqrt(d) + 1))

    def diameter(self, dimension: int) -> float:
        return 2.0

    def steps(self, inside: Array, most: float) -> Array:
        np.clip(inside, -_HUGE, _HUGE, out=inside)
        norms = np.sqrt(np.einsum("...d,...d->...", inside, inside))
        short = 1 - (inside.shape[-1] + 8) * 2.0**-50
        inside *= (most * (short / np.maximum(norms, short)))[..., np.newaxis]
        return np.trunc(inside, out=inside)


DEFAULT_TAIL = Tail()
"""Tuned on gradients of Gaussian rows; see `dpaudit.algorithms.streaming.dp_pca`."""

DEFAULT_BALL = Ball()
"""Likewise."""
