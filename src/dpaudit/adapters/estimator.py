"""Estimators in the style of scikit-learn, as mechanisms."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpaudit.adapters.base import Adapter
from dpaudit.arrays import Array
from dpaudit.claims import Claim
from dpaudit.errors import InputError
from dpaudit.neighbours import Relation
from dpaudit.streams import draw_seed

__all__ = ["EstimatorMechanism", "from_estimator"]


@dataclass(frozen=True)
class EstimatorMechanism(Adapter):
    """Fits an estimator, and releases a part of what it learned.

    Parameters
    ----------
    factory : callable or estimator
        See `from_estimator`, as for the rest.
    extract : callable
    fit : callable, optional
    claim : Claim, optional
    relation : Relation, optional
    """

    factory: Any
    extract: Callable[[Any], Any]
    fit: Callable[[Any, Array], Any] | None = None
    _seeded: tuple[str, ...] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("factory", "extract"):
            value = getattr(self, name)
            if not (callable(value) or (name == "factory" and _is_prototype(value))):
                raise InputError(f"{name} must be callable, got {value!r}")
        if self.fit is not None and not callable(self.fit):
            raise InputError(f"fit must be callable, got {self.fit!r}")
        seeded = _random_states(self.factory) if _is_prototype(self.factory) else None
        object.__setattr__(self, "_seeded", seeded)

    def release(self, data: Array, *, rng: np.random.Generator) -> Any:
        """Fit anew, and return what is extracted."""
        estimator = self._unfitted(rng)
        # A copy: some estimators work in place, and datasets under audit are read-only.
        rows = np.array(data, dtype=np.float64)
        fitted = estimator.fit(rows) if self.fit is None else self.fit(estimator, rows)
        return self.extract(estimator if fitted is None else fitted)

    def _unfitted(self, rng: np.random.Generator) -> Any:
        if self._seeded is None:
            return self.factory(random_state=draw_seed(rng))
        from sklearn.base import clone

        estimator: Any = clone(self.factory)
        return estimator.set_params(**{name: draw_seed(rng) for name in self._seeded})


def from_estimator(
    factory: Any,
    *,
    extract: Callable[[Any], Any],
    fit: Callable[[Any, Array], Any] | None = None,
    claim: Claim | None = None,
    relation: Relation | str | None = None,
) -> EstimatorMechanism:
    """Return a mechanism that fits an estimator and releases a part of it.

    Parameters
    ----------
    factory : callable or estimator
        ``factory(random_state=int)`` returns an estimator that is not fitted yet: a
        class or a function. An estimator itself does too, if it has scikit-learn's
        ``get_params``: it is cloned for every release, and every ``random_state`` in
        it set, those of the steps of a pipeline included.
    extract : callable
        Of the fitted estimator; returns what is published, an array or a dictionary of
        arrays. **What it leaves out is not audited.**
    fit : callable, optional
        ``fit(estimator, rows)``; by default ``estimator.fit(rows)``. For labels in the
        last column: ``lambda e, rows: e.fit(rows[:, :-1], rows[:, -1])``.
    claim : Claim, optional
        What is promised of that which is extracted.
    relation : Relation or str, optional
        Under which relation.

    Returns
    -------
    EstimatorMechanism
        Picklable if `factory`, `extract` and `fit` are.

    Raises
    ------
    InputError
        If an argument is of another kind, or an estimator has no ``random_state``.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> mechanism = from_estimator(PCA(1), extract=lambda pca: pca.components_)
    >>> data = np.array([[0.0, 1.0], [0.0, -1.0], [0.1, 0.0]])
    >>> mechanism.release(data, rng=np.random.default_rng(0)).shape
    (1, 2)
    """
    return EstimatorMechanism(
        factory,
        extract,
        fit,
        claim=claim,
        relation=relation,  # type: ignore[arg-type]
    )


def _is_prototype(factory: Any) -> bool:
    return not isinstance(factory, type) and hasattr(factory, "get_params")


def _random_states(estimator: Any) -> tuple[str, ...]:
    """Return the parameters that seed an estimator and what is inside it."""
    names = tuple(
        name
        for name in sorted(estimator.get_params(deep=True))
        if name == "random_state" or name.endswith("__random_state")
    )
    if not names:
        raise InputError(
            f"{type(estimator).__name__} has no random_state, so that its randomness "
            "cannot be seeded: give a function of random_state= that returns it"
        )
    return names
