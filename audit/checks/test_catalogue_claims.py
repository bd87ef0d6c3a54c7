"""Audit every claim of the catalogue by sampling.

A claim that is true is refuted with probability at most 1 - CONFIDENCE per check; with
the handful of checks here, all seeded, a failure means that code has changed. A claim
known to be false must fall, within the stated number of releases.
"""

import pytest

from dpaudit import Pair, Relation
from dpaudit.algorithms import CATALOGUE, Entry
from dpaudit.audit import Verdict, audit, verify

CONFIDENCE = 0.999
FALSE_CLAIMS_FALL_WITHIN = 200
MAX_SAMPLES = 50_000
DIMENSION = 3

entries = pytest.mark.parametrize(
    "entry", [pytest.param(e, id=e.name) for e in CATALOGUE.values()]
)


@entries
@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_claim(entry: Entry, relation: Relation) -> None:
    mechanism = entry.build(epsilon=1.0, relation=relation)
    budget = FALSE_CLAIMS_FALL_WITHIN if entry.expected_refuted else MAX_SAMPLES
    result = audit(
        mechanism,
        pair=mechanism.worst_case(DIMENSION),
        confidence=CONFIDENCE,
        max_samples=budget,
    )
    expected = Verdict.REFUTED if entry.expected_refuted else Verdict.NOT_REFUTED
    assert result.verdict is expected, str(result)


@entries
def test_bounds_stay_below_what_is_exact(entry: Entry) -> None:
    """The lower bounds of a long run do not pass the exact privacy of the pair."""
    mechanism = entry.build(epsilon=1.0)
    pair: Pair = mechanism.worst_case(2)
    exact = mechanism.exact_claim(pair)
    result = audit(
        mechanism,
        pair=pair,
        confidence=CONFIDENCE,
        max_samples=MAX_SAMPLES,
        stop_when_refuted=False,
    )
    assert result.epsilon_lower <= exact.epsilon(result.at_delta)
    assert result.delta_lower <= exact.delta(result.at_epsilon)


def test_refutation_is_confirmed_on_fresh_randomness() -> None:
    false_claims = [e for e in CATALOGUE.values() if e.expected_refuted]
    assert false_claims
    for entry in false_claims:
        mechanism = entry.build(epsilon=1.0)
        result = audit(mechanism, confidence=CONFIDENCE)
        assert result.witness is not None
        assert verify(result.witness, seed=1).confirmed
