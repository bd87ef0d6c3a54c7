r"""How fast the error of streaming PCA falls: what is measured, and its exponents.

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

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, inf, nan, sqrt

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import digamma

from dpaudit.algorithms.streaming.dp_pca import DPPCA
from dpaudit.algorithms.streaming.minibatch_oja import MinibatchOja
from dpaudit.datasets import spiked_gaussian
from dpaudit.datasets.streaming_models import (
    StreamConstants,
    gaussian_constants,
    signal_constants,
    signal_in_noise,
)
from dpaudit.errors import InputError
from dpaudit.reports.experiment import Cell, Record
from dpaudit.reports.power_law import PowerLaw, fit_power_law
from dpaudit.reports.tables import Row, records
from dpaudit.subspace import largest_principal_angle_sine

__all__ = [
    "BATCHES",
    "DP_PCA",
    "MINIBATCH_OJA",
    "STEP",
    "Rate",
    "rates",
    "streaming_errors",
]

Array = NDArray[np.float64]

DP_PCA, MINIBATCH_OJA = "dp-pca", "minibatch-oja"
BATCHES, STEP = 8, 1e4
_FIRST = 2**0.25  # the first eigenvalue of Gaussian rows, see the module
_REST = _FIRST / 4  # the others
_FLAT = 0.003  # from here down the error of minibatch-oja is looked at for a floor


def streaming_errors(cell: Cell) -> list[Record]:
    """Return the errors of two releases on every data set, see the module.

    The point and the options give ``epsilon``, ``delta``, ``n`` and ``d``; with
    ``noise`` rows are those of Example 4.1, and Gaussian without.

    Returns
    -------
    list of dict
        ``repetition``, ``error``, ``noise_error`` (NaN where a release was bottom), and
        ``formula``: the noise's typical size by the mechanism's own formula, with the
        true scale of the gradients at v in place of the private estimate.
    """
    setting = {**cell.options, **cell.point}
    n, d = int(setting["n"]), int(setting["d"])
    mechanism = _mechanism(cell.mechanism, n, setting["epsilon"], setting["delta"])
    formula = _noise_by_formula(mechanism, n, d, _constants(d, setting.get("noise")))
    rng, found = cell.rng(), []
    for i in range(cell.size):
        rows, truth = _data(n, d, setting.get("noise"), rng)
        one, two = mechanism.draw(rows, 2, rng=rng)[:, :, np.newaxis]
        failed = not np.isfinite([one, two]).all()
        found.append(
            {
                "repetition": cell.first + i,
                "error": nan if failed else _sine(one, truth),
                "noise_error": nan if failed else _sine(one, two) / sqrt(2),
                "formula": formula,
            }
        )
    return found


@dataclass(frozen=True)
class Rate:
    """One exponent, beside what theory says.

    Parameters
    ----------
    key : str
        ``"sampling"``, ``"noise"``, ``"dimension"``, ``"signal"`` or ``"floor"``.
    mechanism, against : str
        Whose, and in what: ``"n"``, ``"d"`` or ``"noise"``.
    errors : mapping of float to ndarray
        By the point; NaN is bottom.
    fit : PowerLaw
        Of the points up to `limit`.
    target : (float, float)
        The exponents that were hoped for: both the same, or a range.
    formula : float
        The exponent on this grid of the noise by the mechanism's own formula, which has
        the logarithms in it that the rate leaves out; NaN where noise is not measured.
    parts : (float, float)
        The medians of ``error`` and ``noise_error`` at the last point.
    limit : float
    """

    key: str
    mechanism: str
    against: str
    errors: Mapping[float, Array]
    fit: PowerLaw
    target: tuple[float, float]
    formula: float
    parts: tuple[float, float]
    limit: float = inf

    @property
    def met(self) -> bool:
        """Whether the interval holds the target, or lies within it if it is a range."""
        low, high = self.target
        if low == high:
            return self.fit.low <= low <= self.fit.high
        return low <= self.fit.low and self.fit.high <= high

    @property
    def lost(self) -> int:
        """How many data sets had a release that was bottom."""
        return int(sum(np.isnan(values).sum() for values in self.errors.values()))


def rates(tables: Mapping[str, pd.DataFrame]) -> dict[str, Rate]:
    """Return the exponents by their keys, from the tables of the experiments.

    Parameters
    ----------
    tables : mapping of str to pandas.DataFrame
        Of ``streaming-rates``, ``streaming-dimensions`` and ``signal-in-noise``.
    """
    rows, lengths, signal = (
        records(tables[name])
        for name in ("streaming-rates", "streaming-dimensions", "signal-in-noise")
    )
    private, *_, sampled = sorted({row["epsilon"] for row in rows})

    def where(table: list[Row], column: str, value: object) -> list[Row]:
        return [row for row in table if row[column] == value]

    found = (
        _rate("sampling", where(rows, "epsilon", sampled), "n", "error", -0.5),
        _rate("noise", where(rows, "epsilon", private), "n", "noise_error", -1.0),
        _rate("dimension", lengths, "d", "noise_error", 1.0),
        _rate(
            "signal",
            where(signal, "mechanism", DP_PCA),
            "noise",
            "error",
            0.8,
            above=inf,
        ),
        _rate(
            "floor",
            where(signal, "mechanism", MINIBATCH_OJA),
            "noise",
            "error",
            0.0,
            limit=_FLAT,
        ),
    )
    return {rate.key: rate for rate in found}


def _rate(
    key: str,
    rows: list[Row],
    against: str,
    column: str,
    target: float,
    *,
    above: float = 0.0,
    limit: float = inf,
) -> Rate:
    def values(name: str, most: float = inf) -> dict[float, Array]:
        grouped: dict[float, list[float]] = {}
        for row in rows:
            if row[against] <= most:
                grouped.setdefault(float(row[against]), []).append(row[name])
        return {x: np.array(grouped[x]) for x in sorted(grouped)}

    # The formula is that of the noise: it says nothing of an error of sampling.
    formula = nan
    if key != "sampling":
        formula = fit_power_law(values("formula", limit)).exponent
    return Rate(
        key=key,
        mechanism=rows[0]["mechanism"],
        against=against,
        errors=values(column),
        fit=fit_power_law(values(column, limit)),
        target=(target, target + above),
        formula=formula,
        parts=(_last_median(values("error")), _last_median(values("noise_error"))),
        limit=limit,
    )


def _last_median(errors: Mapping[float, Array]) -> float:
    last = errors[max(errors)]
    usable = last[np.isfinite(last)]
    return float(np.median(usable)) if len(usable) else nan


def _mechanism(name: str, n: int, epsilon: float, delta: float) -> DPPCA | MinibatchOja:
    if name == DP_PCA:
        return DPPCA.calibrated(
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


def _constants(d: int, noise: float | None) -> StreamConstants:
    if noise is None:
        return gaussian_constants([_FIRST] + [_REST] * (d - 1))
    return signal_constants(noise, d)


def _data(
    n: int, d: int, noise: float | None, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return rows, shape (n, d), and v, shape (d, 1)."""
    if noise is None:
        spikes = [_FIRST - _REST]
        data = spiked_gaussian(n, d, spikes=spikes, noise=sqrt(_REST), rng=rng)
    else:
        data = signal_in_noise(n, d, noise=noise, rng=rng)
    assert data.subspace is not None  # both models have one
    return data.rows, data.subspace


def _noise_by_formula(
    mechanism: DPPCA | MinibatchOja, n: int, d: int, constants: StreamConstants
) -> float:
    """Return s/lambda_1 times a length, s the deviation of a coordinate of a step.

    Noise turns the component in k = d - 1 directions. The geometric mean of the length
    of a standard normal vector there is exp(E log chi_k), and E log chi_k is (log 2 +
    psi(k/2))/2.
    """
    if isinstance(mechanism, MinibatchOja):
        deviation = mechanism.sigma / (n // BATCHES)
    else:
        size, steps = mechanism.batches(n)
        scale = (constants.gamma * constants.first) ** 2
        zeta = mechanism.scale_finder.zeta / (2 * steps)
        deviation = float(mechanism.mean.deviation(scale, size - size // 2, d, zeta))
    length = sqrt(2) * exp(float(digamma((d - 1) / 2)) / 2)
    return length * deviation / constants.first


def _sine(one: Array, two: Array) -> float:
    return float(largest_principal_angle_sine(one, two))
