import pickle
import re
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from results_of import results_of, verdicts
from sklearn.svm import LinearSVC
from tiny_profile import TINY, tiny_plan

from dpaudit.datasets import Dataset
from dpaudit.reports.experiment import run
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.sections import Size, all_sections
from dpaudit.reports.sections.symmetric_noise import measures, section
from dpaudit.reports.sections.symmetric_noise.section import (
    MECHANISMS,
    PUBLIC,
    PUBLISHED,
)
from dpaudit.reports.sections.utility.measures import RANDOM_SUBSPACE
from dpaudit.reports.site import render
from dpaudit.reports.writer import draw_figures
from dpaudit.subspace import second_moment

SECTION = all_sections()["symmetric_noise"]

SIZE = TINY["symmetric_noise"]
pytestmark = pytest.mark.usefixtures("tiny")


@pytest.fixture(scope="module")
def results():
    found = {k: v for k, v in tiny_plan().items() if k.startswith("sn-")}
    tables = {name: run(each) for name, each in found.items()}
    standing = [name for name in MECHANISMS if name != PUBLISHED]
    tables["privacy-wall"] = verdicts(refuted=(PUBLISHED,), standing=standing)
    return results_of(tables, **found)


def shares(**curves):
    """Return a table of captured shares at ε = 0.1, 1 and 10."""
    usual = dict.fromkeys(MECHANISMS, (0.1, 0.3, 0.5))
    usual |= {name.replace("_", "-"): curve for name, curve in curves.items()}
    return pd.DataFrame(
        {"mechanism": m, "epsilon": e, "delta": 0.0, "captured_share": share}
        for m, curve in usual.items()
        for e, share in zip((0.1, 1.0, 10.0), curve, strict=True)
    )


def said(table, refuted=(PUBLISHED,)):
    return section.verdicts(table, verdicts(refuted=refuted), "synthetic")


def test_rows_are_centred_and_as_long_as_one():
    problem = measures.prepared("synthetic", 500)
    assert problem.rows.shape == (500, 100)
    assert np.abs(problem.rows.mean(axis=0)).max() < 1e-12
    assert np.linalg.norm(problem.rows, axis=1).max() == pytest.approx(1, abs=1e-12)
    np.testing.assert_array_equal(problem.moment, second_moment(problem.rows))


def test_a_row_of_zeros_stays_one_with_a_public_centre(monkeypatch):
    made = Dataset("made", np.array([[3.0, 4.0], [0.0, 0.0]]), source="by hand")
    monkeypatch.setattr(measures, "load", lambda name: made)
    rows = measures.prepared("zeros", 2, public=True).rows
    assert sorted(rows.tolist()) == [[0, 0], [0.6, 0.8]]


def test_an_approximate_claim_is_drawn_at_every_delta_and_a_pure_one_once(results):
    table = results["sn-epsilon-synthetic"]
    found = table.groupby("mechanism")["delta"].unique()
    assert set(found["goe-gaussian"]) == {0.1, 1e-6}
    assert set(found[PUBLISHED]) == {0.0}
    assert len(table) == 2 * SIZE.paper_draws * (8 + 4)
    assert len(results["sn-epsilon-synthetic-public"]) == 2 * SIZE.paper_draws * 8


def test_larger_deltas_allow_less_noise_and_random_subspaces_have_closed_forms(results):
    """From the same random numbers, so without chance at the larger epsilon."""
    table = results["sn-epsilon-synthetic"]
    gauss = table[(table["mechanism"] == "goe-gaussian") & (table["epsilon"] == 10)]
    means = gauss.groupby("delta")["captured_share"].mean()
    assert 0.5 < means[1e-6] < means[0.1] <= 1
    table = results["sn-n-synthetic"]
    most = table[table["n"] == SIZE.paper_rows].iloc[0]
    values = np.linalg.eigvalsh(measures.prepared("synthetic", 2_000).moment)
    expected = 10 * values.sum() / 100 / values[-10:].sum()
    assert most["random_share"] == pytest.approx(expected)


@pytest.fixture(scope="module")
def figures(results):
    return draw_figures(results, [SECTION])


def test_figures_are_the_same_wherever_they_are_drawn(results, figures):
    """One by a worker, to which it travels, and one here, as the worker is lost."""
    begun = []

    def submit(*given):
        begun.append(Future())
        if begun[1:]:
            begun[-1].set_exception(BrokenProcessPool())
        else:
            draw, *what = pickle.loads(pickle.dumps(given))
            begun[-1].set_result(draw(*what))
        return begun[-1]

    workers = SimpleNamespace(submit=submit)
    assert draw_figures(results, [SECTION], workers) == figures
    assert len(begun) == len(figures) > 1


@pytest.mark.parametrize("name", SECTION.figures)
@pytest.mark.parametrize("narrow", [False, True])
def test_a_figure_says_whose_claim_fell(figures, name, narrow):
    svg = figures[name][narrow]
    # In the panel of each delta; by epsilon also with a public centre.
    panels = 3 if name == "symmetric-noise-epsilon" else 2
    # At the end of its line in each, or once in the list below.
    assert svg.count(">symmetric-noise ✗<") == (1 if narrow else panels)
    described = re.search("<desc.*?</desc>", svg)[0]
    assert described.count("(claim refuted)") == panels
    assert svg.count(">synthetic, public centre, δ = 10⁻⁶<") == panels - 2
    assert "symmetrised-wishart ✗" not in svg


def test_the_sentences_follow_the_data():
    good = (0.2, 0.6, 0.995)
    table = shares(symmetric_noise=good, analyze_gauss_published=(0.9, 0.95, 1.0))
    first, second, _ = said(table)
    assert "outperforms PPM and PPCA is supported" in first
    assert "is supported (within 0.01 from ε = 10 on)" in second
    assert "is contradicted: an audit refutes it." in second
    assert "no audit of this report refutes its claim" in said(table, ())[1]
    behind = shares(symmetric_noise=(0.2, 0.28, 0.6))
    assert "not seen on synthetic at δ = 0.1, at ε = 1." in said(behind)[0]
    # Once near and then far is no match.
    lost = shares(symmetric_noise=good, analyze_gauss_published=(0.2, 0.6, 1.0))
    last = lost["mechanism"].eq(PUBLISHED) & lost["epsilon"].eq(10)
    lost.loc[last, "captured_share"] = 0.9
    assert "is not seen up to ε = 10" in said(lost)[1]


@pytest.mark.parametrize("rival", [section.PPM, section.PPM_PURE, section.PPCA])
def test_one_rival_that_is_ahead_is_enough(rival):
    behind = shares(**{rival.replace("-", "_"): (0.1, 0.4, 0.5)})
    assert "outperforms PPM and PPCA is not seen" in said(behind)[0]
    assert said(behind)[0].endswith("at ε = 1.")


def test_what_a_public_centre_keeps_is_that_of_the_best_with_a_proof(results):
    name = "sn-epsilon-synthetic"
    tables = {
        name: shares(goe_gaussian=(0.2, 0.35, 0.6)),
        f"{name}{PUBLIC}": shares(goe_gaussian=(0.4, 0.65, 0.8)),
        "privacy-wall": verdicts(refuted=(PUBLISHED,)),
    }
    notes = SECTION.context(replace(results, tables=tables))["notes"]
    assert notes[3:] == [
        "On synthetic, goe-gaussian keeps 65.0 % at ε = 1 and δ = 10⁻⁶ with a public "
        "centre and each row divided by its own length, and 35.0 % with centre and "
        "scale from the data, which no claim covers; each is a share of PCA on the "
        "same rows."
    ]


def test_what_is_missing_is_said_and_the_rest_stands(
    results, figures, monkeypatch, tmp_path
):
    monkeypatch.setenv("DPAUDIT_DATA", str(tmp_path))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    size = Size(**{**vars(SIZE), "paper_datasets": ("synthetic", "covertype", "mnist")})
    monkeypatch.setitem(SECTION.sizes, "tiny", size)
    assert section.missing(size) == ["covertype", "mnist"]
    names = [each.name for each in SECTION.experiments(size)]
    kinds = ("epsilon-synthetic", "epsilon-synthetic-public", "n-synthetic")
    assert names == [*(f"sn-{kind}" for kind in kinds), "sn-errors-synthetic"]
    site = render(results, figures, [SECTION])
    assert not site.failed
    page = site.pages["sections/symmetric_noise.html"]
    assert "Covertype from https://archive.ics.uci.edu/" in page
    for files in measures.NEEDED.values():
        for name, digest in files.items():
            assert f"{name}, SHA-256 {digest}" in page
    assert str(tmp_path) not in page
    (tmp_path / "covtype.data.gz").touch()
    assert section.missing(size) == ["mnist"]


def test_errors_are_of_rows_not_fitted_to_and_as_printed_for_svd():
    """By the declared means: a binomial of 10,000 at 5.65 %, within 5 deviations."""
    rows, classes = measures.two_classes("synthetic", 0, 0)
    within = [np.cov(rows[classes == c].T) for c in (-1, 1)]
    means = [rows[classes == c].mean(axis=0) for c in (-1, 1)]
    # Components beyond the ten tell nothing, and cannot be inverted well.
    values, vectors = np.linalg.eigh(sum(within) / 2)
    basis = vectors[:, -10:] / np.sqrt(values[-10:])
    direction = basis @ (basis.T @ (means[1] - means[0]))
    middle = (means[0] + means[1]) / 2
    wrong = np.mean(((rows - middle) @ direction > 0) != (classes > 0))
    assert abs(wrong - 0.0565) < 5 * np.sqrt(0.0565 * (1 - 0.0565) / len(rows))
    # A row is what it was, but for its length, whatever the others are.
    some, more = (measures.prepared("synthetic", n, public=True) for n in (500, 900))
    np.testing.assert_array_equal(some.rows, more.rows[:500])
    np.testing.assert_allclose(np.linalg.norm(some.rows, axis=1), 1)
    assert np.abs(some.rows.mean(axis=0)).max() > 1e-3


def test_an_error_is_counted_on_rows_that_nothing_was_fitted_to(results):
    table = results["sn-errors-synthetic"]
    found = table[table["mechanism"] == BASELINE]
    assert len(found) == 2 * SIZE.paper_splits
    rows, classes = measures.two_classes("synthetic", 0, 0)
    training, truth = rows[4000:8000], classes[4000:8000]
    basis = np.linalg.eigh(training.T @ training)[1][:, -10:]
    fitted = LinearSVC(dual=False).fit(training @ basis, truth)
    right = fitted.score(rows[:4000] @ basis, classes[:4000])
    assert found["error"].iloc[0] == pytest.approx(1 - right, abs=2e-3)


def test_a_basis_is_of_the_training_rows_alone(results, monkeypatch):
    """Test rows are long where classes do not differ; training rows are 0 there."""
    classes = np.tile([-1, 1], 4000)
    rows = np.stack([0.1 * classes, np.repeat([1.0, 0.0], 4000)], axis=1)
    monkeypatch.setattr(measures, "two_classes", lambda *_: (rows, classes))
    usual = results.experiments["sn-errors-synthetic"]
    options = {**usual.options, "n_components": 1}
    one = replace(usual, mechanisms=(BASELINE,), grid={"n": (4000.0,)}, options=options)
    assert run(one)["error"].tolist() == [0.0]


def test_the_table_has_a_random_subspace_and_what_is_printed(results):
    table = results["sn-errors-synthetic"]
    rows = measures.error_rows(table, "synthetic")
    printed = {row["name"]: row["printed"] for row in rows}
    assert printed[RANDOM_SUBSPACE] == []
    assert printed[PUBLISHED] == ["7.5", "7.075"]


def test_the_sentences_on_errors_follow_the_data():
    def made(curved=0.004, **errors):
        names = dict.fromkeys((BASELINE, *MECHANISMS, RANDOM_SUBSPACE), 0.05)
        names |= {name.replace("_", "-"): error for name, error in errors.items()}
        return pd.DataFrame(
            {"mechanism": name, "n": n, "error": error, "curved_error": curved}
            for name, error in names.items()
            for n in measures.TRAINING
        )

    usual = {"random_subspace": 0.07, "goe_gaussian": 0.08}
    first, second, third, fourth = sentences = measures.error_sentences(
        made(**usual), "mnist"
    )
    assert "errs in 7.00 % and 7.00 %" in first
    assert "goe-gaussian no better at either" in first
    assert "is not seen" in second
    assert "range of our splits for none, and within that of a random" in third
    assert third.endswith("for none.")
    assert "0.575 % with 4,000 rows is below the range of 5.00 to 5.00 %" in fourth
    assert "and above the range of 0.40 to 0.40 % of one with a Gauss" in fourth
    assert "; 0.25 % with 6,000 rows is below" in fourth
    near = measures.error_sentences(made(curved=0.00575, **usual), "mnist")[3]
    assert "and in the range of 0.57 to 0.57 % of one with a Gaussian" in near
    usual = {"random_subspace": 0.09, "symmetric_noise": 0.02}
    first, second, *_ = measures.error_sentences(made(**usual), "mnist")
    assert "no mechanism as bad at both" in first
    assert "is seen" in second
    # Ranges: of ours on one split and another, and of a random subspace.
    ours = ((0.0312, 0.02), (0.025, 0.03))
    wide = pd.concat(made(random_subspace=r, symmetric_noise=s) for r, s in ours)
    third = measures.error_sentences(wide, "mnist")[2]
    assert "our splits for symmetric-noise, and" in third
    assert third.endswith("for power-method-published and exponential-pca-gibbs.")
    assert len(measures.error_sentences(made(**usual), "mnist")) == len(sentences)


def test_rows_of_a_file_are_chosen_at_random_and_once(monkeypatch):
    rows = np.arange(2 * 12_000.0).reshape(-1, 2) / 1e4
    labels = np.arange(12_000) % 2 * 4 + 3  # digits 3 and 7
    labels[::10] = 5
    made = Dataset("made", rows, source="by formula", labels=labels)
    monkeypatch.setattr(measures, "load", lambda name: made)
    monkeypatch.setitem(measures._CLASSES, "made", (3, 7))
    problem = measures.prepared("made", 100)
    assert problem.source == "by formula"
    values = problem.rows[:, 0]
    assert len(np.unique(values)) == 100
    # Of the first 100 rows alone, all neighbours, these would be 99 equal steps.
    assert not np.allclose(np.diff(np.sort(values)), np.diff(np.sort(values))[0])
    assert np.any(np.diff(values) < 0)
    some, classes = measures.two_classes("made", 0, 0)
    assert len(some) == len(classes) == 10_000
    assert set(classes) == {3, 7}
    assert len(np.unique(some[:, 0])) == 10_000
