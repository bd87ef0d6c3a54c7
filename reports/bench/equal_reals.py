"""Study G: mechanisms that are right over the real numbers, and look wrong on doubles.

Each releases a Laplace sum, at the edge of its claim, and beside it a number that is
the same real number on any data, computed in a way that depends on the data: so its
last bits do. An audit of real numbers must not refute any; at a confidence of
1 - 1e-6, not one in a thousand audits. They come in units from 1e-300 to 1e300, and
under both relations.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit import audit
from dpaudit.claims import PureDP
from dpaudit.neighbours import Pair, Relation
from dpaudit.reports.bench.study import NOTES, Figure, Records, Study, TargetRow, Unit
from dpaudit.reports.experiment import Record
from dpaudit.reports.sections import sizes
from dpaudit.reports.words import count

CONFIDENCE = 1 - 1e-6
UNITS = (1e-300, 1e-160, 1e-20, 1.0, 1e9, 1e160, 1e300)
_RELEASES = 60
_SIZES = sizes(audits=(1, 6, 40))  # of each form

Form = Callable[[Array, np.random.Generator], Any]

_PUBLIC = np.random.default_rng(2026)
_WEIGHTS = _PUBLIC.random(40)
_MATRIX = _PUBLIC.normal(size=(6, 6))
_OTHER = _PUBLIC.normal(size=(6, 6))
_SYMMETRIC = _MATRIX + _MATRIX.T


def _shuffled(data: Array, of: Any) -> NDArray[Any]:
    """Return public values in an order that depends on the data."""
    order = np.random.default_rng(int(1e6 * data.sum())).permutation(len(of))
    return np.asarray(of)[order]


def _rotation(data: Array) -> Array:
    rng = np.random.default_rng(int(1e6 * data.sum()))
    return np.asarray(np.linalg.qr(rng.normal(size=(4, 4)))[0])


def _is_even(data: Array) -> bool:
    return int(1e6 * data.sum()) % 2 == 0


def _running_mean(values: Array) -> float:
    mean = 0.0
    for place, value in enumerate(values, 1):
        mean += (value - mean) / place
    return mean


def _rotated_noise(data: Array, rng: np.random.Generator) -> Array:
    rotation, noise = _rotation(data), rng.normal(size=4)
    return np.concatenate([noise, rotation.T @ (rotation @ noise)])


FORMS: dict[str, Form] = {
    "reciprocal": lambda x, _: 1 / len(x) * len(x) * (1 / x.sum()) * x.sum(),
    "decimals": lambda x, _: 0.1 + 0.2 if _is_even(x) else 0.3,
    "order of a sum": lambda x, _: sum(_shuffled(x, _WEIGHTS)),
    "way of a sum": lambda x, _: sum(_WEIGHTS) if _is_even(x) else math.fsum(_WEIGHTS),
    "order of a product": lambda x, _: math.prod(_shuffled(x, _WEIGHTS + 0.5)),
    "harmonic sum": lambda x, _: sum(1 / k for k in _shuffled(x, range(1, 90))),
    "running mean": lambda x, _: _running_mean(_shuffled(x, _WEIGHTS)),
    "normalised weights": lambda x, _: (np.exp(-x) / np.exp(-x).sum()).sum(),
    "softmax of a shift": lambda x, _: (w := np.exp(_WEIGHTS[:5] + x.sum())) / w.sum(),
    "circle": lambda x, _: math.cos(x.sum()) ** 2 + math.sin(x.sum()) ** 2,
    "complex unit": lambda x, _: abs(np.exp(1j * x.sum())),
    "there and back": lambda x, _: math.tan(math.atan(x.sum())) / x.sum(),
    "logarithm": lambda x, _: math.exp(math.log(x.sum())) / x.sum(),
    "square root": lambda x, _: math.sqrt(x.sum()) ** 2 / x.sum(),
    "degrees": lambda x, _: math.degrees(math.radians(x.sum())) / x.sum(),
    "affine map": lambda x, _: (0.7 * x.sum() + 0.7) / (x.sum() + 1),
    "unit vector": lambda x, _: np.linalg.norm(x / np.linalg.norm(x)),
    "rotation": lambda x, _: _rotation(x) @ _rotation(x).T,
    "determinant": lambda x, _: abs(np.linalg.det(_rotation(x))),
    "order of matrices": lambda x, _: (
        (_MATRIX @ _OTHER) @ _MATRIX if _is_even(x) else _MATRIX @ (_OTHER @ _MATRIX)
    ),
    "sliced product": lambda x, _: sum(
        part @ part for part in np.split(_WEIGHTS, [int(x.sum()) % 39 + 1])
    ),
    "eigenvalues": lambda x, _: np.linalg.eigvalsh(
        _SYMMETRIC[np.ix_(order := _shuffled(x, range(6)), order)]
    ),
    "eigenvectors": lambda x, _: np.abs(
        np.linalg.eigh(_SYMMETRIC[np.ix_(o := _shuffled(x, range(6)), o)])[1]
    )[np.argsort(o), -1],
    "singular values": lambda x, _: np.linalg.svd(
        _shuffled(x, _MATRIX), compute_uv=False
    ),
    "inverse": lambda x, _: (
        (np.eye(6) + x.sum() / 100) @ np.linalg.inv(np.eye(6) + x.sum() / 100)
    ),
    "linear system": lambda x, _: (
        np.linalg.solve(_MATRIX, _WEIGHTS[:6])
        if _is_even(x)
        else np.linalg.inv(_MATRIX) @ _WEIGHTS[:6]
    ),
    "Fourier transform": lambda x, _: np.fft.ifft(
        np.fft.fft(np.roll(_WEIGHTS, k := int(x.sum())))
    ).real[k],
    "centred sum": lambda x, _: (x - x.mean()).sum(),
    "variance of a constant": lambda x, _: np.var(np.full(len(x), 0.1 * x.sum())),
    "binomial formula": lambda x, _: (
        (x.sum() + 0.1) ** 2 - x.sum() ** 2 - 0.2 * x.sum() - 0.01
    ),
    "single precision": lambda x, _: np.float32(0.1) if _is_even(x) else 0.1,
    "sum in single precision": lambda x, _: _shuffled(
        x, _WEIGHTS.astype(np.float32)
    ).cumsum()[-1],
    "noise cancelled": lambda x, rng: (n := rng.normal()) + x.sum() - n - x.sum(),
    "noise scaled and back": lambda x, rng: [n := rng.normal(), n * x.sum() / x.sum()],
    "noise rotated and back": _rotated_noise,
}
"""Numbers that do not depend on the data but by rounding."""


@dataclass(frozen=True)
class EqualReals:
    """A Laplace sum beside a number that is the same real number on any data."""

    form: str  # one of `FORMS`
    unit: float = 1.0  # times which everything is released
    relation: Relation = Relation.ADD_REMOVE
    claim: ClassVar[PureDP] = PureDP(1.0)

    def release(self, data: Array, *, rng: np.random.Generator) -> Array:
        beside = FORMS[self.form](data, rng)
        total = np.clip(data, 0, 1).sum() + rng.laplace()
        return np.append(total, beside) * self.unit

    def worst_case(self, dimension: int = 1) -> Pair:
        """Return a pair on which the sum differs by 1, and the rounding, too."""
        rows = np.random.default_rng(7).random(47)
        if self.relation is Relation.ADD_REMOVE:
            return Pair(rows, np.append(rows, 1.0))
        return Pair(np.append(rows, 0.0), np.append(rows, 1.0), self.relation)


class EqualRealsStudy(Study):
    """Refutations of mechanisms that are right over the real numbers: none."""

    name = "equal-reals"
    title = "Equal reals in different floats"
    binding = True
    note = NOTES["equal-reals"].format(_RELEASES, min(UNITS), max(UNITS))

    def units(self, profile: str) -> list[Unit]:
        audits = _SIZES[profile].audits
        return [
            Unit(self.name, form, index, (("place", index),))
            for form in FORMS
            for index in range(audits)
        ]

    def measure(self, unit: Unit) -> Record:
        place = int(unit.option("place"))
        relation = list(Relation)[place % len(Relation)]
        subject = EqualReals(unit.case, UNITS[place % len(UNITS)], relation)
        result = audit(subject, confidence=CONFIDENCE, budget=_RELEASES, seed=unit.seed)
        return {"refuted": result.refuted}

    def rows(self, profile: str, records: Records) -> list[TargetRow]:
        found = self.by_case(records, "refuted")
        return [
            TargetRow.of(
                not any(found[form]),
                Figure("form", form, "what is computed in two ways", form),
                Figure("refuted", sum(found[form]), "refuted", count(sum(found[form]))),
                Figure("audits", len(found[form]), "audits", count(len(found[form]))),
            )
            for form in FORMS
            if form in found
        ]
