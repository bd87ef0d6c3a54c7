r"""Errors of private PCA without a bound on rows: of a private norm, or of directions.

``NAME@private`` is the mechanism of that name as `PrivatePCA` runs it with
``row_norm="private"``, and ``NAME@directions`` with ``"directions"``. How far noise
turns components depends on how long rows are there, so it is measured on rows.

The clip turns components as well: those of a sample, not those of an elliptical law.
With rows x, weights w by which they are scaled down, and axes i of the components and j
outside of them, it turns i towards j to first order by

.. math:: \frac{1}{n} \sum_x x_i x_j \left(\frac{w^2}{g'_{ij}} - \frac{1}{g_{ij}}\right)

with the gaps g' of what is clipped, and g of what is not. Over samples that is normal
about 0, with a variance that is a sum over rows. Each release is turned by such numbers
once more, so that rows may stand for many.
"""

from typing import Any

import numpy as np

from dpaudit.algorithms.estimators.budget import PrivacyBudget
from dpaudit.algorithms.shared.bases import Rng
from dpaudit.algorithms.subspace.residual_plan import StepsOnResiduals
from dpaudit.arrays import Array
from dpaudit.subspace import largest_principal_angle_sine, second_moment

WITHOUT_BOUND = tuple(
    f"{name}@{norm}"
    for norm in ("private", "directions")
    for name in ("residual-step-pca", "k-norm-covariance", "symmetrised-wishart")
)
"""Those that are measured."""
_NORM_SHARE = 0.025  # of a private norm: the default of the estimator
_NEAREST = 1e-9  # a gap, over the largest eigenvalue


def errors_without_bound(
    name: str,
    rows: Array,
    times: float,
    size: int,
    *,
    k: int,
    unit: float,
    rng: Rng,
    **budget: Any,
) -> Array:
    """Return the errors of some releases on rows that each stand for so many.

    The budget is epsilon, delta and the relation. Rows are given in a unit, which tells
    which of its norms a private one may be. Errors, shape (size,), are sines of the
    largest angle to the components of the rows as they are.
    """
    base, _, norm = name.partition("@")
    share = _NORM_SHARE if norm == "private" else 0.0
    given = PrivacyBudget(row_norm=1.0, mean_norm=1.0, norm_share=share, **budget)
    plan = given.plan(base, k, rows.shape[1])
    mechanism, norms, rows = plan.mechanism, np.zeros(size), rows * unit
    if plan.norm is not None:
        norms = plan.norm.draw_repeated(rows, times, size, rng=rng)
    lengths, found = np.linalg.norm(rows, axis=1), []
    for each, count in zip(*np.unique(norms, return_counts=True), strict=True):
        weights = 1 / np.maximum(np.where(lengths > 0, lengths, 1.0), each)
        seen = rows * weights[:, np.newaxis]
        moment = second_moment(seen)
        axes = np.linalg.eigh(moment)[1][:, ::-1]
        if isinstance(mechanism, StepsOnResiduals):
            bases = mechanism.draw_repeated(seen, times, count, rng=rng)
        else:
            drawn = mechanism.draw_from(times * moment, count, rng=rng)
            bases = mechanism.components(drawn, k)
        inside, outside = axes[:, :k], axes[:, k:]
        turns = _deviations(rows @ axes, weights, k) / times**0.5
        turns = turns * rng.standard_normal((count, *turns.shape))
        turned = bases + outside @ (turns @ (inside.T @ bases))
        turned = np.linalg.qr(turned)[0]
        found.append(largest_principal_angle_sine(turned, inside))
    return np.concatenate(found)


def _deviations(rows: Array, weights: Array, k: int) -> Array:
    """Return how far a clip turns axes in and out, as deviations, (d - k, k).

    Rows are given in these axes.
    """
    squares, moved = np.square(rows), np.square(weights)[:, np.newaxis]

    def gaps(seen: Array) -> Array:
        values = seen.mean(axis=0)
        apart = values[:k] - values[k:, np.newaxis]
        return np.asarray(np.maximum(apart, _NEAREST * values[0]))

    def fourth(seen: Array) -> Array:
        return np.asarray(seen[:, k:].T @ squares[:, :k])

    clipped, whole = gaps(moved * squares), gaps(squares)
    variance = fourth(moved**2 * squares) / clipped**2 + fourth(squares) / whole**2
    variance -= 2 * fourth(moved * squares) / (clipped * whole)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)) / len(rows))
