"""What is measured: one function per experiment, from a cell to tidy records.

See `dpaudit.reports.experiment.Measure`.
"""

import json
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpaudit.algorithms import entry
from dpaudit.audit import AuditResult, audit
from dpaudit.claims import Claim
from dpaudit.errors import UnsupportedError
from dpaudit.mechanism import (
    HasBatchedDraw,
    HasComponents,
    HasExactClaim,
    HasTrueEpsilon,
    HasWorstCase,
    Mechanism,
)
from dpaudit.neighbours import Pair
from dpaudit.reports.experiment import Cell, Record
from dpaudit.reports.problems import problem_named
from dpaudit.rows import clip_rows
from dpaudit.subspace import captured_variance_share, second_moment, top_components

__all__ = [
    "BASELINE",
    "FIRST_COMPONENT",
    "RANDOM_SUBSPACE",
    "audited_privacy",
    "audited_suite",
    "captured_variance",
    "exact_privacy",
    "reference_variance",
    "run_time",
]

BASELINE = "non-private-pca"
FIRST_COMPONENT = "first-component-alone"
RANDOM_SUBSPACE = "random-subspace"

_ROUNDING = 1 + 1e-9


def exact_privacy(cell: Cell) -> list[Record]:
    """Hold the claim against the exact privacy on the mechanism's worst pair.

    Returns
    -------
    list of dict
        One record: ``claimed_epsilon``, ``claimed_delta``; ``exact_epsilon`` at the
        claimed delta and ``exact_delta`` at the claimed epsilon (NaN where not known);
        ``claim``: ``"kept"``, ``"false"`` or ``"not known"``.
    """
    mechanism = cell.build()
    epsilon = cell.point["epsilon"]
    delta = float(mechanism.claim.delta(epsilon))
    return [
        {
            "claimed_epsilon": epsilon,
            "claimed_delta": delta,
            **_exact(mechanism, _worst_case(mechanism), epsilon, delta),
        }
    ]


def audited_privacy(cell: Cell) -> list[Record]:
    """Audit the claim on the mechanism's worst pair.

    See `_audits`; the exact privacy is that of the same pair.
    """
    mechanism = cell.build()
    pair = _worst_case(mechanism)
    result, first = _audits(cell, mechanism, pair)
    witness = None if first is None else first.witness
    return [
        {
            "source": entry(cell.mechanism).source,
            "relation": str(result.relation),
            "claim_text": str(result.claim),
            "claimed_epsilon": result.at_epsilon,
            "claimed_delta": result.at_delta,
            **_exact(mechanism, pair, result.at_epsilon, result.at_delta),
            "verdict": result.verdict.value,
            "epsilon_lower": result.epsilon_lower,
            "delta_lower": result.delta_lower,
            "samples": result.samples,
            "samples_to_refute": math.nan if first is None else first.samples,
            "attack": (first or result).attack,
            "log_evidence": result.log_evidence,
            "detectable_epsilon": _number(result.detectable_epsilon),
            "rarest_event": result.rarest_event,
            "confidence": result.confidence,
            "seed": result.seed,
            "witness": None if witness is None else json.dumps(witness.to_dict()),
        }
    ]


def audited_suite(cell: Cell) -> list[Record]:
    """Audit the claim on the mechanism's worst pair, beside its true epsilon.

    See `_audits`. The true epsilon is that over all neighbours (NaN where not known).
    """
    mechanism = cell.build()
    result, first = _audits(cell, mechanism, _worst_case(mechanism))
    truth = math.nan
    if isinstance(mechanism, HasTrueEpsilon):
        truth = mechanism.true_epsilon
    return [
        {
            "source": entry(cell.mechanism).source,
            "summary": entry(cell.mechanism).summary,
            "relation": str(result.relation),
            "claimed_epsilon": result.at_epsilon,
            "claimed_delta": result.at_delta,
            "true_epsilon": truth,
            "verdict": result.verdict.value,
            "epsilon_lower": result.epsilon_lower,
            "samples": result.samples,
            "samples_to_refute": math.nan if first is None else first.samples,
            "attack": (first or result).attack,
            "confidence": result.confidence,
            "seed": result.seed,
        }
    ]


def captured_variance(cell: Cell) -> list[Record]:
    """Return the share of the best possible variance that each release captures.

    The components are those of releases on clipped rows; their variance is measured
    on the rows as they are, so that what clipping costs is included. A release that
    says that there are no components captures nothing.
    """
    problem = problem_named(cell.options["dataset"])
    mechanism = cell.build(row_norm=cell.options["row_norm"])
    if not (
        isinstance(mechanism, HasBatchedDraw) and isinstance(mechanism, HasComponents)
    ):
        raise UnsupportedError(f"{cell.mechanism} does not draw components in batches")
    releases = np.asarray(mechanism.draw(problem.rows, cell.size, rng=cell.rng()))
    components = mechanism.components(releases, cell.options["n_components"])
    some = np.isfinite(components).all(axis=(1, 2))
    shares = np.zeros(cell.size)
    shares[some] = captured_variance_share(components[some], problem.moment)
    return [
        {"repetition": cell.first + i, "captured_share": float(share)}
        for i, share in enumerate(shares)
    ]


def reference_variance(cell: Cell) -> list[Record]:
    """Return what is captured without any privacy noise, by three yardsticks.

    ``BASELINE`` is PCA of the clipped rows, ``FIRST_COMPONENT`` its first component
    alone, ``RANDOM_SUBSPACE`` the expectation over uniformly random subspaces,
    k tr(A) / d, all as shares of the best that k components can do.
    """
    problem, k = problem_named(cell.options["dataset"]), cell.options["n_components"]
    optimum = np.linalg.eigvalsh(problem.moment)[-k:].sum()
    clipped = second_moment(clip_rows(problem.rows, cell.options["row_norm"]))
    match cell.mechanism:
        case "non-private-pca":
            basis = top_components(clipped, k)
            share = float(captured_variance_share(basis, problem.moment))
        case "first-component-alone":
            first = top_components(clipped, 1)[:, 0]
            share = float(first @ problem.moment @ first / optimum)
        case _:
            mean = np.trace(problem.moment) / len(problem.moment)
            share = float(k * mean / optimum)
    return [{"captured_share": share}]


def run_time(cell: Cell) -> list[Record]:
    """Time a fit (release and eigenvectors) and the drawing of many releases.

    Each fit is timed right beside a fit without privacy on the same rows: the ratio
    of the two is less at the mercy of the machine than either.
    """
    rows, k = problem_named(cell.options["dataset"]).rows, cell.options["n_components"]
    norm, batch = cell.options["row_norm"], cell.options["batch"]
    rng = cell.rng()

    def without_privacy() -> object:
        return top_components(second_moment(clip_rows(rows, norm)), k)

    mechanism = None if cell.mechanism == BASELINE else cell.build(row_norm=norm)

    def fit() -> object:
        if mechanism is None:
            return without_privacy()
        assert isinstance(mechanism, HasComponents)
        return mechanism.components(np.asarray(mechanism.release(rows, rng=rng)), k)

    # Twice unmeasured: caches, page faults and lazy imports are not what is compared.
    timed = [(_seconds(without_privacy), _seconds(fit)) for _ in range(cell.size + 2)]
    throughput = [math.nan] * cell.size
    if isinstance(mechanism, HasBatchedDraw):
        draw = partial(mechanism.draw, rows, batch, rng=rng)
        throughput = [batch / _seconds(draw) for _ in range(cell.size)]
    return [
        {
            "repetition": cell.first + i,
            "fit_seconds": seconds,
            "ratio": seconds / baseline,
            "releases_per_second": throughput[i],
        }
        for i, (baseline, seconds) in enumerate(timed[2:])
    ]


def _audits(
    cell: Cell, mechanism: Mechanism, pair: Pair
) -> tuple[AuditResult, AuditResult | None]:
    """Audit to the end, for the tightest bounds, and up to a refutation, if there is.

    The second audit says how many releases a refutation takes. Both get the user's
    seed itself, so that ``dpaudit audit`` with that seed repeats them.
    """
    settings: dict[str, Any] = {
        "pair": pair,
        "confidence": cell.options["confidence"],
        "max_samples": cell.options["max_samples"],
        "seed": cell.seed,
        "name": cell.mechanism,
    }
    result = audit(mechanism, stop_when_refuted=False, **settings)
    return result, audit(mechanism, **settings) if result.refuted else None


def _worst_case(mechanism: Mechanism) -> Pair:
    if not isinstance(mechanism, HasWorstCase):
        raise UnsupportedError(f"{type(mechanism).__name__} names no worst case")
    return mechanism.worst_case()


def _exact(
    mechanism: Mechanism, pair: Pair, epsilon: float, delta: float
) -> dict[str, Any]:
    """Return the exact epsilon at `delta`, the exact delta at `epsilon`, and which."""
    unknown = {"exact_epsilon": math.nan, "exact_delta": math.nan, "claim": "not known"}
    if not isinstance(mechanism, HasExactClaim):
        return unknown
    try:
        exact: Claim = mechanism.exact_claim(pair)
    except UnsupportedError:
        return unknown
    # Calibrations solve for equality: a rounding error beyond it is no violation.
    kept = exact.delta(epsilon * _ROUNDING) <= delta * _ROUNDING
    return {
        "exact_epsilon": exact.epsilon(delta),
        "exact_delta": float(exact.delta(epsilon)),
        "claim": "kept" if kept else "false",
    }


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
