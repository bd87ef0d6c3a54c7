"""A thousand assertions on correct mechanisms, and none fails.

Null: every mechanism keeps its claim. At the default confidence each assertion fails
with probability at most 1e-6, so the test does with probability at most 2e-3 in all,
and on its fixed seeds always or never. What it guards against is gross: a budget or a
seed that is mixed up between audits, an error level that is not the one promised.
"""

import itertools
from pathlib import Path

import pytest

from dpaudit import Pair, PureDP
from dpaudit.algorithms.textbook import (
    Gaussian,
    Laplace,
    LaplaceParallel,
    NoisyHist1,
    NoisyMax1,
    RandomisedResponse,
)
from dpaudit.attacks import PORTFOLIO
from dpaudit.audit.assertions import Auditor
from dpaudit.pytest_plugin import BUDGETS

ASSERTIONS, RELEASES = 1000, 300
FEW = [attack for attack in PORTFOLIO if attack.name in ("exact-loss", "identity")]


def noisy_sum(data, rng):
    return data.sum() + rng.laplace()


CORRECT = [
    (Laplace(1.0), {}),
    (Laplace(0.1), {}),
    (Gaussian.calibrated(1.0, 1e-5), {}),
    (Gaussian.from_mu(0.5), {}),
    (RandomisedResponse(1.0), {}),
    (RandomisedResponse(3.0), {}),
    (NoisyHist1(0.5), {}),
    (LaplaceParallel(0.5), {}),
    (NoisyMax1(0.5), {}),
    (noisy_sum, {"claim": PureDP(1.0), "pair": Pair([0.0], [0.0, 1.0])}),
]


@pytest.mark.hard
@pytest.mark.parametrize("seed", [0, 1])
def test_a_thousand_assertions_on_correct_mechanisms(seed):
    records = []
    auditor = Auditor(BUDGETS, records.append, Path, max_samples=RELEASES, seed=seed)
    numbered = zip(range(ASSERTIONS), itertools.cycle(CORRECT), strict=False)
    for number, (mechanism, options) in numbered:
        auditor.assert_dp(mechanism, name=f"{number}", attacks=FEW, **options)
    assert len({record["seed"] for record in records}) == ASSERTIONS
    assert all(record["passed"] for record in records)
    assert {record["samples"] for record in records} == {RELEASES}
