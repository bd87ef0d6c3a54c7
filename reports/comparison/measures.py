"""What is measured of a mechanism: what it keeps of the rows, its time, its verdict.

1. At every epsilon a mechanism releases many times. Of every release the first k
   components V are held against those of PCA without noise, V*, by `MEASURES`
   (`dpaudit.reports.comparison.problem`).
2. Single releases are timed, components included, with nothing beside them.
3. The mechanism is audited: on its own worst pair or, where it names none, on a pair
   made of the data (`pair_of`). That refutes, or does not refute.
"""

import hashlib
import json
import time
from copy import copy
from typing import Any, cast

import numpy as np

from dpaudit.algorithms.shared.bases import slices
from dpaudit.arrays import Array
from dpaudit.audit import Run, audit
from dpaudit.audit.sampling.sampler import DATA, NEIGHBOUR, Opening, Sampler
from dpaudit.batches import fingerprint
from dpaudit.errors import DPAuditError, InputError
from dpaudit.gram import Gram
from dpaudit.mechanism import HasBatchedDraw, HasComponents, HasWorstCase
from dpaudit.neighbours import Pair
from dpaudit.reports.comparison.candidates import (
    Built,
    ComparedMechanism,
    basis_of,
    blamed,
)
from dpaudit.reports.comparison.problem import PCAProblem, pair_of
from dpaudit.reports.experiment import CONFIDENCE, Record, exact
from dpaudit.rows import clip_rows
from dpaudit.streams import stream

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
    mechanism, d = built.mechanism, problem.shape[1]
    bases = np.empty((repetitions, d, setting.n_components))
    with blamed(name):
        if (
            candidate.own is None
            and isinstance(mechanism, HasBatchedDraw)
            and isinstance(mechanism, HasComponents)
        ):
            for some in slices(repetitions, _BATCH_BYTES // (8 * d * d)):
                size = some.stop - some.start
                drawn = np.asarray(mechanism.draw(cast(Any, rows), size, rng=rng))
                bases[some] = mechanism.components(drawn, setting.n_components)
        else:
            for i in range(repetitions):
                release = built.release(copy(rows), rng)
                bases[i] = basis_of(name, built, release, setting, d)
    empty = int((~np.isfinite(bases).all(axis=(1, 2))).sum())
    return {**problem.measure(bases), "empty": empty}


def timed(
    problem: PCAProblem, candidate: ComparedMechanism, epsilon: float, seed: int
) -> Record:
    """Return the seconds of single releases with their components."""
    built = candidate.build(epsilon)
    rows, rng = _rows_for(problem, built), _stream(seed, candidate, epsilon, "time")
    setting, d, seconds = problem.setting, problem.shape[1], []
    with blamed(candidate.name):
        # Once unmeasured: caches, page faults and lazy imports are not compared.
        for _ in range(_TIMED + 1):
            own = copy(rows)
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

    ``verdict`` is "not audited: ..." where there is no audit. Otherwise there are
    ``samples``, ``epsilon_lower``, ``claim`` with its ``delta`` at this epsilon,
    ``exact`` (whether the exact loss on the pair keeps it: "kept", "false" or "not
    known"), ``own_pair`` (whether the mechanism names the pair), ``witness`` (or None)
    and ``warnings``.
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
    rows = _rows_for(problem, built)
    if isinstance(rows, Gram):
        raise InputError("it names no pair, and none is made of a file read in blocks")
    return pair_of(rows, norm, problem.setting.relation)


def _rows_for(problem: PCAProblem, built: Built) -> Array | Gram:
    rows = problem.rows
    if isinstance(rows, Gram) or not built.unit_rows:
        return rows
    return clip_rows(rows / problem.setting.row_norm, 1.0)


def _stream(
    seed: int, candidate: ComparedMechanism, epsilon: float, what: str
) -> np.random.Generator:
    text = json.dumps([candidate.name, epsilon, what])
    return stream(seed, int(hashlib.sha256(text.encode()).hexdigest()[:16], 16))
