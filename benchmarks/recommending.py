"""Whether `recommend` and ``"auto"`` name the mechanism that errs least: on rows.

    python -m benchmarks.recommending [--settings 40] [--most 500] [--seed 0]
    python -m benchmarks.recommending --without-bound --settings 20

A setting is drawn at random: columns up to the most, components, budget, relation, and
rows whose eigenvalues all differ: normal ones of random variances, clipped to length 1,
or those of a data set that ships with scikit-learn. There are so many copies of them
that n epsilon gap is from 10 to 10,000, where a choice matters. `recommend` is told n
and the eigenvalues; ``"auto"`` is told neither. Each mechanism that `recommend` ranks
is then run on the rows, with other randomness. The error is the median sine of the
largest angle.

With ``--without-bound`` settings are other ones, of normal rows of any length, none of
them repeated, and what is measured are fits of `PrivatePCA` with a private norm, and
with directions: what was predicted over the median error of 21 fits, each on rows of
its own.

Printed are, for each setting, the errors of the first choices over the least one, and
what `recommend` predicted over what was measured; in the end how many of them are near.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.private_pca import REAL, real
from dpaudit import PrivatePCA
from dpaudit.algorithms import entry
from dpaudit.algorithms.estimators.auto import recommended
from dpaudit.algorithms.estimators.measured import OF_ROWS
from dpaudit.algorithms.estimators.recommendation import recommend
from dpaudit.arrays import Array
from dpaudit.neighbours import Relation
from dpaudit.rows import clip_rows
from dpaudit.streams import stream
from dpaudit.subspace import largest_principal_angle_sine, top_components

_NUMBERS = 400_000  # of the rows that are made up
_FEWEST, _MOST, _WORK = 41, 1501, 40_000  # releases, and releases times columns
_FITS = 21  # of `PrivatePCA`, behind a median
_FALL = (0.3, 2.0)  # of the eigenvalues, as powers of their numbers


@dataclass(frozen=True)
class Setting:
    """Rows, each of them there `times` times, and what is asked for."""

    name: str
    rows: Array
    times: int
    k: int
    budget: dict[str, Any]

    @property
    def n(self) -> int:
        return self.times * len(self.rows)

    @property
    def spectrum(self) -> list[float]:
        values = np.linalg.eigvalsh(self.rows.T @ self.rows)[::-1] / len(self.rows)
        return [float(x) for x in np.maximum(values, 0.0)]


def setting(number: int, most: int, seed: int) -> Setting:
    """Return the setting of a number; every fourth is a data set of scikit-learn."""
    rng = stream(seed, number)
    name = "made up" if number % 4 else REAL[number // 4 % len(REAL)]
    if number % 4:
        d = round(float(np.exp(rng.uniform(np.log(3), np.log(most)))))
        rows = made_up(d, rng)
    else:
        rows = real(name)
        rows = rows / np.quantile(np.linalg.norm(rows, axis=1), 0.95)
    rows = clip_rows(rows, 1.0)
    d = rows.shape[1]
    k = int(rng.integers(1, min(10, d - 1) + 1))
    delta = 0.0 if rng.random() < 0.3 else float(10.0 ** -rng.uniform(5, 9))
    epsilon = float(np.exp(rng.uniform(np.log(0.1), np.log(10))))
    relation = list(Relation)[int(rng.integers(2))]
    budget = {"epsilon": epsilon, "delta": delta, "relation": relation}
    once = Setting(name, rows, 1, k, budget)
    gap = once.spectrum[k - 1] - once.spectrum[k]
    signal = np.exp(rng.uniform(np.log(10), np.log(10_000)))
    times = max(round(signal / (gap * epsilon * len(rows))), 1)
    return Setting(name, rows, times, k, budget)


def made_up(d: int, rng: Any) -> Array:
    """Return normal rows, mostly no longer than 1, in random axes."""
    variances = np.arange(1, d + 1) ** -rng.uniform(*_FALL)
    variances *= rng.lognormal(sigma=0.3, size=d)
    variances *= rng.uniform(0.2, 0.8) / variances.sum()
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    count = max(_NUMBERS // d, 2 * d)
    return np.asarray(rng.standard_normal((count, d)) * np.sqrt(variances) @ axes.T)


def error(name: str, asked: Setting, rng: Any) -> float:
    """Return the median error of some releases of a mechanism."""
    d, chosen = asked.rows.shape[1], entry(name)
    options = dict(asked.budget)
    if not chosen.approximate:
        del options["delta"]
    if chosen.has_components:
        options["n_components"] = asked.k
    mechanism: Any = chosen.build(**options)
    moment = asked.times * (asked.rows.T @ asked.rows)
    components = top_components(moment, asked.k)
    size = min(max(_WORK // d, _FEWEST), _MOST)
    if name in OF_ROWS:
        bases = mechanism.draw_repeated(asked.rows, asked.times, _FEWEST, rng=rng)
        return float(np.median(largest_principal_angle_sine(bases, components)))
    found = []
    for release in mechanism.draw_from(moment, size, rng=rng):
        basis = mechanism.components(release, asked.k)
        there = np.isfinite(basis).all()
        found.append(largest_principal_angle_sine(basis, components) if there else 1.0)
    return float(np.median(found))


def compared(asked: Setting, rng: Any) -> tuple[str, str, float, float, float]:
    """Return two choices, their errors over the least one, and the prediction's."""
    d, told = asked.rows.shape[1], {"n": asked.n, "spectrum": asked.spectrum}
    found = recommend(d=d, k=asked.k, **asked.budget, **told).choices
    epsilon, delta, relation = asked.budget.values()
    auto = recommended(epsilon, delta, relation, d, asked.k, restarts=True)
    names = list(dict.fromkeys([*(each.mechanism for each in found), auto]))
    errors = {name: error(name, asked, rng) for name in names}
    least, first = min(errors.values()), found[0]
    mine = errors[first.mechanism]
    return first.mechanism, auto, mine / least, errors[auto] / least, first.error / mine


def without_bound(number: int, seed: int) -> list[float]:
    """Print what was predicted and measured without a bound; return the ratios."""
    rng, ratios = stream(seed, number, 2), []
    d = round(float(np.exp(rng.uniform(np.log(3), np.log(120)))))
    k = int(rng.integers(1, min(6, d - 1) + 1))
    variances = np.arange(1, d + 1) ** -rng.uniform(*_FALL)
    variances = np.sort(variances * rng.lognormal(sigma=0.3, size=d))[::-1]
    n = int(np.exp(rng.uniform(np.log(2000), np.log(600_000 / d))))
    budget: dict[str, Any] = {
        "epsilon": float(np.exp(rng.uniform(np.log(0.3), np.log(8)))),
        "delta": 0.0 if rng.random() < 0.3 else 1e-6,
        "relation": list(Relation)[int(rng.integers(2))],
    }
    asked = {"d": d, "k": k, "n": n, "row_norm": None, **budget}
    for each in recommend(**asked, spectrum=[*variances]).without_bound:
        (name, norm), found = each.mechanism.split("@"), []
        given: Any = {"mechanism": name, "row_norm": norm, **budget}
        for _ in range(_FITS):
            rows = rng.standard_normal((n, d)) * np.sqrt(variances)
            basis = PrivatePCA(k, **given, random_state=rng).fit(rows).components_.T
            own = top_components(rows.T @ rows, k)
            found.append(largest_principal_angle_sine(basis, own))
        ratios.append(each.error / float(np.median(found)))
        print(
            f"{number:2d} d = {d}, k = {k}, n = {n}, {budget}: {each.mechanism} "
            f"{each.error:.3g}, predicted {ratios[-1]:.2f}",
            flush=True,
        )
    return ratios


def near(ratios: Sequence[float], factor: float) -> str:
    """Return how many ratios are within a factor, either way."""
    inside = sum(1 / factor <= each <= factor for each in ratios)
    return f"{inside} of {len(ratios)} within a factor of {factor:g}"


def main() -> None:
    """Read the command line, and print a line for each setting."""
    parser = ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--settings", type=int, default=40)
    parser.add_argument("--most", type=int, default=500, help="columns")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--without-bound", action="store_true")
    given = parser.parse_args()
    if given.without_bound:
        ratios = [
            ratio
            for number in range(given.settings)
            for ratio in without_bound(number, given.seed)
        ]
        print("the prediction:", near(ratios, 1.3) + ",", near(ratios, 1.5))
        return
    firsts, autos, predicted = [], [], []
    for number in range(given.settings):
        asked = setting(number, given.most, given.seed)
        rng = stream(given.seed, number, 1)
        first, auto, mine, its, told = compared(asked, rng)
        firsts.append(mine)
        autos.append(its)
        predicted.append(told)
        epsilon, delta, relation = asked.budget.values()
        print(
            f"{number:2d} {asked.name}, d = {asked.rows.shape[1]}, k = {asked.k}, "
            f"n = {asked.n}, epsilon = {epsilon:.2g}, delta = {delta:.0e}, {relation}: "
            f"{first} {mine:.2f}, predicted {told:.2f}; auto: {auto} {its:.2f}",
            flush=True,
        )
    print("the first choice:", near(firsts, 1.1) + ",", near(firsts, 1.3))
    print("the prediction:", near(predicted, 1.5))
    print("auto:", near(autos, 1.1) + ",", near(autos, 1.3))


if __name__ == "__main__":
    sys.exit(main())
