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

import browsing
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

TABLE = """<input class="filter" aria-label="Filter" aria-controls="t">
<table id="t" class="sortable"><thead><tr><th>Name</th><th>n</th></tr></thead><tbody>
<tr><td>b</td><td>10</td></tr><tr><td>a</td><td>9</td></tr><tr><td>ab</td><td>1,000</td>
</tr></tbody></table><script>
const rows = () => [...document.querySelectorAll("tbody tr")];
const number = (text) => Number(text.replace(",", ""));
const compare = (a, b) =>
  Number.isNaN(number(a)) ? a.localeCompare(b) : number(a) - number(b);
document.querySelectorAll("th").forEach((th) => th.addEventListener("click", () => {
  const up = th.getAttribute("aria-sort") !== "ascending";
  document.querySelectorAll("th").forEach((each) => each.removeAttribute("aria-sort"));
  th.setAttribute("aria-sort", up ? "ascending" : "descending");
  const text = (row) => row.cells[th.cellIndex].textContent;
  const sorted = rows().sort((a, b) => (up ? 1 : -1) * compare(text(a), text(b)));
  document.querySelector("tbody").append(...sorted);
}));
document.querySelector("input").addEventListener("input", (event) => {
  const word = event.target.value.toLowerCase();
  for (const row of rows()) row.hidden = !row.textContent.toLowerCase().includes(word);
});</script>"""

FIGURE = """<svg role="img" aria-label="x" width="200" height="40">
<path d="M0 0H200V40H0Z" fill="{}"/>
<text x="20" y="25" fill="#fff">white</text></svg>"""


NAMED = """<button aria-label="Menu"><svg><path/></svg></button>
<button><i>Menu</i><svg><path/></svg></button><svg style="display: none"></svg>
<div role="img" aria-label="Two lines"><svg><svg></svg></svg></div>
<figure><figcaption>x</figcaption></figure>"""
RIGHT = ("", TABLE, FIGURE.format("#111"), NAMED)
WRONG = [
    ("errors", "<script>throw new Error('planted')</script>", "planted"),
    ("errors requests", '<img alt="" src="http://127.0.0.1:9/">', "asks for http"),
    ("errors requests", '<img alt="" src="nowhere.png">', "did not get file:"),
    (
        "unnamed",
        '<svg id="s"><g></g></svg><button><i></i></button>',
        "'s', has no name",
    ),
    ("unnamed", "<figure></figure>", "a figure, '', has no name"),
    ("contrast", '<p style="color: #888">grey</p>', "'grey' and 0 more"),
    ("contrast", FIGURE.format("#bbb"), "'white' and 0 more: contrast 1.92"),
    ("sideways", '<p style="width: 500px">wide</p>', "508 of 390 pixels"),
    (
        "schemes",
        "<style>:root { color-scheme: light } body { background: #fff !important }"
        "</style>",
        "the background is rgb(255, 255, 255)",
    ),
    ("print", '<div role="navigation">x</div>', "is printed"),
    ("scripts", "<p>made</p><script>document.write('later')</script>", "later"),
    ("sorting", TABLE.replace("number(a) - number(b)", "1"), "follows"),
    ("sorting", TABLE.replace('"aria-sort", up', '"aria-x", up'), "is null"),
    ("filters", TABLE.replace("row.hidden =", "row.hidden ||="), "wrong for ''"),
    (
        "links",
        "<style>nav { position: fixed; top: 0; width: 100%; height: 99px }</style>"
        '<p style="height: 99px"></p><a href="#x">go</a><h2 id="x">there</h2>',
        "is not in sight",
    ),
]


def look(browser, folder, bodies):
    """What is wrong with each of the pages, which lie in folders of their own."""
    for number, body in enumerate(bodies):
        (folder / str(number)).mkdir()
        page = folder / str(number) / "index.html"
        page.write_text(PAGE.format(body), encoding="utf-8")
    seen = [{} for _ in bodies]
    for kind, sentences in survey(browser, folder).items():
        for each in sentences:
            number = int(each.partition("/")[0])
            seen[number].setdefault(kind, []).append(each)
    return seen


@pytest.mark.skipif(not SITES, reason="looks at the looking: make browser")
def test_what_is_wrong_is_found_and_nothing_else(open_browser, tmp_path, monkeypatch):
    *others, links = [body for _, body, _ in WRONG]
    (tmp_path / "links").mkdir()
    found = look(open_browser, tmp_path, [*RIGHT, *others])
    monkeypatch.setattr(browsing, "PATIENCE", 1_000)
    found += look(open_browser, tmp_path / "links", [links])
    assert found[: len(RIGHT)] == [{}] * len(RIGHT)
    for (kinds, _, sentence), seen in zip(WRONG, found[len(RIGHT) :], strict=True):
        assert set(seen) == set(kinds.split())
        assert any(sentence in each for each in seen[kinds.split()[-1]])
