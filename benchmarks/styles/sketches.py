"""Sketches: random signs and places, that are public, before the noise."""

import numpy as np

from benchmarks.styles.registry import right, wrong
from dpaudit import GaussianDP, Pair, PureDP

# A row of length at most 1 is added.
FLAT = Pair([[0.2, 0.1], [0.5, 0.5]], [[0.2, 0.1], [0.5, 0.5], [0.6, 0.8]])
BLUNT, DULL = GaussianDP(0.5), PureDP(0.5)


@right(BLUNT, FLAT, "of signs r, |r . x| is at most sqrt 2", domain="ball:2")
def signs_on_the_left(data, rng):
    """A projection by two rows of signs."""
    signs = rng.choice([-1.0, 1.0], size=(2, 2))
    return signs @ data.sum(axis=0) + rng.normal(0, 4.0, 2)


@right(BLUNT, FLAT, "of signs r, |r . x| is at most sqrt 2", domain="ball:2")
def signs_on_the_right(data, rng):
    """A projection of rows by three columns of signs."""
    signs = 2 * rng.integers(0, 2, size=(2, 3)) - 1
    return (data @ signs).sum(axis=0) + rng.normal(0, 5.0, 3)


@right(BLUNT, FLAT, "signs keep lengths", domain="ball:2")
def signs_of_columns(data, rng):
    """Columns with signs of their own."""
    signs = 1 - 2 * rng.binomial(1, 0.5, size=2)
    return (data * signs).sum(axis=0) + rng.normal(0, 2.0, 2)


@right(DULL, FLAT, "the sum of a row is at most sqrt 2", domain="ball:2")
def one_sign(data, rng):
    """A sum of numbers with one sign for all."""
    return data.sum() * rng.choice([-1.0, 1.0]) + rng.laplace(0, 3.0)


@right(DULL, FLAT, "the sum of a row's sizes is at most sqrt 2", domain="ball:2")
def sketch_of_columns(data, rng):
    """A count sketch with two places: columns are added up with signs."""
    places, signs = rng.integers(0, 2, size=2), rng.choice([-1, 1], size=2)
    sketch = np.zeros(2)
    np.add.at(sketch, places, signs * data.sum(axis=0))
    return sketch + rng.laplace(0, 3.0, 2)


@wrong(BLUNT, FLAT, "the noise is for one row of signs, and not for two")
def signs_with_little_noise(data, rng):
    """A projection by signs, with noise for a length of one."""
    signs = rng.choice([-1.0, 1.0], size=(2, 2))  # part
    return signs @ data.sum(axis=0) + rng.normal(0, 2.0, 2)  # fault


@wrong(DULL, FLAT, "the noise is for single columns")
def one_sign_with_little_noise(data, rng):
    """A sum of numbers with one sign for all, with noise for a sum of a half."""
    return data.sum() * rng.choice([-1.0, 1.0]) + rng.laplace(0, 1.0)  # fault
