import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from math import inf, nan, sqrt

import numpy as np
import pandas as pd
import pytest
from audited_row import audited
from click.testing import CliRunner
from recovery_tables import MAPS, PAIRED, error_after, recovery_tables
from results_of import results_of, verdicts
from strokes import marks, strokes, well_drawn, written
from tiny_profile import TINY, tiny_plan

from dpaudit.algorithms.robust.geometries import squared_distance
from dpaudit.algorithms.robust.initialisation import PublicStart
from dpaudit.cli import main
from dpaudit.datasets import Dataset
from dpaudit.neighbours import Relation
from dpaudit.reports.experiment import cells, run
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.sections import all_sections
from dpaudit.reports.sections.robust import figures as heatmaps
from dpaudit.reports.sections.robust import measures as recovery
from dpaudit.reports.sections.robust import section as findings
from dpaudit.reports.sections.robust.conditions import (
    BATCH_ROWS,
    BATCHES,
    batch_stability,
    conditions,
    pca_error_bound,
    reaper_stability,
    stability_bound,
)
from dpaudit.subspace import top_components


def experiment(name, seed=0, **changes):
    return tiny_plan(seed, **changes)[name]


def cell_of(name, mechanism):
    return next(c for c in cells(experiment(name)) if c.mechanism == mechanism)


TABLES = recovery_tables(lambda refuted, names: pd.DataFrame())


@pytest.mark.parametrize(
    "name", [recovery.NOISELESS, "dp-sggd-published", "dp-sgd-reap"]
)
def test_errors_are_those_of_the_runs(name):
    cell = cell_of("robust-recovery", name)
    setting = recovery.cell_setting(cell)
    assert setting["iterations"] == TINY["robust"].haystack_rows
    assert setting["delta"] == 1 / sqrt(TINY["robust"].haystack_rows)
    ((first, several),) = recovery.haystacks(cell, setting)
    data = [each.rows for each in several]
    truth = [each.subspace for each in several]
    assert (first, len(data)) == (0, TINY["robust"].haystacks)
    assert not np.allclose(data[0], data[1])
    descent = recovery.build_descent(name, setting)
    path = descent.iterates(data, rng=cell.rng())
    if name == "dp-sgd-reap":
        bases = [top_components(average, 2) for average in path]
    else:
        bases = list(path)
    found = pd.DataFrame(recovery.recovery_paths(cell))
    assert {1, 2, TINY["robust"].haystack_rows} <= set(found["iteration"])
    for _, row in found.iterrows():
        step, run_ = int(row["iteration"]), int(row["repetition"])
        expected = squared_distance(bases[step][run_], truth[run_])
        assert row["error"] == pytest.approx(float(expected), rel=1e-9)
    assert (found.groupby("repetition")["seconds"].diff().dropna() >= 0).all()


def test_runs_that_do_not_fit_have_the_same_data_in_one_cell_of_each_grid():
    cell = cell_of("robust-recovery", recovery.NOISELESS)
    setting = recovery.cell_setting(cell)
    ((_, together),) = recovery.haystacks(cell, setting)
    apart = list(recovery.haystacks(cell, setting, work=1))
    second = list(recovery.haystacks(replace(cell, first=1, size=1), setting))
    assert [(first, len(several)) for first, several in apart] == [(0, 1), (1, 1)]
    assert [first for first, _ in second] == [1]
    for first, (data,) in [*apart, *second]:
        np.testing.assert_array_equal(data.rows, together[first].rows)
    errors = {"robust-stability": "pca_error", "robust-constants": "noise"}
    for name, each in tiny_plan(tile_rows=20, haystack_rows=20, slow_runs=1).items():
        if name.startswith("robust-") and name != "robust-audits":
            grid = {column: values[:1] for column, values in each.grid.items()}
            table = run(replace(each, grid=grid))
            assert table[errors.get(name, "error")].between(0, 1).all(), name
            assert set(table["mechanism"]) == set(each.mechanisms)
            if name == "robust-constants":  # sqrt(c_2 log(1/delta))/(2 epsilon N/B)
                noise = np.sqrt(np.log(1e5)) / (2 * 0.8 * 3)
                assert table["noise"].item() == pytest.approx(noise)


def test_runs_that_do_not_fit_have_noise_of_their_own(monkeypatch):
    cell = cell_of("robust-recovery", "dp-sggd")
    ((_, (data, _)),) = recovery.haystacks(cell, recovery.cell_setting(cell))
    groups = [(0, [data]), (1, [data])]
    monkeypatch.setattr(recovery, "haystacks", lambda cell, setting: groups)
    found = pd.DataFrame(recovery.recovery_paths(cell))
    one, other = (each["error"].to_numpy() for _, each in found.groupby("repetition"))
    assert (one != other).all()


def test_final_errors_and_the_step_of_success():
    """Against the errors of all of so few steps. Of 40 runs about half are lost, and
    half come near and go away again: none or all of them is a chance of 2e-12."""
    each = replace(
        experiment("robust-budgets"),
        mechanisms=("dp-sggd",),
        grid={"epsilon": (2.0,), "delta": (1e-2,)},
        repetitions=40,
    )
    options = {**each.options, "dimension": 3, "steps_per_row": 0.25}
    (cell,) = cells(replace(each, options=options))
    paths = pd.DataFrame(recovery.recovery_paths(cell)).groupby("repetition")
    lost = again = 0
    for row in recovery.recovery(cell):
        path = paths.get_group(row["repetition"])
        assert list(path["iteration"]) == list(range(1, 11))
        assert row["error"] == pytest.approx(path["error"].iloc[-1], rel=1e-6)
        near = path.loc[path["error"] <= recovery.TOLERANCE, "iteration"].tolist()
        if near:
            assert row["reached"] == near[0]
            assert 0 <= row["seconds_reached"] <= row["seconds"]
        else:
            assert np.isnan([row["reached"], row["seconds_reached"]]).all()
        lost += not near
        again += bool(near) and len(near) < 11 - near[0]
    assert 0 < lost < 40
    assert again > 0


@pytest.mark.parametrize("name", [*recovery.PUBLISHED, *recovery.CORRECTED])
def test_mechanisms_have_the_parameters_of_the_paper(name):
    setting = {"epsilon": 0.8, "delta": 1e-2, "n_components": 2, "rows": 200}
    descent = recovery.build_descent(name, {**setting, "iterations": 30})
    assert (descent.n_components, descent.iterations) == (2, 30)
    assert descent.claim.parameters == {"epsilon": 0.8, "delta": 1e-2}
    if name == "dp-sggd":
        other = {"iterations": 3, "batch_size": 7.0, "start": PublicStart()}
        made = recovery.build_descent(name, setting | other)
        assert (made.batches.batch_size, made.start) == (7.0, PublicStart())
    # What is compared with the paper has noise for what the paper claims.
    assert descent.relation is Relation.REPLACE_ONE
    if name in ("dp-sggd", "dp-sgd-reap", "dp-smd-reap"):
        assert descent.batches.rate == descent.batches.batch_size / 200


def test_conditions_are_those_of_each_haystack():
    cell = cell_of("robust-stability", recovery.NOISELESS)
    setting = recovery.cell_setting(cell)
    ((_, several),) = recovery.haystacks(cell, setting)
    found = conditions(cell)
    assert [row["repetition"] for row in found] == [0, 1]
    for row, data in zip(found, several, strict=True):
        pca = top_components(data.rows.T @ data.rows, 2)
        error = float(squared_distance(pca, data.subspace))
        assert row["pca_error"] == pytest.approx(error)
        bound = pca_error_bound(data, 2)
        stability = stability_bound(data, 2, 2 * bound)
        said = [row["pca_error_bound"], row["stability"], row["reaper_stability"]]
        expected = [bound, stability, reaper_stability(data)]
        assert said == pytest.approx(expected, nan_ok=True)


def test_batches_are_judged_by_their_own_rows():
    """Of rows that are all alike but for inlying: what is bounded is a number."""
    labels = np.arange(400) < 200
    rows = np.where(labels[:, None], [[1.0, 0.0, 0.0]], [[0.0, 0.0, 1.0]])
    data = Dataset(
        "made", rows, "here", labels=labels.astype(int), subspace=np.eye(3)[:, :1]
    )
    own, printed = batch_stability(data, 1, 0.25, np.random.default_rng(0))
    chosen = np.random.default_rng(0)
    inliers = [
        int((chosen.integers(400, size=BATCH_ROWS) < 200).sum()) for _ in range(BATCHES)
    ]
    share = np.mean(inliers) / BATCH_ROWS
    assert own == pytest.approx(0.75 * share - (1 - share))
    assert printed == pytest.approx(0.75 * share - (1 - share) * BATCH_ROWS)


def test_maps_without_noise_are_those_of_the_inliers():
    larger = experiment("genotypes", genotypes=(60, 20, 200))
    maps = ((c.mechanism, recovery.genotype_map(c)) for c in cells(larger))
    found = {name: pd.DataFrame(each) for name, each in maps}
    assert tuple(found) == MAPS
    for name, table in found.items():
        assert len(table) == 60
        assert table["fit"].nunique() == 1
        # The fit is what least squares leave.
        truth, seen = table[["east", "north"]], table[["x", "y"]].to_numpy()
        left = np.sum((truth.to_numpy() - seen) ** 2) / np.sum(truth.to_numpy() ** 2)
        assert table["fit"][0] == pytest.approx(1 - left), name
        assert np.array_equal(truth, found[recovery.INLIERS_ONLY][["east", "north"]])
    for name in (recovery.INLIERS_ONLY, BASELINE, "fms"):
        assert found[name]["fit"][0] > 0.9
        assert found[name]["error"][0] < 0.3
    # The outliers are seen, a little.
    errors = [found[name]["error"][0] for name in (recovery.INLIERS_ONLY, BASELINE)]
    assert 1e-6 < abs(errors[0] - errors[1]) < 0.1
    assert found["dp-ggd"]["fit"][0] < 0.9


def test_descents_on_genotypes_take_the_steps_of_the_paper(monkeypatch):
    steps, descent = {}, recovery.build_descent

    def build(name, setting):
        steps[name] = setting["iterations"]
        return descent(name, {**setting, "iterations": 2})

    monkeypatch.setattr(recovery, "build_descent", build)
    for name in ("genotypes", "genotypes-reaper"):
        for cell in cells(experiment(name)):
            (first, *_) = recovery.genotype_map(cell)
            assert 0 <= first["error"] <= 1
            assert first["seconds"] >= 0
    assert steps == {name: 50 if "ggd" in name else 100 for name in PAIRED}


def test_factors_of_restarts_and_conditions_are_counted():
    assert findings.restart_factor(TABLES["robust-recovery"]) == pytest.approx(4.0)
    short = TABLES["robust-recovery"].query("iteration < 120")
    assert np.isnan(findings.restart_factor(short))
    # What is rounding does not count.
    floored = TABLES["robust-recovery"].copy()
    floored.loc[floored["iteration"] == 300, "error"] = 1e-25
    assert findings.restart_factor(floored) == pytest.approx(4.0)
    notes = " ".join(findings.condition_notes(TABLES["robust-stability"]))
    assert "on 2 of 3 haystacks; on 2 of these the error of PCA is within" in notes
    assert "the bound, at 50.0 % of it at most" in notes
    assert "stability, holds on 1; that of Theorem 10, for REAPER, on 1." in notes


def test_notes_follow_the_data():
    notes = " ".join(findings.recovery_notes(TABLES["robust-recovery"]))
    assert "in the order dp-sggd < dp-sgd-reap < dp-smd-reap < " in notes
    assert "dp-sgd-reap is ahead of dp-sggd up to step 150." in notes
    assert "dp-smd-reap is ahead of dp-sggd up to step 2." in notes
    assert "dp-ggd finds nothing with the printed noise" in notes
    assert "Corrected, 6 of 6 come within 0.01" in notes
    assert "dp-sggd from step 100 on, as published from step 4 on" in notes
    least = "takes the least time until it is within 0.01 to stay"
    assert f"As published, dp-sgd-reap {least}: 6.67 ms" in notes
    assert f"Corrected, dp-sggd {least}: 667 ms" in notes
    lost = TABLES["robust-recovery"].assign(error=0.8)
    notes = " ".join(findings.recovery_notes(lost))
    assert "dp-gd-reap and dp-md-reap find nothing" in notes
    assert "0 of 6" in notes
    assert "at no step" in notes
    assert "the clock" not in notes


def test_rows_have_the_median_error_at_the_end_and_the_whole_time():
    audits = pd.DataFrame([audited(mechanism=name) for name in recovery.CORRECTED])
    found = findings.recovery_rows(TABLES["robust-recovery"], audits)
    assert [row.verdict.name for row in found] == list(recovery.CORRECTED)
    assert {row.error for row in found} == {"1.7 × 10⁻³"}
    assert {row.reached for row in found} == {"100"}
    assert {row.time for row in found} == {"2.00 s"}


PHASES = ("robust-phases", "robust-phases-full", "robust-phases-reaper")


def test_the_reach_of_the_mechanisms_is_said():
    glad, reaper = findings.phase_notes(*(TABLES[name] for name in PHASES))
    assert glad == (
        "The largest D (of up to 40) at which the median error is within 0.01 with N = "
        "200, as published and corrected: dp-sggd 40 and 10; dp-ggd 40 and 10."
    )
    assert reaper.startswith("The largest D (of up to 10) at which ")
    assert "dp-md-reap 10 and none" in reaper
    (note,) = findings.phase_notes(TABLES["robust-phases"].assign(error=1.0))
    assert "dp-sggd none and none" in note
    notes = findings.map_notes(TABLES["genotypes"])
    assert notes[0].startswith("inliers-only-pca 75.0 %; non-private-pca 75.0 %;")
    assert notes[1].startswith("As published and corrected: dp-sggd 75.0 % and 75.0 %;")
    assert len(findings.map_notes(TABLES["genotypes-reaper"])) == 1


def test_cells_are_counted_as_published_and_corrected():
    (note,) = findings.tile_notes(TABLES["robust-budgets"], ["epsilon", "delta"])
    assert note.startswith(
        "The number of cells (of 4) in which the median error is within 0.01, as "
        "published and corrected: dp-sggd 4 and 1; dp-ggd 4 and 1;"
    )
    lost = TABLES["robust-budgets"].assign(error=nan)
    assert "dp-sggd 0 and 0" in findings.tile_notes(lost, ["epsilon", "delta"])[0]
    (note,) = findings.batch_notes(TABLES["robust-batches"])
    assert "published and corrected: dp-sggd 0.3 and 0.6; dp-sgd-reap 0.3 and " in note
    lost = TABLES["robust-batches"].assign(reached=nan)
    assert "dp-sggd none tried and none tried" in findings.batch_notes(lost)[0]


def test_times_in_print_and_parameters_of_the_paper():
    audits = verdicts(("dp-sggd-published",))
    tables = [(TABLES["genotypes"], 300, 50), (TABLES["genotypes-reaper"], 60, 100)]
    rows = findings.map_rows(tables, audits)
    assert [row.name for row in rows] == PAIRED
    assert [row.name for row in rows if row.refuted] == ["dp-sggd-published"]
    for row in rows:
        published = row.name.endswith("-published")
        seconds = recovery.PRINTED_SECONDS[row.name.removesuffix("-published")]
        assert row.printed == (f"{seconds:,} s" if published else "–")
        assert (row.time, row.fit) == ("1.00 s", "75.0 %")
        expected = ("60", "100") if "reap" in row.name else ("300", "50")
        assert (row.loci, row.steps) == expected
    section = all_sections()["robust"]
    found = {each.name: each for each in section.experiments(section.sizes["full"])}
    recovery_, tiles = found["robust-recovery"], found["robust-budgets"]
    assert recovery_.repetitions == 100
    options = {"epsilon": 0.8, "n_components": 2, "inlier_share": 0.5}
    assert recovery_.options == {**options, "rows": 2000, "dimension": 20}
    assert 0.8 in tiles.grid["epsilon"]
    assert (tiles.options["rows"], tiles.options["dimension"]) == (2000, 20)
    for name, each in found.items():
        if name.startswith("robust-phases"):
            assert (each.repetitions, each.options["steps_per_row"]) == (50, 2.0)
    assert found["genotypes"].options["dimension"] == 10_000


STANDING = ("dp-sgd-reap", "dp-smd-reap", "dp-gd-reap")
REFUTED = ("dp-sggd-published", "dp-gd-reap-published")
PHONES = ("robust-recovery", "robust-batches", "genotypes")  # drawn narrow as well


@pytest.fixture(scope="module")
def figures():
    """Of which two claims fell and three stand; nobody audited the others."""
    audits = {"robust-audits": verdicts(REFUTED, STANDING)}
    audits["privacy-wall"] = verdicts(["analyze-gauss", "power-method"])
    found = results_of({**TABLES, **audits})
    return {
        name: [draw(found, narrow) for narrow in (False, True)[: 1 + (name in PHONES)]]
        for name, draw in all_sections()["robust"].figures.items()
    }


def spoken(svg):
    return " ".join(ElementTree.fromstring(svg).itertext())


def test_figures_draw_what_audits_say_and_cells_what_is_in_them(figures):
    for name, drawings in figures.items():
        assert well_drawn(drawings[0]), name
        for svg in drawings:
            words = " ".join(written(svg))
            assert ("dp-sggd" in words) == (name != "genotypes-reaper")
            assert ("power-method ✗" in words) == (name == "genotypes")
            # At what fell, and in the key.
            fewer = name in ("robust-batches", "genotypes-reaper")
            assert words.count("✗") == (2 if fewer else 3), name
            if name == "genotypes-reaper":  # from its own table
                assert "corrected, 75.0 %" in words
            if name in ("robust-recovery", "robust-clock"):
                assert strokes(svg) == {"false": 2, "whole": 3, "open": 7}
    told = {name: spoken(wide) for name, (wide, *_) in figures.items()}
    for name in ("robust-phases", "robust-budgets", "robust-ranks"):
        assert "−9.0" in told[name]
        assert "−0.5" in told[name]
    assert ".25s" in told["robust-times"]
    assert "'none' in 1 of 1 cells" in told["robust-times"]
    alone = " (no claim audited here)"
    assert f"dp-sgd-reap-published{alone}: 0 to 0." in told["robust-failures"]
    assert f"dp-sggd{alone}: 0 to 100" in told["robust-failures"]
    assert f"dp-sggd{alone}: 0 to 100" in told["robust-batches"]
    place = rf"dp-sggd{re.escape(alone)}, batch B = \d+"
    assert re.search(place, told["robust-batches"])
    assert "as published" in told["robust-batches"]


def test_the_figures_of_errors_say_where_lines_end(figures):
    steps = spoken(figures["robust-recovery"][0])
    clock = spoken(figures["robust-clock"][0])
    assert "dp-sggd-published (claim refuted): " in steps
    assert "dp-smd-reap: " in steps
    assert error_after("dp-ggd-published", 300) == 0.9
    unknown = "dp-ggd-published (no claim audited here)"
    assert f"{unknown}: 0.90 after 300 steps." in steps
    assert f"{unknown}, step 300: 0.9" in steps
    # As the error is 1/(2 step), equal ratios are as far apart, in both directions.
    places = marks(figures["robust-recovery"][0])
    one, two, four, hundred, twice = (
        next(np.array(at) for text, at in places.items() if f"{start}{step}:" in text)
        for start in ["dp-sggd (no claim audited here), step "]
        for step in (1, 2, 4, 100, 200)
    )
    # Coordinates are rounded to a tenth of a pixel.
    assert two - one == pytest.approx(four - two, abs=0.25)
    assert two - one == pytest.approx(twice - hundred, abs=0.25)
    assert (two > one).all()
    assert f"{unknown}: 0.90 after 2.00 s." in clock
    assert "seconds" in clock


def cell_with(errors, seconds=nan):
    columns = {"error": errors, "reached": seconds, "seconds_reached": seconds}
    return pd.DataFrame(columns)


def test_what_no_run_has_is_shown_and_not_dropped():
    """A median counts bottom as an error of 1, and a run that misses as endless."""
    some, every = [nan, nan, 1e-4], [nan, nan, nan]
    assert findings.final_error(cell_with(some)) == 0.0
    assert findings.final_error(cell_with([1e-4, 1e-4, nan])) == pytest.approx(-4)
    assert np.isnan(findings.final_error(cell_with(every)))
    assert heatmaps._ERROR.label(nan) == "⊥"
    assert findings.time_taken(cell_with(every, [1.0, 3.0, nan])) == 3.0
    assert findings.time_taken(cell_with(every, [1.0, nan, nan])) == inf
    assert np.isnan(findings.time_taken(cell_with(every, every)))
    times = heatmaps._TIME
    assert [times.label(value) for value in (nan, inf, 3.0)] == ["none", "few", "3.0s"]
    assert findings.failed(cell_with(every, [1.0, nan, nan])) == pytest.approx(2 / 3)
    bottom = TABLES["robust-budgets"].assign(error=nan)
    nothing = results_of({"robust-budgets": bottom, "robust-audits": verdicts()})
    words = spoken(all_sections()["robust"].figures["robust-budgets"](nothing))
    # In tiles, in what they say, and in the description.
    assert words.count("⊥") == 2 * 12 * 4 + 12
    assert "dp-sggd (no claim audited here): '⊥' in 4 of 4 cells" in words


def run_alone(*arguments):
    return CliRunner().invoke(main, ["report", "run", *arguments])


def test_one_experiment_is_carried_out_alone(monkeypatch, tmp_path):
    seen = []

    def run(each, **_):
        seen.append(each.mechanisms)
        return TABLES[each.name]

    monkeypatch.setattr("dpaudit.reports.experiment.run", run)
    some = run_alone("robust-ranks", "--mechanisms", "dp-sggd,dp-ggd")
    result = run_alone("robust-ranks", "--output", str(tmp_path / "new"))
    assert seen[0] == ("dp-sggd", "dp-ggd")
    assert some.stdout.count("\n") == 1
    assert result.exit_code == 0
    assert result.stdout.startswith("Recovery by length and components: 144 rows in ")
    assert "dp-sggd 4 and 1" in result.stdout
    assert len(pd.read_csv(tmp_path / "new" / "robust-ranks.csv")) == 144
