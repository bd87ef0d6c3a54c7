"""`PrivatePCA` of rows brought to length 1, and by residual steps."""

import numpy as np
import pytest
from refusals import refused

from dpaudit import PrivatePCA
from dpaudit.algorithms import GOEGaussian, ResidualStepPCA, entry
from dpaudit.gaussian import gaussian_mu
from dpaudit.rows import normalise_rows


def heavy(n=4000, factor=1.0):
    """Rows whose lengths have no bound, two strong directions, and one of zeros."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((n, 12)) * [1.0, 0.8, *[0.1] * 10]
    rows *= factor * rng.standard_cauchy((n, 1))
    rows[0] = 0.0
    return rows


@pytest.mark.parametrize("name", ["goe-gaussian", "residual-step-pca", "minibatch-oja"])
def test_directions_need_no_bound(name):
    # The same for data of any scale, and what is seen of rows that are made so before.
    options = {"mechanism": name, "relation": entry(name).relations[0]}
    pca = PrivatePCA(1, row_norm="directions", random_state=1, **options)
    same = PrivatePCA(1, random_state=1, **options).fit(normalise_rows(heavy()))
    expected = same.components_
    for factor in (1e-30, 1.0, 1e30):
        found = pca.fit(heavy(factor=factor)).components_
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert abs(expected[0, 0]) > 0.9
    about = heavy() + np.arange(12)
    moved = pca.set_params(center=np.arange(12.0)).fit(about).components_
    assert np.abs(moved - expected).max() < 0.01


def test_residual_steps_read_blocks_and_say_what_they_saw():
    rows, parts = heavy(), np.array_split(heavy(), 3)
    pca = PrivatePCA(2, mechanism="residual-step-pca", row_norm="directions")
    pca.set_params(random_state=0, center="private", center_norm=1.0)
    expected = pca.fit(rows).components_
    np.testing.assert_allclose(pca.fit(parts).components_, expected, atol=1e-9)
    mean, components = (each.claim.parameters["mu"] for each in pca.spent_.releases)
    assert np.hypot(mean, components) == pytest.approx(gaussian_mu(1.0, 1e-5))
    one, two = pca.private_variance_ / len(rows)
    assert 0.3 < two < one < 0.7
    # It is what stands for "auto", but of data that can be read once only.
    wide = np.tile(rows, 2)  # more than ten columns: no pure mechanism
    pca.set_params(mechanism="auto").fit(wide)
    assert type(pca.mechanism_) is ResidualStepPCA
    pca.set_params(center=False).fit(iter([wide]))
    assert type(pca.mechanism_) is GOEGaussian
    pca.set_params(mechanism="residual-step-pca")
    with pytest.warns(UserWarning, match="do not stand out of the noise"):
        pca.set_params(epsilon=0.01).fit(rows[:50])


ROWS = np.ones((3, 2))
WITHOUT = {"row_norm": "directions", "center": "private"}
STEPS = {"mechanism": "residual-step-pca"}
test_what_directions_and_steps_refuse = refused(
    (
        {"row_norm": "direction"},
        ROWS,
        "> 0, 'private' or 'directions', got 'direction'",
    ),
    (WITHOUT, ROWS, "center_norm must be given"),
    ({"row_norm": "directions"}, [[1.0], [np.nan]], "row 1 has a NaN"),
    ({"delta": 0.0, **STEPS}, ROWS, "needs a delta > 0"),
    (STEPS, iter([ROWS]), "iterator can be read once only"),
    by=lambda options, rows: PrivatePCA(1, **options).fit(rows),
)
