"""Mechanisms for private PCA side by side on rows: what they keep, and cost.

What is measured is in `dpaudit.reports.comparison.measures`. None of it is private. To
choose a mechanism by it is a release of its own, which no claim counts (`WARNING`).
The figures have each measure against epsilon, a line for a mechanism.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from dpaudit.audit import Budget, Run
from dpaudit.audit.settings import refuse
from dpaudit.errors import InputError
from dpaudit.neighbours import Relation
from dpaudit.reports import lines, plots
from dpaudit.reports.comparison.page import (
    SHOWN,
    MechanismComparison,
    ShownMeasure,
    write_page,
)
from dpaudit.reports.comparison.plan import comparison_of, points
from dpaudit.reports.comparison.problem import EXACT, PCAProblem, problem_of
from dpaudit.reports.experiment import CONFIDENCE
from dpaudit.reports.lines import Curve
from dpaudit.reports.runner import carry_out
from dpaudit.reports.store import STORE, WorkStore, staging
from dpaudit.reports.words import listed, sentences, setting
from dpaudit.subspace import top_components
from dpaudit.validation import check_count, check_positive

__all__ = ["compare", "compared"]


def compare(
    mechanisms: Sequence[str] = (), *, output: Path | None = None, **options: Any
) -> pd.DataFrame:
    """Compare mechanisms for private PCA on rows.

    ``mechanisms``: names of the catalogue and ``module:object`` of your own
    (`dpaudit.reports.comparison.candidates`). Without a name of the catalogue, those
    stand beside yours that are `suitable`. ``output``: a folder for the page,
    ``index.html``, with ``compare.csv``, the figures and the witnesses. ``**options``:
    of `compared`.

    Raises `InputError` if an argument is not allowed, or no mechanism could be
    compared.

    Returned is a table: ``mechanism``, ``epsilon``, ``measure`` (one of `MEASURES`),
    ``median``, ``low``, ``high`` (the quartiles over releases), ``seconds`` (the median
    time of a release with its components), ``verdict``: ``REFUTED``, ``NOT_REFUTED``,
    ``NO_VERDICT``, ``not audited: ...`` with the reason; ``failed: ...`` with NaN where
    the mechanism could not be compared.

    >>> from dpaudit.reports import compare
    >>> table = compare(
    ...     ["goe-gaussian"], epsilons=[1.0], repetitions=3, budget=20
    ... )
    >>> table[["mechanism", "measure", "verdict"]].iloc[0].tolist()
    ['goe-gaussian', 'captured_variance', 'NOT_REFUTED']
    """
    return compared(mechanisms, output=output, **options).table


def compared(
    mechanisms: Sequence[str] = (),
    *,
    own: Mapping[str, Any] | None = None,
    data: ArrayLike | Path | None = None,
    source: str = "data",
    row_norm: float | None = None,
    n_components: int | None = None,
    epsilons: Sequence[float] = (0.5, 1.0, 2.0),
    delta: float = 1e-5,
    relation: Relation | str = Relation.ADD_REMOVE,
    repetitions: int = 50,
    budget: Budget | int = 1000,
    seed: int = 0,
    output: Path | None = None,
    run: Run = Run(),
) -> MechanismComparison:
    """Do what `compare` does, and return all that was found.

    ``own``: further mechanisms of your own, by the names that they are to have.
    ``data``: array_like, shape (n, d); by default scikit-learn's digits, which are
    public. Or the path of a Parquet, ``.npy`` or ``.zarr`` file of any size, read once,
    in blocks, for mechanisms that need the second moment alone. ``source``: what to
    call the data. ``row_norm``: public bound on the length of a row: longer ones are
    scaled down; by default 1, and 64 for the digits.
    ``n_components``: k; by default half of the columns, and 10 at most. ``delta``: in
    [0, 1). ``repetitions``: releases behind every median. ``budget``: of each audit;
    only its ``releases`` can be chosen. ``seed``: >= 0. The same seed gives the same
    results, but for the times. ``run``: its ``executor``, ``store`` and ``progress``;
    no result depends on them. The store is a path: where finished work is kept and
    found again; by default ``work.db`` in `output`. ``progress`` is called with how far
    the work is.

    Raises `InputError` as `compare` does.
    """
    budget = Budget.of(budget)
    refuse("compare", budget, "seconds", "refine", "stop")
    refuse("compare", run, "attacks", "should_stop", "name", "reference")
    if not isinstance(run.store, str | Path | None):
        raise InputError(f"compare takes a path for a store, got {run.store!r}")
    problem = problem_of(data, source, row_norm, n_components, delta, relation)
    settings: dict[str, Any] = {
        "repetitions": check_count("repetitions", repetitions),
        "samples": budget.releases,
        "confidence": CONFIDENCE,
        "seed": check_count("seed", seed, minimum=0),
        "public": data is None,
        "mechanisms": list(mechanisms),
        "own": list(own or {}),
        "epsilons": epsilon_list(epsilons),
    }
    kept = None
    if output is not None or run.store is not None:
        kept = WorkStore(Path(run.store or Path(output or "") / STORE))
    if output is not None:
        with staging(Path(output)):  # refused before the work begins
            pass
    if kept is not None:
        kept.prepare()
    notes, sent = _notes(problem), run.executor is not None
    progress: Any = run.progress  # of jobs, here
    work, failed = points(
        own or {}, problem, settings, notes, stored=kept is not None, sent=sent
    )
    found: dict[str, Any] = {}
    for where in dict.fromkeys((kept, None)):
        found |= carry_out(
            [
                job
                for each in work
                for job in each.jobs.values()
                if (kept if each.told_apart else None) is where
            ],
            store=where,
            executor=run.executor,
            progress=progress,
            go_on=True,
        )
    result = comparison_of(work, found, failed, problem, settings, notes)
    if output is not None:
        write_page(result, comparison_figures(result), Path(output))
    return result


def epsilon_list(epsilons: Sequence[float]) -> list[float]:
    """Return epsilons in ascending order, each once.

    Raises `InputError` if there is none, or one is not a finite number > 0.

    >>> epsilon_list([2, 0.5, 2])
    [0.5, 2.0]
    """
    if not len(epsilons):
        raise InputError("epsilon must be one number or more, got none")
    return sorted({check_positive("epsilon", each) for each in epsilons})


def _notes(problem: PCAProblem) -> list[str]:
    """Return what is to be known of the rows, a sentence each."""
    k = problem.setting.n_components
    basis = top_components(problem.scaled_moment, k)
    values = np.linalg.eigvalsh(problem.moment)[::-1]
    whole = k == len(values)
    return sentences(
        *("comparison", "of_rows"),
        scaled=problem.scaled,
        rows=problem.shape[0],
        norm=problem.setting.row_norm,
        left=problem.measure(basis[np.newaxis])["captured_variance"][0],
        components=k,
        whole=whole,
        unique=whole or values[k - 1] - values[k] > EXACT * values[0],
    )


_LABEL_GAP, _KEY_STEP, _TICK_GAP = 18.0, 24, 26.0  # CSS pixels
_LONGEST = 34  # characters of a name in a figure


def _drawing(
    found: MechanismComparison, narrow: bool, measure: str
) -> tuple[Figure, str]:
    """Draw the medians of a measure against epsilon, with quartile bands.

    A claim counts as refuted if it was at any epsilon, see
    `dpaudit.reports.lines.Verdicts`. On a phone the names stand below instead of at the
    ends of the lines.
    """
    shown, curves = SHOWN[measure], _curves(found, measure)
    below = _KEY_STEP * len(curves) if narrow else 0
    height = 330 + below if narrow else max(430, int(_LABEL_GAP * len(curves)) + 120)
    names = [curve.line.label for curve in curves]
    right = 16.0 if narrow else 32 + plots.names_width(names)
    around: Any = {"left": 62, "right": right, "top": 42, "bottom": 52 + below}
    figure, (box,) = lines.sheet(height, narrow=narrow)
    axes = plots.panel(figure, box, **around)
    _scales(axes, shown, curves)
    ends = [_drawn(axes, shown, curve) for curve in curves]
    heading = fill(shown.heading, 44) if narrow else shown.heading
    plots.write(axes, heading, (8, height + box[1] - 26), weight="bold", va="center")
    if narrow:
        named = [line for line, _ in sorted(ends, key=lambda end: -end[1][1])]
        lines.list_below(axes, named, box[1] + 14, _KEY_STEP)
    else:
        lines.name_ends(axes, ends, _LABEL_GAP, size=12.5)
    lines.key(figure, (curve.line.dash for curve in curves), narrow=narrow)
    return figure, " ".join(_sentence(shown, curve) for curve in curves)


def comparison_figure(
    found: MechanismComparison, measure: str, *, narrow: bool = False
) -> str:
    """Return the figure of a measure as SVG."""
    name, title = _name(measure), f"{SHOWN[measure].heading}, by epsilon"
    return plots.picture(name, title, measure=measure)(_drawing)(found, narrow)


def comparison_figures(found: MechanismComparison) -> dict[str, list[str]]:
    """Return the figures of all measures that have anything to draw, by name."""
    return {
        _name(measure): [
            comparison_figure(found, measure, narrow=narrow) for narrow in (False, True)
        ]
        for measure in SHOWN
        if _curves(found, measure)
    }


def _name(measure: str) -> str:
    return f"compare-{measure.replace('_', '-')}"


def _curves(found: MechanismComparison, measure: str) -> list[Curve]:
    verdicts = lines.Verdicts.of(pd.DataFrame.from_records(found.audits))
    known = found.table[found.table["measure"] == measure].dropna(subset="median")
    curves = []
    for place, name in enumerate(found.names):
        own = known[known["mechanism"] == name].sort_values("epsilon", kind="stable")
        if len(own):
            quartiles = own[["low", "median", "high"]].to_numpy(float).T
            line = verdicts.line(
                name,
                place,
                name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}",
            )
            said, epsilon = name + verdicts.said(name), own["epsilon"].to_numpy(float)
            curves.append(Curve(said, line, epsilon, quartiles))
    return curves


def _scales(axes: Axes, shown: ShownMeasure, curves: Sequence[Curve]) -> None:
    values = shown.height(np.concatenate([c.quartiles.ravel() for c in curves]))
    low, high = float(values.min()), float(values.max())
    margin = 0.06 * (high - low) or 0.1
    axes.set_ylim(low - margin, high + margin)
    texts = {t: f"{shown.scale * t:,g}{shown.unit}" for t in shown.ticks}
    ticks = {float(shown.height(t)): text for t, text in texts.items()}
    ticks = {t: s for t, s in ticks.items() if low - margin <= t <= high + margin}
    if len(ticks) < 2:
        medians = [float(m) for c in curves for m in c.quartiles[1]]
        ends = min(medians), max(medians)
        ticks = {float(shown.height(m)): shown.text(m) for m in ends}
    plots.tick(axes, "y", list(ticks), ticks.__getitem__, _TICK_GAP)
    epsilons = sorted({float(e) for curve in curves for e in curve.x})
    axes.set_xscale("log")
    span = (epsilons[-1] / epsilons[0]) ** 0.03 * (1.5 if len(epsilons) == 1 else 1.0)
    axes.set_xlim(epsilons[0] / span, epsilons[-1] * span)
    plots.tick(axes, "x", epsilons, setting, 1.4 * _TICK_GAP)
    plots.finish(axes, "claimed ε", pad=7)


def _drawn(
    axes: Axes, shown: ShownMeasure, curve: Curve
) -> tuple[lines.Line, tuple[float, float]]:
    """Draw a curve; return its line, and where it ends."""
    if len(curve.x) == 1:
        low, _, high = shown.height(curve.quartiles)
        axes.vlines(curve.x, low, high, color=curve.line.colour, alpha=0.4, linewidth=6)
    places = [f"ε = {setting(float(epsilon))}" for epsilon in curve.x]
    return curve.draw(axes, places, shown.text, shown.height)


def _sentence(shown: ShownMeasure, curve: Curve) -> str:
    points = [
        f"{shown.text(float(value))} at epsilon {setting(float(epsilon))}"
        for epsilon, value in zip(curve.x, curve.quartiles[1], strict=True)
    ]
    return f"{curve.said}: {listed(points)}."
