"""What looks at no row is run through every row of the scoreboard: none supports it.

Nor does an answer without noise, which has no exponent but that of what is rounded.
"""

from dataclasses import replace
from functools import partial, partialmethod

import numpy as np
import pytest
from seeded import rng

from dpaudit.algorithms.covariance.second_moment import SecondMomentMechanism
from dpaudit.algorithms.online.subspace_sequence import BasisSequence
from dpaudit.algorithms.robust.geometries import squared_distance
from dpaudit.algorithms.robust.objectives import Reaper
from dpaudit.algorithms.streaming.dp_pca import DPPCA, PublishedDPPCA
from dpaudit.algorithms.streaming.minibatch_oja import MinibatchOja
from dpaudit.algorithms.streaming.oja import Oja, PrivateOja
from dpaudit.algorithms.streaming.thresholded_counts import ThresholdedCounts
from dpaudit.algorithms.streaming.top_eigenvalue import TopEigenvalue
from dpaudit.algorithms.subspace.exact_exponential import ExponentialMechanism
from dpaudit.algorithms.subspace.published_private_subspace import NoisyProjector
from dpaudit.reports.experiment import run
from dpaudit.reports.sections import plan
from dpaudit.reports.sections.online import measures as online
from dpaudit.reports.sections.streaming import measures as streaming
from dpaudit.reports.sections.theorems import findings, judgement, robust
from dpaudit.reports.sections.theorems.judgement import Ruling
from dpaudit.reports.sections.theorems.measures import random_bases
from dpaudit.reports.sections.theorems.rows import CHANCES, ROWS

SUPPORTED = {Ruling.CONSISTENT, Ruling.WITHIN, Ruling.FASTER, Ruling.RARER}
MATRIX = SecondMomentMechanism.draw_from
STREAMS = (DPPCA, PublishedDPPCA, MinibatchOja, Oja, PrivateOja)


def top(moment, k):
    return np.linalg.eigh(moment)[1][:, -k:]


def bases(null, size, d, k, rng):
    """Random subspaces, one that is none of the truth, or nothing at all."""
    if null == "exact":  # of rows whose first component is the first axis
        return np.stack([np.eye(d)[:, :k]] * size)
    if null == "bottom":
        return np.full((size, d, k), np.nan)
    last = np.eye(d)[:, d - k :]
    random = random_bases(size, d, k, rng)
    return random if null in ("random", "noise") else np.stack([last] * size)


def matrices(self, null, moment, size, *, rng):
    """The spectrum of A about random axes, next to 0, or noise alone."""
    if null == "noise":
        return MATRIX(self, 0 * moment, size, rng=rng)
    if null == "exact":
        return np.broadcast_to(moment, (size, *moment.shape))
    if null != "random":  # so little that the order of the axes is all it says
        ramp = np.diag(np.arange(len(moment)) * 1e-9)
        return np.broadcast_to(ramp, (size, *moment.shape))
    axes = random_bases(size, len(moment), len(moment), rng)
    return axes * np.linalg.eigvalsh(moment) @ axes.swapaxes(-2, -1)


def projectors(self, null, moment, size, *, rng):
    if null == "exact":
        return np.stack([top(moment, self.n_components)] * size)
    null = "constant" if null == "bottom" else null
    return bases(null, size, len(moment), self.n_components, rng)


def sequences(self, null, rows, size, *, rng):
    (m, d), k = rows.shape, self.n_components
    drawn = bases("random", size, d, k, rng)
    if null == "constant":  # the last coordinates are those of the best fixed subspace
        drawn = bases(null, size, d, k, rng)[:, ::-1]
    if null == "exact":
        drawn = np.stack([top(rows.T @ rows, k)] * size)
    return np.broadcast_to(drawn[:, None], (size, m, d, k))


def vectors(self, null, data, size, *, rng):
    d = getattr(data, "dimension", None) or data.shape[1]
    if null == "bottom" and not isinstance(self, DPPCA | PublishedDPPCA):
        null = "constant"
    return bases(null, size, d, 1, rng)[..., 0]


def points(null, descent, data, stop, rng):
    d, r = data[0].rows.shape[1], data[0].subspace.shape[1]
    found = bases("random" if null == "bottom" else null, len(data), d, r, rng)
    if null == "exact":
        found = np.stack([each.subspace for each in data])
    if not isinstance(descent.objective, Reaper):
        return found
    if null == "constant":
        return np.stack([r / d * np.eye(d)] * len(data))
    return found @ found.swapaxes(-2, -1)


def pca_distances(null, rng, found, truth):
    """The start of Theorem 1 is PCA, and no mechanism that could be replaced."""
    if null == "exact":
        return 0.0
    null = "random" if null == "bottom" else null
    return squared_distance(bases(null, 1, *found.shape[-2:], rng)[0], truth)


def estimates(self, null, vectors, *, rng):
    return {"random": 2.0 ** rng.integers(-9, 9), "bottom": np.nan}.get(null, 1.0)


def labels(self, null, counts, *, rng):
    found = rng.integers(-9, 9, 2) * 1.0 if null == "random" else np.zeros(2)
    return found * np.nan if null == "bottom" else found


@pytest.mark.parametrize("null", ["random", "constant", "noise", "bottom", "exact"])
def test_no_row_is_supported_by_what_looks_at_no_row(null, monkeypatch):
    """The rows of the stream and the proven regret, which nothing here reads, are less
    than they are: each null would fail by more."""
    patch = monkeypatch.setattr
    patch(SecondMomentMechanism, "draw_from", partialmethod(matrices, null))
    for each in (NoisyProjector, ExponentialMechanism):
        patch(each, "draw_from", partialmethod(projectors, null))
    patch(BasisSequence, "draw", partialmethod(sequences, null))
    for each in STREAMS:
        patch(each, "draw", partialmethod(vectors, null))
    patch(TopEigenvalue, "release", partialmethod(estimates, null))
    patch(ThresholdedCounts, "fullest", partialmethod(labels, null))
    patch(robust, "_after", partial(points, null))
    patch(robust, "squared_distance", partial(pca_distances, null, rng()))
    patch(online, "_proven", lambda mechanism, optimum, *size: optimum)
    patch(
        streaming, "_data", lambda n, d, *_: (np.zeros((n // 999, d)), np.eye(d)[:, :1])
    )
    planned = plan("quick", 0)
    names = sorted({each.experiment for each in (*ROWS, *CHANCES)})
    tables = {name: run(replace(planned[name], repetitions=6)) for name in names}
    found = [*findings.scores(tables), *judgement.shares(findings.CHANCES, tables)]
    assert [each.row.name for each in found if each.verdict in SUPPORTED] == []
    assert len({each.row.name for each in found}) == len(ROWS) + len(CHANCES)
    if null == "exact":
        assert Ruling.CONTRADICTED not in {s.verdict for s in found[: len(ROWS)]}
