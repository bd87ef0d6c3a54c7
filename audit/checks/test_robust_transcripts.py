"""Robust PCA at its paper's parameters, watched step by step.

Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML 2022,
section 5.1: N = T = 2000, D = 20, r = 2, epsilon = 0.8, delta = 1/sqrt N, batches of
B = 20. The published noise of random batches must fall within 100 runs a side, descent
without any within 20, and the corrected ones must not.

Type-I error: an audit refutes a true claim with probability at most 1e-9 (at confidence
0.999 where a false one must fall); seeds are fixed. Runs of 2000 steps on 2000 rows
take a second each, and the likelihoods of their transcripts about as long, so all of
these are hard:

    pytest audit/ -m hard -k robust_transcripts -rP
"""

from math import sqrt

import pytest

from dpaudit.algorithms import CATALOGUE
from dpaudit.algorithms.robust.pairs import odd_pair, shown_pair
from dpaudit.audit import Budget, Verdict, audit
from dpaudit.mechanism import Mechanism

ROWS, LENGTH, COMPONENTS = 2000, 20, 2
EPSILON, DELTA = 0.8, 1 / sqrt(ROWS)
NEARLY_CERTAIN = 1 - 1e-9


def at_paper_size(name: str, **options: object) -> Mechanism:
    """Return a mechanism of the catalogue with the paper's parameters."""
    build = CATALOGUE[name].constructor
    options = {"iterations": ROWS} | options
    return build(EPSILON, DELTA, n_components=COMPONENTS, **options)


@pytest.mark.hard
@pytest.mark.parametrize("name", ["dp-sggd-published", "dp-sgd-reap-published"])
def test_published_noise_of_random_batches_falls(name: str) -> None:
    result = audit(
        at_paper_size(name),
        pair=odd_pair(COMPONENTS, LENGTH, count=ROWS - 1),
        layer="transcript",
        confidence=0.999,
        budget=100,
    )
    print(result)
    assert result.verdict is Verdict.REFUTED


@pytest.mark.hard
def test_no_noise_falls() -> None:
    # After all steps both datasets lead to one subspace, but for rounding.
    result = audit(
        at_paper_size("noiseless-ggd", iterations=20),
        pair=shown_pair(COMPONENTS, LENGTH, count=ROWS - 1),
        confidence=0.999,
        budget=20,
    )
    print(result)
    assert result.verdict is Verdict.REFUTED


@pytest.mark.hard
@pytest.mark.parametrize(
    ("name", "runs"), [("dp-sggd", 100), ("dp-sgd-reap", 100), ("dp-ggd", 60)]
)
def test_corrected_noise_stands(name: str, runs: int) -> None:
    options = {} if name == "dp-ggd" else {"rows": ROWS}
    result = audit(
        at_paper_size(name, **options),
        pair=shown_pair(COMPONENTS, LENGTH, count=ROWS - 1),
        layer="transcript",
        confidence=NEARLY_CERTAIN,
        budget=Budget(runs, stop=False),
    )
    print(result)
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.samples == runs
