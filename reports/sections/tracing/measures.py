r"""Usefulness and tracing on hard instances, and the list culling: what is measured.

Corollaries 25 (k = 1) and 32 (k > 1) of Dwork, Talwar, Thakurta, Zhang (*Analyze
Gauss*, STOC 2014): for m = gamma sqrt(n/log n) no (1, 1/n^2)-private mechanism is
gamma k m-useful on the rows of k clusters, each a fingerprinting code of length n in a
rotation of its own (more often than with probability 1/n), because whoever is useful
there is traced. `traced` shows both: at m rows per cluster (the n of the axis
n/sqrt(d), d the length of a row), how often a release

- is useful: captures at most gamma k m less than the best subspace;
- is traced: at least one of the rows in the data is accused;
- leads to an accusation of an innocent: one of ``innocents`` codewords of each cluster
  that are in no data.

A codeword is accused if its p-value (`dpaudit.fingerprinting.conditional_p_values`) is
at most ``level`` over the number of all codewords, in the data or not: so that any
innocent at all is accused with probability at most ``level``, whatever the mechanism
does, and rows by the thousand are not "traced" by luck.

`spectra` measures what makes the instances of k > 1 hard, without any mechanism:

- Lemma 28: sigma_2^2 of a cluster is at most a constant (for m of the order of n or
  less), where sigma_1^2 is in proportion to m. Rows are codewords over sqrt d, so what
  is left of them without the mean of each column has independent entries of variance
  1/d at most, and a norm of about (sqrt m + sqrt n)/sqrt d.
- Lemma 30: for *every* projector P of rank k the sum over the clusters of
  ||P V_i||_F^2, V_i an orthonormal basis of their rows, is at most K k (1 + k m/d). The
  largest such sum is that of the k largest eigenvalues of sum_i V_i V_i^T (Ky Fan).

`culled` puts Theorem 26 into numbers, on the lists that most agreement loses against
and on lists of exp(c n) words.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpaudit.algorithms import entry
from dpaudit.arrays import Array
from dpaudit.attacks.pirates import ask, released_basis
from dpaudit.attacks.tracing_attack import TracingAttack
from dpaudit.errors import InputError
from dpaudit.fingerprinting import (
    CullingGame,
    HardInstance,
    conditional_p_values,
    tracing_scores,
    usefulness_gap,
)
from dpaudit.reports.experiment import Cell, Record
from dpaudit.reports.measures import BASELINE
from dpaudit.streams import stream
from dpaudit.validation import check_count, check_fraction, check_positive

_RANK = 1e-9  # of the largest singular value: what counts as none
_SHARES = ("captured", "useful", "traced", "innocent")
STRATEGIES = ("most-agreement", "random-half")
# Rejection is exact, and never done where more components are wanted.
_MOST_COMPONENTS = {"exponential-pca-acg": 3}


def dimension_of(options: Any) -> int:
    """Return d, the length of a row: symbols and padding."""
    return int(options["length"]) * (1 + int(options["pad_ratio"]))


def traced(cell: Cell) -> list[Record]:
    """Release from one hard instance after the other, and trace.

    The point gives ``rows``, m, ``components``, k, and ``epsilon``, unless the
    mechanism is `BASELINE`, principal components without noise. The options are
    ``length``, the symbols n of a codeword, ``pad_ratio`` and ``cutoff``, of
    `dpaudit.fingerprinting.HardInstance`, ``gamma``, ``innocents`` and ``level``; delta
    is 1/n^2. All mechanisms see the same instances.

    Columns: ``repetition``; ``captured``, the variance as a share of the best;
    ``useful``, ``traced`` and ``innocent`` (is one accused?), each 0 or 1; ``refused``:
    what a mechanism says that does not take such rows, or such an epsilon or k (the
    numbers are NaN then), or nothing.

    Raises `InputError` if an option is not allowed.
    """
    options = cell.options
    check_count("innocents", options["innocents"])
    check_positive("gamma", options["gamma"])
    check_fraction("level", options["level"])
    rng, found = cell.rng(), []
    for trial, instance, secrets in _instances(cell):
        rows, k = instance.rows, instance.n_clusters
        d = rows.shape[1]
        try:
            mechanism = _mechanism(cell, k)
            release = ask(mechanism, rows, rng)
        except InputError as error:
            unknown = dict.fromkeys(_SHARES, math.nan)
            found.append({"repetition": trial, **unknown, "refused": str(error)})
            continue
        best = usefulness_gap(rows, np.full((d, k), np.nan))
        # No subspace, as bottom says, captures nothing.
        basis = np.nan_to_num(released_basis(mechanism, release, d, k))
        captured = float(np.sum((rows @ basis) ** 2))
        accused, wrongly = _accusations(options, instance, mechanism, release, secrets)
        found.append(
            {
                "repetition": trial,
                "captured": captured / best,
                "useful": float(best - captured <= options["gamma"] * len(rows)),
                "traced": float(accused),
                "innocent": float(wrongly),
                "refused": "",
            }
        )
    return found


def spectra(cell: Cell) -> list[Record]:
    """Return what Lemmas 28 and 30 speak of, for one hard instance after the other.

    The point and the options are those of `traced`; epsilon and innocents play no part.

    Columns: ``repetition``; ``first``, the least sigma_1^2 of a cluster, over m;
    ``second``, the largest sigma_2^2 of one; ``overlap``, the largest sum of Lemma 30,
    over k (1 + k m/d).
    """
    found = []
    for trial, instance, _ in _instances(cell):
        (n_rows, d), k = instance.rows.shape, instance.n_clusters
        m = n_rows // k
        bases, first, second = [], math.inf, 0.0
        for rows in np.split(instance.rows, k):
            _, singular, right = np.linalg.svd(rows, full_matrices=False)
            bases.append(right[singular > _RANK * singular[0]])
            first = min(first, float(singular[0] ** 2) / m)
            second = max(second, float((singular[1:2] ** 2).sum()))
        both = np.linalg.svd(np.concatenate(bases), compute_uv=False)
        overlap = float(np.sum(both[:k] ** 2)) / (k * (1 + k * m / d))
        found.append(
            {"repetition": trial, "first": first, "second": second, "overlap": overlap}
        )
    return found


def culled(cell: Cell) -> list[Record]:
    """Play the list-culling game with one of `STRATEGIES`.

    The point gives ``length``, n; the options ``closeness``, beta, in (0, 1/20);
    ``erased``, f/n, at most beta, so that the sphere keeps the promise; ``rate``, c;
    and ``games``.

    One record: ``erased``; ``sphere_rate``, the logarithm of the number of words of the
    sphere, over n; ``won`` of ``games`` against it; ``exact``, the probability of that;
    ``loss_bound``, on the probability that random half loses against any list of exp(c
    n) words that keeps the promise (NaN for most agreement).
    """
    n, options = int(cell.point["length"]), cell.options
    erased = max(int(options["erased"] * n), 1)
    game = CullingGame(n, erased, options["closeness"])
    strategy: Any = cell.mechanism
    won = game.play_sphere(strategy, games=options["games"], rng=cell.rng())
    bound = math.nan
    if strategy == "random-half":
        bound = game.loss_bound(options["rate"] * n)
    return [
        {
            "erased": erased,
            "sphere_rate": game.sphere_log_size / n,
            "won": won.hits,
            "games": won.trials,
            "exact": game.sphere_win_probability(strategy),
            "loss_bound": bound,
        }
    ]


def _instances(cell: Cell) -> Iterator[tuple[int, HardInstance, np.random.Generator]]:
    """Yield the number, the hard instance and the other secrets of each repetition."""
    options = cell.options
    for name in ("length", "pad_ratio"):
        check_count(name, options[name])
    m, k = (check_count(name, int(cell.point[name])) for name in ("rows", "components"))
    for trial in range(cell.first, cell.first + cell.size):
        secrets = stream(cell.seed, k, m, trial)
        instance = HardInstance.generate(
            m,
            options["length"],
            n_clusters=k,
            cutoff=options["cutoff"],
            pad_ratio=options["pad_ratio"],
            rng=secrets,
        )
        yield trial, instance, secrets


def _mechanism(cell: Cell, n_components: int) -> Any:
    if cell.mechanism != BASELINE:
        chosen = entry(cell.mechanism)
        if n_components > _MOST_COMPONENTS.get(chosen.name, n_components):
            raise InputError(
                f"{chosen.name} is not asked for k = {n_components}: its proposals are "
                "hardly ever accepted"
            )
        some: dict[str, Any] = {}
        if chosen.has_components:
            some["n_components"] = n_components
        delta = 1 / max(int(cell.options["length"]), 2) ** 2
        return chosen.build(epsilon=cell.point["epsilon"], delta=delta, **some)

    def principal_components(data: Array, rng: np.random.Generator) -> Array:
        if len(data) <= data.shape[1]:
            values, left = np.linalg.eigh(data @ data.T)
            top = data.T @ left[:, ::-1][:, :n_components]
            return np.asarray(top / np.sqrt(values[::-1][:n_components]))
        vectors = np.linalg.eigh(data.T @ data).eigenvectors
        return np.asarray(vectors[:, ::-1][:, :n_components])

    return principal_components


def _accusations(
    options: Any,
    instance: HardInstance,
    mechanism: Any,
    release: Any,
    rng: np.random.Generator,
) -> tuple[bool, bool]:
    """Return whether a row that is in the data is accused, and whether another is."""
    attack = TracingAttack(instance)
    innocents = int(options["innocents"])
    members = sum(code.n_users for code in instance.codes)
    level = options["level"] / (members + instance.n_clusters * innocents)
    accused_members = accused_others = False
    # The pirated word says all that a release says of a cluster.
    words = attack.words(mechanism, release)
    for code, word in zip(instance.codes, words, strict=True):
        others = code.strangers(innocents, rng=rng)
        scores = np.concatenate(
            [code.scores(word), tracing_scores(others, code.biases, word)]
        )
        accused = conditional_p_values(scores, code.biases, word) <= level
        accused_members |= bool(accused[: code.n_users].any())
        accused_others |= bool(accused[code.n_users :].any())
    return accused_members, accused_others
