"""Step sizes: the sequences of the theorem, constants written out, bad input."""

import numpy as np
import pytest

from dpaudit.algorithms.shared.step_sizes import (
    ConstantSteps,
    HarmonicSteps,
    ListedSteps,
    as_step_sizes,
    burn_in,
)
from dpaudit.codec import encode, rebuild
from dpaudit.errors import InputError


def test_the_sequences_are_what_they_say():
    np.testing.assert_allclose(
        HarmonicSteps(3.0, 2.0).sizes(4), [3 / 3, 3 / 4, 3 / 5, 3 / 6]
    )
    np.testing.assert_array_equal(ConstantSteps(0.5).sizes(3), [0.5] * 3)
    np.testing.assert_array_equal(ListedSteps((3.0, 1.0, 2.0)).sizes(2), [3.0, 1.0])
    for steps in (HarmonicSteps(1.0), ConstantSteps(1.0), ListedSteps((1.0,))):
        assert steps.sizes(0).shape == (0,)
        assert rebuild(encode(steps)) == steps


def test_the_steps_of_the_theorem():
    steps = HarmonicSteps.of_theorem(gap=0.25, alpha=2.0, offset=10.0)
    t = np.arange(1, 6)
    np.testing.assert_allclose(steps.sizes(5), 2.0 / (0.25 * (10.0 + t)))


def test_the_burn_in_is_the_larger_of_two_terms():
    # xi = 20 max(kappa M alpha, kappa^2 (V + 1) alpha^2/log(1 + zeta/100)).
    few = {"kappa": 2.0, "alpha": 1.5, "failure": 0.5}
    assert burn_in(bound=1e6, variance=1.0, **few) == pytest.approx(20 * 2e6 * 1.5)
    expected = 20 * 4 * 4.0 * 2.25 / np.log(1.005)
    assert burn_in(bound=1.0, variance=3.0, **few) == pytest.approx(expected)


def test_numbers_and_lists_are_taken_for_step_sizes():
    assert as_step_sizes(2) == ConstantSteps(2.0)
    assert as_step_sizes(np.float64(0.5)) == ConstantSteps(0.5)
    assert as_step_sizes([1, 2.0]) == ListedSteps((1.0, 2.0))
    assert as_step_sizes(np.array([1.0, 2.0])) == ListedSteps((1.0, 2.0))
    steps = HarmonicSteps(1.0)
    assert as_step_sizes(steps) is steps


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: as_step_sizes(0.0), "step_sizes must be a finite number > 0, got 0.0"),
        (lambda: as_step_sizes(-1), "step_sizes must be a finite number > 0, got -1"),
        (lambda: as_step_sizes(np.nan), "step_sizes must be a finite number > 0"),
        (lambda: as_step_sizes([1.0, -2.0]), r"step_sizes\[1\] must be .* got -2.0"),
        (lambda: as_step_sizes([1.0, np.inf]), r"step_sizes\[1\] must be .* got inf"),
        (lambda: as_step_sizes(["1"]), r"step_sizes\[0\] must be a real number"),
        (lambda: as_step_sizes("1"), "step_sizes must be > 0, or a list"),
        (lambda: as_step_sizes(None), "step_sizes must be a real number, got None"),
        (lambda: as_step_sizes([[1.0]]), "step_sizes must be a real number"),
        (lambda: HarmonicSteps(0.0), "numerator must be a finite number > 0"),
        (lambda: HarmonicSteps(1.0, -1.0), "offset must be a finite number >= 0"),
        (lambda: ConstantSteps(0.0), "size must be a finite number > 0"),
        (lambda: ListedSteps((1.0,)).sizes(2), "step_sizes must be at least 2"),
        (lambda: HarmonicSteps(1.0).sizes(-1), "count must be an integer >= 0"),
        (lambda: HarmonicSteps.of_theorem(gap=0.0), "gap must be a finite number > 0"),
        (
            lambda: HarmonicSteps.of_theorem(gap=1.0, alpha=0.5),
            "alpha must be > 1/2, got 0.5",
        ),
        (
            lambda: burn_in(kappa=0.5, bound=1.0, variance=1.0),
            "kappa must be >= 1, got 0.5",
        ),
        (
            lambda: burn_in(kappa=1.0, bound=1.0, variance=1.0, alpha=0.1),
            "alpha must be > 1/2, got 0.1",
        ),
        (
            lambda: burn_in(kappa=1.0, bound=-1.0, variance=1.0),
            "bound must be a finite number >= 0",
        ),
        (
            lambda: burn_in(kappa=1.0, bound=1.0, variance=1.0, failure=1.0),
            r"failure must be in \(0, 1\)",
        ),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()
