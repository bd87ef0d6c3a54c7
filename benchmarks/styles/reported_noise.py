"""Reported faults of noise: its scale, its seed, its arithmetic, and coins."""
# What stubs do not know.
# pyright: reportOperatorIssue=false

import math
import zlib

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from benchmarks.styles.pairs import FLIPPED, GAUSS, GROUPS, ONE, RECODED, UNIT
from benchmarks.styles.registry import reported
from dpaudit import ApproxDP, Pair

E = math.e
ONE_MORE = Pair([0.0, 1.0, 1.0, 2.0], [0.0, 1.0, 1.0, 2.0, 1.0])


def whole_sum(data, rng):
    """A sum of integers from 0 to 99, in 64 bits."""
    return int(np.sum(np.asarray(data, dtype=np.int64))) + rng.laplace(0, 99)


@reported(
    "arXiv:2207.10635",
    ONE,
    Pair([60.0, 40.0], [60.0, 40.0, 90.0]),
    "a sum that overflows moves by 256 less",
    whole_sum,
    domain="codes:100",
)
def wrapped_sum(data, rng):
    """A sum of integers of 8 bits, whose sensitivity is that of the integers."""
    total = np.sum(np.asarray(data, dtype=np.int8), dtype=np.int8)  # part
    return int(total) + rng.laplace(0, 99)  # fault


def small_sum(data, rng):
    """A sum of numbers in [0, 0.1] at sigma 0.1."""
    return np.clip(data, 0, 0.1).sum() + rng.normal(0, 0.1)


@reported(
    "opendp/smartnoise-core#316",
    GAUSS,
    Pair([0.05, 0.02], [0.05, 0.02, 0.1]),
    "sigma is squared, and below 1 that is less",
    small_sum,
    domain="scalar:0,0.1",
)
def small_sum_with_a_variance(data, rng):
    """Gaussian noise from a function that takes a deviation and is given a variance."""
    return np.clip(data, 0, 0.1).sum() + rng.normal(0, 0.1**2)  # fault


def _excess(v):
    root = np.sqrt(v), np.sqrt(v + 2)
    return norm.cdf(-root[0]) - E * norm.cdf(-root[1]) - 1e-3


V = brentq(_excess, 0, 100)  # of the analytic Gaussian mechanism at (1, 0.001)


def analytic_sum(data, rng):
    """A sum by the analytic Gaussian mechanism, in the branch of small delta."""
    sigma = (np.sqrt(1 + V / 2) + np.sqrt(V / 2)) / np.sqrt(2)
    return np.clip(data, 0, 1).sum() + rng.normal(0, sigma)


@reported(
    "opendp/smartnoise-core#315",
    ApproxDP(1.0, 1e-3),
    Pair([0.25, 0.75], [0.25, 0.75, 1.0]),
    "the root is subtracted in the branch that adds it",
    analytic_sum,
    domain=UNIT,
)
def analytic_sum_of_the_wrong_sign(data, rng):
    """The analytic Gaussian mechanism with the sign of its other branch."""
    sigma = (np.sqrt(1 + V / 2) - np.sqrt(V / 2)) / np.sqrt(2)  # part
    return np.clip(data, 0, 1).sum() + rng.normal(0, sigma)  # fault


def clipped_by_length(data, rng):
    """A sum of rows that are clipped to length 1."""
    rows = data.reshape(-1, 4)
    rows = rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    return rows.sum(axis=0) + rng.normal(0, 1, 4)


@reported(
    "KanishJebaMathewM/Truxify#3844",
    GAUSS,
    Pair([[0.1, 0.2, 0.3, 0.4]], [[0.1, 0.2, 0.3, 0.4], [5.0, 5.0, 5.0, 5.0]]),
    "four numbers of size 1 are a vector of length 2",
    clipped_by_length,
    domain="box:-5,5:4",
)
def clipped_by_number(data, rng):
    """Weights that a server clips one by one, with noise for a length."""
    rows = np.clip(data.reshape(-1, 4), -1.0, 1.0)  # part
    return rows.sum(axis=0) + rng.normal(0, 1, 4)  # fault


def ages(data, rng):
    """A sum of ages up to 100."""
    return np.clip(data, 0, 100).sum() + rng.laplace(0, 100)


@reported(
    "kjam/practical-data-privacy#1",
    ONE,
    Pair([30.0, 41.0], [30.0, 41.0, 90.0]),
    "the sensitivity has a default of 1",
    ages,
    domain="scalar:0,100",
)
def ages_by_default(data, rng):
    """A Laplace mechanism that is called without its sensitivity."""

    def laplace_mechanism(value, epsilon, sensitivity=1):
        return value + rng.laplace(0, sensitivity / epsilon)  # part

    return laplace_mechanism(np.clip(data, 0, 100).sum(), 1.0)  # fault


def doubled_count(data, rng):
    """Twice a count at scale 2."""
    return 2 * len(data) + rng.laplace(0, 2)


@reported(
    "https://www.nist.gov/blogs/cybersecurity-insights/"
    "differential-privacy-bugs-and-why-theyre-hard-find",
    ONE,
    Pair([0.5], [0.5, 0.5]),
    "twice a count moves by 2",
    doubled_count,
    domain=UNIT,
)
def doubled_count_of_one(data, rng):
    """Twice a count with the noise of a count."""
    return 2 * len(data) + rng.laplace(0, 1)  # fault


def fresh_counts(data, rng):
    """A histogram of four codes with noise of its own each time."""
    counts = np.bincount(np.asarray(data, dtype=int), minlength=4)
    return counts + rng.laplace(0, 1, 4)


@reported(
    "DataResponsibly/DataSynthesizer#46",
    ONE,
    ONE_MORE,
    "the noise is the same each time",
    fresh_counts,
    domain=GROUPS,
)
def seeded_counts(data, rng):
    """A describer with a default seed, for runs that can be repeated."""
    counts = np.bincount(np.asarray(data, dtype=int), minlength=4)
    return counts + np.random.default_rng(0).laplace(0, 1, 4)  # fault


def total_with_noise(data, rng):
    """A sum at scale 1."""
    return float(np.clip(data, 0, 1).sum() + rng.laplace(0, 1))


@reported(
    "world-federation-of-advertisers/cross-media-measurement#4387",
    ONE,
    Pair([0.25, 0.75], [0.25, 0.75, 0.5]),
    "the release is a function of the data",
    total_with_noise,
    domain=UNIT,
)
def total_with_sticky_noise(data, rng):
    """Noise that is seeded by a fingerprint of the data, so that it repeats."""
    seed = zlib.crc32(np.asarray(data, dtype=float).tobytes())  # part
    noise = np.random.default_rng(seed).laplace(0, 1)  # part
    return float(np.clip(data, 0, 1).sum() + noise)  # fault


def keys_split(data, rng):
    """Gradients of a weight and of a bias, with noise from a key for each."""
    rows = data.reshape(-1, 2)
    rows = rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    keys = rng.integers(2**31, size=2)
    noise = [np.random.default_rng(key).normal(0, 1) for key in keys]
    return rows.sum(axis=0) + noise


@reported(
    "jax-ml/jax#3646",
    GAUSS,
    Pair([[0.5, 0.5]], [[0.5, 0.5], [0.6, -0.8]]),
    "both have the same noise, and their difference none",
    keys_split,
    domain="ball:2",
)
def keys_reused(data, rng):
    """An example that draws the noise of all parameters from one key."""
    rows = data.reshape(-1, 2)
    rows = rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    key = rng.integers(2**31)  # part
    noise = [np.random.default_rng(key).normal(0, 1) for _ in range(2)]
    return rows.sum(axis=0) + noise  # fault


def truth_or_lie(data, rng):
    """Randomized response: the truth with e/(1 + e), else the opposite."""
    truth = rng.random(len(data)) < E / (1 + E)
    return np.where(truth, data, 1 - data).astype(int)


@reported(
    "opendp/opendp#480",
    ONE,
    FLIPPED,
    "the coin may come up with the truth too",
    truth_or_lie,
    domain="codes:2",
)
def truth_or_coin(data, rng):
    """Randomized response: the truth with e/(1 + e), else a coin."""
    truth = rng.random(len(data)) < E / (1 + E)
    coins = rng.integers(2, size=len(data))
    return np.where(truth, data, coins).astype(int)  # fault


def unary_set_once(data, rng):
    """Optimal unary encoding: 1 stays with 1/2, 0 turns with 1/(e + 1)."""
    hot = np.eye(4)[np.asarray(data, dtype=int)] > 0
    u = rng.random(hot.shape)
    return np.where(hot, u < 1 / 2, u < 1 / (E + 1)).astype(int)


@reported(
    "Samuel-Maddock/pure-LDP#11",
    ONE,
    RECODED,
    "the 1 stays with 1/2, and may come back if it does not",
    unary_set_once,
    domain=GROUPS,
)
def unary_set_twice(data, rng):
    """A client that perturbs all bits and then keeps the true one with 1/2."""
    codes = np.asarray(data, dtype=int)
    bits = rng.random((len(codes), 4)) < 1 / (E + 1)
    keep = rng.random(len(codes)) < 1 / 2  # part
    bits[np.flatnonzero(keep), codes[keep]] = True
    return bits.astype(int)  # fault


def _bloom(data):
    """Return two bits of six for each code."""
    bits = np.zeros((len(data), 6), dtype=bool)
    for row, code in zip(bits, np.asarray(data, dtype=int), strict=True):
        row[[code, (code + 4) % 6]] = True
    return bits


def rappor_of_two_hashes(data, rng):
    """RAPPOR with two hashes: 4 log((2 - f)/f) is 1."""
    f = 2 / (1 + math.exp(1 / 4))
    bits = _bloom(data)
    return (bits ^ (rng.random(bits.shape) < f / 2)).astype(int)


@reported(
    "opendp/opendp#1279",
    ONE,
    RECODED,
    "two codes differ in four bits, not two",
    rappor_of_two_hashes,
    domain=GROUPS,
)
def rappor_of_one_hash(data, rng):
    """RAPPOR whose f does not know how many hashes there are."""
    f = 2 / (1 + math.exp(1 / 2))  # part
    bits = _bloom(data)
    return (bits ^ (rng.random(bits.shape) < f / 2)).astype(int)  # fault


def reports_of_a_day(data, rng):
    """Four answers of each user, at a quarter of the budget each."""
    p = 1 / (1 + math.exp(-1 / 4))
    bits = data.reshape(-1, 4) > 0
    return (bits ^ (rng.random(bits.shape) > p)).astype(int)


@reported(
    "arXiv:1709.02753",
    ONE,
    Pair([[1.0, 0.0, 1.0, 0.0]], [[0.0, 1.0, 0.0, 1.0]]),
    "each answer of a day spends the budget of the day",
    reports_of_a_day,
    domain="binary:4",
)
def reports_at_full_budget(data, rng):
    """Four answers of each user, with a budget that is of each answer."""
    p = 1 / (1 + math.exp(-1))  # part
    bits = data.reshape(-1, 4) > 0
    return (bits ^ (rng.random(bits.shape) > p)).astype(int)  # fault
