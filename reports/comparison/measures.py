"""What is measured of a mechanism: what it keeps of the rows, its time, its verdict.

1. At every epsilon a mechanism releases many times. Of every release the first k
   components V are held against those of PCA without noise, V*, by `MEASURES`.
2. Single releases are timed, components included, with nothing beside them.
3. The mechanism is audited: on its own worst pair or, where it names none, on a pair
   made of the data (`pair_of`). That refutes, or does not refute.

The rows are scaled down to the public norm, each by itself, and all mechanisms get the
same. PCA without noise is that of the rows as they are, so that what scaling down costs
is included. Nothing is centred: variance is about the origin.
"""

import hashlib
import json
import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpaudit.arrays import Array
from dpaudit.audit import Run, audit
from dpaudit.audit.sampling.sampler import (
    DATA,
    NEIGHBOUR,
    Opening,
    Sampler,
    fingerprint,
)
from dpaudit.datasets import load
from dpaudit.errors import DPAuditError, InputError
from dpaudit.mechanism import HasBatchedDraw, HasComponents, HasWorstCase
from dpaudit.neighbours import Pair, Relation
from dpaudit.reports.comparison.candidates import (
    Built,
    ComparedMechanism,
    Setting,
    basis_of,
    blamed,
)
from dpaudit.reports.experiment import CONFIDENCE, Record, exact
from dpaudit.rows import clip_rows
from dpaudit.streams import stream
from dpaudit.subspace import (
    captured_variance,
    principal_angles,
    second_moment,
    top_components,
)
from dpaudit.validation import check_count, check_fraction, check_matrix, check_positive

__all__ = ["MEASURES"]


MEASURES = ("captured_variance", "largest_angle_degrees", "error_ratio")
"""Of components V beside V*, those of PCA without noise, and A the second moment:
tr(V^T A V) / tr(V*^T A V*); the largest principal angle between their spans; and
||X - X V V^T||_F^2 / ||X - X V* V*^T||_F^2, NaN where V* leaves no error."""

_DIGITS_NORM = 64.0  # as in the report: half of the largest length that a row can have
_PAIR_ROWS = 100
EXACT = 1e-12
"""Of the total variance: what is less is rounding."""


@dataclass(frozen=True, eq=False)
class PCAProblem:
    """Rows, and PCA of them without noise."""

    rows: Array  # scaled down to the row norm
    moment: Array  # the second moment of the rows as they were
    basis: Array  # its first components
    scaled: int  # how many rows were longer than the norm
    source: str
    setting: Setting

    def digest(self) -> str:
        """Return what tells the rows and the setting from others."""
        found = hashlib.sha256(repr((self.rows.shape, self.setting)).encode())
        found.update(self.rows.tobytes())
        found.update(self.moment.tobytes())
        return found.hexdigest()

    def measure(self, bases: Array) -> dict[str, list[float]]:
        """Return `MEASURES` of bases, shape (size, d, k).

        NaN says that there are no components, which capture nothing.
        """
        total = float(np.trace(self.moment))
        best = float(captured_variance(self.basis, self.moment))
        some = np.isfinite(bases).all(axis=(1, 2))
        captured, angles = np.zeros(len(bases)), np.full(len(bases), 90.0)
        if some.any():
            captured[some] = captured_variance(bases[some], self.moment)
            radians = principal_angles(bases[some], self.basis)[:, -1]
            angles[some] = np.degrees(radians)
        least = total - best
        ratios = np.full(len(bases), math.nan)
        if least > EXACT * total:
            ratios = np.maximum(total - captured, least) / least
        values = (np.minimum(captured / best, 1.0), angles, ratios)
        return {
            name: each.tolist() for name, each in zip(MEASURES, values, strict=True)
        }


def problem_of(
    data: ArrayLike | None = None,
    source: str = "data",
    row_norm: float | None = None,
    n_components: int | None = None,
    delta: float = 1e-5,
    relation: Relation | str = Relation.ADD_REMOVE,
) -> PCAProblem:
    """Return rows that are scaled down, and PCA of them without noise.

    Parameters are those of `compared`.
    """
    if data is None:
        digits = load("digits")
        rows, source = digits.rows, digits.source
        row_norm = _DIGITS_NORM if row_norm is None else row_norm
    else:
        rows = check_matrix(source, data, min_rows=2)
    d = rows.shape[1]
    usual = min(10, (d + 1) // 2)
    k = usual if n_components is None else n_components
    k = check_count("components", k)
    if k > d:
        raise InputError(
            f"components must be at most the columns of the data, {d}, got {k}"
        )
    norm = check_positive("row_norm", 1.0 if row_norm is None else row_norm)
    moment = second_moment(rows)
    if np.linalg.eigvalsh(moment)[-1] <= 0:
        raise InputError(f"{source} must have rows that are not zero")
    scaled = clip_rows(rows, norm)
    return PCAProblem(
        rows=scaled,
        moment=moment,
        basis=top_components(moment, k),
        scaled=int((scaled != rows).any(axis=1).sum()),
        source=source,
        setting=Setting(
            delta=check_fraction("delta", delta, allow_zero=True),
            relation=Relation.parse(relation),
            row_norm=norm,
            n_components=k,
        ),
    )


def pair_of(rows: Array, norm: float, relation: Relation) -> Pair:
    """Return neighbours made of the data, for a mechanism that names no worst case.

    The first 100 rows, and a row of the greatest length along the axis on which they
    vary least: it is added, or takes the place of one of that length along the next
    axis. A row along an axis moves the second moment by its whole sensitivity in the
    Frobenius norm and in that of the upper triangle.

    ``norm``: none of them is longer.

    Examples
    --------
    >>> pair = pair_of(np.array([[0.0, 0.5], [0.0, 0.4]]), 1.0, Relation.ADD_REMOVE)
    >>> pair.neighbour[-1]
    array([1., 0.])
    """
    rows = rows[:_PAIR_ROWS]
    axes = np.argsort(np.einsum("ij,ij->j", rows, rows), kind="stable")
    edge = np.zeros((2, rows.shape[1]))
    edge[0, axes[0]] = norm
    if rows.shape[1] > 1:
        edge[1, axes[1]] = norm
    if relation is Relation.ADD_REMOVE:
        return Pair(rows, np.vstack([rows, edge[:1]]), Relation.ADD_REMOVE)
    first, second = (np.vstack([rows[:-1], each[np.newaxis]]) for each in edge)
    return Pair(first, second, Relation.REPLACE_ONE)


_TIMED = 5
_BATCH_BYTES = 2**26
_SHOWN = 3  # releases a side by which a mechanism is known again


def measured(
    problem: PCAProblem,
    candidate: ComparedMechanism,
    epsilon: float,
    repetitions: int,
    seed: int,
) -> Record:
    """Return `MEASURES` of so many releases, and how many of them were empty."""
    built = candidate.build(epsilon)
    rows, rng = _rows_for(problem, built), _stream(seed, candidate, epsilon, "measure")
    name, setting = candidate.name, problem.setting
    mechanism, d = built.mechanism, problem.rows.shape[1]
    bases = np.empty((repetitions, d, setting.n_components))
    with blamed(name):
        if (
            candidate.own is None
            and isinstance(mechanism, HasBatchedDraw)
            and isinstance(mechanism, HasComponents)
        ):
            batch = max(1, _BATCH_BYTES // (8 * d * d))
            for first in range(0, repetitions, batch):
                size = min(batch, repetitions - first)
                drawn = np.asarray(mechanism.draw(rows, size, rng=rng))
                bases[first : first + size] = mechanism.components(
                    drawn, setting.n_components
                )
        else:
            for i in range(repetitions):
                release = built.release(rows.copy(), rng)
                bases[i] = basis_of(name, built, release, setting, d)
    empty = int((~np.isfinite(bases).all(axis=(1, 2))).sum())
    return {**problem.measure(bases), "empty": empty}


def timed(
    problem: PCAProblem, candidate: ComparedMechanism, epsilon: float, seed: int
) -> Record:
    """Return the seconds of single releases with their components."""
    built = candidate.build(epsilon)
    rows, rng = _rows_for(problem, built), _stream(seed, candidate, epsilon, "time")
    setting, d, seconds = problem.setting, problem.rows.shape[1], []
    with blamed(candidate.name):
        # Once unmeasured: caches, page faults and lazy imports are not compared.
        for _ in range(_TIMED + 1):
            own = rows.copy()
            started = time.perf_counter()
            release = built.release(own, rng)
            basis_of(candidate.name, built, release, setting, d)
            seconds.append(time.perf_counter() - started)
    return {"seconds": seconds[1:]}


def audited(
    problem: PCAProblem,
    candidate: ComparedMechanism,
    epsilon: float,
    samples: int,
    seed: int,
) -> Record:
    """Audit a mechanism: ``verdict``, and what it is worth.

    Returns
    -------
    dict
        ``verdict`` is "not audited: ..." where there is no audit. Otherwise there are
        ``samples``, ``epsilon_lower``, ``claim`` with its ``delta`` at this epsilon,
        ``exact`` (whether the exact loss on the pair keeps it: "kept", "false" or "not
        known"), ``own_pair`` (whether the mechanism names the pair), ``witness`` (or
        None) and ``warnings``.
    """
    try:
        built = candidate.build(epsilon)
        own_pair = isinstance(built.mechanism, HasWorstCase)
        if own_pair:
            with blamed(candidate.name):
                pair = built.mechanism.worst_case()
        else:
            pair = _pair_for(problem, built)
        # Where a witness finds a mechanism that is taken as it is.
        made = candidate.makes or isinstance(candidate.own, type)
        reference = None if made or ":" not in candidate.name else candidate.name
        result = audit(
            built.mechanism,
            pair=pair,
            claim=built.claim,
            confidence=CONFIDENCE,
            budget=samples,
            seed=seed,
            run=Run(name=candidate.name, reference=reference),
        )
    except DPAuditError as error:
        return {"verdict": f"not audited: {error}"}
    witness, delta = result.witness, float(built.claim.delta_at(epsilon))
    known = {"claim": "not known"}
    if candidate.own is None:
        known = exact(built.mechanism, pair, epsilon, delta)
    return {
        "verdict": result.verdict.value,
        "samples": result.samples,
        "epsilon_lower": result.epsilon_lower,
        "claim": str(result.claim),
        "delta": delta,
        "exact": known["claim"],
        "own_pair": own_pair,
        "witness": None if witness is None else witness.to_dict(),
        "warnings": list(result.warnings),
    }


def shown(
    problem: PCAProblem, candidate: ComparedMechanism, epsilon: float, seed: int
) -> bytes:
    """Return a digest of a few releases; of none if the mechanism refuses."""
    try:
        built = candidate.build(epsilon)
        sampler = Sampler(built.mechanism, _pair_for(problem, built), seed)
        sides = (
            sampler.again(side, Opening(0, (_SHOWN,))) for side in (DATA, NEIGHBOUR)
        )
        return fingerprint(*sides)
    except DPAuditError:
        return b""


def _pair_for(problem: PCAProblem, built: Built) -> Pair:
    norm = 1.0 if built.unit_rows else problem.setting.row_norm
    return pair_of(_rows_for(problem, built), norm, problem.setting.relation)


def _rows_for(problem: PCAProblem, built: Built) -> Array:
    if not built.unit_rows:
        return problem.rows
    return clip_rows(problem.rows / problem.setting.row_norm, 1.0)


def _stream(
    seed: int, candidate: ComparedMechanism, epsilon: float, what: str
) -> np.random.Generator:
    text = json.dumps([candidate.name, epsilon, what])
    return stream(seed, int(hashlib.sha256(text.encode()).hexdigest()[:16], 16))
