"""Reported faults of training loops: what is clipped, sampled, counted and noised."""

import numpy as np

from benchmarks.styles.pairs import BALL, GAUSS, LONG, SPHERE
from benchmarks.styles.registry import reported
from benchmarks.styles.training import AMPLIFIED, SQUARES, clipped
from dpaudit import Pair

FIRST = [1.0] + [0.0] * 7
THREE_LAYERS = Pair([[0.1] * 6], [[0.1] * 6, [9.0, 0.0, 9.0, 0.0, 9.0, 0.0]])


def mean_of_expected_size(data, rng):
    """A mean over a batch of Poisson sampling, divided by a public size."""
    batch = data.reshape(-1, 8)[rng.random(len(data)) < 0.5]
    return (clipped(batch).sum(axis=0) + rng.normal(0, 1, 8)) / 2


@reported(
    "meta-pytorch/opacus#571",
    GAUSS,
    Pair([FIRST] * 3, [FIRST] * 4),
    "the expected size is that of the rows that there are",
    mean_of_expected_size,
    domain="ball:8",
)
def mean_of_floored_size(data, rng):
    """An optimizer that divides by the whole part of rate times rows."""
    batch = data.reshape(-1, 8)[rng.random(len(data)) < 0.5]
    expected = max(1, int(len(data) * 0.5))  # part
    return (clipped(batch).sum(axis=0) + rng.normal(0, 1, 8)) / expected  # fault


def batches_by_coins(data, rng):
    """Four steps at sigma 1, each on a tenth of the rows by coins."""
    w, path = np.zeros(3), []
    for _ in range(4):
        batch = data.reshape(-1, 3)[rng.random(len(data)) < 0.1]
        w = w - 0.1 * (clipped(w - batch).sum(axis=0) + rng.normal(0, 1, 3))
        path.append(w)
    return np.array(path)


@reported(
    "google-deepmind/jax_privacy#272",
    AMPLIFIED,
    LONG,
    "each row is in a batch for certain",
    batches_by_coins,
    domain=SQUARES,
)
def batches_in_order(data, rng):
    """A fit that takes the batches as they come, with the claim of coins."""
    w, path = np.zeros(3), []
    for batch in np.array_split(data.reshape(-1, 3), 4):  # part
        w = w - 0.1 * (clipped(w - batch).sum(axis=0) + rng.normal(0, 1, 3))  # part
        path.append(w)
    return np.array(path)  # fault


def accumulated_parts(data, rng):
    """Four steps at sigma 1; the tenth of each is worked through in parts."""
    w, path = np.zeros(3), []
    for _ in range(4):
        batch = data.reshape(-1, 3)[rng.random(len(data)) < 0.1]
        parts = [clipped(w - part).sum(axis=0) for part in np.array_split(batch, 2)]
        w = w - 0.1 * (sum(parts) + rng.normal(0, 1, 3))
        path.append(w)
    return np.array(path)


@reported(
    "google-deepmind/jax_privacy#271",
    AMPLIFIED,
    LONG,
    "a step sees four tenths of the rows, and one is accounted for",
    accumulated_parts,
    domain=SQUARES,
)
def accumulated_batches(data, rng):
    """Four batches for each step, and the rate of one in the accountant."""
    w, path = np.zeros(3), []
    for _ in range(4):
        total = np.zeros(3)
        for _ in range(4):
            batch = data.reshape(-1, 3)[rng.random(len(data)) < 0.1]
            total = total + clipped(w - batch).sum(axis=0)  # part
        w = w - 0.1 * (total + rng.normal(0, 1, 3))  # part
        path.append(w)
    return np.array(path)  # fault


def clipped_to_the_norm(data, rng):
    """A sum of rows of length 1/4 at sigma 1/4."""
    norm = 0.25
    return clipped(data.reshape(-1, 3), norm).sum(axis=0) + rng.normal(0, norm, 3)


@reported(
    "meta-pytorch/opacus#664",
    GAUSS,
    BALL,
    "the clipping norm is the default",
    clipped_to_the_norm,
    domain=SPHERE,
)
def clipped_by_default(data, rng):
    """An engine that hands its norm to the noise, and not to the clipping."""
    norm = 0.25
    return clipped(data.reshape(-1, 3)).sum(axis=0) + rng.normal(0, norm, 3)  # fault


def gradients_cleared(data, rng):
    """Two steps at sigma sqrt 2, each with gradients of its own."""
    w, path = np.zeros(3), []
    for _ in range(2):
        total = clipped(w - data.reshape(-1, 3)).sum(axis=0)
        w = w - 0.1 * (total + rng.normal(0, 2**0.5, 3))
        path.append(w)
    return np.array(path)


@reported(
    "meta-pytorch/opacus#203",
    GAUSS,
    LONG,
    "the second step sees the gradients of the first once more",
    gradients_cleared,
    domain=SQUARES,
)
def gradients_kept(data, rng):
    """Two steps without zero_grad in between."""
    w, total, path = np.zeros(3), np.zeros(3), []
    for _ in range(2):
        total = total + clipped(w - data.reshape(-1, 3)).sum(axis=0)  # part
        w = w - 0.1 * (total + rng.normal(0, 2**0.5, 3))  # part
        path.append(w)
    return np.array(path)  # fault


def passes_clipped_together(data, rng):
    """A sum of two gradients of each row, clipped as one."""
    rows = data.reshape(-1, 3)
    return clipped(rows + 0.5 * rows).sum(axis=0) + rng.normal(0, 1, 3)


@reported(
    "meta-pytorch/opacus#494",
    GAUSS,
    BALL,
    "two clipped gradients of a row have length 2",
    passes_clipped_together,
    domain=SPHERE,
)
def passes_clipped_apart(data, rng):
    """A discriminator with two backward passes for each step, and noise for one."""
    rows = data.reshape(-1, 3)
    first, second = clipped(rows).sum(axis=0), clipped(rows / 2, 1.0).sum(axis=0)
    return first + second + rng.normal(0, 1, 3)  # fault


def noise_of_the_sum(data, rng):
    """A mean over a batch of four: noise for the sum, then divided."""
    return (clipped(data.reshape(-1, 3)).sum(axis=0) + rng.normal(0, 1, 3)) / 4


@reported(
    "arXiv:2202.12219",
    GAUSS,
    BALL,
    "the sum has the noise of a mean",
    noise_of_the_sum,
    domain=SPHERE,
)
def noise_of_the_mean(data, rng):
    """A gradient whose sensitivity is divided by the batch size, and it is not."""
    return clipped(data.reshape(-1, 3)).sum(axis=0) + rng.normal(0, 1 / 4, 3)  # fault


def clipped_as_a_whole(data, rng):
    """Three layers of two weights, clipped together."""
    total = clipped(data.reshape(-1, 6)).sum(axis=0) + rng.normal(0, 1, 6)
    return {"conv": total[:2], "dense": total[2:4], "head": total[4:]}


@reported(
    "fedbiomed/fedbiomed#1443",
    GAUSS,
    THREE_LAYERS,
    "three layers of length 1 have length sqrt 3",
    clipped_as_a_whole,
    domain="box:-9,9:6",
)
def clipped_by_layer(data, rng):
    """Layers that are clipped one by one, with noise for one."""
    layers = np.split(data.reshape(-1, 6), 3, axis=1)
    sums = [clipped(layer).sum(axis=0) for layer in layers]  # part
    noisy = [total + rng.normal(0, 1, 2) for total in sums]  # part
    return dict(zip(("conv", "dense", "head"), noisy, strict=True))  # fault


def clipped_row_by_row(data, rng):
    """A mean over four of gradients of length 1."""
    return clipped(data.reshape(-1, 3)).sum(axis=0) / 4 + rng.normal(0, 1 / 4, 3)


@reported(
    "JeffffffFu/Awesome-Differential-Privacy-and-Meachine-Learning#9",
    GAUSS,
    LONG,
    "one row may turn the gradient of a batch round",
    clipped_row_by_row,
    domain=SQUARES,
)
def clipped_batch(data, rng):
    """A batch whose gradient is clipped, and not those of its rows."""
    mean = data.reshape(-1, 3).sum(axis=0) / 4  # part
    return clipped(mean[np.newaxis])[0] + rng.normal(0, 1 / 4, 3)  # fault


def normalised_by_row(data, rng):
    """Rows that are normalised by their own deviation."""
    rows = data.reshape(-1, 3)
    rows = rows / (rows.std(axis=1, keepdims=True) + 1e-3)
    return clipped(rows).sum(axis=0) + rng.normal(0, 1, 3)


@reported(
    "https://opacus.ai/docs/faq",
    GAUSS,
    Pair([[0.1, 0.0, 0.0]] * 4, [[0.1, 0.0, 0.0]] * 4 + [[-9.0, 9.0, 9.0]]),
    "the mean of a batch depends on all of its rows",
    normalised_by_row,
    domain=SQUARES,
)
def normalised_by_batch(data, rng):
    """Batch normalisation before gradients are clipped row by row."""
    rows = data.reshape(-1, 3)
    if len(rows):
        rows = (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 1e-3)  # part
    return clipped(rows).sum(axis=0) + rng.normal(0, 1, 3)  # fault


def noise_of_the_server(data, rng):
    """An aggregate of clients with noise at the server."""
    updates = clipped(data.reshape(-1, 3))
    return updates.sum(axis=0) + rng.normal(0, 1, 3)


@reported(
    "flwrlabs/flower#2893",
    GAUSS,
    BALL,
    "fewer clients than expected bring less noise",
    noise_of_the_server,
    domain=SPHERE,
)
def noise_of_the_clients(data, rng):
    """Clients that each add a tenth of the variance, as ten are expected."""
    updates = clipped(data.reshape(-1, 3))
    noisy = updates + rng.normal(0, 10**-0.5, updates.shape)  # part
    return noisy.sum(axis=0)  # fault


def clipped_to_a_fixed_norm(data, rng):
    """A sum at a public norm of 10."""
    return clipped(data.reshape(-1, 3), 10.0).sum(axis=0) + rng.normal(0, 10, 3)


@reported(
    "meta-pytorch/opacus#421",
    GAUSS,
    Pair([[0.1, 0.0, 0.0]], [[0.1, 0.0, 0.0], [9.0, 9.0, 9.0]]),
    "the norm is a statistic of the rows, without noise",
    clipped_to_a_fixed_norm,
    domain=SQUARES,
)
def clipped_to_the_median(data, rng):
    """Adaptive clipping whose norm is the median length of the rows."""
    rows = data.reshape(-1, 3)
    lengths = np.linalg.norm(rows, axis=1)
    norm = float(np.median(lengths)) if len(rows) else 10.0  # part
    return clipped(rows, max(norm, 1e-3)).sum(axis=0) + rng.normal(0, norm, 3)  # fault


def update_clipped(data, rng):
    """A client's update after three local steps, clipped as a whole."""
    updates = np.zeros_like(data.reshape(-1, 3))
    for _ in range(3):
        updates = updates + clipped(data.reshape(-1, 3) - updates)
    return clipped(updates).sum(axis=0) + rng.normal(0, 1, 3)


@reported(
    "APPFL/APPFL#151",
    GAUSS,
    LONG,
    "three steps of length 1 are an update of length 3",
    update_clipped,
    domain=SQUARES,
)
def steps_clipped(data, rng):
    """A client whose gradients are clipped, and whose update is sent."""
    updates = np.zeros_like(data.reshape(-1, 3))
    for _ in range(3):
        updates = updates + clipped(data.reshape(-1, 3) - updates)  # part
    return updates.sum(axis=0) + rng.normal(0, 1, 3)  # fault


def layers_noised(data, rng):
    """Two layers, both with noise."""
    total = clipped(data.reshape(-1, 3)).sum(axis=0)
    layers = [total[:2].copy(), total[2:].copy()]
    return tuple(layer + rng.normal(0, 1, layer.size) for layer in layers)


@reported(
    "sherpaai/Sherpa.ai-Federated-Learning-Framework#196",
    GAUSS,
    BALL,
    "the noise goes to a copy",
    layers_noised,
    domain=SPHERE,
)
def layers_noised_in_a_copy(data, rng):
    """An aggregator whose loop rebinds a name, and adds its noise to nothing."""
    total = clipped(data.reshape(-1, 3)).sum(axis=0)
    layers = [total[:2].copy(), total[2:].copy()]
    for layer in layers:
        layer = layer + rng.normal(0, 1, layer.size)  # part
    return tuple(layers)  # fault


def scaled_by_bounds(data, rng):
    """A sum of rows that are scaled by a public bound of 50."""
    rows = np.clip(data.reshape(-1, 3), -50, 50) / 50
    return clipped(rows).sum(axis=0) + rng.normal(0, 1, 3)


@reported(
    "BorealisAI/private-data-generation#12",
    GAUSS,
    Pair([[5.0, 5.0, 5.0]] * 4, [[5.0, 5.0, 5.0]] * 4 + [[50.0, 50.0, 50.0]]),
    "one row scales all others",
    scaled_by_bounds,
    domain=SQUARES,
)
def scaled_by_the_data(data, rng):
    """Rows that are scaled by the largest, before all that is private."""
    rows = data.reshape(-1, 3)
    rows = rows / (np.abs(rows).max(initial=0.0) + 1e-9)  # part
    return clipped(rows).sum(axis=0) + rng.normal(0, 1, 3)  # fault


def clipped_with_noise(data, rng):
    """A sum of updates with noise."""
    return clipped(data.reshape(-1, 3)).sum(axis=0) + rng.normal(0, 1, 3)


@reported(
    "KatherLab/MediSwarm#530",
    GAUSS,
    BALL,
    "there is no noise",
    clipped_with_noise,
    domain=SPHERE,
)
def clipped_by_percentile(data, rng):
    """An update whose small weights are dropped and large ones cut, called private."""
    total = data.reshape(-1, 3).sum(axis=0)
    kept = np.abs(total) >= np.percentile(np.abs(total), 10)
    return np.where(kept, np.clip(total, -1, 1), 0.0)  # fault
