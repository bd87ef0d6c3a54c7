"""The report as a site: a first page, a page for each section, and one for each thing.

``index.html`` is the page in which one decides (`dpaudit.reports.site.first`). Beside
it are a page for each section (`dpaudit.reports.sections`), none of which is known here
by its name, and pages about single things: mechanisms, experiments, and what sections
have pages for, such as theorems. No page fetches anything from elsewhere. A section
that fails, because an experiment of it has or because its table cannot be put into
words or pictures, is shown as failed with its error, and the others stand.

Templates hold the words that are always true. All that a template is given is taken for
text and escaped (`dpaudit.reports.escaping`), but for what is `Safe`: stylesheets,
figures, docstrings of this project, and the tables of the bench, all made here.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from pandas import DataFrame

from dpaudit.printable import said
from dpaudit.reports.escaping import Safe
from dpaudit.reports.experiment import declarations
from dpaudit.reports.page import (
    GLOSSARY,
    STYLES,
    TEMPLATES,
    Drawn,
    Figures,
    in_both_widths,
    stylesheet,
)
from dpaudit.reports.sections import (
    Fact,
    PagePart,
    Results,
    Section,
    TopicPage,
    all_sections,
)
from dpaudit.reports.site import experiments, first, mechanisms
from dpaudit.reports.site.frame import Frame, made_now
from dpaudit.reports.store import INDEX


@dataclass(frozen=True)
class FilledPart:
    """A part of a section, filled in; or in its place the error, in words."""

    part: PagePart
    body: Safe
    error: str = ""


class SectionContent:
    """All that a section says of results, each thing by itself."""

    answer: list[str]
    remarks: Mapping[str, list[str]]
    facts: list[Fact]
    pages: list[TopicPage]

    def __init__(self, results: Results, section: Section) -> None:
        self.results, self.section = results, section
        self.failed: Exception | None = None  # what went wrong first; the others stand
        self._context = self._attempt("context", None)
        self.there = self._context is not None or self.failed is not None
        self._why = self.failed
        for hook in ("answer", "remarks", "facts", "pages"):
            setattr(self, hook, self._attempt(hook, {} if hook == "remarks" else []))

    def _attempt(self, hook: str, otherwise: Any) -> Any:
        try:
            return getattr(self.section, hook)(self.results)
        except Exception as error:
            self.failed = self.failed or error
            return otherwise

    def parts(self, frame: Frame, figures: Figures) -> list[FilledPart]:
        """Return the parts of its page, in their order."""
        return [
            self._filled(part, f"{part.name}.html.j2", frame, figures)
            for part in sorted(self.section.parts, key=lambda each: each.place)
        ]

    def in_markdown(self, frame: Frame) -> list[FilledPart]:
        """Return those parts that can do without figures, in Markdown."""
        folder, names = TEMPLATES[1] / self.section.name, "{}.md.j2"
        return [
            self._filled(part, names.format(part.name), frame, {})
            for part in self.section.parts
            if (folder / names.format(part.name)).is_file()
        ]

    def _filled(
        self, part: PagePart, template: str, frame: Frame, figures: Figures
    ) -> FilledPart:
        own = {
            "root": "../",
            "size": self.section.sizes.get(self.results.profile),
            "figure": lambda name: in_both_widths(figures[name]),
            "options": self.results.options,
        }
        try:
            if self._why is not None:
                raise self._why
            body = frame.filled(
                f"{self.section.name}/{template}", **own, **self._context
            )
        except Exception as error:
            self.failed = self.failed or error
            return FilledPart(part, Safe(), said(error))
        return FilledPart(part, body)


@dataclass(frozen=True)
class Kind:
    """Things that have a page each, in a folder of their own."""

    # heading, about: of the page that lists them
    heading: str
    about: str
    # of its table: the thing, what it belongs to, and the verdict
    columns: Sequence[str]


KINDS = {
    name: Kind(**told)
    for name, told in declarations(TEMPLATES[0] / "kinds.toml").items()
}
"""By the name of the folder."""


@dataclass(frozen=True)
class Rendered:
    """A report as it is written."""

    # every file by its path, HTML but for report.md, stylesheet and script.
    pages: Mapping[str, str]
    # what went wrong, by the name of the section, or by what was to be shown
    failed: Mapping[str, Exception]


def render(
    results: Results,
    figures: Figures,
    sections: Sequence[Section] | None = None,
    made: Mapping[str, Any] | None = None,
    executor: Executor | None = None,
) -> Rendered:
    """Return all pages.

    ``figures``: from `dpaudit.reports.writer.draw_figures`. ``sections``: all by
    default. ``made``: when, by what and on what; by default `made_now`. ``executor``:
    where to draw the pictures of topics; by default here.
    """
    chosen = all_sections().values() if sections is None else sections
    looked = [SectionContent(results, section) for section in chosen]
    shown = [each for each in looked if each.there]
    remarks: dict[str, list[str]] = {}
    for each in shown:
        for name, sentences in each.remarks.items():
            remarks.setdefault(name, []).extend(sentences)
    own = [each.section for each in shown]
    standings = mechanisms.standings(results, own, remarks)
    rows = [row for each in standings.values() for row in each.audits]
    elsewhere = [topic for each in shown for topic in each.pages]
    facts = [fact for each in shown for fact in each.facts]
    about = experiments.pages(results)
    topics = [
        *mechanisms.pages(results, standings, facts, elsewhere),
        *about,
        *elsewhere,
    ]
    listed = {name: [each for each in topics if each.folder == name] for name in KINDS}
    kinds = {name: some for name, some in listed.items() if some}
    titles = [(each.section.name, each.section.title) for each in shown]
    frame = Frame(
        {
            "profile": results.profile,
            "seed": results.seed,
            "made": made or made_now(),
            "menu": [(f"sections/{name}.html", title) for name, title in titles],
            "kinds": {name: KINDS[name].heading for name in kinds},
            "options": "".join(f" --section {s.name}" for s in sections or ()),
        },
        topics,
    )
    drawn = Drawn({t.name: t.draw for t in topics if t.draw is not None}, executor)
    for topic in topics:  # the others draw meanwhile
        frame.add_topic(topic, drawn)
    parts = {each.section.name: each.parts(frame, figures) for each in shown}
    title = first.headline(standings)
    frame.add(
        INDEX,
        "first.html.j2",
        title,
        counted={name: len(some) for name, some in kinds.items()},
        sections=own,
        **first.context(standings, facts, frame.shared["paths"]),
    )
    for each in shown:
        name = each.section.name
        frame.add(
            f"sections/{name}.html",
            "section.html.j2",
            each.section.title,
            shown=each,
            parts=parts[name],
            audits=[row for row in rows if row.section == name],
            experiments=[topic for topic in about if topic.group == each.section.title],
            declared=results.experiments,
        )
    for name, some in kinds.items():
        path, kind = f"{name}/{INDEX}", KINDS[name]
        if name != mechanisms.FOLDER:  # the first page lists those
            frame.add(path, "kind.html.j2", kind.heading, kind=kind, topics=some)
    frame.add("glossary.html", "glossary.html.j2", "Glossary", glossary=GLOSSARY)
    markdown = [part for each in shown for part in each.in_markdown(frame)]
    frame.pages["report.md"] = frame.filled(
        "page.md.j2",
        headline=title,
        answer=[sentence for each in shown for sentence in each.answer],
        parts=sorted(markdown, key=lambda each: each.part.place),
        experiments=[
            name
            for name, found in results.tables.items()
            if isinstance(found, DataFrame)
        ],
        # What repeats what was refuted, and tests the witnesses.
        commands=[row.command for row in rows if row.refuted]
        + [row.verify for row in rows if row.witness_file],
    )
    files = {
        **frame.pages,
        "assets/style.css": stylesheet(*STYLES),
        "assets/site.js": (TEMPLATES[0] / "site.js").read_text(encoding="utf-8"),
    }
    failed = {e.section.name: e.failed for e in looked if e.failed is not None}
    return Rendered(files, {**frame.failed, **failed})
