"""The experiments of the DP-PCA paper, and what goes beyond it.

Rows, errors, medians, bottoms, figures, sentences.
"""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import product
from math import nan, sqrt

import numpy as np
import pandas as pd
import pytest
from dp_pca_tables import BESIDE, claims_table, dp_pca_tables
from refusals import refused, refuses
from results_of import results_of
from strokes import well_drawn
from tiny_profile import install_tiny, tiny_plan

from dpaudit.algorithms.streaming.dp_pca import DPPCA
from dpaudit.reports.experiment import cells, run
from dpaudit.reports.sections import all_sections
from dpaudit.reports.sections.dp_pca import findings, floors, measures, section
from dpaudit.reports.sections.dp_pca import section as stages
from dpaudit.reports.sections.dp_pca.findings import CLAIMS, EXAMPLE, RATES
from dpaudit.reports.sections.dp_pca.hard_laws import GaussianLaw, HeavyLaw
from dpaudit.reports.sections.dp_pca.measures import (
    DP_PCA,
    GOE,
    MINIBATCH_OJA,
    OWN_PARTS,
    TWO_STAGE,
)
from dpaudit.subspace import second_moment

SECTION = all_sections()["dp_pca"]

REFUTED = (measures.OJA, measures.AG_PUBLISHED)
pytestmark = pytest.mark.usefixtures("tiny")


def results(**tables):
    return results_of({**dp_pca_tables(), **tables}, **tiny_plan())


def laws(count=70_000, d=4):
    example = measures.example(count, d, 3, (2,), noise=0.1)
    return measures.gaussian(count, d, 3, (1,)), example


def test_rows_have_the_moments_that_are_said_however_they_are_read():
    """Eigenvalues and squared lengths of 70,000 rows deviate by 0.6 % at most: 5 % is
    more than eight deviations of each."""
    for source, first in zip(laws(), (measures.FIRST, 1.01), strict=True):
        rows = np.concatenate(list(source.blocks()))
        values, vectors = np.linalg.eigh(second_moment(rows) / len(rows))
        assert values[-1] == pytest.approx(first, rel=0.05)
        assert abs(vectors[:, -1] @ source.truth) > 0.99
        assert values.sum() == pytest.approx(source.square, rel=0.05)
        clipped = source.second_moment()
        assert np.trace(clipped) <= len(rows) * source.square
        top = np.linalg.eigh(clipped)[1][:, -1]
        assert abs(top @ source.truth) > 0.99  # scaling rows down turns it not
    for source in laws():
        whole = np.concatenate(list(source.blocks()))
        assert whole.shape == (70_000, 4)
        moments = source.moments(None)
        for where in (slice(0, 9), slice(32_760, 65_540), slice(69_990, 70_000)):
            np.testing.assert_array_equal(moments.read(where), whole[where])
        order = np.random.default_rng(0).permutation(70_000)[:50].reshape(10, 5)
        np.testing.assert_array_equal(moments.read(order), whole[order])


def test_every_mechanism_finds_the_component_within_the_range_of_its_grid():
    """With epsilon large and sigma small nothing is left but the steps."""
    setting = {"epsilon": 0.8, "delta": 0.1, "d": 3, "n": 20_000, "noise": 1e-3}
    source = measures.example(20_000, 3, 0, (1,), noise=1e-3)
    for steps in (measures.DEFAULT, measures.TUNED):
        for name in measures.MECHANISMS:
            rng = np.random.default_rng(0)
            found = measures.released(name, {**setting, "steps": steps}, source, rng)
            # Published DP-PCA splits its budget: it may find no bin, or be right.
            nothing = name == measures.PUBLISHED and np.isnan(found).all()
            assert nothing or abs(found @ source.truth) > 0.9, (name, steps)
    for size in SECTION.sizes.values():
        for cell in (c for each in SECTION.experiments(size)[2:] for c in cells(each)):
            measures.check_range(cell.mechanism, {**cell.options, **cell.point})


def test_rows_are_the_same_for_all_mechanisms_and_each_is_run(monkeypatch):
    seen = []

    def released(name, setting, source, rng):
        seen.append(source.truth)
        return source.truth

    monkeypatch.setattr(measures, "released", released)
    found = run(tiny_plan()["dp-pca-n"])
    assert found["error"].max() < 1e-7
    several = len(tiny_plan()["dp-pca-n"].mechanisms)
    truths = np.array(seen).reshape(several, -1, 20)
    assert (truths == truths[0]).all()
    assert len(np.unique(truths[0], axis=0)) == len(truths[0])
    install_tiny(monkeypatch)
    found = run(tiny_plan()["two-stage-example"])
    assert set(found["mechanism"]) == set(NAMES)
    own = found[found["mechanism"] == TWO_STAGE]
    assert own["error"].between(0, 1).all()


def test_too_few_rows_are_bottom_and_tuned_steps_other_steps():
    found = run(tiny_plan()["dp-pca-n"])
    own = found[found["mechanism"] == measures.DP_PCA]
    assert own["error"].isna().all()
    assert found[found["mechanism"] == measures.GOE]["error"].between(0, 1).all()
    n, d = 20_000, 5
    setting = {"epsilon": 0.8, "delta": 1e-6, "noise": 0.1}
    source = measures.example(n, d, 0, (1,), noise=0.1)
    made = {
        steps: measures._made(measures.DP_PCA, {**setting, "steps": steps}, source)
        for steps in (measures.DEFAULT, measures.TUNED)
    }
    assert made["default"] == DPPCA.calibrated(0.8, 1e-6)
    assert made["tuned"].batches(n) == (n // 4, 4)


def first_cell():
    return next(cells(tiny_plan()["dp-pca-d"]))


test_points_outside_a_range_are_refused = refused(
    (measures.PUBLISHED, {"epsilon": 1.0}, "epsilon must be at most 0.9"),
    (measures.AG_PUBLISHED, {"epsilon": 2.0}, "epsilon must be at most 1"),
    (measures.PRIVATE_OJA, {"n": 1e7}, "n must be at most"),
    (measures.GOE, {"n": 1000.5}, "n must be a whole number"),
    (measures.GOE, {"d": 1.0}, "d must be an integer >= 2"),
    (measures.GOE, {"epsilon": "much"}, "epsilon must be a real number"),
    ("laplace-covariance", {}, "no such mechanism here"),
    by=lambda name, changes: measures.component_errors(
        replace(first_cell(), mechanism=name, point={"d": 3.0, **changes})
    ),
)


def test_claims_for_replaced_rows_are_exact_and_floors_of_the_law():
    """analyze-gauss as published has noise for an added row: sqrt 2 too little."""
    names = (measures.AG_PUBLISHED, "analyze-gauss", measures.GOE)
    experiment = replace(tiny_plan()[CLAIMS], mechanisms=names)
    found = run(experiment).set_index("mechanism")
    assert list(found["claim"]) == ["false", "kept", "kept"]
    assert list(found["verdict"]) == ["REFUTED", "NOT_REFUTED", "NOT_REFUTED"]
    assert found.loc[measures.AG_PUBLISHED, "exact_epsilon"] > 0.8
    assert found.loc[measures.GOE, "exact_epsilon"] == pytest.approx(0.8)
    found = run(tiny_plan()["dp-pca-floor-heavy"])
    for n, own in found.groupby("n"):
        hardest = HeavyLaw.hardest(20, int(n), 0.8, 1e-6)
        floor = hardest.floor(int(n), 0.8, 1e-6)
        assert own["floor"].unique() == pytest.approx([floor])
        assert (own["blind"] > own["floor"]).all()
    flat = tiny_plan()["dp-pca-floor-heavy"]
    flat = replace(flat, options={**flat.options, "instance": "flat"})
    refuses("unknown instance 'flat'", run, flat)


def test_gradients_are_products_of_rows_and_w():
    """Means of 10,000: E x x^T w = (1, 1/4)/sqrt 2 for Gaussian rows, with deviations
    of about 0.014; (1 + s^2, s^2)/sqrt 2 in Example 4.1, with far smaller ones."""
    tiny = tiny_plan()[section.GRADIENTS]
    table = run(replace(tiny, options={**tiny.options, "gradients": 10_000}))
    means = table.groupby("mechanism")[["along", "across"]].mean()
    expected = np.array([1, 0.25]) / sqrt(2)
    assert np.abs(means.loc[section.GAUSSIAN] - expected).max() < 0.1
    s = section.SPREAD
    expected = np.array([1 + s**2, s**2]) / sqrt(2)
    assert np.abs(means.loc[section.NEAR_A_LINE] - expected).max() < 8 * s / 100
    assert (table["mechanism"].value_counts() == 10_000).all()


def test_rows_of_hard_instances_are_those_of_their_laws():
    """Null hypothesis: second moments are those of the law; of 40,000 rows each entry
    deviates by 0.02 at most (Gaussian, lambda_1 = 2), 0.2 is ten times that."""
    law, directions = GaussianLaw(dimension=6), []
    for i in range(4):
        source = floors._source(law, 40_000, 6, 0, (1, i))
        directions.append(source.truth)
        assert source.square == pytest.approx(7.0)  # 2 + 5
    assert np.abs(np.triu(np.array(directions) @ np.array(directions).T, 1)).max() < 1
    rows = np.concatenate(list(source.blocks()))
    expected = law.covariance(source.truth)
    assert np.abs(rows.T @ rows / len(rows) - expected).max() < 0.2


def test_distances_to_the_floor_are_said_and_refuted_claims_owe_nothing():
    tables = dp_pca_tables()
    first, second, *_ = floors.floor_notes(tables, REFUTED)
    # 0.005 over 0.001/sqrt(500), and 0.08 or so over 0.001/sqrt(1000).
    least, most = 5 * sqrt(500), 10 * (len(measures.MECHANISMS) - 1) * sqrt(1000)
    assert first.startswith("On the hard instance of Theorem 5.3 mean errors are ")
    assert f"{least:.0f} to {most:,.0f} times the floor; nearest is goe-gau" in first
    assert "like n to the power −0.50." in first
    assert second.startswith("No mean is below the floor")
    below = dp_pca_tables(beside={**BESIDE, measures.GOE: 1e-5})
    text = " ".join(floors.floor_notes(below, REFUTED))
    assert "Below it is the mean of goe-gaussian at n = 500, goe-gaussian at" in text
    below = dp_pca_tables(beside={**BESIDE, measures.AG_PUBLISHED: 1e-5})
    assert "Below it is" not in " ".join(floors.floor_notes(below, REFUTED))
    chance = {}  # a mean below the floor, within what chance explains
    for name, table in ((k, v) for k, v in tables.items() if "floor" in k):
        error = table["floor"] * (0.5 + 0.9 * (table["repetition"] % 2))
        chance[name] = table.assign(error=error)
    assert "Below it is" not in " ".join(floors.floor_notes(chance, REFUTED))
    bottom = {k: v.assign(error=nan) for k, v in below.items() if "floor" in k}
    assert "no mean to compare" in floors.floor_notes(bottom, ())[0]


def test_bottoms_are_points_and_not_left_out():
    (panel, *_) = findings.panels(dp_pca_tables(), RATES)
    found = panel.quartiles
    assert list(found) == list(measures.MECHANISMS)
    assert list(found[measures.DP_PCA]) == [500.0, 1000.0]
    assert found[measures.DP_PCA][500.0] is None
    assert found[measures.DP_PCA][1000.0] is not None
    half = panel.table.copy()
    own = half["mechanism"] == measures.GOE
    half.loc[own & (half["repetition"] == 0), "error"] = nan
    found = replace(panel, table=half).quartiles
    assert found[measures.GOE] == {500.0: None, 1000.0: None}


def test_a_bottom_counts_as_the_largest_error_and_can_be_drawn():
    (panel, *_) = findings.panels(dp_pca_tables(), RATES)
    more = [panel.table[panel.table["mechanism"] == measures.GOE].iloc[:1]] * 3
    table = pd.concat(more, ignore_index=True)
    table.loc[0, "error"] = nan
    (own,) = replace(panel, table=table).quartiles.values()
    (quartiles,) = own.values()
    assert quartiles[1] == pytest.approx(0.005)
    assert quartiles[2] == pytest.approx((1 + 0.005) / 2)
    nothing = {k: v.assign(error=nan) for k, v in dp_pca_tables().items() if "-n" in k}
    svg = SECTION.figures["dp-pca-rates"](results(**nothing), False)
    assert "bottom throughout" in " ".join(ElementTree.fromstring(svg).itertext())
    shown = findings.panels({**dp_pca_tables(), **nothing}, RATES)
    assert "all were bottom" in " ".join(findings.rate_notes(shown, REFUTED))


def test_where_goe_is_ahead_the_text_says_so_and_how_far_the_others_are():
    shown = findings.panels(dp_pca_tables(), RATES)
    notes = findings.rate_notes(shown, REFUTED)
    assert notes[0].startswith("On Gaussian rows goe-gaussian")
    assert "at each of the 8 points" in notes[0]
    assert notes[1].startswith("The median of dp-pca is 10 times (at n = 1,000)")
    assert notes[-1] == "Bottom (⊥) is the release of dp-pca at four points."
    ahead = dp_pca_tables(beside={**BESIDE, measures.DP_PCA: 0.1})
    notes = findings.rate_notes(findings.panels(ahead, RATES), REFUTED)
    assert "goe-gaussian, which" not in " ".join(notes)
    least = "take steps is that of goe-gaussian at n = 500 and dp-pca at n = 1,000."
    assert least in " ".join(notes)
    notes = stages.stage_notes(tables())
    assert notes[0] == (
        "At ε = 1 on Gaussian rows with d = 20 the median error is 2 (two-stage-pca) "
        "and 5 (dp-pca-tuned) times that of goe-gaussian."
    )
    assert notes[4:] == [
        "two-stage-pca was never bottom.",
        "dp-pca-tuned was never bottom.",
    ]


def test_refuted_mechanisms_win_nothing_and_what_falls_with_sigma_is_said():
    ahead = dp_pca_tables(beside={**BESIDE, measures.PRIVATE_OJA: 0.01})
    for panel in findings.panels(ahead, EXAMPLE):
        without = findings.winners(panel, (measures.PRIVATE_OJA,))
        assert set(without.values()) == {measures.GOE}
        assert set(findings.winners(panel, ()).values()) == {measures.PRIVATE_OJA}
    tables = dp_pca_tables()
    falling = tables["dp-pca-example"]
    falling.loc[falling["mechanism"] == measures.GOE, "error"] *= falling["noise"]
    notes = findings.example_notes(findings.panels(tables, EXAMPLE), REFUTED)
    text = next(note for note in notes if "as σ falls by a factor of 10" in note)
    assert "10 for goe-gaussian" in text
    assert "1 for minibatch-oja" in text


def test_the_head_says_where_the_point_of_the_example_is_seen():
    tables = dp_pca_tables(bottoms=())
    text = findings.head(findings.panels(tables, EXAMPLE))
    assert text.count("not seen with") == 2
    falling = tables["dp-pca-example-tuned"]
    own = falling["mechanism"] == findings.DP_PCA
    falling.loc[own, "error"] *= falling["noise"]
    text = findings.head(findings.panels(tables, EXAMPLE))
    assert "should not: not seen with default steps (σ falls by a factor of" in text
    assert "and supported with tuned steps (σ falls by" in text
    assert "by one of 10, that of minibatch-oja by one of 1)." in text
    # If both fall, there is nothing to choose between them.
    falling.loc[~own, "error"] *= falling["noise"]
    text = findings.head(findings.panels(tables, EXAMPLE))
    assert text.count("not seen with") == 2
    nothing = findings.head(findings.panels(dp_pca_tables(), EXAMPLE))
    assert "where nearly all is bottom" in nothing


def test_claims_are_in_words_and_sentences_follow_the_data():
    text = " ".join(findings.claim_notes(claims_table()))
    assert "claim of analyze-gauss-published is false for a replaced row" in text
    assert "Refuted by an audit: oja." in text
    assert "By the exact loss analyze-gauss and goe-gaussian keep the claim." in text
    assert "Not refuted with up to 400 releases a side, which is no proof" in text
    whole = " ".join(findings.claim_notes(claims_table(refuted=())))
    assert "false" not in whole
    assert "Refuted by" not in whole
    table = run(tiny_plan()[section.GRADIENTS])
    (text,) = section.gradient_notes(table)
    assert "as in the print" in text
    assert "not as" not in text
    wide = table.copy()
    wide.loc[wide.index[-1], "across"] = 50.0
    assert "not as in the print" in section.gradient_notes(wide)[0]


@pytest.mark.parametrize(
    ("name", "narrow"),
    [*((name, False) for name in SECTION.figures), ("dp-pca-floors", True)],
)
def test_figures_say_whose_claim_fell_and_what_is_bottom(name, narrow):
    svg = SECTION.figures[name](results(), narrow)
    words = " ".join(ElementTree.fromstring(svg).itertext())
    assert narrow or well_drawn(svg, audited=name != section.GRADIENTS)
    if name != section.GRADIENTS:
        assert "analyze-gauss-published ✗" in words
        assert ("oja ✗" in words) == ("floor" not in name)
        assert "goe-gaussian ✗" not in words
        assert "⊥" in words


NAMES = (TWO_STAGE, OWN_PARTS, DP_PCA, MINIBATCH_OJA, GOE)
STAGES = dict(zip(NAMES, (0.02, 0.05, 0.1, 0.03, 0.01), strict=True))


def tables(lost=()):
    """Errors are the same at both points; of `lost` (name, x) all are bottom."""
    found = {}
    for name, (variable, *_) in findings.STAGES.items():
        places = (0.001, 0.1) if variable == "noise" else (1000.0, 10_000.0)
        rows = [
            (each, x, nan if (each, x) in lost else STAGES[each] * (1 + i))
            for each, x, i in product(NAMES, places, (-0.5, 0.0, 0.5))
        ]
        found[name] = pd.DataFrame(rows, columns=["mechanism", variable, "error"])
    return found


def test_bottom_is_said_and_is_no_median():
    lost = {(OWN_PARTS, 1000.0), (TWO_STAGE, 0.1)}
    notes = stages.stage_notes(tables(lost=lost))
    assert "two-stage-pca was never bottom." not in notes
    assert notes[-1] == "dp-pca-tuned was bottom in 6 of 24 releases."
    lines = SECTION.notes[tuple(findings.STAGES)](*tables(lost=lost).values())
    assert lines[:3] == [
        "on Gaussian rows with d = 20, n = 1,000, 10,000:",
        "  two-stage-pca         0.02      0.02",
        "  dp-pca-tuned        bottom      0.05",
    ]
    everything = {(each, x) for each in NAMES for x in (1000.0, 10_000.0)}
    first = stages.stage_notes(tables(lost=everything))[0]
    assert first.startswith("At ε = 1 in Example 4.1")
