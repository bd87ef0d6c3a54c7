"""Reported faults of choices: scores, thresholds, quantiles and votes."""

import math

import numpy as np

from benchmarks.styles.pairs import ONE, UNIT
from benchmarks.styles.registry import reported
from dpaudit import Pair, ZeroConcentratedDP


def votes(data, count):
    """Return how often each code occurs."""
    return np.bincount(np.asarray(data, dtype=int), minlength=count)


def exponential_choice(data, rng):
    """The more frequent of two codes, by Gumbel noise: 2-bounded range, so 2^2/8."""
    return int(np.argmax(votes(data, 2) + rng.gumbel(0, 1, 2)))


@reported(
    "opendp/opendp#2911",
    ZeroConcentratedDP(0.5),
    Pair([0.0, 0.0, 1.0], [1.0, 0.0, 1.0]),
    "permute-and-flip has no bounded range",
    exponential_choice,
    domain="codes:2",
)
def flipped_choice(data, rng):
    """Permute-and-flip, with the concentrated claim of the exponential mechanism."""
    scores = votes(data, 2)
    for code in rng.permutation(2):
        if rng.random() < math.exp(scores[code] - scores.max()):
            return int(code)  # fault
    return int(np.argmax(scores))


def gain_over_public(data, rng):
    """Where a model errs by more than public data do: a score moves by up to 2."""
    counts = votes(data, 2)
    scores = np.abs(counts - 0) - np.abs(counts - 4)
    return int(np.argmax(scores + rng.gumbel(0, 2 * 2, 2)))


@reported(
    "ryan112358/mbi#65",
    ONE,
    Pair([1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0]),
    "both errors depend on the data, and may move apart",
    gain_over_public,
    domain="codes:2",
)
def gain_of_one_error(data, rng):
    """A score that is a difference of errors, with the sensitivity of one."""
    counts = votes(data, 2)
    scores = np.abs(counts - 0) - np.abs(counts - 4)
    return int(np.argmax(scores + rng.gumbel(0, 2 * 1, 2)))  # fault


def marginal_by_l1(data, rng):
    """The worse of a marginal of nine cells and a total: a score moves by up to 9."""
    rows = data.reshape(-1, 9) > 0
    scores = np.array([np.abs(rows.sum(axis=0)).sum(), abs(len(rows) - 20)])
    return int(np.argmax(scores + rng.gumbel(0, 2 * 9, 2)))


@reported(
    "opendp/opendp#2951",
    ONE,
    Pair(np.empty((0, 9)), [[1.0] * 9]),
    "nine cells of one user are 3 in the second norm, and 9 in the first",
    marginal_by_l1,
    domain="binary:9",
)
def marginal_by_l2(data, rng):
    """Scores that are sums of absolute errors, scaled for a Euclidean distance."""
    rows = data.reshape(-1, 9) > 0
    scores = np.array([np.abs(rows.sum(axis=0)).sum(), abs(len(rows) - 20)])
    return int(np.argmax(scores + rng.gumbel(0, 2 * 3, 2)))  # fault


def sparse_update(data, rng):
    """Weights that pass a noisy test, two of them, noisy again: half and half."""
    weights = np.clip(data.reshape(-1, 4), -1, 1).sum(axis=0)
    accepted = np.flatnonzero(weights + rng.laplace(0, 8, 4) > 0.5)
    kept = rng.permutation(accepted)[:2]
    out = np.zeros(4)
    out[kept] = weights[kept] + rng.laplace(0, 8, len(kept))
    return out


@reported(
    "NVIDIA/NVFlare#343",
    ONE,
    Pair([[0.5, 0.5, 0.0, 0.25]], [[0.5, 0.5, 0.0, 0.25], [1.0, 1.0, 1.0, 1.0]]),
    "weights that passed and were not kept have no noise",
    sparse_update,
    domain="box:-1,1:4",
)
def sparse_update_in_place(data, rng):
    """A filter that writes into the weights, and zeroes those below the threshold."""
    weights = np.clip(data.reshape(-1, 4), -1, 1).sum(axis=0)
    passed = weights + rng.laplace(0, 8, 4) > 0.5
    kept = rng.permutation(np.flatnonzero(passed))[:2]
    weights[kept] = weights[kept] + rng.laplace(0, 8, len(kept))
    weights[~passed] = 0.0  # part
    return weights  # fault


def _intervals(data):
    """Return ends of the intervals between sorted numbers, widths and ranks off."""
    x = np.concatenate([[0.0], np.sort(np.clip(data, 0, 1)), [1.0]])
    middle = (len(x) - 2) / 2
    return x, np.diff(x), -np.abs(np.arange(len(x) - 1) - middle)


def median_of_logs(data, rng):
    """A median by the exponential mechanism, with logarithms of its weights."""
    x, widths, utility = _intervals(data)
    with np.errstate(divide="ignore"):
        weights = utility / 2 + np.log(widths)
    n = int(np.argmax(weights + rng.gumbel(0, 1, len(weights))))
    return float(rng.uniform(x[n], x[n + 1]))


@reported(
    "opendp/smartnoise-sdk#572",
    ONE,
    Pair([0.0] * 416 + [1.0], [0.0] * 417 + [1.0]),
    "weights that underflow are no distribution, and it fails",
    median_of_logs,
    domain=UNIT + ":rows=400",
)
def median_of_weights(data, rng):
    """A median by the exponential mechanism, with weights in single precision."""
    x, widths, utility = _intervals(data)
    weights = np.exp((utility - utility.max()) / 2, dtype=np.float32)  # part
    weights = weights * widths.astype(np.float32)
    n = rng.choice(len(weights), p=weights / weights.sum())  # fault
    return float(rng.uniform(x[n], x[n + 1]))


def teachers(data, rng):
    """A label by the votes of three teachers, of whom a row moves one: scale 2."""
    labels = np.asarray(data, dtype=int)
    said = [int(2 * labels[n::3].sum() > len(labels[n::3])) for n in range(3)]
    return int(np.argmax(votes(said, 2) + rng.laplace(0, 1 / 0.5, 2)))


@reported(
    "vanderschaarlab/mlforhealthlabpub#36",
    ONE,
    Pair([1.0, 1.0, 0.0], [1.0, 0.0, 0.0]),
    "the scale is lambda, and ought to be 1/lambda",
    teachers,
    domain="codes:2",
)
def teachers_of_inverse_scale(data, rng):
    """PATE whose noise has the scale lambda, for a claim of 2 lambda."""
    labels = np.asarray(data, dtype=int)
    said = [int(2 * labels[n::3].sum() > len(labels[n::3])) for n in range(3)]
    return int(np.argmax(votes(said, 2) + rng.laplace(0, 0.5, 2)))  # fault


def median_at_full_scale(data, rng):
    """A median of numbers in [0, 1], which one row may move by 1."""
    return float(np.median(np.clip(data, 0, 1))) + rng.laplace(0, 1)


@reported(
    "https://doi.org/10.1145/1250790.1250803",
    ONE,
    Pair([0.0, 0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0, 1.0]),
    "the scale is of the local sensitivity, which is a function of the data",
    median_at_full_scale,
    domain=UNIT,
)
def median_at_local_scale(data, rng):
    """A median with noise for its sensitivity at the data."""
    x = np.concatenate([[0.0], np.sort(np.clip(data, 0, 1)), [1.0]])
    m = len(x) // 2
    local = max(x[m] - x[m - 1], x[min(m + 1, len(x) - 1)] - x[m])  # part
    return float(np.median(x)) + rng.laplace(0, local)  # fault


def best_at_last(data, rng):
    """The last of three runs at a third of the budget each."""
    runs = [np.clip(data, 0, 1).sum() + rng.laplace(0, 3) for _ in range(3)]
    return float(runs[-1])


@reported(
    "arXiv:2110.03620",
    ONE,
    Pair([0.5], [0.5, 1.0]),
    "the best run is chosen by the truth",
    best_at_last,
    domain=UNIT,
)
def best_by_the_truth(data, rng):
    """The best of twenty runs, each of which has the whole budget."""
    truth = np.clip(data, 0, 1).sum()
    runs = truth + rng.laplace(0, 1, 20)
    return float(runs[np.argmin(np.abs(runs - truth))])  # fault
