"""Which mechanism is recommended: lookups in a measured grid."""

import csv
import io
import itertools
import math

import numpy as np
import pytest

from dpaudit import InputError, Relation
from dpaudit.algorithms import entry
from dpaudit.algorithms.estimators.recommendation import (
    GRID,
    Grid,
    recommend,
    shipped_grid,
)
from dpaudit.reports.experiment import cells
from dpaudit.reports.sections import plan


def power_law(point, coefficient):
    """Return errors that are linear in logarithms, so that interpolation is exact."""
    size = point["d"] ** 0.5 * point["k"] ** 0.25 * point["epsilon"] ** 0.1
    return coefficient * size / point["signal"]


def written(**mechanisms):
    """Return a table as the runner writes it, of mechanisms with such errors."""
    out = io.StringIO()
    columns = ["mechanism", *GRID, "low", "median", "high"]
    table = csv.DictWriter(out, columns)
    table.writeheader()
    for name, (coefficient, pure) in mechanisms.items():
        for values in itertools.product(*GRID.values()):
            point = dict(zip(GRID, values, strict=True))
            if point["k"] < point["d"] and pure == (point["delta"] == 0):
                error = power_law(point, coefficient) * (1 + point["replaced"])
                row = {"low": error / 2, "median": error, "high": 3 * error}
                table.writerow({"mechanism": name, **point, **row})
    return "# made by hand\n" + out.getvalue()


@pytest.fixture(scope="module")
def grid():
    return Grid.parse(written(poor=(1e-3, True), good=(5e-4, False)))


def errors(grid, **changes):
    known = {"d": 20, "k": 3, "epsilon": 1.0, "delta": 1e-5, "n": 1000, "gap": 0.1}
    found = recommend(**(known | changes), grid=grid)
    return {c.mechanism: (c.error, c.low, c.high) for c in found.choices}, found.notes


def test_errors_between_the_points_are_interpolated(grid):
    assert grid.origin == "made by hand"
    at = {"d": 33, "k": 2, "epsilon": 0.4}
    found, notes = errors(grid, **at, n=2000, gap=0.2, row_norm=2.0)
    expected = power_law({**at, "signal": 2000 * 0.4 * 0.2 / 4}, 5e-4)
    assert list(found) == ["good", "poor"]
    assert found["good"] == pytest.approx((expected, expected / 2, 3 * expected))
    assert found["poor"][0] == pytest.approx(2 * expected)
    assert notes == ()


def test_pure_mechanisms_serve_any_delta_and_others_none_of_zero(grid):
    assert list(errors(grid, delta=0.0)[0]) == ["poor"]
    assert list(errors(grid, delta=1e-12)[0]) == ["good", "poor"]


def test_the_relation_is_that_of_the_grid(grid):
    ours, theirs = (errors(grid, relation=each)[0]["good"][0] for each in Relation)
    assert sorted([theirs / ours, ours / theirs]) == pytest.approx([0.5, 2.0])


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"d": 784}, "d = 784 is outside the grid: measured at 100"),
        ({"epsilon": 0.01, "n": 10**6}, "0.01 is outside the grid: measured at 0.1"),
        ({"delta": 0.1}, "delta = 0.1 is outside the grid: measured at 1e-05"),
        ({"d": 50, "k": 20, "gap": 0.01}, "k = 20 is outside the grid"),
        ({"n": 10}, "is below the grid: measured at 10"),
        ({"n": 10**8}, "errors measured at 10000 are taken to fall like 1/n"),
        ({"gap": None}, "no gap is given"),
        ({"n": None}, "n is not given"),
        ({"n": None, "gap": None}, "neither n nor a gap is given"),
    ],
)
def test_what_was_not_measured_is_said(grid, changes, note):
    found, notes = errors(grid, **changes)
    assert found
    assert any(note in each for each in notes)


def test_beyond_the_grid_errors_fall_with_the_signal(grid):
    last, far = (errors(grid, n=n)[0]["good"][0] for n in (10**5, 10**7))
    assert far == pytest.approx(last / 100)


def test_without_a_gap_the_first_is_never_much_worse():
    """One is best at nearly all signals, and ten times worse at the last."""
    steady = np.full((2, 3, 3, 6, 3, 5, 3), 0.2)
    bold = np.full_like(steady, 0.1)
    bold[..., -1, :] = 2.0
    mixed = Grid({"bold": bold, "steady": steady}, "")
    known = {"d": 20, "k": 3, "epsilon": 1.0, "delta": 1e-5, "grid": mixed}
    assert recommend(**known).choices[0].mechanism == "steady"
    assert recommend(**known, n=300, gap=0.1).choices[0].mechanism == "bold"
    assert len(recommend(**known, among={"bold"}).choices) == 1


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"k": 20}, "d must be an integer >= 21"),
        ({"k": 0}, "k must be"),
        ({"n": 0}, "n must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"delta": 1.0}, "delta must be"),
        ({"row_norm": 0.0}, "row_norm must be"),
        ({"gap": 0.4}, "gap must be from 0 to 0.333333"),
    ],
)
def test_bad_settings_are_named(grid, changes, problem):
    with pytest.raises(InputError, match=problem):
        errors(grid, **changes)


def test_what_ships_is_of_mechanisms_with_a_proven_claim():
    grid = shipped_grid()
    assert "dpaudit report run recommend-grid" in grid.origin
    for name, values in grid.errors.items():
        chosen = entry(name)
        assert not chosen.expected_refuted
        low, median, high = np.moveaxis(values, -1, 0)
        measured = ~np.isnan(median)
        assert (low[measured] <= median[measured]).all()
        assert (median[measured] <= high[measured]).all()
        assert (high[measured] <= 1).all()  # sines
        # A pure mechanism is measured without a delta, another never without.
        assert measured[:, 0].any() == (not chosen.approximate)
        assert measured[:, 1:].any() == chosen.approximate


def test_what_ships_is_what_the_runner_measures():
    """One point again, with the runner's own draws: to the digits that are written."""
    experiment = plan("standard", 0)["recommend-grid"]
    point = {"replaced": 1.0, "delta": 0.0, "epsilon": 1.0}
    point |= {"d": 10.0, "k": 3.0, "signal": 1000.0}
    (cell,) = (
        cell
        for cell in cells(experiment)
        if cell.mechanism == "symmetrised-wishart" and cell.point == point
    )
    (record,) = experiment.measure(cell)
    place = tuple(GRID[axis].index(value) for axis, value in point.items())
    shipped = shipped_grid().errors["symmetrised-wishart"][place]
    # A number beside a tie may be rounded the other way on another processor.
    digit = pytest.approx([record[x] for x in ("low", "median", "high")], rel=0.0101)
    assert shipped == digit


def test_what_was_measured_is_shown_with_the_digits_that_are_kept():
    """No last bit may decide whether 0.135 is shown as .13 or .14."""
    grid, axes = shipped_grid(), list(GRID)
    for place in itertools.islice(np.ndindex(*map(len, GRID.values())), 0, None, 17):
        point = {axis: GRID[axis][i] for axis, i in zip(axes, place, strict=True)}
        replaced = bool(point.pop("replaced"))
        for name, found in grid.at(replaced=replaced, **point).items():
            kept = grid.errors[name][place]
            if not np.isnan(kept).any():
                assert (found == kept).all()
                assert all(float(f"{value:.3g}") == value for value in found)


def test_what_releases_one_component_is_not_recommended_for_two():
    known = {"d": 10, "epsilon": 1.0, "delta": 0.0, "n": 10**4, "gap": 0.1}
    for k, one in ((1, True), (2, False), (5, False)):
        names = {choice.mechanism for choice in recommend(**known, k=k).choices}
        assert ("exponential-pca" in names) == one
        assert "symmetrised-wishart" in names


def test_what_is_slow_in_many_dimensions_is_not_recommended_there():
    """Its error at d = 20 must not stand for that at d = 30."""
    known = {"k": 3, "epsilon": 1.0, "delta": 0.0, "n": 10**4, "gap": 0.1}
    for d, relation, there in (
        (20, Relation.ADD_REMOVE, True),
        (21, Relation.ADD_REMOVE, False),
        (10, Relation.REPLACE_ONE, True),
        (11, Relation.REPLACE_ONE, False),
    ):
        choices = recommend(**known, d=d, relation=relation).choices
        assert ("k-norm-covariance" in {c.mechanism for c in choices}) == there
