"""State that is secret or shared: permutations, batches, noise and caches."""

import functools
import itertools

import numpy as np

from benchmarks.styles.pairs import BITS, GAUSS, HALF, LONG, NUMBERS, ONE, SWAPPED, UNIT
from benchmarks.styles.registry import right, wrong
from benchmarks.styles.training import AMPLIFIED, FARTHER, clipped
from dpaudit import GaussianDP


@right(
    GAUSS,
    FARTHER,
    "two epochs, each of distance 1/2 at sigma sqrt(1/2)",
    sees="release",
)
def one_permutation_for_all(data, rng):
    """Two epochs over one secret permutation."""
    order, w = rng.permutation(len(data)), np.zeros(data.shape[1])
    for _ in range(2):
        for batch in np.array_split(data[order], 2):
            total = clipped(w - batch, 0.25).sum(axis=0)
            w = w - 0.1 * (total + rng.normal(0, 2**-0.5, w.shape))
    return w


@right(GAUSS, FARTHER, "two epochs, each of distance 1/2 at sigma sqrt(1/2)")
def permutation_for_each(data, rng):
    """Two epochs, each over a permutation of its own, by shuffle in place."""
    w = np.zeros(data.shape[1])
    for _ in range(2):
        rows = data.copy()
        rng.shuffle(rows)
        for batch in np.array_split(rows, 2):
            total = clipped(w - batch, 0.25).sum(axis=0)
            w = w - 0.1 * (total + rng.normal(0, 2**-0.5, w.shape))
    return w


@right(
    GAUSS, LONG, "even if the batch were known, four steps of sigma 2", sees="release"
)
def batch_drawn_once(data, rng):
    """Four steps on a batch that is drawn once, without a claim of amplification."""
    batch, w = data[rng.random(len(data)) < 0.5], np.zeros(data.shape[1])
    for _ in range(4):
        w = w - 0.1 * (clipped(w - batch).sum(axis=0) + rng.normal(0, 2.0, w.shape))
    return w


@wrong(
    AMPLIFIED,
    LONG,
    "rows that were drawn in the first step stay for good",
    sees="transcript",
)
def batch_grows(data, rng):
    """Four steps on a batch that only grows, with the noise of secret batches."""
    w, chosen = np.zeros(data.shape[1]), np.zeros(len(data), dtype=bool)
    for _ in range(4):
        chosen |= rng.random(len(data)) < 0.1  # part
        total = clipped(w - data[chosen]).sum(axis=0)
        w = w - 0.1 * (total + rng.normal(0, 1.0, w.shape))  # fault
    return w


@wrong(AMPLIFIED, LONG, "which rows are in the batch is released", sees="release")
def batch_is_released(data, rng):
    """A step of DP-SGD that says which rows it took."""
    chosen = rng.random(len(data)) < 0.1
    total = clipped(-data[chosen]).sum(axis=0) + rng.normal(0, 1.0, data.shape[1])
    return total, chosen  # fault


@wrong(GAUSS, LONG, "the size of the secret batch is released", sees="release")
def batch_size_is_released(data, rng):
    """A step of DP-SGD that says how many rows it took."""
    batch = data[rng.random(len(data)) < 0.5]
    total = clipped(-batch).sum(axis=0) + rng.normal(0, 1.0, data.shape[1])
    return total, len(batch)  # fault


@wrong(
    AMPLIFIED,
    LONG,
    "the rate is that of two rows in n, and the noise that of one in ten",
)
def rate_of_n(data, rng):
    """A noisy sum of a batch that is drawn at rate 2/n."""
    rate = 2 / len(data)  # part
    batch = data[rng.random(len(data)) < rate]
    return clipped(batch).sum(axis=0) + rng.normal(0, 1.0, data.shape[1])  # fault


class Cached:
    """Noise that an object draws once and keeps."""

    def release(self, data, rng):
        """Return a sum and a count with the noise that is kept."""
        if not hasattr(self, "_rng") or self._rng is not rng:
            self._rng, self._noise = rng, rng.laplace(0, 2.0)
        noisy = np.clip(data, 0, 1).sum() + self._noise
        return np.array([noisy, len(data) + self._noise])  # fault


wrong(
    ONE,
    HALF,
    "one draw serves both, so the difference has none",
    name="noise_kept_in_an_object",
)(Cached)


class Budgeted:
    """A session that spends a budget query by query."""

    def __init__(self):
        self.epsilon = 1.0

    def release(self, data, rng):
        """Answer three queries, while there is budget left."""
        left, out = self.epsilon, []
        queries = (len(data), np.clip(data, 0, 1).sum(), np.sum(data > 0.5))
        for query, cost in zip(queries, (0.5, 0.25, 0.25), strict=True):
            if left < cost - 1e-9:
                break
            left -= cost
            out.append(query + rng.laplace(0, 1 / cost))
        return np.array(out)


right(ONE, NUMBERS, "1/2 + 1/4 + 1/4", domain=UNIT, name="session_with_a_budget")(
    Budgeted
)


class Overdrawn:
    """A session that looks at its budget and never spends it."""

    def __init__(self):
        self.left = 1.0

    def ask(self, value, cost, rng):
        """Answer a query if there is budget left."""
        if self.left >= cost:
            return value + rng.laplace(0, 1 / cost)  # fault
        return 0.0

    def release(self, data, rng):
        """Answer three queries."""
        queries = (len(data), np.clip(data, 0, 1).sum(), np.sum(data > 0.5))
        return [self.ask(query, 0.75, rng) for query in queries]


wrong(ONE, NUMBERS, "the budget is never reduced", name="session_that_never_pays")(
    Overdrawn
)


def closure_of(epsilon):
    """Return a mechanism with a fixed epsilon."""
    scale = 1 / epsilon

    def mechanism(data, rng):
        return np.clip(data, 0, 1).sum() + rng.laplace(scale=scale)

    return mechanism


right(ONE, NUMBERS, domain=UNIT, name="closure", what="A closure over a scale.")(
    closure_of(1.0)
)


def with_scale(data, rng, scale, query):
    """Return a query with noise of a scale."""
    return query(data) + rng.laplace(scale=scale)


right(ONE, BITS, domain="codes:2", name="partial", what="A partial function.")(
    functools.partial(with_scale, scale=1.0, query=len)
)


def composed(*queries):
    """Return a mechanism that answers queries in turn, each at all of epsilon."""

    def mechanism(data, rng):
        return [query(data) + rng.laplace(scale=1.0) for query in queries]  # fault

    return mechanism


wrong(
    ONE,
    NUMBERS,
    "a decorator composes queries, and nobody splits epsilon",
    name="composed_queries",
    what="A factory of mechanisms.",
    text=composed,
)(composed(len, np.sum))


def shared(*queries):
    """Return a mechanism that answers queries in turn, at equal parts of epsilon."""
    return lambda data, rng: [
        query(data) + rng.laplace(scale=len(queries)) for query in queries
    ]


right(
    ONE,
    NUMBERS,
    "two queries at 1/2 each",
    domain=UNIT,
    name="shared_queries",
    what="A factory of lambdas that share epsilon.",
)(shared(len, np.sum))


@right(
    ONE, NUMBERS, "one of the draws of a public stream is used for each", domain=UNIT
)
def stream_of_noise(data, rng):
    """Noise from a generator function, taken one by one."""

    def draws():
        while True:
            yield rng.laplace(0, 2.0)

    noise = draws()
    return np.clip(data, 0, 1).sum() + next(noise), len(data) + next(noise)


@wrong(ONE, HALF, "the same draw is handed out again and again")
def stream_that_repeats(data, rng):
    """Noise from a generator that repeats what it drew."""
    noise = itertools.repeat(rng.laplace(0, 2.0))  # part
    noisy = np.clip(data, 0, 1).sum() + next(noise)
    return noisy, len(data) + next(noise)  # fault


@wrong(GaussianDP(1.0), SWAPPED, "a block of noise is broadcast over both rows")
def broadcast_noise(data, rng):
    """Two rows of moments with a row of noise that is broadcast."""
    x = np.clip(data, 0, 1)
    moments = np.array([[x.sum(), len(x)], [(x**2).sum(), len(x)], [x.max(), len(x)]])
    return moments + rng.normal(0, 3.0, 2)  # fault


@wrong(
    ONE,
    HALF,
    "the second answer is made of the first and the data",
)
def answer_from_a_cache(data, rng):
    """A noisy sum, and a noisy mean that takes it from a cache."""

    @functools.cache
    def noisy():
        return np.clip(data, 0, 1).sum() + rng.laplace(0, 1.0)

    return noisy(), noisy() / len(data)  # fault


@right(ONE, NUMBERS, "the cached answer is that of before", domain=UNIT)
def answer_from_a_fair_cache(data, rng):
    """A noisy sum that is asked for twice and drawn once."""

    @functools.cache
    def noisy():
        return np.clip(data, 0, 1).sum() + rng.laplace(0, 1.0)

    return noisy(), 2 * noisy()
