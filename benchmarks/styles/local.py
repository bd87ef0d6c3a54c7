"""Local privacy: randomised response, RAPPOR, unary encodings, noisy reports."""

import math
import random

import numpy as np
import pandas as pd

from benchmarks.styles.pairs import FLIPPED, ONE, SWAPPED
from benchmarks.styles.registry import right, wrong
from dpaudit import GaussianDP, Pair, PureDP

E = math.e
KEEP = E / (1 + E)
# One answer of four is replaced.
ANSWERS = Pair([2.0, 0.0], [2.0, 3.0])
LN3 = PureDP(math.log(3))
MANY = Pair(
    np.tile([1.0, 0.0, 0.0, 1.0], 60),
    np.append(np.tile([1.0, 0.0, 0.0, 1.0], 60)[:-1], 0.0),
    "replace-one",
)


@right(LN3, FLIPPED, "truth with 3/4", source="Warner 1965")
def two_coins(data, rng):
    """Randomised response by two coins, and ifs."""
    answers = []
    for bit in data:
        if rng.random() < 0.5:
            answers.append(int(bit))
        else:
            answers.append(int(rng.random() < 0.5))
    return answers


@right(ONE, FLIPPED, "e/(1 + e) against 1/(1 + e)")
def where_keep(data, rng):
    """Randomised response by where."""
    keep = rng.random(len(data)) < KEEP
    return np.where(keep, data, 1 - data)


@right(ONE, FLIPPED, "e/(1 + e) against 1/(1 + e)")
def flips_by_xor(data, rng):
    """Randomised response by exclusive or with binomial flips."""
    return data.astype(int) ^ rng.binomial(1, 1 - KEEP, size=len(data))


@right(ONE, FLIPPED, "e/(1 + e) against 1/(1 + e)")
def probability_by_row(data, rng):
    """Randomised response by one comparison with a probability for each row."""
    return (rng.random(len(data)) < np.where(data == 1, KEEP, 1 - KEEP)).astype(int)


@right(ONE, FLIPPED, "an unbiased share is made of answers")
def share_of_answers(data, rng):
    """A debiased share from randomised response."""
    answers = [int(x) if random.random() < KEEP else 1 - int(x) for x in data]
    return (np.mean(answers) - (1 - KEEP)) / (2 * KEEP - 1)


@right(ONE, FLIPPED, "a sum of answers is made of answers")
def sum_of_answers(data, rng):
    """A sum of randomised responses, flip by flip, by bernoulli draws."""
    total = 0
    for bit in data:
        flip = rng.choice([False, True], p=[KEEP, 1 - KEEP])
        total += int(bit) if not flip else 1 - int(bit)
    return total


@wrong(ONE, FLIPPED, "the truth is told with 7/8")
def two_coins_too_many(data, rng):
    """Randomised response whose second coin decides between true and random."""
    answers = []
    for bit in data:
        if rng.random() < 0.75:  # fault
            answers.append(int(bit))
        else:
            answers.append(int(rng.random() < 0.5))  # part
    return answers


@wrong(ONE, FLIPPED, "only ones are ever turned: a one is the truth")
def only_ones_lie(data, rng):
    """Randomised response that turns ones only."""
    turn = rng.random(len(data)) < 0.3
    return np.where(turn & (data == 1), 0, data)  # fault


@wrong(ONE, FLIPPED, "one coin for all rows: all answers are true, or none")
def one_coin_for_all(data, rng):
    """Randomised response with one coin for all rows."""
    flip = rng.random() < 1 - KEEP  # fault
    return 1 - data if flip else data  # part


@wrong(ONE, FLIPPED, "rows that say so are left out")
def refusals(data, rng):
    """Randomised response of rows that are not 0, in their places."""
    ones = np.flatnonzero(data)
    return ones, rng.random(len(ones)) < KEEP  # fault


@right(
    ONE, ANSWERS, "e/(e + 3) against 1/(e + 3)", source="Kairouz, Bonawitz, Ramage 2016"
)
def k_ary_response(data, rng):
    """Randomised response of four answers by choice(p=...)."""
    out = []
    for answer in data.astype(int):
        p = np.full(4, 1 / (E + 3))
        p[answer] = E / (E + 3)
        out.append(int(rng.choice(4, p=p)))
    return out


@right(ONE, ANSWERS, "e/(e + 3) against 1/(e + 3)")
def k_ary_by_shift(data, rng):
    """Randomised response of four answers by a random shift."""
    lie = rng.random(len(data)) >= E / (E + 3)
    return (data.astype(int) + lie * rng.integers(1, 4, size=len(data))) % 4


@wrong(ONE, ANSWERS, "the lie may be the truth, and e/(1 + e) is for two answers")
def k_ary_as_binary(data, rng):
    """Randomised response of four answers with the probability of two."""
    lie = rng.random(len(data)) >= KEEP  # part
    lies = rng.integers(0, 4, size=len(data))  # fault
    return np.where(lie, lies, data.astype(int))  # part


def unary(data):
    """Return answers as rows of one 1."""
    return np.eye(4)[data.astype(int)]


@right(
    ONE,
    ANSWERS,
    "two bits differ, each at epsilon / 2",
    source="Wang, Blocki, Li, Jha 2017",
)
def symmetric_unary(data, rng):
    """Unary encoding, each bit kept with the probability of epsilon / 2."""
    p = math.exp(0.5) / (1 + math.exp(0.5))
    bits = unary(data)
    return np.where(rng.random(bits.shape) < p, bits, 1 - bits)


@right(
    ONE,
    ANSWERS,
    "1/2 against 1/(e + 1), in two bits",
    source="Wang, Blocki, Li, Jha 2017",
)
def optimised_unary(data, rng):
    """Optimised unary encoding."""
    bits = unary(data)
    return (rng.random(bits.shape) < np.where(bits == 1, 0.5, 1 / (E + 1))).sum(axis=0)


@wrong(ONE, ANSWERS, "two bits differ, and each has all of epsilon")
def unary_with_epsilon_per_bit(data, rng):
    """Unary encoding, each bit kept with the probability of epsilon."""
    bits = unary(data)
    keep = rng.random(bits.shape) < KEEP  # fault
    return np.where(keep, bits, 1 - bits)  # part


@right(
    PureDP(4 * math.log(3)),
    ANSWERS,
    "two hashes each, of which four bits differ",
    source="Erlingsson, Pihur, Korolova 2014",
)
def rappor(data, rng):
    """Permanent responses of a Bloom filter of two hashes, with f = 1/2."""
    out = []
    for answer in data.astype(int):
        bloom = np.zeros(8, dtype=int)
        for seed in (3, 5):
            bloom[(seed * answer + seed) % 8] = 1
        chosen = rng.random(8)
        out.append(np.where(chosen < 0.25, 1, np.where(chosen < 0.5, 0, bloom)))
    return np.array(out)


@wrong(PureDP(math.log(3)), ANSWERS, "as many as four bits differ")
def rappor_for_one_bit(data, rng):
    """A Bloom filter of two hashes, claimed as one bit."""
    out = []
    for answer in data.astype(int):
        bloom = np.zeros(8, dtype=int)
        bloom[[answer, 4 + answer]] = 1
        flip = rng.random(8) < 0.25  # fault
        out.append(bloom ^ flip)  # part
    return np.array(out)


@right(ONE, SWAPPED, "each report has noise for a width of 1")
def noisy_reports(data, rng):
    """Rows that add noise before they are sent, and their mean."""
    return float(np.mean(np.clip(data, 0, 1) + rng.laplace(0, 1.0, len(data))))


@wrong(ONE, Pair([-1.0, 0.5], [1.0, 0.5]), "rows in [-1, 1] have a width of 2")
def noisy_reports_of_width_two(data, rng):
    """Rows in [-1, 1] that add noise for a width of 1."""
    reports = []
    for row in np.clip(data, -1, 1):
        reports.append(row + rng.laplace(0, 1.0))  # fault
    return reports


@right(
    ONE,
    Pair([-1.0, 0.5], [1.0, 0.5]),
    "plus or minus a constant, by a coin",
    source="Duchi, Jordan, Wainwright 2018",
)
def one_bit_mean(data, rng):
    """Means by one bit each, whose probability is linear in the row."""
    bound = (E + 1) / (E - 1)
    p = 0.5 + np.clip(data, -1, 1) / (2 * bound)
    return np.where(rng.random(len(data)) < p, bound, -bound).mean()


@wrong(ONE, Pair([-1.0, 0.5], [1.0, 0.5]), "the probability reaches 0 and 1")
def one_bit_mean_without_bound(data, rng):
    """Means by one bit each, whose probability is (1 + x) / 2."""
    p = (1 + np.clip(data, -1, 1)) / 2
    return np.where(rng.random(len(data)) < p, 1, -1)  # fault


@right(
    ONE,
    Pair([-1.0, 0.5], [1.0, 0.5]),
    "in the interval or out of it: a factor e",
    source="Wang et al. 2019",
)
def piecewise_mechanism(data, rng):
    """The piecewise mechanism: an interval about the row, or elsewhere."""
    half = math.exp(0.5)
    c = (half + 1) / (half - 1)
    out = []
    for x in np.clip(data, -1, 1):
        left = (c + 1) / 2 * x - (c - 1) / 2
        right_end = left + c - 1
        if rng.random() < half / (half + 1):
            out.append(rng.uniform(left, right_end))
        else:
            u = rng.uniform(-c, -c + (c + 1))
            out.append(u if u < left else u + c - 1)
    return np.array(out)


@right(ONE, FLIPPED, "as for arrays")
def column_of_answers(data, rng):
    """Randomised response in a column of a table."""
    frame = pd.DataFrame({"smokes": data.astype(int)})
    frame["keep"] = rng.uniform(size=len(frame)) < KEEP
    frame["answer"] = frame["smokes"].where(frame["keep"], 1 - frame["smokes"])
    return frame["answer"].to_numpy()


@wrong(ONE, FLIPPED, "whether the truth was kept is a column of the release")
def column_with_keep(data, rng):
    """Randomised response in a table that is released as a whole."""
    frame = pd.DataFrame({"smokes": data.astype(int)})
    frame["keep"] = rng.uniform(size=len(frame)) < KEEP
    frame["answer"] = frame["smokes"].where(frame["keep"], 1 - frame["smokes"])
    return frame[["keep", "answer"]].to_numpy(dtype=int)  # fault


@right(ONE, MANY, "a total of 240 answers is made of answers")
def total_of_many(data, rng):
    """A debiased total of many randomised responses."""
    keep = rng.random(len(data)) < KEEP
    total = np.where(keep, data, 1 - data).sum()
    return (total - len(data) * (1 - KEEP)) / (2 * KEEP - 1)


@right(ONE, MANY, "two bits of a row change, and each costs epsilon / 2")
def counts_of_many(data, rng):
    """Counts of one-hot rows of which each bit is flipped."""
    bits = np.eye(2, dtype=int)[data.astype(int)]
    flips = rng.binomial(1, 1 / (1 + math.sqrt(E)), size=bits.shape)
    return (bits ^ flips).sum(axis=0)


@wrong(ONE, MANY, "two bits of a row change, and each costs epsilon")
def counts_of_many_at_epsilon(data, rng):
    """Counts of one-hot rows of which each bit is kept with e/(1 + e)."""
    bits = np.eye(2, dtype=int)[data.astype(int)]
    keep = rng.random(bits.shape) < KEEP  # fault
    return np.where(keep, bits, 1 - bits).sum(axis=0)  # part


@wrong(ONE, MANY, "the truth is told with 0.8, and not with e/(1 + e)")
def total_that_is_too_true(data, rng):
    """A share of many answers, of which a fifth is flipped."""
    flips = rng.random(len(data)) < 0.2  # fault
    return (data.astype(bool) ^ flips).mean()  # part


@right(ONE, ANSWERS, "one Hadamard bit at e/(1 + e)", source="Bassily, Smith 2015")
def hadamard_response(data, rng):
    """A random entry of a row of a Hadamard matrix, and a sign that may lie."""
    two = np.array([[1, 1], [1, -1]])
    hadamard = np.kron(two, two)
    out = []
    for answer in data.astype(int):
        j = rng.integers(4)
        sign = hadamard[answer, j] * (1 if rng.random() < KEEP else -1)
        out.append((int(j), int(sign)))
    return out


@right(
    GaussianDP(1.0),
    Pair([[0.6, 0.8], [1.0, 0.0]], [[0.6, 0.8], [-1.0, 0.0]]),
    "vectors are 2 apart at most, and sigma is 2",
)
def gaussian_reports(data, rng):
    """Vectors that add Gaussian noise before they are sent."""
    return data + rng.normal(0, 2.0, data.shape)


@wrong(ONE, ANSWERS, "the bucket of the answer is public, so that half of it shows")
def subset_with_the_bucket(data, rng):
    """Randomised response within the half of the answers that is the true one."""
    bucket = data.astype(int) // 2
    lie = rng.random(len(data)) >= KEEP
    return 2 * bucket + (data.astype(int) % 2 ^ lie)  # fault


@wrong(ONE, FLIPPED, "answers are asked three times, and each costs epsilon")
def asked_three_times(data, rng):
    """Randomised response that is asked three times."""
    rounds = []
    for _ in range(3):
        keep = rng.random(len(data)) < KEEP  # fault
        rounds.append(np.where(keep, data, 1 - data))  # part
    return np.array(rounds)
