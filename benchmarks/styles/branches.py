"""Code that looks at noise: sparse vectors, early stops, retries, binary search."""

import numpy as np

from benchmarks.styles.pairs import (
    BITS,
    GAUSS,
    NUMBERS,
    ONE,
    SWAPPED,
    TWO,
    UNIT,
)
from benchmarks.styles.registry import right, wrong
from dpaudit import ApproxDP, GaussianDP, Pair

BOUNDARIES = (0.2, 0.4, 0.6, 0.8, 1.0)
# A row that every query counts.
LOW = Pair([0.9, 0.9, 0.5], [0.9, 0.9, 0.5, 0.1])
HIGH = Pair([0.1] * 4, [0.1] * 5)
MANY = Pair([0.3, 0.5, 0.7], [0.3, 0.5, 0.7, 0.9])


def below(data):
    """Return how many rows are below each of five public bounds."""
    return [int(np.sum(data <= bound)) for bound in BOUNDARIES]


@right(
    ONE,
    LOW,
    "threshold at 1/2, queries at 1/2, one answer of counts",
    source="Lyu, Su, Li 2017",
    domain=UNIT,
)
def above_threshold(data, rng):
    """The sparse vector technique: the place of the first query that is above."""
    threshold = 2.0 + rng.laplace(0, 2.0)
    for place, count in enumerate(below(data)):
        if count + rng.laplace(0, 4.0) >= threshold:
            return place
    return len(BOUNDARIES)


@right(TWO, LOW, "each of two answers is a sparse vector of its own", domain=UNIT)
def above_threshold_twice(data, rng):
    """Sparse vectors with two answers, the threshold drawn again after the first."""
    threshold, answers = 2.0 + rng.laplace(0, 2.0), []
    for count in below(data):
        above = count + rng.laplace(0, 4.0) >= threshold
        answers.append(bool(above))
        if above:
            if sum(answers) == 2:
                break
            threshold = 2.0 + rng.laplace(0, 2.0)
    return answers + [False] * (5 - len(answers))


@wrong(
    ONE,
    Pair([0.1] * 2, [0.1] * 3),
    "the threshold has no noise, and five queries have the noise of one",
    source="Lyu, Su, Li 2017",
)
def sparse_without_threshold_noise(data, rng):
    """Sparse vectors with noise on the queries alone."""
    count = int(np.sum(data <= 0.2))
    noisy = count + rng.laplace(0, 1.0, 5)  # part
    return [bool(each >= 3.0) for each in noisy]  # fault


@wrong(
    ONE,
    Pair([0.9] * 3, [0.9] * 3 + [0.1]),
    "the queries have no noise",
    source="Lyu, Su, Li 2017",
)
def sparse_without_query_noise(data, rng):
    """Sparse vectors with noise on the threshold alone."""
    threshold = 0.5 + rng.laplace(0, 1.0)
    counts = [int(np.sum(data <= 0.2)), int(np.sum(data > 2)), int(np.sum(data < 0.8))]
    counts += [0, 1 - counts[0]]
    return [bool(count >= threshold) for count in counts]  # fault


@wrong(
    ONE, LOW, "the noisy value that was compared is released", source="Lyu, Su, Li 2017"
)
def sparse_with_the_value(data, rng):
    """Sparse vectors that release the value that was above."""
    threshold = 2.0 + rng.laplace(0, 2.0)
    for place, count in enumerate(below(data)):
        noisy = count + rng.laplace(0, 0.25)  # fault
        if noisy >= threshold:  # part
            return np.array([place, noisy])
    return np.array([5.0, 0.0])


@wrong(
    ONE,
    Pair([0.1] * 3, [0.1] * 4),
    "there is no end to answers that are above",
    source="Lyu, Su, Li 2017",
)
def sparse_without_cut_off(data, rng):
    """Sparse vectors that go on after an answer, for many queries."""
    threshold, answers = rng.laplace(0, 2.0), []
    for step in range(40):
        noisy = (len(data) - 3) * (-1) ** step + rng.laplace(0, 2.0)  # part
        answers.append(int(noisy >= threshold))  # fault
    return answers


@wrong(
    ONE, Pair([0.1] * 3, [0.1] * 4), "eight noisy values at 1/4 each", sees="transcript"
)
def sparse_in_transcripts(data, rng):
    """Sparse vectors, whose noisy queries are logged and released."""
    log = []
    threshold = 3.0 + rng.laplace(0, 2.0)
    for _ in range(8):
        noisy = len(data) + rng.laplace(0, 4.0)  # fault
        log.append(noisy)
        if noisy >= threshold + 20:
            break
    return np.array(log)


@right(GAUSS, NUMBERS, "four looks at sigma 2", sees="transcript", domain=UNIT)
def stop_early_on_noise(data, rng):
    """Noisy sums until two are close, at most four of them."""
    last = np.inf
    for _ in range(4):
        noisy = np.clip(data, 0, 1).sum() + rng.normal(0, 2.0)
        if abs(noisy - last) < 1.0:
            break
        last = noisy
    return noisy


@wrong(GAUSS, SWAPPED, "the loss that stops the loop has no noise")
def stop_early_on_raw_losses(data, rng):
    """Noisy steps until the raw loss is small."""
    w, steps = 0.0, 0
    while np.mean((data - w) ** 2) > 0.2 and steps < 6:  # fault
        w = w + 0.2 * (np.mean(data - w) + rng.normal(0, 2.0))
        steps += 1
    return w, steps


@wrong(ONE, NUMBERS, "each retry costs epsilon", sees="transcript")
def retries_until_close(data, rng):
    """A noisy sum that is drawn again until it is near the exact one."""
    total = np.clip(data, 0, 1).sum()
    for _ in range(50):
        noisy = total + rng.laplace(0, 1.0)
        if abs(noisy - total) < 0.4:  # fault
            break
    return noisy


@right(
    GaussianDP(10.0),
    NUMBERS,
    "at most 100 looks at sigma 1",
    sees="transcript",
    domain=UNIT,
)
def retries_that_are_paid(data, rng):
    """A noisy sum that is drawn again while a noisy test fails, all of it paid for."""
    for _ in range(100):
        noisy = np.clip(data, 0, 1).sum() + rng.normal(0, 1.0)
        if 0 <= noisy <= 3:
            return noisy
    return 0.0


@wrong(ONE, NUMBERS, "the best of three releases is released, each with all of epsilon")
def maximum_of_three(data, rng):
    """The largest of three noisy sums."""
    runs = [np.clip(data, 0, 1).sum() + rng.laplace(0, 1.0) for _ in range(3)]  # fault
    return max(runs), min(runs)


@right(
    ApproxDP(1.0, 1e-3),
    Pair([1.0] * 9, [1.0] * 10),
    "the distance to instability gets noise, and fails with delta",
    source="Dwork, Lei 2009",
)
def propose_test_release(data, rng):
    """Propose-test-release for a mode."""
    counts = np.bincount(data.astype(int), minlength=2)
    gap = abs(int(counts[0]) - int(counts[1]))
    if max(0, gap - 1) + rng.laplace(0, 1.0) > np.log(1 / (2 * 1e-3)):
        return int(counts.argmax())
    return -1


@wrong(
    ONE,
    Pair([1.0, 0.0], [1.0, 0.0, 0.0]),
    "the test has no noise, and its answer is exact",
)
def propose_test_without_noise(data, rng):
    """Propose-test-release without noise in the test."""
    counts = np.bincount(data.astype(int), minlength=2)
    if abs(counts[0] - counts[1]) >= 1:  # fault
        return int(counts.argmax())
    return -1


@right(ONE, MANY, "five counts, each at 1/5", domain=UNIT)
def binary_search_for_a_median(data, rng):
    """A median by binary search with noisy counts."""
    low, high = 0.0, 1.0
    for _ in range(5):
        middle = (low + high) / 2
        under, over = np.sum(data < middle), np.sum(data >= middle)
        if (over - under) + rng.laplace(0, 5.0) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@wrong(
    ONE,
    Pair([0.3, 0.5, 0.7, 0.9], [0.3, 0.5, 0.7, 0.9, 0.9]),
    "the search looks at exact counts",
)
def exact_binary_search(data, rng):
    """A median by binary search with exact counts, and little noise at the end."""
    low, high = 0.0, 1.0
    for _ in range(5):
        middle = (low + high) / 2
        if np.sum(data >= middle) > np.sum(data < middle):
            low = middle
        else:
            high = middle
    return low + rng.laplace(0, 0.01)  # fault


@right(
    GAUSS,
    NUMBERS,
    "two rounds of a sum and a count, each at mu 1/2",
    source="Andrew, Thakkar, McMahan, Ramaswamy 2021",
)
def adaptive_clipping(data, rng):
    """A clipping bound that follows a noisy quantile, and a sum at that bound."""
    bound, sums = 0.5, []
    for _ in range(2):
        total = np.minimum(data, bound).sum() + rng.normal(0, 2.0 * bound)
        count = np.sum(data <= bound) + rng.normal(0, 2.0)
        sums.append(total)
        bound = bound * np.exp(-0.2 * (np.clip(count / 4, 0, 1) - 0.5))
    return np.array(sums)


@wrong(
    GAUSS,
    Pair([0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 9.0]),
    "the bound is a quantile of the data, and decides on the noise",
)
def clipping_at_a_quantile(data, rng):
    """A sum clipped at the 90th percentile of the data, with noise for it."""
    bound = np.quantile(data, 0.9)  # part
    return np.minimum(data, bound).sum() + rng.normal(0, bound)  # fault


@right(ONE, BITS, "noise decides, and the data after it have noise of their own")
def noisy_switch(data, rng):
    """A noisy count that decides which of two noisy answers is given."""
    if len(data) + rng.laplace(0, 2.0) > 4:
        return data.sum() + rng.laplace(0, 2.0)
    return -1.0


@wrong(
    ONE, Pair([1.0] * 4, [1.0] * 5), "a small count is suppressed by its exact value"
)
def suppressed_if_small(data, rng):
    """A noisy count, or -1 where the exact one is below five."""
    if data.sum() < 5:  # fault
        return -1.0
    return data.sum() + rng.laplace(0, 1.0)


@wrong(ONE, NUMBERS, "an error is raised on the exact data, for a noisy one to see")
def refuses_large_sums(data, rng):
    """A noisy sum that warns where the exact one is large."""
    total = np.clip(data, 0, 1).sum()
    warning = bool(total > 2)
    return total + rng.laplace(0, 1.0), warning  # fault


@wrong(ONE, Pair([0.5], [0.5, 0.5]), "the loop's length is the number of rows")
def rows_decide_on_steps(data, rng):
    """A walk with a noisy step for each row."""
    place = 0.0
    for row in np.clip(data, 0, 1):  # fault
        place = place + row + rng.laplace(0, 1.0)  # part
    return place
