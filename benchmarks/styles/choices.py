"""Choices: exponential mechanisms, noisy maxima, and quantiles."""

import math
import random

import numpy as np
from scipy.special import softmax

from benchmarks.styles.pairs import BITS, CODES, GROUPS, ONE, RECODED, SWAPPED, TWO
from benchmarks.styles.registry import right, wrong
from dpaudit import Pair, PureDP

# The row makes a tie, or breaks it.
TIE = Pair([0.0, 1.0, 1.0, 2.0, 2.0], [0.0, 1.0, 1.0, 2.0, 2.0, 2.0])
MIDDLE = Pair([0.1, 0.5, 0.9], [0.1, 0.5, 0.9, 0.95])
NARROW = Pair([0.5], [0.5, 0.5001])
STARS = Pair([2.0] * 6, [2.0] * 7)


def counts_of(data, size=4):
    """Return how often each code is there."""
    return np.bincount(data.astype(int), minlength=size)


@right(ONE, CODES, "counts only grow: exp(epsilon u)", domain=GROUPS)
def choice_with_p(data, rng):
    """The exponential mechanism by choice(p=...)."""
    weights = np.exp(counts_of(data) - counts_of(data).max())
    return rng.choice(4, p=weights / weights.sum())


@right(ONE, RECODED, "two counts move: exp(epsilon u / 2)")
def choice_of_replaced(data, rng):
    """The exponential mechanism by softmax, where rows are replaced."""
    return int(rng.choice(np.arange(4), p=softmax(0.5 * counts_of(data))))


@wrong(PureDP(0.5), STARS, "the factor 1/2 and the sensitivity of 5 are forgotten")
def choice_without_sensitivity(data, rng):
    """The exponential mechanism on sums of stars up to five."""
    scores = np.array([np.sum(data * (data == k)) for k in range(1, 6)])
    return int(rng.choice(5, p=softmax(0.5 * scores)))  # fault


@wrong(ONE, RECODED, "the scores move in both directions, and the half is missing")
def choice_without_the_half(data, rng):
    """The exponential mechanism without its factor 1/2, where rows are replaced."""
    return int(rng.choice(4, p=softmax(1.0 * counts_of(data))))  # fault


@right(ONE, CODES, "the inverse CDF of the exponential mechanism", domain=GROUPS)
def searchsorted(data, rng):
    """The exponential mechanism by searchsorted in cumulated weights."""
    cdf = np.cumsum(softmax(counts_of(data).astype(float)))
    return min(int(np.searchsorted(cdf, rng.random())), 3)


@wrong(ONE, RECODED, "the weights are exp(u), which is twice too steep")
def searchsorted_too_steep(data, rng):
    """The exponential mechanism by searchsorted, with weights exp(u)."""
    cdf = np.cumsum(softmax(counts_of(data).astype(float)))  # part
    return min(int(np.searchsorted(cdf, rng.random())), 3)  # fault


@right(ONE, CODES, "weights of the exponential mechanism", domain=GROUPS)
def choices_of_random(data, rng):
    """The exponential mechanism by random.choices."""
    counts = counts_of(data)
    weights = [math.exp(int(each) - int(counts.max())) for each in counts]
    return random.choices(range(4), weights=weights)[0]


@right(ONE, CODES, "the inverse CDF by a loop", domain=GROUPS)
def loop_over_weights(data, rng):
    """The exponential mechanism by a loop that subtracts weights from a draw."""
    weights = softmax(counts_of(data).astype(float))
    left = rng.random()
    for k in range(4):
        left -= weights[k]
        if left < 0:
            return k
    return 3


@right(ONE, CODES, "Gumbel noise makes the exponential mechanism", domain=GROUPS)
def gumbel_of_numpy(data, rng):
    """The exponential mechanism by NumPy's Gumbel noise and argmax."""
    return int(np.argmax(counts_of(data) + rng.gumbel(size=4)))


@right(ONE, CODES, "-log(-log u) is Gumbel", domain=GROUPS)
def gumbel_by_hand(data, rng):
    """The exponential mechanism by Gumbel noise from uniform numbers."""
    noise = -np.log(-np.log(rng.random(4)))
    return int((counts_of(data) + noise).argmax())


@wrong(ONE, RECODED, "the scale of Gumbel noise is 1/epsilon, and not 2/epsilon")
def gumbel_of_half_the_scale(data, rng):
    """Report noisy max with Gumbel noise, off by two."""
    return int(np.argmax(counts_of(data) + rng.gumbel(0, 1.0, 4)))  # fault


@right(ONE, CODES, "counts only grow: Laplace noise of scale 1", domain=GROUPS)
def noisy_max_of_laplace(data, rng):
    """Report noisy max with Laplace noise on counts."""
    return int(np.argmax(counts_of(data) + rng.laplace(0, 1.0, 4)))


@right(
    ONE,
    CODES,
    "exponential noise is permute-and-flip",
    source="McKenna, Sheldon 2020",
    domain=GROUPS,
)
def noisy_max_of_exponential(data, rng):
    """Report noisy max with exponential noise on counts."""
    noisy = counts_of(data) + rng.exponential(1.0, 4)
    return int(noisy.argmax())


@right(ONE, CODES, "of no weight, of which the logarithm is -inf", domain=GROUPS)
def gumbel_where_weights_are_zero(data, rng):
    """The exponential mechanism by Gumbel noise over intervals, one without length."""
    ends = np.array([0.0, 0.0, 1.0, 2.0, 3.0])
    with np.errstate(divide="ignore"):
        logs = np.log(np.diff(ends)) + counts_of(data) / 2
    place = int(np.argmax(logs + rng.gumbel(size=4)))
    return rng.uniform(ends[place], ends[place + 1])


@wrong(ONE, CODES, "an interval is there for some data alone")
def gumbel_over_intervals_of_data(data, rng):
    """The exponential mechanism by Gumbel noise, over intervals of the data."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.array([1.0, len(data) > 5, 1.0]))
    return int(np.argmax(logs + rng.gumbel(size=3)))  # fault


@right(ONE, CODES, "exponential noise is permute-and-flip", domain=GROUPS)
def running_maximum_of_exponential(data, rng):
    """Report noisy max with exponential noise, by a loop over three codes."""
    best, winner = -math.inf, None
    for k in range(3):
        noisy = np.sum(data == k) + rng.exponential(1.0)
        if noisy > best:
            best, winner = noisy, k
    return winner


@right(ONE, CODES, "a noisy maximum by a loop", domain=GROUPS)
def running_maximum(data, rng):
    """Report noisy max by a loop that keeps the best so far."""
    best, winner = -math.inf, 0
    for k in range(4):
        noisy = np.sum(data == k) + rng.laplace(0, 1.0)
        if noisy > best:
            best, winner = noisy, k
    return winner


@right(ONE, CODES, "a noisy maximum by max(key=)", domain=GROUPS)
def max_with_a_key(data, rng):
    """Report noisy max by max() over a dictionary."""
    noisy = {k: np.sum(data == k) + rng.laplace(0, 1.0) for k in range(4)}
    return max(noisy, key=lambda k: noisy[k])


@wrong(ONE, TIE, "there is no noise")
def argmax_without_noise(data, rng):
    """A mode by argmax, where noise is on the size of it only."""
    counts = counts_of(data)
    mode = int(np.argmax(counts))
    return mode, counts[mode] + rng.laplace(0, 1.0)  # fault


@wrong(ONE, TIE, "noise breaks ties only")
def noise_for_ties(data, rng):
    """A mode with a little noise, so that ties are broken at random."""
    return int(np.argmax(counts_of(data) + 1e-3 * rng.random(4)))  # fault


@wrong(ONE, TIE, "the gap is exact")
def noisy_max_and_values(data, rng):
    """Report noisy max, and the exact gap to the second."""
    counts = counts_of(data)
    winner = int(np.argmax(counts + rng.laplace(0, 1.0, 4)))
    gap = np.sort(counts)[-1] - np.sort(counts)[-2]
    return winner, int(gap)  # fault


@right(
    TWO,
    CODES,
    "two rounds of the exponential mechanism, the first taken out",
    domain=GROUPS,
)
def top_two_by_peeling(data, rng):
    """The top two by peeling: the exponential mechanism twice."""
    counts, chosen = counts_of(data).astype(float), []
    for _ in range(2):
        weights = softmax(counts)
        chosen.append(int(rng.choice(4, p=weights)))
        counts[chosen[-1]] = -np.inf
    return chosen


@right(
    TWO,
    CODES,
    "Gumbel noise once is peeling",
    source="Durfee, Rogers 2019",
    domain=GROUPS,
)
def top_two_at_once(data, rng):
    """The top two by one vector of Gumbel noise."""
    return np.argsort(-(counts_of(data) + rng.gumbel(0, 1.0, 4)))[:2]


@wrong(ONE, CODES, "two places are released for the price of one")
def top_two_for_one(data, rng):
    """The top two by one vector of Laplace noise, and their noisy counts."""
    noisy = counts_of(data) + rng.laplace(0, 0.5, 4)  # fault
    order = np.argsort(-noisy)[:2]
    return order, noisy[order]


@right(
    ONE,
    MIDDLE,
    "ranks move by 1: exp(epsilon u / 2) times the width",
    source="Smith 2011",
    domain="scalar:0,1",
)
def continuous_quantile(data, rng):
    """A median by the exponential mechanism on intervals between rows."""
    edges = np.concatenate([[0.0], np.sort(np.clip(data, 0, 1)), [1.0]])
    ranks = np.arange(len(edges) - 1)
    utility = -np.abs(ranks - len(data) / 2)
    widths = np.diff(edges)
    weights = widths * np.exp(0.5 * utility)
    k = rng.choice(len(widths), p=weights / weights.sum())
    return rng.uniform(edges[k], edges[k + 1])


@right(ONE, MIDDLE, "the same by Gumbel noise", domain="scalar:0,1")
def quantile_by_gumbel(data, rng):
    """A median by the exponential mechanism, with Gumbel noise on log weights."""
    edges = np.concatenate([[0.0], np.sort(np.clip(data, 0, 1)), [1.0]])
    utility = -np.abs(np.arange(len(edges) - 1) - len(data) / 2)
    with np.errstate(divide="ignore"):
        logits = 0.5 * utility + np.log(np.diff(edges))
    k = int(np.argmax(logits + rng.gumbel(size=len(logits))))
    return edges[k] + (edges[k + 1] - edges[k]) * rng.random()


@wrong(ONE, NARROW, "the widths of the intervals are left out")
def quantile_without_widths(data, rng):
    """A median by the exponential mechanism that forgets how wide intervals are."""
    edges = np.concatenate([[0.0], np.sort(np.clip(data, 0, 1)), [1.0]])
    weights = np.exp(-0.5 * np.abs(np.arange(len(edges) - 1) - len(data) / 2))
    k = rng.choice(len(weights), p=weights / weights.sum())  # part
    return rng.uniform(edges[k], edges[k + 1])  # fault


@wrong(ONE, MIDDLE, "a row itself is released")
def row_by_rank(data, rng):
    """A median by the exponential mechanism over the rows."""
    ranks = np.abs(np.arange(len(data)) - len(data) / 2)
    weights = softmax(-0.5 * ranks)
    return np.sort(data)[rng.choice(len(data), p=weights)]  # fault


@wrong(ONE, SWAPPED, "the median moves by half of the range, not by 1/n")
def median_without_sensitivity(data, rng):
    """A median with noise of scale 1/n."""
    return np.median(data) + rng.laplace(0, 1.0 / (len(data) * 5))  # fault


@right(ONE, MIDDLE, "ranks move by 1, on a public grid", domain="scalar:0,1")
def quantile_on_a_grid(data, rng):
    """A median by the exponential mechanism over a public grid."""
    grid = np.linspace(0, 1, 11)
    above = (data[:, None] > grid).sum(axis=0)
    below = (data[:, None] < grid).sum(axis=0)
    utility = -np.abs(above - below) / 2
    return grid[rng.choice(11, p=softmax(0.5 * 2 * utility))]


@right(
    ONE,
    BITS,
    "an option is flipped through in a public random order",
    source="McKenna, Sheldon 2020",
    domain="codes:2",
)
def permute_and_flip(data, rng):
    """Permute-and-flip, with coins."""
    counts = counts_of(data, 2)
    for k in rng.permutation(2):
        if rng.random() < math.exp(int(counts[k]) - int(counts.max())):
            return int(k)
    return 0
