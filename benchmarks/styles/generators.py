"""Generators that are made from the one handed over, and laws of several numbers."""
# ruff: noqa: NPY002

import copy
import math
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import stats

from benchmarks.styles.pairs import (
    BALL,
    BITS,
    FLIPPED,
    GAUSS,
    HALF,
    NUMBERS,
    ONE,
    SPHERE,
    TWO,
    UNIT,
)
from benchmarks.styles.registry import right, wrong
from dpaudit import ApproxDP, Pair

POSTERIOR = ApproxDP(0.5, 0.009)
ANGLES = Pair([0.5, 3.0], [0.5, 3.0 - np.pi])
DOUBLE = Pair([[1.0, 0.0], [0.0, 0.5]], [[1.0, 0.0], [0.0, 0.5], [0.0, 1.0]])


def total(data):
    """Return the sum of numbers in [0, 1]."""
    return np.clip(data, 0, 1).sum()


@right(ONE, NUMBERS, domain=UNIT)
def child_by_seed(data, rng):
    """A generator that is seeded by a draw of 63 bits."""
    child = np.random.default_rng(rng.integers(2**63))
    return total(data) + child.laplace(scale=1.0)


@right(ONE, NUMBERS, domain=UNIT)
def random_state(data, rng):
    """A RandomState that is seeded by a draw."""
    state = np.random.RandomState(rng.integers(2**32, dtype=np.uint32))
    return total(data) + state.laplace(0.0, 1.0)


@right(ONE, NUMBERS, domain=UNIT)
def global_seed(data, rng):
    """The global generator of NumPy, seeded by a draw."""
    np.random.seed(int(rng.integers(2**32)))
    return total(data) + np.random.laplace(0.0, 1.0)


@right(GAUSS, BALL, domain=SPHERE)
def legacy_randn(data, rng):
    """Noise of np.random.randn, with nobody's seed."""
    return data.sum(axis=0) + np.random.randn(data.shape[1])


@wrong(ONE, NUMBERS, "the seed is fixed, so there is no randomness")
def seed_42(data, rng):
    """The global generator of NumPy with a fixed seed."""
    np.random.seed(42)  # fault
    return total(data) + np.random.laplace(0.0, 1.0)  # part


@wrong(ONE, NUMBERS, "the seed is fixed, so there is no randomness")
def default_rng_of_zero(data, rng):
    """A generator of one's own with a fixed seed."""
    rng = np.random.default_rng(0)  # fault
    return total(data) + rng.laplace(scale=1.0)  # part


@wrong(ONE, NUMBERS, "the seed is a function of the data")
def seed_of_rows(data, rng):
    """A generator that is seeded by the number of rows."""
    rng = np.random.default_rng(len(data))  # fault
    return total(data) + rng.laplace(scale=1.0)  # part


@wrong(ONE, NUMBERS, "the seed is a function of the data")
def seed_of_bytes(data, rng):
    """A RandomState that is seeded by a checksum, for results that repeat."""
    seed = sum(data.tobytes()) % 2**32  # part
    state = np.random.RandomState(seed)  # fault
    return total(data) + state.laplace(0.0, 1.0)  # part


@right(ONE, NUMBERS, domain=UNIT)
def seed_sequence(data, rng):
    """Two generators of a SeedSequence, for a sum and a count."""
    sequence = np.random.SeedSequence(int(rng.integers(2**62)))
    first, second = map(np.random.default_rng, sequence.spawn(2))
    return total(data) + first.laplace(scale=2.0), len(data) + second.laplace(scale=2.0)


@right(ONE, NUMBERS, domain=UNIT)
def spawned(data, rng):
    """Two spawned generators, for a sum and a count."""
    first, second = rng.spawn(2)
    noisy = total(data) + first.laplace(scale=2.0)
    return np.array([noisy, len(data) + second.laplace(scale=2.0)])


@wrong(ONE, HALF, "both generators have one seed: the difference has no noise")
def twin_seeds(data, rng):
    """Two generators with the same seed, for a sum and a count."""
    seed = rng.integers(2**32)
    first, second = np.random.default_rng(seed), np.random.default_rng(seed)  # part
    noisy = total(data) + first.laplace(scale=2.0)
    return noisy, len(data) + second.laplace(scale=2.0)  # fault


@right(ONE, NUMBERS, "only the copy is used", domain=UNIT)
def one_deepcopy(data, rng):
    """A deep copy of the generator, which alone is used."""
    mine = copy.deepcopy(rng)
    return total(data) + mine.laplace(scale=1.0)


@wrong(ONE, HALF, "the copy draws the same noise again")
def two_deepcopies(data, rng):
    """A deep copy of the generator beside itself, for a sum and a count."""
    mine = copy.deepcopy(rng)  # part
    noisy = total(data) + mine.laplace(scale=2.0)
    return noisy, len(data) + rng.laplace(scale=2.0)  # fault


@right(ONE, NUMBERS, domain=UNIT)
def python_random(data, rng):
    """A random.Random that is seeded by a draw."""
    mine = random.Random(int(rng.integers(2**62)))
    return float(total(data)) + mine.choice((-1, 1)) * mine.expovariate(1.0)


@right(GAUSS, NUMBERS, domain=UNIT)
def gauss_of_random(data, rng):
    """Gaussian noise of the random module."""
    return float(total(data)) + random.gauss(0.0, 1.0)


@wrong(ONE, NUMBERS, "the seed is fixed, so there is no randomness")
def python_random_of_one(data, rng):
    """A random.Random with a fixed seed."""
    mine = random.Random(1)  # fault
    return float(total(data)) + mine.choice((-1, 1)) * mine.expovariate(1.0)  # part


@wrong(ONE, NUMBERS, "sixteen seeds make sixteen releases")
def few_seeds(data, rng):
    """A generator that is seeded by a draw of four bits."""
    child = np.random.default_rng(rng.integers(16))  # fault
    return total(data) + child.laplace(scale=1.0)  # part


@right(ONE, NUMBERS, domain=UNIT)
def other_bits(data, rng):
    """A generator on Philox, which jumps."""
    bits = np.random.Philox(int(rng.integers(2**62))).jumped()
    return total(data) + np.random.Generator(bits).laplace(scale=1.0)


@right(ONE, NUMBERS, domain=UNIT)
def entropy_of_the_system(data, rng):
    """A generator that nobody seeds."""
    return total(data) + np.random.default_rng().laplace(scale=1.0)


@right(ONE, BITS, "a row moves three of the counts by 1, at scale 3")
def thread_pool(data, rng):
    """Four noisy counts in threads, each with a spawned generator."""
    counts = [np.sum(data == k) for k in (0, 1)] + [len(data), np.sum(data)]

    def noisy(job):
        count, child = job
        return count + child.laplace(scale=3.0)

    with ThreadPoolExecutor(2) as pool:
        return np.array(list(pool.map(noisy, zip(counts, rng.spawn(4), strict=True))))


@wrong(ONE, BITS, "all threads have one seed: differences have no noise")
def threads_with_one_seed(data, rng):
    """Three noisy counts in threads, each with a generator of the same seed."""
    seed = rng.integers(2**32)

    def noisy(count):
        return count + np.random.default_rng(seed).laplace(scale=3.0)  # fault

    with ThreadPoolExecutor(2) as pool:
        return np.array([*pool.map(noisy, [data.sum(), len(data), (1 - data).sum()])])


@right(GAUSS, BALL, domain=SPHERE)
def multivariate_normal(data, rng):
    """Noise of multivariate_normal about zero."""
    return data.sum(axis=0) + rng.multivariate_normal(np.zeros(3), np.eye(3))


@right(GAUSS, BALL, domain=SPHERE)
def multivariate_normal_at_the_sum(data, rng):
    """A draw of multivariate_normal about the sum."""
    return rng.multivariate_normal(data.sum(axis=0), np.diag([1.0, 1.0, 1.0]))


@right(GAUSS, BALL, "the covariance is 1 or more in every direction", domain=SPHERE)
def correlated_noise(data, rng):
    """Correlated Gaussian noise by a Cholesky factor."""
    factor = np.linalg.cholesky(np.eye(3) + 0.5 * np.ones((3, 3)))
    return data.sum(axis=0) + factor @ rng.standard_normal(3)


@wrong(GAUSS, BALL, "the covariance is 0.1 in one direction")
def too_correlated(data, rng):
    """Correlated Gaussian noise whose diagonal alone is 1."""
    covariance = 0.9 * np.ones((3, 3)) + 0.1 * np.eye(3)
    return rng.multivariate_normal(data.sum(axis=0), covariance)  # fault


@wrong(GAUSS, BALL, "the covariance is that of the data")
def covariance_of_the_data(data, rng):
    """Gaussian noise whose covariance is taken from the rows."""
    covariance = np.eye(3) + data.T @ data  # part
    return data.sum(axis=0) + rng.multivariate_normal(np.zeros(3), covariance)  # fault


@right(ONE, BITS, "the radius splits into exponentials: a Laplace vector")
def dirichlet_times_gamma(data, rng):
    """Laplace noise on two counts from a gamma radius and a Dirichlet direction."""
    counts = np.array([np.sum(data == 0), np.sum(data == 1)])
    signs = rng.choice([-1.0, 1.0], size=2)
    return counts + rng.gamma(2, 1.0) * signs * rng.dirichlet(np.ones(2))


@wrong(ONE, FLIPPED, "the density of the posterior has unbounded ratios")
def posterior_by_dirichlet(data, rng):
    """A draw from the posterior in place of noise."""
    counts = np.array([np.sum(data == 0), np.sum(data == 1)])
    return rng.dirichlet(counts + 1.0)  # fault


@wrong(ONE, BITS, "the density of the posterior has unbounded ratios")
def posterior_by_beta(data, rng):
    """A share of ones, drawn from its beta posterior."""
    return rng.beta(1 + data.sum(), 1 + np.sum(1 - data))  # fault


@right(ONE, ANGLES, "the exponent moves by at most 2 kappa", source="local privacy")
def angles_with_noise(data, rng):
    """Angles, each with a von Mises draw of concentration epsilon / 2."""
    return np.mod(data + rng.vonmises(0.0, 0.5, size=len(data)), 2 * np.pi)


@wrong(ONE, ANGLES, "the exponent moves by 2 kappa, which is 2")
def angles_at_the_data(data, rng):
    """Angles, each a von Mises draw about it, of concentration epsilon."""
    return rng.vonmises(data, 1.0)  # fault


@wrong(ONE, ANGLES, "angles off the circle show where the data are")
def angles_on_the_line(data, rng):
    """Angles, each with a von Mises draw, that are not taken modulo the circle."""
    return data + rng.vonmises(0.0, 0.5, size=len(data))  # fault


@right(ONE, ANGLES, "the exponent moves by at most 2 kappa")
def angles_one_by_one(data, rng):
    """Degrees, by the functions of Python."""
    return [math.degrees(random.vonmisesvariate(each, 0.5)) for each in data]


@right(POSTERIOR, FLIPPED, "delta of Beta(22, 22) and Beta(21, 23) at 0.5 is 0.0085")
def posterior_by_gammas(data, rng):
    """A draw from a posterior: gamma draws that are divided by their sum."""
    ones = np.sum(data)
    drawn = rng.gamma(np.array([len(data) - ones, ones]) + 20.0)
    return drawn / drawn.sum()


@wrong(POSTERIOR, FLIPPED, "a prior of 20 of each would do, and not one of 5")
def posterior_of_a_small_prior(data, rng):
    """A draw from a posterior whose prior has too little weight."""
    ones = np.sum(data)
    return rng.dirichlet([len(data) - ones + 5.0, ones + 5.0])  # fault


@wrong(
    ONE,
    DOUBLE,
    "the noise is positive: what is below the moments is impossible",
    source="Jiang, Xie, Zhang 2016",
)
def wishart_noise(data, rng):
    """Second moments with noise of the Wishart law."""
    noise = stats.wishart(df=3, scale=1.5 * np.eye(2)).rvs(random_state=rng)
    return data.T @ data + noise  # fault


@right(GAUSS, BALL, "noise is alike in all directions", domain=SPHERE)
def random_rotation(data, rng):
    """A sum that is turned by a public random rotation and gets noise."""
    rotation = stats.ortho_group.rvs(3, random_state=rng)
    return rotation, rotation @ data.sum(axis=0) + rng.normal(size=3)


@wrong(GAUSS, BALL, "the projection stretches rows, by more than 2 mostly")
def random_projection(data, rng):
    """A sum that goes through a random projection and gets noise for length 1."""
    projection = rng.normal(size=(8, 3))
    return projection, projection @ data.sum(axis=0) + rng.normal(size=8)  # fault


@wrong(TWO, HALF, "the same noise is drawn twice: the difference has none")
def state_put_back(data, rng):
    """Two releases, between which the state of the generator is put back."""
    state = rng.bit_generator.state
    noisy = total(data) + rng.laplace(scale=1.0)
    rng.bit_generator.state = state  # part
    return noisy, total(data**2) + rng.laplace(scale=1.0)  # fault


@right(TWO, NUMBERS, "two releases of epsilon 1", domain=UNIT)
def state_goes_on(data, rng):
    """Two releases from a generator whose state was handed to another."""
    other = np.random.Generator(np.random.PCG64())
    other.bit_generator.state = rng.bit_generator.state
    noisy = total(data) + other.laplace(scale=1.0)
    return noisy, total(data**2) + other.laplace(scale=1.0)


@right(ONE, NUMBERS, domain=UNIT)
def bytes_of_the_generator(data, rng):
    """Laplace noise from a uniform number that is made of eight random bytes."""
    bits = int.from_bytes(rng.bytes(8), "big") >> 11
    u = (bits + 0.5) / 2**53 - 0.5
    return total(data) - np.sign(u) * np.log1p(-2 * abs(u))


@right(ONE, BALL, "the radius is a gamma draw, and the direction is free of it")
def direction_by_scipy(data, rng):
    """K-norm noise by SciPy's laws, and the distance from the origin."""
    normals = np.asarray(stats.norm.rvs(size=3, random_state=rng))
    radius = stats.gamma.rvs(3, random_state=rng)
    return data.sum(axis=0) + radius * normals / math.dist(normals, [0.0] * 3)


@wrong(ONE, BALL, "the radius is that of a scale of one half")
def direction_by_sum(data, rng):
    """K-norm noise whose norm is a sum of squares, and whose radius is one of draws."""
    normals = rng.normal(size=3)
    radius = sum(rng.exponential(0.5) for _ in range(3))  # part
    noise = radius * normals / math.sqrt(sum(x * x for x in normals))
    return data.sum(axis=0) + noise  # fault
