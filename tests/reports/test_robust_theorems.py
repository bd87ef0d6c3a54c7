from dataclasses import replace
from functools import partial
from itertools import islice
from math import asin, cos, inf, log, pi, sqrt

import numpy as np
import pytest
from seeded import rng

from dpaudit.algorithms.robust.geometries import squared_distance
from dpaudit.algorithms.robust.ggd import MinibatchGeodesicDescent
from dpaudit.algorithms.shared.batches import WithReplacement
from dpaudit.algorithms.shared.step_sizes import ConstantSteps, HalvingSteps, RootSteps
from dpaudit.datasets import Dataset, haystack
from dpaudit.errors import InputError
from dpaudit.reports.experiment import cells, run
from dpaudit.reports.sections import Size
from dpaudit.reports.sections.robust import conditions
from dpaudit.reports.sections.robust.measures import build_descent
from dpaudit.reports.sections.theorems import robust
from dpaudit.reports.sections.theorems.findings import programmed
from dpaudit.reports.sections.theorems.judgement import Ruling, score
from dpaudit.reports.sections.theorems.rows import GRIDS, ROWS
from dpaudit.subspace import top_components

OWN = [n for n, each in GRIDS.items() if "theorems.robust:" in each["measure"]]


def own_experiments(draws, points):
    size = Size(theorem_draws=draws, theorem_points=points, theorem_stream=1)
    return {each.name: each for each in programmed(size) if each.name in OWN}


@pytest.fixture(scope="module")
def tables():
    return {name: run(each) for name, each in own_experiments(24, 2).items()}


def in_plane(inliers, outliers, angle):
    """Inliers along the first axis, and outliers at an angle."""
    one = np.array([[1.0, 0.0]])
    other = np.array([[np.cos(angle), np.sin(angle)]])
    rows = np.concatenate([np.repeat(one, inliers, 0), np.repeat(other, outliers, 0)])
    return made(rows, inliers, np.eye(2)[:, :1])


def made(rows, inliers, truth):
    """Rows of length 1, the first of which are inliers."""
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    labels = (np.arange(len(rows)) < inliers).astype(int)
    return Dataset(name="made", source="here", rows=rows, labels=labels, subspace=truth)


def reaper(rows, matrix):
    """G(P), row by row."""
    return np.mean([np.sqrt(sum((x - matrix @ x) ** 2)) for x in rows])


def test_theorem_1_is_false_as_printed_and_the_corrected_bound_is_attained():
    angle = np.arccos(-0.99) / 2
    data = in_plane(100, 99, angle)
    pca = top_components(data.rows.T @ data.rows, 1)
    error = float(squared_distance(pca, data.subspace))
    parts = (data.rows[data.labels == i] for i in (1, 0))
    inside, outside = (np.linalg.norm(part, 2) ** 2 for part in parts)
    assert 2 * np.sin(np.arccos(1 - 0.14)) * inside > outside  # (3.1): error < 0.14
    assert error == pytest.approx(1 - cos(asin(0.99) / 2))
    assert error > 0.24
    assert conditions.pca_error_bound(data, 1) == pytest.approx(error)
    assert np.isnan(conditions.pca_error_bound(in_plane(3, 4, 1.0), 1))


def test_the_stability_of_reaper_is_its_definition_and_bounded():
    """In coordinates whose first axis is the line of the inliers."""
    data = haystack(80, 5, 1, inlier_share=0.8, rng=rng(3))
    turned = data.rows @ np.linalg.svd(data.subspace, full_matrices=True).U
    outside = turned[data.labels == 0]
    across = outside[:, 1:] / np.linalg.norm(outside[:, 1:], axis=1, keepdims=True)
    harm = np.linalg.svd(outside)[1][0] * np.linalg.svd(across)[1][0]
    spread = np.abs(turned[data.labels == 1, 0]).sum()
    expected = (spread / 4 - harm) / 80
    assert conditions.reaper_stability(data) == pytest.approx(expected)
    # Of inliers along two axes, and outliers along two others.
    axes = np.eye(4)[:2]
    spheres = made(np.concatenate([axes] * 5 + [np.eye(4)[2:]]), 10, np.eye(4)[:, :2])
    expected = (0.7 * 5 - sqrt(2)) / 12
    assert conditions.stability_bound(spheres, 2, 0.3) == pytest.approx(expected)


def test_the_stability_of_reaper_in_the_plane():
    """Against a fine grid of directions."""
    data = haystack(90, 5, 2, inlier_share=0.8, rng=rng(6))
    inside, outside = (data.rows[data.labels == label] for label in (1, 0))
    angles = np.linspace(0, np.pi, 10_001)
    units = np.stack([np.cos(angles), np.sin(angles)])
    spread = np.abs(inside @ data.subspace @ units).sum(axis=0).min()
    off_it = outside - outside @ data.subspace @ data.subspace.T
    off_it /= np.linalg.norm(off_it, axis=1, keepdims=True)
    harm = np.linalg.norm(outside, 2) * np.linalg.norm(off_it, 2)
    expected = (spread / (4 * sqrt(2)) - harm) / 90
    assert conditions.reaper_stability(data) == pytest.approx(expected, rel=1e-3)
    with pytest.raises(InputError, match="of dimension 1 or 2, got 3"):
        conditions.reaper_stability(haystack(90, 5, 3, inlier_share=0.8, rng=rng(6)))


def test_where_stability_is_not_positive_nothing_is_bounded(monkeypatch):
    monkeypatch.setattr(robust, "reaper_stability", lambda data: 0.0)
    cell = next(cells(own_experiments(24, 2)["theorems-reaper-limit"]))
    assert {row["distance_bound"] for row in robust.limit_error(cell)} == {inf}


def drawn(cell, setting, rows):
    """Return the generator of a cell, after its haystacks, and these."""
    some, r = cell.rng(), int(setting["n_components"])
    share, d = setting["inlier_share"], int(setting["d"])
    data = [
        haystack(rows, d, r, inlier_share=share, rng=some) for _ in range(cell.size)
    ]
    return some, data


def after(descent, data, steps, some):
    path = descent.iterates([each.rows for each in data], rng=some)
    return next(islice(path, steps, None))


def test_errors_on_reaper_are_what_their_names_say():
    """Against the objective, at the point whose average is released."""
    cell = next(cells(own_experiments(24, 2)["theorems-reaper-limit"]))
    setting = {**cell.options, **cell.point}
    n, epsilon, delta = (setting[name] for name in ("n", "epsilon", "delta"))
    steps = round(0.02 * (epsilon * n) ** 2)
    wanted = {**setting, "rows": n, "iterations": steps}
    made = replace(build_descent(cell.mechanism, wanted), step_sizes=RootSteps(1.0))
    assert made.claim.parameters == {"epsilon": epsilon, "delta": delta}
    some, several = drawn(cell, setting, int(n))
    points = after(made, several, steps, some)
    found = robust.limit_error(cell)
    for row, data, point in zip(found, several, points, strict=True):
        best = reaper(data.rows, data.subspace @ data.subspace.T)
        excess = reaper(data.rows, point) - best
        assert row["excess"] == pytest.approx(excess, rel=1e-6)
        cosine = np.abs(top_components(point, 1).T @ data.subspace).item()
        assert row["distance"] == pytest.approx(np.arccos(cosine), rel=1e-4)
        bound = pi / 2 * excess / conditions.reaper_stability(data)
        assert row["distance_bound"] == pytest.approx(bound, rel=1e-6)
        assert row["formula"] == pytest.approx(log(n / delta) / n)


@pytest.mark.parametrize(
    ("name", "place", "planned", "steps", "sizes"),
    [
        ("restarts", 0, 350, 100, HalvingSteps(period=50)),
        ("steps", 1, 400, 400, ConstantSteps(0.2)),
        ("limit", 0, 90, 90, HalvingSteps(period=30)),
    ],
)
def test_descents_on_glad_take_the_steps_of_their_theorem(
    name, place, planned, steps, sizes
):
    experiment = own_experiments(24, 2)[f"theorems-glad-{name}"]
    ((variable, values),) = experiment.grid.items()
    experiment = replace(experiment, grid={variable: values[place : place + 1]})
    rows = 300 if name == "limit" else 1000
    for cell in map(partial(replace, size=2), cells(experiment)):
        setting = {**cell.options, **cell.point, "rows": rows, "iterations": planned}
        some, data = drawn(cell, setting, rows)
        if cell.mechanism == robust.SGGD:
            batches = WithReplacement.as_published(setting["epsilon"], planned)
            made = MinibatchGeodesicDescent(
                n_components=2, batches=batches, iterations=planned, step_sizes=sizes
            )
        else:
            made = replace(build_descent(cell.mechanism, setting), step_sizes=sizes)
        truth = np.stack([each.subspace for each in data])
        errors = squared_distance(after(made, data, steps, some), truth)
        found = experiment.measure(cell)
        assert [row["repetition"] for row in found] == [0, 1]
        np.testing.assert_allclose([row["error"] for row in found], errors, rtol=1e-6)


def test_the_start_is_beside_its_bound(monkeypatch):
    """Inliers along two axes, and as many outliers along each of the others."""
    experiment = own_experiments(24, 2)["theorems-pca-d"]
    options = {**experiment.options, "epsilon": 20.0}
    cell = replace(next(cells(experiment)), size=2, options=options)
    axes = np.eye(5)[:, :2]
    rows = np.concatenate([np.repeat(axes.T, 30, 0), np.repeat(np.eye(5)[2:], 2, 0)])
    data = made(rows, 60, axes)
    monkeypatch.setattr(robust, "haystack", lambda *_, **__: data)
    found = robust.pca_start_error(cell)
    assert [row["repetition"] for row in found] == [0, 1]
    setting, drawn = {**cell.options, **cell.point}, cell.rng()
    start = robust.PublishedStart(setting["epsilon"])
    for row in found:
        noisy = start.draw(rows, 2, 1, rng=drawn)["start"][0]
        norm = np.linalg.norm(noisy - rows.T @ rows, 2)
        # The gap is 30 - 2, less what the noise may take of it.
        assert 0 < norm < 14
        assert row["start_error_bound"] == pytest.approx(norm / (28 - norm))
        assert row["pca_error"] == pytest.approx(0, abs=1e-12)
        assert row["pca_error_bound"] == pytest.approx(1 - cos(asin(2 / 30) / 2))
        assert 0 < row["start_error"] <= row["start_error_bound"]


def test_no_error_is_above_what_is_proven(tables):
    assert set(tables) == set(OWN)
    sure = 0
    for each in (row for row in ROWS if row.experiment in OWN):
        found = score(each, tables[each.experiment])
        assert found.verdict != Ruling.CONTRADICTED, each.name
        assert found.lost == 0
        if each.sure:
            sure += 1
            assert 0 < found.share < 1, each.name
            below = tables[each.experiment].assign(
                **{each.column: lambda t, row=each: 1.01 * t[row.bound]}
            )
            assert score(each, below).verdict == Ruling.CONTRADICTED
    assert sure == 8
