import numpy as np
import pytest

from dpaudit.attacks import base
from dpaudit.attacks.base import (
    features,
    flatten,
    learn_features,
    score_ordinary,
    shift_order,
)
from dpaudit.attacks.stated import consult_rows


def test_features_join_dictionaries_and_do_not_overflow():
    releases = {"b": np.array([[3.0, 4.0]]), "a": np.array([1.0]), "c": np.ones((1, 0))}
    assert flatten(releases).tolist() == [[1.0, 3.0, 4.0]]
    assert flatten(np.empty((0, 2, 3))).shape == (0, 6)
    wild = np.array([[1e308, -1e308], [-1e308, 1e308], [1e-310, 0.0]])
    layout = learn_features(wild, -wild, 10)
    assert np.isfinite(np.square(features(layout, wild))).all()
    tame = learn_features(np.eye(3, 2), -np.eye(3, 2), 10)
    assert np.isfinite(np.square(features(tame, wild))).all()


def test_symmetric_matrices_give_one_triangle_if_both_sides_are():
    rng = np.random.default_rng(0)
    general = rng.normal(size=(2, 9, 2, 2))
    symmetric = general + general.swapaxes(2, 3)
    layout = learn_features(*symmetric, 10)
    assert layout["columns"].tolist() == [0, 1, 3]
    # A single release that happens to be symmetric does not change the layout.
    layout = learn_features(*general, 10)
    assert features(layout, symmetric[0, :1]).shape == (1, 4)
    assert (features(layout, symmetric[0, :1]) * layout["unit"])[
        0
    ].tolist() == symmetric[0, 0].ravel().tolist()
    rng = np.random.default_rng(0)
    general = rng.normal(size=(9, 2, 2))
    layout = learn_features(general, general + general.swapaxes(1, 2), 10)
    assert len(layout["columns"]) == 4


def test_features_are_those_of_the_releases_as_they_are_now():
    """Several attacks are told once what releases show: of other releases anew."""
    first, second = np.random.default_rng(0).normal(size=(2, 30, 3))
    second[:, 1] += 9
    assert learn_features(first, second, 1)["columns"].tolist() == [1]
    assert learn_features(first, second, 2)["columns"].tolist() != [1]
    second[:, 2] += 99
    assert learn_features(first, second, 1)["columns"].tolist() == [2]
    first[:, 0] -= 999
    assert learn_features(first, second, 1)["columns"].tolist() == [0]
    second[0, 0] = np.nan
    assert learn_features(first, second, 1)["is_nan"].tolist() == [0]
    # Of square matrices, only if they are symmetric.
    first, second = np.ones((2, 5, 2, 2)) * np.arange(5.0)[:, np.newaxis, np.newaxis]
    assert len(learn_features(first, second, 4)["columns"]) == 3
    flat = first.reshape(5, 4), second.reshape(5, 4)
    assert len(learn_features(*flat, 4)["columns"]) == 4
    assert len(base._RECENT) == 3  # no more is remembered


@pytest.mark.parametrize("unit", [2.0**-990, 2.0**-40, 1.0, 2.0**900])
def test_features_do_not_depend_on_the_unit(unit):
    first, second = np.random.default_rng(0).normal(size=(2, 30, 3))
    layouts = [learn_features(first * u, second * u, 2) for u in (1.0, unit)]
    assert layouts[0]["columns"].tolist() == layouts[1]["columns"].tolist()
    ours, theirs = features(layouts[0], first), features(layouts[1], first * unit)
    assert ours.tolist() == theirs.tolist()


def test_what_is_not_finite_becomes_indicators_and_capabilities_are_asked_once():
    first = np.array([[1.0, np.nan], [2.0, np.inf], [3.0, 5.0], [4.0, np.nan]])
    second = np.array([[1.0, 6.0], [2.0, 7.0], [3.0, 5.0], [4.0, 8.0]])
    layout = learn_features(first, second, 10)
    assert layout["filler"].tolist() == [2.0, 6.0]
    assert layout["is_nan"].tolist() == layout["is_above"].tolist() == [1]
    assert layout["is_below"].tolist() == []
    layout["unit"] = np.ones(2)  # else they are divided by 2 and 8
    assert features(layout, first).tolist() == [
        *([1.0, 6.0, 1.0, 0.0], [2.0, 6.0, 0.0, 1.0], [3.0, 5.0, 0.0, 0.0]),
        [4.0, 6.0, 1.0, 0.0],
    ]
    # What was never seen in the past has no indicator, and does no harm.
    assert features(layout, np.array([[np.nan, -np.inf]])).tolist() == [
        [2.0, 6.0, 0, 0]
    ]
    # Nor is it asked about no releases at all, on which it may fail.
    asked = []

    def loss(releases):
        asked.append(len(releases))
        return releases[:, 0] / 1e308 + 0 * releases[0, 0]

    releases = np.full((3, 2), 1e308)
    assert consult_rows(loss, releases).tolist() == [1.0, 1.0, 1.0]
    assert asked == [3]
    releases[1] = np.nan
    assert np.isnan(consult_rows(loss, releases)).tolist() == [False, True, False]


def test_the_most_shifted_entries_are_kept_and_certain_ones_come_first():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 500, 50))
    first[:, [7, 30]] += 1.0
    assert learn_features(first, second, 2)["columns"].tolist() == [7, 30]
    first, second = np.zeros((4, 3)), np.zeros((4, 3))
    first[:, 2] = 1.0
    first[:2, 1] = 1.0
    assert shift_order(first, second).tolist() == [2, 1, 0]


@pytest.mark.parametrize("shape", [(4,), (4, 2), (4, 2, 3)])
def test_only_ordinary_releases_are_scored(shape):
    releases = np.ones(shape)
    releases[1], releases[2] = np.nan, np.inf
    scores = score_ordinary(releases, lambda r: r.reshape(4, -1).sum(axis=1))
    total = float(np.prod(shape[1:]))
    assert scores.tolist() == [total, -np.inf, -np.inf, total]
