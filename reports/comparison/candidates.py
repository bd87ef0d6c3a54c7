"""Who is compared: mechanisms of the catalogue, and the user's own, of several makes.

The user's own is an object or a function, as ``dpaudit audit MODULE:OBJECT`` takes it,
or what makes one:

- a class or function with a parameter ``epsilon`` is called with the epsilon of each
  point, and with ``delta``, ``relation``, ``row_norm`` and ``n_components`` as far as
  it has parameters of these names;
- a function ``(data, rng, epsilon, ...)`` is given them the same way;
- a class with ``fit`` and ``random_state`` whose instances have ``components_`` is
  fitted anew for each release (`dpaudit.adapters.from_estimator`), and releases them;
- anything else is taken as it is, at the epsilon of its own claim.

``NAME@private`` and ``NAME@directions`` are a mechanism of the catalogue as
`dpaudit.PrivatePCA` runs it without a bound on rows (`WithoutBound`). They see rows
that are clipped to the public norm, as others do, which changes nothing unless that is
below their own.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from dpaudit.adapters import from_estimator
from dpaudit.algorithms import entry
from dpaudit.arrays import Array
from dpaudit.attributes import check_awaited
from dpaudit.claims import ApproxDP, Claim, PureDP
from dpaudit.errors import DPAuditError, InputError, MechanismError
from dpaudit.mechanism import HasComponents
from dpaudit.neighbours import Relation
from dpaudit.outputs import raised_by_signal, telling_interrupts
from dpaudit.printable import printable, said
from dpaudit.subspace import top_components
from dpaudit.validation import check_real

_ROUNDING = 1 + 1e-9
_MOST_COMPONENTS = {"exponential-pca-acg": 3}  # with more, a draw may never end
_DEPENDENT = 1e-12  # the sine of the angle of a column to those before it


@dataclass(frozen=True)
class Setting:
    """What all candidates have in common."""

    delta: float  # of the claims, in [0, 1)
    relation: Relation
    row_norm: float  # public bound on the length of a row
    n_components: int  # k


@dataclass(frozen=True)
class Built:
    """A mechanism at one epsilon."""

    mechanism: Any
    claim: Claim  # what it is held to
    # whether it takes rows in the unit ball, and has no row norm to be told
    unit_rows: bool = False

    def release(self, rows: Any, rng: np.random.Generator) -> Any:
        """Return one release, of any form, on rows or on what is read of them."""
        one: Callable[..., Any] | None = getattr(self.mechanism, "release", None)
        return self.mechanism(rows, rng) if one is None else one(rows, rng=rng)


@dataclass(frozen=True)
class WithoutBound:
    """A mechanism of the catalogue on rows clipped to another norm; makes one."""

    name: str
    row_norm: str  # as `PrivatePCA` takes it

    @classmethod
    def of(cls, name: str) -> "WithoutBound | None":
        """Return what ``NAME@private`` stands for, or None without an @."""
        base, at, norm = name.partition("@")
        if not at:
            return None
        entry(base)
        if norm not in ("private", "directions"):
            raise InputError(
                f"{printable(name)} must end in @private or @directions: any other "
                "norm is the public one"
            )
        return cls(base, norm)

    def __call__(
        self, epsilon: float, delta: float, relation: Relation, n_components: int
    ) -> Any:
        from dpaudit import PrivatePCA

        pca = PrivatePCA(
            n_components,
            mechanism=self.name,
            epsilon=epsilon,
            delta=delta,
            relation=relation,
            row_norm=self.row_norm,
        )
        claim = _claim(epsilon, delta if entry(self.name).approximate else 0.0)
        how: Any = {"extract": _fitted_components, "fit": _fit_quietly}
        return from_estimator(pca, **how, claim=claim, relation=relation)


@dataclass(frozen=True)
class ComparedMechanism:
    """A mechanism at any epsilon."""

    name: str  # in the catalogue, or what to call the user's own
    setting: Setting
    own: Any = None  # the user's; without it, the catalogue's

    @property
    def makes(self) -> bool:
        """Whether it is made for each epsilon, and not taken as it is."""
        return self.own is None or "epsilon" in _parameters(self.own)

    def points(self, epsilons: tuple[float, ...]) -> tuple[float, ...]:
        """Return where it is measured: as asked, or at its own claim's epsilon alone.

        Raises `InputError` if it neither takes an epsilon nor claims one.
        """
        if self.makes:
            return epsilons
        claim = _claim_of(self._made(self._given(epsilons[0])))
        if claim is None:
            raise InputError(
                f"{self.name} takes no epsilon and states no claim: give a class or "
                "function with a parameter epsilon, or an object with a claim"
            )
        own = _epsilon_of(claim, self.setting.delta)
        if not np.isfinite(own):
            raise InputError(
                f"{self.name} claims {claim}, which promises nothing at delta = "
                f"{self.setting.delta:g}"
            )
        return (own,)

    def build(self, epsilon: float) -> Built:
        """Return the mechanism at an epsilon of its `points`.

        Raises `InputError` if it cannot be had there, or makes its claim under another
        relation or for more than that epsilon and delta; `MechanismError` if the user's
        code raises.
        """
        if self.own is None:
            return self._of_the_catalogue(epsilon)
        given = self._given(epsilon)
        mechanism = self._made(given)
        claim = _claim_of(mechanism)
        if claim is None:
            claim = _claim(epsilon, given.get("delta", 0.0))
        elif (
            claim.delta_at(epsilon * _ROUNDING) > self.setting.delta * _ROUNDING + 1e-15
        ):
            raise InputError(
                f"{self.name} was asked for epsilon = {epsilon:g} and delta = "
                f"{self.setting.delta:g}, and claims {claim}"
            )
        stated = getattr(mechanism, "relation", None)
        if stated is not None and stated != self.setting.relation:
            raise InputError(
                f"{self.name} states its claim under {printable(stated)}, not "
                f"{self.setting.relation}"
            )
        return Built(mechanism, claim)

    def _of_the_catalogue(self, epsilon: float) -> Built:
        chosen, setting = entry(self.name), self.setting
        most = _MOST_COMPONENTS.get(self.name, setting.n_components)
        if setting.n_components > most:
            raise InputError(
                f"{self.name} is drawn by rejection, which may never end for more than "
                f"{most} components, got {setting.n_components}"
            )
        options: dict[str, Any] = {}
        if chosen.has_row_norm:
            options["row_norm"] = setting.row_norm
        if chosen.has_components:
            options["n_components"] = setting.n_components
        mechanism = chosen.build(
            epsilon=epsilon, delta=setting.delta, relation=setting.relation, **options
        )
        if not isinstance(mechanism, HasComponents):
            raise InputError(
                f"{self.name} releases nothing that components follow from"
            )
        return Built(mechanism, mechanism.claim, not chosen.has_row_norm)

    def _given(self, epsilon: float) -> dict[str, Any]:
        """Return the arguments that the user's own takes; an instance takes none."""
        known = _parameters(self.own)
        if not self.makes and not isinstance(self.own, type):
            return {}
        values = {"epsilon": epsilon, **vars(self.setting)}
        return {name: value for name, value in values.items() if name in known}

    def _made(self, given: Mapping[str, Any]) -> Any:
        """Return the user's mechanism, made with these arguments if need be."""
        own = self.own
        maker = isinstance(own, type) or bool(given)
        if isinstance(own, type) and hasattr(own, "fit") and not _releases(own):
            if "random_state" not in _parameters(own):
                raise InputError(
                    f"{self.name} has fit and no random_state, so that its randomness "
                    "cannot be seeded"
                )
            claim = None
            if "epsilon" in given:
                claim = _claim(given["epsilon"], given.get("delta", 0.0))
            return from_estimator(
                partial(own, **given), extract=_fitted_components, claim=claim
            )
        wanted = _wanted(own, given) if maker else []
        if wanted and wanted != list(_parameters(own))[:2]:
            raise InputError(
                f"{self.name} cannot be called: nothing is known of its parameters "
                f"{', '.join(map(printable, wanted))}"
            )
        if maker and not wanted:
            with blamed(self.name):
                own = own(**given)
        elif given:
            own = partial(own, **given)
        if _releases(own):
            return own
        if hasattr(own, "fit") and hasattr(own, "get_params"):
            return from_estimator(
                own, extract=_fitted_components, claim=_fitted_claim(own)
            )
        if not callable(own):
            raise InputError(
                f"{self.name} must be a mechanism or what makes one, got an object of "
                f"type {type(own).__name__}"
            )
        return own


def basis_of(name: str, built: Built, release: Any, setting: Setting, d: int) -> Array:
    """Return the components of one release.

    ``name``: of the mechanism, for messages. ``release``: a second-moment matrix (d,
    d); a basis (d, l), components in columns, l >= k; a vector (d,); a dict with, or an
    object that has, ``components`` in columns, or ``components_`` in rows. If the
    mechanism has `components`, that reads it. ``d``: columns of the data.

    Raises `InputError` if components cannot be had from it.

    They are (d, k), orthonormal, of the span of the first k; NaN if the release is not
    finite or they are dependent.
    """
    check_awaited(release)
    k, matrix = setting.n_components, False
    if isinstance(built.mechanism, HasComponents):
        arrays: Any = release if isinstance(release, Mapping) else np.asarray(release)
        found: Any = built.mechanism.components(arrays, k)
    else:
        found, matrix = _read(release)
    found = check_real(f"a release of {name}", found, "an array of real numbers")
    if found.ndim == 1:
        found, matrix = found[:, np.newaxis], False
    if found.ndim != 2 or len(found) != d or found.shape[1] < k:
        shape = tuple(found.shape)
        hint = " (components go in columns)" if shape[::-1] == (d, k) else ""
        raise InputError(
            f"a release of {name} must be of shape ({d}, {d}) or ({d}, {k}), got "
            f"{shape}{hint}: {k} components cannot be had from it"
        )
    none = np.full((d, k), np.nan)
    peaks = np.abs(found).max(axis=0)
    if not np.isfinite(found).all() or peaks.max() == 0:
        return none
    if matrix and found.shape == (d, d) and not _orthogonal(found / peaks.max()):
        found = found / peaks.max()  # whose squares are doubles
        if np.abs(found - found.T).max() > 1e-8:
            raise InputError(
                f"a release of {name} is a square matrix that is neither symmetric (a "
                "second moment) nor orthogonal (a basis)"
            )
        return np.asarray(top_components((found + found.T) / 2, k))
    if peaks[:k].min() == 0:
        return none
    columns = found[:, :k] / peaks[:k]
    basis, triangle = np.linalg.qr(columns / np.linalg.norm(columns, axis=0))
    if np.abs(np.diag(triangle)).min() <= _DEPENDENT:
        return none
    return np.asarray(basis)


@contextmanager
def blamed(name: str) -> Iterator[None]:
    """Turn what code of others raises into a `MechanismError` that names it."""
    with telling_interrupts():
        try:
            yield
        except BaseException as error:
            if isinstance(error, DPAuditError) or raised_by_signal(error):
                raise
            raise MechanismError(f"{name} raised {said(error)}") from error


def _read(release: Any) -> tuple[Any, bool]:
    """Return what a release holds, and whether that may be a second-moment matrix."""
    mapped = isinstance(release, Mapping)
    for key in ("components", "components_"):
        if key in release if mapped else hasattr(release, key):
            found = release[key] if mapped else getattr(release, key)
            return np.asarray(found).T if key.endswith("_") else found, False
    if mapped:
        raise InputError(
            "a release that is a dict must have components, got "
            f"{', '.join(map(printable, release)) or 'none'}"
        )
    return release, True


def _orthogonal(matrix: Array) -> bool:
    """Say whether a matrix is a multiple of an orthogonal one."""
    squared = matrix.T @ matrix
    return bool(np.allclose(squared, squared[0, 0] * np.eye(len(squared)), atol=1e-8))


def _fitted_components(fitted: Any) -> dict[str, Any]:
    """Return what an estimator releases."""
    return {"components_": fitted.components_}


def _fit_quietly(estimator: Any, rows: Array) -> Any:
    """Fit; what a fit warns of is seen in what it keeps."""
    with catch_warnings():
        simplefilter("ignore")
        return estimator.fit(rows)


def _fitted_claim(estimator: Any) -> Claim | None:
    settings = estimator.get_params()
    if not isinstance(settings.get("epsilon"), int | float):
        return None
    return _claim(settings["epsilon"], settings.get("delta") or 0.0)


def _releases(subject: Any) -> bool:
    return callable(getattr(subject, "release", None))


def _claim_of(mechanism: Any) -> Claim | None:
    stated = getattr(mechanism, "claim", None)
    return stated if isinstance(stated, Claim) else None


def _claim(epsilon: float, delta: float) -> Claim:
    return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)


def _epsilon_of(claim: Claim, delta: float) -> float:
    """Return the epsilon that is claimed at a delta, the claim's own if it has one."""
    if isinstance(claim, PureDP | ApproxDP):
        own = float(claim.parameters["epsilon"])
        if claim.delta_at(own) <= delta * _ROUNDING:
            return own
    return claim.epsilon_at(delta)


def _parameters(subject: Any) -> Mapping[str, inspect.Parameter]:
    """Return the parameters with which something can be called, none if it cannot."""
    try:
        return inspect.signature(subject).parameters
    except (TypeError, ValueError):
        return {}


def _wanted(subject: Any, given: Mapping[str, Any]) -> list[str]:
    """Return the names of what must be given besides."""
    various = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        name
        for name, parameter in _parameters(subject).items()
        if name not in given
        and parameter.default is inspect.Parameter.empty
        and parameter.kind not in various
    ]
