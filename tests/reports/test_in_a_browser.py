"""The written site, as a browser shows it: `make browser`.

`DPAUDIT_CHROMIUM` names the browser, if it is not on the path. The folders that
`DPAUDIT_SITES` lists, with a colon between them, are looked at in the place of the
first page of a tiny report: `DPAUDIT_PAGES` pages of each kind (30), for those of a
kind come from one template, and `dpaudit report check` reads them all. Where there are
such folders, it is also seen that what is wrong would be found.
`DPAUDIT_SCREENSHOTS` is where to keep pictures of some pages.
"""

import os
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: make browser")

import numpy as np
from browsing import KINDS, browser, chromium, survey

from dpaudit.algorithms.estimators.measured import shipped_grid
from dpaudit.reports.site.first import START

SITES = list(filter(None, os.environ.get("DPAUDIT_SITES", "").split(os.pathsep)))
MOST = int(os.environ.get("DPAUDIT_PAGES", "30"))
SCREENSHOTS = os.environ.get("DPAUDIT_SCREENSHOTS")

SETTINGS = (
    {},
    {"k": 1, "d": 5, "epsilon": 10, "delta": 0, "replaced": 1, "signal": 100},
    {"k": 10, "d": 100, "epsilon": 0.1, "delta": 1e-9, "signal": 10_000},
)
SITE = Path(__file__).parents[2] / "reports" / "site"
FIRST = ("index.html",)


@pytest.fixture(scope="module")
def open_browser():
    if (executable := chromium()) is None:
        pytest.skip("there is no Chromium on the path, and no DPAUDIT_CHROMIUM")
    with browser(executable) as started:
        yield started


@pytest.fixture(scope="module", params=SITES or ["tiny"])
def found(request, open_browser):
    folder = Path(request.param)
    if request.param == "tiny":
        folder = request.getfixturevalue("tiny_report")
    elif not folder.is_dir():
        pytest.skip(f"{folder} has not been made yet")
    pictures = Path(SCREENSHOTS) / Path(request.param).name if SCREENSHOTS else None
    pages = FIRST if request.param == "tiny" else ()
    return survey(open_browser, folder, pictures, MOST, pages)


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_has_a_fault(found, kind):
    assert found[kind] == []


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_first_page_has_the_errors_of_the_grid_at_any_setting(
    open_browser, request, setting
):
    """Those are the very numbers that are kept; n follows from the signal."""
    if SITES:
        pytest.skip("the page of a tiny report is enough")
    page = open_browser.new_page()
    page.goto((request.getfixturevalue("tiny_report") / "index.html").as_uri())
    for axis, value in setting.items():
        page.select_option(f"select[name={axis}]", f"{float(value)}")
    shown = dict(
        page.eval_on_selector_all(
            "tr[data-name]",
            "rows => rows.map(each => [each.dataset.name, "
            "each.querySelector('.error').innerText.split('\\n')])",
        )
    )
    at = {**START, **setting}
    found = shipped_grid().at(**{**at, "replaced": bool(at["replaced"])})
    for name, lines in shown.items():
        if name in found and not np.isnan(found[name]).any():
            low, middle, high = found[name]
            assert lines == [f"{middle:g}", f"{low:g} to {high:g}"], name
        else:
            assert lines == ["not measured"], name
    rows = page.inner_text("select[name=signal] option:checked")
    wanted = 10 * at["k"] * at["signal"] / at["epsilon"]
    assert rows == f"{wanted:,.0f}"
    taken = page.inner_text("[data-take=taken]")
    best = min(found, key=lambda name: found[name][1])
    assert taken.startswith(f"{best}: error {found[best][1]:g} (")
    page.close()


PAGE = """<!DOCTYPE html><html lang="en"><head><title>T</title>
<meta name="viewport" content="width=device-width">
<style>:root {{ color-scheme: light dark }}
@media (prefers-color-scheme: dark) {{ body {{ background: #111 }} }}
@media print {{ nav, .filter {{ display: none }} }}</style></head>
<body><nav><a href="#end">end</a></nav><main><h1>T</h1>{}
<div style="height: 3000px"></div><p id="end">End</p></main></body></html>"""

FAULTY = """<script>throw new Error('planted')</script><svg id="s"><g></g></svg>
<img alt="" src="http://127.0.0.1:9/"><figure></figure><p style="color: #888">grey</p>
<p style="width: 500px">wide</p><div role="navigation">x</div>
<section id="fell" style="height: 6000px"></section>
<svg id="t"><g class="told"><rect width="9" height="9"/></g></svg>
<p>made</p><script>document.write('later')</script>
<style>:root { color-scheme: light } body { background: #fff !important }</style>"""


MARKS = "".join(
    f'<circle cx="{10 * i + 5}" cy="{2 * i + 3}" r="3"><title>mark {i}</title></circle>'
    for i in range(40)
)
FIGURE = """<figure><div class="wide"><svg viewBox="0 0 400 90"><g class="told">{}</g>
</svg></div></figure><style>{}</style><script>{}</script>"""


def test_a_figure_of_many_marks_is_looked_at_closely(open_browser, tmp_path):
    """By buttons, a double click, a drag, keys; a mark that keys choose is in view."""
    path = tmp_path / "index.html"
    site = [(SITE / name).read_text("utf-8") for name in ("style.css", "site.js")]
    path.write_text(PAGE.format(FIGURE.format(MARKS, *site)), encoding="utf-8")
    page = open_browser.new_page(viewport={"width": 900, "height": 700})
    page.goto(path.as_uri())

    def view():
        return [float(each) for each in page.get_attribute("svg", "viewBox").split()]

    def pressed(key):
        page.press("svg", key)
        return view()

    assert page.is_disabled("text=Whole figure")
    page.click("[aria-label='Zoom in']")
    assert view() == pytest.approx([75, 16.875, 250, 56.25])
    page.click("text=Whole figure")
    assert view() == [0, 0, 400, 90]
    box = page.locator("svg").bounding_box()
    corner = {"x": 2, "y": 2}
    page.dblclick("svg", position=corner)
    assert view()[:2] == pytest.approx([0, 0], abs=1)
    page.mouse.move(box["x"] + 200, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 100, box["y"] + 50, steps=3)
    page.mouse.up()
    left, top, wide, high = view()
    scale = box["width"] / wide
    assert (left, top) == pytest.approx((100 / scale, 10 / scale), abs=1.5)
    page.mouse.move(5, 600)
    page.mouse.down()  # and what begins elsewhere is no drag
    page.mouse.move(box["x"] + 200, box["y"] + 60)
    page.mouse.up()
    assert view() == [left, top, wide, high]
    for _ in range(20):
        nearest = pressed("+")
    assert nearest[2] == pytest.approx(400 / 12)
    for _ in range(39):
        x, y, wide, high = pressed("ArrowRight")
        spoken = int(page.inner_text(".beside").removeprefix("mark "))
        assert x <= 10 * spoken + 5 <= x + wide
        assert y <= 2 * spoken + 3 <= y + high
    assert pressed("0") == [0, 0, 400, 90]
    page.close()


@pytest.mark.skipif(not SITES, reason="looks at the looking: make browser")
def test_what_is_wrong_is_found_and_nothing_else(open_browser, tmp_path):
    """Tables and links, which take pages of their own, were planted by hand."""
    for name, body in (("right", ""), ("wrong", FAULTY)):
        (tmp_path / name).mkdir()
        page = tmp_path / name / "index.html"
        page.write_text(PAGE.format(body), encoding="utf-8")
    found = survey(open_browser, tmp_path)
    seen = {kind for kind, said in found.items() if said}
    assert seen == {*KINDS} - {"sorting", "filters", "links"}
    assert all(each.startswith("wrong") for said in found.values() for each in said)
