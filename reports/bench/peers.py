r"""Study G: other tools' methods, on the same scores and on the same black boxes.

Bounds from scores are those of `dpaudit.reports.bench.peer_bounds`. The second part are
attacks: black boxes are attacked with the same number of releases a side.
DP-Sniper (Bichsel, Steffen, Bogunovic, Vechev, IEEE S&P 2021) trains a logistic
classifier, takes the threshold that a share c = .01 of the releases on D' exceeds, and
tests it on fresh releases. Delta-Siege (Lokna, Paradis, Dimitrov, Vechev, CCS 2023)
takes the threshold, of those at each per cent of the scores, that speaks most against
the claim by limits at 90 %. Its measure is what a point (q, p) of the ROC curve says of
the parameter of a whole mechanism: log(p/q) of pure DP, and of Gaussian DP
:math:`\Phi^{-1}(p) - \Phi^{-1}(q)`, which is the supremum over delta that it searches
for on a grid. Both take the better order of D and D' here, found on the releases that
choose the threshold, and a third of the releases to each step. DP-Auditorium (Kong,
Medina, Ribero, Syed, 2024; google/differential-privacy) has testers of delta at the
claim's epsilon: of a histogram on a window that has to be known (Gilbert, McMillan,
2018), of the discrepancy of means in a Gaussian kernel's space, and of a small network
with Hoeffding's inequality. Its Renyi tester needs a network trained by its own loss,
and is not here. What is written anew may do better or worse than the originals with
their own networks, and at their sizes: DP-Sniper used 2e8 releases.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom

from dpaudit.algorithms.textbook.sums import Gaussian, Laplace
from dpaudit.arrays import Array
from dpaudit.audit import Budget, audit
from dpaudit.claims import Claim, GaussianDP, PureDP
from dpaudit.gaussian import gaussian_mu
from dpaudit.neighbours import Pair
from dpaudit.reports.bench.peer_bounds import (
    ALPHA,
    DELTA,
    LAWS,
    LEVEL,
    OURS,
    SCORES,
    Sides,
    bound_rows,
    bounds_of,
    error_limits,
    timed,
)
from dpaudit.reports.bench.study import (
    NOTES,
    Figure,
    Records,
    Study,
    TargetRow,
    TargetTable,
    Unit,
)
from dpaudit.reports.bench.subjects import BlackBox, best_pair, subject
from dpaudit.reports.experiment import Record
from dpaudit.reports.sections import sizes
from dpaudit.streams import stream

_RARE = 0.01  # the share of releases that DP-Sniper's event has on D'
_LOOSE = 0.1  # of Delta-Siege, while it chooses a threshold


@dataclass(frozen=True)
class PeerBox:
    """A mechanism on its worst pair, what is claimed of it, and whether that holds."""

    mechanism: Any
    pair: Pair
    claim: Claim
    right: bool
    window: float = 0.0  # a scalar release is mostly nearer to 0 than this

    @property
    def point(self) -> tuple[float, float]:
        """Epsilon and delta of the claim; of Gaussian DP those at delta 1e-5."""
        delta = float(self.claim.parameters.get("delta", 0.0))
        delta = DELTA if isinstance(self.claim, GaussianDP) else delta
        return float(self.claim.epsilon_at(delta)), delta

    def draw(self, size: int, seed: int) -> Sides:
        """Return releases on D and D', shape (size, m)."""
        one, two = (
            np.reshape(
                self.mechanism.draw(rows, size, rng=stream(seed, side)), (size, -1)
            )
            for side, rows in enumerate((self.pair.data, self.pair.neighbour))
        )
        return one.astype(np.float64), two.astype(np.float64)


def boxes() -> dict[str, PeerBox]:
    """Return the black boxes, by name."""
    pure, mu = PureDP(1.0), GaussianDP(gaussian_mu(1.0, DELTA))
    half, less = Laplace.under_noised(1.0), Gaussian.under_noised(1.0, DELTA)
    whole, more = Laplace(1.0), Gaussian.calibrated(1.0, DELTA)
    known = {
        "laplace": PeerBox(whole, whole.worst_case(), pure, True, 8.0),
        "laplace with half the noise": PeerBox(
            half, half.worst_case(), pure, False, 8.0
        ),
        "gaussian": PeerBox(more, more.worst_case(), mu, True, 15.0),
        "gaussian with half the noise": PeerBox(
            less, less.worst_case(), mu, False, 15.0
        ),
    }
    for name in ("prefix-sum", "one-time-rappor", "noisy-max-3", "svt-6"):
        false = subject(name)
        known[name] = PeerBox(false, best_pair(name), false.claim, False)
    return known


def _weigh(box: PeerBox, missed: Any, false: Any, *, curve: bool = False) -> Array:
    """Return what limits on 1 - p and on q say against a claim: refuted if > 0.

    At the claim's epsilon and delta, or with `curve` by its parameter, if it has one.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        if curve and isinstance(box.claim, GaussianDP):
            found = -ndtri(false) - ndtri(missed) - box.claim.parameters["mu"]
        else:
            epsilon, delta = box.point
            found = np.log(1 - missed - delta) - np.log(false) - epsilon
    return np.asarray(np.nan_to_num(found, nan=-np.inf))


def _attacked(box: PeerBox, sides: Sides, *, curve: bool) -> bool:
    """Train on a third, choose order and threshold on a third, test on the last."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    parts = [np.array_split(side, 3) for side in sides]
    train = np.concatenate([part[0] for part in parts])
    labels = np.repeat([1, 0], [len(part[0]) for part in parts])
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(train, labels)

    def scores(third: int, sign: int) -> Sides:
        one, two = (sign * model.decision_function(part[third]) for part in parts)
        return (one, two) if sign > 0 else (two, one)

    best = -math.inf, 1, 0.0
    for sign in (1, -1):
        held = scores(1, sign)
        if curve:
            shares = np.arange(0, 1, 0.01)
            some = [np.quantile(side, shares, method="higher") for side in held]
            thresholds = np.concatenate(some)
        else:
            thresholds = np.quantile(held[1], [1 - _RARE], method="higher")
        weights = _weigh(box, *error_limits(held, thresholds, _LOOSE), curve=curve)
        first = int(np.argmax(weights))
        best = max(best, (float(weights[first]), sign, float(thresholds[first])))
    limits = error_limits(scores(2, best[1]), best[2], ALPHA)
    return bool(_weigh(box, *limits, curve=curve)[0] > 0)


def _histogram(box: PeerBox, sides: Sides) -> bool:
    epsilon, delta = box.point
    n, ratio = len(sides[0]), math.exp(epsilon)
    window = -box.window, box.window
    p, q = (np.histogram(np.clip(s, *window), 50, window)[0] / n for s in sides)
    off = 2 * (np.sqrt(p).sum() + ratio * np.sqrt(q).sum()) / math.sqrt(n)
    off += 6 * (1 + ratio) * math.sqrt(math.log(4 / ALPHA) / (2 * n))
    return bool(np.maximum(p - ratio * q, 0).sum() - off > delta)


def _discrepancy(box: PeerBox, sides: Sides) -> bool:
    epsilon, delta = box.point
    (a, b), (c, d) = (np.array_split(side, 2) for side in sides)
    n = min(map(len, (a, b, c, d)))

    def kernel(x: Array, y: Array) -> Array:
        return np.asarray(np.exp(-(np.square(x[:n] - y[:n]).sum(axis=1))))

    h = kernel(a, b) - 2 * kernel(a, c) + kernel(c, d)
    by_variance = math.sqrt(2 * h.var() * math.log(2 / ALPHA) / n)
    by_variance += 28 * math.log(2 / ALPHA) / (3 * (n - 1))
    off = math.sqrt(8 * math.log(1 / ALPHA) / n), by_variance
    # What (epsilon, delta)-DP leaves of the squared discrepancy, solved for delta.
    most = math.expm1(epsilon) ** 2 + 4 * math.sinh(epsilon) * delta
    most += (1 + math.exp(-epsilon)) * delta**2
    return bool(h.mean() - min(off) > most)


def _network(box: PeerBox, sides: Sides) -> bool:
    from sklearn.neural_network import MLPClassifier

    epsilon, delta = box.point
    share = 1 / (math.exp(epsilon) + 1)  # of D among the examples
    halves = []
    for part in range(2):
        one, two = (np.array_split(side, 2)[part] for side in sides)
        one, two = one[: int(share * len(one))], two[int(share * len(two)) :]
        labels = np.repeat([0, 1], [len(one), len(two)])
        halves.append((np.concatenate([one, two]), labels))
    model = MLPClassifier(
        *((12, 12, 12),),
        learning_rate_init=0.01,
        batch_size=100,
        max_iter=2,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two epochs are what it is given
        model.fit(*halves[0])
    n = len(halves[1][1])
    right = float(model.score(*halves[1])) - math.sqrt(math.log(1 / ALPHA) / (2 * n))
    return right > (math.exp(epsilon) + delta) * share


PEER_TESTS: dict[str, Callable[[PeerBox, Sides], bool]] = {
    "DP-Sniper": partial(_attacked, curve=False),
    "Delta-Siege": partial(_attacked, curve=True),
    "DP-Auditorium, histogram": _histogram,
    "DP-Auditorium, kernel": _discrepancy,
    "DP-Auditorium, network": _network,
}
"""A box, and releases on D and D' -> whether its claim is refuted, at 95 %."""


def verdicts_of(box: PeerBox, seed: int, releases: int) -> Record:
    """Return of each method whether it refutes, its releases, and its seconds."""
    found: Record = {}
    for name, test in {OURS: _audited, **PEER_TESTS}.items():
        if box.window or test is not _histogram:
            how = partial(_drawn, test) if name in PEER_TESTS else _audited
            (refuted, drawn), seconds = timed(partial(how, box, releases, seed))
            found[name] = {"refuted": refuted, "releases": drawn, "seconds": seconds}
    return found


def _audited(box: PeerBox, releases: int, seed: int) -> tuple[bool, int]:
    result = audit(
        BlackBox(box.mechanism),
        pair=box.pair,
        claim=box.claim,
        confidence=1 - ALPHA,
        budget=Budget(releases),
        seed=seed,
    )
    return result.refuted, result.samples


def _drawn(test: Any, box: PeerBox, releases: int, seed: int) -> tuple[bool, int]:
    return bool(test(box, box.draw(releases, seed))), releases


def verdict_rows(found: dict[tuple[str, str], list[Record]]) -> tuple[TargetRow, ...]:
    """Return a row to each black box and method, from the records of their units."""
    known, rows = boxes(), []
    for (case, method), some in found.items():
        box, runs = known[case], len(some)
        refuted = sum(each["refuted"] for each in some)
        others = [
            sum(each["refuted"] for each in those)
            for (other, name), those in found.items()
            if other == case and name != OURS
        ]
        unlikely = float(binom.sf(refuted - 1, runs, ALPHA))
        met = unlikely >= LEVEL if box.right else refuted >= max(others)
        releases, cost = (
            median(each[key] for each in some) for key in ("releases", "seconds")
        )
        rows.append(
            TargetRow.of(
                met if method == OURS else None,
                Figure("case", case, "black box", case),
                Figure("right", box.right, "claim", "holds" if box.right else "false"),
                Figure("method", method, "method", method),
                Figure("refuted", refuted, "refuted", f"{refuted} of {runs}"),
                Figure("releases", releases, "releases a side", f"{releases:,.0f}"),
                Figure("seconds", cost, "s", f"{cost:.2f}"),
            )
        )
    return tuple(rows)


_SIZES = sizes(
    trials=(20, 400, 2000),  # of each law of scores
    seeds=(1, 11, 21),  # of each black box
    releases=(3000, 30_000, 30_000),  # a side, of a black box
)
_CHUNK = 20  # trials of a unit


class Peers(Study):
    """Bounds and verdicts of other tools' methods, and what they cost."""

    name = "peers"
    title = "Other tools' methods"

    def units(self, profile: str) -> list[Unit]:
        size = _SIZES[profile]
        scores = [
            Unit(self.name, case, index, (("trials", _CHUNK),))
            for case in LAWS
            for index in range(size.trials // _CHUNK)
        ]
        return scores + [
            Unit(self.name, case, index, (("releases", size.releases),))
            for case in boxes()
            for index in range(size.seeds)
        ]

    def measure(self, unit: Unit) -> Record:
        if unit.case in LAWS:
            return bounds_of(LAWS[unit.case], unit.seed, unit.option("trials"))
        return verdicts_of(boxes()[unit.case], unit.seed, unit.option("releases"))

    def tables(self, profile: str, records: Records) -> list[TargetTable]:
        bounds: dict[tuple[str, str], list[Record]] = {}
        verdicts: dict[tuple[str, str], list[Record]] = {}
        for unit, record in records.items():
            kept = bounds if unit.case in LAWS else verdicts
            for method, found in record.items():
                kept.setdefault((unit.case, method), []).append(found)
        about = NOTES["peer-bounds"].format(SCORES)
        return [
            TargetTable("Other tools' bounds", bound_rows(bounds), about),
            TargetTable(
                "Other tools' attacks", verdict_rows(verdicts), NOTES["peer-attacks"]
            ),
        ]
