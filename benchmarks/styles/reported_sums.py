"""Reported faults of sums, means and variances: bounds, sensitivities and counts."""
# A sensitivity that is None is the fault of one.
# pyright: reportOperatorIssue=false

import numpy as np

from benchmarks.styles.pairs import GAUSS, MISSING, NUMBERS, ONE, TURNED, UNIT
from benchmarks.styles.registry import reported
from dpaudit import Pair

LOW, HIGH = -1.0, 3.0
ALL_ONES = Pair([[0.5, 0.25, 0.0]], [[0.5, 0.25, 0.0], [1.0, 1.0, 1.0]])


def second_moment(data, rng):
    """A sum of squares of numbers in [-1, 3], which a row moves by at most 9."""
    bound = np.max(np.abs([LOW, HIGH])) ** 2
    return np.sum(np.clip(data, LOW, HIGH) ** 2) + rng.laplace(0, bound)


@reported(
    "IBM/differential-privacy-library#105",
    ONE,
    Pair([0.5, 1.0], [0.5, 1.0, 3.0]),
    "the lower bound stands where the upper one belongs",
    second_moment,
    domain="scalar:-1,3",
)
def second_moment_of_one_bound(data, rng):
    """A coefficient of a regression, whose sensitivity reads the lower bound twice."""
    bound = np.max(np.abs([LOW, LOW])) ** 2  # part
    return np.sum(np.clip(data, LOW, HIGH) ** 2) + rng.laplace(0, bound)  # fault


def centred(data, rng):
    """Two features, a target and a product: 1/6 + 1/6 + 2/3 of the budget."""
    rows = np.clip(data.reshape(-1, 3), 0, 1)
    share = 1 / 3
    features = rows[:, :2].sum(axis=0) + rng.laplace(0, 2 / (share / 2), 2)
    target = rows[:, 2].sum() + rng.laplace(0, 1 / (share / 2))
    product = (rows[:, 0] * rows[:, 2]).sum() + rng.laplace(0, 1 / (1 - share))
    return np.array([*features, target, product])


@reported(
    "IBM/differential-privacy-library#104",
    ONE,
    ALL_ONES,
    "features and target each spend the share that was set aside for both",
    centred,
    domain="box:0,1:3",
)
def centred_on_one_share(data, rng):
    """A regression whose features and target are centred on one share of a budget."""
    rows = np.clip(data.reshape(-1, 3), 0, 1)
    share = 1 / 3
    features = rows[:, :2].sum(axis=0) + rng.laplace(0, 2 / share, 2)  # part
    target = rows[:, 2].sum() + rng.laplace(0, 1 / share)  # part
    product = (rows[:, 0] * rows[:, 2]).sum() + rng.laplace(0, 1 / (1 - share))  # part
    return np.array([*features, target, product])  # fault


def mean_of_noisy_parts(data, rng):
    """A mean as a noisy sum over a noisy count, each of half the budget."""
    total = np.clip(data, 0, 1).sum() + rng.laplace(0, 2)
    return total / max(1.0, len(data) + rng.laplace(0, 2))


@reported(
    "opendp/smartnoise-core#356",
    ONE,
    Pair([0.0], [0.0, 1.0]),
    "the sensitivity is of the number of rows that there are, which is secret",
    mean_of_noisy_parts,
    domain=UNIT,
)
def mean_of_the_true_count(data, rng):
    """A mean under addition and removal, with noise of scale 1/n."""
    n = max(1, len(data))
    return np.clip(data, 0, 1).sum() / n + rng.laplace(0, 1 / n)  # fault


def mean_or_half(data, rng):
    """A mean as above, of any number of rows."""
    total = np.clip(data, 0, 1).sum() + rng.laplace(0, 2)
    count = len(data) + rng.laplace(0, 2)
    return float(total / count) if count > 1 else 0.5


@reported(
    "opendp/smartnoise-core#355",
    ONE,
    Pair([], [0.5]),
    "that there are no rows is released for certain",
    mean_or_half,
    domain=UNIT,
)
def mean_or_nothing(data, rng):
    """A mean that is not defined for no rows, and then is not a number."""
    if len(data) == 0:  # part
        return float("nan")  # fault
    total = np.clip(data, 0, 1).sum() + rng.laplace(0, 2)
    count = len(data) + rng.laplace(0, 2)
    return float(total / count) if count > 1 else 0.5


def variance_of_noisy_parts(data, rng):
    """A variance from a count, a sum and a sum of squares, a third each."""
    x = np.clip(data, 0, 1)
    n = max(1.0, len(x) + rng.laplace(0, 3))
    mean = (x.sum() + rng.laplace(0, 3)) / n
    return (np.sum(x**2) + rng.laplace(0, 3)) / n - mean**2


@reported(
    "opendp/smartnoise-sdk#547",
    ONE,
    Pair([0.0, 0.0], [0.0, 0.0, 1.0]),
    "the sensitivity is that of a known number of rows",
    variance_of_noisy_parts,
    domain=UNIT,
)
def variance_of_the_true_count(data, rng):
    """A variance with the sensitivity of n rows, ((u - l)/n)^2 (n - 1), n exact."""
    x, n = np.clip(data, 0, 1), len(data)
    if n < 2:
        return rng.laplace(0, 1)
    return np.var(x, ddof=1) + rng.laplace(0, (1 / n) ** 2 * (n - 1))  # fault


def covariance_of_censored_rows(data, rng):
    """A sum of products of numbers in [-1, 1]."""
    rows = np.clip(data.reshape(-1, 2), -1, 1)
    return np.sum(rows[:, 0] * rows[:, 1]) + rng.laplace(0, 1)


@reported(
    "opendp/smartnoise-sdk#622",
    ONE,
    Pair([[0.5, 0.5]], [[0.5, 0.5], [3.0, 3.0]]),
    "the censored copy is not used",
    covariance_of_censored_rows,
    domain="box:-3,3:2",
)
def covariance_of_raw_rows(data, rng):
    """A covariance of rows that were clipped into another variable."""
    censored = np.clip(data, -1, 1)
    assert np.all(np.abs(censored) <= 1)
    rows = data.reshape(-1, 2)  # part
    return np.sum(rows[:, 0] * rows[:, 1]) + rng.laplace(0, 1)  # fault


def sum_and_squares(data, rng):
    """A sum and a sum of squares of numbers in [0, 5], half a budget each."""
    x = np.clip(data, 0, 5)
    return x.sum() + rng.laplace(0, 2 * 5), np.sum(x**2) + rng.laplace(0, 2 * 5**2)


@reported(
    "opendp/smartnoise-sdk#203",
    ONE,
    Pair([1.0, 2.0], [1.0, 2.0, 5.0]),
    "squares of numbers up to 5 go up to 25",
    sum_and_squares,
    domain="scalar:0,5",
)
def sum_and_squares_of_one_bound(data, rng):
    """What a variance needs, with the bound of the column for its squares too."""
    x = np.clip(data, 0, 5)
    squares = np.sum(x**2) + rng.laplace(0, 2 * 5)  # part
    return x.sum() + rng.laplace(0, 2 * 5), squares  # fault


def formula_clamped_last(data, rng):
    """A sum of a formula that is clamped to [0, 1]."""
    return np.clip((2 * np.asarray(data)) ** 3, 0, 1).sum() + rng.laplace(0, 1)


@reported(
    "opendp/smartnoise-sdk#201",
    ONE,
    NUMBERS,
    "the formula is summed, and the column was clamped",
    formula_clamped_last,
    domain=UNIT,
)
def formula_clamped_first(data, rng):
    """A query like SUM((2 * x) ^ 3), where the clamp is at the column."""
    x = np.clip(data, 0, 1)
    return np.sum((2 * x) ** 3) + rng.laplace(0, 1)  # fault


def sum_with_default_bounds(data, rng):
    """A sum and a count, half a budget each; a column without bounds gets [0, 1]."""
    column = {"lower": None, "upper": None}
    low = 0.0 if column["lower"] is None else column["lower"]
    high = 1.0 if column["upper"] is None else column["upper"]
    total = np.clip(data, low, high).sum() + rng.laplace(0, 2 * max(-low, high))
    return {"sum": total, "count": len(data) + rng.laplace(0, 2)}


@reported(
    "opendp/smartnoise-sdk#317",
    ONE,
    NUMBERS,
    "without a sensitivity there is no noise",
    sum_with_default_bounds,
    domain=UNIT,
)
def sum_without_bounds(data, rng):
    """A query engine that adds noise where it knows a sensitivity."""
    column = {"lower": None, "upper": None}
    sensitivity = column["upper"] and max(-column["lower"], column["upper"])
    total = float(np.sum(data))
    if sensitivity is not None:
        total += rng.laplace(0, 2 * sensitivity)
    return {"sum": total, "count": len(data) + rng.laplace(0, 2)}  # fault


def columns_added(data, rng):
    """A sum of two columns in [0, 1], which a row moves by at most 2."""
    rows = np.clip(data.reshape(-1, 2), 0, 1)
    return np.sum(rows[:, 0] + rows[:, 1]) + rng.laplace(0, 2)


@reported(
    "opendp/smartnoise-sdk#320",
    ONE,
    Pair([[0.5, 0.25]], [[0.5, 0.25], [1.0, 1.0]]),
    "the sensitivities of the two columns are not added",
    columns_added,
    domain="box:0,1:2",
)
def columns_added_as_one(data, rng):
    """SUM(a + b), with the larger of the sensitivities of a and b."""
    rows = np.clip(data.reshape(-1, 2), 0, 1)
    return np.sum(rows[:, 0] + rows[:, 1]) + rng.laplace(0, max(1, 1))  # fault


def resized(data, rng):
    """A sum of 4 numbers in [-1, 1]; a user has two, and 1 stands for who is away."""
    x = np.clip(np.ravel(data), -1, 1)[:4]
    x = np.append(x, np.ones(4 - len(x)))
    return x.sum() + rng.laplace(0, 2 * 2)


@reported(
    "opendp/opendp#355",
    ONE,
    Pair([[0.5, 0.0]], [[0.5, 0.0], [-1.0, -1.0]]),
    "two rows less are two constants more: a distance of 4, not 2",
    resized,
    domain="box:-1,1:2",
)
def resized_for_half(data, rng):
    """A sum after resizing, as if half of the distance were rows that are added."""
    x = np.clip(np.ravel(data), -1, 1)[:4]
    x = np.append(x, np.ones(4 - len(x)))
    return x.sum() + rng.laplace(0, 2)  # fault


def vectors_replaced(data, rng):
    """A sum of vectors of length at most 1, one of which may turn round."""
    rows = data / np.maximum(1, np.linalg.norm(data, axis=1, keepdims=True))
    return rows.sum(axis=0) + rng.normal(0, 2, rows.shape[1])


@reported(
    "google/differential-privacy#464",
    GAUSS,
    TURNED,
    "a vector that is replaced moves the sum by 2",
    vectors_replaced,
    domain="ball:3",
)
def vectors_replaced_as_added(data, rng):
    """A clipped sum under replacement, with noise for the bound of one vector."""
    rows = data / np.maximum(1, np.linalg.norm(data, axis=1, keepdims=True))
    return rows.sum(axis=0) + rng.normal(0, 1, rows.shape[1])  # fault


def clamp_without_nan(data, rng):
    """A sum of numbers that are clamped to [0, 1]; NaN is left out."""
    return sum(min(max(x, 0.0), 1.0) for x in data if x == x) + rng.laplace(0, 1)


@reported(
    "google/differential-privacy#405",
    ONE,
    MISSING,
    "NaN is neither below nor above a bound",
    clamp_without_nan,
    domain="scalar:0,1:nonfinite",
)
def clamp_by_comparison(data, rng):
    """A clamp of two comparisons, both of which NaN passes."""
    total = 0.0
    for x in data:
        total += 1.0 if x > 1 else 0.0 if x < 0 else x
    return total + rng.laplace(0, 1)  # fault


def middle_of_squares(data, rng):
    """A sum of x^2 - 5/2 for x in [-2, 1]: at 0 a row moves it by 5/2."""
    centre = ((-2.0) ** 2 + 1.0**2) / 2
    return np.sum(np.clip(data, -2, 1) ** 2 - centre) + rng.laplace(0, centre)


@reported(
    "OpenMined/PipelineDP#57",
    ONE,
    Pair([-1.0, 0.5], [-1.0, 0.5, 0.0]),
    "the square at 0 is farther from the middle than at either bound",
    middle_of_squares,
    domain="scalar:-2,1",
)
def middle_of_squares_at_a_bound(data, rng):
    """A normalised sum of squares whose sensitivity is taken at the lower bound."""
    centre = ((-2.0) ** 2 + 1.0**2) / 2
    bound = abs(centre - (-2.0) ** 2)  # part
    return np.sum(np.clip(data, -2, 1) ** 2 - centre) + rng.laplace(0, bound)  # fault


def vector_on_shares(data, rng):
    """A sum of vectors in [0, 1]^3, a third of the budget for each coordinate."""
    rows = np.clip(data.reshape(-1, 3), 0, 1)
    return np.array([total + rng.laplace(0, 3) for total in rows.sum(axis=0)])


@reported(
    "OpenMined/PipelineDP#67",
    ONE,
    ALL_ONES,
    "each coordinate spends the whole budget",
    vector_on_shares,
    domain="box:0,1:3",
)
def vector_on_whole_budgets(data, rng):
    """A vector sum that adds noise to its numbers as if each were a query alone."""
    rows = np.clip(data.reshape(-1, 3), 0, 1)
    return np.array([total + rng.laplace(0, 1) for total in rows.sum(axis=0)])  # fault
