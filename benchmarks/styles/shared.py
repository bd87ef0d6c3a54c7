"""Sums that share noise: data are added to noise that others have as well."""

import numpy as np

from benchmarks.styles.pairs import ONE
from benchmarks.styles.registry import right, wrong
from dpaudit import Pair, PureDP

# The third of four entries is replaced.
ENTRY = Pair([0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0])
HAAR = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 0, 0], [0, 0, 1, -1.0]])


@right(ONE, ENTRY, "differences of the sums are the entries with noise of their own")
def running_noise(data, rng):
    """A running sum, and noise that runs with it."""
    total, noise, out = 0.0, 0.0, []
    for each in data:
        total += each
        noise += rng.laplace(0, 1.0)
        out.append(total + noise)
    return out


@wrong(ONE, ENTRY, "the noise of a step is for an entry that moves by a half")
def running_noise_of_half(data, rng):
    """A running sum whose noise is half of what it has to be."""
    total, noise, out = 0.0, 0.0, []
    for each in data:
        total += each
        noise += rng.laplace(0, 0.5)  # fault
        out.append(total + noise)
    return out


@right(ONE, ENTRY, "as with Laplace noise: each step has a geometric one of its own")
def running_geometric(data, rng):
    """A running count with two-sided geometric noise that runs with it."""
    total, noise, out = 0, 0, []
    for each in data:
        total += int(each)
        noise += rng.geometric(1 - np.exp(-1)) - rng.geometric(1 - np.exp(-1))
        out.append(total + noise)
    return out


@right(ONE, ENTRY, "sums of noisy entries follow from them")
def tree_of_noisy_leaves(data, rng):
    """All nodes of a tree whose leaves have the noise."""
    leaves = data + rng.laplace(0, 1, 4)
    left, other = leaves[0] + leaves[1], leaves[2] + leaves[3]
    return np.array([left + other, left, other, *leaves])


@wrong(PureDP(2.0), ENTRY, "the third adds the entries again, without noise")
def sum_beside_its_noise(data, rng):
    """Two noisy numbers, and a sum that was to be theirs."""
    total, first = data.sum() + rng.laplace(), data[2] + rng.laplace()
    noise = total - data.sum() + first - data[2]
    return total, first, 3 * data.sum() + noise  # fault


@right(ONE, ENTRY, "an entry is in three coefficients")
def wavelet_and_back(data, rng):
    """Haar coefficients with noise, and what they are the transform of."""
    return np.linalg.solve(HAAR, HAAR @ data + rng.laplace(0, 3, 4))


@wrong(ONE, ENTRY, "an entry is in three coefficients, not in two")
def wavelet_of_two_levels(data, rng):
    """Haar coefficients with noise for two of them, and what they come from."""
    noise = rng.laplace(0, 2, 4)  # fault
    return np.linalg.solve(HAAR, HAAR @ data) + np.linalg.solve(HAAR, noise)  # part


@right(ONE, ENTRY, "the noise is that of the entries, summed up")
def cumulated_noise(data, rng):
    """Cumulated sums with cumulated noise."""
    return np.cumsum(data) + np.cumsum(rng.laplace(0, 1, len(data)))
