import json

import numpy as np
import pandas as pd
import pytest
from audited_row import audited

from dpaudit.algorithms.estimators.measured import GRID, shipped_grid
from dpaudit.reports.sections import Fact
from dpaudit.reports.site import first
from dpaudit.reports.site.mechanisms import Standing
from dpaudit.reports.tables import verdict_rows


def standing(name, family, verdict="NOT_REFUTED", claim="not known", planted=False):
    row = audited(mechanism=name, verdict=verdict, claim=claim)
    (shown,) = verdict_rows(pd.DataFrame([row]))
    return Standing(name, family, (shown,), planted=planted)


def by_name(*found):
    return {each.name: each for each in found}


def said(*found, facts=(), paths=None):
    return first.context(by_name(*found), facts, paths or {})


SOUND = standing("sound", "covariance")
BROKEN = standing("broken", "robust", "REFUTED")
FORMULA = standing("formula", "subspace", claim="false")
PLANTED = standing("planted", "robust", "REFUTED", planted=True)
MISSED = standing("missed", "robust", planted=True)
SUITE = standing("suite", "textbook", "REFUTED")
UNDECIDED = standing("undecided", "online", "NO_VERDICT")
SILENT = Standing("silent", "online")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((), "No privacy claim was audited"),
        ((SILENT, SUITE, PLANTED), "No privacy claim was audited"),
        ((SOUND, UNDECIDED), "None of one audited privacy claim fell"),
        ((SOUND, BROKEN, PLANTED), "One of two audited privacy claims fell"),
        ((SOUND, BROKEN, FORMULA, SUITE), "Two of three audited privacy claims fell"),
    ],
)
def test_the_headline_counts_claims_of_all_families_that_are_meant(found, expected):
    assert first.headline(by_name(*found)) == expected


def test_who_fell_is_told_with_how_sure_and_many_audits_err_more_often():
    told = said(SOUND, BROKEN, PLANTED, MISSED, SUITE, FORMULA, SILENT)
    fell = {row.name: (row.sure, row.bound) for row in told["fell"]}
    assert fell == {
        "broken": ("statistical, 99.9 %", BROKEN.audits[0].audited),
        "formula": ("by formula", ("ε = 2", "δ = 0.25")),
    }
    assert (told["planted"], told["seen"]) == (2, 1)
    # By the union bound: every audited claim adds its alpha, planted ones too.
    assert told["any"] == pytest.approx(0.006)
    assert said()["any"] == 0


def test_the_table_has_every_mechanism_and_only_what_was_measured():
    cost = Fact("analyze-gauss", "A fit", "2.00 ms (1.00 ms – 3.00 ms)", "cost", 0.002)
    known = Standing("analyze-gauss", "covariance")
    suite = Standing("laplace-under-noised", "textbook")
    rows = said(known, SOUND, SILENT, UNDECIDED, suite, facts=[cost])["rows"]
    gauss, sound, silent, undecided, suite = rows
    low, middle, high = shipped_grid().at(**{**first.START, "replaced": False})[
        "analyze-gauss"
    ]
    assert gauss.error == (f"{middle:g}", f"{low:g} to {high:g}")
    assert gauss.cost == ["2.00 ms", "1.00 ms – 3.00 ms"]
    assert (gauss.cost_value, gauss.claim) == ("0.002", ("ε = 1", "δ = 10⁻⁵"))
    assert gauss.verdict == silent.verdict == "not audited here"
    assert (gauss.bound, gauss.bound_value) == (("not measured",), None)
    assert sound.bound_value == "1.5"
    assert (sound.error, sound.cost) == (None, None)
    assert (undecided.verdict, undecided.hint) == (
        "NO VERDICT",
        "Its releases were seen not to be independent draws.",
    )
    assert suite.exact[1] == "by proof"


def test_what_to_take_errs_least_and_is_not_what_fell():
    name, pure = (said()[each].name for each in ("taken", "pure"))
    assert name != pure
    other = standing(name, "subspace", "REFUTED")
    told = said(other, paths={("mechanisms", pure): "p.html"})
    assert name not in (told["taken"].name, told["pure"].name)
    grid = json.loads(told["grid"])
    assert (grid["fell"], grid["paths"][pure]) == ([name], "p.html")
    place = [values.index(first.START[axis]) for axis, values in GRID.items()]
    errors = grid["errors"][told["taken"].name].split(",")
    number = np.ravel_multi_index(place, [len(axis) for axis in GRID.values()])
    assert errors[number].split()[1] == told["taken"].error
