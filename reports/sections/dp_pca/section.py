"""The section that carries out what Liu, Kong, Jain and Oh, NeurIPS 2022, describe.

Beside the mechanisms of the paper and noise on the covariance there are two that go
beyond it, `two-stage-pca` and `dp-pca-tuned`, at (1, 1e-6) for a replaced row, with
their defaults: Gaussian rows against n, for d = 20 and 100, and rows near a line
against sigma: those of Example 4.1, and Gaussian ones.

Figure 1 of the paper is the mean of a minibatch of gradients beside their range: rows
in the plane, Gaussian (Remark 3.4) and of Example 4.1, and 400 gradients x x^T w. The
print names neither w nor the laws' numbers. Here w is half-way between v and what is
orthogonal to it; eigenvalues are 1 and 1/4, and sigma is `SPREAD`. The range is the
largest distance between two gradients, in proportion to which DP-PCA adds noise; what
clips gradients adds it in proportion to their length.
"""

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.spatial.distance import pdist

from dpaudit.datasets import spiked_gaussian
from dpaudit.datasets.streaming_models import signal_in_noise
from dpaudit.errors import InputError
from dpaudit.reports import plots, svg
from dpaudit.reports.experiment import Cell, Record
from dpaudit.reports.sections import Results
from dpaudit.reports.sections.dp_pca import findings, floors, measures
from dpaudit.reports.svg import INK, SERIES
from dpaudit.reports.tables import refuted_mechanisms
from dpaudit.reports.words import plain, sentences, setting, signed

GRADIENTS = "dp-pca-gradients"
GAUSSIAN, NEAR_A_LINE = "gaussian", "example-4.1"
SPREAD = 0.05

_V = np.array([[1.0], [0.0]])
_W = np.array([1.0, 1.0]) / sqrt(2)
_HEADINGS = {GAUSSIAN: "Gaussian rows", NEAR_A_LINE: f"Example 4.1, σ = {SPREAD:g}"}


def minibatch_gradients(cell: Cell) -> list[Record]:
    """Return gradients x x^T w of rows in the plane, ``along`` v and ``across`` it."""
    rng, count = cell.rng(), int(cell.options["gradients"])
    if cell.mechanism == GAUSSIAN:
        data = spiked_gaussian(count, 2, spikes=[0.75], noise=0.5, basis=_V, rng=rng)
    elif cell.mechanism == NEAR_A_LINE:
        data = signal_in_noise(count, 2, noise=SPREAD, direction=_V[:, 0], rng=rng)
    else:
        raise InputError(f"no such law: {cell.mechanism!r}")
    found = (data.rows @ _W)[:, np.newaxis] * data.rows
    return [{"along": float(x), "across": float(y)} for x, y in found]


def gradient_notes(table: pd.DataFrame) -> list[str]:
    """Return how long the mean is beside the range, and whether that is as printed."""
    found = []
    for law in (GAUSSIAN, NEAR_A_LINE):
        points = table[table["mechanism"] == law][["along", "across"]].to_numpy()
        length = float(np.linalg.norm(points.mean(axis=0)))
        found.append((length, float(pdist(points).max())))
    gaussian, example = found
    told = {"gaussian": gaussian, "example": example, "spread": SPREAD}
    return sentences("dp_pca", "gradient_notes", gradients=len(table) // 2, **told)


@plots.picture(GRADIENTS, "Mean gradient beside the range of a minibatch of gradients")
def draw_gradients(results: Results, narrow: bool) -> tuple[Figure, str]:
    """Draw the gradients as dots and their mean as an arrow, each law on its scale."""
    table = results[GRADIENTS]
    figure = plots.canvas(660 if narrow else 360, narrow=narrow)
    around: dict[str, Any] = {"left": 30.0, "right": 20.0, "top": 44.0, "bottom": 46.0}
    places = plots.boxes(figure, 2)
    for box, (law, heading) in zip(places, _HEADINGS.items(), strict=True):
        axes = plots.panel(figure, box, heading, **around)
        points = table[table["mechanism"] == law][["along", "across"]].to_numpy()
        reach = 1.05 * float(np.abs(points).max())
        across, up = axes.get_window_extent().size
        half = 1.25 * reach * up / across / 2  # as far up as along
        axes.set(xlim=(-0.25 * reach, reach), ylim=(-half, half))
        axes.plot(*points.T, "o", color=SERIES[0], markersize=3, alpha=0.5)
        tip = points.mean(axis=0)
        arrow = {"arrowstyle": "-|>", "color": INK, "linewidth": 2}
        axes.annotate("", tip, (0.0, 0.0), arrowprops=arrow)
        plots.finish(axes, "along v")
        axes.grid(axis="x")
        there = "{} along v, {} across".format(*map(signed, tip))
        svg.told(axes, tip[:1], tip[1:], [f"{heading}, mean gradient: {there}"])
    return figure, " ".join(gradient_notes(table))


_ORDER = (
    measures.TWO_STAGE,
    measures.OWN_PARTS,
    measures.DP_PCA,
    measures.MINIBATCH_OJA,
    measures.GOE,
)


def stage_notes(tables: Mapping[str, pd.DataFrame]) -> list[str]:
    """Return how far the two are from noise on the covariance, and their bottoms."""
    ratios, every = [], pd.concat([tables[name] for name in findings.STAGES])
    for name, (variable, _, where) in findings.STAGES.items():
        found = findings.Panel(name, variable, where, tables[name]).medians
        parts = []
        for own in (measures.TWO_STAGE, measures.OWN_PARTS):
            beside = found[measures.GOE]
            some = [m / beside[x] for x, m in found[own].items() if beside.get(x, 0)]
            if some:
                ends = (setting(float(f"{f(some):.2g}")) for f in (min, max))
                parts.append((" to ".join(dict.fromkeys(ends)), own))
        ratios += [(where, parts)] if parts else []
    lost = []
    for own in (measures.TWO_STAGE, measures.OWN_PARTS):
        errors = every["error"][every["mechanism"] == own]
        lost.append((own, errors.isna().sum(), len(errors)))
    return sentences(
        "dp_pca", "stage_notes", ratios=ratios, goe=measures.GOE, lost=lost
    )


def stage_lines(*tables: pd.DataFrame) -> list[str]:
    """Return the medians as lines of text, bottom as such, and the sentences."""
    lines = []
    for (variable, _, where), table in zip(
        findings.STAGES.values(), tables, strict=True
    ):
        found = findings.Panel(where, variable, where, table).medians
        places = sorted(table[variable].unique())
        lines.append(f"{where}, {variable} = {', '.join(map(plain, places))}:")
        for name in _ORDER:
            own = found[name]
            shown = [f"{own[x]:.2g}" if x in own else "bottom" for x in places]
            lines.append(f"  {name:16}" + "".join(f"{text:>10}" for text in shown))
    return [*lines, *stage_notes(dict(zip(findings.STAGES, tables, strict=True)))]


def context(results: Results) -> dict[str, Any]:
    rates, example = (
        findings.panels(results, each) for each in (findings.RATES, findings.EXAMPLE)
    )
    refuted = refuted_mechanisms(results[findings.CLAIMS])
    return {
        "head": findings.head(example),
        "gradient_notes": gradient_notes(results[GRADIENTS]),
        "rate_notes": findings.rate_notes(rates, refuted),
        "example_notes": findings.example_notes(example, refuted),
        "floor_notes": floors.floor_notes(results, refuted),
        "stage_notes": stage_notes(results),
        "claim_notes": findings.claim_notes(results[findings.CLAIMS]),
        "ordered": measures.ORDERED,
        "base": results.options("dp-pca-d")["n"],
    }


NOTES = {
    (GRADIENTS,): gradient_notes,
    (findings.CLAIMS,): findings.claim_notes,
    tuple(findings.STAGES): stage_lines,
}
