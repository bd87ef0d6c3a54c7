"""What one section has to show on the site, or why it has not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dpaudit.printable import said
from dpaudit.reports.escaping import Safe
from dpaudit.reports.page import Figures, in_both_widths
from dpaudit.reports.sections import Fact, Leaf, Part, Results, Section
from dpaudit.reports.site.frame import Frame
from dpaudit.reports.templates import TEMPLATES

__all__ = ["Shown"]


@dataclass(frozen=True)
class ShownPart:
    """A part of a section, filled in; or in its place the error, in words."""

    part: Part
    body: Safe
    error: str = ""


class Shown:
    """All that a section says of results, each thing by itself.

    Parameters
    ----------
    results : Results
    section : Section

    Attributes
    ----------
    failed : Exception or None
        The first thing that went wrong; the others stand.
    there : bool
        Whether it has anything to show.
    answer, best : list of str
    remarks : mapping of str to list of str
    facts : list of Fact
    leaves : list of Leaf
    """

    def __init__(self, results: Results, section: Section) -> None:
        self.results, self.section = results, section
        self.failed: Exception | None = None
        self._context = self._attempt(section.context, None)
        self.there = self._context is not None or self.failed is not None
        self._why = self.failed
        self.answer: list[str] = self._attempt(section.answer, [])
        self.best: list[str] = self._attempt(section.best, [])
        self.remarks: Mapping[str, list[str]] = self._attempt(section.remarks, {})
        self.facts: list[Fact] = self._attempt(section.facts, [])
        self.leaves: list[Leaf] = self._attempt(section.pages, [])

    def _attempt(self, what: Callable[[Results], Any], otherwise: Any) -> Any:
        try:
            return what(self.results)
        except Exception as error:
            self.failed = self.failed or error
            return otherwise

    def parts(self, frame: Frame, figures: Figures) -> list[ShownPart]:
        """Return the parts of its page, in their order."""
        return [
            self._filled(part, f"{part.name}.html.j2", frame, figures)
            for part in sorted(self.section.parts, key=lambda each: each.place)
        ]

    def in_markdown(self, frame: Frame) -> list[ShownPart]:
        """Return those parts that can do without figures, in Markdown."""
        names = [(part, f"{part.name}.md.j2") for part in self.section.parts]
        folders = [root / self.section.name for root in TEMPLATES]
        return [
            self._filled(part, name, frame, {})
            for part, name in names
            if any((folder / name).is_file() for folder in folders)
        ]

    def _filled(
        self, part: Part, template: str, frame: Frame, figures: Figures
    ) -> ShownPart:
        own = {
            "root": "../",
            "size": self.section.sizes.get(self.results.profile),
            "figure": lambda name: in_both_widths(figures[name]),
        }
        try:
            if self._why is not None:
                raise self._why
            body = frame.filled(
                f"{self.section.name}/{template}", **own, **self._context
            )
        except Exception as error:
            self.failed = self.failed or error
            return ShownPart(part, Safe(), said(error))
        return ShownPart(part, body)
