"""The curves of Corollaries 25 and 32, small, and the numbers of Theorem 26."""

import math

import pytest

from dpaudit.errors import InputError
from dpaudit.reports.tracing_curves import (
    BASELINE,
    QUICK,
    STANDARD,
    Curve,
    TracingProfile,
    culling_points,
    tracing_curves,
)


def profile(**changes):
    options = {
        "curves": (
            Curve(BASELINE),
            Curve("analyze-gauss", 1.0),
            Curve("analyze-gauss", 3000.0),
        ),
        "length": 96,
        "pad_ratio": 1,
        "rows": (2, 512),
        "trials": 6,
    }
    return TracingProfile(**{**options, **changes})


def test_the_useful_are_traced_and_the_private_neither():
    found = tracing_curves(profile())
    assert not found.refused
    few, many = (
        {(p.mechanism, p.epsilon): p for p in found.points if p.rows == m}
        for m in (2, 512)
    )
    plain, private = (BASELINE, None), ("analyze-gauss", 1.0)
    careless = ("analyze-gauss", 3000.0)
    for name in (plain, careless):
        assert few[name].useful.share == 1
        assert few[name].traced.hits >= 5
    assert few[private].useful.share == few[private].traced.share == 0
    # With rows enough the private one is useful, and nobody is traced.
    assert many[private].useful.share == 1
    assert all(point.traced.share == 0 for point in many.values())
    for point in found.points:
        assert point.innocent_accused.share == 0
        assert 0 <= point.captured <= 1 + 1e-9
        assert point.dimension == 192
        assert point.ratio == pytest.approx(point.rows / math.sqrt(192))
    assert few[plain].captured == pytest.approx(1)
    assert few[private].delta == 1 / 96**2
    assert "analyze-gauss             1 " in str(found)


def test_clusters():
    found = tracing_curves(
        profile(curves=(Curve(BASELINE),), rows=(2,), n_clusters=2, trials=4)
    )
    (point,) = found.points
    assert point.n_components == 2
    assert point.useful.share == 1
    assert point.traced.share == 1


def test_what_a_mechanism_does_not_take_is_said():
    found = tracing_curves(
        profile(curves=(Curve("minibatch-oja", 1.0),), rows=(2, 24), trials=1)
    )
    assert [point.rows for point in found.points] == [24]
    (refused,) = found.refused
    assert refused.rows == 2
    assert "refused" in str(found)


def test_bottom_is_not_useful():
    found = tracing_curves(
        profile(curves=(Curve("private-subspace", 1.0),), rows=(4,), trials=2)
    )
    assert found.points[0].captured == 0
    assert found.points[0].useful.share == 0
    assert found.points[0].traced.share == 0


def test_profiles_go_from_the_lower_bound_to_usefulness():
    for each in (QUICK, STANDARD):
        ratios = [m / math.sqrt(each.dimension) for m in each.rows]
        assert min(ratios) < 0.06
        assert max(ratios) > 20
        assert Curve(BASELINE) in each.curves
        assert Curve("analyze-gauss", 1.0) in each.curves


def test_culling():
    points = culling_points((500, 5000), games=2000)
    for point in points:
        assert point.most_agreement.share == 0
        assert point.random_half.share > 0.99
        assert 1 - point.exact < 1e-3
        low, high = point.random_half.interval
        assert low <= point.exact <= high
    assert points[1].loss_bound < 1e-6 < points[0].loss_bound < 0.1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rows": ()}, "must not be empty"),
        ({"rows": (0,)}, "rows must be an integer"),
        ({"length": 0}, "length must be"),
        ({"trials": 0}, "trials must be"),
        ({"n_clusters": 0}, "n_clusters must be"),
        ({"gamma": 0.0}, "gamma must be"),
        ({"level": 0.0}, "level must be"),
    ],
)
def test_bad_input(changes, says):
    with pytest.raises(InputError, match=says):
        profile(**changes)
