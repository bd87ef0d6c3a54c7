r"""Study C: how many releases it takes to refute a claim that is false.

First a plain function, half of the Laplace noise that its claim of epsilon = 1 needs,
of which the audit knows nothing but releases. Then every mechanism of the standard
suite whose claim of epsilon = 0.1 is false, against the information limit of its best
event: the factor covers finding the attack, the pair and the event, betting without
knowing probabilities, and looking all the time. And against what DP-Sniper needs
whatever the mechanism is: 10.7 million samples to search and 200 million for the final
bound.

A run that reaches its budget, twelve times the limit, counts as endless.

**The best event** against each broken mechanism of the suite, and what seeing it costs.
All claim epsilon = 0.1 (the Gaussian also delta = 1e-5). One event, or two disjoint
ones, cut the outputs into K = 2 or 3 cells; p and q are the exact cell probabilities on
D and on D', in order of falling privacy loss. Betting on such cells, however well they
are known, grows the evidence against the claim by at most

.. math:: G = \min_{(p', q')} \tfrac{1}{2} KL(p \| p') + \tfrac{1}{2} KL(q \| q')

a release on average, the minimum over all cell probabilities that the claim allows
(`dpaudit.reports.bench.limits`), when half of the releases are drawn on either
side. To refute the claim at error probability alpha takes evidence of log(1/alpha), and
so about

.. math:: n = \frac{\log(1/\alpha)}{2 \, G}

releases a side: the information limit.

Where the privacy loss depends on one number x (a release, a sum of bits), it is
monotone in x on the outer parts, and the events are {x <= t} and {x >= t'}; t was
optimised numerically, and rounded:

- *Laplace at half the noise* (scale 5, shift 1): {y <= t}, {y >= 1 - t}.
- *Gaussian at half the noise* (shift mu): {z <= -t}, {z >= mu + t}, in deviations.
- *TruncatedGeometric*: all outputs have the loss +-log(9/8); {Z = 0} and the rest.
- *NoisyHist2* (scale 0.1, shift 1): {y_1 <= t}, {y_1 >= 1 - t}.
- *NoisyMax3*: {largest <= t}; all five noisy counts must be below. Its other tail keeps
  the claim.
- *NoisyMax4*: {y < A}, impossible on D', see `dpaudit.algorithms.textbook.noisy_max`.
- *SVT5*: {one of two answers above that are equal on D'}, impossible there.
- *Rappor, OneTimeRappor*: the number of differing bits that are told as if the value
  were D's is Bin(8, f) on D, Bin(8, 1 - f) on D'; {>= 6}, {<= 2}.
- *PrefixSum*: the number of increments <= 1/2 is Bin(10, f) or Bin(10, 1 - f) with
  f = 1 - e^(-1/20)/2; {>= 7}, {<= 3}. (The sum of the ten losses itself, by
  convolution, needs 0.4 % fewer releases.)

The streams of the other sparse vector techniques have probabilities that are integrals
over the noisy threshold. They were computed by Gauss-Legendre quadrature, and the best
union of streams was found in the order of their losses, over all canonical pairs. The
pair is half the answers 0 and half 1, against the reverse:

- *SVT3*: the stream ends at place 3 with a value <= 0, at 4 with one <= 0.6, at 5 with
  one <= 3, at 6 with one <= 29, at 7 with one <= 19, at 8 with one in (0.4, 11.5], or
  at 9 with one in (0.9, 3.8].
- *SVT4*: it ends at place 6; it ends at place 7 or 8.
- *SVT6*: (i, j), the numbers of answers above in the two halves, with j - i >= 3 or
  equal to (2, 4) or (1, 3); the mirror image, i and j exchanged.
- *SVT3 and SVT4 in parallel*, by the second stream alone, which has most of the
  information: both its answers above are among places 6 to 9; one is among them and the
  other at place 10, or one is at place 6 and the other before.

References
----------
Cover, Thomas, *Elements of information theory*, 2006, section 11.8 (Chernoff-Stein).
"""

import math
from functools import cache
from math import ceil, inf, isfinite
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom, laplace, norm

from dpaudit.algorithms.textbook.sums import Laplace
from dpaudit.claims import Claim, PureDP
from dpaudit.reports.bench.limits import ReleasesToRefute, growth
from dpaudit.reports.bench.study import (
    NOTES,
    Figure,
    Records,
    TargetRow,
    TargetTable,
    Unit,
)
from dpaudit.reports.bench.subjects import CLAIMED, BlackBox, best_pair, subject
from dpaudit.reports.sections import sizes
from dpaudit.reports.words import count

__all__ = ["RefutationStudy"]

_BITS, _INCREMENTS = 8, 10

_BLACK_BOX = "half laplace, black box"
_BLACK_BOX_CLAIM, _BLACK_BOX_CONFIDENCE = 1.0, 0.95
_BLACK_BOX_TARGET, _BLACK_BOX_BUDGET = 60, 5000

_CONFIDENCE = 0.999
_BUDGET_FACTOR, _SMALLEST_BUDGET = 12, 2000
_SNIPER = (10.7e6 + 200e6) / 10
"""Ten times fewer than DP-Sniper's releases."""

_SIZES = sizes(
    black_box=(3, 51, 51),  # seeds
    suite=(1, 3, 5),  # seeds
    # Mechanisms whose information limit is larger are left out.
    largest_limit=(7e3, 1e5, inf),
)


class BestEvent(NamedTuple):
    """Exact probabilities of cells on either side, in order of falling privacy loss."""

    p: tuple[float, ...]
    q: tuple[float, ...]


@cache
def best_events() -> dict[str, BestEvent]:
    """Return the best event for every broken mechanism, by its name in the suite."""
    half_laplace = laplace(scale=subject("laplace-under-noised").scale)
    inverted = laplace(scale=CLAIMED)
    wide = laplace(scale=2 / CLAIMED)
    mu = subject("gaussian-under-noised").mu
    majority = 1 - math.exp(-CLAIMED / 2) / 2
    factor = -math.expm1(-CLAIMED / 2)
    ahead = -math.expm1(-6.0)
    return {
        "laplace-under-noised": _tails(half_laplace.cdf(0.13), half_laplace.cdf(-0.87)),
        "gaussian-under-noised": _tails(norm.cdf(-1.88), norm.cdf(-1.88 - mu)),
        "truncated-geometric": _event(9 / 17, 8 / 17),
        "noisy-hist-2": _tails(inverted.cdf(0.39), inverted.cdf(-0.61)),
        "noisy-max-3": _event(wide.cdf(0.75) ** 5, wide.cdf(-0.25) ** 5),
        "noisy-max-4": _event(factor * ahead**4, 0.0),
        "svt-3": _event(0.022687661165, 0.019068785930),
        "svt-4": _event((0.0184198927, 0.0270324513), (0.0155143798, 0.0237386591)),
        "svt-5": _event(wide.cdf(9.0) - wide.cdf(-1.0), 0.0),
        "svt-6": _tails(0.0794755549, 0.0652846525),
        "svt-3-4-parallel": _event(
            (0.014244860326, 0.030918082622), (0.011010539780, 0.026291808625)
        ),
        "prefix-sum": _binomial_tails(_INCREMENTS, majority, 7),
        "rappor": _binomial_tails(_BITS, 0.5125, 6),
        "one-time-rappor": _binomial_tails(_BITS, 0.525, 6),
    }


def information_limit(event: BestEvent, claim: Claim, alpha: float) -> float:
    """Return the releases a side that refute the claim if the cells are known.

    ``claim``: Pure or approximate. ``alpha``: the error probability, in (0, 1).
    """
    p, q = map(np.array, event)
    epsilon, delta = claim.parameters["epsilon"], claim.parameters.get("delta", 0.0)
    return -math.log(alpha) / (2 * growth(p, q, [(epsilon, delta)]))


def _event(*sides: ArrayLike) -> BestEvent:
    """Return cells of these probabilities on either side, and what is left."""
    one, two = ((*p.tolist(), 1 - float(p.sum())) for p in map(np.atleast_1d, sides))
    return BestEvent(one, two)


def _tails(p: float, q: float) -> BestEvent:
    """Return an event and its mirror image, of exchanged probabilities."""
    p, q = float(p), float(q)
    return BestEvent((p, 1 - p - q, q), (q, 1 - p - q, p))


def _binomial_tails(trials: int, chance: float, least: int) -> BestEvent:
    """Return that of at least so many, whose chance on D' is 1 - that on D."""
    return _tails(*binom.sf(least - 1, trials, [chance, 1 - chance]))


def limit(name: str) -> float:
    """Return the information limit of a mechanism of the suite, releases a side."""
    alpha = 1 - _CONFIDENCE
    return information_limit(best_events()[name], subject(name).claim, alpha)


class RefutationStudy(ReleasesToRefute):
    """Releases to refute a false claim."""

    name = "refutation"
    title = "Releases to refute"

    def units(self, profile: str) -> list[Unit]:
        size = _SIZES[profile]
        names = [name for name in best_events() if limit(name) <= size.largest_limit]
        return [
            Unit(self.name, name, index)
            for name in (_BLACK_BOX, *names)
            for index in range(size.black_box if name == _BLACK_BOX else size.suite)
        ]

    def asked(self, case: str) -> tuple[Any, dict[str, Any]]:
        if case == _BLACK_BOX:
            secret = Laplace.under_noised(_BLACK_BOX_CLAIM)
            return BlackBox(secret), {
                "pair": secret.worst_case(),
                "claim": PureDP(_BLACK_BOX_CLAIM),
                "confidence": _BLACK_BOX_CONFIDENCE,
                "budget": _BLACK_BOX_BUDGET,
            }
        return subject(case), {
            "pair": best_pair(case),
            "confidence": _CONFIDENCE,
            "budget": max(_SMALLEST_BUDGET, ceil(_BUDGET_FACTOR * limit(case))),
        }

    def tables(self, profile: str, records: Records) -> list[TargetTable]:
        found = self.samples(records)
        tables = []
        if _BLACK_BOX in found:
            row = self._row(
                _BLACK_BOX, found.pop(_BLACK_BOX), {"target": _BLACK_BOX_TARGET}
            )
            tables.append(TargetTable("A black box", (row,), NOTES["black-box"]))
        rows = []
        for name, samples in found.items():
            figures = {"information limit": limit(name), "3 x limit": 3 * limit(name)}
            figures["a tenth of DP-Sniper's"] = _SNIPER
            rows.append(self._row(name, samples, figures))
        note = NOTES["refutation"].format(CLAIMED, _CONFIDENCE)
        return [*tables, TargetTable("The standard suite", tuple(rows), note)]

    def _row(
        self, case: str, found: list[float], figures: dict[str, float]
    ) -> TargetRow:
        targets = [figures[key] for key in figures if key != "information limit"]
        return TargetRow.of(
            median(found) <= min(targets),
            Figure("case", case, "mechanism", case),
            Figure("seeds", len(found), "seeds", f"{len(found)}"),
            self.middle(found),
            Figure("refuted", sum(map(isfinite, found))),
            *(Figure(each, x, each, count(x)) for each, x in figures.items()),
        )
