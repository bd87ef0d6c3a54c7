r"""What is measured for theorems on Oja's algorithm and DP-PCA.

Source: Liu, Kong, Jain, Oh, *DP-PCA: statistically optimal and differentially private
PCA*, NeurIPS 2022.

**Theorem 3.3** (`private_oja_noise`). Algorithm 2 as printed, with the C of its alpha =
C log(n/delta)/(epsilon sqrt n) set to 1, and steps a/(gap (xi + t)) with a = `ALPHA`
and xi = `DELAY`. The theorem is on the error, for any epsilon; privacy is another
matter, which Lemma 3.1 promises for smaller epsilons than these, and for a C that is
large enough. The theorem's beta is C lambda_1 sqrt d (K gamma log^a(n d/zeta) + 1), so
that nothing is clipped; here it is lambda_1 sqrt d, and many gradients are, which turns
no first eigenvector of Gaussian rows. Pairs of releases on the same rows differ by
their noise alone, as in `dpaudit.reports.sections.streaming.measures`. To first order
the part of w_t across v shrinks by (1 + eta lambda_2)/(1 + eta lambda_1) in step t, so
the formula of the noise is, with the typical length of a normal vector in d - 1
directions,

.. math:: 2\beta\alpha \Big(\sum_t \frac{\eta_t^2}{(1 + \eta_t\lambda_1)^2}
    \prod_{s>t} \Big(\frac{1 + \eta_s\lambda_2}{1 + \eta_s\lambda_1}\Big)^2\Big)^{1/2}.

**Equation (3)** (`moment_noise`) is what the paper says of noise on the covariance of
rows within beta, beta^2 = lambda_1 d log(n/zeta): of variance (beta^2/n)^2 times that
for unit rows. To first order it turns the first eigenvector of Gaussian rows by
s beta^2/(n gap) in each of d - 1 directions; and so it is again pairs of releases on
the same rows that are measured. beta has zeta = `OUTSIDE`.

**Gradients** (`failures`) are g_i = x_i x_i^T v of Gaussian rows with the eigenvalues
`FIRST` and `REST`, so that Lambda = lambda_1^2 ||H_v|| = 2 lambda_1^2. They keep
Assumption A.4 with a = 1 and K = `TAIL`: for unit u and z with correlation r of x.u and
x.z, lambda_1^2 ||H_u|| is at least the variance of u^T A z, s_u^2 s_z^2 (1 + r^2), and
E exp(|ab - r|/(K sqrt(1 + r^2))) <= 2 for standard normal a, b with correlation r, for
all r (in the tests, by quadrature).

**Theorem 6.1.** Algorithm 4 fails if its output is bottom, or not within a factor of
sqrt 2 of Lambda. B is the theorem's size with its O read as 1 (`theorem_size`); the
print has no constants, so a failure that is too frequent would contradict nothing.

**Lemma 6.2.** Algorithm 5 fails if some gradient is outside the window W = 3 K
sqrt(Lambda) L, L = log(B d/zeta), around the left edge of its fullest bin, or there is
no bin. It is given Lambda itself. With B = `WINDOW_ROWS` this is proven, constants and
all, and wherever they are: it is on what is left of the mean. Here that is moved by
`AWAY` sqrt(Lambda), since a window around 0 is right otherwise, and looks at no row. By
A.4 and Markov's inequality, a coordinate is further than s K sqrt(Lambda) from its mean
with probability 2 e^-s at most. (1) None of B d is further than L + log 4, but with
probability zeta/2. (2) None is further than 2 L - log 4 - 2^(1/4) log 25, but with
probability 8 e^(2^(1/4) log 25) zeta^2/(B d), less than 400 zeta^2/(B d). Then every
bin that is not empty has its left edge within 2 L - log 4 of the mean, as bins are
2^(1/4) log 25 wide; and no other bin can be chosen. With (1), every gradient is within
3 L of it. (3) A bin is left: 23/25 of the mass are within log 25 of the mean, which
meets three bins at most, so one of them has B/4 numbers, but with probability e^(-0.006
B) (Hoeffding), and that many clear the threshold by 40 times the scale of its noise.
The sum is less than zeta.
"""

from math import ceil, log, sqrt
from typing import Any

import numpy as np

from dpaudit.algorithms import entry
from dpaudit.algorithms.shared.step_sizes import HarmonicSteps
from dpaudit.algorithms.streaming.mean_estimation import MeanEstimation
from dpaudit.algorithms.streaming.oja import PrivateOja
from dpaudit.algorithms.streaming.thresholded_counts import SparseCounts
from dpaudit.algorithms.streaming.top_eigenvalue import TopEigenvalue
from dpaudit.algorithms.streaming.windows import Tail
from dpaudit.arrays import Array
from dpaudit.errors import InputError
from dpaudit.reports.experiment import Cell, Record, repeated
from dpaudit.reports.sections.dp_pca.measures import gaussian
from dpaudit.reports.sections.streaming.measures import (
    FIRST,
    REST,
    normal_length,
    random_sines,
)
from dpaudit.streams import stream
from dpaudit.subspace import largest_principal_angle_sine
from dpaudit.validation import check_fraction

ALPHA, DELAY = 2.0, 200.0
TAIL = 1.75
OUTSIDE = 0.01
WINDOW_ROWS = 20_000
AWAY = 1000.0
_SCALE = 2 * FIRST**2


def private_oja_noise(cell: Cell) -> list[Record]:
    """Return what noise adds to the error of private Oja, see the module.

    The point and the options give ``n``, ``d``, ``epsilon`` and ``delta``. The rows are
    the same in all repetitions.

    Columns: ``repetition``, ``noise_error``, ``noise_error_null``, that of random
    vectors, and ``formula``.
    """
    setting = {**cell.options, **cell.point}
    n, d = int(setting["n"]), int(setting["d"])
    epsilon, delta = setting["epsilon"], setting["delta"]
    steps = HarmonicSteps(ALPHA / (FIRST - REST), DELAY)
    clip = FIRST * sqrt(d)
    mechanism = PrivateOja.as_published(
        epsilon, delta, clip=clip, count=n, constant=1.0, step_sizes=steps
    )
    moments = gaussian(n, d, cell.seed, (n, d)).moments(None)
    vectors = mechanism.draw(moments, 2 * cell.size, rng=cell.rng())[:, :, np.newaxis]
    eta = steps.sizes(n)
    shrunk = np.log1p(eta * REST) - np.log1p(eta * FIRST)
    left = np.cumsum(shrunk[::-1])[::-1] - shrunk  # of the steps that follow
    square = float(np.sum((eta / (1 + eta * FIRST)) ** 2 * np.exp(2 * left)))
    formula = mechanism.noise_scale(n) * normal_length(d - 1) * sqrt(square)
    return _apart(cell, vectors, formula)


def moment_noise(cell: Cell) -> list[Record]:
    """Return what noise on the covariance adds to the error, see the module.

    The point and the options give ``n``, ``d``, ``epsilon`` and ``delta``. The columns
    are those of `private_oja_noise`; the rows are the same in all repetitions.
    """
    setting = {**cell.options, **cell.point}
    n, d = int(setting["n"]), int(setting["d"])
    square = FIRST * d * log(n / OUTSIDE)  # beta^2
    mechanism: Any = entry(cell.mechanism).build(
        epsilon=setting["epsilon"], delta=setting["delta"]
    )
    deviations = np.sqrt([FIRST] + [REST] * (d - 1))
    rows = deviations * stream(cell.seed, n, d).standard_normal((n, d))
    rows *= np.minimum(1, sqrt(square) / np.linalg.norm(rows, axis=1, keepdims=True))
    moment = rows.T @ rows / square
    releases = mechanism.draw_from(moment, 2 * cell.size, rng=cell.rng())
    vectors = np.linalg.eigh(releases).eigenvectors[..., -1:]
    turned = mechanism.sigma * square / (n * (FIRST - REST))
    return _apart(cell, vectors, turned * normal_length(d - 1))


def _apart(cell: Cell, vectors: Array, formula: float) -> list[Record]:
    """Return what noise adds, of pairs of releases on the same rows: (2 size, d, 1)."""
    blind = random_sines(cell.size, vectors.shape[1], cell.rng(1))
    pairs = zip(vectors[::2], vectors[1::2], strict=True)
    return repeated(
        cell,
        noise_error=[float(largest_principal_angle_sine(*p)) / sqrt(2) for p in pairs],
        noise_error_null=blind / sqrt(2),
        formula=formula,
    )


def theorem_size(zeta: float, epsilon: float, delta: float, d: int) -> int:
    """Return the B of Theorem 6.1, its O read as 1; the B inside its logarithm too."""
    size, before = 100.0, 0.0
    groups = log(1 / (zeta * delta)) / epsilon
    while abs(size - before) > 0.5:
        before = size
        size = TAIL**2 * d * groups * log(size * d / zeta) ** 2
        size *= log(d * log(1 / (zeta * delta)) / (zeta * epsilon))
    return ceil(size)


def failures(cell: Cell) -> list[Record]:
    """Return in which repetitions Algorithm 4 or 5 fails, see the module.

    The point and the options give ``zeta``, ``epsilon``, ``delta`` and ``d``; the
    mechanism is ``"top-eigenvalue"`` or ``"mean-estimation-published"``, both with the
    constants of the paper, where it has some.

    Columns: ``repetition``, ``rows`` (B), ``failed``, 0 or 1, and ``failed_null``, that
    of an estimate of 1, or a window around 0.
    """
    setting: dict[str, Any] = {**cell.options, **cell.point}
    zeta = check_fraction("zeta", setting["zeta"])
    epsilon, delta, d = setting["epsilon"], setting["delta"], int(setting["d"])
    rng, failed, blind = cell.rng(), [], []
    count = WINDOW_ROWS
    if cell.mechanism == "top-eigenvalue":
        count = theorem_size(zeta, epsilon, delta, d)
        finder = TopEigenvalue.as_published(epsilon, delta, zeta=zeta)
    elif cell.mechanism == "mean-estimation-published":
        tail = Tail(TAIL, 1.0, zeta)
        mean = MeanEstimation.as_published(epsilon, delta, tail=tail)
    else:
        raise InputError(f"no such mechanism here: {cell.mechanism!r}")
    deviations = np.sqrt([FIRST] + [REST] * (d - 1))
    for _ in range(cell.size):
        rows = deviations * rng.standard_normal((count, d))  # v is the first axis
        vectors = rows[:, :1] * rows
        if cell.mechanism == "top-eigenvalue":
            estimate = float(finder.release(vectors, rng=rng))
            right = [_SCALE / sqrt(2) <= x <= _SCALE * sqrt(2) for x in (estimate, 1.0)]
            failed.append(not right[0])
            blind.append(not right[1])
        else:
            vectors += AWAY * sqrt(_SCALE)
            failed.append(truncated(mean, vectors, _SCALE, rng=rng))
            reach = float(tail.size(_SCALE, vectors.size, 1))
            blind.append(bool((np.abs(vectors) > reach).any()))
    columns = {"failed": failed, "failed_null": blind}
    return repeated(
        cell, rows=count, **{k: np.array(v, float) for k, v in columns.items()}
    )


def truncated(
    mechanism: MeanEstimation,
    vectors: Array,
    eigenvalue: float,
    *,
    rng: np.random.Generator,
) -> bool:
    """Return whether steps 1 and 2 of Algorithm 5 change a vector, or find no bin."""
    tail, d = mechanism.tail, vectors.shape[1]
    assert isinstance(tail, Tail)  # the box of the paper
    width = float(tail.width(eigenvalue))
    labels = np.ascontiguousarray(np.floor(vectors / width).T)
    edges = width * mechanism.split.noise(d).counts.fullest(
        SparseCounts.of(labels), rng=rng
    )
    reach = float(tail.size(eigenvalue, vectors.size, 1))
    return not bool((np.abs(vectors - edges) <= reach).all())  # NaN is bottom
