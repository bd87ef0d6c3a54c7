r"""How fast the error of streaming PCA falls: what is measured.

Source of the rates: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and
differentially private PCA*, NeurIPS 2022, Theorem 5.1, Corollary 5.2, Example 4.1. Up
to logarithms, the sin of the angle to v is of order sqrt(d/n) + d/(epsilon n) for
Gaussian rows, and sigma times that in Example 4.1.

**Two releases for every data set.** With v the truth and w, w' releases on the same
rows, ``error`` is sin(w, v), and ``noise_error`` is sin(w, w')/sqrt 2. The latter is
what the mechanism's own randomness adds. To first order w = v + a + e and w' = v + a +
e', orthogonally to v, where a is made of the rows and e, e' of noise: independent, with
mean 0 and the same law. So E sin^2(w, w') = E |e - e'|^2 = 2 E |e|^2, with no need to
subtract what another epsilon gives, with other windows and bins.

**Batches.** All mechanisms take `BATCHES` steps, and step sizes of `STEP`, with which
each is a step of the power method on a noisy batch. The start is then forgotten (its
part orthogonal to v shrinks by lambda_2/lambda_1 <= 1/4 a step), and n and d change
nothing but the size of a batch. By the paper's own rule the number of batches grows by
one here and there as n does, and the error jumps there. Steps of that size are no
secret of the rows, and the number of groups of `TopEigenvalue` is that of epsilon = 1
throughout. Its estimate is a power of 2. The scale of the gradients of Gaussian rows is
2 lambda_1^2, and lambda_1 is such that this is in the middle of a bin: at its edge, as
with lambda_1 = 1, the estimate goes from one bin to the other as d grows, and the noise
up by sqrt 2 with it.
"""

from collections.abc import Callable
from math import exp, nan, sqrt

import numpy as np
from scipy.special import digamma

from dpaudit.algorithms.streaming.dp_pca import DPPCA, PublishedDPPCA
from dpaudit.algorithms.streaming.minibatch_oja import MinibatchOja
from dpaudit.arrays import Array
from dpaudit.datasets import spiked_gaussian, streaming_models
from dpaudit.errors import InputError
from dpaudit.reports.experiment import Cell, Record, repeated
from dpaudit.subspace import largest_principal_angle_sine

DP_PCA, MINIBATCH_OJA = "dp-pca", "minibatch-oja"
BATCHES, STEP = 8, 1e4
BY_BATCHES: dict[str, Callable[..., DPPCA | PublishedDPPCA]] = {
    DP_PCA: DPPCA.calibrated,
    "dp-pca-published": PublishedDPPCA.as_published,
}
FIRST = 2**0.25  # the first eigenvalue of Gaussian rows, see the module
REST = FIRST / 4  # the others


def streaming_errors(cell: Cell) -> list[Record]:
    """Return the errors of two releases on every data set, see the module.

    The point and the options give ``epsilon``, ``delta``, ``n`` and ``d``; with
    ``noise`` rows are those of Example 4.1, and Gaussian without.

    Columns: ``repetition``, ``error``, ``noise_error`` (NaN where a release was
    bottom), ``..._null``, those of random vectors, and ``formula``: the noise's typical
    size by the mechanism's own formula, with the true scale of the gradients at v in
    place of the private estimate.
    """
    setting = {**cell.options, **cell.point}
    n, d = int(setting["n"]), int(setting["d"])
    mechanism = _mechanism(cell.mechanism, n, setting["epsilon"], setting["delta"])
    constants = streaming_models.gaussian_constants([FIRST] + [REST] * (d - 1))
    if "noise" in setting:
        constants = streaming_models.signal_constants(setting["noise"], d)
    formula = _noise_by_formula(mechanism, n, d, constants)
    rng = cell.rng()
    errors, noise_errors = [], []
    for _ in range(cell.size):
        rows, truth = _data(n, d, setting.get("noise"), rng)
        one, two = mechanism.draw(rows, 2, rng=rng)[:, :, np.newaxis]
        failed = not np.isfinite([one, two]).all()
        errors.append(nan if failed else _sine(one, truth))
        noise_errors.append(nan if failed else _sine(one, two) / sqrt(2))
    blind = random_sines(cell.size, d, cell.rng(1))
    nulls = {"error_null": blind, "noise_error_null": blind / sqrt(2)}
    found = {"error": errors, "noise_error": noise_errors}
    return repeated(cell, **found, formula=formula, **nulls)


def _mechanism(
    name: str, n: int, epsilon: float, delta: float
) -> DPPCA | PublishedDPPCA | MinibatchOja:
    if name in BY_BATCHES:
        return BY_BATCHES[name](
            epsilon,
            delta,
            batch_size=n // BATCHES,
            step_sizes=STEP,
            group_constant=5 * max(1.0, epsilon),
        )
    if name == MINIBATCH_OJA:
        return MinibatchOja.calibrated(
            epsilon, delta, iterations=BATCHES, step_sizes=STEP
        )
    raise InputError(f"no such mechanism: {name!r}")


def _data(
    n: int, d: int, noise: float | None, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return rows, shape (n, d), and v, shape (d, 1)."""
    if noise is None:
        spikes = [FIRST - REST]
        data = spiked_gaussian(n, d, spikes=spikes, noise=sqrt(REST), rng=rng)
    else:
        data = streaming_models.signal_in_noise(n, d, noise=noise, rng=rng)
    assert data.subspace is not None  # both models have one
    return data.rows, data.subspace


def random_sines(count: int, d: int, rng: np.random.Generator) -> Array:
    """Return sines of the angles of random vectors in R^d to one that is given."""
    drawn = rng.standard_normal((count, d))
    across = np.linalg.norm(drawn[:, 1:], axis=1)
    return np.asarray(across / np.linalg.norm(drawn, axis=1))


def normal_length(k: int) -> float:
    """Return the geometric mean of the length of a standard normal vector in R^k.

    It is exp(E log chi_k), and E log chi_k is (log 2 + psi(k/2))/2.
    """
    return sqrt(2) * exp(float(digamma(k / 2)) / 2)


def _noise_by_formula(
    mechanism: DPPCA | PublishedDPPCA | MinibatchOja,
    n: int,
    d: int,
    constants: streaming_models.StreamConstants,
) -> float:
    """Return s/lambda_1 times a length, s the deviation of a coordinate of a step.

    Noise turns the component in d - 1 directions.
    """
    if isinstance(mechanism, MinibatchOja):
        deviation = mechanism.sigma / (n // BATCHES)
    else:
        size, steps = mechanism.batches(n)
        scale = (constants.gamma * constants.first) ** 2
        zeta = mechanism.scale_finder.zeta / (2 * steps)
        deviation = float(mechanism.mean.deviation(scale, size - size // 2, d, zeta))
    return normal_length(d - 1) * deviation / constants.first


def _sine(one: Array, two: Array) -> float:
    return float(largest_principal_angle_sine(one, two))
