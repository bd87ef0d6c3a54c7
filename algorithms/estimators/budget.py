r"""How the estimator `PrivatePCA` spends its privacy budget, and on what.

A `PrivacyBudget` makes a `FitPlan` (`dpaudit.algorithms.estimators.fit_plan`), which is
all that ever reads the data.

Its releases are at most three: a mean to centre the rows with
(`dpaudit.algorithms.estimators.private_mean`), a norm to clip them to
(`dpaudit.algorithms.estimators.norm_quantile`), and the principal components. A
mechanism sees rows that the releases before it have moved and clipped, so the
composition is adaptive. With shares q_i of the budget, which add up to 1:

- Gaussian mechanisms, mu_i-GDP, are together sqrt(sum mu_i^2)-GDP (Dong, Roth, Su 2022,
  Corollary 3.3), which loses nothing. So mu^2, of the mu that is exactly (epsilon,
  delta), is divided: mu_i^2 = q_i mu^2.
- Otherwise epsilons add, and deltas (Dwork, Roth 2014, Theorem 3.16, which holds for
  adaptive composition too): each gets q_i epsilon. The norm needs no delta then. If the
  components need none, the mean gets all of it, else delta is divided likewise.
"""

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, TypeAlias

from dpaudit import InputError, Mechanism
from dpaudit.algorithms.catalogue import entry
from dpaudit.algorithms.covariance.entrywise import GaussianPerturbation
from dpaudit.algorithms.covariance.separate import SeparateCovariance
from dpaudit.algorithms.estimators.fit_plan import FitPlan
from dpaudit.algorithms.estimators.norm_quantile import (
    GaussianNormQuantile,
    LaplaceNormQuantile,
    NormQuantile,
)
from dpaudit.algorithms.estimators.private_mean import (
    GaussianMean,
    LaplaceMean,
    MeanMechanism,
)
from dpaudit.algorithms.subspace.residual_plan import StepsOnResiduals
from dpaudit.algorithms.subspace.residual_step import ResidualStepPCA
from dpaudit.gaussian import gaussian_mu
from dpaudit.mechanism import HasComponents
from dpaudit.neighbours import Neighbouring
from dpaudit.validation import (
    Checked,
    Norm,
    Positive,
    check_count,
    check_fraction,
    check_positive,
)

__all__ = ["PrivacyBudget"]

_Gaussian: TypeAlias = GaussianPerturbation | ResidualStepPCA | SeparateCovariance


@dataclass(frozen=True, kw_only=True)
class PrivacyBudget(Checked):
    """What a fit may spend, and what is public: the parameters of `PrivatePCA`.

    The row norm is 1 if that is private, or rows are brought to that length; the mean
    norm is the ``center_norm``. Shares are 0 of what is not released.

    Parameters
    ----------
    quantile : float, optional
        The quantile of the lengths of rows that a private norm is. Default: the median;
        for residual steps, whose noise hangs less on it, what `NormQuantile` makes of
        None.
    """

    epsilon: Positive
    delta: float
    relation: Neighbouring
    row_norm: Norm
    mean_norm: float
    mean_share: float = 0.0
    norm_share: float = 0.0
    quantile: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("delta", self.delta, allow_zero=True)
        check_positive("center_norm", self.mean_norm)
        check_fraction("center_share", self.mean_share, allow_zero=True)
        check_fraction("norm_share", self.norm_share, allow_zero=True)
        if self.quantile is not None:
            check_fraction("norm_quantile", self.quantile)
        if self._left <= 0:
            raise InputError(
                "center_share and norm_share must leave a share to the components, "
                f"got {self.mean_share} and {self.norm_share}"
            )

    @property
    def _left(self) -> float:
        """The share of the components."""
        return 1 - self.mean_share - self.norm_share

    def plan(self, mechanism: Any, n_components: int, n_features: int) -> FitPlan:
        """Return the mechanisms to be run on rows of length `n_features`.

        The mechanism is a name in the catalogue, or the mechanism itself.
        Refused is one that releases no components, does not fit the budget, or has a
        name and a claim known to be false.
        """
        check_count("n_components", n_components, maximum=n_features)
        if not isinstance(mechanism, str):
            return self._plan_with(mechanism)
        name = mechanism
        whole = self._build(name, n_components, 1.0)
        if self._left == 1:
            return self._add_up(whole)
        if isinstance(whole, _Gaussian):
            own: dict[str, Any] = {"relation": self.relation, "row_norm": self.row_norm}
            if isinstance(whole, ResidualStepPCA):
                own["n_components"] = n_components
            if whole == type(whole).calibrated(self.epsilon, self.delta, **own):
                return self._divide_mu(type(whole), own)
        return self._add_up(self._build(name, n_components, self._left))

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
        epsilon, delta = self._left * self.epsilon, self._left * self.delta
        # Calibrations that solve for equality may miss it by rounding.
        if float(mechanism.claim.delta_at(epsilon)) > delta * (1 + 1e-9):
            raise InputError(
                f"{name} must keep to its share of the budget, epsilon = {epsilon:g} "
                f"and delta = {delta:g}, but claims {mechanism.claim!r}"
            )
        return self._add_up(mechanism)

    def _divide_mu(self, family: type[_Gaussian], own: dict[str, Any]) -> FitPlan:
        """Return the plan for Gaussian mechanisms."""
        mu = gaussian_mu(self.epsilon, self.delta)
        mean: MeanMechanism | None = None
        norm: NormQuantile | None = None
        if self.mean_share:
            mean = GaussianMean.from_mu(sqrt(self.mean_share) * mu, **self._of_mean)
        if self.norm_share:
            norm = GaussianNormQuantile.from_mu(
                sqrt(self.norm_share) * mu, **self._of_norm(family is ResidualStepPCA)
            )
        mechanism = family.from_mu(sqrt(self._left) * mu, **own)
        return FitPlan.of(mechanism, mean, norm, self.epsilon, self.delta)

    def _add_up(self, mechanism: Mechanism) -> FitPlan:
        """Return the plan in which epsilons add, and deltas; pure claims need none."""
        pure = mechanism.claim.epsilon_at(0.0)
        delta = 0.0 if pure < inf else self._left * self.delta
        epsilon = mechanism.claim.epsilon_at(delta)
        mean: MeanMechanism | None = None
        norm: NormQuantile | None = None
        if self.norm_share:
            share = self.norm_share * self.epsilon
            steps = isinstance(mechanism, StepsOnResiduals)
            norm = LaplaceNormQuantile.calibrated(share, **self._of_norm(steps))
            epsilon += share
        if self.mean_share:
            share = self.mean_share * self.epsilon
            rest = self.mean_share * self.delta if delta else self.delta
            mean = (
                GaussianMean.calibrated(share, rest, **self._of_mean)
                if self.delta
                else LaplaceMean.calibrated(share, **self._of_mean)
            )
            epsilon, delta = share + epsilon, self.delta
        return FitPlan.of(mechanism, mean, norm, epsilon, delta)

    @property
    def _of_mean(self) -> dict[str, Any]:
        return {"relation": self.relation, "row_norm": self.mean_norm}

    def _of_norm(self, steps: bool = False) -> dict[str, Any]:
        usual = None if steps else 0.5
        quantile = usual if self.quantile is None else self.quantile
        return {"relation": self.relation, "quantile": quantile}


def _check_components(mechanism: object, name: str) -> None:
    if not isinstance(mechanism, HasComponents) or not isinstance(mechanism, Mechanism):
        raise InputError(
            f"mechanism must release principal components, but {name} does not"
        )
