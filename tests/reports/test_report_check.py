import pytest
from click.testing import CliRunner

from dpaudit.cli import main
from dpaudit.reports.check import problems
from dpaudit.reports.sections import all_sections

WHOLE = [each for each in all_sections().values() if not each.optional]
SECTIONS = {part.name: part.heading for each in WHOLE for part in each.parts}
FIGURES = [name for each in WHOLE for name in each.figures]


def page(skip_section=None, skip_figure=None, extra=""):
    sections = "".join(
        f'<section id="{name}"><h2>{heading}</h2></section>'
        for name, heading in SECTIONS.items()
        if name != skip_section
    )
    figures = "".join(
        f'<svg id="figure-{name}-wide"></svg>'
        for name in FIGURES
        if name != skip_figure
    )
    return f"<!DOCTYPE html><html><body>{sections}{figures}{extra}</body></html>"


def test_a_whole_page_has_no_problem():
    assert problems(page()) == []


@pytest.mark.parametrize("name", SECTIONS)
def test_a_missing_section_is_named(name):
    assert f"section {name!r} ({SECTIONS[name]}) is missing" in problems(page(name))


@pytest.mark.parametrize("name", FIGURES)
def test_a_missing_figure_is_named(name):
    assert problems(page(skip_figure=name)) == [f"figure {name!r} is missing"]


@pytest.mark.parametrize(
    "extra",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/a.css">',
        '<img src="http://example.org/a.png">',
        '<IMG SRC=" HTTPS://example.org/a.png">',
        "<style>body { background: url('https://example.org/a.png') }</style>",
        "<style>@import 'https://example.org/a.css';</style>",
        '<p style="background: url(//example.org/a.png)">x</p>',
        '<svg><image xlink:href="https://example.org/a.png"/></svg>',
        '<svg><use href="https://example.org/a.svg#x"/></svg>',
        '<img srcset="a.png 1x, https://example.org/a.png 2x">',
    ],
)
def test_whatever_is_fetched_from_elsewhere_is_found(extra):
    (problem,) = problems(page(extra=extra))

    assert problem.startswith("the page fetches from elsewhere")


@pytest.mark.parametrize(
    "extra",
    [
        '<a href="https://example.org/">a link fetches nothing</a>',
        '<svg xmlns="http://www.w3.org/2000/svg"></svg>',
        '<svg><use xlink:href="#marker"/></svg>',
        "<p>see https://example.org/</p>",
    ],
)
def test_harmless_addresses_are_accepted(extra):
    assert problems(page(extra=extra)) == []


def test_a_section_that_failed_is_named():
    failed = '<section id="other"><p class="failed">Why.</p></section>'

    assert problems(page(extra=failed)) == ["section 'other' failed"]


def check(path):
    return CliRunner().invoke(main, ["report", "check", str(path)])


def test_exit_codes(tmp_path):
    good, bad, binary = (tmp_path / name for name in ("good", "bad", "binary"))
    good.write_text(page(), encoding="utf-8")
    bad.write_text(page("verdicts"), encoding="utf-8")
    binary.write_bytes(b"\xff\xfe\x00")

    assert check(good).exit_code == 0
    assert "all sections" in check(good).stdout
    assert check(bad).exit_code == 1
    assert "section 'verdicts' (Verdicts) is missing" in check(bad).stderr
    for path in (tmp_path / "nowhere", binary):
        assert check(path).exit_code == 2
        assert "cannot read" in check(path).stderr
        assert check(path).stderr.count("\n") == 1
    assert CliRunner().invoke(main, ["report", "check"]).exit_code == 2
