r"""Usefulness and tracing on hard instances, against n/sqrt(d); and the list culling.

Corollaries 25 and 32 of Dwork, Talwar, Thakurta, Zhang (*Analyze Gauss*, STOC 2014):
for m = gamma sqrt(n/log n) no (1, 1/n^2)-private mechanism is gamma k m-useful on the
rows of a fingerprinting code of length n (more often than with probability 1/n),
because whoever is useful there is traced. `tracing_curves` shows both for mechanisms
side by side: rows per cluster m on one axis (the n of the experiment's name, over
sqrt(d), d the length of a row), and on the other how often the release

- is useful: captures at most gamma k m less than the best subspace;
- is traced: at least one of the rows in the data is accused;
- leads to an accusation of an innocent: one of `innocents` codewords that are in no
  data.

A codeword is accused if its p-value (`dpaudit.fingerprinting.conditional_p_values`) is
at most `level` over the number of all codewords, in the data or not: so that any
innocent at all is accused with probability at most `level`, whatever the mechanism
does, and rows by the thousand are not "traced" by luck.

`culling_points` puts Theorem 26 into numbers, on the lists that most agreement loses
against and on lists of exp(c n) words.

What comes back is plain data; nothing here draws.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.algorithms.catalogue import entry
from dpaudit.attacks.pirates import ask, released_basis
from dpaudit.attacks.tracing_attack import TracingAttack
from dpaudit.errors import InputError
from dpaudit.fingerprinting import (
    CullingGame,
    HardInstance,
    Proportion,
    conditional_p_values,
    tracing_scores,
    usefulness_gap,
)
from dpaudit.streams import stream
from dpaudit.validation import check_count, check_fraction, check_positive

__all__ = [
    "BASELINE",
    "QUICK",
    "STANDARD",
    "CullingPoint",
    "Curve",
    "RefusedPoint",
    "TracingCurves",
    "TracingPoint",
    "TracingProfile",
    "culling_points",
    "tracing_curves",
]

Array = NDArray[np.float64]

BASELINE = "no noise"
"""The name of principal components without privacy."""


@dataclass(frozen=True)
class Curve:
    """A mechanism of the catalogue at an epsilon; or the baseline.

    Parameters
    ----------
    mechanism : str
        A name in the catalogue, or `BASELINE`.
    epsilon : float, optional
        Not for the baseline.
    """

    mechanism: str
    epsilon: float | None = None

    def build(self, n_components: int, delta: float) -> Any:
        """Return the mechanism, or the function for the baseline."""
        if self.mechanism == BASELINE:
            return _principal_components(n_components)
        found = entry(self.mechanism)
        options: dict[str, Any] = {"epsilon": self.epsilon, "delta": delta}
        if found.has_components:
            options["n_components"] = n_components
        return found.build(**options)


@dataclass(frozen=True)
class TracingProfile:
    """What is run.

    Parameters
    ----------
    curves : tuple of Curve
    length : int
        n, the symbols of a codeword; delta is 1/n^2.
    pad_ratio : int
        Ones per symbol: 15 in the paper, which makes rows long and codes short. The
        first component needs far fewer.
    rows : tuple of int
        m, the rows of a cluster.
    n_clusters : int
        k, the dimension of the subspace.
    trials : int
        Instances, with one release each, per point.
    cutoff : float
        t of the code.
    gamma : float
        Useful means gamma k m-useful.
    innocents : int
        Codewords that are in no data, per cluster and instance.
    level : float
        In (0, 1): the most that the probability may be of accusing any innocent.
    seed : int
    """

    curves: tuple[Curve, ...]
    length: int
    pad_ratio: int
    rows: tuple[int, ...]
    n_clusters: int = 1
    trials: int = 20
    cutoff: float = 0.02
    gamma: float = 0.1
    innocents: int = 100
    level: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.curves or not self.rows:
            raise InputError("curves and rows must not be empty")
        for name in ("length", "pad_ratio", "n_clusters", "trials", "innocents"):
            check_count(name, getattr(self, name))
        for each in self.rows:
            check_count("rows", each)
        check_positive("gamma", self.gamma)
        check_fraction("cutoff", self.cutoff)
        check_fraction("level", self.level)

    @property
    def dimension(self) -> int:
        """d, the length of a row."""
        return self.length * (1 + self.pad_ratio)

    @property
    def delta(self) -> float:
        """The paper's 1/n^2, below 1 for every n."""
        return 1 / max(self.length, 2) ** 2


@dataclass(frozen=True)
class TracingPoint:
    """One mechanism at one number of rows.

    Parameters
    ----------
    mechanism : str
    epsilon : float or None
    delta : float
    rows, dimension, n_components : int
        m, d and k.
    ratio : float
        m/sqrt(d).
    captured : float
        The captured variance as a share of the best, averaged over the trials.
    useful, traced, innocent_accused : Proportion
        Of the trials.
    """

    mechanism: str
    epsilon: float | None
    delta: float
    rows: int
    dimension: int
    n_components: int
    ratio: float
    captured: float
    useful: Proportion
    traced: Proportion
    innocent_accused: Proportion


@dataclass(frozen=True)
class RefusedPoint:
    """A number of rows that a mechanism does not take, and what it said."""

    mechanism: str
    epsilon: float | None
    rows: int
    reason: str


@dataclass(frozen=True)
class TracingCurves:
    """All points of a profile."""

    points: tuple[TracingPoint, ...]
    refused: tuple[RefusedPoint, ...] = field(default=())

    def __str__(self) -> str:
        lines = ["mechanism                 epsilon  m     m/sqrt d  captured  "]
        lines[0] += "useful  traced  innocent"
        for p in self.points:
            epsilon = "-" if p.epsilon is None else f"{p.epsilon:g}"
            lines.append(
                f"{p.mechanism:<25} {epsilon:<8} {p.rows:<5} {p.ratio:<9.3g} "
                f"{p.captured:<9.3f} {p.useful.share:<7.2f} {p.traced.share:<7.2f} "
                f"{p.innocent_accused.share:.2f}"
            )
        lines += [
            f"{r.mechanism:<25} {r.epsilon or '-'} {r.rows}: refused, {r.reason}"
            for r in self.refused
        ]
        return "\n".join(lines)


_MANY = (
    *("analyze-gauss", "goe-gaussian", "symmetrised-wishart", "laplace-covariance"),
    *("power-method", "private-subspace", "exponential-pca"),
)

QUICK = TracingProfile(
    curves=(
        Curve(BASELINE),
        Curve("analyze-gauss", 1.0),
        Curve("analyze-gauss", 3000.0),
        Curve("exponential-pca", 1.0),
        Curve("exponential-pca", 3000.0),
    ),
    length=96,
    pad_ratio=3,
    rows=(1, 2, 3, 4, 8, 32, 128, 1024),
)
STANDARD = TracingProfile(
    curves=(
        Curve(BASELINE),
        *(Curve(name, epsilon) for epsilon in (1.0, 1e4) for name in _MANY),
    ),
    length=192,
    pad_ratio=3,
    rows=(1, 2, 3, 4, 6, 8, 64, 512, 4096),
)


def tracing_curves(profile: TracingProfile = QUICK) -> TracingCurves:
    """Run a profile.

    Parameters
    ----------
    profile : TracingProfile
        `QUICK`, `STANDARD`, or one's own. All mechanisms see the same instances.

    Returns
    -------
    TracingCurves

    Examples
    --------
    >>> small = TracingProfile(
    ...     curves=(Curve(BASELINE),), length=64, pad_ratio=1, rows=(1,), trials=5
    ... )
    >>> (point,) = tracing_curves(small).points
    >>> point.useful.share, point.traced.share
    (1.0, 1.0)
    """
    points, refused = [], []
    for number, curve in enumerate(profile.curves):
        mechanism = curve.build(profile.n_clusters, profile.delta)
        for m in profile.rows:
            try:
                points.append(_point(profile, curve, number, mechanism, m))
            except InputError as error:
                refused.append(
                    RefusedPoint(curve.mechanism, curve.epsilon, m, str(error))
                )
    return TracingCurves(tuple(points), tuple(refused))


def _point(
    profile: TracingProfile, curve: Curve, number: int, mechanism: Any, m: int
) -> TracingPoint:
    k, d = profile.n_clusters, profile.dimension
    captured, useful, traced, innocent = [], 0, 0, 0
    for trial in range(profile.trials):
        secrets = stream(profile.seed, m, trial, 0)
        instance = HardInstance.generate(
            m,
            profile.length,
            n_clusters=k,
            cutoff=profile.cutoff,
            pad_ratio=profile.pad_ratio,
            rng=secrets,
        )
        rows = instance.rows
        release = ask(mechanism, rows, stream(profile.seed, m, trial, 1, number))
        basis = released_basis(mechanism, release, d, k)
        best = usefulness_gap(rows, np.full((d, k), np.nan))
        # No subspace, as bottom says, captures nothing.
        found = float(np.sum((rows @ np.nan_to_num(basis)) ** 2))
        captured.append(found / best)
        useful += best - found <= profile.gamma * k * m
        accused, wrongly = _accusations(profile, instance, mechanism, release, secrets)
        traced += accused
        innocent += wrongly
    return TracingPoint(
        mechanism=curve.mechanism,
        epsilon=curve.epsilon,
        delta=0.0 if curve.epsilon is None else profile.delta,
        rows=m,
        dimension=d,
        n_components=k,
        ratio=m / math.sqrt(d),
        captured=float(np.mean(captured)),
        useful=Proportion(useful, profile.trials),
        traced=Proportion(traced, profile.trials),
        innocent_accused=Proportion(innocent, profile.trials),
    )


def _accusations(
    profile: TracingProfile,
    instance: HardInstance,
    mechanism: Any,
    release: Any,
    rng: np.random.Generator,
) -> tuple[bool, bool]:
    """Return whether a row that is in the data is accused, and whether another is."""
    attack = TracingAttack(instance)
    members = sum(code.n_users for code in instance.codes)
    level = profile.level / (members + instance.n_clusters * profile.innocents)
    traced = wrongly = False
    # The pirated word says all that a release says of a cluster.
    words = attack.words(mechanism, release)
    for code, word in zip(instance.codes, words, strict=True):
        innocent = code.strangers(profile.innocents, rng=rng)
        others = tracing_scores(innocent, code.biases, word)
        scores = np.concatenate([code.scores(word), others])
        accused = conditional_p_values(scores, code.biases, word) <= level
        traced |= bool(accused[: code.n_users].any())
        wrongly |= bool(accused[code.n_users :].any())
    return traced, wrongly


def _principal_components(
    n_components: int,
) -> Callable[[Array, np.random.Generator], Array]:
    def principal_components(data: Array, rng: np.random.Generator) -> Array:
        if len(data) <= data.shape[1]:
            values, left = np.linalg.eigh(data @ data.T)
            top = data.T @ left[:, ::-1][:, :n_components]
            return np.asarray(top / np.sqrt(values[::-1][:n_components]))
        vectors = np.linalg.eigh(data.T @ data).eigenvectors
        return np.asarray(vectors[:, ::-1][:, :n_components])

    return principal_components


@dataclass(frozen=True)
class CullingPoint:
    """Both of Alice's strategies at one size.

    Parameters
    ----------
    length, erased : int
        n and f.
    closeness : float
        beta.
    sphere_rate : float
        The logarithm of the number of words of the sphere, over n.
    most_agreement, random_half : Proportion
        Games won against the sphere.
    exact : float
        The probability that random half wins there.
    rate : float
        c: the last number is for lists of exp(c n) words.
    loss_bound : float
        At most this is the probability that random half loses against any such list.
    """

    length: int
    erased: int
    closeness: float
    sphere_rate: float
    most_agreement: Proportion
    random_half: Proportion
    exact: float
    rate: float
    loss_bound: float


def culling_points(
    lengths: Sequence[int] = (500, 1000, 2000, 5000, 10_000, 20_000),
    *,
    closeness: float = 0.04,
    erased: float = 0.02,
    rate: float = 0.004,
    games: int = 10_000,
    seed: int = 0,
) -> tuple[CullingPoint, ...]:
    """Play the list-culling game at several lengths.

    Parameters
    ----------
    lengths : sequence of int
        n.
    closeness : float
        beta, in (0, 1/20).
    erased : float
        f/n, at most beta, so that the sphere keeps the promise.
    rate : float
        c, for lists of exp(c n) words.
    games : int
    seed : int

    Examples
    --------
    >>> (point,) = culling_points([5000])
    >>> point.most_agreement.hits, point.random_half.hits, point.loss_bound < 1e-3
    (0, 10000, True)
    """
    points = []
    for n in lengths:
        game = CullingGame(n, max(int(erased * n), 1), closeness)
        rng = stream(seed, n)
        points.append(
            CullingPoint(
                length=n,
                erased=game.erased,
                closeness=closeness,
                sphere_rate=game.sphere_log_size / n,
                most_agreement=game.play_sphere("most-agreement", games=games, rng=rng),
                random_half=game.play_sphere("random-half", games=games, rng=rng),
                exact=game.sphere_win_probability("random-half"),
                rate=rate,
                loss_bound=game.loss_bound(rate * n),
            )
        )
    return tuple(points)
