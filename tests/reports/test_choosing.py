import numpy as np
import pandas as pd
import pytest
from strokes import begins_inside

from dpaudit.algorithms.estimators.measured import GRID, Grid, even, moment
from dpaudit.algorithms.estimators.recommendation import recommend
from dpaudit.neighbours import Relation
from dpaudit.reports.experiment import Cell
from dpaudit.reports.sections import plan
from dpaudit.reports.sections.choosing.section import (
    LOST,
    advice,
    advice_notes,
    context,
    falling,
    held_out,
    measured,
    winners,
    winners_map,
)

POINT = {"replaced": 0.0, "delta": 0.0, "epsilon": 1.0}
POINT |= {"d": 6.0, "k": 2.0, "signal": 300.0}


def cell(mechanism, point, size=20, **options):
    return Cell(mechanism, point, options, 0, size, 0, (1, 2))


@pytest.mark.parametrize("spectrum", [even(0.05, d=6, k=2, n=99), falling(6, 2)])
def test_the_moment_has_the_gap_and_the_components(spectrum):
    matrix, components = moment(spectrum, 300.0, 2, np.random.default_rng(0))
    assert np.linalg.eigvalsh(matrix)[::-1] == pytest.approx(300 * spectrum)
    assert spectrum.sum() == pytest.approx(1.0)  # rows of length 1
    assert spectrum[1] - spectrum[2] == pytest.approx(0.05)
    assert matrix @ components == pytest.approx(300 * spectrum[:2] * components)


def test_other_errors_are_those_of_less_signal_and_of_no_components():
    """Under replace-one the noise doubles; medians of 400, far apart."""
    ours, theirs, strong = (
        measured(cell("symmetrised-wishart", POINT | changes, 400))[0]
        for changes in ({}, {"replaced": 1.0}, {"signal": 3e4})
    )
    assert 1.7 < theirs["median"] / ours["median"] < 2.3
    assert strong["low"] < strong["median"] < strong["high"] < ours["low"]
    point = POINT | {"delta": 1e-9, "signal": 10.0}
    assert measured(cell("private-subspace", point))[0]["median"] == 1.0


@pytest.mark.parametrize(
    ("mechanism", "changes"),
    [
        ("symmetrised-wishart", {"delta": 1e-5}),  # pure ones once
        ("goe-gaussian", {}),
        ("k-norm-covariance", {"d": 21.0}),  # slow
        ("exponential-pca", {}),  # one component
        ("exponential-pca-deflation", {"k": 1.0}),
    ],
)
def test_what_a_mechanism_does_not_take_is_left_out(mechanism, changes):
    assert measured(cell(mechanism, POINT | changes)) == []


def test_settings_lie_between_the_points_and_are_shared():
    experiment = plan("quick", 0)["recommend-held-out"]
    options = dict(experiment.options)
    found = [
        held_out(cell("symmetrised-wishart", {"setting": float(i)}, 3, **options))[0]
        for i in range(16)
    ]
    for axis, points in GRID.items():
        drawn = [each[axis] for each in found]
        assert points[0] <= min(drawn) <= max(drawn) <= points[-1]
    assert {each["delta"] == 0 for each in found} == {True, False}
    other = held_out(cell("laplace-covariance", {"setting": 7.0}, 3, **options))[0]
    measured = {"expected": 0, "median": 0, "looked_up": 0}
    assert other | measured == found[7] | measured
    assert all(np.isnan(each["looked_up"]) for each in found[1::2])
    each = found[0]
    same = {name: each[name] for name in ("epsilon", "delta")}
    same |= {name: int(each[name]) for name in ("d", "k")}
    same |= {"gap": 0.1 / each["k"], "relation": list(Relation)[int(each["replaced"])]}
    n = round(each["signal"] * 10 * each["k"] / each["epsilon"])
    (printed,) = recommend(**same, n=n, among={"symmetrised-wishart"}).choices
    assert printed.error == each["expected"]


def table(errors, printed=None):
    rows = [
        {"mechanism": name, "setting": 0.0, **POINT, "median": error}
        | {"expected": error if printed is None else printed[name]}
        | {"looked_up": 1.4 * error}
        for name, error in errors.items()
    ]
    return pd.DataFrame(rows)


def test_advice_is_held_to_the_best():
    good = table({"symmetrised-wishart": 0.1, "laplace-covariance": 0.2})
    (row,) = advice(good).to_dict("records")
    assert row["recommended"] == row["best"] == "symmetrised-wishart"
    assert "At 1 of 1 settings" in advice_notes(good)[0]
    assert "100 % are within a factor of 1.5" in advice_notes(good)[1]
    assert advice_notes(good)[2].startswith("Of 2 that the grid has, 100")
    printed = {"symmetrised-wishart": 0.1, "laplace-covariance": 0.2}
    bad = table({"symmetrised-wishart": 0.3, "laplace-covariance": 0.2}, printed)
    assert advice(bad)["ratio"].tolist() == pytest.approx([1.5])
    notes = advice_notes(bad)
    assert "At 0 of 1 settings" in notes[0]
    assert "1.5 times the least: symmetrised-wishart in place of" in notes[1]
    assert "50.0 % are within a factor of 1.5" in notes[2]
    assert "those of recommended mechanisms at worst 3 times" in notes[2]


def test_a_loose_bound_is_shown_beside_none():
    known = table({"symmetrised-wishart": 0.1, "laplace-covariance": 0.2})
    shown = context({"recommend-held-out": known})["loose"]
    assert shown["without"].mechanism == "residual-step-pca@private"
    assert 5 * shown["without"].error < shown["with_it"].error


def test_winners_are_named_and_the_key_is_within_the_picture():
    shape = (*map(len, GRID.values()), 3)
    one, other = np.full(shape, 0.5), np.full(shape, 0.6)
    one[..., 0, :] = LOST + 0.05
    other[..., 0, :] = 0.95
    other[..., -1, :] = 0.1
    fields = winners(Grid({"one": one, "other": other}, ""))
    expected = {10.0: "", 30.0: "one", 1000.0: "one", 10_000.0: "other"}
    for field in fields:
        assert field.k < field.d
        if field.signal in expected:
            assert field.mechanism == expected[field.signal]
    assert begins_inside(winners_map(None, True))
