"""Glue that only some datasets show: a search with a domain alone refutes it.

Every claim here is false, so a test fails by chance only if evidence is slow; seeded.
"""

import numpy as np
import pytest
from audit_cases import audited


def beyond_the_quartiles(x, rng):
    v = np.ravel(x)
    if len(v) >= 4:
        low, high = np.quantile(v, [0.25, 0.75])
        reach = 1.5 * (high - low)
        v = v[(v >= low - reach) & (v <= high + reach)]
    return v.sum() + rng.laplace(scale=1.0)


def scale_of_the_largest_length(x, rng):
    largest = np.linalg.norm(x, axis=1).max() if len(x) else 1.0
    return x[:, 0].sum() + rng.laplace(scale=largest)


def median(x, rng):
    """It moves by a whole unit only between two balanced camps."""
    return (np.median(x) if len(x) else 0.5) + rng.laplace(scale=0.25)


CASES = [
    (median, "scalar:0,1", "replace-one"),
    (beyond_the_quartiles, "scalar:0,1:rows=20", "add-remove"),
    (scale_of_the_largest_length, "ball:2", "add-remove"),
]


@pytest.mark.parametrize(
    ("mechanism", "domain", "relation"), CASES, ids=[case[0].__name__ for case in CASES]
)
def test_a_search_finds_the_pair(mechanism, domain, relation):
    where = {"domain": domain, "relation": relation, "pair": None}
    result = audited(mechanism, **where, budget=6000, seed=1)
    assert result.refuted
