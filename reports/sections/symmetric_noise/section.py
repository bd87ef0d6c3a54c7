"""The section that repeats the experiments of Imtiaz and Sarwate, ICASSP 2016."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpaudit.datasets import published
from dpaudit.reports import lines, plots
from dpaudit.reports.experiment import Experiment
from dpaudit.reports.lines import Curve, Line, Verdicts, by_mechanism, close, sheet
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.sections import Results, Size, all_sections
from dpaudit.reports.sections.symmetric_noise import measures
from dpaudit.reports.sections.utility.measures import RANDOM_SUBSPACE
from dpaudit.reports.svg import INK, MUTED
from dpaudit.reports.tables import quartiles, refuted_mechanisms
from dpaudit.reports.words import (
    count,
    delta,
    listed,
    percent,
    sentences,
    setting,
    short,
)

PUBLIC = "-public"
"""After the name of a dataset: about a public centre, rows by their own lengths."""

_HIGH = 310  # CSS pixels of a panel
_VARIABLES = {"epsilon": ("ε", setting, "claimed ε"), "n": ("n", count, "rows n")}
_CHANCE = Line("random subspace", MUTED, lines.DOTTED)


def tables_of(results: Results, variable: str) -> dict[str, pd.DataFrame]:
    """Return what there is by a variable, by dataset."""
    start = f"sn-{variable}-"
    return {
        name.removeprefix(start): results[name]
        for name in results.tables
        if name.startswith(start)
    }


def chosen_delta(table: pd.DataFrame, at: float) -> pd.DataFrame:
    """Return the approximate claims at one delta, with all pure ones."""
    return table[table["delta"].isin((0.0, at))]


_SHARE = "Captured variance, as a share of that of PCA, by"


@plots.picture("symmetric-noise-epsilon", f"{_SHARE} ε", variable="epsilon")
@plots.picture("symmetric-noise-rows", f"{_SHARE} n", variable="n")
def shares(results: Results, narrow: bool, variable: str) -> tuple[Figure, str]:
    """Draw Figures 1 and 2: the captured share, a panel for each delta."""
    verdicts = Verdicts.of(results["privacy-wall"])
    letter, words, _ = _VARIABLES[variable]
    shown = [
        (dataset, at, chosen_delta(table, at))
        for dataset, table in tables_of(results, variable).items()
        for at in results.options(f"sn-{variable}-{dataset}")["deltas"]
    ]
    names = dict.fromkeys(name for *_, table in shown for name in table["mechanism"])
    drawn = {n: verdicts.line(n, place, short(n)) for place, n in enumerate(names)}
    named = [*drawn.values(), _CHANCE]
    figure, boxes = sheet(
        _HIGH * len(shown), len(shown), across=1, listed=named, narrow=narrow
    )
    right = 20 if narrow else 214
    around: dict[str, Any] = {"left": 52, "right": right, "top": 58, "bottom": 50}
    sentences = []
    for box, (dataset, at, table) in zip(boxes, shown, strict=True):
        heading = f"{_told(dataset)}, δ = {delta(at)}"
        axes = plots.panel(figure, box, heading, **around)
        found = by_mechanism(table, variable, "captured_share")
        curves = [
            Curve.of(name + verdicts.said(name), line, found[name])
            for name, line in drawn.items()
        ]
        chance = quartiles(table, variable, "random_share")
        curves.append(Curve.of(_CHANCE.label, _CHANCE, chance))
        _scales(axes, sorted(chance), variable)
        axes.axhline(1.0, color=INK, linewidth=1)
        ends = []
        for curve in curves:
            places = [f"{letter} = {words(x)}" for x in curve.x]
            ends.append(curve.draw(axes, places, percent))
            first, last = map(percent, curve.quartiles[1, [0, -1]])
            sentences.append(f"{heading}, {curve.said}: {first} to {last}.")
        if not narrow:
            lines.name_ends(axes, ends)
    close(figure, named, narrow=narrow)
    return figure, " ".join(sentences)


def _told(dataset: str) -> str:
    return dataset.replace(PUBLIC, ", public centre")


def _scales(axes: Axes, places: list[float], variable: str) -> None:
    _, words, label = _VARIABLES[variable]
    axes.set(xscale="log", xlim=(places[0], places[-1]), ylim=(0, 1.02))
    marks = plots.decades(places[0], places[-1] * 1.001, (1, 2, 5))
    plots.tick(axes, "x", marks, words, 52.0)
    plots.tick(axes, "y", [0, 0.2, 0.4, 0.6, 0.8, 1], lambda share: f"{share:.0%}")
    plots.finish(axes, label)


PUBLISHED = "symmetric-noise"
AG = "analyze-gauss-published"
PPM, PPM_PURE = "power-method-published", "power-method-laplace-published"
PPCA = "exponential-pca-gibbs"
PURE = "symmetrised-wishart"
_PAPERS = (AG, PPM, PPM_PURE, PPCA, PUBLISHED)
PROVEN = "goe-gaussian"
MECHANISMS = (*_PAPERS, PURE, PROVEN, "wishart-approximate")
_TINY_DELTA = 1e-6

DATASETS, _EFFORTS = (measures.DECLARED[each] for each in ("datasets", "efforts"))
_NAMES = {
    "covertype": ("Covertype", published.COVERTYPE_URL),
    "mnist": ("MNIST", published.MNIST_MIRROR),
}


def missing(size: Size) -> list[str]:
    """Return the datasets of a size whose files are not on this machine."""
    return [name for name in size.paper_datasets if not measures.is_there(name)]


def _wanted(dataset: str) -> str:
    """Return which files a dataset is in, where they are, and their hashes."""
    name, url = _NAMES[dataset]
    files = (
        f"{file}, SHA-256 {digest}" for file, digest in measures.NEEDED[dataset].items()
    )
    return f"{name} from {url} ({'; '.join(files)})"


def programmed(size: Size) -> tuple[Experiment, ...]:
    found = []
    paper = "Imtiaz, Sarwate, ICASSP 2016"
    for dataset in filter(measures.is_there, size.paper_datasets):
        options = {**DATASETS[dataset], "dataset": dataset, "row_norm": 1.0}
        options["public"] = False
        options["n"] = most = min(options["n"], size.paper_rows)
        public = {**options, "public": True, "deltas": (_TINY_DELTA,)}
        epsilons = np.geomspace(0.1, 10.0, size.paper_points)
        rows = np.unique(np.geomspace(most / 32, most, size.paper_points).round())
        by_epsilon = ("epsilon", f"by epsilon, {dataset}", "Fig. 1", epsilons)
        for (variable, title, figure, values), end, chosen in (
            (by_epsilon, "", options),
            (by_epsilon, PUBLIC, public),
            (("n", f"by rows, {dataset}", "Fig. 2", rows), "", options),
        ):
            found.append(
                Experiment(
                    f"sn-{variable}-{dataset}{end}",
                    f"Captured variance {title}{_told(end)}",
                    source=f"{paper}, {figure}",
                    measure=measures.captured,
                    mechanisms=MECHANISMS,
                    grid={variable: tuple(map(float, values))},
                    repetitions=size.paper_draws,
                    options=chosen,
                    effort=_EFFORTS[dataset],
                )
            )
        found.append(
            Experiment(
                f"sn-errors-{dataset}",
                f"Errors of a classifier, {dataset}",
                source=f"{paper}, Table 1",
                measure=measures.errors,
                mechanisms=(BASELINE, *MECHANISMS, RANDOM_SUBSPACE),
                grid={"n": measures.TRAINING},
                repetitions=size.paper_splits,
                options={
                    "dataset": dataset,
                    "n_components": options["n_components"],
                    "delta": options["deltas"][0],
                },
                effort=_EFFORTS[dataset] / 5,
            )
        )
    return tuple(found)


def verdicts(table: pd.DataFrame, wall: pd.DataFrame, dataset: str) -> list[str]:
    """Hold what the paper says of its Figure 1 against a table, at the first delta.

    Of medians; nothing is said of a difference that is smaller than a share of 0.01.
    """
    at = DATASETS[dataset]["deltas"][0]
    groups = chosen_delta(table, at).groupby(["mechanism", "epsilon"], sort=True)
    medians = groups["captured_share"].median().unstack("epsilon")
    epsilons, own = medians.columns, medians.loc[PUBLISHED]
    rivals = medians.loc[[PPM, PPM_PURE, PPCA]].max()
    apart = np.flatnonzero(own < medians.loc[AG] - 0.01)
    least = _nearest_one(epsilons)
    return sentences(
        *("symmetric_noise", "verdicts"),
        **{"dataset": dataset, "delta": at, "pure": PURE, "least": _rounded(least)},
        behind=list(map(_rounded, epsilons[own < rivals - 0.01])),
        near=list(map(_rounded, epsilons[apart[-1] + 1 if len(apart) else 0 :])),
        last=_rounded(epsilons[-1]),
        fell=PUBLISHED in refuted_mechanisms(wall),
        kept=(medians.loc[PURE, least], own[least]),
    )


def _public_sentence(own: pd.DataFrame, public: pd.DataFrame, dataset: str) -> str:
    """Return what a public centre changes for the best of those that have a proof."""
    kept = []
    for table in (own, public):
        least = _nearest_one(table["epsilon"].unique())
        chosen = chosen_delta(table, _TINY_DELTA)
        chosen = chosen[chosen["epsilon"].eq(least) & chosen["mechanism"].eq(PROVEN)]
        kept.append(chosen["captured_share"].median())
    about = {"dataset": dataset, "proven": PROVEN, "delta": _TINY_DELTA}
    told = {"kept": kept, "least": _rounded(least), **about}
    (said,) = sentences("symmetric_noise", "public_sentence", **told)
    return said


def _nearest_one(epsilons: Any) -> float:
    return float(epsilons[np.argmin(np.abs(np.log(epsilons)))])


def _rounded(value: float) -> str:
    return setting(float(f"{value:.2g}"))


def context(results: Results) -> dict[str, Any]:
    size = all_sections()["symmetric_noise"].sizes[results.profile]
    wall = results["privacy-wall"]
    by_epsilon = tables_of(results, "epsilon")
    options = {name: results.options(f"sn-epsilon-{name}") for name in by_epsilon}
    own = [name for name in by_epsilon if not name.endswith(PUBLIC)]
    notes = [
        sentence for name in own for sentence in verdicts(by_epsilon[name], wall, name)
    ]
    notes += [
        _public_sentence(by_epsilon[name], by_epsilon[name + PUBLIC], name)
        for name in own
        if name + PUBLIC in by_epsilon
    ]
    errors = []
    for dataset, table in tables_of(results, "errors").items():
        notes += measures.error_sentences(table, dataset)
        errors += measures.error_rows(table, dataset)
    absent = list(map(_wanted, missing(size)))
    beyond = [name for name in DATASETS if name not in size.paper_datasets]
    return {
        "notes": notes,
        "errors": errors,
        "refuted": refuted_mechanisms(wall),
        "absent": listed(absent) if absent else "",
        "beyond": listed(beyond) if beyond else "",
        "data": [options[name] for name in own],
    }


NOTES = {
    names: partial(find, dataset=dataset)
    for dataset in DATASETS
    for names, find in (
        ((f"sn-epsilon-{dataset}", "privacy-wall"), verdicts),
        ((f"sn-errors-{dataset}",), measures.error_sentences),
    )
}
