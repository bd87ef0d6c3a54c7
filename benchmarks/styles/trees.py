"""Prefix sums, tree aggregation, wavelets, and counters that run."""

import math

import numpy as np

from benchmarks.styles.pairs import BITS, CODES, GAUSS, GROUPS, ONE
from benchmarks.styles.registry import right, wrong
from dpaudit import Pair, PureDP

# Eight days, of which each row has one; and a stream whose entries are rows.
DAYS = Pair([0.0, 3.0, 5.0, 7.0], [0.0, 3.0, 5.0, 7.0, 0.0])
DAY = "codes:8"
STREAM = Pair([1, 0, 1, 1, 0, 0, 1, 0], [1, 0, 0, 1, 0, 0, 1, 0])


def per_day(data, days=8):
    """Return how many rows each day has."""
    return np.bincount(data.astype(int), minlength=days).astype(float)


@right(
    ONE,
    DAYS,
    "a row is in one node of each of four levels",
    domain=DAY,
    source="Dwork, Naor, Pitassi, Rothblum 2010",
)
def binary_tree(data, rng):
    """All nodes of a binary tree with noise, level by level."""
    level, tree = per_day(data), []
    while True:
        tree.append(level + rng.laplace(0, 4.0, len(level)))
        if len(level) == 1:
            return np.concatenate(tree)
        level = level[0::2] + level[1::2]


@wrong(ONE, DAYS, "a tree over eight days has four levels, not three")
def binary_tree_one_level_short(data, rng):
    """All nodes of a binary tree with noise for log2(8) levels."""
    level, tree = per_day(data), []
    scale = math.log2(8) / 1.0  # part
    while len(level) >= 1:
        tree.append(level + rng.laplace(0, scale, len(level)))  # fault
        if len(level) == 1:
            break
        level = level[0::2] + level[1::2]
    return np.concatenate(tree)


@right(
    ONE,
    STREAM,
    "an entry is in at most four partial sums",
    source="Chan, Shi, Song 2011",
)
def running_counter(data, rng):
    """The binary mechanism: partial sums that are closed with noise as time passes."""
    sums, noisy, out = np.zeros(4), np.zeros(4), []
    for t in range(1, len(data) + 1):
        i = (t & -t).bit_length() - 1
        sums[i] = sums[:i].sum() + data[t - 1]
        sums[:i] = 0
        noisy[:i] = 0
        noisy[i] = sums[i] + rng.laplace(0, 4.0)
        out.append(sum(noisy[j] for j in range(4) if t >> j & 1))
    return np.array(out)


@wrong(ONE, STREAM, "the count starts again from the exact one")
def counter_from_the_exact_total(data, rng):
    """A counter that starts again from the exact total after four steps."""
    out, base, noise = [], 0.0, 0.0
    for t, entry in enumerate(data):
        if t == 4:
            base, noise = data[:4].sum(), 0.0  # part
            out.append(base)  # fault
        base = base + entry
        noise = noise + rng.laplace(0, 1.0)
        out.append(base + noise)
    return out


@right(ONE, STREAM, "each entry is in one increment")
def cumulated_increments(data, rng):
    """Prefix sums of noisy increments, by cumsum."""
    return np.cumsum(np.clip(data, 0, 1) + rng.laplace(0, 1.0, len(data)))


@wrong(
    ONE,
    Pair([0, 0, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]),
    "an entry is in all later prefixes, and each has noise for 1",
)
def noisy_prefixes(data, rng):
    """Prefix sums with noise on each, for a sensitivity of 1."""
    return np.cumsum(np.clip(data, 0, 1)) + rng.laplace(0, 1.0, len(data))  # fault


@right(ONE, STREAM, "eight prefixes at 1/8 each")
def noisy_prefixes_paid(data, rng):
    """Prefix sums with noise on each, for a sensitivity of eight."""
    return np.cumsum(np.clip(data, 0, 1)) + rng.laplace(0, len(data), len(data))


def haar(values):
    """Return the Haar coefficients of eight values, unnormed, and their levels."""
    coefficients, levels, level = [], [], 0
    while len(values) > 1:
        coefficients.extend((values[0::2] - values[1::2]) / 2)
        values = (values[0::2] + values[1::2]) / 2
        levels.extend([level] * len(values))
        level += 1
    return np.array([*coefficients, values[0]]), np.array([*levels, level - 1])


@right(
    ONE,
    DAYS,
    "a coefficient of level l moves by 2^-(l+1): four of 1/4 each",
    source="Xiao, Wang, Gehrke 2010",
    domain=DAY,
)
def wavelet_noise(data, rng):
    """Haar coefficients with noise that is halved from level to level."""
    coefficients, levels = haar(per_day(data))
    return coefficients + 4 * 2.0 ** -(levels + 1) * rng.laplace(0, 1.0, 8)


@wrong(ONE, DAYS, "noise is halved once more on each level")
def wavelet_noise_too_fast(data, rng):
    """Haar coefficients with noise that shrinks by four from level to level."""
    coefficients, levels = haar(per_day(data))
    return coefficients + 2 * 4.0**-levels * rng.laplace(0, 1.0, 8)  # fault


@right(GAUSS, CODES, "the Haar basis is a rotation", domain=GROUPS)
def hadamard_range_queries(data, rng):
    """Range queries from noisy coefficients in an orthonormal Hadamard basis."""
    two = np.array([[1, 1], [1, -1]]) / 2**0.5
    basis = np.kron(two, two)
    noisy = basis @ per_day(data, 4) + rng.normal(0, 1.0, 4)
    return np.cumsum(basis.T @ noisy)


@right(
    GAUSS,
    DAYS,
    "prefixes are A = LR, noise on R x, whose columns have norm 1",
    source="matrix mechanism",
    domain=DAY,
)
def matrix_mechanism(data, rng):
    """Prefix sums by a square root of the matrix of ones."""
    coefficients = [1.0]
    for k in range(1, 8):
        coefficients.append(coefficients[-1] * (2 * k - 1) / (2 * k))
    root = np.array(
        [[coefficients[i - j] if i >= j else 0.0 for j in range(8)] for i in range(8)]
    )
    sensitivity = np.linalg.norm(root, axis=0).max()
    return root @ (root @ per_day(data) + rng.normal(0, sensitivity, 8))


@wrong(GAUSS, DAYS, "a column of the root is 2.83 long")
def matrix_mechanism_of_one(data, rng):
    """Prefix sums by a square root of the matrix of ones, with noise for norm 1."""
    ones = np.tril(np.ones((8, 8)))
    root = np.linalg.cholesky(ones @ ones.T)
    noisy = root @ per_day(data) + rng.normal(0, 1.0, 8)  # fault
    return np.linalg.solve(root, ones @ noisy)


@right(
    ONE,
    DAYS,
    "post-processing of three levels at 1/3",
    domain=DAY,
    source="Hay, Rastogi, Miklau, Suciu 2010",
)
def consistent_tree(data, rng):
    """A tree of three levels whose children are made to add up to their parents."""
    counts = per_day(data)
    leaves = counts + rng.laplace(0, 3.0, 8)
    pairs = counts.reshape(4, 2).sum(axis=1) + rng.laplace(0, 3.0, 4)
    halves = counts.reshape(2, 4).sum(axis=1) + rng.laplace(0, 3.0, 2)
    pairs = pairs + np.repeat((halves - pairs.reshape(2, 2).sum(axis=1)) / 2, 2)
    leaves = leaves + np.repeat((pairs - leaves.reshape(4, 2).sum(axis=1)) / 2, 2)
    return leaves


@wrong(ONE, DAYS, "leaves are made to add up to the exact total")
def consistent_with_the_total(data, rng):
    """Noisy leaves that are shifted until they add up to the exact total."""
    counts = per_day(data)
    leaves = counts + rng.laplace(0, 1.0, 8)
    return leaves + (counts.sum() - leaves.sum()) / 8  # fault


@right(
    PureDP(2.0), DAYS, "the column of a day has eight ones in L1 at scale 4", domain=DAY
)
def all_prefixes_by_a_matrix(data, rng):
    """Range queries as a matrix times counts, with noise for its columns."""
    queries = np.tril(np.ones((8, 8)))
    return queries @ per_day(data) + rng.laplace(0, queries.sum(axis=0).max() / 2, 8)


@right(ONE, BITS, "two blocks, of which a row is in one", domain="codes:2")
def parallel_blocks(data, rng):
    """Two halves of a partition, each with all of epsilon."""
    noisy = [np.sum(data == k) + rng.laplace(0, 1.0) for k in (0, 1)]
    return [*noisy, sum(noisy)]
