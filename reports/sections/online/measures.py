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
- The same with the noise of a tree (section 4.2, `TREE`), private as a whole, at
  log(m/delta) times that square of epsilon, for "a polylogarithmic factor": its steps
  have that noise, or less. Predicted: the same, up to logarithms.
- Algorithm 4, calibrated, at delta = 1/(2 m^2) and an epsilon so large that OPT is many
  times the first guess: Theorem 18 wants OPT > k sqrt d log^2(m/delta)/epsilon^2, which
  at its epsilon < 0.1 takes streams of millions of rows. Predicted: the same. In OPT
  also at epsilons of 1 and 10, with d = 4, where longer streams are cheap.

In m, with OPT = m/2, the first bound is of order sqrt(m log m); for the second, m has
its logarithm to the power 5/2. `formula` is the printed bound with 1 for its O, so that
its exponent on the grid has these logarithms in it; and, for Algorithm 4, the epochs
that there are. Its proof counts each of them at most as much as the last. With g the
first guess they add up to sum_j sqrt(2^j g), in proportion to sqrt(OPT + g) - sqrt g,
which is sqrt OPT times sqrt(1 + g/OPT) - sqrt(g/OPT): `_epochs`.
"""

from collections.abc import Mapping
from math import log, nan, sqrt
from typing import Any

import numpy as np

from dpaudit.algorithms import entry
from dpaudit.algorithms.online.regret import (
    best_fixed_reward,
    corollary_17_bound,
    follow_the_leader,
    proven_regret_bound,
    regret,
    theorem_18_bound,
)
from dpaudit.algorithms.online.tree_aggregation import FollowPerturbedLeader
from dpaudit.arrays import Array
from dpaudit.claims import GaussianDP
from dpaudit.errors import InputError
from dpaudit.reports.experiment import Cell, Record, repeated
from dpaudit.streams import stream

LEADER = "follow-the-leader"
TREE, FACTORISED = "online-pca", "online-pca-factorised"
_PRINTED = (TREE, "online-pca-doubling", "follow-perturbed-leader")
CORRECTED_ONLINE = (*_PRINTED, FACTORISED)
PUBLISHED_ONLINE = tuple(f"{name}-published" for name in _PRINTED)
ALGORITHM_3, ALGORITHM_4 = "follow-perturbed-leader-published", "online-pca-doubling"
GAUSSIAN, RIVALS = "gaussian", "rivals"

_SHARE = 0.6  # of the variance that is in the subspace
_WORK = 2**23  # numbers in the bases of the releases that are drawn at once
_EPSILONS = np.geomspace(1e-3, 10.0, 200)


def online_regret(cell: Cell, work: int = _WORK) -> list[Record]:
    """Return the regret of several releases on one stream.

    The point and the options give ``stream`` (`GAUSSIAN` or `RIVALS`), ``rows``,
    ``dimension``, ``n_components`` and ``length``, the m that is declared (by default
    ``rows``); ``epsilon`` and ``delta``, or ``tuned``, which takes those of the head of
    this module. With `work` numbers in the bases at most, releases are drawn at once.

    Columns: ``repetition``, ``regret``; and the same in all: ``optimum``; ``nothing``,
    the regret of a random subspace; ``epsilon_used``; ``proven``, a bound on the mean
    with its constants; ``formula``, the paper's; ``guess``, the first of Algorithm 4
    (NaN where there is none).
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
        "guess": nan,
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
        elif cell.mechanism == TREE and setting.get("tuned", False):
            bound = corollary_17_bound(optimum=optimum, **sizes)
            same["formula"] = bound * sqrt(log(length / delta))
        elif cell.mechanism.startswith(ALGORITHM_4):
            bound = theorem_18_bound(optimum=optimum, delta=delta, **sizes)
            same["guess"] = mechanism.plan(d).guess
            same["formula"] = bound * _epochs(same["guess"] / optimum)
        rng, width = cell.rng(), max(1, work // (m * d * k))
        parts = [
            regret(rows, mechanism.draw(rows, min(width, cell.size - first), rng=rng))
            for first in range(0, cell.size, width)
        ]
        found = np.concatenate(parts)
    return repeated(cell, regret=found, **same)


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
    if name in (ALGORITHM_3, TREE):
        size = float(setting["n_components"]) * sqrt(float(setting["dimension"]))
        logarithms = log(length) * (log(length**2) if name == TREE else 1.0)
        return sqrt(size * logarithms / optimum), 1 / length
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
            delta=float(step.delta_at(epsilon)),
        )
        for epsilon in _EPSILONS
    ]
    return min(optimum, *bounds)
