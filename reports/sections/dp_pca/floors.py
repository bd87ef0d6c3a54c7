"""Errors on the hard instances of Theorems 5.3 and 5.4, and the floor below them.

Source: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and differentially private
PCA*, NeurIPS 2022, Theorems 5.3 and 5.4. For every n the instance is the hardest of its
kind for that n, and so is the floor, with the constants of the proof in
`dpaudit.reports.sections.dp_pca.packings`: a bound from below on the mean of the error
over the laws of the instance, for any (epsilon, delta)-DP estimate. In each repetition
one of the laws is drawn, the same for all mechanisms, so that the mean of the errors
estimates that mean.
"""

from collections.abc import Collection, Mapping
from math import log, nan, sin, sqrt
from typing import TypeAlias

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import t as student

from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.reports import plots
from dpaudit.reports.experiment import Cell, Record
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.dp_pca.figures import draw_panels
from dpaudit.reports.sections.dp_pca.findings import Panel
from dpaudit.reports.sections.dp_pca.measures import DEFAULT, check_range, released
from dpaudit.reports.sections.dp_pca.packings import (
    GaussianPacking,
    HeavyPacking,
    Packing,
    sign_packing,
)
from dpaudit.reports.sections.dp_pca.sources import RowSource
from dpaudit.reports.words import count, number, signed
from dpaudit.streams import stream
from dpaudit.subspace import largest_principal_angle_sine

__all__ = ["FLOORS", "floor_errors", "floor_notes"]

FLOORS = {
    "dp-pca-floor-gaussian": ("Hard Gaussian rows (Theorem 5.3)", "Theorem 5.3"),
    "dp-pca-floor-heavy": ("Rarely heavy rows (Theorem 5.4)", "Theorem 5.4"),
}

_KINDS: Mapping[str, type[GaussianPacking] | type[HeavyPacking]] = {
    "gaussian": GaussianPacking,
    "heavy": HeavyPacking,
}
_ALARM = 0.001
_Ratios: TypeAlias = dict[tuple[str, float], float]


def floor_errors(cell: Cell) -> list[Record]:
    """Return the error of a release on rows of a law of the hardest instance.

    The point and the options give ``n``, ``d``, ``epsilon``, ``delta`` and ``instance``
    (``"gaussian"`` or ``"heavy"``).

    Returns
    -------
    list of dict
        ``repetition``, ``error`` (NaN for bottom), ``floor``, and ``blind``: the error
        of the first axis, which is close to v in all laws.
    """
    setting = {**cell.options, **cell.point}
    check_range(cell.mechanism, setting)
    n, d = int(setting["n"]), int(setting["d"])
    epsilon, delta = setting["epsilon"], setting["delta"]
    packing = _hardest(setting["instance"], d, n, epsilon, delta)
    floor = packing.error(n, epsilon, delta)
    directions = sign_packing(d - 1, packing.size, rng=np.random.default_rng(0))
    rng, found = cell.rng(), []
    for i in range(cell.first, cell.first + cell.size):
        source = _source(packing, directions, n, cell.seed, (n, d, i))
        vector = released(cell.mechanism, {**setting, "steps": DEFAULT}, source, rng)
        error = nan
        if np.isfinite(vector).all():
            truth = source.truth[:, np.newaxis]
            error = float(largest_principal_angle_sine(vector[:, np.newaxis], truth))
        found.append(
            {
                "repetition": i,
                "error": error,
                "floor": floor,
                "blind": sin(packing.angle),
            }
        )
    return found


def _hardest(kind: str, d: int, n: int, epsilon: float, delta: float) -> Packing:
    if kind not in _KINDS:
        raise InputError(f"instance must be one of {sorted(_KINDS)}, got {kind!r}")
    return _KINDS[kind].hardest(d, n, epsilon, delta)


def _source(
    packing: Packing, directions: Array, n: int, seed: int, key: tuple[int, ...]
) -> RowSource:
    """Return rows of one of the laws, each as likely as any other."""
    direction = directions[stream(seed, *key).integers(len(directions))]

    def draw(size: int, rng: np.random.Generator) -> Array:
        return packing.draw(direction, size, rng=rng)

    square = float(np.trace(packing.covariance(direction)))
    return RowSource(n, packing.component(direction), square, draw, seed, key)


def _floor(table: pd.DataFrame) -> dict[float, float]:
    first = table.groupby("n", sort=True)["floor"].first()
    return {float(n): float(value) for n, value in first.items()}


def floor_notes(
    tables: Mapping[str, pd.DataFrame], refuted: Collection[str]
) -> list[str]:
    """Return how far above the floors errors are, and whether any is below.

    An error counts as below where the upper end of an interval for its mean is, of
    level 1 - 0.001/2 for each by the law of Student. Where a release was bottom there
    is no mean to compare, and claims that were refuted owe nothing.
    """
    notes = []
    for name, (_, theorem) in FLOORS.items():
        table = tables[name]
        floor, ratios, below = _floor(table), _Ratios(), []
        for (who, n), own in table.groupby(["mechanism", "n"], sort=False):
            errors = own["error"].to_numpy(dtype=np.float64)
            if who in refuted or np.isnan(errors).any() or not floor[n] > 0:
                continue
            ratios[who, n] = float(errors.mean()) / floor[n]
            if len(errors) > 1:
                away = errors.std(ddof=1) / sqrt(len(errors))
                end = errors.mean() + student.isf(_ALARM / 2, len(errors) - 1) * away
                if end < floor[n]:
                    below.append(f"{who} at n = {count(n)}")
        if not ratios:
            notes.append(f"On the instance of {theorem} there is no mean to compare.")
            continue
        (who, n), least = min(ratios.items(), key=lambda item: item[1])
        most = max(ratios.values())
        text = (
            f"On the hard instance of {theorem} mean errors are {number(least)} to "
            f"{count(most) if most >= 1000 else number(most)} times the floor; nearest "
            f"is {who}, at n = {count(n)}"
        )
        blind = (table["blind"] / table["floor"]).max()
        text += (
            " (the first axis, an estimate that looks at no row, errs by "
            f"{number(blind)} times the floor at most)"
        )
        ends = sorted(floor)
        if len(ends) > 1 and min(floor.values()) > 0:
            slope = log(floor[ends[-1]] / floor[ends[0]]) / log(ends[-1] / ends[0])
            text += f". The floor falls like n to the power {signed(slope)}"
        notes.append(f"{text}.")
        if below:
            notes.append(
                f"Below it is the mean of {', '.join(below)}: such a claim of privacy, "
                "or the bound, is false."
            )
        else:
            notes.append(
                "No mean is below the floor: one would contradict its claim, or the "
                "bound."
            )
    return notes


@plots.picture("dp-pca-floors", "Error on hard instances, and floors below them")
def draw_floors(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw mean errors against n on each hard instance, above the floor."""
    shown = [
        Panel(heading, "n", heading, results[name], means=True)
        for name, (heading, _) in FLOORS.items()
    ]
    floors = {panel.heading: _floor(panel.table) for panel in shown}
    return draw_panels(results, shown, narrow, floors)
