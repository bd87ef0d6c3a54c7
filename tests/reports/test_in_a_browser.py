"""The written site, as a browser shows it: `make browser`.

`DPAUDIT_CHROMIUM` names the browser, if it is not on the path. The folders that
`DPAUDIT_SITES` lists, with a colon between them, are looked at in the place of two
pages of a tiny report: `DPAUDIT_PAGES` pages of each kind (30), for those of a
kind come from one template, and `.ci/pages.py` reads them all. Where there are
such folders, it is also seen that what is wrong would be found.
`DPAUDIT_SCREENSHOTS` is where to keep pictures of some pages.
"""

import os
from pathlib import Path

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: make browser")

from browsing import KINDS, browser, chromium, survey

SITES = list(filter(None, os.environ.get("DPAUDIT_SITES", "").split(os.pathsep)))
MOST = int(os.environ.get("DPAUDIT_PAGES", "30"))
SCREENSHOTS = os.environ.get("DPAUDIT_SCREENSHOTS")

TWO = ("mechanisms/index.html", "sections/privacy.html")


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
    pages = TWO if request.param == "tiny" else ()
    return survey(open_browser, folder, pictures, MOST, pages)


@pytest.mark.parametrize("kind", KINDS)
def test_no_page_has_a_fault(found, kind):
    assert found[kind] == []


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
<p>made</p><script>document.write('later')</script>
<style>:root { color-scheme: light } body { background: #fff !important }</style>"""


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
