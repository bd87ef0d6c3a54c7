"""Models that are trained in private: clusters, trees, votes, and noisy objectives."""

import numpy as np
from scipy import optimize

from benchmarks.styles.pairs import (
    BALL,
    GAUSS,
    LONG,
    NUMBERS,
    ONE,
    SPHERE,
    SWAPPED,
    TWO,
)
from benchmarks.styles.registry import right, wrong
from dpaudit import GaussianDP, Pair

# Rows (x, class), x in [0, 1].
VOTERS = Pair(
    [[0.1, 0.0], [0.9, 1.0], [0.8, 1.0], [0.2, 0.0]],
    [[0.1, 0.0], [0.9, 1.0], [0.8, 1.0], [0.2, 0.0], [0.7, 0.0]],
)
REVOTED = Pair(
    [[0.1, 0.0], [0.9, 1.0], [0.8, 1.0], [0.2, 0.0]],
    [[0.1, 0.0], [0.9, 1.0], [0.8, 1.0], [0.9, 1.0]],
)
CLOSE = Pair(VOTERS.neighbour, [*VOTERS.neighbour, [0.6, 0.0]])


@right(
    GAUSS,
    BALL,
    "three products, each of distance 1 at sigma sqrt 3",
    domain=SPHERE,
    source="Hardt, Price 2014",
)
def power_iteration(data, rng):
    """Noisy power iteration for one direction."""
    moments, v = data.T @ data, np.ones(3) / 3**0.5
    for _ in range(3):
        v = moments @ v + rng.normal(0, 3**0.5, 3)
        v = v / np.linalg.norm(v)
    return v


@wrong(GAUSS, BALL, "three products have the noise of one", sees="transcript")
def power_iteration_of_one(data, rng):
    """Noisy power iteration whose steps each spend all."""
    v = np.ones(3) / 3**0.5
    for _ in range(3):
        v = data.T @ (data @ v) + rng.normal(0, 0.3, 3)  # fault
        v = v / np.linalg.norm(v)
    return v


@wrong(GAUSS, BALL, "it starts at the first component of the data", sees="transcript")
def power_iteration_from_the_top(data, rng):
    """Noisy power iteration that starts at the exact component, and says where."""
    start = np.linalg.eigh(data.T @ data)[1][:, -1]  # part
    v = data.T @ (data @ start) + rng.normal(0, 1.0, 3)
    return start, v / np.linalg.norm(v)  # fault


@right(GAUSS, BALL, "a block of distance 1 for each of two steps at sigma sqrt 2")
def subspace_iteration(data, rng):
    """Noisy subspace iteration with QR in between."""
    basis = np.linalg.qr(np.ones((3, 2)) + np.eye(3)[:, :2])[0]
    for _ in range(2):
        basis = data.T @ (data @ basis) + rng.normal(0, 2**0.5, (3, 2))
        basis, _ = np.linalg.qr(basis)
    return basis @ basis.T


@right(
    ONE,
    NUMBERS,
    "two rounds; one cluster's sum and count, 1/4 each",
    domain="scalar:0,1",
    source="Blum, Dwork, McSherry, Nissim 2005",
)
def k_means(data, rng):
    """Lloyd's algorithm with noisy sums and counts."""
    centres = np.array([0.2, 0.8])
    for _ in range(2):
        nearest = np.abs(data[:, None] - centres).argmin(axis=1)
        for k in range(2):
            members = data[nearest == k]
            total = members.sum() + rng.laplace(0, 4.0)
            count = len(members) + rng.laplace(0, 4.0)
            centres[k] = np.clip(total / max(count, 1.0), 0, 1)
    return centres


@wrong(ONE, NUMBERS, "the clusters' exact sizes divide", sees="transcript")
def k_means_with_sizes(data, rng):
    """Lloyd's algorithm with noisy sums and exact counts."""
    centres = np.array([0.2, 0.8])
    nearest = np.abs(data[:, None] - centres).argmin(axis=1)
    for k in range(2):
        total = data[nearest == k].sum() + rng.laplace(0, 1.0)
        centres[k] = total / max(1, np.sum(nearest == k))  # fault
    return centres


@wrong(ONE, NUMBERS, "the first centres are rows")
def k_means_from_rows(data, rng):
    """Lloyd's algorithm that starts at the least and the largest row."""
    start = np.array([data.min(), data.max()])  # part
    nearest = np.abs(data[:, None] - start).argmin(axis=1)
    sums = np.array([data[nearest == k].sum() for k in range(2)])
    noisy = sums + rng.laplace(0, 2.0, 2)
    counts = np.bincount(nearest, minlength=2) + rng.laplace(0, 2.0, 2)
    return start, noisy / np.maximum(counts, 1.0)  # fault


@right(
    GAUSS, NUMBERS, "soft members: sums of shares that add up to 1", domain="scalar:0,1"
)
def mixture_by_em(data, rng):
    """Two rounds of EM for two Gaussians with noisy statistics."""
    means, shares = np.array([0.2, 0.8]), np.array([0.5, 0.5])
    for _ in range(2):
        weights = shares * np.exp(-8 * (data[:, None] - means) ** 2) + 1e-9
        weights = weights / weights.sum(axis=1, keepdims=True)
        sizes = np.maximum(weights.sum(axis=0) + rng.normal(0, 2.0, 2), 1.0)
        sums = (weights * data[:, None]).sum(axis=0) + rng.normal(0, 2.0, 2)
        means, shares = np.clip(sums / sizes, 0, 1), sizes / sizes.sum()
    return means


@right(
    ONE,
    REVOTED,
    "one teacher changes its vote: two counts, 1/2 each",
    source="Papernot et al. 2017",
)
def votes_of_teachers(data, rng):
    """The noisy vote of teachers, each trained on rows of its own."""
    votes = np.zeros(2)
    for teacher in range(3):
        x, y = data[teacher::3].T
        up = np.sum(y * (x - 0.5)) >= np.sum((1 - y) * (x - 0.5))
        votes[int(up)] += 1
    return int(np.argmax(votes + rng.laplace(0, 2.0, 2)))


@wrong(ONE, VOTERS, "the votes that agree are released as they are")
def votes_with_agreement(data, rng):
    """A noisy vote of teachers, with the share of teachers that agree."""
    votes = np.zeros(2)
    for row in data:
        votes[int(row[1])] += 1
    label = int(np.argmax(votes + rng.laplace(0, 2.0, 2)))
    return label, votes.max() / votes.sum()  # fault


@wrong(ONE, VOTERS, "where the vote is clear, there is no noise")
def votes_if_close(data, rng):
    """A vote that gets noise only where it is close."""
    ones = np.sum(data[:, 1] == 1)
    zeros = np.sum(data[:, 1] == 0)
    if abs(ones - zeros) >= 1:  # fault
        return int(ones > zeros)
    return int(ones + rng.laplace(0, 2.0) > zeros + rng.laplace(0, 2.0))


@right(ONE, VOTERS, "two rounds, and in each a sum and a size of one bin at 1/4")
def boosted_stumps(data, rng):
    """Boosting of stumps on public cuts with noisy histograms of residuals."""
    cuts, scores = (0.25, 0.5, 0.75), np.zeros(4)
    bins = np.digitize(data[:, 0], cuts)
    for _ in range(2):
        residuals = np.clip(data[:, 1] - scores[bins], -1, 1)
        sums = np.bincount(bins, residuals, minlength=4) + rng.laplace(0, 4.0, 4)
        sizes = np.bincount(bins, minlength=4) + rng.laplace(0, 4.0, 4)
        scores = scores + 0.5 * np.clip(sums / np.maximum(sizes, 2.0), -1, 1)
    return scores


@wrong(ONE, CLOSE, "the cut is the exact best one")
def stump_at_the_best_cut(data, rng):
    """A stump whose cut is searched without noise."""
    cuts = (0.15, 0.5, 0.85)
    errors = [np.sum((data[:, 0] > cut) != data[:, 1]) for cut in cuts]
    best = cuts[int(np.argmin(errors))]  # part
    side = data[data[:, 0] > best, 1]
    return best, side.sum() + rng.laplace(0, 1.0)  # fault


@wrong(ONE, VOTERS, "leaves without rows are left out, and their sizes divide")
def leaves_with_means(data, rng):
    """Means of the leaves of a public tree with noise of scale one over their size."""
    leaves = np.digitize(data[:, 0], [0.5])
    means = []
    for leaf in range(2):
        labels = data[leaves == leaf, 1]
        means.append(labels.mean() + rng.laplace(0, 1 / len(labels)))  # fault
    return np.array(means)


@right(ONE, VOTERS, "one class and one bin of it move: two counts of 1/2")
def naive_bayes(data, rng):
    """Naive Bayes on noisy counts."""
    prior = np.bincount(data[:, 1].astype(int), minlength=2) + rng.laplace(0, 2.0, 2)
    cells = np.zeros((2, 2))
    for k in (0, 1):
        high = data[data[:, 1] == k, 0] > 0.5
        cells[k] = [np.sum(~high), np.sum(high)]
    cells += rng.laplace(0, 2.0, (2, 2))
    return np.log(np.maximum(prior, 1.0)), np.log(np.maximum(cells, 1.0))


@right(
    GaussianDP(2.0),
    REVOTED,
    "weights of length 1/2 at most, with deviation 1/2",
    source="Chaudhuri, Monteleoni, Sarwate 2011",
)
def minimised_with_noise(data, rng):
    """A convex loss that SciPy minimises, with noise on what comes out."""
    x, y = data[:, 0], 2 * data[:, 1] - 1

    def loss(w):
        return np.mean(np.log1p(np.exp(-y * (x * w[0] + w[1])))) + 2.0 * w @ w

    w = optimize.minimize(loss, np.zeros(2), method="BFGS").x
    w = w / max(1.0, 2 * np.linalg.norm(w))
    return w + rng.normal(0, 0.5, 2)


@wrong(
    ONE,
    REVOTED,
    "the sum moves by 2, and the noise has scale 1/2",
    source="objective perturbation",
)
def objective_with_little_noise(data, rng):
    """Least squares to a mean with a linear term of noise, too small."""
    y = 2 * data[:, 1] - 1
    b = rng.laplace(0, 0.5)  # part
    return (y.sum() + b) / (len(data) + 1.0)  # fault


@right(
    TWO, SWAPPED, "the objective's gradient moves by 1", source="objective perturbation"
)
def objective_perturbation(data, rng):
    """A strongly convex objective with a linear term of noise, in closed form."""
    b = rng.laplace(0, 0.5)
    return (np.clip(data, 0, 1).sum() + b) / (len(data) + 1.0)


@right(
    GAUSS,
    LONG,
    "each client's update has length 1 at most",
    source="McMahan, Ramage, Talwar, Zhang 2018",
)
def federated_averaging(data, rng):
    """Updates of clients that are clipped, summed, and given noise; two rounds."""
    w = np.zeros(3)
    for _ in range(2):
        updates = []
        for client in data:
            local = w.copy()
            for _ in range(3):
                local = local - 0.3 * (local - client)
            delta = local - w
            updates.append(delta * min(1.0, 1 / max(np.linalg.norm(delta), 1e-12)))
        total = np.sum(updates, axis=0) + rng.normal(0, 2**0.5, 3)
        w = w + total / 10
    return w


@wrong(
    GAUSS,
    LONG,
    "each client adds noise of its own, too little by a root",
    sees="transcript",
)
def federated_with_shares(data, rng):
    """Updates of clients with shares of the noise, as if there were n of them."""
    updates = [row / max(1.0, np.linalg.norm(row)) for row in data]
    shares = [rng.normal(0, 1.0 / len(data), 3) for _ in data]  # fault
    return np.sum(updates, axis=0) + np.sum(shares, axis=0)  # part


@right(ONE, NUMBERS, "one bin of a histogram moves by 1", domain="scalar:0,1")
def generator_of_rows(data, rng):
    """Synthetic rows from a noisy histogram."""
    counts = np.histogram(data, bins=4, range=(0, 1))[0] + rng.laplace(0, 1.0, 4)
    shares = np.maximum(counts, 0) + 1e-6
    bins = rng.choice(4, size=5, p=shares / shares.sum())
    return (bins + 0.5) / 4


@wrong(ONE, NUMBERS, "rows are drawn from the data themselves")
def bootstrap_of_rows(data, rng):
    """Synthetic rows: rows of the data with noise on each."""
    rows = rng.choice(data, size=5)  # part
    return rows + rng.laplace(0, 0.1, 5)  # fault
