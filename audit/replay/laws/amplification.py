r"""The privacy of noisy values over a secret batch: amplification, step by step.

A step shows values with noise whose inputs depend on whether the row that differs is in
the batch, which it is with probability q. Given which other rows are in it, their law
is a mixture, of P_out with weight 1 - q and P_in with weight q. In the notation where a
prime says that it is on D':

- *One row more*: P against (1 - q) P' + q P'_in, P = P'. With S the supremum of the
  loss of P'_in against P', either way round, that of the mixture is at most
  log(1 - q + q e^S): the other way round it is -log(1 - q + q e^-S), and

  .. math:: (1 - q + q e^S)(1 - q + q e^{-S}) = 1 + 2 q (1 - q)(\cosh S - 1) \ge 1.

- *One row replaced*: (1 - q) P + q P_in against (1 - q) P + q P'_in. Let a, a' be
  densities of P_in and P'_in over that of P. Then a <= e^s, a' >= e^-s' and
  a' >= a e^-b for the suprema s, s' and b between the three, and
  (1 - q + q a)/(1 - q + q a') is at most its value at a = e^s and
  a' = max(e^-s', e^(s - b)), as it grows with a for whichever of the two a' is. It is
  also at most e^b. (Of two mixtures with the same weights the densities have a ratio
  between those of their parts.)

For Gaussian noise that moves by mu deviations, the first is the sampled Gaussian
mechanism. The second, for moves u and v, is dominated by opposite moves of length
max(\|u\|, \|v\|); and along u - v alone there are opposite moves, whose lengths a and b
add up to that of u - v, which dominate those of length min(a, b)
(`dpaudit.algorithms.shared.subsampling` has the proof).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.laws.coded import Family
from dpaudit.audit.replay.laws.comparison import LawComparison

__all__ = ["NoisyShift", "SampledComparison", "units"]


@dataclass(frozen=True)
class NoisyShift:
    """One number with noise of one scale, as far as it moves.

    Parameters
    ----------
    family : int
        Gaussian or Laplace.
    ratio : float
        How far it moves, in units of the scale.
    rate : float
        The probability that it moves at all.
    replaced : bool
        Whether on the other side it moves as far the other way, and not 0.
    least : float, optional
        A lower bound of `ratio`, if that is an upper one.
    """

    family: int
    ratio: float
    rate: float = 1.0
    replaced: bool = False
    least: float | None = None

    def bounded(self, *, above: bool) -> "NoisyShift":
        """Return a part that dominates this one, or is dominated by it."""
        least = self.ratio if self.least is None else self.least
        return replace(self, ratio=self.ratio if above else least, least=None)


@dataclass(frozen=True, eq=False)
class SampledComparison:
    """Noisy values over one batch, compared between two datasets.

    Parameters
    ----------
    rates : tuple of float
        With which the row that differs is in the batch, on each of the datasets that
        has it.
    rest : tuple of LawComparison
        Of each value on D and on D', the row being in neither batch.
    both : tuple of LawComparison
        The row, or what replaces it, being in the batch of every dataset that has it.
    moves : tuple of tuple of LawComparison
        With the row against without it, on each of the datasets that has it.
    """

    rates: tuple[float, ...]
    rest: tuple[LawComparison, ...]
    both: tuple[LawComparison, ...]
    moves: tuple[tuple[LawComparison, ...], ...]

    def joined(self, other: "SampledComparison") -> "SampledComparison":
        """Return the values of both, which are over one batch."""
        moves = zip(self.moves, other.moves, strict=True)
        return SampledComparison(
            self.rates,
            self.rest + other.rest,
            self.both + other.both,
            tuple(one + two for one, two in moves),
        )

    @property
    def supremum(self) -> float:
        """An upper bound of the loss, both ways round; NaN if it is not known."""
        rest, both = _supremum(self.rest), _supremum(self.both)
        moves = [_supremum(each) for each in self.moves]
        if any(math.isnan(each) for each in (rest, both, *moves)):
            return math.nan
        if rest or self.rates[0] != self.rates[-1]:
            return max(rest, both) if self.rates[0] == self.rates[-1] else math.inf
        rate = self.rates[0]
        if len(moves) == 1:
            return _mixed(moves[0], rate)
        if math.isinf(max(moves)) or not both:
            return both
        ways = (moves, moves[::-1])
        return min(
            both,
            max(_mixed(s, rate) - _mixed(max(-t, s - both), rate) for s, t in ways),
        )

    @property
    def part(self) -> NoisyShift | None:
        """The values as one number that moves, None where they are not like that."""
        every = [*self.rest, *self.both, *(c for each in self.moves for c in each)]
        if any(c.singular or not c.known or c.scales_differ for c in every):
            return None
        if any(each.moved for each in self.rest) or self.rates[0] != self.rates[-1]:
            return None
        rate, replaced = self.rates[0], len(self.moves) > 1
        moved = [units(each) for each in self.moves]
        ratios = np.concatenate([ratio for _, ratio in moved])
        kinds = {int(kind) for families, _ in moved for kind in families}
        if not len(ratios):
            return NoisyShift(int(Family.GAUSSIAN), 0.0)
        if kinds == {int(Family.GAUSSIAN)}:
            lengths = [float(np.linalg.norm(ratio)) for _, ratio in moved]
            most, least = max(lengths), min(lengths)
            if replaced:
                apart = float(np.linalg.norm(units(self.both)[1]))
                # Along u - v: half of it, but for what one is longer than the other.
                half = apart / 2 if apart else 0.0
                longer = (most**2 - least**2) / (2 * apart) if apart else 0.0
                least = max(half - longer, 0.0)
            return NoisyShift(int(Family.GAUSSIAN), most, rate, replaced, least)
        if kinds == {int(Family.LAPLACE)} and len(ratios) == 1 and not replaced:
            return NoisyShift(int(Family.LAPLACE), float(ratios[0]), rate)
        return None


def _mixed(loss: float, rate: float) -> float:
    """Return log(1 - q + q e^loss)."""
    with np.errstate(divide="ignore"):
        return float(np.logaddexp(np.log1p(-rate), np.log(rate) + loss))


def _supremum(values: Iterable[LawComparison]) -> float:
    return float(sum(each.supremum for each in values))


def units(values: Iterable[LawComparison]) -> tuple[NDArray[np.intp], Array]:
    """Return families, and ratios, of all units that move."""
    families, ratios = [np.empty(0, dtype=np.intp)], [np.empty(0)]
    for each in values:
        moved = each.shift != 0
        families.append(each.family[moved])
        ratios.append(each.shift[moved] / each.scale[moved])
    return np.concatenate(families), np.concatenate(ratios)
