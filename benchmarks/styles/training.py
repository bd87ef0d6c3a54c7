"""Training loops: gradients that are clipped one by one, and noise in every step."""

import numpy as np

from benchmarks.styles.pairs import BALL, GAUSS, LONG, SPHERE
from benchmarks.styles.registry import right, wrong
from dpaudit import ApproxDP, GaussianDP, Pair

STEPS = 4
SIGMA = 2.0  # sqrt(STEPS): four steps of distance 1 are one of 1
FARTHER = Pair(
    [[0.5, 0.5, 0.0], [0.0, -0.6, 0.8]], [[0.5, 0.5, 0.0], [30.0, 0.0, 40.0]]
)
OPPOSED = Pair([[0.5, 0.5, 0.0], [-30.0, 0.0, -40.0]], FARTHER.neighbour)
# Rows (x1, x2, label), of which one has a label of its own.
LABELS = Pair(
    [[0.5, 0.5, 1.0], [-0.6, 0.8, -1.0]],
    [[0.5, 0.5, 1.0], [-0.6, 0.8, -1.0], [6.0, 8.0, -1.0]],
)
SQUARES = "box:-50,50:3"
AMPLIFIED = ApproxDP(1.1, 1e-3)  # four steps at sigma 1, rate 0.1


def clipped(gradients, bound=1.0):
    """Return gradients, each of length at most a bound."""
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return gradients / np.maximum(1.0, norms / bound)


@right(GAUSS, LONG, "four steps of distance 1 at sigma 2", domain=SQUARES)
def full_batch(data, rng):
    """Gradient descent to a mean on all rows, clipped by a helper."""
    w = np.zeros(data.shape[1])
    for _ in range(STEPS):
        total = clipped(w - data).sum(axis=0)
        w = w - 0.1 * (total + rng.normal(0, SIGMA, w.shape))
    return w


@right(
    GAUSS,
    LONG,
    "four steps of distance 1 at sigma 2",
    sees="transcript",
    domain=SQUARES,
)
def full_batch_transcript(data, rng):
    """The same with all of its weights, for whoever sees each step."""
    w, path = np.zeros(data.shape[1]), []
    for _ in range(STEPS):
        gradients = w - data
        factors = np.minimum(1, 1 / np.maximum(np.linalg.norm(gradients, axis=1), 1e-9))
        total = (gradients * factors[:, None]).sum(axis=0)
        w = w - 0.1 * (total + SIGMA * rng.standard_normal(w.size))
        path.append(w)
    return np.array(path)


@right(GAUSS, LABELS, "four steps of distance 1 at sigma 2", domain=SQUARES)
def logistic_row_by_row(data, rng):
    """Logistic regression with a loop over rows, each gradient clipped by an if."""
    w = np.zeros(2)
    for _ in range(STEPS):
        total = np.zeros(2)
        for row in data:
            x, y = row[:2], np.sign(row[2])
            gradient = -y * x / (1 + np.exp(np.clip(y * (x @ w), -50, 50)))
            norm = np.linalg.norm(gradient)
            if norm > 1.0:
                gradient = gradient / norm
            total += gradient
        w -= 0.5 * (total + rng.normal(scale=SIGMA, size=2)) / 10
    return w


@right(
    GaussianDP(2.0),
    Pair([[0.5, 0.5], [0.1, 0.2]], [[0.5, 0.5], [30.0, 40.0]]),
    "replaced rows move a sum by 2",
)
def replaced_rows(data, rng):
    """Gradient descent with a public number of rows, clipped by einsum."""
    w = np.zeros(2)
    for _ in range(STEPS):
        gradients = w - data
        norms = np.sqrt(np.einsum("ij,ij->i", gradients, gradients))
        weights = 1 / np.maximum(1.0, norms)
        mean = np.einsum("i,ij->j", weights, gradients) / len(data)
        w = w - 0.1 * (mean + rng.normal(0, SIGMA / len(data), 2))
    return w


@right(
    GAUSS, LONG, "without sampling it holds, and sampling only helps", sees="transcript"
)
def poisson_batches(data, rng):
    """DP-SGD on Poisson batches, claimed without amplification."""
    w = np.zeros(data.shape[1])
    for _ in range(STEPS):
        batch = data[rng.random(len(data)) < 0.5]
        total = clipped(w - batch).sum(axis=0)
        w = w - 0.1 * (total + rng.normal(0, SIGMA, w.shape)) / 2
    return w


@right(AMPLIFIED, LONG, "the accountant says 1.094 at delta 1e-3")
def amplified_batches(data, rng):
    """DP-SGD on Poisson batches, claimed with amplification."""
    w = np.zeros(data.shape[1])
    for _ in range(STEPS):
        flips = rng.random(len(data)) < 0.1
        total = clipped(w - data[flips]).sum(axis=0)
        w = w - 0.1 * (total + rng.normal(0, 1.0, w.shape))
    return w


@right(GAUSS, LONG, "weights of 0 and 1 in place of batches")
def masked_batches(data, rng):
    """DP-SGD on Poisson batches by a mask of zeros and ones."""
    w = np.zeros(data.shape[1])
    for _ in range(STEPS):
        mask = rng.binomial(1, 0.5, size=len(data))
        total = (mask[:, None] * clipped(w - data)).sum(axis=0)
        w = w - 0.1 * (total + rng.normal(0, SIGMA, w.shape))
    return w


@right(GAUSS, FARTHER, "batches are disjoint: a row is in one of them")
def shuffled_batches(data, rng):
    """One epoch on shuffled disjoint batches, clipped to 1/2 as rows are replaced."""
    w = np.zeros(data.shape[1])
    for batch in np.array_split(data[rng.permutation(len(data))], 2):
        total = clipped(w - batch, 0.5).sum(axis=0)
        w = w - 0.1 * (total + rng.normal(0, 1.0, w.shape))
    return w


@right(GAUSS, FARTHER, "a fixed size of batches, each step of distance 2 at sigma 4")
def sampled_without_replacement(data, rng):
    """Four steps on batches of one row by choice()."""
    w = np.zeros(data.shape[1])
    for _ in range(STEPS):
        rows = rng.choice(len(data), size=1, replace=False)
        total = clipped(w - data[rows]).sum(axis=0)
        w = w - 0.1 * (total + rng.normal(0, 4.0, w.shape))
    return w


@wrong(
    GaussianDP(2.0),
    OPPOSED,
    "a row moves the clipped mean by 2, and not by 2/n",
    sees="transcript",
)
def clipped_after_the_mean(data, rng):
    """Gradient descent whose mean gradient is clipped."""
    w = np.zeros(data.shape[1])
    for _ in range(STEPS):
        mean = clipped((w - data).mean(axis=0, keepdims=True))[0]  # part
        w = w - 0.1 * (mean + rng.normal(0, SIGMA / len(data), w.shape))  # fault
    return w


@wrong(GAUSS, LONG, "gradients are not clipped", sees="transcript")
def not_clipped(data, rng):
    """Gradient descent without clipping."""
    w = np.zeros(data.shape[1])
    for _ in range(STEPS):
        w = w - 0.1 * ((w - data).sum(axis=0) + rng.normal(0, SIGMA, w.shape))  # fault
    return w


@wrong(
    GAUSS,
    LONG,
    "each coordinate is clipped to 1, so rows are up to 1.73 long",
    sees="transcript",
)
def clipped_by_coordinate(data, rng):
    """Gradient descent with gradients that are clipped in each coordinate."""
    w = np.zeros(data.shape[1])
    for _ in range(STEPS):
        total = np.clip(data - w, -1, 1).sum(axis=0)
        w = w + 0.1 * (total + rng.normal(0, SIGMA, w.shape))  # fault
    return w


@wrong(
    GAUSS,
    Pair(np.zeros((2, 3)), [[0, 0, 0], [0, 0, 0], [0.3, 0, 0.4]]),
    "a square is compared with the bound, so gradients of twice the bound pass",
    sees="transcript",
)
def clipped_by_squares(data, rng):
    """Gradient descent whose norm lacks its root, at a bound of 1/4."""
    w, bound = np.zeros(data.shape[1]), 0.25
    for _ in range(STEPS):
        gradients = w - data
        squares = np.sum(gradients**2, axis=1, keepdims=True)  # part
        total = (gradients / np.maximum(1.0, squares / bound)).sum(axis=0)
        w = w - 0.1 * (total + rng.normal(0, SIGMA * bound, w.shape))  # fault
    return w


@wrong(GAUSS, LONG, "the batch's secret size divides", sees="transcript")
def mean_of_a_secret_batch(data, rng):
    """DP-SGD on Poisson batches, divided by their own size."""
    w = np.zeros(data.shape[1])
    for _ in range(STEPS):
        batch = data[rng.random(len(data)) < 0.5]
        total = clipped(w - batch).sum(axis=0) + rng.normal(0, SIGMA, w.shape)
        w = w - 0.1 * total / max(1, len(batch))  # fault
    return w


@wrong(GAUSS, LONG, "the number of rows divides, which is private")
def divided_by_n(data, rng):
    """Gradient descent on noisy sums that are divided by n."""
    w = np.zeros(data.shape[1])
    for _ in range(STEPS):
        total = clipped(w - data).sum(axis=0) + rng.normal(0, SIGMA, w.shape)
        w = w - 0.1 * total / len(data)  # fault
    return w


@wrong(GAUSS, LONG, "four steps have the noise of one", sees="transcript")
def noise_of_one_step(data, rng):
    """Gradient descent with the noise of a single step in each."""
    w = np.zeros(data.shape[1])
    for _ in range(STEPS):
        total = clipped(w - data).sum(axis=0)
        w = w - 0.1 * (total + rng.normal(0, 1.0, w.shape))  # fault
    return w


@wrong(
    GAUSS,
    LONG,
    "noise is for the clipping bound 1, and gradients are clipped to 4",
    sees="transcript",
)
def noise_without_the_bound(data, rng):
    """Gradient descent that forgets to multiply its noise by the bound."""
    w, bound = np.zeros(data.shape[1]), 4.0
    for _ in range(STEPS):
        total = clipped(w - data, bound).sum(axis=0)
        w = w - 0.1 * (total + rng.normal(0, SIGMA, w.shape))  # fault
    return w


@wrong(GAUSS, LONG, "noise is drawn once, and the same in all steps")
def noise_outside_of_the_loop(data, rng):
    """Gradient descent with noise that is drawn before the loop."""
    w, noise = np.zeros(data.shape[1]), rng.normal(0, SIGMA, data.shape[1])  # part
    path = []
    for _ in range(STEPS):
        w = w - 0.1 * (clipped(w - data).sum(axis=0) + noise)  # fault
        path.append(w)
    return np.array(path)


@wrong(GAUSS, LONG, "the last step has no noise", sees="transcript")
def last_step_without_noise(data, rng):
    """Gradient descent that adds no noise in its last step."""
    w = np.zeros(data.shape[1])
    for step in range(STEPS):
        total = clipped(w - data).sum(axis=0)
        if step < STEPS - 1:
            total = total + rng.normal(0, SIGMA, w.shape)
        w = w - 0.1 * total  # fault
    return w


@wrong(GAUSS, LONG, "the loss of the weights is released as it is")
def losses_reported(data, rng):
    """Gradient descent that reports its loss."""
    w = np.zeros(data.shape[1])
    for _ in range(STEPS):
        total = clipped(w - data).sum(axis=0)
        w = w - 0.1 * (total + rng.normal(0, SIGMA, w.shape))
    return w, float(np.mean((data - w) ** 2))  # fault


@wrong(
    AMPLIFIED,
    LONG,
    "one batch is drawn, and claimed as secret in each step",
    sees="transcript",
)
def one_batch_for_all(data, rng):
    """DP-SGD whose batch is drawn once before the loop."""
    w = np.zeros(data.shape[1])
    batch = data[rng.random(len(data)) < 0.1]  # part
    for _ in range(STEPS):
        total = clipped(w - batch).sum(axis=0)
        w = w - 0.1 * (total + rng.normal(0, 1.0, w.shape))  # fault
    return w


@wrong(
    AMPLIFIED, LONG, "batches go around in turn, and hide nothing", sees="transcript"
)
def batches_in_turn(data, rng):
    """DP-SGD on rows in turn with the noise of secret batches."""
    w = np.zeros(data.shape[1])
    for step in range(STEPS):
        batch = data[step % 4 :: 4]
        total = clipped(w - batch).sum(axis=0)
        w = w - 0.1 * (total + rng.normal(0, 1.0, w.shape))  # fault
    return w


@right(GAUSS, BALL, "the moment goes through noisy gradients only", domain=SPHERE)
def momentum(data, rng):
    """Gradient descent with momentum and a decaying step."""
    w, velocity = np.zeros(data.shape[1]), np.zeros(data.shape[1])
    for step in range(STEPS):
        total = clipped(w - data).sum(axis=0)
        velocity = 0.9 * velocity + total + rng.normal(0, SIGMA, w.shape)
        w = w - 0.1 / (1 + step) * velocity
    return w


@right(GAUSS, LONG, "Adam looks at noisy gradients only", domain=SQUARES)
def adam(data, rng):
    """Adam on noisy gradients."""
    w, first, second = np.zeros((3, data.shape[1]))
    for step in range(1, STEPS + 1):
        g = (clipped(w - data).sum(axis=0) + rng.normal(0, SIGMA, w.shape)) / 10
        first = 0.9 * first + 0.1 * g
        second = 0.99 * second + 0.01 * g**2
        scale = np.sqrt(second / (1 - 0.99**step)) + 1e-8
        w = w - 0.1 * first / (1 - 0.9**step) / scale
    return w
