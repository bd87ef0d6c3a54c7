"""Benchmarks read what they measure from the catalogue, and from the studies."""

import numpy as np
import pytest

from benchmarks.auditing import SuiteRefutation, SuiteTightness, cases
from benchmarks.releases import NAMES, Release
from dpaudit.algorithms import CATALOGUE, build, names_of
from dpaudit.mechanism import HasComponents
from dpaudit.reports.bench.refutation import RefutationStudy

ROWS, DIMENSION = 200, 16
# Planted: streams of at most 64 rows.
SHORT = {"tree-aggregation-fresh-noise", "tree-aggregation-reused-noise"}


def timed() -> set[str]:
    """Return the mechanisms whose release is timed, each after one release."""
    found = set()
    for name in NAMES:
        release = Release()
        try:
            release.setup(ROWS, DIMENSION, name)
        except NotImplementedError:  # asv leaves these out
            continue
        release.time_release(ROWS, DIMENSION, name)
        assert np.shape(release.rows) == (ROWS, DIMENSION)
        found.add(name)
    return found


def test_whatever_gives_components_is_timed():
    own = [name for name, each in CATALOGUE.items() if each.extra is None]
    wanted = {name for name in own if isinstance(build(name), HasComponents)} - SHORT
    assert {"analyze-gauss", "private-oja", "dp-gd-reap", "online-pca"} <= wanted
    assert wanted <= timed()


def test_all_false_claims_of_the_studies_are_refuted():
    (names,) = SuiteRefutation.params
    assert set(cases(RefutationStudy(), "quick")) <= set(names)
    assert {n for n in names_of("textbook") if CATALOGUE[n].refutation} <= set(names)


@pytest.mark.parametrize("name", ["svt-5", "noisy-hist-2"])
def test_releases_to_refute_are_those_of_the_study(name):
    study = RefutationStudy()
    (unit,) = (unit for unit in study.units("quick") if unit.case == name)
    tracked = SuiteRefutation().track_samples_to_refute(name)
    assert tracked == study.measure(unit)["samples"]


def test_tightness_is_at_most_1():
    # Seeded. At confidence 0.999 the bound on Laplace noise is too large with
    # probability 0.001. The true epsilon is 2.
    name = "laplace-under-noised"
    assert 0.9 < SuiteTightness().track_epsilon_tightness(name) <= 1
