"""Rows near a subspace, and what a row may do to the queries of residual steps."""

import numpy as np
from hypothesis import strategies as st
from seeded import rng

from dpaudit import Relation


def low_rank(n=3000, d=6, k=2, seed=0, noise=0.02):
    """Rows near the span of the first k axes, about half as long as 1."""
    rows = noise * rng(seed).standard_normal((n, d))
    rows[:, :k] += 0.4 * rng(seed + 1).standard_normal((n, k))
    return rows


def moved_by_a_row(make, relation, seed, data):
    """Return a mechanism, d, and by how much a row moves its means, by their names.

    Given is a mechanism for k; `data` are hypothesis'.
    """
    generator = rng(seed)
    d = data.draw(st.integers(2, 5))
    k = data.draw(st.integers(1, d - 1))
    mechanism = make(relation, k)
    rows = 3 * low_rank(300, d, k, seed % 1000)
    # A transcript of these rows, so that steps are taken, and far rows of every kind.
    seen = mechanism.transcript(rows, 4, rng=generator)
    size = data.draw(st.sampled_from([0.01, 0.5, 1.0, 30.0]))
    one, two = size * generator.standard_normal((2, d))
    kind = data.draw(st.sampled_from(["any", "mirrored", "inside"]))
    if kind == "mirrored":
        two = one * np.where(np.arange(d) < k, 1, -1)
    elif kind == "inside":
        one, two = one * np.where(np.arange(d) < k, 1, 1e-3), 0 * two
    after = [*rows, one]
    before = rows if relation is Relation.ADD_REMOVE else [*rows, two]
    near, far = (mechanism.step_means(seen, np.array(x)) for x in (before, after))
    return mechanism, d, {name: near[name] - far[name] for name in near}
