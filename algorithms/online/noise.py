r"""How much noise: as two papers print it, and as a proof needs it.

A deviation here is that of one coordinate of `dpaudit.algorithms.online.triangles`, on
one noisy sum of which at most `uses` show any one row (where they show it with weights,
the squares of these add up to so much at most).

`CalibratedNoise`, ratio sqrt 2: one sum moves by at most sqrt 2 R^2 if a row of norm at
most R is replaced (REPLACE_ONE), so `uses` of them together, in one long vector, move
by sqrt(2 uses) R^2; with deviation sqrt(2 uses) R^2/mu they are mu-GDP. Off the
diagonal a noise matrix then has the deviation sqrt(uses) R^2/mu.

`PublishedNodeNoise`, ratio 1: section 2.3.2 of Dwork et al., N(0, 50 log^3(m/delta)/
epsilon^2) for each entry of the triangle of each node. log^3 is the cube of the natural
logarithm.

`PublishedStepNoise`, ratio 1: Algorithm 1 of Dwork et al., which Algorithm 3 uses anew
in each step, N(0, 2 log(1.25/delta)/epsilon^2).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar

from dpaudit.checked import Checked, Fraction, Positive
from dpaudit.gaussian import classical_mu

__all__ = [
    "CalibratedNoise",
    "PublishedNodeNoise",
    "PublishedNoise",
    "PublishedStepNoise",
]


@dataclass(frozen=True)
class CalibratedNoise(Checked):
    """The least GOE noise that makes all sums together mu-GDP.

    Parameters
    ----------
    mu : float
        > 0.

    Examples
    --------
    >>> CalibratedNoise(2.0).deviation(uses=8, length=200, row_norm=1.0)
    2.0
    """

    mu: Positive

    ratio: ClassVar[float] = sqrt(2)
    """Deviation on the diagonal over that above it."""

    def deviation(self, *, uses: float, length: int, row_norm: float) -> float:
        """Return the deviation of a coordinate, sqrt(2 uses) R^2/mu.

        Parameters
        ----------
        uses : float
            How many noisy sums show one row, at most; where they show it with weights,
            the sum of the squares of these.
        length : int
            m, the number of rows at most.
        row_norm : float
            R.
        """
        return sqrt(2 * uses) * row_norm**2 / self.mu


@dataclass(frozen=True)
class PublishedNoise(Checked, ABC):
    """Noise of one deviation in all entries of a triangle, as a paper prints it.

    Parameters
    ----------
    epsilon, delta : float
        What the paper claims.
    """

    epsilon: Positive
    delta: Fraction

    ratio: ClassVar[float] = 1.0

    @abstractmethod
    def deviation(self, *, uses: float, length: int, row_norm: float) -> float:
        """Return the deviation of a coordinate, see `CalibratedNoise`."""


@dataclass(frozen=True)
class PublishedNodeNoise(PublishedNoise):
    """Section 2.3.2: what it prints for a node.

    Parameters
    ----------
    epsilon, delta : float
        What the paper claims for the whole sequence.

    Examples
    --------
    >>> noise = PublishedNodeNoise(1.0, 1e-5)
    >>> round(noise.deviation(uses=4, length=8, row_norm=1.0), 1)
    354.3
    """

    def deviation(self, *, uses: float, length: int, row_norm: float) -> float:
        """Return sqrt(50 log^3(m/delta)) R^2/epsilon, whatever `uses` is."""
        return sqrt(50 * log(length / self.delta) ** 3) * row_norm**2 / self.epsilon


@dataclass(frozen=True)
class PublishedStepNoise(PublishedNoise):
    """Algorithm 1: what it prints for one step.

    Parameters
    ----------
    epsilon, delta : float
        What the paper claims for one step.

    Examples
    --------
    >>> noise = PublishedStepNoise(1.0, 1e-5)
    >>> round(noise.deviation(uses=8, length=8, row_norm=1.0), 4)
    4.8448
    """

    def deviation(self, *, uses: float, length: int, row_norm: float) -> float:
        """Return sqrt(2 log(1.25/delta)) R^2/epsilon, whatever `uses` is."""
        return row_norm**2 / classical_mu(self.epsilon, self.delta)
