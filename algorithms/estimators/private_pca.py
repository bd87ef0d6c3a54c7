"""A scikit-learn estimator on top of the mechanisms: `PrivatePCA`.

1. If the centre is private: the mean is released, in a pass of its own. If the norm
   that rows are clipped to is private: a quantile of their lengths about the centre, in
   another one.
2. One pass over the rows gives the second-moment matrix A about the centre, each row
   clipped by itself to that norm (`dpaudit.gram`).
3. The mechanism releases A plus noise, or a basis, and nothing else reads the data.
4. Components are computed from the release.

Privacy: that of the mechanism, and of what is released before it by composition
(`dpaudit.algorithms.estimators.budget`). Clipping maps neighbours to neighbours, and a
centre or a norm that is public, or released before, is a constant to the mechanism.
Whatever else would have to look at the rows (their sample mean, a whitening) is refused
or not there: it is outside every proof.

scikit-learn is imported with this module, so the package imports it when `PrivatePCA`
is first used.
"""

from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from dpaudit.algorithms.estimators.arguments import generator_of, validated
from dpaudit.algorithms.estimators.auto import recommended
from dpaudit.algorithms.estimators.budget import PrivacyBudget
from dpaudit.algorithms.estimators.fit_plan import FitPlan
from dpaudit.algorithms.estimators.norm_quantile import NORMS
from dpaudit.algorithms.shared.bases import Rng
from dpaudit.arrays import Array
from dpaudit.blocks import Rows, is_table, peek, restarts
from dpaudit.errors import InputError, MechanismError
from dpaudit.validation import check_count, check_fraction, check_matrix, check_real

__all__ = ["PrivatePCA"]


class PrivatePCA(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Principal components under differential privacy.

    What is private is the fit: the fitted attributes may be published, and `transform`
    may be applied to anything. What `transform` returns is about the rows it is given,
    and is as private as they are.

    Parameters
    ----------
    n_components : int, default=2
        k, at least 1 and at most the number of features. It is public, so a number that
        was chosen by looking at the data tells of them.
    mechanism : str or Mechanism, default="auto"
        A name in the catalogue (``dpaudit list``), or a mechanism with `components`,
        which must fit the budget below and agree with `relation` and `row_norm`.
        ``"auto"`` takes a pure mechanism without delta or in few dimensions, and else
        residual steps, or Gaussian noise for data that can be read once only; see
        `dpaudit.algorithms.estimators.auto`.
    epsilon : float, default=1.0
        All releases of a fit together are (epsilon, delta)-DP.
    delta : float, default=1e-5
        0 asks for pure differential privacy.
    relation : {"add-remove", "replace-one"} or Relation, default="add-remove"
        Which datasets are neighbours. Only under ``"replace-one"`` is the number of
        rows public.
    row_norm : float, "private" or "directions", default=1.0
        Longer rows, after centring, are scaled down to this length. It must be chosen
        without looking at the data; the noise grows with its square. Two words ask for
        no bound. ``"private"``: that length is a quantile of those of the rows, which
        takes its share of the budget and a pass over the data. ``"directions"``: every
        row, after centring, is brought to length 1. Either way components are those of
        clipped rows: the same where rows are elliptical about the centre, as normal
        ones are, or multivariate t.
    center : False, array_like of shape (n_features,) or "private", default=False
        What is subtracted from every row first: nothing (the second moment is about the
        origin), a public point, or a private mean, which takes its share of the budget
        and a second pass over the data. The sample mean is refused.
    center_share : float, default=0.1
        The share of the budget that a private mean gets, in (0, 1).
    center_norm : float, optional
        Bound on the rows about the origin for the private mean; longer ones are clipped
        there, and only there. Default: `row_norm` if that is a number.
    norm_quantile : float, optional
        The share of rows that are no longer than a private `row_norm`, in (0, 1).
        Default: 0.5, and for residual steps from 0.5 to 0.8, the more the more rows
        there are for the budget.
    norm_share : float, default=0.025
        The share of the budget that a private `row_norm` gets, in (0, 1).
    random_state : None, int, numpy.random.Generator or RandomState, default=None
        None draws from the operating system. Whoever knows an int knows the noise, and
        two fits with one int have the same noise: for tests only.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal rows, by descending private variance where that is released. The
        entry of largest absolute value of each is positive.
    mean_ : ndarray of shape (n_features,)
        The centre: zeros, the public point, or the private mean.
    row_norm_ : float
        The length that rows were clipped to, if it is private: between 4e-39 and 3e38.
    private_variance_ : ndarray of shape (n_components,)
        The components' second moments in the released matrix, as sums over rows, not
        means (of rows of length 1 for "directions"); noise can make them negative.
        There only if the mechanism releases the matrix of these, or them besides.
        (The number of rows is private under add-remove, so there is no `n_samples_`,
        nor anything divided by it.)
    explained_variance_ratio_ : ndarray of shape (n_components,)
        `private_variance_` over the trace of the same released matrix, so nothing more
        is spent. About the centre that was taken, which without one is the origin.
        Noise can make a ratio negative, or larger than 1; NaN where the released trace
        is not above 0. It raises AttributeError, with the reason, where there is no
        `private_variance_`.
    mechanism_ : Mechanism
        What released the components.
    spent_ : Spent
        Each release with its claim, and the total epsilon and delta.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        If `fit` saw a data frame whose columns are all named by strings.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import PrivatePCA
    >>> rows = np.random.default_rng(0).normal(size=(5000, 3)) * [0.5, 0.2, 0.1]
    >>> pca = PrivatePCA(n_components=1, epsilon=1.0, random_state=0).fit(rows)
    >>> bool(abs(pca.components_[0, 0]) > 0.99)
    True
    >>> pca.spent_.epsilon, pca.spent_.delta
    (1.0, 0.0)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        mechanism: Any = "auto",
        epsilon: float = 1.0,
        delta: float = 1e-5,
        relation: str = "add-remove",
        row_norm: Any = 1.0,
        center: Any = False,
        center_share: float = 0.1,
        center_norm: float | None = None,
        norm_quantile: float | None = None,
        norm_share: float = 0.025,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.mechanism = mechanism
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.row_norm = row_norm
        self.center = center
        self.center_share = center_share
        self.center_norm = center_norm
        self.norm_quantile = norm_quantile
        self.norm_share = norm_share
        self.random_state = random_state

    def fit(self, X: Rows, y: object = None) -> "PrivatePCA":
        """Release the components of a dataset.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features), or what `gram` takes
            An array, a memory-mapped one, an iterable of blocks of rows, the path of a
            Parquet file or a Dask array. A private centre or norm takes a pass more,
            which an iterator does not give. No rows at all are allowed: whether there
            are any is private too.
        y : ignored

        Returns
        -------
        PrivatePCA
            Itself, fitted.

        Raises
        ------
        InputError
            If a parameter is not what it should be, or the rows are not finite.
        MechanismError
            If the release says that there are no components; the budget is spent.
        """
        budget, rng = self._budget(), generator_of(self.random_state)
        X, width = self._check_rows(X)
        plan = budget.plan(self._chosen(budget, X, width), self.n_components, width)
        self.mean_ = self._centre(X, width, plan, rng)
        centre = self.mean_ if np.any(self.mean_) else None
        how: Any = self.row_norm if self._without_bound() else budget.row_norm
        for each in ("components_", "row_norm_"):
            self.__dict__.pop(each, None)
        if plan.norm is not None:
            how = self.row_norm_ = plan.norm.norm(X, centre, rng=rng)
            if not NORMS[4] < how < NORMS[-5]:
                warn(
                    f"the private row_norm is {how:.2g}, at an end of its range: rows "
                    "may be of zeros, or as long as that, or too few to tell",
                    stacklevel=2,
                )
        k = self.n_components
        made = plan.fitted(X, k, row_norm=how, centre=centre, rng=rng)
        self.mechanism_, self.spent_ = plan.mechanism, plan.spent
        basis = made.basis
        if len(basis) != width:
            raise InputError(
                "X must have the same columns each time that it is read, got "
                f"{width} and then {len(basis)}"
            )
        if not np.isfinite(basis).all():
            name = type(plan.mechanism).__name__
            raise MechanismError(f"{name} released no components; the budget is spent")
        self.__dict__.pop("private_variance_", None)
        if made.variances is not None:
            self.private_variance_, self._total = made.variances, made.total
        if not made.found:
            warn(
                "components do not stand out of the noise, as what was released says: "
                "more rows, a larger epsilon, fewer columns or a smaller row_norm help",
                stacklevel=2,
            )
        largest = np.take_along_axis(basis, np.abs(basis).argmax(axis=0)[None], axis=0)
        self.components_ = (basis * np.where(largest < 0, -1.0, 1.0)).T
        return self

    def transform(self, X: Any) -> Array:
        """Return the coordinates of rows in the components: as private as the rows are.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_features)
            Rows are centred as `fit` did, and not clipped.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self, "components_")
        X = validated(self, X, reset=False)
        return (X - self.mean_) @ self.components_.T

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Return the rows of the principal subspace that have these coordinates.

        Parameters
        ----------
        X : array_like of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self, "components_")
        coordinates = check_matrix("X", X)
        if coordinates.shape[1] != len(self.components_):
            raise InputError(
                f"X must have {len(self.components_)} columns, one for each component, "
                f"got {coordinates.shape[1]}"
            )
        return coordinates @ self.components_ + self.mean_

    @property
    def explained_variance_ratio_(self) -> Array:
        """The share of the released second moment that is along each component."""
        check_is_fitted(self, "components_")
        if not hasattr(self, "private_variance_"):
            raise AttributeError(
                f"{type(self.mechanism_).__name__} releases no sum of second moments, "
                "and the total of the rows is private: explained_variance_ratio_ needs "
                "a mechanism that does, such as goe-gaussian or residual-step-pca"
            )
        total = self._total if self._total > 0 else np.nan
        return np.asarray(self.private_variance_ / total)

    @property
    def _n_features_out(self) -> int:
        # Where scikit-learn looks for the number of names that it makes up.
        return len(self.components_)

    def _budget(self) -> PrivacyBudget:
        share = check_fraction("center_share", self.center_share)
        norm_share = check_fraction("norm_share", self.norm_share)
        row_norm: Any = 1.0 if self._without_bound() else self.row_norm
        return PrivacyBudget(
            epsilon=self.epsilon,
            delta=self.delta,
            relation=self.relation,  # type: ignore[arg-type]
            row_norm=row_norm,
            mean_norm=row_norm if self.center_norm is None else self.center_norm,
            mean_share=share if self._has_private_centre() else 0.0,
            norm_share=norm_share if self._has_private_norm() else 0.0,
            quantile=self.norm_quantile,
        )

    def _chosen(self, budget: PrivacyBudget, X: Rows, width: int) -> Any:
        """Return the mechanism, or the name of the one that "auto" stands for."""
        k = check_count("n_components", self.n_components, maximum=width)
        if not isinstance(self.mechanism, str) or self.mechanism != "auto":
            return self.mechanism
        known = budget.epsilon, budget.delta, budget.relation
        return recommended(*known, width, k, restarts=restarts(X))

    def _has_private_norm(self) -> bool:
        return isinstance(self.row_norm, str) and self.row_norm == "private"

    def _without_bound(self) -> bool:
        """Say whether no bound on rows is given; raise for another word."""
        if not isinstance(self.row_norm, str):
            return False
        if self.row_norm not in ("private", "directions"):
            raise InputError(
                "row_norm must be a finite number > 0, 'private' or 'directions', "
                f"got {self.row_norm!r}"
            )
        if self.center_norm is None and self._has_private_centre():
            raise InputError(
                "center_norm must be given for a private centre of rows whose "
                f"row_norm is {self.row_norm!r}"
            )
        return True

    def _has_private_centre(self) -> bool:
        """Say whether the centre is private; raise if it is none of those allowed."""
        if isinstance(self.center, str | bool | None) and self.center is not False:
            if self.center == "private":
                return True
            raise InputError(
                f"center must be False, a public point or 'private', got "
                f"{self.center!r}: the sample mean depends on every row, and a "
                "second-moment matrix about it has no sensitivity that is proven here"
            )
        return False

    def _check_rows(self, X: Any) -> tuple[Any, int]:
        """Return the data as they are to be read, and the number of features."""
        if is_table(X):
            # What is not finite is found in passing. No rows are rows.
            X = validated(self, X, ensure_all_finite=False, ensure_min_samples=0)
            return X, int(X.shape[1])
        parts = {"centre": self._has_private_centre(), "norm": self._has_private_norm()}
        private = [part for part in parts if parts[part]]
        if private and not restarts(X):
            raise InputError(
                f"a private {private[0]} takes two passes over X, but an iterator can "
                f"be read once only, got {type(X).__name__}"
            )
        width, X = peek(X)
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = width
        return X, width

    def _centre(self, X: Any, width: int, plan: FitPlan, rng: Rng) -> Array:
        mean = plan.centre(X, rng=rng)
        if mean is not None:
            return mean
        if self.center is False:
            return np.zeros(width)
        centre = check_real("center", self.center, f"numbers of shape ({width},)")
        if centre.shape != (width,):
            raise InputError(
                f"center must have shape ({width},), one entry for each feature, "
                f"got shape {centre.shape}"
            )
        return check_matrix("center", [centre])[0].copy()
