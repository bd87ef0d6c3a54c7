"""What vectors are cut to: the ball's sensitivity in doubles, and bins about zero."""

from fractions import Fraction

import numpy as np
import pytest
from seeded import rng

from dpaudit.algorithms.streaming.mean_budget import GaussianSplit
from dpaudit.algorithms.streaming.mean_estimation import MeanEstimation, _totals
from dpaudit.algorithms.streaming.moments import FixedGradients
from dpaudit.algorithms.streaming.windows import Ball, Tail
from dpaudit.errors import InputError


@pytest.mark.parametrize("d", [1, 3, 1000])
@pytest.mark.parametrize("power", [-300, -1, 0, 1, 200, 300])
def test_no_vector_leaves_the_ball_whatever_is_rounded(d, power):
    # In fractions, which take long: of long vectors a few.
    vectors = 10.0**power * rng(d).standard_normal((min(40, 4 + 100 // d), d))
    vectors[0] = 10.0**power / np.sqrt(d)  # on the sphere, if the power is 0
    vectors[1] = np.inf
    for count in (1, 1000, 2**20 + 1):
        most = 2.0 ** (53 - (count - 1).bit_length())
        steps = Ball().steps(vectors.copy(), most)
        for each in steps:
            square = sum(Fraction(entry) ** 2 for entry in each)
            assert square <= Fraction(most) ** 2
            assert (each == np.rint(each)).all()


def test_vectors_in_the_ball_stay_and_others_are_scaled_onto_it():
    inside = np.array([[0.3, -0.4, 0.5], [30.0, -40.0, 0.0], [0.0, 0.0, 0.0]])
    steps = Ball().steps(inside.copy(), 2.0**40) / 2.0**40
    expected = [[0.3, -0.4, 0.5], [0.6, -0.8, 0.0], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(steps, expected, atol=1e-11)


@pytest.mark.parametrize("location", [0.0, 1.0, 1e6, 1e12, 1e15])
@pytest.mark.parametrize("n", [2, 999, 20_000])
def test_one_row_moves_the_sum_by_no_more_than_two_radii(location, n):
    ball, generator = Ball(1.0, 1.0), rng(n)
    rows = location + generator.standard_normal((n, 3))
    rows[:-1] += generator.standard_t(1, (n - 1, 1))
    other = rows.copy()
    rows[-1] += 1e3
    other[-1] -= 1e3
    centre = ball.labels(rows[:1], np.array(0.1)) * 0.1
    reach = ball.size(1.0, n, 3)
    one, two = (_totals(ball, each, centre, reach)[0] for each in (rows, other))
    most = Fraction(2) ** (53 - (n - 1).bit_length())
    moved = [Fraction(a) - Fraction(b) for a, b in zip(one, two, strict=True)]
    assert sum(x**2 for x in moved) <= (2 * most) ** 2
    assert sum(x**2 for x in moved) >= (Fraction(19, 10) * most) ** 2
    shuffled = _totals(ball, generator.permutation(rows), centre, reach)[0]
    np.testing.assert_array_equal(shuffled, one)


def test_bins_are_where_their_windows_say():
    values, width = np.array([-0.6, -0.4, 0.0, 0.4, 0.6, 1.4]), np.array(1.0)
    np.testing.assert_array_equal(
        Tail().labels(values, width), [-1.0, -1.0, 0.0, 0.0, 0.0, 1.0]
    )
    np.testing.assert_array_equal(
        Ball().labels(values, width), [-1.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    )


def test_the_noise_is_that_of_the_diameter():
    for window, diameter in ((Tail(), 2 * np.sqrt(7)), (Ball(), 2.0)):
        mechanism = MeanEstimation(split=GaussianSplit(1.0, 1e-6), tail=window)
        deviation = float(mechanism.deviation(4.0, 500, 7))
        size = float(window.size(4.0, 500, 7))
        mu = mechanism.split.noise(7).mu
        assert deviation * mu == pytest.approx(diameter * size / 500)


def test_many_releases_are_those_of_one_run_each():
    # Totals by `draw` are shared where windows are, by `estimate` made for each trial.
    rows = rng().standard_normal((4000, 3))
    mechanism = MeanEstimation(split=GaussianSplit(50.0, 1e-2), tail=Ball())
    one = mechanism.draw(rows, 1, rng=rng(1))
    two = mechanism.estimate(FixedGradients(rows), np.ones(1), rng=rng(1))
    np.testing.assert_allclose(one, two, atol=1e-12)
    means = mechanism.draw(rows, 50, rng=rng(2))
    np.testing.assert_allclose(means, np.tile(rows.mean(axis=0), (50, 1)), atol=0.1)


@pytest.mark.parametrize(("name", "bad"), [("scale", 0.0), ("bin_width", -1.0)])
def test_bad_sizes_are_named(name, bad):
    with pytest.raises(InputError, match=f"{name} must be .*got {bad!r}"):
        Ball(**{name: bad})
