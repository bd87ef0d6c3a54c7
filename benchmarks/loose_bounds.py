"""What a public bound on rows costs that is too large, and who does without it.

    python -m benchmarks.loose_bounds [--sets 11] [--law t]

Normal rows (or of a multivariate t law with 3 degrees of freedom), k variances of 1 and
the others 0.1, at epsilon 1 and delta 1e-6, replace-one; R is so many times the 95 %
quantile of their lengths. Printed are medians of the sine of the largest angle to the
components of the law, last that of residual steps with a private norm, which is told no
R.
"""

import sys
from argparse import ArgumentParser
from math import sqrt
from typing import Any

import numpy as np

from benchmarks.private_pca import SHARE, stepped
from dpaudit import Relation
from dpaudit.algorithms import build, entry
from dpaudit.algorithms.estimators.norm_quantile import GaussianNormQuantile
from dpaudit.arrays import Array
from dpaudit.gaussian import gaussian_mu
from dpaudit.gram import gram
from dpaudit.mechanism import HasBatchedDraw, HasComponents
from dpaudit.subspace import largest_principal_angle_sine

EPSILON, DELTA = 1.0, 1e-6
SETTINGS = (
    (20, 1, 10_000, (1, 10)),
    (20, 5, 100_000, (1, 3, 10, 30)),
    (100, 5, 10_000, (1,)),
)
MECHANISMS = (
    "goe-gaussian",
    "residual-step-pca",
    "coinpress",
    "coinpress-published",
)


def errors(law: str, d: int, k: int, n: int, factor: float, number: int) -> list[float]:
    """Return the errors of all on one data set."""
    rng = np.random.default_rng([d, k, n, int(factor), number])
    deviations = np.where(np.arange(d) < k, 1.0, sqrt(0.1))
    rows = rng.standard_normal((n, d)) * deviations
    if law == "t":
        rows /= np.sqrt(rng.chisquare(3, (n, 1)) / 3)
    lengths = np.linalg.norm(rows, axis=1)
    row_norm = factor * float(np.quantile(lengths, 0.95))
    axes = np.eye(d)[:, :k]

    def error(basis: Array) -> float:
        return float(largest_principal_angle_sine(basis, axes))

    found = []
    for name in MECHANISMS:
        options: dict[str, Any] = {"row_norm": row_norm}
        options["relation"] = Relation.REPLACE_ONE
        if name.startswith("coinpress"):
            del options["relation"]
        if entry(name).has_components:
            options["n_components"] = k
        mechanism = build(name, epsilon=EPSILON, delta=DELTA, **options)
        assert isinstance(mechanism, HasBatchedDraw)
        assert isinstance(mechanism, HasComponents)
        releases = np.asarray(mechanism.draw(rows, 1, rng=rng))
        found.append(error(mechanism.components(releases, k)[0]))
    mu = gaussian_mu(EPSILON, DELTA)
    norm = GaussianNormQuantile.from_mu(
        sqrt(SHARE) * mu, relation=Relation.REPLACE_ONE
    ).norm(rows, None, rng=rng)
    seen = rows / np.maximum(lengths, norm)[:, np.newaxis]
    basis = stepped(seen, gram(seen), k, sqrt(1 - SHARE) * mu, rng)
    return [*found, error(basis)]


def main() -> None:
    """Print a table."""
    parser = ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--sets", type=int, default=11)
    parser.add_argument("--law", choices=("normal", "t"), default="normal")
    given = parser.parse_args()
    print("d k n R |", ", ".join((*MECHANISMS, "private norm")))
    for d, k, n, factors in SETTINGS:
        for factor in factors:
            found = [
                errors(given.law, d, k, n, factor, each) for each in range(given.sets)
            ]
            shown = " ".join(f"{x:.2g}" for x in np.median(found, axis=0))
            print(d, k, n, factor, "|", shown, flush=True)


if __name__ == "__main__":
    sys.exit(main())
