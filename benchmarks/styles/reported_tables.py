"""Reported faults of tables: keys, edges, thresholds, and noise of many counts."""
# What stubs do not know.
# pyright: reportArgumentType=false
# pyright: reportAttributeAccessIssue=false
# pyright: reportCallIssue=false

import math

import numpy as np
import pandas as pd
from scipy.stats import norm

from benchmarks.styles.pairs import GROUPS, NUMBERS, ONE, RARE, UNIT
from benchmarks.styles.registry import reported
from dpaudit import ApproxDP, Pair
from dpaudit.object_pairs import ObjectPair

A = math.exp(-1)  # of geometric noise at epsilon 1
ALONE = Pair([0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 3.0])
SEXES = "frame of sex:{f,m} smokes:{no,yes}"
PERCENT = ApproxDP(1.0, 0.01)


def geometric(rng, size=None):
    """Return two-sided geometric noise of epsilon 1."""
    return rng.geometric(1 - A, size) - rng.geometric(1 - A, size)


def counted(data):
    """Return how often each code occurs that does."""
    codes, counts = np.unique(np.asarray(data, dtype=int), return_counts=True)
    return zip(codes.tolist(), counts.tolist(), strict=True)


# The chance that noise of a count of 1 reaches a threshold t is a^(t - 1)/(1 + a) for
# an integer t: 0.0134 at 5.
SMALL = 0.015
REACHED = 1 + math.log(1 / (SMALL * (1 + A)))  # 4.9


def threshold_rounded_up(data, rng):
    """Counts that reach 5: a key of one row does with 0.0134."""
    noisy = {code: count + geometric(rng) for code, count in counted(data)}
    return {code: n for code, n in noisy.items() if n >= math.ceil(REACHED)}


@reported(
    "google/differential-privacy#101",
    ApproxDP(1.0, SMALL),
    ALONE,
    "a key of one row reaches 4 with 0.036",
    threshold_rounded_up,
    domain=GROUPS,
)
def threshold_cut_to_an_integer(data, rng):
    """Counts of unknown keys, whose threshold of 4.9 is converted to an integer."""
    noisy = {code: count + geometric(rng) for code, count in counted(data)}
    return {code: n for code, n in noisy.items() if n >= int(REACHED)}  # fault


def words_above(words, rng):
    """Words whose noisy count is above 4, which one of one does with 0.0134."""
    noisy = {word: words.count(word) + geometric(rng) for word in sorted(set(words))}
    return {word: int(n) for word, n in noisy.items() if n > 4}


@reported(
    "opendp/opendp#2922",
    ApproxDP(1.0, A**4 / (1 + A)),
    ObjectPair(["oak", "elm", "elm"], ["oak", "elm", "elm", "ash"], "add-remove"),
    "at the threshold it is released, and delta leaves that out",
    words_above,
    domain="list of {ash,elm,oak}",
)
def words_at_or_above(words, rng):
    """Words whose noisy count is 4 or more, with the delta of more than 4."""
    noisy = {word: words.count(word) + geometric(rng) for word in sorted(set(words))}
    return {word: int(n) for word, n in noisy.items() if n >= 4}  # fault


SIGMA = math.sqrt(2 * math.log(1.25 / 0.005))  # at (1, 0.005)


def gaussian_threshold(data, rng):
    """Counts above a quantile of their Gaussian noise: 0.005 twice."""
    tau = 1 + SIGMA * norm.ppf(1 - 0.005)
    noisy = {code: count + rng.normal(0, SIGMA) for code, count in counted(data)}
    return {code: n for code, n in noisy.items() if n > tau}


@reported(
    "opendp/smartnoise-sdk#204",
    PERCENT,
    ALONE,
    "a key of one row is seen with 0.08",
    gaussian_threshold,
    domain=GROUPS,
)
def laplace_threshold_of_gaussian_noise(data, rng):
    """Counts with Gaussian noise, and the threshold of Laplace noise."""
    tau = 1 + math.log(1 / (2 * 0.005))  # part
    noisy = {code: count + rng.normal(0, SIGMA) for code, count in counted(data)}
    return {code: n for code, n in noisy.items() if n > tau}  # fault


def visited(data):
    """Return how many users were in each of four places, three of each at most."""
    places = data.reshape(-1, 4) > 0
    return (places & (np.cumsum(places, axis=1) <= 3)).sum(axis=0)


def tau_of_all_bins(data, rng):
    """Places whose count at scale 3 is above a threshold: a third of delta each."""
    tau = 1 + 3 * math.log(3 / (2 * 0.01))
    counts = visited(data)
    noisy = counts + rng.laplace(0, 3, 4)
    return np.where((counts > 0) & (noisy > tau), noisy, 0.0)


@reported(
    "opendp/smartnoise-sdk#568",
    PERCENT,
    Pair([[1.0, 0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]]),
    "a user is seen in any of three places",
    tau_of_all_bins,
    domain="binary:4",
)
def tau_of_one_bin(data, rng):
    """The same with a threshold for one place of each user."""
    tau = 1 + 3 * math.log(1 / (2 * 0.01))  # part
    counts = visited(data)
    noisy = counts + rng.laplace(0, 3, 4)
    return np.where((counts > 0) & (noisy > tau), noisy, 0.0)  # fault


def seen_if_noisy(data, rng):
    """Keys whose noisy count is above a threshold, 0.01 for one row."""
    noisy = {code: count + rng.laplace(0, 1) for code, count in counted(data)}
    return {code: n for code, n in noisy.items() if n > 1 + math.log(50)}


@reported(
    "opendp/smartnoise-sdk#309",
    PERCENT,
    Pair([0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]),
    "which keys have two rows is exact",
    seen_if_noisy,
    domain=GROUPS,
)
def seen_if_frequent(data, rng):
    """Keys of at least two rows, with noisy counts."""
    frequent = [(code, count) for code, count in counted(data) if count > 1]  # part
    return {code: count + rng.laplace(0, 1) for code, count in frequent}  # fault


def marginal_of_a_schema(data, rng):
    """Counts of four public categories."""
    counts = pd.Series(data, dtype=float).value_counts().reindex(range(4), fill_value=0)
    return counts + rng.laplace(0, 1, len(counts))


@reported(
    "alan-turing-institute/reprosyn#38",
    ONE,
    RARE,
    "how many categories there are is exact",
    marginal_of_a_schema,
    domain=GROUPS,
)
def marginal_of_the_data(data, rng):
    """A synthesizer that reads the domain of a column from the rows."""
    counts = pd.Series(data, dtype=float).value_counts(sort=False).sort_index()
    return counts + rng.laplace(0, 1, len(counts))  # fault


def histogram_of_bounds(data, rng):
    """A histogram of [0, 1]."""
    counts, edges = np.histogram(data, bins=4, range=(0, 1))
    return counts + rng.laplace(0, 1, 4), edges


@reported(
    "hazy/dpart#6",
    ONE,
    NUMBERS,
    "the edges are the least and the largest number",
    histogram_of_bounds,
    domain=UNIT,
)
def histogram_of_the_data(data, rng):
    """A binner that takes its range from the column."""
    low, high = (np.min(data), np.max(data)) if len(data) else (0, 1)  # part
    counts, edges = np.histogram(data, bins=4, range=(low, high))
    return counts + rng.laplace(0, 1, 4), edges  # fault


def _table(frame):
    levels = [["f", "m"], ["no", "yes"]]
    pairs = zip(frame["sex"], frame["smokes"], strict=True)
    seen = list(pairs)
    cells = [[seen.count((a, b)) for b in levels[1]] for a in levels[0]]
    return np.array(cells, dtype=float)


def conditionals(frame, rng):
    """Shares of smokers by sex, of counts at scale 2 under replacement."""
    cells = np.maximum(_table(frame) + rng.laplace(0, 2, (2, 2)), 0.01)
    return cells / cells.sum(axis=1, keepdims=True)


@reported(
    "DataResponsibly/DataSynthesizer#34",
    ONE,
    ObjectPair(
        pd.DataFrame({"sex": ["f", "m", "m"], "smokes": ["no", "no", "no"]}),
        pd.DataFrame({"sex": ["f", "m", "m"], "smokes": ["yes", "no", "no"]}),
        "replace-one",
    ),
    "the scale is that of shares, and counts get it",
    conditionals,
    domain=SEXES,
)
def conditionals_of_counts(frame, rng):
    """A Bayesian network with noise of scale 2/n on its counts."""
    scale = 2 / max(1, len(frame))  # part
    cells = np.maximum(_table(frame) + rng.laplace(0, scale, (2, 2)), 0.01)  # part
    return cells / cells.sum(axis=1, keepdims=True)  # fault


def mwem(data, rng):
    """Three rounds, each of a choice and a measurement at 1/6."""
    counts = np.bincount(np.asarray(data, dtype=int), minlength=4)
    guess, path = np.ones(4), []
    for _ in range(3):
        scores = np.abs(counts - guess)
        cell = int(np.argmax(scores + rng.gumbel(0, 2 * 6, 4)))
        guess[cell] = counts[cell] + rng.laplace(0, 6)
        path += [cell, guess[cell]]
    return np.array(path)


@reported(
    "opendp/smartnoise-sdk#472",
    ONE,
    Pair([0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 1.0]),
    "the noise is divided by the number of dimensions",
    mwem,
    domain=GROUPS,
)
def mwem_over_dimensions(data, rng):
    """MWEM that divides the scale of a measurement by the number of cells."""
    counts = np.bincount(np.asarray(data, dtype=int), minlength=4)
    guess, path = np.ones(4), []
    for _ in range(3):
        scores = np.abs(counts - guess)
        cell = int(np.argmax(scores + rng.gumbel(0, 2 * 6, 4)))
        guess[cell] = counts[cell] + rng.laplace(0, 6 / len(counts))  # part
        path += [cell, guess[cell]]
    return np.array(path)  # fault


def condition_of_noisy_shares(data, rng):
    """A category that is drawn by noisy counts, and these."""
    counts = np.bincount(np.asarray(data, dtype=int), minlength=4)
    noisy = counts + rng.laplace(0, 1, 4)
    weights = np.maximum(noisy, 0.01)
    return int(rng.choice(4, p=weights / weights.sum())), noisy


@reported(
    "opendp/smartnoise-sdk#301",
    ONE,
    RARE,
    "a category without rows is never drawn",
    condition_of_noisy_shares,
    domain=GROUPS,
)
def condition_of_shares(data, rng):
    """A conditional generator that draws its condition by the true shares."""
    counts = np.bincount(np.asarray(data, dtype=int), minlength=4)
    noisy = counts + rng.laplace(0, 1, 4)
    weights = counts + 1e-9
    condition = rng.choice(4, p=weights / weights.sum())  # part
    return int(condition), noisy  # fault
