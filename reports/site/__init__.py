"""The report as a site: a first page, a page for each section, and one for each thing.

``index.html`` says what was found. Beside it are a page for each section
(`dpaudit.reports.sections`), which the site knows none by name, and pages about single
things: mechanisms, experiments, and what sections have pages for, such as theorems. No
page fetches anything from elsewhere. A section that fails, because an experiment of it
has or because its table cannot be put into words or pictures, is shown as failed with
its error, and the others stand.

Templates hold the words that are always true. Whatever a template is given is taken for
text and escaped (`dpaudit.reports.escaping`), but for what is `Safe`: stylesheets,
figures, docstrings of this project, and the tables of the bench, all made here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit.printable import said
from dpaudit.reports.escaping import Safe
from dpaudit.reports.glossary import GLOSSARY
from dpaudit.reports.page import Figures, in_both_widths, stylesheet
from dpaudit.reports.sections import Leaf, Results, Section, all_sections
from dpaudit.reports.site import experiments, mechanisms, overview
from dpaudit.reports.site.frame import Frame, Made, made_now
from dpaudit.reports.templates import TEMPLATES

__all__ = ["INDEX", "KINDS", "Made", "Site", "made_now", "render"]

INDEX = "index.html"


@dataclass(frozen=True)
class Kind:
    """Things that have a page each, in a folder of their own.

    Parameters
    ----------
    heading, about : str
        Of the page that lists them.
    columns : tuple of str
        Of its table: the thing, what it belongs to, and the verdict.
    """

    heading: str
    about: str
    columns: tuple[str, str, str]


KINDS = {
    "mechanisms": Kind(
        "Mechanisms",
        "Every mechanism that dpaudit knows. Of a claim that was not audited here, "
        "nothing is said.",
        ("Mechanism", "Family", "Verdict"),
    ),
    "experiments": Kind(
        "Experiments",
        "Every experiment behind this report, each with its numbers and the command "
        "that repeats it.",
        ("Experiment", "Section", "Size"),
    ),
    "theorems": Kind(
        "Theorems",
        "Theorems of which exponents, bounds or probabilities were measured.",
        ("Theorem", "Paper", "Verdict"),
    ),
    "libraries": Kind(
        "Libraries",
        "Libraries whose mechanisms and models were audited.",
        ("Library", "Version", "Verdict"),
    ),
}
"""By the name of the folder."""


@dataclass(frozen=True)
class Site:
    """A report as it is written.

    Parameters
    ----------
    pages : mapping of str to str
        Every file by its path, HTML but for ``report.md``, stylesheet and script.
    failed : mapping of str to Exception
        What went wrong, by the name of the section, or by what was to be shown.
    """

    pages: Mapping[str, str]
    failed: Mapping[str, Exception]


def render(
    results: Results,
    figures: Figures,
    sections: Sequence[Section] | None = None,
    made: Made | None = None,
) -> Site:
    """Return all pages.

    Parameters
    ----------
    results : Results
    figures : mapping of str to sequence of str
        From `dpaudit.reports.page.draw_figures`.
    sections : sequence of Section, optional
        All by default.
    made : Made, optional
        By default now, here.
    """
    chosen = list(all_sections().values()) if sections is None else list(sections)
    failed: dict[str, Exception] = {}

    def attempt(section: Section, what: Callable[[Results], Any]) -> Any:
        try:
            return what(results)
        except Exception as error:
            failed.setdefault(section.name, error)
            return error

    def gathered(what: str) -> dict[str, list[Any]]:
        found = {each.name: attempt(each, getattr(each, what)) for each in chosen}
        return {name: some for name, some in found.items() if isinstance(some, list)}

    contexts = {each.name: attempt(each, each.context) for each in chosen}
    shown = [each for each in chosen if contexts[each.name] is not None]
    standings = mechanisms.standings(results, chosen)
    elsewhere = [leaf for some in gathered("pages").values() for leaf in some]
    facts = [fact for some in gathered("facts").values() for fact in some]
    about = experiments.leaves(results)
    leaves = [
        *mechanisms.leaves(results, standings, facts, elsewhere),
        *about,
        *elsewhere,
    ]
    answers = gathered("answer")
    found = {name: [leaf for leaf in leaves if leaf.folder == name] for name in KINDS}
    kinds = {name: some for name, some in found.items() if some}
    frame = Frame(
        {
            "profile": results.profile,
            "seed": results.seed,
            "made": made or made_now(),
            "menu": [(f"sections/{each.name}.html", each.title) for each in shown],
            "kinds": {name: KINDS[name].heading for name in kinds},
            "glossary": GLOSSARY,
            "options": "".join(f" --section {s.name}" for s in sections or ()),
            "standings": standings,
        },
        leaves,
    )
    parts = _parts(results, figures, frame, shown, contexts, failed)
    title = overview.headline(standings)
    best = [text for some in gathered("best").values() for text in some]
    frame.add(
        INDEX,
        "overview.html.j2",
        title,
        figure=lambda name: in_both_widths(figures[name]) if name in figures else "",
        parts=parts,
        counted={name: len(some) for name, some in kinds.items()},
        **overview.context(results, shown, standings, answers, best),
    )
    for section in shown:
        frame.add(
            f"sections/{section.name}.html",
            "section.html.j2",
            section.title,
            section=section,
            answer=answers.get(section.name, []),
            parts=parts[section.name],
            audits=[
                row
                for each in standings.values()
                for row in each.audits
                if row.section == section.name
            ],
            experiments=[leaf for leaf in about if leaf.group == section.title],
            declared=results.experiments,
            error=said(failed[section.name]) if section.name in failed else "",
        )
    for name, some in kinds.items():
        path, kind = f"{name}/{INDEX}", KINDS[name]
        frame.add(path, "kind.html.j2", kind.heading, kind=kind, leaves=some)
    for leaf in leaves:
        frame.add_leaf(leaf)
    frame.add("glossary.html", "glossary.html.j2", "Glossary")
    files = {
        **frame.pages,
        "report.md": _markdown(results, frame, shown, contexts, title, answers),
        "assets/style.css": stylesheet("colours.css", "style.css"),
        "assets/site.js": (TEMPLATES[0] / "site.js").read_text(encoding="utf-8"),
    }
    return Site(files, {**frame.failed, **failed})


Part = dict[str, Any]


def _parts(
    results: Results,
    figures: Figures,
    frame: Frame,
    sections: Sequence[Section],
    contexts: Mapping[str, Any],
    failed: dict[str, Exception],
) -> dict[str, list[Part]]:
    """Return the parts of every section's page: name, heading, body and error."""
    found: dict[str, list[Part]] = {}
    for section in sections:
        own: list[Part] = []
        for part in sorted(section.parts, key=lambda each: each.place):
            said_instead, body = "", Safe()
            try:
                body = Safe(
                    _filled(results, frame, section, f"{part.name}.html.j2", contexts, figures)
                )
            except Exception as error:
                failed.setdefault(section.name, error)
                said_instead = said(error)
            own.append(
                {"name": part.name, "heading": part.heading, "body": body, "error": said_instead}
            )
        found[section.name] = own
    return found


def _filled(
    results: Results,
    frame: Frame,
    section: Section,
    template: str,
    contexts: Mapping[str, Any],
    figures: Figures,
) -> str:
    context = contexts[section.name]
    if isinstance(context, Exception):
        raise context
    chosen = frame.markdown if ".md." in template else frame.html
    return chosen.get_template(f"{section.name}/{template}").render(
        {
            **frame.shared,
            "root": "../",
            "size": section.sizes.get(results.profile),
            "figure": lambda name: in_both_widths(figures[name]),
            **context,
        }
    )


def _markdown(
    results: Results,
    frame: Frame,
    sections: Sequence[Section],
    contexts: Mapping[str, Any],
    title: str,
    answers: Mapping[str, Sequence[str]],
) -> str:
    """Return the report without figures, on one page."""
    shown = []
    for section in sections:
        for part in section.parts:
            template = f"{part.name}.md.j2"
            path = f"{section.name}/{template}"
            if not any((root / path).is_file() for root in TEMPLATES):
                continue
            try:
                body = _filled(results, frame, section, template, contexts, {})
                shown.append((part, Safe(body), ""))
            except Exception as error:
                shown.append((part, Safe(), said(error)))
    shown.sort(key=lambda each: each[0].place)
    return frame.markdown.get_template("page.md.j2").render(
        {
            **frame.shared,
            "headline": title,
            "answer": [text for some in answers.values() for text in some],
            "parts": shown,
            "experiments": [
                name
                for name, table in results.tables.items()
                if not isinstance(table, Exception)
            ],
            "commands": _commands(frame.shared["standings"]),
            "versions": frame.shared["made"].versions,
        }
    )


def _commands(standings: Mapping[str, mechanisms.Standing]) -> list[str]:
    """Return the commands that repeat what was refuted, and test the witnesses."""
    rows = [row for each in standings.values() for row in each.audits]
    return [
        *(row.command for row in rows if row.refuted),
        *(f"dpaudit verify {row.witness_file}" for row in rows if row.witness_file),
    ]
