r"""How the estimator `PrivatePCA` spends its privacy budget, and on what.

A `Budget` makes a `FitPlan`, which is all that ever reads the data: its `centre` for a
private mean, then `fitted` for the components. `Spent` is its receipt.

Its releases are at most two: a mean to centre the rows with
(`dpaudit.algorithms.estimators.private_mean`), and the principal components. The second
mechanism sees rows that the first release has moved, so the composition is adaptive.
With a share q of the budget for the mean:

- Two Gaussian mechanisms, mu_1-GDP and mu_2-GDP, are together sqrt(mu_1^2 + mu_2^2)-GDP
  (Dong, Roth, Su 2022, Corollary 3.3), which loses nothing. So mu^2, of the mu that is
  exactly (epsilon, delta), is divided: mu_1^2 = q mu^2, mu_2^2 = (1 - q) mu^2.
- Otherwise epsilons add, and deltas (Dwork, Roth 2014, Theorem 3.16, which holds for
  adaptive composition too): the mean gets q epsilon, the components (1 - q) epsilon. If
  the components need no delta, the mean gets all of it, else delta is divided likewise.

The mechanism called ``"auto"`` is what `dpaudit.algorithms.estimators.recommendation`
recommends where neither the number of rows nor an eigengap is known: of the mechanisms
that release a second moment, the one whose measured error is never much above the
least, and of which a draw is quick. In low dimensions it is a pure mechanism even if
there is a delta: more accurate there *and* the stronger guarantee. Where
``goe-gaussian`` errs no more than the least (of ten columns and more no more than 1.25
times the least), and the data can be read more than once, it is ``residual-step-pca``,
which begins with that noise and goes on with more of it unless something else promises
less: by how much hangs on the eigenvalues, which are private (docs/choosing.md has what
was measured). Nothing but d, k, epsilon, delta, the relation and the type of the data
decides, and those are public.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from dpaudit.algorithms.catalogue import entry, names_of
from dpaudit.algorithms.covariance.entrywise import GaussianPerturbation
from dpaudit.algorithms.covariance.k_norm import BY_REJECTION
from dpaudit.algorithms.covariance.second_moment import SecondMomentMechanism
from dpaudit.algorithms.estimators.measured import GRID
from dpaudit.algorithms.estimators.private_mean import (
    GaussianMean,
    LaplaceMean,
    MeanMechanism,
)
from dpaudit.algorithms.estimators.recommendation import recommend
from dpaudit.algorithms.shared.bases import Rng, check_components
from dpaudit.algorithms.subspace.residual_step import ResidualStepPCA
from dpaudit.arrays import Array
from dpaudit.blocks import Rows, is_table, restarts
from dpaudit.claims import Claim
from dpaudit.errors import InputError
from dpaudit.gaussian import gaussian_mu
from dpaudit.gram import RowNorm, gram, prepared, row_sum
from dpaudit.mechanism import HasComponents, Mechanism
from dpaudit.neighbours import Neighbouring, Relation
from dpaudit.rows import normalise_rows
from dpaudit.validation import (
    Checked,
    Positive,
    check_count,
    check_fraction,
    check_matrix,
    check_positive,
)

__all__ = ["Budget"]

_GAIN = 1.25  # what residual steps are worth: their gain hangs on private eigenvalues
_MANY = 10  # columns: of fewer, a bias of steps is hardly seen
_Number = TypeVar("_Number", int, float)


@runtime_checkable
class _DrawsFromMoment(Protocol):
    """A mechanism that reads the data through their second-moment matrix only."""

    def draw_from(self, moment: Array, size: int, *, rng: Rng) -> Array:
        """Return `size` releases."""
        ...


@dataclass(frozen=True)
class Spending:
    """A release, ``"mean"`` or ``"components"``, which class made it, and its cost."""

    release: str
    mechanism: str
    claim: Claim


@dataclass(frozen=True)
class Spent:
    """All that a fit has spent, in order: it is (epsilon, delta)-DP as a whole."""

    releases: tuple[Spending, ...]
    epsilon: float
    delta: float
    relation: Relation


class Fitted(NamedTuple):
    """A basis, second moments along it and in all, and if noise left it to be seen."""

    basis: Array
    variances: Array | None
    found: bool = True
    total: float = float("nan")


@dataclass(frozen=True)
class _Prepared:
    """Rows that are made ready each time that they are read, block by block."""

    data: Rows
    row_norm: RowNorm
    centre: Array | None

    def __iter__(self) -> Iterator[Array]:
        if not restarts(self.data):
            raise InputError(
                "residual steps read X more than once, but an iterator can be read "
                f"once only, got {type(self.data).__name__}"
            )
        for _, rows in prepared(self.data, self.row_norm, self.centre):
            yield rows


@dataclass(frozen=True)
class FitPlan:
    """The mechanism of the components, that of a private centre, and what they cost."""

    mechanism: Any
    mean: MeanMechanism | None
    spent: Spent

    @classmethod
    def of(
        cls, mechanism: Any, mean: MeanMechanism | None, epsilon: float, delta: float
    ) -> "FitPlan":
        """Return the plan whose mechanisms cost (epsilon, delta) together."""
        steps = (("mean", mean), ("components", mechanism))
        releases = tuple(
            Spending(release, type(step).__name__, step.claim)
            for release, step in steps
            if step is not None
        )
        return cls(mechanism, mean, Spent(releases, epsilon, delta, mechanism.relation))

    def centre(self, data: Rows, *, rng: Rng) -> Array | None:
        """Return the private mean, shape (d,), or None if the plan has none."""
        if self.mean is None:
            return None
        sums = row_sum(data, row_norm=self.mean.row_norm)
        release = self.mean.draw_from(sums, 1, rng=rng)[0]
        return self.mean.mean(release, n_rows=sums.n_rows)

    def fitted(
        self, data: Rows, k: int, *, row_norm: RowNorm, centre: Array | None, rng: Rng
    ) -> Fitted:
        """Return what one release says of the rows about the centre."""
        mechanism = self.mechanism
        if isinstance(mechanism, ResidualStepPCA):
            check_components(k, mechanism.rank)
            rows = _Prepared(data, row_norm, centre)
            return Fitted(*mechanism.described(rows, rng=rng))
        release = self._release(data, row_norm, centre, rng)
        basis = mechanism.components(release, k)
        if not isinstance(mechanism, SecondMomentMechanism):
            return Fitted(basis, None)
        variances = np.sum(basis * (release @ basis), axis=0)
        return Fitted(basis, variances, total=float(np.trace(release)))

    def _release(
        self, data: Rows, row_norm: RowNorm, centre: Array | None, rng: Rng
    ) -> Array:
        """Return one release of the mechanism on the rows about the centre."""
        if isinstance(self.mechanism, _DrawsFromMoment):
            moment = gram(data, row_norm=row_norm, centre=centre).moment
            return self.mechanism.draw_from(moment, 1, rng=rng)[0]
        if not is_table(data):
            raise InputError(
                f"{type(self.mechanism).__name__} reads single rows, so X must be an "
                f"array, got {type(data).__name__}"
            )
        rows = check_matrix("X", data)  # type: ignore[arg-type]
        rows = rows if centre is None else rows - centre
        rows = normalise_rows(rows) if row_norm == "directions" else rows
        return np.asarray(self.mechanism.release(rows, rng=rng))


@dataclass(frozen=True, kw_only=True)
class Budget(Checked):
    """What a fit may spend, and what is public.

    Parameters
    ----------
    epsilon, delta : float
        The most that all releases together may cost; delta = 0 asks for pure DP.
    relation : Relation
    row_norm : float
        Bound on the rows that the components are computed of (centred, if they are).
    mean_norm : float
        Bound on the rows, about the origin, that a private mean is computed of.
    mean_share : float
        In [0, 1): the share of the private mean; 0 if there is none.
    """

    epsilon: Positive
    delta: float
    relation: Neighbouring
    row_norm: Positive
    mean_norm: float
    mean_share: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("delta", self.delta, allow_zero=True)
        check_positive("center_norm", self.mean_norm)
        check_fraction("center_share", self.mean_share, allow_zero=True)

    def plan(
        self,
        mechanism: Any,
        n_components: int,
        n_features: int,
        *,
        restarts: bool = False,
    ) -> FitPlan:
        """Return the mechanisms to be run on rows of length `n_features`.

        The mechanism is ``"auto"``, a name in the catalogue, or the mechanism itself.
        Refused is one that releases no components, does not fit the budget, or has a
        name and a claim known to be false.
        """
        check_count("n_components", n_components, maximum=n_features)
        if not isinstance(mechanism, str):
            return self._plan_with(mechanism)
        name = mechanism
        if name == "auto":
            known = self.epsilon, self.delta, self.relation
            name = recommended(*known, n_features, n_components, restarts=restarts)
        if not self.mean_share:
            return self._add_up(self._build(name, n_components, 1.0))
        whole = self._build(name, n_components, 1.0)
        if isinstance(whole, GaussianPerturbation | ResidualStepPCA):
            own: dict[str, Any] = {"relation": self.relation, "row_norm": self.row_norm}
            if isinstance(whole, ResidualStepPCA):
                own["n_components"] = n_components
            if whole == type(whole).calibrated(self.epsilon, self.delta, **own):
                return self._divide_mu(type(whole), own)
        return self._add_up(self._build(name, n_components, 1 - self.mean_share))

    def _build(self, name: str, n_components: int, share: float) -> Any:
        """Return the catalogue's mechanism at a share of the budget."""
        found = entry(name)
        if found.expected_refuted:
            raise InputError(
                f"the claim of {name} is false ({found.summary}); if that is wanted, "
                "pass the mechanism itself, not its name"
            )
        if found.approximate and self.delta == 0:
            raise InputError(f"{name} needs a delta > 0, got delta = {self.delta}")
        mechanism = found.build(
            epsilon=share * self.epsilon,
            delta=share * self.delta,
            relation=self.relation,
            row_norm=self.row_norm if found.has_row_norm else None,
            n_components=n_components if found.has_components else None,
        )
        _check_components(mechanism, name)
        return mechanism

    def _plan_with(self, mechanism: Any) -> FitPlan:
        """Return the plan for a mechanism that the user has built."""
        name = type(mechanism).__name__
        _check_components(mechanism, name)
        for what in ("relation", "row_norm"):
            ours, theirs = getattr(self, what), getattr(mechanism, what, None)
            if theirs is not None and theirs != ours:
                raise InputError(
                    f"{what} must be that of the mechanism, {theirs!s}, got {ours!s}"
                )
        epsilon = (1 - self.mean_share) * self.epsilon
        delta = (1 - self.mean_share) * self.delta
        # Calibrations that solve for equality may miss it by rounding.
        if float(mechanism.claim.delta_at(epsilon)) > delta * (1 + 1e-9):
            raise InputError(
                f"{name} must keep to its share of the budget, epsilon = {epsilon:g} "
                f"and delta = {delta:g}, but claims {mechanism.claim!r}"
            )
        return self._add_up(mechanism)

    def _divide_mu(
        self, family: type[GaussianPerturbation | ResidualStepPCA], own: dict[str, Any]
    ) -> FitPlan:
        """Return the plan for two Gaussian mechanisms."""
        mu = gaussian_mu(self.epsilon, self.delta)
        mechanism = family.from_mu(sqrt(1 - self.mean_share) * mu, **own)
        mean = GaussianMean.from_mu(
            sqrt(self.mean_share) * mu, relation=self.relation, row_norm=self.mean_norm
        )
        return FitPlan.of(mechanism, mean, self.epsilon, self.delta)

    def _add_up(self, mechanism: Mechanism) -> FitPlan:
        """Return the plan in which epsilons add, and deltas."""
        epsilon, delta = _cost(mechanism.claim, (1 - self.mean_share) * self.delta)
        if not self.mean_share:
            return FitPlan.of(mechanism, None, epsilon, delta)
        share = self.mean_share * self.epsilon
        if self.delta == 0:
            mean: MeanMechanism = LaplaceMean.calibrated(
                share, relation=self.relation, row_norm=self.mean_norm
            )
        else:
            mean = GaussianMean.calibrated(
                share,
                self.mean_share * self.delta if delta else self.delta,
                relation=self.relation,
                row_norm=self.mean_norm,
            )
        return FitPlan.of(mechanism, mean, share + epsilon, self.delta)


def recommended(
    epsilon: float,
    delta: float,
    relation: Relation,
    dimension: int,
    k: int = 1,
    *,
    restarts: bool = False,
) -> str:
    """Return the name of the mechanism that ``"auto"`` stands for.

    Off the grid of measurements it is the one at its end. Whether the data can be read
    more than once decides if residual steps may begin where GOE noise is good enough.

    Examples
    --------
    >>> [recommended(1.0, 1e-5, Relation.ADD_REMOVE, d) for d in (5, 10, 20)]
    ['k-norm-covariance', 'symmetrised-wishart', 'goe-gaussian']
    >>> recommended(1.0, 0.0, Relation.REPLACE_ONE, 6, k=4)
    'k-norm-covariance'
    """
    dimension = _on_grid("d", dimension)
    quick = [
        name
        for name in names_of("covariance")
        if name != "k-norm-covariance" or dimension <= BY_REJECTION
    ]
    found = recommend(
        d=dimension,
        k=min(_on_grid("k", k), dimension - 1),
        epsilon=_on_grid("epsilon", epsilon),
        delta=_on_grid("delta", delta) if delta > 0 else 0.0,
        relation=relation,
        among=quick,
    )
    ratios = {each.mechanism: each.at_worst for each in found.choices}
    begun = ratios.get("goe-gaussian")  # which steps begin with, and err like at worst
    most = _GAIN if dimension >= _MANY else 1.0
    steps = restarts and begun is not None and begun <= most
    return "residual-step-pca" if steps else found.choices[0].mechanism


def _on_grid(axis: str, value: _Number) -> _Number:
    """Return the number of an axis that is nearest, among those that were measured."""
    ends = [type(value)(each) for each in GRID[axis] if each > 0]
    return min(max(value, ends[0]), ends[-1])


def _check_components(mechanism: object, name: str) -> None:
    if not isinstance(mechanism, HasComponents) or not isinstance(mechanism, Mechanism):
        raise InputError(
            f"mechanism must release principal components, but {name} does not"
        )


def _cost(claim: Claim, delta: float) -> tuple[float, float]:
    """Return what a claim costs: pure if it can, else at `delta`."""
    pure = claim.epsilon_at(0.0)
    return (pure, 0.0) if pure < float("inf") else (claim.epsilon_at(delta), delta)
