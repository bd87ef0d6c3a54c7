"""What holds for every mechanism of the family: conformance, capabilities, bad input.

Type-I error: 2e-9 for each of the 31 cases of conformance (the seed is fixed).
"""

import re
import tracemalloc
from functools import partial

import numpy as np
import pytest
from refusals import refuses
from seeded import rng

from dpaudit.algorithms import (
    DPPCA,
    MeanEstimation,
    Oja,
    PrivateHistogram,
    PrivateOja,
    PublishedDPPCA,
    StepSizeSearch,
    TopEigenvalue,
    TwoStagePCA,
)
from dpaudit.algorithms.streaming import mean_budget
from dpaudit.algorithms.streaming.minibatch_oja import BlockOja, MinibatchOja
from dpaudit.algorithms.streaming.private_histogram import UnthresholdedHistogram

GAUSSIAN = np.random.default_rng(0).standard_normal((400, 10))

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


@pytest.mark.parametrize(
    ("mechanism", "count", "held"),
    [
        (DPPCA.calibrated(1.0, 1e-5, batch_size=20_000), 100_000, 20_000),
        (TwoStagePCA.calibrated(1.0, 1e-5, row_norm=5.0), 60_000, 30_000),
    ],
)
def test_a_stream_holds_no_more_than_a_batch_or_half(mechanism, count, held):
    generator, most = rng(), held * 20 * 8
    blocks = (generator.standard_normal((1000, 20)) for _ in range(count // 1000))
    tracemalloc.start()
    try:
        mechanism.release_stream(blocks, count=count, rng=rng(1))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # And pieces of gradients at work, of 4 MiB each.
    assert most < peak < most + 8 * 2**22


STEPS_BELOW_0 = {"step_sizes": (0.0, -3.0)}
SPLITS = (mean_budget.CalibratedSplit, mean_budget.PublishedSplit)
BAD = {
    (DPPCA.calibrated, PublishedDPPCA.as_published): STEPS_BELOW_0
    | {"batch_constant": (0.0,), "batch_size": (3,), "zeta": (1.0,), "tail": (None,)}
    | {"group_constant": (-1.0,)},
    (DPPCA.tuned,): {"scale_share": (0.0, 1.0), "n_components": (2,)},
    (TwoStagePCA.calibrated,): {"row_norm": (-1.0,), "scale_share": (1.0,)},
    (MeanEstimation.calibrated, MeanEstimation.as_published): {
        "eigenvalue": (0.0,),
        "tail": (1.0,),
    },
    (TopEigenvalue.calibrated,): {"group_constant": (0.0,), "zeta": (1.0,)}
    | {"bins_per_octave": (0,)},
    (
        *(PrivateHistogram.calibrated, PrivateHistogram.as_published),
        UnthresholdedHistogram.planted,
    ): {"width": (0.0,), "first": (0.5, -(2**53) - 1, 2**53 + 1), "bins": (0,)},
    (
        MinibatchOja.calibrated,
        partial(BlockOja.calibrated, n_components=1),
    ): STEPS_BELOW_0
    | {"clip": (-1.0,), "iterations": (0, 1.5), "n_components": (True,)},
    (PrivateOja.calibrated,): STEPS_BELOW_0 | {"clip": (np.nan,), "n_components": (2,)},
    (StepSizeSearch.calibrated,): {"clip": (-1.0,), "iterations": (0,)}
    | {"share": (0.0, 1.0), "candidates": ((), (1.0,)), "n_components": (3,)},
    (*SPLITS, mean_budget.SplitWithConstant8): {"epsilon": (0.0, np.inf)}
    | {"delta": (0.0, 1.0)},
    SPLITS[:1]: {"histogram_share": (1.0,), "escape_share": (0.0,), "uses": (0,)},
    SPLITS[1:]: {"constant": (0.0,)},
}


@pytest.mark.parametrize(
    ("make", "name", "bad"),
    [
        (make, name, bad)
        for makers, options in BAD.items()
        for make in makers
        for name, values in options.items()
        for bad in values
    ],
)
def test_bad_arguments_are_named(make, name, bad):
    good = {"epsilon": 1.0, "delta": 1e-5}
    refuses(rf"^{name}\b.* must be.*{re.escape(repr(bad))}", make, **good | {name: bad})
