"""What a small trace saves: projections, and noise that follows the trace.

    python -m benchmarks.low_trace [--sets 20]

Rows of length at most 1 (n = 10,000, d columns, k strong directions of equal variance,
the others of a hundredth of that) have the mean squared length `trace`. For each
mechanism at epsilon 1 (delta 1e-6, replace-one) printed are medians of

- the error of the second moment in the Frobenius norm, over that of zeros: as released,
  projected onto positive semi-definite matrices, and onto those that have the trace of
  the release, too (eigenvalues less a number, and none below 0), which lie in a nuclear
  ball; all of it is post-processing;
- the sine of the largest angle to the k components of A: projections keep all
  eigenvectors and their order, and so change no component.
"""

import sys
from argparse import ArgumentParser
from math import sqrt

import numpy as np

from dpaudit import Relation
from dpaudit.algorithms import build
from dpaudit.arrays import Array
from dpaudit.gram import gram
from dpaudit.subspace import largest_principal_angle_sine, top_components

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "relation": Relation.REPLACE_ONE}
MECHANISMS = ("goe-gaussian", "separate-covariance", "symmetrised-wishart")
ROWS = 10_000


def rows_of(trace: float, d: int, k: int, rng: np.random.Generator) -> Array:
    """Return rows with that mean squared length; those beyond 1 are clipped later."""
    deviations = np.full(d, 0.1)
    deviations[:k] = 1.0
    deviations *= sqrt(trace) / np.linalg.norm(deviations)
    return rng.standard_normal((ROWS, d)) * deviations


def projected(release: Array, *, keep: bool) -> Array:
    """Return the nearest semi-definite matrix: any, or one with the same trace."""
    values, vectors = np.linalg.eigh(release)
    falling = values[::-1]
    if keep and falling.sum() > 0:
        excess = (np.cumsum(falling) - falling.sum()) / np.arange(1, len(values) + 1)
        values = values - excess[np.flatnonzero(falling > excess)[-1]]
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def errors(name: str, trace: float, d: int, k: int, number: int) -> list[float]:
    """Return the three errors of a second moment, and that of its components."""
    rng = np.random.default_rng([*map(ord, name), d, k, number, int(1e6 * trace)])
    moment = gram(rows_of(trace, d, k, rng), row_norm=1.0).moment
    release = build(name, **BUDGET).draw_from(moment, 1, rng=rng)[0]  # type: ignore[attr-defined]
    matrices = release, *(projected(release, keep=keep) for keep in (False, True))
    whole = np.linalg.norm(moment)
    found = [float(np.linalg.norm(each - moment) / whole) for each in matrices]
    bases = top_components(release, k), top_components(moment, k)
    return [*found, float(largest_principal_angle_sine(*bases))]


def main() -> None:
    """Print a table."""
    parser = ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--sets", type=int, default=20)
    sets = parser.parse_args().sets
    print("trace d k mechanism | released, semi-definite, with the trace | components")
    for trace in (0.5, 0.05, 0.005):
        for d in (20, 100, 500):
            for name in MECHANISMS:
                few = max(3, sets // (1 if d < 500 else 5))
                found = [errors(name, trace, d, 5, each) for each in range(few)]
                *of_moment, angle = np.median(found, axis=0)
                shown = ", ".join(f"{each:.3g}" for each in of_moment)
                print(f"{trace:g} {d} 5 {name} | {shown} | {angle:.3g}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
