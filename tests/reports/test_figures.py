import gc
import html
import itertools
import math
import re
import xml.etree.ElementTree as ElementTree
from functools import cache

import matplotlib.colors
import numpy as np
import pandas as pd
import pytest
from results_of import results_of, verdicts
from strokes import marks

from dpaudit.reports import page
from dpaudit.reports.lines import Line, Verdicts
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.plots import STYLE, canvas
from dpaudit.reports.power_law import PowerLaw
from dpaudit.reports.sections import all_sections
from dpaudit.reports.sections import wall as privacy_walls
from dpaudit.reports.sections.privacy.section import privacy_wall
from dpaudit.reports.sections.robust.section import PHASES
from dpaudit.reports.sections.streaming import section as streaming
from dpaudit.reports.sections.streaming.section import Rate
from dpaudit.reports.sections.utility import figures as curves
from dpaudit.reports.sections.utility.figures import captured_variance, run_time
from dpaudit.reports.sections.utility.measures import FIRST_COMPONENT, RANDOM_SUBSPACE
from dpaudit.reports.svg import INK, REFUTED, standalone, with_classes
from dpaudit.reports.svg import SERIES as SERIES_COLOURS

NAMES = ("alpha", "beta<script>&", "gamma")
EPSILONS = (0.1, 1.0, 10.0)
VERDICTS = Verdicts(["alpha"], NAMES[1:])


def wall():
    return pd.DataFrame(
        {
            **{"mechanism": NAMES, "claimed_epsilon": 1.0},
            "claimed_delta": [1e-5, 0.0, 0.0],
            "exact_epsilon": [1.0, float("inf"), float("nan")],
            "exact_delta": [1e-5, 0.63, float("nan")],
            **{"epsilon_lower": [0.4, 7.0, 0.0], "delta_lower": [0.0, 0.6, 0.0]},
            "verdict": ["NOT_REFUTED", "REFUTED", "NOT_REFUTED"],
        }
    )


def variance():
    rows = [
        (name, epsilon, 0.8 + 0.05 * j + 0.01 * i + 0.002 * repetition)
        for i, name in enumerate(NAMES)
        for j, epsilon in enumerate(EPSILONS)
        for repetition in range(3)
    ]
    return pd.DataFrame(rows, columns=["mechanism", "epsilon", "captured_share"])


def exact(false=()):
    pairs = list(itertools.product(NAMES, EPSILONS))
    table = pd.DataFrame(pairs, columns=["mechanism", "epsilon"])
    return table.assign(claim=["false" if pair in false else "kept" for pair in pairs])


def references():
    names = [BASELINE, FIRST_COMPONENT, RANDOM_SUBSPACE]
    return pd.DataFrame({"mechanism": names, "captured_share": [0.9999, 0.7, 0.2]})


def times():
    ratio = np.array([1.0, 1.0, *[2.0, 3.0, 4.0] * 2])
    columns = {"mechanism": [BASELINE] * 2 + list(NAMES) * 2, "ratio": ratio}
    return pd.DataFrame({**columns, "fit_seconds": ratio / 1000})


def results(**changes):
    """Tables of all that is drawn, but for changes."""
    tables = {
        **{"privacy_wall": wall(), "captured_variance": variance()},
        **{"exact_privacy": exact(), "variance_references": references()},
        "run_time": times(),
    }
    tables |= changes
    return results_of({k.replace("_", "-"): table for k, table in tables.items()})


def draw(narrow=False):
    drawn = (privacy_wall, captured_variance, run_time)
    return [each(results(), narrow) for each in drawn]


@cache
def every():
    """Each of them, wide and narrow."""
    return [*draw(), *draw(narrow=True)]


@pytest.fixture(params=range(6))
def svg(request):
    return every()[request.param]


def test_figures_speak_and_names_are_text(svg):
    root = ElementTree.fromstring(svg)
    written = " ".join(each.text or "" for each in root.iter("text"))
    assert root.get("role") == "img"
    title, description = root.get("aria-labelledby").split()
    spoken = {each.get("id"): each.text for each in root}
    assert spoken[title]
    for name in NAMES:
        assert name in spoken[description]
        assert name in written
    assert "<script" not in svg


def test_a_figure_stands_alone(svg):
    style = page.stylesheet("colours.css")
    picture = ElementTree.fromstring(standalone(svg, style))
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert "prefers-color-scheme: dark" in (picture[0].text or "")
    assert "--ink" in (picture[0].text or "")
    # Colours are variables of the stylesheet.
    assert re.findall(r"#[0-9a-f]{6}\b", svg) == []
    for variable in set(re.findall(r"var\((--[\w-]+)\)", svg)):
        # Once for light, once for dark.
        assert len(re.findall(rf"^\s*{variable}:", style, re.MULTILINE)) == 2
    assert "font-family" not in svg  # it is the page's
    # Nothing depends on the day, or comes from elsewhere.
    assert not re.search(r"<metadata|\b20\d\d-\d\d-\d\d", svg)
    fetched = re.findall(r"(?:href|src)=\"([^\"]*)\"|url\(([^)]*)\)", svg)
    assert all(re.match(r"#f[0-9a-z]{4}-", "".join(each)) for each in fetched)
    ids = set(re.findall(r'\bid="([^"]*)"', svg))
    assert {"".join(each)[1:] for each in fetched} <= ids


def test_styles_become_classes_that_say_the_same(svg):
    short = with_classes(svg)
    rules = dict(re.findall(r"\.([\w-]+)\{([^}]*)\}", short))
    assert len(rules) > 3

    def elements(text):
        for each in ElementTree.fromstring(text).iter():
            own = dict(each.attrib)
            looks = [rules[n] for n in own.pop("class", "").split() if n in rules]
            looks += [own.pop("style")] if "style" in own else []
            looks += (
                [f"clip-path: {own.pop('clip-path')}"] if "clip-path" in own else []
            )
            yield each.tag, each.text, own, sorted(looks)

    _, classes, *rest = elements(short)
    assert classes[0] == "style"
    assert rest == list(elements(svg))[1:]
    assert len(short) < len(svg)


def test_names_that_look_like_styles_and_run_times_as_ratios():
    name = '<tspan> style="} body { display: none }"'
    text = f"<text>{html.escape(name, quote=False)}</text>"
    svg = f'<svg id="x">{text * 5}</svg>'
    assert with_classes(svg) == f'<svg id="x"><style></style>{text * 5}</svg>'
    svg = run_time(results())
    assert "alpha: 2.00 ×." in svg
    assert BASELINE not in svg


def test_the_same_data_gives_the_same_bytes_and_ids_are_unique_on_the_page():
    assert every()[:3] == draw()
    assert gc.isenabled()  # again
    ids = re.findall(r'\bid="([^"]*)"', "".join(every()))
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("narrow", [False, True])
def test_the_wall_says_refuted_where_the_table_does(narrow):
    standing = results(privacy_wall=wall().assign(verdict="NOT_REFUTED"))
    assert "REFUTED" in every()[3 * narrow]
    assert "REFUTED" not in privacy_wall(standing, narrow)


def test_false_claims_are_dashed_and_crossed():
    def drawn(false):
        tables = {"exact_privacy": exact(false), "privacy_wall": verdicts((), NAMES)}
        return captured_variance(results(**tables))

    def fallen(svg):
        return svg.count("stroke-dasharray: 6.6,3.3")

    whole, broken = drawn([]), drawn([("alpha", 10.0)])
    apart = drawn([("alpha", 0.1)])
    assert fallen(whole) == 0
    assert fallen(broken) == fallen(apart) == 1
    assert "claim false from epsilon 10" in broken
    assert "alpha, ε = 10: 90.2 %" in whole
    assert "by the exact loss</title>" in broken
    assert "claim false from" not in whole
    assert "by the exact loss</title>" not in whole


@pytest.mark.parametrize(
    ("slowest", "narrow"), [(1.2, False), (4.0, True), (106.18, False), (3000.0, True)]
)
def test_run_times_of_all_magnitudes_have_a_scale(slowest, narrow):
    svg = run_time(results(run_time=times().replace({"ratio": {4.0: slowest}})), narrow)
    written = [each.text for each in ElementTree.fromstring(svg).iter("text")]
    ticks = [text for text in written if re.fullmatch(r"\d+ ×", text or "")]
    assert len(ticks) > 2
    assert all(any(name in (text or "") for text in written) for name in NAMES)


@pytest.fixture
def axes():
    with matplotlib.rc_context(STYLE):
        yield canvas(300).add_axes((0.1, 0.1, 0.8, 0.8))


@pytest.mark.parametrize(("lower", "bars"), [(0.25, [0.25]), (0.75, [0.5, 0.25])])
def test_bars_reach_what_was_proved_and_marks_what_was_claimed_and_is_true(
    axes, lower, bars
):
    row = {"claimed_delta": 0.5, "delta_lower": lower, "exact_delta": 0.9}
    row |= {"mechanism": "m", "verdict": "NOT_REFUTED"}
    privacy_walls._bar(axes, 0, row, "delta", float, str, False)
    assert [bar.get_width() for bar in axes.patches] == bars
    assert [bar.get_x() for bar in axes.patches] == [0.0, 0.5][: len(bars)]
    colours = [matplotlib.colors.to_hex(bar.get_facecolor()) for bar in axes.patches]
    assert colours == [SERIES_COLOURS[0], REFUTED][: len(bars)]
    claim, truth = axes.lines
    assert list(claim.get_xdata()) == [0.5, 0.5]
    assert list(truth.get_xdata()) == [0.9]
    assert axes.texts[0].get_text() == f"audit ≥ {lower} · exact 0.9"
    unknown = {**row, "exact_delta": float("nan")}
    privacy_walls._bar(axes, 1, unknown, "delta", float, str, False)
    assert len(axes.lines) == 3
    assert axes.texts[1].get_text() == f"audit ≥ {lower}"


def test_the_wall_ends_at_infinity_with_the_claim_in_the_middle():
    table = wall().assign(claimed_epsilon=2.0, exact_epsilon=[6.0, math.inf, math.nan])
    table = table.assign(epsilon_lower=0.0, claimed_delta=0.25, delta_lower=0.0)
    table["exact_delta"] = [1.0, 0.5, 0.0]
    places = marks(privacy_wall(results(privacy_wall=table)))

    def across(name, words, unit):
        """How far, of the way from nothing to where `unit` is 1."""
        (start, _), (end, _) = (places[f"alpha, {w}"] for w in unit)
        return (places[f"{name}, {words}"][0] - start) / (end - start)

    epsilon, delta = ("ε audit ≥ 0", "ε claimed 2"), ("δ audit ≥ 0", "δ exact 1")
    for name, words, unit, share in (
        *(("alpha", "ε exact 6", epsilon, 1.5), (NAMES[1], "ε exact ∞", epsilon, 2)),
        ("alpha", "δ claimed 0.25", delta, 0.25),
        (NAMES[1], "δ exact 0.5", delta, 0.5),
    ):
        # Coordinates are rounded to a tenth of a pixel, of some 200.
        assert across(name, words, unit) == pytest.approx(share, abs=0.003)


def test_curves_are_medians_by_epsilon_on_a_logarithmic_scale(axes):
    shuffled = variance().sample(frac=1, random_state=0).sort_values(["epsilon"])
    found = curves._curves(shuffled, exact([("gamma", 10.0)]), VERDICTS)
    names = [curve.line.label.removesuffix(" ✗") for curve in found]
    assert names == ["gamma", NAMES[1], "alpha"]
    for name, curve in zip(names, found, strict=True):
        i = NAMES.index(name)
        np.testing.assert_array_equal(curve.x, EPSILONS)
        middle = [0.8 + 0.05 * j + 0.01 * i + 0.002 for j in range(3)]
        np.testing.assert_allclose(curve.quartiles[1], middle)
        np.testing.assert_allclose(curve.quartiles[2] - curve.quartiles[1], 0.001)
        assert (curve.line.colour == REFUTED) == (name == "alpha")
        last = name == "gamma"
        assert list(curve.false) == [False, False, last]
    curves._scales(axes, found, 0.7)
    assert axes.get_xscale() == "log"
    assert axes.get_xlim() == (0.1, 10.0)
    nines = np.concatenate([curves.nines(curve.quartiles).ravel() for curve in found])
    assert axes.get_ylim()[0] < nines.min() < nines.max() < axes.get_ylim()[1]
    curves._draw(axes, found[0])
    whole, broken, markers, crosses = axes.lines
    assert list(whole.get_xdata()) == [0.1, 1.0]
    assert list(broken.get_xdata()) == [1.0, 10.0]
    assert broken.is_dashed()
    assert list(markers.get_xdata()) == [0.1, 1.0]
    assert list(crosses.get_xdata()) == [10.0]
    assert crosses.get_color() == REFUTED
    low, middle, high = curves.nines(found[0].quartiles)
    np.testing.assert_array_equal(whole.get_ydata(), middle[:2])
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert {*low, *high} <= set(band)


def test_a_rate_is_drawn_with_its_quartiles_and_its_law(axes):
    errors = {10.0: np.array([1.0, 2.0, 4.0, 8.0, 100.0]), 1.0: np.array([np.nan, 3.0])}
    law = PowerLaw(-1.0, -1.25, -0.75, 7.0)
    rate = Rate("noise", "m", errors, law, (-1.0, -1.0), -1.0, (1.0, 1.0))
    found = rate.quartiles
    assert found == {10.0: (2.0, 4.0, 8.0), 1.0: (3.0, 3.0, 3.0)}
    each = streaming._Drawn(rate, Line("text", INK, marker="o"), 0, True, True)
    streaming._panel(axes, [each], [each], "rows n")
    assert axes.get_xlabel() == "rows n"
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    fitted = axes.lines[-1]
    assert list(fitted.get_xdata()) == [1.0, 10.0]
    np.testing.assert_allclose(fitted.get_ydata(), [7.0, 0.7])
    assert "exponent −1.00 ± 0.25" in [text.get_text() for text in axes.texts]


def test_the_tiles_of_robust_pca_are_rows_across_and_lengths_up():
    table = pd.DataFrame(
        {"mechanism": "m", "rows": n, "dimension": d, "error": 1 / (n * d) ** k}
        for n in (200.0, 100.0)
        for d in (5.0, 7.0)
        for k in (1, 2, 3)
    )
    tables = dict.fromkeys(PHASES, table.iloc[:0])
    found = {**tables, PHASES[0]: table, "robust-audits": verdicts()}
    places = marks(all_sections()["robust"].figures["robust-phases"](results_of(found)))
    said = "m (no claim audited here), rows N = {}, length D = {}, {}: −{}".format
    cells = ((100, 5), (200, 5), (100, 7), (200, 7))
    few, more, longer, both = (
        places[said(*cell, "log10 of the median error", error)]
        for cell, error in zip(cells, ("5.4", "6.0", "5.7", "6.3"), strict=True)
    )
    assert few[0] == longer[0] < more[0] == both[0]
    assert few[1] == more[1] > longer[1] == both[1]
