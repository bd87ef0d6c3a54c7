import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from lower_bounds_tables import lower_bounds_tables
from refusals import refused
from results_of import results_of, verdicts
from scipy import stats
from strokes import marks, written

from dpaudit.algorithms import names_of
from dpaudit.fingerprinting import CullingGame, HardInstance, Proportion
from dpaudit.reports.experiment import Experiment, cells, run
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.sections import Results, all_sections
from dpaudit.reports.sections.tracing import findings
from dpaudit.reports.sections.tracing.measures import (
    STRATEGIES,
    culled,
    dimension_of,
    spectra,
    traced,
)
from dpaudit.reports.sections.tracing.section import useful_and_traced
from dpaudit.streams import stream

TRACING = all_sections()["tracing"]
DECLARED = {e.name: e for e in TRACING.experiments(TRACING.sizes["quick"])}
INSTANCES, HARD = "hard-instances", DECLARED["tracing"].options
TABLES = lower_bounds_tables()
FOUND = findings.all_shares(TABLES)


def experiment(
    *mechanisms, rows=(2.0,), repetitions=1, epsilons=(), measure=traced, **changes
):
    grid = {"epsilon": epsilons} if epsilons else {}
    grid |= {"components": changes.pop("components", (1.0,)), "rows": rows}
    options = {**HARD, "length": 96, "pad_ratio": 1, **changes}
    sizes = {"grid": grid, "repetitions": repetitions, "options": options}
    return Experiment("tracing", "", "", measure, mechanisms, **sizes)


def means(table, *by):
    return table.groupby(list(by))[["captured", "useful", "traced", "innocent"]].mean()


def test_the_useful_are_traced_and_the_private_neither():
    rows = (2.0, 512.0)
    plain = means(run(experiment(BASELINE, rows=rows, repetitions=6)), "rows")
    noisy = {"rows": rows, "repetitions": 6, "epsilons": (1.0, 3000.0)}
    private = means(run(experiment("analyze-gauss", **noisy)), "epsilon", "rows")
    for careless in (plain.loc[2.0], private.loc[3000.0, 2.0]):
        assert careless["useful"] == 1
        assert careless["traced"] >= 5 / 6
    assert private.loc[1.0, 2.0]["useful"] == private.loc[1.0, 2.0]["traced"] == 0
    # With rows enough the private one is useful, and nobody is traced.
    assert private.loc[1.0, 512.0]["useful"] == 1
    for many in (plain.loc[512.0], *(private.loc[e, 512.0] for e in (1.0, 3000.0))):
        assert many["traced"] == 0
    # 36 trials with one in a hundred each: six or more have a chance of 1e-6.
    assert 6 * (plain["innocent"].sum() + private["innocent"].sum()) < 6
    for table in (plain, private):
        assert table["captured"].between(0, 1 + 1e-9).all()
    assert plain.loc[2.0]["captured"] == pytest.approx(1)


def test_clusters_are_found_and_traced_without_noise_and_neither_with_it():
    sizes = {"repetitions": 4, "components": (2.0, 4.0)}
    each = experiment(BASELINE, **sizes)
    table = run(each)
    assert (table[["useful", "traced"]] == 1).all(axis=None)
    assert dimension_of(each.options) == 192
    table = run(experiment("analyze-gauss", **sizes, epsilons=(1.0,)))
    assert not table[["useful", "traced"]].to_numpy().any()
    assert (table["captured"] < 0.3).all()


def test_every_subspace_mechanism_of_the_catalogue_is_traced_or_says_why_not():
    found = DECLARED
    for size in TRACING.sizes.values():
        # Few rows and many are those of the mechanism that is drawn, too.
        assert set(size.catalogue_rows) <= set(size.tracing_rows)
    asked = {*found["tracing"].mechanisms, *found["tracing-catalogue"].mechanisms}
    assert asked == {*names_of("covariance"), *names_of("subspace")}
    assert found["tracing-catalogue"].grid["components"] == (1.0, 2.0, 4.0)
    names = ("exponential-pca", "exponential-pca-acg", "wishart-approximate")
    grid = {"epsilons": (1.0, 3000.0), "components": (1.0, 4.0)}
    table = run(experiment(*names, **grid, length=8))
    refused = table[table["refused"] != ""]
    points = refused[["mechanism", "epsilon", "components"]].to_numpy().tolist()
    assert {tuple(point) for point in points} == {
        *(("exponential-pca", e, 4.0) for e in (1.0, 3000.0)),
        *(("exponential-pca-acg", e, 4.0) for e in (1.0, 3000.0)),
        *(("wishart-approximate", 3000.0, k) for k in (1.0, 4.0)),
    }
    assert refused["useful"].isna().all()


def test_spectra_are_those_of_the_lemmas():
    """Against singular values of the rows, and a search for a better subspace."""
    sizes = {"rows": (3.0,), "repetitions": 2, "components": (2.0,), "length": 16}
    (cell,) = cells(experiment(INSTANCES, **sizes, measure=spectra))
    for trial, found in enumerate(spectra(cell)):
        instance = HardInstance.generate(
            3, 16, n_clusters=2, cutoff=0.02, pad_ratio=1, rng=stream(0, 2, 3, trial)
        )
        parts = [instance.rows[instance.labels == i] for i in range(2)]
        values = [np.linalg.svd(part, compute_uv=False) ** 2 for part in parts]
        assert found["first"] == pytest.approx(min(v[0] for v in values) / 3)
        assert found["second"] == pytest.approx(max(v[1] for v in values))
        projectors = [np.linalg.pinv(part) @ part for part in parts]
        limit = found["overlap"] * 2 * (1 + 6 / 32)
        best = np.linalg.eigh(sum(projectors)).eigenvectors[:, -2:]
        assert np.trace(best.T @ sum(projectors) @ best) == pytest.approx(limit)
        rng = np.random.default_rng(trial)
        for _ in range(50):
            basis = np.linalg.qr(best + rng.standard_normal((32, 2)))[0]
            assert np.trace(basis.T @ sum(projectors) @ basis) <= limit
    # A single row has no second eigenvalue.
    alone = experiment(INSTANCES, rows=(1.0,), measure=spectra)
    assert run(alone)["second"][0] == pytest.approx(0, abs=1e-12)


def test_what_is_not_taken_or_useful_is_said():
    table = run(experiment("minibatch-oja", rows=(2.0, 24.0), epsilons=(1.0,)))
    few, many = (row for _, row in table.iterrows())
    assert few["refused"]
    assert math.isnan(few["useful"])
    assert many["refused"] == ""
    assert math.isfinite(many["captured"])
    table = run(experiment("private-subspace", rows=(4.0,), epsilons=(1.0,)))
    assert not table[["captured", "useful", "traced"]].to_numpy().any()


test_bad_input = refused(
    ({"rows": (0.0,)}, "rows must be"),
    ({"length": 0}, "length must be"),
    ({"components": (0.0,)}, "components must be"),
    ({"gamma": 0.0}, "gamma must be"),
    ({"level": 0.0}, "level must be"),
    by=lambda changes: run(experiment(BASELINE, **changes)),
)


def test_culling_and_what_the_templates_need():
    options = {"closeness": 0.04, "erased": 0.02, "rate": 0.004, "games": 2000}
    sizes = {"grid": {"length": (500.0, 5000.0)}, "options": options}
    each = Experiment("list-culling", "", "", culled, STRATEGIES, **sizes)
    assert len(list(cells(each))) == 4
    table = run(each).set_index(["mechanism", "length"])
    naive, half = (table.loc[name] for name in STRATEGIES)
    assert (naive[["won", "exact"]] == 0).all(axis=None)
    assert naive["loss_bound"].isna().all()
    for n, row in half.iterrows():
        game = CullingGame(int(n), int(0.02 * n), 0.04)
        assert row["erased"] == game.erased
        assert row["exact"] == game.sphere_win_probability("random-half")
        assert row["loss_bound"] == game.loss_bound(0.004 * n)
        assert stats.binomtest(int(row["won"]), 2000, row["exact"]).pvalue > 1e-9
    assert half["loss_bound"][5000.0] < 1e-6 < half["loss_bound"][500.0] < 0.1
    tables = {**TABLES, "privacy-wall": verdicts(["analyze-gauss"])}
    names = ("online-regret", "online-audits", "regret-optimum", "regret-dimensions")
    by_name = dict.fromkeys(
        (*names, "regret-components", "tracing", "tracing-catalogue", "list-culling"),
        experiment("analyze-gauss", repetitions=4),
    )
    found = Results("tiny", 0, by_name, tables)
    online, tracing = (all_sections()[name] for name in ("online", "tracing"))
    assert online.context(found)["most"] == 4000
    context = tracing.context(found)
    assert context["delta"] == 96**-2
    assert context["ends"] == (1, 256)
    assert "Corollary 32" in context["head"]


def test_shares_are_counted_where_rows_were_taken():
    assert findings.clusters(FOUND) == [1, 2]
    plain, wide, private, _, careless, _ = FOUND[:6]
    assert plain.name == "PCA without noise"
    assert (wide.name, wide.components) == (plain.name, 2)
    assert private.name == "analyze-gauss, ε = 1"
    assert careless.name == "analyze-gauss, ε = 3,000"
    assert private.useful[256] == Proportion(4, 4)
    assert plain.traced[1] == Proportion(4, 4)
    assert plain.traced[4] == Proportion(0, 4)
    assert wide.traced[4] == Proportion(4, 4)
    assert plain.betrayed[4] == Proportion(0, 4)
    assert 4 not in private.betrayed
    refusing, _, few, _ = FOUND[-4:]
    assert not refusing.useful
    assert refusing.refusal == "too few"
    assert list(few.useful) == [256]


def test_the_head_holds_the_corollaries_to_few_rows_and_claims_that_stand():
    assert findings.few_rows(96) == pytest.approx(4.586, abs=1e-3)
    text = findings.head(FOUND, [], 96)
    assert text.startswith(
        "Of mechanisms whose claim of ε = 1 was not refuted 0 of 16 releases of 2 "
        "mechanisms (k = 1) and 0 of 16 releases of 2 mechanisms (k = 2) are useful on "
        "m ≤ √(n/log n) = 4.59 rows"
    )
    assert "supports Corollary 25 (k = 1) and supports Corollary 32 (k = 2)" in text
    # PCA and two mechanisms at 3,000, at m = 1 and 4: k = 1 is traced at one of them.
    assert text.endswith("here 36 of 48 such releases are traced.")
    # Without the rows of m = 4, and of a mechanism whose claim fell.
    fewer = findings.head(FOUND, ["analyze-gauss"], 8)
    assert "0 of 4 releases of 1 mechanism (k = 1)" in fewer
    lucky = TABLES["tracing"].copy()
    lucky.loc[(lucky["components"] == 2) & (lucky["rows"] == 4), "useful"] = 1.0
    found = findings.shares(TABLES["tracing-references"], lucky)
    # 4 of 8 where 1/96 is allowed: 8e-7.
    text = findings.head(found, [], 96)
    assert "supports Corollary 25 (k = 1) and contradicts Corollary 32 (k = 2)" in text
    assert "took so few rows" in findings.head(found, ["analyze-gauss"], 96)


def test_the_tables_of_tracing_and_culling_are_ready_to_print():
    first, second = findings.instance_notes(TABLES["hard-instances"], 96)
    assert "to m = 4 rows the second eigenvalue of a cluster is at most 0.50" in first
    assert "the first at least 0.80 m" in first
    assert "than 1.50 k (1 + k m/d)" in second
    assert findings.table_heads(FOUND) == [
        f"ε = {epsilon}, k = {k}" for epsilon in ("1", "3,000") for k in (1, 2)
    ]
    rows = findings.tracing_rows(FOUND, ["power-method"], (4, 256))
    names = [row.name for row in rows]
    assert names == ["analyze-gauss", "power-method ✗", "minibatch-oja"]
    first, _, last = ([cell.useful for cell in row.cells] for row in rows)
    assert first == ["0 … 100", "0 … 100", "100 … 100", "100 … 100"]
    assert last == ["refused", "refused", "– … 100", "refused"]
    assert rows[0].cells[3].traced == "traced 100 … 0"
    (note,) = findings.culling_notes(TABLES["list-culling"])
    assert note.startswith("Most agreement wins 0 of 20 games, random half 20 of 20.")
    assert "consistent" in note
    flat = TABLES["list-culling"].assign(loss_bound=0.5)
    assert "not seen yet" in findings.culling_notes(flat)[0]


def test_notes_say_who_is_useful_and_who_is_traced():
    notes = " ".join(findings.tracing_notes(FOUND, ["power-method"]))
    plain = "PCA without noise is useful from m = 1 on, and traced up to m = 1 (k = 1)"
    assert f"{plain} and traced up to m = 4 (k = 2)." in notes
    assert "analyze-gauss, ε = 1 is useful from m = 256 on, and not traced" in notes
    many = "On m = 256 rows per cluster 2 of 2 mechanisms are useful at ε = 1 for every"
    assert f"{many} k that they take: analyze-gauss and power-method ✗." in notes
    assert "accused in 0 of 124 trials" in notes
    assert findings.refusals(FOUND) == "Refused: minibatch-oja (too few)."
    assert findings.refusals(FOUND[:2]) == ""
    useless = TABLES["tracing-references"].assign(useful=0.0)
    notes = findings.tracing_notes(findings.shares(useless, TABLES["tracing"]), [])
    assert "not useful at any size" in " ".join(notes)


def test_the_figure_has_a_panel_for_each():
    options = {"length": 64, "pad_ratio": 3}
    tracing = replace(experiment(BASELINE), options=options)
    tables = {**TABLES, "privacy-wall": verdicts(["analyze-gauss"])}
    found = results_of(tables, tracing=tracing)
    svg = useful_and_traced(found)
    words = " ".join(ElementTree.fromstring(svg).itertext())
    for each in FOUND[:6]:
        assert f"k = {each.components}: {each.name}" in words
    seen = " ".join(written(svg))
    assert seen.count("✗") == 4 + 1  # and in the key
    assert seen.count("50 %") == seen.count("rows m/√d") == 6
    many = "k = 2: analyze-gauss, ε = 1 (claim refuted), m/√d = 16: useful 100 %,"
    assert f"{many} traced 0.0 %." in words
    # What is useful and traced is one mark; else they stand side by side.
    places, who = marks(svg), "k = 2: analyze-gauss, ε = 3,000 (claim refuted), m ="
    both, same, useful, traced = (
        next(place for text, place in places.items() if text.startswith(who + each))
        for each in (
            *(" 4: useful 100 %", " 4: traced 100 %"),
            *(" 256: useful 100 %", " 256: traced 0.0 %"),
        )
    )
    assert both == same
    assert both[0] < useful[0] < traced[0]
    assert both[1] == useful[1] < traced[1]
    assert seen.count("useful") == seen.count("traced") == 6
    assert "✗" in useful_and_traced(found, narrow=True)
