r"""Study F: releases to refute a black box, against the information limit.

Five mechanisms whose laws P and Q on the worst pair are known to the study, and nothing
but releases to the audit. Betting that knows the laws multiplies its wealth by at most
e^G a release on average,

.. math:: G = \min_{(P', Q')} \tfrac{1}{2} KL(P \| P') + \tfrac{1}{2} KL(Q \| Q'),

the minimum over all pairs that keep the claim, so that evidence of log(1/alpha) takes
about log(1/alpha)/(2 G) releases a side: the information limit. What an audit takes
beyond it is the price of learning the laws, of rounds, and of chance.

**The minimum.** The claim is delta(epsilon_j) >= the hockey-stick divergence of P' from
Q', and of Q' from P', at some epsilon_j. With multipliers lambda, mu >= 0 for the total
masses and nu_j, nu'_j >= 0 for these, the Lagrangian is a sum over cells of convex
functions

.. math:: -p \log p' - q \log q' + \lambda p' + \mu q'
          + \sum_j \nu_j (p' - e^{\epsilon_j} q')_+
          + \sum_j \nu'_j (q' - e^{\epsilon_j} p')_+ ,

each of which is smallest at p' = p/a, q' = q/b where the slopes a, b belong to the
segment of log(p'/q') that this lies in, or else at the end of a segment. The dual is
concave, and its gradient is by how much the constraints are missed. Half of its
maximum, less the entropies, is G.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, exp, inf, isfinite, log
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import xlogy
from scipy.stats import laplace, norm

from dpaudit.algorithms import build
from dpaudit.algorithms.textbook.sums import Gaussian, Laplace
from dpaudit.arrays import Array
from dpaudit.audit import audit
from dpaudit.claims import ApproxDP, Claim, GaussianDP, PureDP
from dpaudit.gaussian import gaussian_mu
from dpaudit.reports.bench.study import NOTES, Figure, Records, Study, TargetRow, Unit
from dpaudit.reports.bench.subjects import BlackBox
from dpaudit.reports.experiment import Record
from dpaudit.reports.sections import sizes
from dpaudit.reports.words import count

_EPSILON, _DELTA = 1.0, 1e-5
_CONFIDENCES = {0.95: 2.5, 0.999: 2.0}
"""By confidence, how many times the limit is allowed."""
_BUDGET_FACTOR, _SMALLEST_BUDGET = 15, 500
_EVERY = tuple(np.linspace(0.0, 3.0, 31))  # epsilons at which a GDP claim is held
_CELLS = np.linspace(-12.0, 13.0, 1501)
_SIZES = sizes(seeds=(1, 21, 101))


def growth(p: Array, q: Array, points: Sequence[tuple[float, float]]) -> float:
    """Return G, in nats a release, for laws on cells.

    ``p``, ``q``: probabilities, > 0 on one side at least. ``points``: of the claim; the
    epsilons >= 0 and increasing.
    """
    epsilon, delta = np.array(points).T
    e = len(points)
    found = minimize(
        _dual,
        np.concatenate([[1.0, 1.0], np.full(2 * e, 1e-3 / e)]),
        args=(p[:, np.newaxis], q[:, np.newaxis], epsilon, delta),
        jac=True,
        method="L-BFGS-B",
        bounds=[(1e-6, None)] * 2 + [(0.0, None)] * (2 * e),
        options={"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-14, "gtol": 1e-10},
    )
    entropy = -float(xlogy(p, p).sum() + xlogy(q, q).sum())
    return max(0.0, (-float(found.fun) - entropy) / 2)


def _dual(
    multipliers: Array, p: Array, q: Array, epsilon: Array, delta: Array
) -> tuple[float, Array]:
    """Return the dual, to be minimised, with its gradient; p, q of shape (K, 1)."""
    mass, (nu, other) = multipliers[:2], np.split(multipliers[2:], 2)
    ratio = np.exp(epsilon)
    on_p, on_q, on_q2, on_p2 = (
        np.concatenate([[0.0], np.cumsum(x)])
        for x in (nu, nu * ratio, other, other * ratio)
    )
    # Segments of log(p'/q'), from the least on; the middle one has two names.
    a = mass[0] + np.concatenate([-on_p2[:0:-1], on_p])
    b = mass[1] + np.concatenate([on_q2[:0:-1], -on_q])
    ends = np.concatenate([-epsilon[::-1], epsilon])
    low, high = np.append(-np.inf, ends), np.append(ends, np.inf)
    with np.errstate(all="ignore"):
        free = np.log(p / a) - np.log(q / b)
        free = np.where((a > 0) & (b > 0), free, np.where(b > 0, np.inf, -np.inf))
        place = np.clip(np.where(np.isnan(free), 0.0, free), low, high)
        slope = np.exp(place)
        shared = (p + q) / (a * slope + b)
        left = np.where(place == np.inf, p / a, slope * shared)
        right = np.where(place == np.inf, 0.0, shared)
        cost = a * left + b * right - xlogy(p, left) - xlogy(q, right)
    possible = np.isfinite(cost) & (left >= 0) & (right >= 0)
    best = np.argmin(np.where(possible, cost, np.inf), axis=1)[:, np.newaxis]
    left, right, cost = (np.take_along_axis(x, best, 1) for x in (left, right, cost))
    value = cost.sum() - mass.sum() - (nu + other) @ delta
    slopes = [
        [left.sum() - 1, right.sum() - 1],
        np.maximum(left - ratio * right, 0).sum(axis=0) - delta,
        np.maximum(right - ratio * left, 0).sum(axis=0) - delta,
    ]
    return -float(value), -np.concatenate(slopes)


@dataclass(frozen=True)
class KnownLaws:
    """A mechanism, what it is said to keep, and its laws on cells."""

    mechanism: Callable[[], Any]
    claim: Claim
    laws: Callable[[], tuple[Array, Array]]

    @property
    def points(self) -> list[tuple[float, float]]:
        """The points of the claim's curve that it is held to here."""
        if isinstance(self.claim, GaussianDP):
            return [(e, float(self.claim.delta_at(e))) for e in _EVERY]
        return [(_EPSILON, self.claim.parameters.get("delta", 0.0))]


def _on_cells(law: Any, shift: float, unit: float) -> tuple[Array, Array]:
    edges = np.concatenate([[-inf], unit * _CELLS, [inf]])
    p, q = np.diff(law.cdf(edges)), np.diff(law.cdf(edges - shift))
    possible = (p > 0) | (q > 0)
    return p[possible], q[possible]


_MU = gaussian_mu(_EPSILON, _DELTA)
_PLAIN = 1 - exp(-1)

SUBJECTS: dict[str, KnownLaws] = {
    "half laplace": KnownLaws(
        lambda: Laplace.under_noised(_EPSILON),
        PureDP(_EPSILON),
        lambda: _on_cells(laplace(scale=0.5), 1.0, 0.5),
    ),
    "symmetric-noise": KnownLaws(
        lambda: build("symmetric-noise"),
        PureDP(_EPSILON),
        # Its exact loss: an event of probability 1 - 1/e that is impossible on D'.
        lambda: (np.array([_PLAIN, 1 - _PLAIN]), np.array([1e-300, 1.0])),
    ),
    "laplace at epsilon 1.2": KnownLaws(
        lambda: Laplace(1.2),
        PureDP(_EPSILON),
        lambda: _on_cells(laplace(scale=1 / 1.2), 1.0, 1 / 1.2),
    ),
    "half gaussian, GDP": KnownLaws(
        lambda: Gaussian.under_noised(_EPSILON, _DELTA),
        GaussianDP(_MU),
        lambda: _on_cells(norm, 2 * _MU, 1.0),
    ),
    "half gaussian, (epsilon, delta)": KnownLaws(
        lambda: Gaussian.under_noised(_EPSILON, _DELTA),
        ApproxDP(_EPSILON, _DELTA),
        lambda: _on_cells(norm, 2 * _MU, 1.0),
    ),
}


@cache
def _limit(name: str, confidence: float) -> float:
    """Return the information limit of a subject, releases a side."""
    subject = SUBJECTS[name]
    return -log(1 - confidence) / (2 * growth(*subject.laws(), subject.points))


class ReleasesToRefute(Study):
    """Audits of false claims: how many releases a side they take."""

    @abstractmethod
    def asked(self, case: str) -> tuple[Any, dict[str, Any]]:
        """Return who is audited in a case, and with which settings."""

    def measure(self, unit: Unit) -> Record:
        subject, settings = self.asked(unit.case)
        result = audit(subject, seed=unit.seed, **settings)
        return {"refuted": result.refuted, "samples": result.samples}

    def samples(self, records: Records) -> dict[str, list[float]]:
        """Return the releases to refute, by case; infinity where none did."""
        found = {unit: dict(record) for unit, record in records.items()}
        for record in found.values():
            record["samples"] = record["samples"] if record["refuted"] else inf
        return self.by_case(found, "samples")

    @staticmethod
    def middle(samples: list[float]) -> Figure:
        middle = median(samples)
        kept, shown = None, "not refuted"
        if isfinite(middle):
            kept, shown = middle, count(middle)
        return Figure("measured", kept, "median releases a side", shown)


class Limits(ReleasesToRefute):
    """Releases to refute, over the fewest that knowing the laws would take."""

    name = "limits"
    title = "How near the limit"
    note = NOTES["limits"]

    def units(self, profile: str) -> list[Unit]:
        return [
            Unit(self.name, f"{name}, {confidence:g}", index)
            for name in SUBJECTS
            for confidence in _CONFIDENCES
            for index in range(_SIZES[profile].seeds)
        ]

    def asked(self, case: str) -> tuple[Any, dict[str, Any]]:
        name, _, confidence = case.rpartition(", ")
        mechanism = SUBJECTS[name].mechanism()
        budget = _BUDGET_FACTOR * _limit(name, float(confidence))
        return BlackBox(mechanism), {
            "pair": mechanism.worst_case(),
            "claim": SUBJECTS[name].claim,
            "confidence": float(confidence),
            "budget": max(_SMALLEST_BUDGET, ceil(budget)),
        }

    def rows(self, profile: str, records: Records) -> list[TargetRow]:
        found = self.samples(records)
        return [self._row(case, sorted(samples)) for case, samples in found.items()]

    def _row(self, case: str, samples: list[float]) -> TargetRow:
        name, _, told = case.rpartition(", ")
        confidence = float(told)
        limit, allowed = _limit(name, confidence), _CONFIDENCES[confidence]
        factor = median(samples) / limit
        known = isfinite(factor)
        shown = f"{factor:.2f}" if known else "-"
        return TargetRow.of(
            factor <= allowed,
            Figure("case", case, "mechanism", name),
            Figure("confidence", confidence, "confidence", told),
            Figure("seeds", len(samples), "seeds", f"{len(samples)}"),
            Figure("limit", limit, "limit", count(limit)),
            self.middle(samples),
            Figure("factor", factor if known else None, "times the limit", shown),
            Figure("refuted", sum(map(isfinite, samples))),
            Figure("target", allowed, "target", f"{allowed:g}"),
        )
