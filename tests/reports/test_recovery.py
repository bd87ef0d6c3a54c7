"""What is measured of robust PCA, what is said of it, and what is drawn."""

import xml.etree.ElementTree as ElementTree
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from audited_row import audited
from click.testing import CliRunner
from recovery_tables import error_after, recovery_tables
from results_of import results_of, verdicts
from strokes import strokes
from tiny_profile import TINY, tiny_plan

from dpaudit.algorithms.robust.grassmannian import squared_distance
from dpaudit.algorithms.robust.initialisation import PublicStart
from dpaudit.cli import main
from dpaudit.neighbours import Relation
from dpaudit.reports.experiment import cells, run
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.page import draw_figures
from dpaudit.reports.sections import all_sections
from dpaudit.reports.sections.robust import measures as recovery
from dpaudit.reports.sections.robust.figures import error_by_step, maps, phases
from dpaudit.reports.sections.robust.measures import (
    CORRECTED,
    INLIERS_ONLY,
    MAPS,
    NOISELESS,
    PUBLISHED,
    build_descent,
    genotype_map,
)
from dpaudit.reports.sections.robust.section import (
    map_notes,
    phase_notes,
    recovery_notes,
    recovery_rows,
    restart_factor,
)
from dpaudit.subspace import top_components


def experiment(name, seed=0, **changes):
    return tiny_plan(seed, **changes)[name]


def cell_of(name, mechanism):
    return next(c for c in cells(experiment(name)) if c.mechanism == mechanism)


def no_audits(refuted, names):
    return pd.DataFrame()


TABLES = recovery_tables(no_audits)


# What is measured


@pytest.mark.parametrize("name", [NOISELESS, "dp-sggd-published", "dp-sgd-reap"])
def test_errors_are_those_of_the_runs(name):
    cell = cell_of("robust-recovery", name)
    setting = recovery._setting(cell)
    assert setting["iterations"] == TINY["robust"].haystack_rows
    assert setting["delta"] == 1 / sqrt(TINY["robust"].haystack_rows)
    ((first, data, truth),) = recovery._haystacks(cell, setting)
    assert (first, len(data)) == (0, TINY["robust"].haystacks)
    assert not np.allclose(data[0], data[1])
    descent = build_descent(name, setting)
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


def test_runs_that_do_not_fit_together_have_the_same_data(monkeypatch):
    cell = cell_of("robust-recovery", NOISELESS)
    together = pd.DataFrame(recovery.recovery_paths(cell))
    monkeypatch.setattr(recovery, "_WORK", 1)
    apart = pd.DataFrame(recovery.recovery_paths(cell))
    keys = ["repetition", "iteration"]
    both = together.merge(apart, on=keys, suffixes=("", "_apart"))
    assert len(both) == len(together) == len(apart)
    assert np.allclose(both["error"], both["error_apart"], rtol=1e-6, atol=1e-20)


def test_final_errors_and_the_step_of_success(monkeypatch):
    path = [(1, 0.5), (2, 0.005), (3, 0.2), (4, 0.001)]

    def walk(cell, setting, kept):
        for step, error in path:
            yield 0, step, np.full(cell.size, error), 0.25

    monkeypatch.setattr(recovery, "_errors", walk)
    cell = cell_of("robust-phases", "dp-sggd")
    rows = recovery.recovery(cell)
    assert [row["repetition"] for row in rows] == [0, 1]
    assert all(row["reached"] == 2.0 for row in rows)
    assert all(row["error"] == pytest.approx(0.001) for row in rows)
    path[1] = (2, 0.4)
    path[3] = (4, 0.3)
    assert all(np.isnan(row["reached"]) for row in recovery.recovery(cell))


@pytest.mark.parametrize("name", [*PUBLISHED, *CORRECTED])
def test_mechanisms_have_the_parameters_of_the_paper(name):
    setting = {"epsilon": 0.8, "delta": 1e-2, "n_components": 2, "rows": 200}
    descent = build_descent(name, {**setting, "iterations": 30})
    assert (descent.n_components, descent.iterations) == (2, 30)
    assert descent.claim.parameters == {"epsilon": 0.8, "delta": 1e-2}
    # What is compared with the paper has noise for what the paper claims.
    assert descent.relation is Relation.REPLACE_ONE
    if name in ("dp-sggd", "dp-sgd-reap", "dp-smd-reap"):
        assert descent.batches.rate == descent.batches.batch_size / 200


def test_batch_size_and_start_are_passed_on():
    setting = {"epsilon": 0.8, "delta": 1e-2, "n_components": 2, "rows": 200}
    setting |= {"iterations": 3, "batch_size": 7.0, "start": PublicStart()}
    descent = build_descent("dp-sggd", setting)
    assert (descent.batches.batch_size, descent.start) == (7.0, PublicStart())


def test_every_experiment_on_robust_pca_runs():
    for name in ("robust-recovery", "robust-phases"):
        table = run(experiment(name))
        assert np.isfinite(table["error"]).all()
        assert table["error"].between(0, 1).all()
        assert set(table["mechanism"]) == set(experiment(name).mechanisms)


# Maps


def test_maps_without_noise_are_those_of_the_inliers():
    larger = experiment("genotypes", genotypes=(60, 20, 200))
    found = {c.mechanism: pd.DataFrame(genotype_map(c)) for c in cells(larger)}
    assert tuple(found) == MAPS
    for name, table in found.items():
        assert len(table) == 60
        assert table["fit"].nunique() == 1
        # The fit is what least squares leave.
        truth, seen = table[["east", "north"]], table[["x", "y"]].to_numpy()
        left = np.sum((truth.to_numpy() - seen) ** 2) / np.sum(truth.to_numpy() ** 2)
        assert table["fit"][0] == pytest.approx(1 - left), name
        assert np.array_equal(truth, found[INLIERS_ONLY][["east", "north"]])
    for name in (INLIERS_ONLY, BASELINE, "fms"):
        assert found[name]["fit"][0] > 0.9
        assert found[name]["error"][0] < 0.3
    # The outliers are seen, a little.
    errors = [found[name]["error"][0] for name in (INLIERS_ONLY, BASELINE)]
    assert 1e-6 < abs(errors[0] - errors[1]) < 0.1
    assert found["dp-ggd"]["fit"][0] < 0.9


# Words


def test_the_factor_of_a_restart_is_that_of_the_slope():
    assert restart_factor(TABLES["robust-recovery"]) == pytest.approx(4.0)
    short = TABLES["robust-recovery"].query("iteration < 120")
    assert np.isnan(restart_factor(short))
    # What is rounding does not count.
    floored = TABLES["robust-recovery"].copy()
    floored.loc[floored["iteration"] == 300, "error"] = 1e-25
    assert restart_factor(floored) == pytest.approx(4.0)


def test_notes_follow_the_data():
    notes = " ".join(recovery_notes(TABLES["robust-recovery"]))
    assert "in the order dp-sggd < dp-sgd-reap < dp-smd-reap < " in notes
    assert "dp-sgd-reap is ahead of dp-sggd up to step 150." in notes
    assert "dp-smd-reap is ahead of dp-sggd up to step 2." in notes
    assert "dp-ggd finds nothing with the printed noise" in notes
    assert "Corrected, 6 of 6 come within 0.01" in notes
    assert "dp-sggd takes 100 steps, as published 4 steps" in notes
    lost = TABLES["robust-recovery"].assign(error=0.8)
    notes = " ".join(recovery_notes(lost))
    assert "dp-gd-reap and dp-md-reap find nothing" in notes
    assert "0 of 6" in notes
    assert "more steps than there were" in notes


def test_rows_have_the_median_error_at_the_end_and_the_whole_time():
    audits = pd.DataFrame([audited(mechanism=name) for name in CORRECTED])
    found = recovery_rows(TABLES["robust-recovery"], audits)
    assert [row.verdict.name for row in found] == list(CORRECTED)
    assert {row.error for row in found} == {"1.7 × 10⁻³"}
    assert {row.reached for row in found} == {"100"}
    assert {row.time for row in found} == {"2.00 s"}


def test_the_reach_of_the_mechanisms_is_said():
    (note,) = phase_notes(TABLES["robust-phases"])
    assert note == (
        "With N = 200, dp-sggd-published comes within 0.01 up to D = 40; dp-sggd comes "
        "within 0.01 up to D = 10."
    )
    (note,) = phase_notes(TABLES["robust-phases"].assign(error=1.0))
    assert "at no D that was tried" in note
    (note,) = map_notes(TABLES["genotypes"])
    assert note.startswith("inliers-only-pca 75.0 %; non-private-pca 75.0 %;")


# Figures


def audited_results(*refuted):
    audits = {"robust-audits": verdicts(refuted), "privacy-wall": verdicts()}
    return results_of({**TABLES, **audits})


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("draw", [error_by_step, phases, maps])
def test_figures_name_everything_and_mark_what_is_refuted(draw, narrow):
    found = audited_results("dp-sggd-published")
    svg = draw(found, narrow)
    words = " ".join(ElementTree.fromstring(svg).itertext())
    assert "dp-sggd" in words
    assert words.count("✗") == 1
    assert draw(found, narrow) == svg
    assert "✗" not in draw(audited_results(), narrow)


def test_figures_draw_what_the_audits_say():
    names = (*PUBLISHED, *CORRECTED)
    audits = {
        "robust-audits": verdicts(names[:1], names[1:4]),
        "privacy-wall": verdicts(["analyze-gauss", "power-method"]),
    }
    found = results_of({**TABLES, **audits})
    drawn = draw_figures(found, [all_sections()["robust"]])

    assert list(drawn) == ["robust-recovery", "robust-phases", "genotypes"]
    for svg in drawn["robust-recovery"]:
        assert strokes(svg) == {"false": 1, "whole": 3, "open": len(names) - 4}
    for name, marks in (("robust-phases", 1), ("genotypes", 2)):
        for svg in drawn[name]:
            words = " ".join(ElementTree.fromstring(svg).itertext())
            assert words.count("✗") == marks
            assert ("power-method ✗" in words) == (name == "genotypes")


def test_the_figure_of_steps_says_where_lines_end():
    svg = error_by_step(audited_results())
    for name in ("dp-ggd-published", "dp-sggd-published"):
        assert f"{name}: " in svg
    assert error_after("dp-ggd-published", 300) == 0.9
    assert "dp-ggd-published: 0.90 after 300 steps." in svg


def test_the_figure_of_phases_has_logarithms():
    svg = phases(audited_results())
    words = " ".join(ElementTree.fromstring(svg).itertext())
    assert "−9.0" in words
    assert "−0.5" in words


# Alone


def run_alone(*arguments):
    return CliRunner().invoke(main, ["report", "run", *arguments, "--workers", "1"])


def test_one_experiment_is_carried_out_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(
        "dpaudit.reports.experiment.run", lambda each, **_: TABLES[each.name]
    )
    result = run_alone("robust-phases", "--output", str(tmp_path / "new"))
    assert result.exit_code == 0
    assert result.stdout.startswith("Recovery by size: 8 rows in ")
    assert "up to D = 40" in result.stdout
    assert len(pd.read_csv(tmp_path / "new" / "robust-phases.csv")) == 8


def test_some_mechanisms_are_carried_out_alone(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "dpaudit.reports.experiment.run",
        lambda each, **_: seen.append(each.mechanisms) or pd.DataFrame(),
    )
    result = run_alone("robust-recovery", "--mechanisms", "dp-sggd,ggd")
    assert result.exit_code == 0
    assert seen == [("dp-sggd", "ggd")]
    assert result.stdout.count("\n") == 1


def test_what_was_carried_out_alone_is_kept_if_wanted(tmp_path):
    arguments = ["list-culling", "--store", str(tmp_path / "new" / "kept.db")]
    first, again = (run_alone(*arguments) for _ in range(2))
    assert first.exit_code == again.exit_code == 0
    assert "0 of 12" in first.stderr
    assert "0 of 12" not in again.stderr
    assert "12 of 12" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["robust-phase"], "did you mean 'robust-phases'"),
        (["genotypes", "--profile", "quik"], "did you mean 'quick'"),
        (["genotypes", "--workers", "0"], "workers must be"),
        (["genotypes", "--seed", "-1"], "seed must be"),
        (["genotypes", "--mechanisms", "dp-sgg"], "did you mean 'dp-sggd'"),
    ],
)
def test_wrong_options_are_named(arguments, words):
    result = CliRunner().invoke(main, ["report", "run", *arguments])
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
