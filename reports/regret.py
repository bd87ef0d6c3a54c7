r"""Regret of online PCA: what is measured, and its exponents beside Theorems 14 to 18.

Source of the rates: Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss*, STOC 2014, section
4. Regret is what the best fixed subspace earns, OPT, minus what was earned.

**Two streams.** `GAUSSIAN`: clipped Gaussian rows, 0.6 of their variance in a turned
subspace, the same for all mechanisms and a prefix of itself for fewer rows. `RIVALS`,
oblivious and hard: k pairs of basis vectors take turns, every other round the other one
of each pair, and the first round has half weight. Whoever follows the leader earns
nothing after it, since the vector of the next row has always fallen behind; OPT is half
the rows. Both terms of Theorem 14 are at work there: noise hides which 2 k directions
there are, and the less noise there is the more follows the leader.

**Exponents** are those of `RIVALS`, one variable at a time, the declared length fixed
(so that the logarithms are):

- Algorithm 3 at the epsilon of Corollary 17, sqrt(k sqrt d log m/OPT), with delta =
  1/m: it is tuned to OPT, and private in each step only. Predicted: OPT^(1/2) d^(1/4)
  k^(1/2).
- Algorithm 4, calibrated, at delta = 1/(2 m^2) and an epsilon so large that OPT is many
  times the first guess: Theorem 18 wants OPT > k sqrt d log^2(m/delta)/epsilon^2, which
  at its epsilon < 0.1 takes streams of millions of rows. Predicted: the same.

In m, with OPT = m/2, the first bound is of order sqrt(m log m); for the second, m has
its logarithm to the power 5/2. `formula` is the printed bound with 1 for its O, so that
its exponent on the grid has these logarithms in it; and, for Algorithm 4, the epochs
that there are. Its proof counts each of them at most as much as the last. With g the
first guess they add up to sum_j sqrt(2^j g), in proportion to sqrt(OPT + g) - sqrt g,
which is sqrt OPT times sqrt(1 + g/OPT) - sqrt(g/OPT): `_epochs`.

**Verdicts.** *Faster than the bound*: the interval of the exponent lies below both the
printed one and that of `formula`. *Contradicted*: a mean regret is above the bound that
is proven with its constants (`dpaudit.algorithms.online.regret.proven_regret_bound`);
or, where none is, the interval lies above both by more than `_SLACK`, a matter of
judgement. *Consistent*: neither. A bound allows any exponent on a grid that ends, and
that a random subspace earns k/d raises those in d: `Exponent.above`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite, isnan, log, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpaudit.algorithms import entry
from dpaudit.algorithms.online.perturbed_leader import FollowPerturbedLeader
from dpaudit.algorithms.online.regret import (
    best_fixed_reward,
    corollary_17_bound,
    follow_the_leader,
    proven_regret_bound,
    regret,
    theorem_18_bound,
)
from dpaudit.claims import GaussianDP
from dpaudit.errors import InputError
from dpaudit.reports.experiment import Cell, Record
from dpaudit.reports.power_law import PowerLaw, fit_power_law
from dpaudit.reports.tables import records
from dpaudit.streams import stream

__all__ = [
    "ALGORITHM_3",
    "ALGORITHM_4",
    "CORRECTED_ONLINE",
    "GAUSSIAN",
    "LEADER",
    "PUBLISHED_ONLINE",
    "RIVALS",
    "Exponent",
    "exponents",
    "online_regret",
    "rows_of",
]

Array = NDArray[np.float64]

LEADER = "follow-the-leader"
CORRECTED_ONLINE = ("online-pca", "online-pca-doubling", "follow-perturbed-leader")
PUBLISHED_ONLINE = tuple(f"{name}-published" for name in CORRECTED_ONLINE)
ALGORITHM_3, ALGORITHM_4 = "follow-perturbed-leader-published", "online-pca-doubling"
GAUSSIAN, RIVALS = "gaussian", "rivals"

_SHARE = 0.6  # of the variance that is in the subspace
_WORK = 2**23  # numbers in the bases of the releases that are drawn at once
_EPSILONS = np.geomspace(1e-3, 10.0, 200)
_SLACK = 0.1


def online_regret(cell: Cell) -> list[Record]:
    """Return the regret of several releases on one stream.

    The point and the options give ``stream`` (`GAUSSIAN` or `RIVALS`), ``rows``,
    ``dimension``, ``n_components`` and ``length``, the m that is declared (by default
    ``rows``); ``epsilon`` and ``delta``, or ``tuned``, which takes those of the head of
    this module.

    Returns
    -------
    list of dict
        ``repetition``, ``regret``; and the same in all: ``optimum``; ``nothing``, the
        regret of a random subspace; ``epsilon_used``; ``proven``, a bound on the mean
        with its constants; ``formula``, the paper's (NaN where there is none).
    """
    setting = {**cell.options, **cell.point}
    rows = rows_of(setting, cell.seed)
    m, d, k = (int(setting[name]) for name in ("rows", "dimension", "n_components"))
    optimum = best_fixed_reward(rows, k)
    same: Record = {
        "optimum": optimum,
        "nothing": optimum - k / d * float(np.sum(rows**2)),
        "epsilon_used": nan,
        "proven": nan,
        "formula": nan,
    }
    if cell.mechanism == LEADER:
        found = np.repeat(regret(rows, follow_the_leader(rows, k)), cell.size)
    else:
        length = int(setting.get("length", m))
        epsilon, delta = _privacy(cell.mechanism, setting, optimum, length)
        mechanism: Any = entry(cell.mechanism).constructor(
            epsilon, delta, n_components=k, length=length
        )
        sizes = {"length": length, "dimension": d, "n_components": k}
        same["epsilon_used"] = epsilon
        if isinstance(mechanism, FollowPerturbedLeader):
            same["proven"] = _proven(mechanism, optimum, m, d)
            same["formula"] = corollary_17_bound(optimum=optimum, **sizes)
        elif cell.mechanism.startswith(ALGORITHM_4):
            bound = theorem_18_bound(optimum=optimum, delta=delta, **sizes)
            same["formula"] = bound * _epochs(mechanism.plan(d).guess / optimum)
        rng, width = cell.rng(), max(1, _WORK // (m * d * k))
        parts = [
            regret(rows, mechanism.draw(rows, min(width, cell.size - first), rng=rng))
            for first in range(0, cell.size, width)
        ]
        found = np.concatenate(parts)
    return [
        {"repetition": cell.first + i, "regret": float(each), **same}
        for i, each in enumerate(found)
    ]


def rows_of(setting: Mapping[str, Any], seed: int) -> Array:
    """Return the stream of a setting, shape (m, d).

    It raises `InputError` if there is none, or no room for pairs of rivals.
    """
    m, d, k = (int(setting[name]) for name in ("rows", "dimension", "n_components"))
    if setting["stream"] == GAUSSIAN:
        rng = stream(seed, d, k)
        turned = np.linalg.qr(rng.standard_normal((d, d)))[0]
        variances = np.full(d, (1 - _SHARE) / (d - k))
        variances[:k] = _SHARE / k
        drawn = rng.standard_normal((m, d)) * np.sqrt(variances) @ turned.T
        norms = np.linalg.norm(drawn, axis=1, keepdims=True)
        return np.asarray(drawn / np.maximum(1, norms))
    if (name := setting["stream"]) != RIVALS:
        raise InputError(f"stream must be {GAUSSIAN!r} or {RIVALS!r}, got {name!r}")
    if 2 * k > d:
        raise InputError(f"n_components must be at most d/2 = {d / 2:g}, got {k}")
    rows, step = np.zeros((m, d)), np.arange(m)
    pair, side = step % k, step // k % 2
    # The last coordinates: all mechanisms begin with the span of the first k.
    rows[step, d - 1 - pair - k * side] = 1.0
    rows[:k] *= sqrt(0.5)
    return rows


def _privacy(
    name: str, setting: Mapping[str, Any], optimum: float, length: int
) -> tuple[float, float]:
    if not setting.get("tuned", False):
        return float(setting["epsilon"]), float(setting["delta"])
    if name == ALGORITHM_3:
        size = float(setting["n_components"]) * sqrt(float(setting["dimension"]))
        return sqrt(size * log(length) / optimum), 1 / length
    return float(setting["epsilon"]), 1 / (2 * length**2)


def _epochs(guess: float) -> float:
    """Return how the epochs add up, given the first guess as a share of OPT."""
    return sqrt(1 + guess) - sqrt(guess)


def _proven(
    mechanism: FollowPerturbedLeader, optimum: float, rows: int, dimension: int
) -> float:
    """Return the least proven bound over all (epsilon, delta) of a step, or OPT.

    A row that is added moves the coordinates of a prefix by its squared length at most,
    so a step is mu-GDP for one over their deviation.
    """
    sums = mechanism.sums
    step = GaussianDP(1 / sums.deviation(rows))
    bounds = [
        proven_regret_bound(
            optimum=optimum,
            length=rows,
            dimension=dimension,
            n_components=mechanism.n_components,
            sigma=sums.deviation(rows) / sums.noise.ratio,
            epsilon=float(epsilon),
            delta=float(step.delta(epsilon)),
        )
        for epsilon in _EPSILONS
    ]
    return min(optimum, *bounds)


@dataclass(frozen=True)
class Exponent:
    """One exponent of the regret, beside what the theorem says.

    Parameters
    ----------
    mechanism, variable : str
        Whose, and in what: ``"OPT"``, ``"d"``, ``"k"`` or ``"m"``.
    predicted : float
        As printed, without logarithms.
    formula : float
        That of the printed bound on this grid, with its logarithms.
    fit : PowerLaw
        Of the regret.
    points : mapping of float to float
        The median regret at each point.
    worst : float
        The largest ratio of a mean regret to its proven bound; NaN without one.
    """

    mechanism: str
    variable: str
    predicted: float
    formula: float
    fit: PowerLaw
    points: Mapping[float, float]
    worst: float

    @property
    def verdict(self) -> str:
        """``"contradicted"``, ``"faster than the bound"`` or ``"consistent"``.

        Or ``"within the bound"``: the exponent is above the printed ones, and the
        regret below what is proven.
        """
        limit = max(self.predicted, self.formula) + _SLACK
        if self.worst > 1 or (isnan(self.worst) and self.fit.low > limit):
            return "contradicted"
        if not isfinite(self.fit.exponent):
            return "not known"
        if self.fit.high < min(self.predicted, self.formula):
            return "faster than the bound"
        proven = self.above and not isnan(self.worst)
        return "within the bound" if proven else "consistent"

    @property
    def above(self) -> bool:
        """Whether the whole interval is above both exponents."""
        return self.fit.low > max(self.predicted, self.formula)


_VARIABLES = {
    "regret-optimum": ("OPT", "optimum", 0.5),
    "regret-dimensions": ("d", "dimension", 0.25),
    "regret-components": ("k", "n_components", 0.5),
    "regret-length": ("m", "rows", 0.5),
}


def exponents(tables: Mapping[str, pd.DataFrame]) -> list[Exponent]:
    """Return the exponents of Algorithms 3 and 4, in each variable.

    The tables are those of the keys of `_VARIABLES`.
    """
    found = []
    for name in (ALGORITHM_3, ALGORITHM_4):
        for table, (variable, column, predicted) in _VARIABLES.items():
            rows = [r for r in records(tables[table]) if r["mechanism"] == name]
            groups: dict[float, dict[str, list[float]]] = {}
            for row in rows:
                group = groups.setdefault(float(row[column]), {})
                for key in ("regret", "formula", "proven"):
                    group.setdefault(key, []).append(row[key])
            formula = {x: 2 * each["formula"][:1] for x, each in groups.items()}
            ratios = [
                float(np.mean(each["regret"])) / each["proven"][0]
                for each in groups.values()
            ]
            found.append(
                Exponent(
                    mechanism=name,
                    variable=variable,
                    predicted=predicted,
                    formula=fit_power_law(formula).exponent,
                    fit=fit_power_law({x: g["regret"] for x, g in groups.items()}),
                    points={
                        x: float(np.median(g["regret"])) for x, g in groups.items()
                    },
                    worst=max(filter(isfinite, ratios), default=nan),
                )
            )
    return found
