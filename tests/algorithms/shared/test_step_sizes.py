"""Step sizes: the sequences, constants written out, bad input."""

import numpy as np
import pytest

from dpaudit.algorithms.shared.step_sizes import (
    ConstantSteps,
    HarmonicSteps,
    ListedSteps,
    as_step_sizes,
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
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()
