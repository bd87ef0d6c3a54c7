import io
import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from audited_row import audited
from dp_pca_tables import dp_pca_tables
from lower_bounds_tables import lower_bounds_tables
from recovery_tables import recovery_tables
from refusals import refuses
from schemas import check
from theorems_tables import theorems_tables
from tiny_profile import BLANK, PAGES, RUN, TINY, tiny_plan

from dpaudit.datasets import Dataset
from dpaudit.errors import InputError
from dpaudit.reports import write_report, writer
from dpaudit.reports.bench.study import StudyFindings, Summary, TargetRow, TargetTable
from dpaudit.reports.checking import Site
from dpaudit.reports.escaping import file_name, plain
from dpaudit.reports.experiment import run
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.page import TEMPLATES
from dpaudit.reports.sections import Results, all_sections, chosen_sections, plan
from dpaudit.reports.sections.libraries import section as libraries
from dpaudit.reports.sections.libraries.findings import FILE as TOUR_FILE
from dpaudit.reports.sections.libraries.measures import FILE, LibraryComparison
from dpaudit.reports.sections.libraries.section import Beside
from dpaudit.reports.sections.privacy import section as privacy
from dpaudit.reports.sections.suite.section import suite_notes
from dpaudit.reports.sections.theorems import section as theorems
from dpaudit.reports.sections.utility import section as utility
from dpaudit.reports.sections.utility.measures import FIRST_COMPONENT, RANDOM_SUBSPACE
from dpaudit.reports.site import KINDS, mechanisms
from dpaudit.reports.site.first import headline
from dpaudit.reports.store import LIST, STORE, WorkStore, save_json, staging
from dpaudit.reports.writer import draw_figures, write_results

LIBRARIES = all_sections()["libraries"]
WHOLE = [each for each in all_sections().values() if not each.optional]
SECTIONS = {part.name: part.heading for each in WHOLE for part in each.parts}
FIGURES = [name for each in WHOLE for name in each.figures]
pytestmark = pytest.mark.usefixtures("tiny")


@pytest.fixture(scope="module")
def written(tiny_report):
    """The site of a tiny report of what can be run in little time."""
    return Site(tiny_report)


@pytest.fixture(scope="module")
def shown(written, tmp_path_factory):
    """The site of all sections, of what is measured or invented and lies beside."""
    folder = tmp_path_factory.mktemp("shown")
    found = results(**measured(WorkStore(written.root / STORE)))
    beside = {"libraries": Beside(COMPARISON, TOUR)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "draw_figures", lambda *_: BLANK)
        # Those of rows of theorems are looked at in test_theorems.py.
        patch.setattr(theorems, "_picture", lambda own, file: BLANK["theorems"])
        assert write_results(replace(found, beside=beside), folder) == {}
    return Site(folder)


def test_every_verdict_is_in_a_file_for_programs(written, shown):
    for site in (written, shown):
        found = json.loads((site.root / "report.json").read_text(encoding="utf-8"))
        check("report", found)
        tables = {row["table"] for row in found["verdicts"]}
        assert tables
        for name in tables:
            rows = [row for row in found["verdicts"] if row["table"] == name]
            table = pd.read_csv(site.root / f"{name}.csv")
            assert [row["verdict"] for row in rows] == list(table["verdict"])
            assert [row["mechanism"] for row in rows] == list(table["mechanism"])
            bounds = np.array([row["epsilon_lower"] for row in rows], dtype=float)
            np.testing.assert_array_equal(bounds, table["epsilon_lower"])
        for row in found["verdicts"]:
            assert row["witness"] is None or (site.root / row["witness"]).is_file()


@pytest.fixture(scope="module")
def page(shown):
    """Its first page and those of the sections as one text."""
    names = [name for name in shown.pages if name.startswith(("index", "sections/"))]
    return "\n".join(map(shown.text, names))


@pytest.fixture(scope="module")
def in_markdown(shown):
    return (shown.root / "report.md").read_text(encoding="utf-8")


def headline_of(found, *names):
    return headline(mechanisms.standings(found, chosen_sections(names), {}))


FELL = {
    **{"exact_epsilon": np.inf, "exact_delta": 0.5, "verdict": "REFUTED"},
    **{"epsilon_lower": 3.0, "delta_lower": 0.4, "detectable_epsilon": np.nan},
    "witness": "{}",
}
STOOD = {
    **{"exact_epsilon": 1.0, "exact_delta": 0.0, "claim": "kept", "epsilon_lower": 0.5},
    **{"delta_lower": 0.0, "samples_to_refute": np.nan},
}


def wall(refuted=("bad",), names=("good", "bad"), **columns):
    rows = ({"mechanism": n} | (FELL if n in refuted else STOOD) for n in names)
    return pd.DataFrame(
        [audited(**{"claimed_delta": 0.0} | row | columns) for row in rows]
    )


def exact(false=(), names=("good", "bad")):
    return pd.DataFrame(
        {
            **{"mechanism": name, "epsilon": epsilon, "claimed_epsilon": epsilon},
            "exact_epsilon": 2 * epsilon if (name, epsilon) in false else epsilon,
            "claim": "false" if (name, epsilon) in false else "kept",
        }
        for name in names
        for epsilon in (0.1, 1.0, 10.0)
    )


def variance(names=("good", "bad")):
    return pd.DataFrame(
        {"mechanism": name, "epsilon": epsilon, "captured_share": 0.7 + 0.1 * i + s}
        for i, name in enumerate(names)
        for epsilon, s in ((0.1, 0.0), (1.0, 0.05), (10.0, 0.1))
    )


SUITE = ("mechanism", "claimed_epsilon", "true_epsilon", "epsilon_lower")
SUITE += ("samples_to_refute",)


def suite(*rows):
    """Return a suite from tuples of what `SUITE` names."""
    return pd.DataFrame(
        audited(**dict(zip(SUITE, row, strict=True)), summary="what it does")
        | {"claimed_delta": 0.0, "samples": 5000, "relation": "replace-one"}
        | {"verdict": "NOT_REFUTED" if np.isnan(row[-1]) else "REFUTED"}
        | {"claim": "not known"}
        for row in rows
    )


FALLEN = ("fallen", 0.1, np.inf, 7.25, 1234.0)
STANDING = ("standing", 0.1, 0.1, 0.05, np.nan)
UNSEEN = ("unseen", 0.1, 0.2, 0.09, np.nan)


MEASURED = ("recommend-held-out", "variance-references", "run-time", "streaming-rates")
MEASURED += ("captured-variance", "components", "streaming-dimensions")
MEASURED += ("signal-in-noise", "privacy-wall", "exact-privacy", "textbook-suite")


def measured(store=None):
    """Return the tables of some experiments, which cost little or stand in a store."""
    return {name: run(tiny_plan(1)[name], store=store) for name in MEASURED}


def results(**tables):
    found = {
        **{"privacy-wall": wall(), "exact-privacy": exact()},
        **recovery_tables(wall),
        **lower_bounds_tables(),
        **theorems_tables(),
        **dp_pca_tables(),
        "streaming-audits": wall(["oja"], ["oja", "dp-pca"], claim="not known"),
        "training-audits": wall([], ["dp-sgd", "dp-sgd-batch-means"]),
    }
    return Results("tiny", 3, tiny_plan(3), {**found, **tables})


NOBODY = {
    "robust-audits": wall([], ["dp-ggd"]),
    "online-audits": wall([], ["online-pca"]),
    "streaming-audits": wall(["oja"], ["oja", "dp-pca"]),
    "textbook-suite": suite(("laplace-under-noised", 1.0, 2.0, 1.9, 70.0)),
}
"""Of what falls, one is planted and one of the suite, which no headline counts."""

FALLS = "The claim of bad, ε = 1 and δ = 0, falls after 70 releases a side"
HOLDS = "The claim of good holds at the audited ε but is false at ε = 10: the exact ε "


@pytest.mark.parametrize(
    ("refuted", "claim", "false", "says"),
    [
        (["bad"], "kept", [("bad", 1.0)], FALLS),
        (["bad"], "kept", [("bad", 1.0)], "good keeps 75.0 % with pure privacy"),
        (["bad"], "kept", [("bad", 1.0)], "Under a false claim, bad keeps 85.0 %"),
        (["good"], "kept", [], "did not refute bad with up to 1,000 releases a side"),
        (["bad"], "kept", [], "In truth ε is ∞ at the claimed δ, and δ is 0.5"),
        ([], "false", [], "Yet the exact loss shows the claim of good to be false"),
        ([], "kept", [("good", 1.0)], "Under a false claim, good keeps 75.0 %"),
        ([], "kept", [("good", 10.0)], f"{HOLDS}there is 20"),
    ],
)
def test_the_answer_follows_the_data(refuted, claim, false, says):
    table = wall(refuted)
    table.loc[0, "claim"] = claim
    tables = {"privacy-wall": table, "exact-privacy": exact(false)}
    found = results(**tables, **{"captured-variance": variance()})
    text = " ".join([*privacy.answer(found), *utility.answer(found)])
    assert says in text.replace("\N{NO-BREAK SPACE}", " ")
    assert "no proof of privacy" in text
    pure = "good keeps 75.0 % with pure privacy"
    assert not (says.startswith("Under a false claim, good") and pure in text)


def test_large_deltas_are_put_into_words_and_fallen_claims_said():
    (note,) = privacy.wall_notes(wall())
    above = "promises δ = 0 at ε = 1, the privacy loss is above 1 in at least"
    assert note == f"While bad {above} 50 of 100 releases on one of the two datasets."
    assert privacy.wall_notes(wall([])) == []
    # Without a formula, what the audit has proved: rounded down.
    unknown = {"exact_delta": np.nan, "claim": "not known", "delta_lower": 0.397}
    (note,) = privacy.wall_notes(wall(**unknown))
    assert f"{above} 39 of 100 releases" in note
    assert note.endswith(", at 99.9 % confidence.")
    table = wall(names=("good", "unseen", "bad"))
    table.loc[1, ["claim", "exact_delta"]] = "false", 0.25
    tables = {**NOBODY, "privacy-wall": table}
    said = "Two of seven audited privacy claims fell"
    assert headline_of(results(**tables)) == said
    note = privacy.verdict_note(table)
    assert note.startswith("Two of three claims fell at ε = 1: what is claimed for uns")
    assert "is contradicted, for unseen by the exact loss alone; of the other" in note
    none = privacy.verdict_note(wall([], claimed_epsilon=10.0))
    assert none.startswith("None of two claims fell at ε = 10: nothing found there")
    assert "in at least 25 of 100" in privacy.wall_notes(table)[0]
    tables |= {"captured-variance": variance(("good", "unseen"))}
    (text,) = utility.answer(results(**tables, **{"exact-privacy": exact()}))
    assert "good keeps 75.0 % with pure privacy" in text
    assert "Under a false claim, unseen keeps 85.0 %" in text


def test_the_notes_on_the_suite_follow_the_data():
    assert suite_notes(suite(FALLEN, STANDING, UNSEEN)) == [
        "One of two false claims fell.",
        "5,000 releases a side were too few to refute unseen.",
        "No true claim was refuted, and no bound lies above the truth.",
    ]
    wrong = ("wrong", 0.1, 0.1, 0.15, 70.0)
    beyond = ("beyond", 0.1, 0.2, 0.21, 80.0)
    assert suite_notes(suite(wrong, beyond)) == [
        "One of one false claims fell.",
        "Wrongly refuted: the true claim of wrong.",
        "Wrong bounds, above the truth: wrong and beyond.",
    ]
    # A truth that is the claim up to rounding is no violation.
    rounded = ("rounded", 0.1, 0.1 + 1e-13, 0.1, np.nan)
    assert suite_notes(suite(rounded)) == [
        "No true claim was refuted, and no bound lies above the truth."
    ]


def test_the_page_is_whole_and_fetches_nothing(shown, page, in_markdown):
    assert shown.report_faults() + shown.missing() == []
    for name, heading in SECTIONS.items():
        assert f'<section id="{name}">' in page
        begins = f'<section id="{name}">\n<p class="lead">' in page
        assert begins or f"<h2>{heading}</h2>" in page, name
    assert "The release &gt;= 3 in 300 of 1,000 fresh releases on D, 10 of" in page
    assert "| 10⁻⁸ | 4 | 2.00 s |" in in_markdown
    assert page.count('<td data-label="Interval">') == 5
    assert page.count('data-label="Within 0.01 from"') == 12


# Of a surrogate pair. Where pyarrow is installed, no table can hold it.
HALF = "" if find_spec("pyarrow") else "\ud800"
HOSTILE = (
    *("<script>alert(1)</script>", '"><img src=//elsewhere onerror=alert(1)>&amp;'),
    *("a | b\\| c", "`code` *bold* _low_ ~~gone~~ [link](javascript:x)"),
    *("two\n\n# lines\r\n| more |", "\x1b[31mred\x1b[0m\x00\x07", "=cmd|'/c calc'!A0"),
    *("+1", "-1", "@sum", "$\\frac{1}{0}$ or $2$", "index", "../../outside"),
    *(f"\u202eturned{HALF}", '#010a0b id="x" url(#y)'),
)


NAMED = chosen_sections(("privacy", "utility", "robust", "tracing", "suite"))
"""The sections of tables with hostile names."""


def hostile_results():
    """Results whose names are all of somebody who means no good."""
    table = results().tables
    found = {
        "privacy-wall": wall(HOSTILE, HOSTILE, source="<b>bold</b>\x1b"),
        "exact-privacy": exact(names=HOSTILE),
        **{"captured-variance": variance(HOSTILE), "components": variance(HOSTILE)},
        "run-time": pd.DataFrame(
            {"mechanism": [BASELINE, *HOSTILE], "fit_seconds": 0.1, "ratio": 1.0}
        ).assign(releases_per_second=[np.nan] + [12345.0] * len(HOSTILE)),
        "variance-references": pd.DataFrame(
            {
                "mechanism": [BASELINE, FIRST_COMPONENT, RANDOM_SUBSPACE],
                "captured_share": [0.9999, 0.75, 0.2],
            }
        ),
        "genotypes": pd.concat(
            table["genotypes"].iloc[:10].assign(mechanism=name) for name in HOSTILE
        ),
        "tracing": pd.concat(
            table["tracing"].iloc[:12].assign(mechanism=name) for name in HOSTILE
        ),
        "textbook-suite": suite(*((name, *FALLEN[1:]) for name in HOSTILE)),
    }
    records = [{**COMPARISON.records[0], "contender": name} for name in HOSTILE]
    versions = dict.fromkeys(HOSTILE, "<i>2.3</i>")
    comparison = replace(COMPARISON, records=records, versions=versions)
    some = plan("tiny", 3, NAMED)
    whole = results(**found).tables
    tables = {name: whole[name] for name in some}
    return Results("tiny", 3, some, tables, {"libraries": Beside(comparison, TOUR)})


def with_names(section):
    if section.name != "robust":
        return section
    return SimpleNamespace(figures={"genotypes": section.figures["genotypes"]})


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outer") / "inner" / "report"
    folder.mkdir(parents=True)

    def hung(found, sections, *_):
        return {**BLANK, **draw_figures(found, map(with_names, NAMED))}

    with pytest.MonkeyPatch.context() as patch:
        data = Dataset("digits", np.zeros((1797, 64)), source=HOSTILE[0])
        patch.setattr(utility, "load", lambda name: data)
        patch.setattr(writer, "draw_figures", hung)
        write_results(hostile_results(), folder, [*NAMED, LIBRARIES])
    return folder


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.attributes, self.text = Counter(), set(), []

    def handle_starttag(self, tag, attrs):
        self.seen[tag] += 1
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text.append(data)


def test_no_name_is_more_than_text_on_the_page(hostile, shown, written):
    site = Site(hostile)
    assert site.report_faults() == []
    tags, harmless = Tags(), Tags()
    for name in site.pages:
        page = site.text(name)
        assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", page)
        tags.feed(page)
    for other in (shown, written):
        for name in other.pages:
            harmless.feed(other.text(name))
    assert set(tags.seen) <= set(harmless.seen)
    assert tags.attributes <= harmless.attributes
    text = "".join(tags.text)
    for name in HOSTILE:
        assert plain(name) in text
    assert "<b>bold</b>\ufffd" in text
    assert "<i>2.3</i>" in text
    assert "<h1>index</h1>" in site.text("mechanisms/+index.html")
    assert "<h1>Experiments</h1>" in site.text("experiments/index.html")


def test_no_name_is_more_than_text_in_markdown(hostile):
    text = (hostile / "report.md").read_text(encoding="utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text)
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    # What Markdown would take for a tag, code, emphasis, a formula or a link.
    own = re.sub(r"\*\*REFUTED\*\*|`make third-party`|\[index.html\]\(index", "", prose)
    assert re.findall(r"(?<!\\)(?:\\\\)*[<`*~$\[&]", own) == []
    width = 0
    for line in prose.splitlines():
        pipes = len(re.findall(r"(?<!\\)(?:\\\\)*\|", line))
        if line.startswith("|"):
            assert pipes == (width or pipes), line
            width = pipes
        else:
            assert pipes == width == 0 or (width and not line), line
            width = 0
    assert r"| a \| b\\\| c |" in text
    assert r"| two # lines \| more \| |" in text


def test_no_name_is_a_formula_or_more_than_text_in_figures_and_leads_out(hostile):
    pictures = list(hostile.glob("*.svg"))
    assert len(pictures) == len(FIGURES)
    words = ""
    for picture in pictures:
        root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
        for text in root.iter("{http://www.w3.org/2000/svg}text"):
            words += f"{text.text} "
        tags = {each.tag.split("}")[-1] for each in root.iter()}
        assert not tags & {"script", "img", "a", "foreignObject"}
    words = " ".join(words.split())
    for line in "\n".join(HOSTILE).splitlines():
        assert words.count(plain(line).strip()) >= 3
    for name, table in hostile_results().tables.items():
        text = (hostile / f"{name}.csv").read_text(encoding="utf-8")
        assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text)
        found = pd.read_csv(io.StringIO(text), keep_default_na=False, dtype=str)
        assert len(found) == len(table)
        for column in found:
            if not pd.api.types.is_numeric_dtype(table[column]):
                assert not found[column].str.match(r"[=+\-@\s]").any()
        if name == "privacy-wall":
            names = [plain(each) for each in HOSTILE]
            marked = [f"'{each}" if each[0] in "=+-@" else each for each in names]
            assert list(found["mechanism"]) == marked
    outer = hostile.parents[1]
    inside = [path for path in outer.rglob("*") if path.is_file()]
    folders = {path.parent.relative_to(hostile).as_posix() for path in inside}
    assert folders == {".", "assets", "sections", *KINDS} - {"theorems"}
    page = (hostile / "sections" / "privacy.html").read_text(encoding="utf-8")
    links = re.findall(r'href="\.\./(witness-[^"]*)"', page)
    assert len(set(links)) == len(HOSTILE)
    assert set(links) < {path.name for path in inside}
    pages = [path.name for path in inside if path.parent.name == "mechanisms"]
    audited = hostile_results().tables["robust-audits"]["mechanism"]
    assert len(pages) == len({*PAGES, *HOSTILE, *audited})


def test_names_become_files_of_their_own_and_templates_trust_nothing():
    names = {"/", "\\", "+2f+", "2f", "+", "a/b", "a b", "a\nb", "A", "a", ""}
    assert len({file_name(name) for name in names}) == len(names)
    for path in sorted(TEMPLATES[0].parent.rglob("*.j2")):
        assert not re.search(r"\bsafe\b|autoescape", path.read_text(encoding="utf-8"))


def test_report_from_start_to_end(written):
    site, run = written, chosen_sections(RUN)
    assert site.report_faults() == []
    assert str(site.root) not in site.text("index.html")
    kinds = set(KINDS) - {"libraries", "theorems"}
    assert {path.name for path in site.root.iterdir()} == {
        *("index.html", "glossary.html", "assets", "sections", *kinds),
        *("report.md", "report.json", "tour.csv", STORE, LIST),
        *(f"{name}.csv" for name in plan("tiny", 1, run)),
        *(f"{name}.svg" for each in run for name in each.figures),
        *("witness-symmetric-noise.json", "witness-oja.json"),
        "witness-dp-sgd-batch-means.json",
    }
    assert len(site.pages) > len(PAGES) + 20
    told = json.loads((site.root.parents[1] / "told.json").read_text())
    (first, *_), (*_, done, total, fraction) = told[0], told[-1]
    fractions = [each for *_, each in told]
    assert fractions == sorted(fractions)
    assert (first, fractions[0]) == ("Privacy wall", 0.0)
    assert (done, fraction) == (total, 1.0)


@pytest.mark.parametrize("name", ["dp_pca", "theorems"])
def test_invented_tables_have_columns_that_are_measured(name):
    """At one point of each grid, drawn once by one mechanism.

    What is printed is invented for every bound; it is measured where it differs.
    """
    invented = results().tables
    for each in all_sections()[name].experiments(TINY[name]):
        grid = {column: values[:1] for column, values in each.grid.items()}
        only = each.mechanisms[:1]
        table = run(replace(each, grid=grid, repetitions=1, mechanisms=only))
        wanted = {c for c in invented[each.name] if not c.endswith("_printed")}
        assert len(table), each.name
        assert wanted <= set(table), each.name


BESIDE = ("auditor", "libraries")
"""Sections without experiments: they show what others have left beside the report."""


def test_what_lies_beside_the_report_is_shown_and_its_own_files_replaced(tmp_path):
    bench, report = tmp_path / "bench", tmp_path / "report"
    for folder in (bench, report):
        folder.mkdir()
    (report / "mine.txt").write_text("keep", encoding="utf-8")
    (report / "index.html").write_text("old", encoding="utf-8")
    table = TargetTable("T", (TargetRow({"x": "<found>"}, True, {}),), "Note.")
    Summary("quick", "1", (StudyFindings("dice", "Dice", 1, 1, (table,)),)).save(bench)
    (bench / "bench.html").write_text("<script>alert(1)</script>")
    COMPARISON.save(tmp_path / "third-party")
    write_report(report, profile="tiny", sections=BESIDE)
    assert (report / "mine.txt").read_text(encoding="utf-8") == "keep"
    assert "<h1>" in (report / "index.html").read_text(encoding="utf-8")
    page = (report / "sections" / "auditor.html").read_text(encoding="utf-8")
    assert '<h3 id="bench-dice">Dice</h3>' in page
    assert "<td>&lt;found&gt;</td><td>met</td>" in page
    assert "<script>" not in page
    page = (report / "sections" / "libraries.html").read_text(encoding="utf-8")
    assert "Made with dpaudit 0.1.0, other 2.3." in page
    text = (report / "report.md").read_text(encoding="utf-8")
    assert "## Dice" in text
    assert "| \\<found\\> | met |" in text


def test_what_an_earlier_report_left_goes(tmp_path):
    def write(*names):
        with staging(tmp_path / "report") as folder:
            (folder / "mechanisms").mkdir()
            for name in ("index.html", *names):
                (folder / name).write_text(name, encoding="utf-8")

    write("mechanisms/one.html", "mechanisms/two.html")
    kept = [tmp_path / "beside.html", tmp_path / "report" / "mechanisms" / "mine.html"]
    for path in kept:
        path.write_text("mine", encoding="utf-8")
    write("mechanisms/two.html", "three.csv")
    # Nor does a list that somebody changed lead out of the folder.
    with (tmp_path / "report" / LIST).open("a", encoding="utf-8") as listed:
        listed.write(f"../beside.html\n{kept[0]}\nmechanisms\nnowhere.html\n")
    write("three.csv")
    left = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    own = {"index.html", "three.csv", "mechanisms/mine.html", LIST}
    assert left == {"beside.html", *(f"report/{name}" for name in own)}
    kept[1].unlink()
    write("mechanisms/one.html")
    write("three.csv")
    assert not (tmp_path / "report" / "mechanisms").exists()


def test_a_table_that_cannot_be_made_is_told_and_the_page_stands(tmp_path, monkeypatch):
    def fails(results):
        raise RuntimeError("no table")

    monkeypatch.setattr(libraries, "tables", fails)
    found = Results("tiny", 3, {}, {}, {"libraries": Beside(None, TOUR)})
    failed = write_results(found, tmp_path, [LIBRARIES])
    assert str(failed["libraries"]) == "no table"
    assert not (tmp_path / "tour.csv").exists()
    page = (tmp_path / "sections" / "libraries.html").read_text("utf-8")
    # Nor is there a comparison: how to make one is said.
    said = "was not fitted for this report: <code>make third-party</code>"
    assert said in page
    said = "Not fitted for this report: `make third-party`"
    assert said in (tmp_path / "report.md").read_text("utf-8")


def test_nothing_is_left_behind_when_it_fails(tmp_path, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(writer, "render", interrupted)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "index.html").write_text("old", encoding="utf-8")
    for output in ("a/b", "old"):
        with pytest.raises(KeyboardInterrupt):
            write_report(tmp_path / output, profile="tiny", sections=BESIDE)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    # What was worked out is kept, and nothing else.
    kept = {"old", "old/index.html", "a", "a/b"}
    assert left == {*kept, f"a/b/{STORE}", f"old/{STORE}"}
    assert (tmp_path / "old" / "index.html").read_text(encoding="utf-8") == "old"


def test_what_cannot_be_written_or_read_is_found_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "run_all", None)
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    for output in (blocked, blocked / "report"):
        refuses("cannot write the report to", write_report, output)
    COMPARISON.save(tmp_path / "third-party")
    (tmp_path / "third-party" / FILE).write_text('{"versions": {}}')
    with pytest.raises(InputError, match="make third-party"):
        write_report(tmp_path / "report", profile="tiny", seed=1)
    assert not (tmp_path / "report").exists()


FITTED = ("contender", "delta", "dimension", "n_components", "captured_share")
FITTED += ("fit_seconds",)
COMPARISON = LibraryComparison(
    versions={"dpaudit": "0.1.0", "other": "2.3"},
    epsilon=1.0,
    relation="replace-one",
    n_rows=20_000,
    repetitions=3,
    limit_s=60.0,
    records=[
        dict(zip(FITTED, fit, strict=True)) | {"centre": "known centre"}
        for fit in (
            *(("ours", 0.0, 6, 2, 0.97, 0.001), ("ours", 1e-5, 6, 2, 0.96, 0.001)),
            *(("<theirs>", 0.0, 6, 2, 0.9, 2.5), ("<theirs>", 0.0, 54, 10, None, None)),
        )
    ],
)


def leg(relation, verdict, rows="finite", how="black box", where=""):
    finding = {"kind": "scale", "where": where, "message": "-"}
    return {
        **{"rows": rows, "relation": relation, "how": how, "verdict": verdict},
        **{"findings": [finding] if where else [], "executions": 1_000},
    }


TOUR = [
    {
        **{"subject": f"<lib>.{name}", "library": "<lib>", "version": "0.1"},
        **{"claim": "PureDP(epsilon=1.0)", "relation": None, "stated": "here"},
        **{"skipped": None, "notes": ["prints | 3 characters"]},
        "legs": [
            leg("add-remove", first, where="lib/glue.py:7"),
            leg("replace-one", "REFUTED"),
            leg("replace-one", "REFUTED", rows="strange"),
        ],
        "seconds": 12.3,
    }
    for name, first in (("false", "REFUTED"), ("half", "NOT_REFUTED"))
]


def part_of(page, name):
    part = page[page.index(f'<section id="{name}">') :]
    return part[: part.index("</section>")]


def test_the_tour_and_the_comparison_of_libraries(page, in_markdown):
    section = part_of(page, "tour")
    assert re.findall(r'data-label="Verdict"><div>(.*?)</div>', section) == [
        '<span class="badge refuted">REFUTED</span><small>not yet explained</small>',
        '<span class="badge standing">NOT REFUTED</span>'
        "<small>REFUTED under replace-one alone</small>",
    ]
    assert "2 mechanisms and models of one other library: 1 REFUTED" in section
    assert "lib/glue.py:7 scale; prints | 3 characters" in section
    row = r"| half | \<lib\> 0.1 | PureDP(epsilon=1.0) | not stated | NOT\_REFUTED"
    assert row in in_markdown
    beside = replace(results(), beside={"libraries": Beside(None, TOUR)})
    table = LIBRARIES.tables(beside)["tour"]
    assert list(table["name"]) == ["false", "half"]
    assert table["readings"][1] == "add-remove: NOT_REFUTED; replace-one: REFUTED"
    assert list(LIBRARIES.tables(results())["tour"]["name"]) == []
    section = part_of(page, "libraries")
    names = re.findall(r'scope="row">(.*?)<', section)
    assert names == ["ours", "ours", "&lt;theirs&gt;"]
    cells = re.findall(r'data-label="10 of 54"><div>(.*?)<', section)
    assert cells == ["no fit"] * 3
    assert "<small>within 60 s</small>" in section
    assert "Made with dpaudit 0.1.0, other 2.3." in section
    row = r"| \<theirs\> | known centre | ε = 1, δ = 0 "
    row += "| 90.0 %, 2.50 s | no fit, within 60 s |"
    assert "\n|---|---|---|---:|---:|\n" in in_markdown
    assert f"\n{row}\n" in in_markdown


def test_the_witnesses_of_the_tour_are_written_and_linked(tmp_path):
    folder = tmp_path / "third-party"
    legs = [leg("add-remove", "REFUTED"), leg("replace-one", "REFUTED")]
    for one, name in zip(legs, ("a+20+b.0.witness.json", "../out.json"), strict=True):
        one["witness"] = name
    save_json(folder / TOUR_FILE, {"records": [{**TOUR[0], "legs": legs}]})
    (folder / "a+20+b.0.witness.json").write_text('{"the": "witness"}')
    (tmp_path / "out.json").write_text("secret")
    found = LIBRARIES.beside(tmp_path)
    assert found.witnesses == {"a+20+b.0.witness.json": '{"the": "witness"}'}
    output = tmp_path / "report"
    output.mkdir()
    write_results(Results("tiny", 3, {}, {}, {"libraries": found}), output, [LIBRARIES])
    name = "a+20+b.0.witness.json"
    assert (output / name).read_text("utf-8") == '{"the": "witness"}'
    for page in ("sections/libraries.html", "libraries/+3c+lib+3e+.html"):
        text = (output / page).read_text("utf-8")
        assert f'<a href="../{name}">Witness</a>' in text
        assert "out.json" not in text
    (folder / name).write_bytes(b"\xff")
    refuses("cannot read", LIBRARIES.beside, tmp_path)
