import json
import runpy
import sys
from pathlib import Path
from shutil import copytree

import pytest
from click.testing import CliRunner

from dpaudit.cli import main
from dpaudit.reports import checking
from dpaudit.reports.checking import Site
from dpaudit.reports.sections import all_sections
from dpaudit.reports.store import STORE

WHOLE = [each for each in all_sections().values() if not each.optional]
SECTIONS = {part.name: part.heading for each in WHOLE for part in each.parts}
FIGURES = [name for each in WHOLE for name in each.figures]


def page(body="", head="<title>T</title>", language=' lang="en"', top="<h1>T</h1>"):
    return (
        f"<!DOCTYPE html><html{language}><head>"
        f'<meta name="viewport" content="width=device-width">{head}</head>'
        f"<body>{top}\n{body}\n</body></html>"
    )


def write(folder, **pages):
    """Write pages, by name without suffix, beside files that they may refer to."""
    (folder / "more").mkdir(exist_ok=True)
    (folder / "table.csv").write_text("a,b\n", encoding="utf-8")
    pages.setdefault("more/other", page('<p id="there"></p>'))
    for name, html in pages.items():
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return folder


def found(folder, body="", **parts):
    return Site(write(folder, index=page(body, **parts))).report_faults()


HEADS = "".join(f'<th scope="col">{name}</th>' for name in checking.COLUMNS)
TABLE = f"<table><thead><tr>{HEADS}</tr></thead>{{}}</table>"
BEGINNING = (
    '<main id="main"><section id="fell"><p>m.</p></section><section id="take">'
    '</section><section id="mechanisms">'
    + TABLE.format('<tr><td><a href="mechanisms/m.html">m</a></td></tr>')
    + "</section>"
)
LEAD = '<main id="main"><p>One. Two?</p><figure></figure><ul><li>x</li></ul>'


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Every section and every figure, each where it may be."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "sections").mkdir()
    (folder / "mechanisms").mkdir()
    figures = "".join(
        f'<svg id="figure-{name}-wide"><title>T</title></svg>' for name in FIGURES
    )
    own = {
        f"sections/{each.name}": page(
            LEAD + "".join(f'<section id="{p.name}"></section>' for p in each.parts)
        )
        for each in WHOLE
    }
    pages = {"index": page(BEGINNING), "mechanisms/m": page()}
    return write(folder, **pages, **own, **{"more/figures": page(figures)})


def test_a_whole_report_has_no_problem(whole):
    site = Site(whole)
    assert site.missing() + site.report_faults() + site.laws() == []
    assert {"index.html", "more/figures.html", "more/other.html"} < set(site.pages)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('id="fell"', 'id="x"', "it begins with ['x', 'take', 'mechanisms']"),
        ("<p>m.</p>", "<dl></dl>", "definitions stand before the table"),
        ("Exact loss", "Loss", "there is no one table of mechanisms with all columns"),
        ("</table>", "</table><table></table>", "there is no one table"),
        ("mechanisms/m.html", "#top", "mechanisms/m.html is in no row"),
        ("<figure></figure>", "", "no picture stands before its lists"),
        ("<figure>", "<dl></dl><figure>", "no picture stands before its lists"),
        ("Two?", "Two? Three’s.", "3 sentences stand before its picture"),
        ("One. Two?", "", "0 sentences stand before its picture"),
    ],
)
def test_a_page_that_does_not_say_things_in_their_order_is_found(
    whole, tmp_path, old, new, fault
):
    copytree(whole, tmp_path, dirs_exist_ok=True)
    for name in ("index.html", "sections/privacy.html"):
        path = tmp_path / name
        path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")
    told = Site(tmp_path).laws()
    assert any(fault in each for each in told)
    assert len(told) <= 2


def test_what_is_missing_on_pages_is_named(tmp_path):
    sections = [f"section {n!r} ({text}) is missing" for n, text in SECTIONS.items()]
    figures = [f"figure {name!r} is missing" for name in FIGURES]
    found = Site(write(tmp_path, index=page())).missing()
    assert sorted(found) == sorted(sections + figures)
    site = Site(write(tmp_path, index=page('<section id="privacy-wall"></section>')))
    privacy = {each.name for each in all_sections()["privacy"].parts}
    found = site.missing("privacy", "suite")
    named = {each.split("'")[1] for each in found if each.startswith("section")}
    assert named == (privacy | {"textbook-suite"}) - {"privacy-wall"}


@pytest.mark.parametrize(
    "extra",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="alternate stylesheet" href="//fonts.example/a.css">',
        '<IMG ALT="" SRC=" HTTPS://example.org/a.png">',
        *('<img alt="" src="file:///etc/a.png">', '<img alt="" src="/a.png">'),
        "<style>body { background: url('https://example.org/a.png') }</style>",
        "<style>@import 'https://example.org/a.css';</style>",
        '<p style="background: url(//example.org/a.png)">x</p>',
        '<svg role="none"><image xlink:href="https://example.org/a.png"/></svg>',
        '<img alt="" srcset="table.csv 1x, https://example.org/a.png 2x">',
        '<form action="https://example.org/"></form>',
    ],
)
def test_whatever_is_fetched_from_elsewhere_is_found(extra, tmp_path):
    (problem,) = found(tmp_path, extra)

    assert problem.startswith("index.html:2: the page fetches from elsewhere: ")


@pytest.mark.parametrize(
    "rule", ["@import 'https://a.org/b.css';", "a{b:url(//a.org)}"]
)
def test_a_stylesheet_fetches_nothing_either(rule, tmp_path):
    (tmp_path / "style.css").write_text(rule, encoding="utf-8")
    (problem,) = found(tmp_path, '<link rel="stylesheet" href="style.css">')

    assert problem.startswith("style.css:1: the page fetches from elsewhere: ")


RIGHT = "".join(
    [
        '<a href="https://example.org/">a link fetches nothing</a>',
        '<a href="mailto:a@example.org">neither does that</a>',
        '<link rel="canonical" href="more/other.html">',
        '<svg xmlns="http://www.w3.org/2000/svg"><title>T</title></svg>',
        '<svg role="none"><g id="marker"></g><use xlink:href="#marker"/></svg>',
        "<p>see https://example.org/</p>",
        '<img alt="" src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">',
        '<a href="more/other.html#there">x</a> <a href="table.csv">x</a>',
        '<a href="#top">x</a> <a href="#%C3%A9">x</a> <p id="é"></p>',
        '<a href="more/../index.html?q=1">x</a>',
        '<input id="x"><label for="x">x</label>',
        "<table><thead><tr><th>x</th></tr></thead></table>",
        '<table><tr><th scope="row">x</th><td>y</td></tr></table>',
        "<h2>x</h2><h3>x</h3><h2>x</h2><h3>x</h3><h4>x</h4>",
        "<ul><li>no end<li>of an item<br/></ul><h2>after</h2>",
    ]
)


def test_what_is_right_is_accepted_and_no_viewport_found(tmp_path):
    assert found(tmp_path, RIGHT) == []
    folder = write(tmp_path, index=page().replace("viewport", "other"))
    assert Site(folder).report_faults() == [
        'index.html:1: the page has no <meta name="viewport">'
    ]


@pytest.mark.parametrize(
    ("address", "wrong"),
    [
        *(("more/", "leads to no file"), ("other.html", "leads to no file")),
        ("#nowhere", "leads to nothing: index.html has no id 'nowhere'"),
        ("more/other.html#x", "leads to nothing: more/other.html has no id 'x'"),
        ("../elsewhere/index.html", "leads out of the folder"),
        ("/more/other.html", "leads out of the folder"),
        ("//example.org/", "leads out of the folder"),
        ("javascript:alert(1)", "leads out of the folder"),
    ],
)
def test_links_that_lead_nowhere_are_found(address, wrong, tmp_path):
    expected = f"index.html:2: the link to {address!r} {wrong}"

    assert found(tmp_path, f'<a href="{address}">x</a>') == [expected]


@pytest.mark.parametrize(
    ("extra", "fault"),
    [
        ('<script src="x.js"></script>', "'x.js', which the page needs, leads to no"),
        ('<i style="fill: url(#x)"></i>', "index.html has no id 'x'"),
        ('<img src="table.csv">', "the picture 'table.csv' has no alt"),
        ("<h3>Deep</h3>", "the heading <h3> 'Deep' follows <h1>"),
        ("<h1>Two</h1>", "<h1> 'Two' is not the first <h1> of the page"),
        ("<h2> <i></i></h2>", "the heading <h2> is empty"),
        ('<p id="a"></p><i id="a"></i>', "id 'a' is used 2 times"),
        ('<label for="a">x</label>', "there is no id 'a' to refer to"),
        ("<table><tbody><tr><th>x</table>", "a header of a table says no scope"),
        ('<table><thead><tr><th scope="x">x</table>', "a header of a table says no"),
        ('<section id="s"><p class="failed">x</section>', "section 's' failed"),
        ('<base href="/">', "<base> changes where every link leads"),
    ],
)
def test_what_is_wrong_with_a_page_is_found(extra, fault, tmp_path):
    (problem,) = found(tmp_path, extra)
    assert problem.startswith("index.html:")
    assert fault in problem


@pytest.mark.parametrize(
    ("parts", "fault"),
    [
        ({"head": "<title> </title>"}, "the page has no <title>"),
        ({"language": ""}, "the page has no lang on <html>"),
        ({"top": ""}, "the page has no <h1>"),
        ({"top": "<h2>First</h2><h1>T</h1>"}, "'First' follows no other"),
    ],
)
def test_what_a_page_lacks_is_found(parts, fault, tmp_path):
    (problem,) = found(tmp_path, **parts)

    assert fault in problem


def test_a_site_is_not_too_large(tmp_path, monkeypatch):
    (tmp_path / f"{STORE}-wal").write_bytes(b" " * 5_000)
    (tmp_path / ".hidden").write_bytes(b" " * 5_000)
    monkeypatch.setattr(checking, "LARGEST", 5_000)
    assert found(tmp_path) == []
    (tmp_path / "large.csv").write_bytes(b" " * 5_000)
    (problem,) = found(tmp_path)
    assert problem.startswith("the files have 0.0 MB, more than 0.005")


@pytest.mark.parametrize(
    ("badge", "verdicts", "fault"),
    [
        ("REFUTED", ["REFUTED", "NOT_REFUTED"], ""),
        ("NOT REFUTED", ["NOT_REFUTED", "NO_VERDICT"], ""),
        ("not audited here", [], ""),
        ("NOT REFUTED", ["REFUTED"], "m is NOT REFUTED, in report.json REFUTED"),
        ("REFUTED", ["NO_VERDICT"], "m is REFUTED, in report.json NO_VERDICT"),
        ("NOT REFUTED", [], "m is NOT REFUTED, in report.json no audit"),
    ],
)
def test_rows_have_the_verdicts_of_the_audits(whole, tmp_path, badge, verdicts, fault):
    copytree(whole, tmp_path, dirs_exist_ok=True)
    told = {"verdicts": [{"mechanism": "m", "verdict": each} for each in verdicts]}
    (tmp_path / "report.json").write_text(json.dumps(told), "utf-8")
    index = tmp_path / "index.html"
    cell = f'<span class="badge x">{badge}</span></td></tr>'
    index.write_text(index.read_text("utf-8").replace("</td></tr>", cell), "utf-8")
    assert Site(tmp_path).laws() == ([f"index.html: {fault}"] if fault else [])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        *(("", "complete JSON"), ("{", "complete JSON"), ("[" * 9999, "too deeply")),
        *((text, "has no verdicts") for text in ("[]", "null", "{}", '"x"', "3")),
        *(
            (json.dumps({"verdicts": [{"mechanism": "m", **row}]}), "has no verdicts")
            for row in ({}, {"verdict": None}, {"verdict": ["REFUTED"]})
        ),
    ],
)
def test_a_broken_list_of_verdicts_is_a_fault_of_the_report(
    whole, tmp_path, text, fault
):
    copytree(whole, tmp_path, dirs_exist_ok=True)
    (tmp_path / "report.json").write_text(text, "utf-8")
    (said,) = Site(tmp_path).laws()
    assert "report.json" in said
    assert fault in said


def test_exit_codes(whole, tmp_path, monkeypatch):
    def check(folder, *options):
        return CliRunner().invoke(main, ["report", "check", str(folder), *options])

    every = f"{len(WHOLE) + 4} pages, all well\n"
    done = check(whole)
    assert (done.exit_code, done.stdout) == (0, f"{whole}: {every}")
    write(tmp_path, index=page())
    done = check(tmp_path)
    assert done.exit_code == 1
    assert f"figure {FIGURES[0]!r} is missing" in done.stdout
    for folder, code in ((tmp_path, 0), (tmp_path / "none", 1)):
        monkeypatch.setattr(sys, "argv", ["", str(folder)])
        script = Path(__file__).parents[2] / ".ci/pages.py"
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(script), run_name="__main__")
        assert ended.value.code == code
    assert check(tmp_path / "none").exit_code == 2
    assert check(whole, "--section", "x").exit_code == 2
