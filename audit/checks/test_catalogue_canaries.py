"""Trace the rows of a hard instance through every mechanism that releases components.

Sixteen codewords, each in the data or not by a fair coin (eight pairs under
replace-one): `dpaudit.audit.audit_canaries`. No true claim may be refuted, and
principal components without noise must be, in forty runs. Two runs refute nothing that
is claimed at epsilon 1, with noise or without: they show that canaries come to each
mechanism, their scores come back, and the second run has other noise.

Type-I error: 1e-6 for each audit of a true claim; there are some 60. Those claims that
are known to be false are left out: few canaries need not show it.

    pytest audit/ -k catalogue_canaries -rP
"""

from functools import cache

import numpy as np
import pytest

from dpaudit import PureDP
from dpaudit.algorithms import CATALOGUE, Entry
from dpaudit.attacks import TracingAttack
from dpaudit.audit import Verdict, audit_canaries
from dpaudit.fingerprinting import HardInstance
from dpaudit.neighbours import Relation
from dpaudit.subspace import second_moment

RUNS, CONFIDENCE = 40, 1 - 1e-6


@cache
def canaries() -> TracingAttack:
    """Return the attack, which has the canaries."""
    rng = np.random.default_rng(0)
    return TracingAttack(
        HardInstance.generate(16, 64, cutoff=0.02, pad_ratio=1, rng=rng)
    )


def takes_few_rows(entry: Entry) -> bool:
    """Say whether the mechanism makes components of the rows that there are."""
    if entry.extra is not None or entry.expected_refuted:
        return False
    if entry.name == "k-norm-covariance":  # it refuses rows that are so long
        return False
    # Streaming mechanisms refuse so few rows.
    return entry.family in ("covariance", "subspace", "robust", "online")


@pytest.mark.parametrize(
    ("entry", "relation"),
    [
        pytest.param(entry, relation, id=f"{entry.name}-{relation}")
        for entry in CATALOGUE.values()
        if takes_few_rows(entry)
        for relation in entry.relations
    ],
)
def test_canaries_refute_no_true_claim(entry: Entry, relation: Relation) -> None:
    mechanism = entry.build(relation=relation)
    # Some rows that are always there: a mechanism may refuse an empty dataset.
    fixed = np.eye(canaries().rows.shape[1])[:4]
    result = audit_canaries(
        mechanism,
        canaries(),
        fixed=fixed,
        relation=relation,
        runs=2,
        guesses=4,
        confidence=CONFIDENCE,
    )
    print(result)
    assert result.verdict is Verdict.NOT_REFUTED


def test_canaries_refute_components_without_noise() -> None:
    result = audit_canaries(
        lambda data, rng: second_moment(data),
        canaries(),
        claim=PureDP(1.0),
        relation="add-remove",
        runs=RUNS,
        confidence=0.999,
    )
    assert result.verdict is Verdict.REFUTED, str(result)
