"""Errors of private PCA where it was poor: low rank, heavy tails, many columns.

    python -m benchmarks.private_pca measure FILE [--sets 50] [--most 500] [--pure]
    python -m benchmarks.private_pca table FILE [--pure]

`measure` appends a line for each data set, and goes on where it was stopped (`--most`,
`--longest`: no more columns, rows). All of it takes about two hours of a core, and 400
sets of `--most 4` half an hour.
Mechanisms see the same rows: clipped to the 95 % quantile of their lengths (which
stands for a bound that is known), brought to length 1, or clipped to a private norm,
which is paid for. Neighbours differ in one row, delta is 1e-6, or 0 if `--pure` asks
for what needs none: another FILE. An error is the sine of
the largest angle to the components of the law; of the data of scikit-learn (centred,
and scaled to variance 1 but for the digits) it is what the components leave of the
variance that the best ones have.

All mechanisms here keep their law when rows are rotated, so the axes of a law are those
of R^d.
"""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit import Relation
from dpaudit.algorithms import (
    GOEGaussian,
    PureResidualStepPCA,
    ResidualStepPCA,
    SymmetrisedWishart,
)
from dpaudit.algorithms.estimators.norm_quantile import (
    GaussianNormQuantile,
    LaplaceNormQuantile,
)
from dpaudit.arrays import Array
from dpaudit.gaussian import gaussian_mu
from dpaudit.gram import Gram, gram
from dpaudit.subspace import (
    captured_variance_share,
    largest_principal_angle_sine,
    top_components,
)

EPSILONS, DELTA = (0.5, 1.0, 4.0), 1e-6
LAWS = ("gauss", "t3", "low", "axes")
REAL = ("digits", "cancer", "wine", "diabetes")
PAIRS = {
    False: ("goe-gaussian", "residual-step-pca"),
    True: ("symmetrised-wishart", "residual-step-pca-pure"),
}
"""Those without a delta, and others: noise on the second moment, and steps."""
OPTIONS = {"relation": Relation.REPLACE_ONE, "row_norm": 1.0}
SHARE = 0.025  # of a private norm: the default of the estimator


def cells(most: int, longest: int) -> Iterator[tuple[str, int, int, int]]:
    """Yield the settings: law, n, d and k; those that take long come last."""
    for n in (x for x in (10_000, 100_000) if x <= longest):
        for d in (4, 20, 100, 500):
            for law in LAWS if d < 500 else ("gauss", "low"):
                for k in (1, 2 if d == 4 else 5):
                    if d <= most:
                        yield law, n, d, k
    for name in REAL:
        yield from ((name, 0, 0, k) for k in (1, 3))


def rows_of(law: str, n: int, d: int, k: int, rng: Any) -> Array:
    """Return rows of a law whose first k axes are the principal components."""
    deviations = np.full(d, sqrt(0.1))
    deviations[:k] = np.sqrt(np.linspace(1.2, 0.8, k) if k > 1 else 1.0)
    if law in ("gauss", "t3"):
        rows = rng.standard_normal((n, d))
        rows *= deviations
        if law == "t3":
            rows /= np.sqrt(rng.chisquare(3, (n, 1)) / 3)
        return np.asarray(rows)
    rows = rng.standard_normal((n, d))
    rows *= 0.02
    if law == "low":
        rows[:, :k] += rng.standard_normal((n, k)) * deviations[:k]
    else:
        rows[np.arange(n), rng.integers(k, size=n)] += rng.choice([-1.0, 1.0], n)
    return np.asarray(rows)


def real(name: str) -> Array:
    """Return a data set of scikit-learn, about its mean."""
    from sklearn import datasets

    loaded = "breast_cancer" if name == "cancer" else name
    rows = getattr(datasets, f"load_{loaded}")().data
    rows = rows - rows.mean(axis=0)
    rows = rows[:, rows.std(axis=0) > 0]
    return np.asarray(rows if name == "digits" else rows / rows.std(axis=0))


def ours(pure: bool) -> list[str]:
    """Return the names of what is compared."""
    bounds = ("R95", "directions", "private")
    return [f"{name}/{how}" for how in bounds for name in PAIRS[pure]]


def released(
    rows: Array, k: int, rng: Any, pure: bool = False
) -> Iterator[tuple[str, Array]]:
    """Yield the name of each mechanism, and the basis that it releases."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    bounds = {"R95": np.maximum(lengths, np.quantile(lengths, 0.95))}
    bounds["directions"] = np.where(lengths > 0, lengths, 1.0)
    for how, bound in bounds.items():
        seen = rows * (1 / bound)[:, np.newaxis]
        found = gram(seen)
        yield f"without noise/{how}", top_components(found.moment, k)
        for epsilon in EPSILONS:
            spent = epsilon if pure else gaussian_mu(epsilon, DELTA)
            bases = both(seen, found, k, spent, rng, pure)
            for name, basis in bases.items():
                yield f"{name}/{how}/{epsilon:g}", basis
    for epsilon in EPSILONS:
        spent = epsilon if pure else gaussian_mu(epsilon, DELTA)
        for name, quantile in zip(PAIRS[pure], (0.5, None), strict=True):
            options: dict[str, Any] = {"relation": OPTIONS["relation"]}
            options["quantile"] = quantile
            search = (
                LaplaceNormQuantile.calibrated(SHARE * spent, **options)
                if pure
                else GaussianNormQuantile.from_mu(sqrt(SHARE) * spent, **options)
            )
            norm = search.norm(rows, None, rng=rng)
            seen = rows * (1 / np.maximum(lengths, norm))[:, np.newaxis]
            left = (1 - SHARE if pure else sqrt(1 - SHARE)) * spent
            bases = both(seen, gram(seen), k, left, rng, pure)
            yield f"{name}/private/{epsilon:g}", bases[name]


def both(
    rows: Array, found: Gram, k: int, spent: float, rng: Any, pure: bool
) -> dict[str, Array]:
    """Return the bases that both mechanisms release of rows of length 1.

    Spent is the mu of Gaussian DP, or a pure epsilon.
    """
    noisy = (
        SymmetrisedWishart.calibrated(spent, **OPTIONS)
        if pure
        else GOEGaussian.from_mu(spent, **OPTIONS)
    )
    release = noisy.draw_from(found.moment, 1, rng=rng)[0]
    bases = noisy.components(release, k), stepped(rows, found, k, spent, rng, pure)
    return dict(zip(PAIRS[pure], bases, strict=True))


def stepped(
    rows: Array, found: Gram, k: int, spent: float, rng: Any, pure: bool = False
) -> Array:
    """Return a release of residual steps, given the second moment."""
    make: Any = PureResidualStepPCA.calibrated if pure else ResidualStepPCA.from_mu
    mechanism = make(spent, n_components=k, **OPTIONS)
    return np.asarray(mechanism._run(rows, 1, rng, found)[2][0])


def measured(
    law: str, n: int, d: int, k: int, number: int, pure: bool
) -> dict[str, float]:
    """Return the errors on one data set."""
    seed = [*map(ord, law), n, d, k, number]
    rng = np.random.default_rng(seed)
    if law in REAL:
        rows = real(law)
        moment = rows.T @ rows
        bases = released(rows, k, rng, pure)
        errors = {x: 1 - float(captured_variance_share(v, moment)) for x, v in bases}
    else:
        rows = rows_of(law, n, d, k, rng)
        axes = np.eye(d)[:, :k]
        bases = released(rows, k, rng, pure)
        errors = {x: float(largest_principal_angle_sine(v, axes)) for x, v in bases}
    return {name: float(f"{error:.4g}") for name, error in errors.items()}


def read(path: Path) -> dict[tuple[Any, ...], list[dict[str, float]]]:
    """Return the errors of a file by cell."""
    found: dict[tuple[Any, ...], list[dict[str, float]]] = {}
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for line in map(json.loads, lines):
        found.setdefault(tuple(line["cell"]), []).append(line["errors"])
    return found


def measure(path: Path, sets: int, most: int, longest: int, pure: bool) -> None:
    """Append what is missing."""
    done = {cell: len(lines) for cell, lines in read(path).items()}
    for reached in range(10, sets + 10, 10):
        for cell in cells(most, longest):
            for number in range(done.get(cell, 0), min(reached, sets)):
                errors = measured(*cell, number, pure)
                line = json.dumps({"cell": cell, "errors": errors})
                with path.open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
                done[cell] = number + 1


def factors(lines: list[dict[str, float]], epsilon: float, pure: bool) -> list[float]:
    """Return what noise on A at R95 errs, and over it PCA without noise; its gains.

    A is the second moment. Of the medians over data sets: how many times less each of
    our other ways errs, and the best of these, chosen in hindsight.
    """
    names = ["without noise/R95", *(f"{x}/{epsilon:g}" for x in ours(pure))]
    bare, today, *others = (float(np.median([x[y] for x in lines])) for y in names)
    gains = [today / x for x in others]
    return [today, bare / today, *gains, max(gains)]


def table(path: Path, pure: bool) -> None:
    """Print cells; then rows for a page: by law, d and n, and by law.

    These have geometric means over cells, with the least in brackets.
    """
    others = ours(pure)[1:]
    print("law n d k epsilon | sets, today, without noise over it | times", *others)
    groups: dict[tuple[str, ...], list[list[float]]] = {}
    for (law, n, d, k), lines in read(path).items():
        for epsilon in EPSILONS:
            today, bare, *gains = factors(lines, epsilon, pure)
            shown = " ".join(f"{x:.2f}" for x in gains)
            print(law, n, d, k, f"{epsilon:g} | {len(lines)}", end=" ")
            print(f"{today:.4f} {bare:.3f} | {shown}")
            kinds = [(law, f"{d:,}", f"{n:,}"), ("d = 4" if d == 4 else law, "all", "")]
            if d > 4 and bare < 0.5:
                kinds.append((law, "all, where noise is half", ""))
            for kind in kinds:
                groups.setdefault(kind, []).append([1 / bare, *gains])
    print("| rows | d | n | noise |", " | ".join([*others, "best"]), "|")
    for kind, cells_of_it in groups.items():
        means = np.exp(np.mean(np.log(cells_of_it), axis=0))
        least = np.min(cells_of_it, axis=0)
        noise, *told = (f"{x:.2f} ({y:.2f})" for x, y in zip(means, least, strict=True))
        print("|", " | ".join([*kind, noise.split()[0], *told]), "|")


def main() -> None:
    """Read the command line."""
    parser = ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("command", choices=("measure", "table"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--sets", type=int, default=50)
    parser.add_argument("--most", type=int, default=500, help="columns")
    parser.add_argument("--longest", type=int, default=100_000, help="rows")
    parser.add_argument("--pure", action="store_true", help="without a delta")
    given = parser.parse_args()
    if given.command == "measure":
        measure(given.file, given.sets, given.most, given.longest, given.pure)
    table(given.file, given.pure)


if __name__ == "__main__":
    sys.exit(main())
