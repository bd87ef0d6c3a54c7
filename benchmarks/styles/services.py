"""Generators that stand: at the top of a file, or kept by an object."""

import numpy as np

from benchmarks.styles.pairs import NUMBERS, ONE, UNIT
from benchmarks.styles.registry import right, wrong

RNG = np.random.default_rng()
OLD = np.random.RandomState()


def total(data):
    """Return the sum of numbers in [0, 1]."""
    return np.clip(data, 0, 1).sum()


class Noise:
    """Noise of a generator that is made with it, or when it is first asked for."""

    lazy = None

    def __init__(self, scale):
        self.scale, self.rng = scale, np.random.default_rng()

    def added(self, value):
        """Return a number with Laplace noise."""
        return value + self.rng.laplace(scale=self.scale)

    def later(self, value):
        """Return a number with Laplace noise, of a generator that stays."""
        if self.lazy is None:
            self.lazy = np.random.default_rng()
        return value + self.lazy.laplace(scale=self.scale)


NOISE = Noise(1.0)


@right(ONE, NUMBERS, domain=UNIT)
def generator_of_the_module(data, rng):
    """A generator at the top of the file."""
    return total(data) + RNG.laplace(scale=1.0)


@right(ONE, NUMBERS, domain=UNIT)
def random_state_of_the_module(data, rng):
    """A RandomState at the top of the file, beside the generator that is given."""
    return total(data) + OLD.laplace(0, 2.0), total(data) + rng.laplace(0, 2.0)


@right(ONE, NUMBERS, domain=UNIT)
def generator_of_an_object(data, rng):
    """An object at the top of the file that keeps a generator."""
    return NOISE.added(total(data))


@right(ONE, NUMBERS, domain=UNIT)
def generator_of_an_object_when_needed(data, rng):
    """An object at the top of the file that makes a generator once."""
    return NOISE.later(total(data))


@wrong(ONE, NUMBERS, "the noise is half of what it must be", domain=UNIT)
def generator_of_the_module_short(data, rng):
    """A generator at the top of the file, and too little noise."""
    return total(data) + RNG.laplace(scale=0.5)  # fault


@wrong(ONE, NUMBERS, "the count has no noise", domain=UNIT)
def mean_by_an_object(data, rng):
    """A mean over a private number, by an object that keeps a generator."""
    return NOISE.added(total(data)) / len(data)  # fault
