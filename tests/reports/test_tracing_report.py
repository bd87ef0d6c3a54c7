"""Tracing and list culling: what is measured, what is said of it, what is drawn."""

import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from lower_bounds_tables import lower_bounds_tables
from results_of import results_of, verdicts

from dpaudit.errors import InputError
from dpaudit.fingerprinting import CullingGame, Proportion
from dpaudit.reports.experiment import Experiment, cells, run
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.page import draw_figures
from dpaudit.reports.sections import Results, all_sections
from dpaudit.reports.sections.tracing.measures import (
    HARD,
    STRATEGIES,
    culled,
    dimension_of,
    traced,
)
from dpaudit.reports.sections.tracing.section import (
    culling_notes,
    culling_rows,
    shares,
    tracing_notes,
    tracing_rows,
    useful_and_traced,
)

TABLES = lower_bounds_tables()
FOUND = shares(TABLES["tracing-references"], TABLES["tracing"])


def experiment(mechanisms, *, rows, repetitions, epsilons=None, **changes):
    grid = {} if epsilons is None else {"epsilon": epsilons}
    return Experiment(
        name="tracing",
        title="",
        source="",
        measure=traced,
        mechanisms=mechanisms,
        grid={**grid, "rows": rows},
        repetitions=repetitions,
        options={**HARD, "length": 96, "pad_ratio": 1, **changes},
    )


def means(table, *by):
    return table.groupby(list(by))[["captured", "useful", "traced", "innocent"]].mean()


# What is measured


def test_the_useful_are_traced_and_the_private_neither():
    rows = (2.0, 512.0)
    plain = means(run(experiment((BASELINE,), rows=rows, repetitions=6)), "rows")
    private = means(
        run(
            experiment(
                ("analyze-gauss",), rows=rows, repetitions=6, epsilons=(1.0, 3000.0)
            )
        ),
        "epsilon",
        "rows",
    )
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


def test_clusters():
    each = experiment((BASELINE,), rows=(2.0,), repetitions=4, n_components=2)
    table = run(each)
    assert (table["useful"] == 1).all()
    assert (table["traced"] == 1).all()
    assert dimension_of(each.options) == 192


def test_what_a_mechanism_does_not_take_is_said():
    table = run(
        experiment(("minibatch-oja",), rows=(2.0, 24.0), repetitions=1, epsilons=(1.0,))
    )
    few, many = (row for _, row in table.iterrows())
    assert few["refused"]
    assert math.isnan(few["useful"])
    assert many["refused"] == ""
    assert math.isfinite(many["captured"])


def test_bottom_is_not_useful():
    table = run(
        experiment(("private-subspace",), rows=(4.0,), repetitions=2, epsilons=(1.0,))
    )
    assert not table[["captured", "useful", "traced"]].to_numpy().any()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rows": (0.0,)}, "rows must be"),
        ({"length": 0}, "length must be"),
        ({"n_components": 0}, "n_components must be"),
        ({"gamma": 0.0}, "gamma must be"),
        ({"level": 0.0}, "level must be"),
    ],
)
def test_bad_input(changes, says):
    options = {"rows": (2.0,), "repetitions": 1, **changes}
    with pytest.raises(InputError, match=says):
        run(experiment((BASELINE,), **options))


def test_culling():
    options = {"closeness": 0.04, "erased": 0.02, "rate": 0.004, "games": 2000}
    each = Experiment(
        name="list-culling",
        title="",
        source="",
        measure=culled,
        mechanisms=STRATEGIES,
        grid={"length": (500.0, 5000.0)},
        options=options,
    )
    assert len(list(cells(each))) == 4
    table = run(each).set_index(["mechanism", "length"])
    naive, half = (table.loc[name] for name in STRATEGIES)
    assert (naive["won"] == 0).all()
    assert (naive["exact"] == 0).all()
    assert naive["loss_bound"].isna().all()
    for n, row in half.iterrows():
        game = CullingGame(int(n), int(0.02 * n), 0.04)
        assert row["erased"] == game.erased
        assert row["exact"] == game.sphere_win_probability("random-half")
        assert row["loss_bound"] == game.loss_bound(0.004 * n)
        # 99 % intervals: by chance one in fifty pairs is not met, and the seed is set.
        low, high = Proportion(int(row["won"]), 2000).interval
        assert low <= row["exact"] <= high
    assert half["loss_bound"][5000.0] < 1e-6 < half["loss_bound"][500.0] < 0.1


# Words


def test_shares_are_counted_where_rows_were_taken():
    plain, private, careless, refusing, few = FOUND
    assert plain.name == "PCA without noise"
    assert private.name == "analyze-gauss, ε = 1"
    assert careless.name == "analyze-gauss, ε = 3,000"
    assert private.useful[256] == Proportion(4, 4)
    assert plain.traced[1] == Proportion(4, 4)
    assert plain.traced[4] == Proportion(0, 4)
    assert not refusing.useful
    assert list(few.useful) == [256]


def test_notes_say_who_is_useful_and_who_is_traced():
    notes = " ".join(tracing_notes(FOUND, 256))
    assert (
        "PCA without noise: is useful from m = 1 (m/√d = 0.062) on, and traced up to "
        "m = 1 (m/√d = 0.062)."
    ) in notes
    assert "analyze-gauss, ε = 1: is useful from m = 256 (m/√d = 16) on, and not" in (
        notes
    )
    assert "minibatch-oja, ε = 1 does not take so few rows." in notes
    assert "accused in 0 of 40 trials" in notes
    useless = TABLES["tracing-references"].assign(useful=0.0)
    assert "not useful at any size" in " ".join(
        tracing_notes(shares(useless, TABLES["tracing"]), 256)
    )


def test_the_table_of_tracing_is_ready_to_print():
    rows = tracing_rows(FOUND)
    assert (rows[0].name, rows[0].epsilon) == ("PCA", "none")
    assert rows[0].useful == ("100 %", "100 %")
    assert rows[0].traced == ("100 %", "0.0 %")
    assert rows[1].useful == ("0.0 %", "100 %")
    assert rows[2].epsilon == "3,000"
    assert rows[3].useful == ("refused", "refused")
    assert rows[3].innocent == "–"
    assert rows[0].innocent == "0 of 12"


def test_culling_is_ready_to_print():
    first, last = culling_rows(TABLES["list-culling"])
    assert first.length == "500"
    assert first.most_agreement == "0 of 10"
    assert last.random_half == "10 of 10"
    assert last.loss == "below 10⁻¹⁴"
    assert last.bound == "10⁻⁷"
    (note,) = culling_notes(TABLES["list-culling"])
    assert note.startswith("Most agreement wins 0 of 20 games, random half 20 of 20.")
    assert "consistent" in note
    flat = TABLES["list-culling"].assign(loss_bound=0.5)
    assert "not seen yet" in culling_notes(flat)[0]


# Figures, and the section


@pytest.mark.parametrize("narrow", [False, True])
def test_the_figure_has_a_panel_for_each(narrow):
    options = {"length": 64, "pad_ratio": 3}
    tracing = replace(
        experiment((BASELINE,), rows=(1.0,), repetitions=1), options=options
    )
    tables = {**TABLES, "privacy-wall": verdicts(["analyze-gauss"])}
    found = results_of(tables, tracing=tracing)
    svg = useful_and_traced(found, narrow)
    words = " ".join(ElementTree.fromstring(svg).itertext())
    for each in FOUND[:3]:
        assert each.name in words
    assert words.count("✗") == 2
    assert words.count("50 %") == 3
    assert "analyze-gauss, ε = 1, m/√d = 16: useful 100 %, traced 0.0 %." in words
    assert svg == useful_and_traced(found, narrow)


def test_the_section_has_what_the_templates_need():
    tables = {**TABLES, "privacy-wall": verdicts(["analyze-gauss"])}
    names = ("online-regret", "online-audits", "regret-optimum", "regret-dimensions")
    by_name = dict.fromkeys(
        (*names, "regret-components", "tracing", "list-culling"),
        experiment(("analyze-gauss",), rows=(1.0,), repetitions=4),
    )
    found = Results("tiny", 0, by_name, tables)
    online, tracing = (all_sections()[name] for name in ("online", "tracing"))
    assert online.context(found)["most"] == 4000
    context = tracing.context(found)
    assert context["delta"] == 96**-2
    assert (context["least"], context["most"]) == (1, 256)
    figures = draw_figures(found, [online, tracing])
    assert list(figures) == ["online-regret", "regret-optimum", "tracing"]
    for name, drawn in figures.items():
        for svg, width in zip(drawn, ("wide", "narrow"), strict=True):
            assert f'id="figure-{name}-{width}"' in svg
