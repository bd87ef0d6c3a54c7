r"""Study G, first part: what other tools make of the same scores.

Their methods are written anew here, from the papers and from the code that is named, so
that all see the same numbers and are timed alike. Confidence is 95 % everywhere, and D
is told from D' by events {score >= t}.

**The same scores** have laws that meet a claim with equality, or the same law on both
sides. `jax_privacy` 2.0.0 (``auditing.py``) looks at the thresholds on the concave hull
of the ROC curve. With alpha divided by their number, Clopper and Pearson's limits give
p and q at each, and the bound is the largest log((p - delta)/q) (Bonferroni); or a half
of the scores chooses the threshold, and the other is the test (split). Its bound by
Gaussian DP takes upper limits a and b on both error rates of each threshold, and from
them the largest ``|m|``, :math:`m = \Phi^{-1}(1 - a) - \Phi^{-1}(b)`. The mechanism is
not mu-GDP for any mu < m. But where m < 0, which upper limits of any useless threshold
give, ``-m`` is no bound on anything: the study has the bound as it is shipped, and
without the sign lost. SciPy's exact interval (``binomtest``) is there for one threshold
that is known beforehand to be a good one: what is lost by having to choose.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, TypeAlias

import numpy as np
from scipy.special import betaincinv, ndtri
from scipy.stats import binom, binomtest

from dpaudit.arrays import Array
from dpaudit.audit.bounds import fixed_scores, split_scores
from dpaudit.gaussian import gaussian_epsilon, gaussian_mu
from dpaudit.reports.bench.study import Figure, TargetRow
from dpaudit.reports.experiment import Record
from dpaudit.reports.words import percent
from dpaudit.streams import stream

ALPHA, DELTA = 0.05, 1e-5
LEVEL = 1e-3  # the probability that sound methods are said not to be
OURS, _KNOWN = "dpaudit", "SciPy, threshold known"
SCORES = 1000  # on either side

Sides = tuple[Array, Array]


@dataclass(frozen=True)
class ScoredLaw:
    """Noise to which a shift is added on D, and the epsilon that this is at a delta."""

    noise: str  # of NumPy's generator
    shift: float
    epsilon: float
    delta: float

    def draw(self, rng: np.random.Generator) -> Sides:
        noise = getattr(rng, self.noise)(size=(2, SCORES))
        return noise[0] + self.shift, noise[1]

    @property
    def threshold(self) -> float:
        """A good one: where the noise has its upper tail, behind the shift."""
        return self.shift if self.noise == "laplace" else self.shift / 2 + 1


def _gaussian(epsilon: float) -> ScoredLaw:
    mu = gaussian_mu(epsilon, DELTA)
    return ScoredLaw("standard_normal", mu, epsilon, DELTA)


LAWS = {
    "the same law on both sides": ScoredLaw("standard_normal", 0.0, 0.0, DELTA),
    "laplace, epsilon 1": ScoredLaw("laplace", 1.0, 1.0, 0.0),
    "laplace, epsilon 2": ScoredLaw("laplace", 2.0, 2.0, 0.0),
    "gaussian, epsilon 1": _gaussian(1.0),
    "gaussian, epsilon 4": _gaussian(4.0),
}


def clopper_pearson_upper(hits: Any, trials: int, alpha: float) -> Any:
    """Return Clopper and Pearson's upper limits on probabilities."""
    hits = np.asarray(hits)
    high = betaincinv(hits + 1.0, np.maximum(trials - hits, 1), 1 - alpha)
    return np.where(hits < trials, high, 1.0)


def roc_hull(on_data: Array, on_neighbour: Array) -> Array:
    """Return the thresholds at the corners of the concave hull of the ROC curve."""
    thresholds = np.append(np.union1d(on_data, on_neighbour), np.inf)
    missed, rejected = (
        np.searchsorted(np.sort(side), thresholds, side="left")
        for side in (on_data, on_neighbour)
    )
    kept: list[int] = []
    x, y = missed.tolist(), rejected.tolist()
    for k in range(len(x)):
        while len(kept) > 1:
            i, j = kept[-2:]
            if (y[j] - y[i]) * (x[k] - x[j]) > (y[k] - y[j]) * (x[j] - x[i]):
                break
            kept.pop()
        kept.append(k)
    return np.asarray(thresholds[kept])


def error_limits(sides: Sides, thresholds: Any, alpha: float) -> Sides:
    """Return upper limits on the shares of D below, and of D' from a threshold on."""
    thresholds = np.atleast_1d(thresholds)
    missed, rejected = (
        np.searchsorted(np.sort(side), thresholds, side="left") for side in sides
    )
    false = len(sides[1]) - rejected
    return (
        clopper_pearson_upper(missed, len(sides[0]), alpha / 2),
        clopper_pearson_upper(false, len(sides[1]), alpha / 2),
    )


def _epsilons(sides: Sides, thresholds: Any, alpha: float, delta: float) -> Array:
    missed, false = error_limits(sides, thresholds, alpha)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(1 - missed - delta) - np.log(false)
    return np.nan_to_num(found, nan=-np.inf)


def _bonferroni(sides: Sides, delta: float, rng: np.random.Generator) -> float:
    thresholds = roc_hull(*sides)
    found = _epsilons(sides, thresholds, ALPHA / len(thresholds), delta)
    return max(0.0, float(found.max()))


def _split(sides: Sides, delta: float, rng: np.random.Generator) -> float:
    mixed = [rng.permutation(side) for side in sides]
    first, second = (
        (mixed[0][part], mixed[1][part])
        for part in (slice(0, SCORES // 2), slice(SCORES // 2, None))
    )
    thresholds = roc_hull(*first)
    best = np.argmax(_epsilons(first, thresholds, ALPHA, delta))
    return max(0.0, float(_epsilons(second, thresholds[best], ALPHA, delta)[0]))


def _gaussian_bound(
    sides: Sides, delta: float, rng: np.random.Generator, *, signed: bool
) -> float:
    thresholds = roc_hull(*sides)
    missed, false = error_limits(sides, thresholds, ALPHA / len(thresholds))
    useful = np.maximum(missed, false) < 1 - delta
    mu = -ndtri(false[useful]) - ndtri(missed[useful])
    most = np.max(mu if signed else np.abs(mu), initial=0.0)
    return gaussian_epsilon(delta, float(most)) if most > 0 else 0.0


def _ours(sides: Sides, delta: float, rng: np.random.Generator, **how: Any) -> float:
    bound = fixed_scores(*sides, delta=delta, rng=rng, **how)
    return float(bound.epsilon or 0.0)


def _our_split(sides: Sides, delta: float, rng: np.random.Generator) -> float:
    return float(split_scores(*sides, delta=delta, rng=rng).epsilon or 0.0)


PeerBound: TypeAlias = Callable[[Sides, float, np.random.Generator], float]
"""Scores on D and D', delta, generator -> a lower bound on epsilon, at 95 %."""

PEER_BOUNDS: dict[str, PeerBound] = {
    OURS: _ours,
    f"{OURS}, split": _our_split,
    "jax_privacy, Bonferroni": _bonferroni,
    "jax_privacy, split": _split,
}
GAUSSIAN_BOUNDS: dict[str, PeerBound] = {
    f"{OURS}, GDP": partial(_ours, gaussian=True),
    "jax_privacy, GDP": partial(_gaussian_bound, signed=False),
    "jax_privacy, GDP, signed": partial(_gaussian_bound, signed=True),
}
"""Bounds on mu, as an epsilon at delta > 0: for mechanisms that are Gaussian DP."""


def _known(law: ScoredLaw, sides: Sides) -> float:
    """Return the bound of SciPy's intervals at a threshold known beforehand."""
    p, q = (
        binomtest(
            int((side >= law.threshold).sum()), SCORES, alternative=way
        ).proportion_ci(1 - ALPHA / 2, "exact")
        for side, way in zip(sides, ("greater", "less"), strict=True)
    )
    return max(0.0, math.log(max(p.low - law.delta, 1e-300) / q.high))


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a call returns, and its seconds of processor time."""
    begun = time.process_time()
    found = call()
    return found, time.process_time() - begun


def bounds_of(law: ScoredLaw, seed: int, trials: int) -> Record:
    """Return the bounds of each method, a list, and its seconds for all of them."""
    found: Record = {}
    for trial in range(trials):
        sides = law.draw(stream(seed, trial))
        methods = PEER_BOUNDS | (GAUSSIAN_BOUNDS if law.delta else {})
        calls: dict[str, Callable[[], float]] = {
            name: partial(method, sides, law.delta, stream(seed, trial, 1))
            for name, method in methods.items()
        }
        for name, call in (calls | {_KNOWN: partial(_known, law, sides)}).items():
            bound, seconds = timed(call)
            each = found.setdefault(name, {"bounds": [], "seconds": 0.0})
            each["bounds"].append(bound)
            each["seconds"] += seconds
    return found


def bound_rows(found: dict[tuple[str, str], list[Record]]) -> tuple[TargetRow, ...]:
    """Return a row to each law and method, from the records of their units."""
    bounds = {
        key: [bound for each in some for bound in each["bounds"]]
        for key, some in found.items()
    }
    level, wrong = LEVEL / max(len(bounds), 1), {}
    for (case, method), some in bounds.items():
        wrong[case, method] = sum(bound > LAWS[case].epsilon for bound in some)
    sound = {
        key: bool(binom.sf(wrong[key] - 1, len(some), ALPHA) >= level)
        for key, some in bounds.items()
    }

    def met(case: str, method: str) -> bool | None:
        kind = next((k for k in (PEER_BOUNDS, GAUSSIAN_BOUNDS) if method in k), {})
        if method != next(iter(kind), None):
            return None
        others = [(case, name) for name in kind if OURS not in name]
        best = max(
            (median(bounds[key]) for key in others if sound.get(key)), default=0.0
        )
        return sound[case, method] and median(bounds[case, method]) >= best

    rows = []
    for (case, method), some in bounds.items():
        truth, middle, runs = LAWS[case].epsilon, median(some), len(some)
        off, fair = wrong[case, method], sound[case, method]
        cost = 1000 * sum(each["seconds"] for each in found[case, method]) / runs
        rows.append(
            TargetRow.of(
                met(case, method),
                Figure("case", case, "scores", case),
                Figure("method", method, "method", method),
                Figure("truth", truth, "truth", f"{truth:g}"),
                Figure("measured", middle, "median bound", f"{middle:.3f}"),
                Figure("errors", off),
                Figure("trials", runs, "runs", f"{runs}"),
                Figure(heading="above the truth", text=percent(off / runs)),
                Figure("sound", fair, "as stated", "yes" if fair else "NO"),
                Figure("milliseconds", cost, "ms", f"{cost:.2f}"),
            )
        )
    return tuple(rows)
