"""What holds for every mechanism of the family: conformance, capabilities, bad input.

Type-I error: 2e-9 for each of the 31 cases of conformance (the seed is fixed).
"""

import numpy as np
import pytest
from seeded import rng

from dpaudit import Relation
from dpaudit.algorithms import DPPCA, Oja, PrivateHistogram, PrivateOja, StepSizeSearch
from dpaudit.algorithms.streaming.entries import STREAMING
from dpaudit.algorithms.streaming.minibatch_oja import BlockOja, MinibatchOja
from dpaudit.algorithms.streaming.two_stage_pca import TwoStagePCA
from dpaudit.codec import encode, rebuild
from dpaudit.mechanism import (
    HasCanonicalPairs,
    HasComponents,
    HasExactClaim,
    HasGaussianSteps,
    HasPrivacyLoss,
    HasTranscript,
)

GAUSSIAN = np.random.default_rng(0).standard_normal((400, 10))
# What is not bottom on nearly all runs.
PROMISES = {
    "private-oja": (0.5, 1e-3),
    "dp-pca-published": (30.0, 1e-2),
    "dp-pca-rank-k": (30.0, 1e-2),
    "private-histogram": (1.0, 1e-2),
    "private-histogram-published": (1.0, 1e-2),
    "private-histogram-no-threshold": (1.0, 1e-2),
    "top-eigenvalue": (1.0, 1e-2),
    "mean-estimation": (2.0, 1e-2),
    "mean-estimation-published": (2.0, 1e-2),
    "mean-estimation-constant-8": (2.0, 1e-2),
}
HISTOGRAMS = {name for name in PROMISES if "histogram" in name}
VALUES = HISTOGRAMS | {name for name in PROMISES if "mean" in name or "top" in name}
STEPS = {"minibatch-oja", "block-oja"}
entries = pytest.mark.parametrize("entry", STREAMING, ids=lambda entry: entry.name)


def made(entry):
    epsilon, delta = PROMISES.get(entry.name, (8.0, 1e-2))
    options = {"delta": delta} if entry.approximate else {}
    return entry.build(epsilon=epsilon, **options)


@entries
def test_what_they_offer(entry):
    mechanism, name = made(entry), entry.name
    assert mechanism.relation is Relation.REPLACE_ONE
    assert rebuild(encode(mechanism)) == mechanism
    assert isinstance(mechanism, HasComponents) == (name not in VALUES)
    assert isinstance(mechanism, HasTranscript) == (name not in VALUES | {"oja"})
    assert isinstance(mechanism, HasGaussianSteps) == (name in STEPS)
    # An upper bound for the last step is not the truth about it.
    assert isinstance(mechanism, HasExactClaim) == (name in HISTOGRAMS)
    assert isinstance(mechanism, HasPrivacyLoss) == (name in HISTOGRAMS)
    alone = {"oja", "private-oja", "minibatch-oja-search"}
    assert isinstance(mechanism, HasCanonicalPairs) == (name not in alone)


# Of many releases as many as fit are made side by side: of rows so long, few.
LONG = np.eye(2, 2**18)
STEP = {"iterations": 1, "epsilon": 1.0, "delta": 1e-5}
IN_PARTS = {
    "oja": (Oja(1.0, 2), LONG, 4),
    "private-oja": (PrivateOja.calibrated(1.0, 1e-5), LONG, 4),
    "minibatch-oja": (MinibatchOja.calibrated(**STEP), LONG, 4),
    "block-oja": (BlockOja.calibrated(**STEP, n_components=2), LONG, 2),
    "search": (StepSizeSearch.calibrated(**STEP), np.repeat(LONG, 3, axis=0), 1),
    "dp-pca": (DPPCA.tuned(200.0, 0.1), GAUSSIAN, 2**19 // 4000),
    "two-stage-pca": (TwoStagePCA.calibrated(200.0, 0.1), GAUSSIAN, 2**19 // 2000),
    "histogram": (PrivateHistogram.calibrated(1.0, 0.1), [0.5, 1.5] * 50, 2**17),
}


@pytest.mark.parametrize("name", list(IN_PARTS))
def test_many_releases_are_made_in_parts(name):
    mechanism, data, width = IN_PARTS[name]
    size = 2 * width + 1
    draws = mechanism.draw(data, size, rng=rng(1))
    assert len(draws) == size
    seen = draws.reshape(size, -1)[:, 0]
    assert len(np.unique(seen, equal_nan=False)) == size
    first = mechanism.draw(data, width, rng=rng(1))
    np.testing.assert_array_equal(draws[:width], first)
    assert mechanism.draw(data, 0, rng=rng()).shape == (0, *draws.shape[1:])
