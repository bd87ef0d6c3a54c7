"""DP-PCA with other parts: the same class, each part as promised, and dp-pca as it was.

Type-I error: 1e-9 for each test that names a null hypothesis (the seeds are fixed).
"""

import numpy as np
import pytest
from scipy import stats
from seeded import rng

from dpaudit.algorithms import DPPCA, build
from dpaudit.algorithms.streaming.mean_budget import CalibratedSplit, GaussianSplit
from dpaudit.algorithms.streaming.minibatch_pca import POWER_STEPS, scale_rows
from dpaudit.algorithms.streaming.moments import StreamedMoments
from dpaudit.algorithms.streaming.thresholded_counts import CountNoise
from dpaudit.algorithms.streaming.windows import Ball, Tail
from dpaudit.codec import encode, rebuild

LOUD = {"epsilon": 200.0, "delta": 0.1, "group_constant": 400.0}


def spiked(n, d, seed=0):
    """Gaussian rows whose first component is e_1."""
    rows = rng(seed).standard_normal((n, d))
    rows[:, 1:] *= 0.5
    return rows


def test_the_parts_of_dp_pca_are_those_of_the_paper():
    mechanism = DPPCA.calibrated(1.0, 1e-6)
    assert mechanism.mean.split == CalibratedSplit(1.0, 1e-6)
    assert isinstance(mechanism.mean.split.noise(20).counts, CountNoise)
    assert mechanism.mean.tail == Tail()
    assert mechanism.scale_share == 0.5


def test_releases_of_dp_pca_are_what_they_were():
    """Made before there were other parts; other noise, or in another order, differs.

    Sums in another order differ by 1e-13 or so.
    """
    rows = rng().standard_normal((640, 3)) * [1.0, 0.5, 0.5]
    before = {
        (150, None): [0.9977869009363315, 0.03942447101907862, 0.05354448061880221],
        (None, None): [0.7908423918185612, 0.5470165202436715, 0.27448358399584166],
        (151, 1.0): [0.9937658143593541, 0.02187637966629776, 0.10932031020531272],
    }
    for (size, norm), expected in before.items():
        mechanism = DPPCA.calibrated(**LOUD, batch_size=size, row_norm=norm)
        found = mechanism.draw(rows, 5, rng=rng(1))[0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_the_tuned_parts_are_parts_of_the_same_class():
    mechanism = DPPCA.tuned(1.0, 1e-6)
    assert type(mechanism) is DPPCA
    assert mechanism.mean.split == GaussianSplit(1.0, 1e-6)
    assert mechanism.mean.tail == Ball()
    assert mechanism.step_sizes == POWER_STEPS
    assert rebuild(encode(mechanism)) == mechanism
    assert mechanism.budget.epsilon == 1.0
    assert mechanism.budget.delta == 1e-6
    assert build("dp-pca-tuned", epsilon=0.7).claim.parameters["epsilon"] == 0.7


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("size", [4, 5, 101])
def test_each_row_of_a_batch_is_read_for_one_estimate(size, share):
    part = scale_rows(size, share)
    assert 2 <= part < size
    rows, reads = spiked(2 * size, 3), []

    def read(where):
        reads.append((where.start, where.stop))
        return rows[where]

    data = StreamedMoments(read, count=2 * size, dimension=3)
    mechanism = DPPCA.tuned(**LOUD, batch_size=size, scale_share=share)
    mechanism.draw(data, 1, rng=rng(1))
    for first, _ in ((0, 0), (size, 1)):
        own = [r for r in reads if first <= r[0] < first + size]
        scale, *means = own
        assert scale[0] == first
        assert scale[1] <= first + part
        assert means == [(first + part, first + size)] * 2


def test_a_step_is_one_of_the_power_method_in_any_unit():
    rows = spiked(600, 3)
    draws = []
    for unit in (2.0**-20, 1.0, 2.0**30, 2.0**-69, 2.0**155):
        mechanism = DPPCA.tuned(**LOUD, batch_size=300)
        runs = mechanism.transcript(unit * rows, 5, rng=rng(1))
        draws.append(mechanism.draw(unit * rows, 5, rng=rng(1)))
        last = runs["means"][:, 0, -1]
        last = last / np.linalg.norm(last, axis=1, keepdims=True)
        np.testing.assert_allclose(np.abs(last), np.abs(draws[-1]), atol=1e-12)
    for other in draws[1:3]:
        np.testing.assert_array_equal(draws[0], other)
    for other in draws[3:]:  # at either end: ||g|| is about 2^-138, and 2^310
        np.testing.assert_allclose(draws[0], other, rtol=0, atol=2.0**-50)
    mechanism = DPPCA.tuned(**LOUD, batch_size=300)
    assert np.isnan(mechanism.draw(2.0**160 * rows, 5, rng=rng(1))).all()


@pytest.mark.parametrize("norm", [None, 1.0])
def test_the_worst_pair_shows_the_mean_at_nearly_its_full_sensitivity(norm):
    # Null hypothesis: w_u/w_1 is normal about -+ shift with the deviation s; 0.95 of
    # the diameter of the ball is what the row moves.
    mechanism = DPPCA.tuned(8.0, 1e-2, row_norm=norm)
    pair = mechanism.worst_case(4)
    size = 800
    aside = np.r_[0, np.ones(3)] / np.sqrt(3)
    ratios = []
    for seed, rows in enumerate((pair.data, pair.neighbour)):
        draws = mechanism.draw(rows, size, rng=rng(seed))
        assert not np.isnan(draws).any()
        ratios.append(draws @ aside / draws[:, 0])
    spread = stats.median_abs_deviation(ratios[0], scale="normal")
    shift = (np.median(ratios[0]) - np.median(ratios[1])) / spread
    mu = mechanism.mean.split.noise(4).mu
    # 6 deviations of the difference of medians, and 0.1 for the deviation's own.
    error = 6 * 1.2533 * np.sqrt(2 / size)
    assert shift <= 1.1 * mu + error
    assert shift >= 0.8 * mu - error
    assert mu > 2
