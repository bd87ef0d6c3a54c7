r"""Errors of noisy second moments and of Oja's algorithm, beside proven bounds.

**Data by their second moment.** The theorems speak of A = sum_i x_i x_i^T for rows in
the unit ball, and the mechanisms see nothing else of the data. So A is put to them
itself, diagonal: row e_i, lambda_i times over (and once shorter, if lambda_i is no
whole number), has it. Three spectra:

- `GAP`: k eigenvalues at ``gap``, the others 0. The gap is many times the norm of the
  noise, as Theorems 5, 7 and 13 want it. With ``kept``, k' >= k, that many eigenvectors
  of the release are kept, and not k: lambda_k - lambda_(k'+1) is the gap as well.
- `STEPS`: k eigenvalues at k, k - 1, ..., 1 times ``gap``, the others 0: gaps between
  all of the first k + 1, as Mangoubi and Vishnoi want them.
- `FLAT`: k eigenvalues at `SPIKE` s sqrt d above the others, where s is the deviation
  of the noise, whose norm that is, about. Below s sqrt d all is lost that can be (Baik,
  Ben Arous, Peche, Ann. Probab. 2005), and a random subspace is as good; at x s sqrt d
  a share of 1/x^2 is. With ``n``, the trace of A is n, spread evenly over what is left.

**Bounds.** e is the norm of the noise E of the same draw, C = A + E, P and Q are the
projectors onto the top k eigenvectors of A and of C. With no O and for every draw:

- Theorem 4. tr(C Q) >= tr(C P), so tr(A P) - tr(A Q) <= tr(E (Q - P)) <= 2 k e.
- Theorem 7. ||P - Q|| <= e/(gap - e): sin-Theta (Theorem 6) and Weyl's inequality.
- Theorem 5 for k' >= k, Q of rank k': tr(A P) - tr(A Q) <= 2 k e^2/(gap - e), where
  the print has k' for k. Its proof bounds ||Q (1 - P)|| by e/(gap - e), but for k' > k
  the ranks differ and that norm is 1. Instead: let Q1 <= Q have rank k and hold Q P
  (its span has at most k dimensions), and R = Q - Q1. R is orthogonal to P, since
  <r, v> = <Q r, v> = <r, Q v> = 0 for r in R, v in P. So P + R is a projector of rank
  k', and tr(C Q) >= tr(C (P + R)), which is tr(C Q1) >= tr(C P). As A >= 0,
  tr(A P) - tr(A Q) <= tr(A P) - tr(A Q1) <= tr(E (Q1 - P)) <= e ||Q1 - P||_* <=
  2 k e ||Q1 - P||: that difference has rank 2 k at most. P and Q1 have rank k both, so
  ||Q1 - P|| = ||P (1 - Q1)|| = ||P (1 - Q)||, since P R = 0, and by sin-Theta (Theorem
  6, with i = k and j = k') and Weyl's inequality that is at most e/(gap - e).
- Theorem 9, spectral: ||A - C_k|| <= lambda_(k+1) + 2 e. A is positive semi-definite,
  so this holds for the top k eigenvalues, whether or not they are largest in modulus.
- Theorem 9, Frobenius, for 2 e < gap, when the top k eigenvalues of C are the largest
  in modulus too. With X = ||A - A Q||_F, Y = ||A - A P||_F and D = Q - P, the print has
  X^2 <= Y^2 + tr((A E + E A) D) + tr(E^2 D). It bounds the first trace by
  4 k e ||A D||, but it is at most 2 e ||A D||_* <= 2 e sqrt(2 k) ||A D||_F <=
  2 e sqrt(2 k) (X + Y), since D has rank 2 k and A D = A (1 - P) - A (1 - Q). The other
  is at most tr(E^2 Q) <= k e^2. Let u = X - Y > 0. Divided by X + Y >= u this is
  u <= 2 sqrt(2 k) e + k e^2/u, so u <= (sqrt 2 + sqrt 3) sqrt k e. As
  ||C_k - A Q||_F = ||E Q||_F <= sqrt k e, the error is at most
  (1 + sqrt 2 + sqrt 3) sqrt k e: sqrt k, where the print has k, 4 k e + sqrt k e with
  the constants of its proof (for k = 1 that is no more).
- Theorem 13. 2 ||E|| for the noise of the projector, whose norm is 2 s sqrt d, give or
  take: the typical size of the bound, and none for every draw.
- Section 3.2. ||P - Q||_F <= sqrt(2 k) ||P - Q||: that matrix has rank 2 k at most.
- Rank k. ||C_k - A_k||_F <= sqrt(2 k) (lambda_(k+1)(C) + e + lambda_(k+1)(A)), by rank
  and the triangle inequality, and Weyl's makes that 2 sqrt(2 k) (lambda_(k+1)(A) + e).
- Section 2.5. The exponential mechanism for k = 1 has no E. Its density is that of
  exp(-epsilon gap |x|^2/(1 - |x|^2)) or so in the d - 1 directions x across the first
  eigenvector, so that it loses (d - 1)/(2 epsilon), whatever the gap, if that is large.

Sources: Dwork, Talwar, Thakurta, Zhang, *Analyze Gauss*, STOC 2014. Theorem 2 of
Imtiaz, Sarwate, ICASSP 2016 is Theorem 7 with a Wishart matrix for E. Mangoubi,
Vishnoi, *Re-analyze Gauss*, NeurIPS 2022, *Private covariance approximation*, COLT 2023
(arXiv 2306.16648), and *Private low-rank approximation for covariance matrices*, 2025
(arXiv 2502.07657), of which the abstracts were read. They speak of gaps, and the second
says that ||C_k - A_k||_F is about sqrt(k d), for complex noise. What is held to here is
sqrt(k d) s lambda_k/gap, and for ||P - Q||_F the same without the lambda_k.

**Oja** (`oja_error`): Gaussian rows with eigenvalues 1, 1/4, ..., 1/4, one pass, and
the steps of Theorem 2.2 of Liu, Kong, Jain, Oh, NeurIPS 2022, with alpha = `ALPHA` and
`DELAY` d in place of xi, which has the constants of a proof: at them no stream that can
be run has begun to converge. The term that forgets the start is of order
d (DELAY d/n)^(2 ALPHA) then.
"""

from functools import partial
from math import nan, sqrt
from typing import Any

import numpy as np

from dpaudit.algorithms import entry
from dpaudit.algorithms.covariance.entrywise import GaussianPerturbation
from dpaudit.algorithms.covariance.second_moment import SecondMomentMechanism
from dpaudit.algorithms.covariance.symmetric_noise import SymmetricNoise
from dpaudit.algorithms.shared.bases import Rng, slices
from dpaudit.algorithms.shared.step_sizes import HarmonicSteps
from dpaudit.algorithms.streaming.oja import Oja
from dpaudit.algorithms.subspace.exact_exponential import ExponentialMechanism
from dpaudit.algorithms.subspace.published_private_subspace import NoisyProjector
from dpaudit.arrays import Array
from dpaudit.datasets import spiked_gaussian
from dpaudit.errors import InputError
from dpaudit.reports.experiment import Cell, Record, repeated
from dpaudit.reports.sections.streaming.measures import normal_length, random_sines
from dpaudit.subspace import largest_principal_angle_sine
from dpaudit.validation import check_positive

FLAT, GAP, STEPS = "flat", "gap", "steps"
SPIKE = 2.0
ALPHA, DELAY = 2.0, 2.0

Measured = SecondMomentMechanism | NoisyProjector | ExponentialMechanism

_LARGE = 8  # times the norm of the noise: what "many times" is for a gap
_LONGEST = 2**12  # d, of which there are d x d matrices
_WORK = 2**21  # entries of the matrices that are drawn at once


def second_moment_errors(cell: Cell) -> list[Record]:
    """Return every error of a mechanism, and its bound, in every draw.

    The point and the options give ``spectrum`` (`GAP`, `STEPS` or `FLAT`), ``d``,
    ``k``, ``epsilon`` and ``delta``, and ``gap`` and (optionally) ``kept``, or
    (optionally) ``n``: see `check_point`.

    Columns: ``repetition``; ``variance_lost``, tr(A P) - tr(A Q);
    ``projector_distance``, ||P - Q||, and ``projector_frobenius``, in that norm;
    ``low_rank_spectral`` and ``low_rank_frobenius``, ||A - C_k|| less what the best
    matrix of rank k leaves; of `STEPS` alone ``projector_frobenius`` and
    ``rank_k_frobenius``, ||C_k - A_k||; the bound of each,
    ``..._bound``, and of those of which the print has another, ``..._printed``. NaN
    where there is none, or the release is a subspace and no matrix. With ``kept``, the
    variance lost alone. ``..._null`` is the error of what looks at no row: a random
    subspace, or the matrix 0.
    """
    setting = {**cell.options, **cell.point}
    mechanism, spectrum = check_point(cell.mechanism, setting)
    k, rng, null = int(setting["k"]), cell.rng(), cell.rng(1)
    measure: Any = partial(_errors, mechanism)
    if "kept" in setting:
        measure = partial(_kept_errors, int(setting["kept"]))
    if setting["spectrum"] == STEPS:
        measure = _frobenius_errors
    matrix, parts = np.diag(spectrum), []
    for part in slices(cell.size, _WORK // len(spectrum) ** 2):
        releases = mechanism.draw_from(matrix, part.stop - part.start, rng=rng)
        parts.append(measure(spectrum, k, releases, null))
    columns = {each: np.concatenate([p[each] for p in parts]) for each in parts[0]}
    return repeated(cell, **columns)


def check_point(name: str, setting: dict[str, Any]) -> tuple[Measured, Array]:
    """Return a mechanism and the eigenvalues of A, descending; or say what is wrong.

    Raises `InputError` if a number is none, k is not below d, kept not from k to d - 1
    or the release no matrix, epsilon is not in (0, 1], which is what the classical
    constant is proven for, the gap is less than 8 times the norm of the noise, or n
    rows do not reach for the spectrum.
    """
    d = _whole("d", setting["d"], _LONGEST)
    k = _whole("k", setting["k"], d - 1)
    epsilon = check_positive("epsilon", setting["epsilon"])
    if epsilon > 1:
        raise InputError(f"epsilon must be in (0, 1], got {epsilon:g}")
    chosen = entry(name)
    components: dict[str, Any] = {"n_components": k} if chosen.has_components else {}
    mechanism: Any = chosen.build(epsilon=epsilon, delta=setting["delta"], **components)
    values = np.zeros(d)
    if "kept" in setting:
        _whole("kept", setting["kept"], d - 1, least=k)
        if setting["spectrum"] != GAP or not hasattr(mechanism, "sigma"):
            raise InputError(f"kept is for {GAP!r} and noisy matrices, got {name}")
    if setting["spectrum"] in (GAP, STEPS):
        gap = check_positive("gap", setting["gap"])
        least = _LARGE * _typical_norm(mechanism, d, gap, name)
        if not gap >= least:
            raise InputError(
                f"gap must be at least {least:,.0f}, which is {_LARGE} times the norm "
                f"of the noise of {name} at d = {d}, epsilon = {epsilon:g}, got {gap:g}"
            )
        values[:k] = gap
        if setting["spectrum"] == STEPS:
            values[:k] *= np.arange(k, 0, -1)
        return mechanism, values
    if setting["spectrum"] != FLAT or not isinstance(mechanism, GaussianPerturbation):
        raise InputError(
            f"spectrum must be {GAP!r}, {STEPS!r}, or {FLAT!r} for noise on A, got "
            f"{setting['spectrum']!r} for {name}"
        )
    values[:k] = SPIKE * mechanism.sigma * sqrt(d)
    if "n" in setting:
        spare = check_positive("n", setting["n"]) - float(values.sum())
        if spare < 0:
            raise InputError(
                f"n must be at least {values.sum():,.0f}, the trace of A without what "
                f"is spread evenly, got {setting['n']}"
            )
        values += spare / d
    return mechanism, values


def _whole(name: str, value: object, most: int, *, least: int = 1) -> int:
    number = check_positive(name, value, smallest=least, largest=most)
    if not number.is_integer():
        raise InputError(f"{name} must be a whole number, got {value!r}")
    return int(number)


def _typical_norm(mechanism: object, d: int, gap: float, name: str) -> float:
    """Return about the norm of the noise of a release, in the unit of A."""
    if isinstance(mechanism, GaussianPerturbation):
        return 2 * mechanism.sigma * sqrt(d)
    if isinstance(mechanism, NoisyProjector):
        return gap * 2 * sqrt(d) * float(mechanism.projector_scale(gap))
    if isinstance(mechanism, SymmetricNoise):
        return 4 * d * mechanism.scale  # (sqrt d + sqrt(d + 1))^2, about
    if isinstance(mechanism, ExponentialMechanism):
        return d / (2 * mechanism.epsilon)  # what it loses
    raise InputError(f"no theorem here says how large the noise of {name} is")


def _errors(
    mechanism: Measured, values: Array, k: int, releases: Array, null: Rng
) -> dict[str, Array]:
    d, size = len(values), len(releases)
    rest, gap = values[k:], values[k - 1] - values[k]
    nothing = np.full(size, nan)
    if not isinstance(mechanism, SecondMomentMechanism):
        bases, spectral, frobenius = releases, nothing, nothing
        turned = norm = nothing
        if isinstance(mechanism, NoisyProjector):
            turned = np.full(size, 4 * sqrt(d) * float(mechanism.projector_scale(gap)))
    else:
        found, vectors = np.linalg.eigh(releases)
        bases = vectors[:, :, -k:]
        left = np.diag(values) - (bases * found[:, None, -k:]) @ bases.swapaxes(-2, -1)
        spectral = np.abs(np.linalg.eigvalsh(left)).max(axis=-1) - rest[0]
        frobenius = np.linalg.norm(left, axis=(-2, -1)) - np.linalg.norm(rest)
        norm, turned = _noise(releases, values, gap)
    # A is diagonal: P is the span of the first k coordinates, with one eigenvalue, and
    # ||P - Q|| is the norm of what a basis of Q has outside of it.
    outside, blind = bases[:, k:], random_bases(size, d, k, null)[:, k:]
    lost, lost_blind = (
        np.sum((values[0] - rest)[:, None] * each**2, axis=(-2, -1))
        for each in (outside, blind)
    )
    return {
        "variance_lost": lost,
        "variance_lost_null": lost_blind,
        "variance_lost_bound": 2 * k * norm,
        "variance_lost_gap_bound": 2 * k * norm * turned,
        "projector_distance": np.linalg.norm(outside, 2, axis=(-2, -1)),
        "projector_distance_null": np.linalg.norm(blind, 2, axis=(-2, -1)),
        "projector_distance_bound": turned,
        **_projector_frobenius(outside, blind, turned, k),
        "low_rank_spectral": spectral,
        "low_rank_spectral_null": np.full(size, gap),
        "low_rank_spectral_bound": 2 * norm,
        "low_rank_frobenius": frobenius,
        "low_rank_frobenius_null": np.full(
            size, np.linalg.norm(values) - np.linalg.norm(rest)
        ),
        "low_rank_frobenius_bound": (1 + sqrt(2) + sqrt(3)) * sqrt(k) * norm,
        "low_rank_frobenius_printed": (4 * k + sqrt(k)) * norm,
    }


def _projector_frobenius(
    outside: Array, blind: Array, turned: Array, k: int
) -> dict[str, Array]:
    """Return ||P - Q||_F, by what a basis of Q has outside of P, and its bound."""
    apart, apart_blind = (
        sqrt(2) * np.linalg.norm(each, axis=(-2, -1)) for each in (outside, blind)
    )
    return {
        "projector_frobenius": apart,
        "projector_frobenius_null": apart_blind,
        "projector_frobenius_bound": sqrt(2 * k) * turned,
    }


def _frobenius_errors(
    values: Array, k: int, releases: Array, null: Rng
) -> dict[str, Array]:
    """Return what is apart in Frobenius norm where all of the first k gaps are wide."""
    norm, turned = _noise(releases, values, values[k - 1] - values[k])
    found, vectors = np.linalg.eigh(releases)
    bases, best = vectors[:, :, -k:], values * (np.arange(len(values)) < k)
    left = (bases * found[:, None, -k:]) @ bases.swapaxes(-2, -1) - np.diag(best)
    blind = random_bases(len(releases), len(values), k, null)[:, k:]
    return {
        **_projector_frobenius(bases[:, k:], blind, turned, k),
        "rank_k_frobenius": np.linalg.norm(left, axis=(-2, -1)),
        "rank_k_frobenius_null": np.full(len(bases), np.linalg.norm(best)),
        "rank_k_frobenius_bound": 2 * sqrt(2 * k) * (norm + values[k]),
    }


def _kept_errors(
    kept: int, values: Array, k: int, releases: Array, null: Rng
) -> dict[str, Array]:
    """Return the variance lost where more components are kept than are wanted."""
    norm, turned = _noise(releases, values, values[k - 1] - values[kept])
    # All but the first k eigenvalues are 0, so what is lost of tr A is all in 1 - Q.
    dropped = np.linalg.eigh(releases).eigenvectors[:, :k, :-kept]
    blind = random_bases(len(releases), len(values), kept, null)[:, :k]
    return {
        "variance_lost": values[0] * np.sum(dropped**2, axis=(-2, -1)),
        "variance_lost_null": values[0] * (k - np.sum(blind**2, axis=(-2, -1))),
        "variance_lost_gap_bound": 2 * k * norm * turned,
        "variance_lost_gap_printed": 2 * kept * norm * turned,
    }


def _noise(releases: Array, values: Array, gap: float) -> tuple[Array, Array]:
    """Return e, and e/(gap - e) where that bounds a sine."""
    noise = np.linalg.eigvalsh(releases - np.diag(values))
    norm = np.abs(noise).max(axis=-1)
    return norm, np.where(norm < gap, norm / np.maximum(gap - norm, 1e-300), nan)


def random_bases(count: int, d: int, k: int, rng: Rng) -> Array:
    """Return uniformly distributed bases of k columns, shape (count, d, k)."""
    return np.asarray(np.linalg.qr(rng.standard_normal((count, d, k)))[0])


def oja_error(cell: Cell) -> list[Record]:
    """Return the sine of the angle between Oja's vector and v, see the module.

    The point and the options give ``n`` and ``d``. Every repetition has its own rows.

    Columns: ``repetition``, ``error``, ``error_null``, that of a random vector, and
    ``formula``: sqrt(d/n), with the typical length of a normal vector in the d - 1
    directions across v in place of sqrt d.
    """
    setting = {**cell.options, **cell.point}
    n, d, rng = int(setting["n"]), int(setting["d"]), cell.rng()
    mechanism = Oja(HarmonicSteps(ALPHA / 0.75, DELAY * d))
    formula = normal_length(d - 1) / sqrt(n)
    errors = []
    for _ in range(cell.size):
        data = spiked_gaussian(n, d, spikes=[0.75], noise=0.5, rng=rng)
        vector = mechanism.release(data.rows, rng=rng)[:, np.newaxis]
        truth = np.asarray(data.subspace)
        errors.append(float(largest_principal_angle_sine(vector, truth)))
    blind = random_sines(cell.size, d, cell.rng(1))
    return repeated(cell, error=errors, error_null=blind, formula=formula)
