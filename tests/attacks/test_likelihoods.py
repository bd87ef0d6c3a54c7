"""Learned and exact likelihood ratios against the truth."""

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest
from attack_cases import SCALARS, Steps, auc, black_box, transcript
from scipy import stats

from dpaudit import UnsupportedError
from dpaudit.attacks import (
    GaussianTranscript,
    LaplaceLocation,
    LogisticClassifier,
    Target,
)
from dpaudit.audit.layers.layer import view_transcript

TARGET = Target(black_box, SCALARS)


def area(attack, draw, learned, target=TARGET, judged=20_000):
    rng = np.random.default_rng(0)
    parameters = attack.fit(target, draw(rng, learned, 1), draw(rng, learned, 0))
    return auc(
        *(attack.score(target, parameters, draw(rng, judged, s)) for s in (1, 0))
    )


def best_area(loss, draw, judged=20_000):
    rng = np.random.default_rng(1)
    return auc(*(loss(draw(rng, judged, s)) for s in (1, 0)))


SHIFT = np.where(np.arange(10) < 6, 0.5, 0.0)


def laplace(rng, size, side):
    return side * SHIFT + rng.laplace(size=(size, 10))


def laplace_loss(y):
    return (np.abs(y) - np.abs(y - SHIFT)).sum(axis=1)


def gaussian(rng, size, side):
    return side * SHIFT + rng.normal(size=(size, 10))


def test_laplace_location_is_nearly_optimal():
    """Two standard errors of either area are below 0.006."""
    best = best_area(laplace_loss, laplace)
    assert area(LaplaceLocation(), laplace, 4096) > best - 0.01
    assert area(LaplaceLocation(), laplace, 256) > best - 0.02


@pytest.mark.parametrize(
    ("draw", "loss"),
    [(laplace, laplace_loss), (gaussian, lambda y: y @ SHIFT)],
    ids=["laplace", "gaussian"],
)
def test_logistic_is_nearly_optimal(draw, loss):
    best = best_area(loss, draw)
    assert area(LogisticClassifier(), draw, 4096) > best - 0.02
    assert area(LogisticClassifier(), draw, 256) > best - 0.06


def test_logistic_takes_bits_as_they_are():
    bits = np.random.default_rng(0).integers(2, size=(2, 300, 30)).astype(float)
    parameters = LogisticClassifier().fit(TARGET, *bits)
    assert len(parameters["coefficients"]) == 30
    assert parameters["curved"].size == 0


def test_laplace_location_is_bounded():
    sides = np.random.default_rng(0).laplace(size=(2, 300, 3))
    parameters = LaplaceLocation().fit(TARGET, *sides)
    bound = (
        np.abs(parameters["on_data"] - parameters["on_neighbour"]) / parameters["scale"]
    ).sum()
    wild = 1e9 * np.random.default_rng(1).normal(size=(50, 3))
    assert (
        np.abs(LaplaceLocation().score(TARGET, parameters, wild)).max() <= bound + 1e-6
    )


def test_transcript_loss_is_the_difference_of_log_densities():
    steps, target = Steps(), Target(Steps(), SCALARS)
    values = transcript(np.random.default_rng(0), 50, 1)
    log_density = []
    for data in (SCALARS.data, SCALARS.neighbour):
        means = steps.step_means(values, data)
        first = stats.norm.logpdf(values["first"], means["first"], 1.0)
        second = stats.norm.logpdf(values["second"], means["second"], 2.0)
        log_density.append(first + second.sum(axis=1))
    np.testing.assert_allclose(
        GaussianTranscript().score(target, {}, values),
        log_density[0] - log_density[1],
        rtol=1e-9,
    )


def test_transcripts_of_another_kind_are_declined():
    values = transcript(np.random.default_rng(0), 5, 1)
    target = Target(Steps(), SCALARS)
    applies = GaussianTranscript().applies
    assert applies(target, values)
    assert applies(Target(view_transcript(Steps()), SCALARS), values)
    assert not applies(target, values["first"])
    assert not applies(target, {"first": values["first"]})
    assert not applies(target, {**values, "second": values["second"][:, :1]})
    assert not applies(Target(black_box, SCALARS), values)

    @dataclass(frozen=True)
    class Silent(Steps):
        @property
        def step_scales(self):
            return MappingProxyType({"first": 1.0, "second": 0.0})

    class Unsupported(Steps):
        def step_means(self, transcript, data):
            raise UnsupportedError("not here")

    assert not applies(Target(Silent(), SCALARS), values)
    assert not applies(Target(Unsupported(), SCALARS), values)
