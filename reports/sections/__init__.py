"""The sections of the report: a folder each, which holds all that belongs to it.

A folder has a file ``experiments.toml``, whose ``[section]`` has the fields of a
`Section`, and which declares what it runs (`dpaudit.reports.experiment`); a module
``section`` with functions that say what there is to say, by names that `Section` lists;
a template ``PART.html.j2`` (and ``PART.md.j2``) for each part of the page; and
``sentences.j2``, what may be concluded (`dpaudit.reports.words`). Beside that, what it
needs of ``measures`` (what is measured, by workers), ``figures`` (tables
in, SVG out) and ``findings`` (tables in, words and rows that are ready to print out);
what is short stands in ``section`` itself. The folders are found by themselves, and so
are their figures: the page, the command line and the check know none by name.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace
from typing import Any, TypeVar

import pandas as pd

from dpaudit.profiles import PROFILES
from dpaudit.reports.experiment import Experiment, declarations, experiment_of
from dpaudit.validation import check_count, check_name

__all__ = ["all_sections", "plan", "sizes"]

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Results(Mapping[str, pd.DataFrame]):
    """Everything that the page is made of; a mapping of experiments to their tables."""

    profile: str
    seed: int
    experiments: Mapping[str, Experiment]  # by name
    # by the name of the experiment; an exception where it failed
    tables: Mapping[str, pd.DataFrame | Exception]
    # what sections have found beside the report, see `Section`
    beside: Mapping[str, Any] = field(default_factory=dict)
    _found: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __getitem__(self, name: str) -> pd.DataFrame:
        """Return the table of an experiment, or raise what it raised."""
        table = self.tables[name]
        if isinstance(table, Exception):
            raise table
        return table

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def once(self, find: Callable[["Results"], Found]) -> Found:
        """Return what a function finds in the results; it is called once."""
        if find not in self._found:
            self._found[find] = find(self)
        found: Found = self._found[find]
        return found

    def options(self, name: str) -> Mapping[str, Any]:
        return self.experiments[name].options


class Size(SimpleNamespace):
    """How much a section runs: of what, it says where it declares its sizes."""


def sizes(**parts: Sequence[Any]) -> dict[str, Size]:
    """Return the size of each of `PROFILES`, given each part of it in all of them.

    >>> sizes(streams=(4, 60, 120))["standard"]
    Size(streams=60)
    """
    each = zip(*parts.values(), strict=True)
    found = [Size(**dict(zip(parts, values, strict=True))) for values in each]
    return dict(zip(PROFILES, found, strict=True))


@dataclass(frozen=True)
class PagePart:
    """A part of the page with a heading of its own."""

    name: str  # its id on the page, and the name of its templates
    heading: str
    place: int  # parts are on the page in this order


@dataclass(frozen=True)
class TopicPage:
    """A page about one thing, which belongs to no section alone, or a part of one."""

    folder: str  # what kind of thing: the folder of the page
    name: str  # of the thing, as it is printed
    template: str
    # makes what the template says; an error is shown on the page
    context: Callable[[], Mapping[str, Any]]
    # draws its picture in both widths, wherever pictures are drawn; None for no picture
    draw: Callable[[], Sequence[str]] | None = None
    group: str = ""  # what it belongs to: a family, a paper, a section
    line: str = ""  # what it is, in one line
    verdict: str = ""  # in words; empty if there is none
    refuted: bool = False  # whether the verdict is red
    mechanisms: tuple[str, ...] = ()  # those that it is about, too
    # the name of the page's file, without its ending; made from the name by default
    file: str = ""


@dataclass(frozen=True)
class Fact:
    """What a section has measured of a mechanism, in words: utility or cost."""

    mechanism: str
    what: str
    value: str
    column: str = ""  # of the table on the first page that has it: "cost"
    size: float = 0.0  # by which that column is sorted


# What a section may have in its module, and what stands for it.
_HOOKS: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(("programmed", "answer", "facts", "pages"), list),
    **dict.fromkeys(("context", "tables", "files", "remarks"), dict),
    "beside": lambda: None,
}


@dataclass(frozen=True)
class Section:
    """One subject of the report, as its folder declares it.

    What it says are functions of its module, found by their names, each of which may be
    missing. From the results:

    - ``context``: what the templates say; None topics all parts out.
    - ``answer``: what was found, the most important first. A list of sentences.
    - ``remarks``: what is known of claims beside their verdicts: sentences, by the name
      of the mechanism. ``facts``: a `Fact` for each thing measured of a mechanism.
    - ``pages``: a `TopicPage` for each page of its own.
    - ``tables``, ``files``: tables and texts that are written beside the experiments',
      by their names.

    From a size, ``programmed``: experiments beside those that are declared. And
    ``beside``, from the folder in which that of the report is to what another
    command has left there; it raises `~dpaudit.errors.InputError` if that cannot be
    read.
    """

    name: str  # that of its folder, and of its page
    title: str  # of the page
    parts: tuple[PagePart, ...]
    uses: Sequence[str] = ()  # other sections whose tables it reads
    # experiments whose tables hold verdicts on mechanisms of the catalogue, as
    # `~dpaudit.reports.measures.audited_privacy` returns them.
    audits: Sequence[str] = ()
    optional: bool = False  # whether a page without it is whole

    @property
    def _module(self) -> Any:
        return import_module(f"{__name__}.{self.name}.section")

    @property
    def notes(self) -> Mapping[tuple[str, ...], Callable[..., list[str]]]:
        """What is concluded from the tables of some experiments alone: sentences.

        ``NOTES`` of its module, by the names of the experiments.
        """
        return getattr(self._module, "NOTES", {})

    @cached_property
    def sizes(self) -> dict[str, Size]:
        """How much it runs in each profile."""
        found = _declared(self.name).get("sizes")
        return sizes(**found) if found else {}

    def experiments(self, size: Size) -> list[Experiment]:
        """Return its experiments at a size; `plan` gives them their seed."""
        declared = _declared(self.name).get("experiment", ())
        return [*(experiment_of(e, size) for e in declared), *self.programmed(size)]

    def __getattr__(self, hook: str) -> Callable[..., Any]:
        if hook not in _HOOKS:
            raise AttributeError(f"a section has no {hook}")

        def nothing(*_: Any) -> Any:
            return _HOOKS[hook]()

        found = getattr(self._module, hook, None)
        return found if callable(found) else nothing  # a module may have the name

    @property
    def figures(self) -> dict[str, Callable[..., str]]:
        """What its modules draw (`dpaudit.reports.plots.picture`), by name."""
        from dpaudit.reports.plots import PICTURES  # workers draw nothing

        folder = import_module(f"{__name__}.{self.name}")
        for each in iter_modules(folder.__path__):
            import_module(f"{folder.__name__}.{each.name}")
        return PICTURES[folder.__name__]


def _declared(name: str) -> dict[str, Any]:
    return declarations(Path(__file__).parent / name / "experiments.toml")


@cache
def all_sections() -> dict[str, Section]:
    """Return every section by its name, in the order of the page."""
    found = []
    for name in (each.name for each in iter_modules(__path__) if each.ispkg):
        told = _declared(name)["section"]
        parts = tuple(PagePart(**each) for each in told["parts"])
        found.append(Section(name, **{**told, "parts": parts}))
    found.sort(key=lambda section: min(part.place for part in section.parts))
    return {section.name: section for section in found}


def chosen_sections(names: Sequence[str] = ()) -> list[Section]:
    """Return the sections of these names, or all if there are none."""
    everything = all_sections()
    for name in names:
        check_name("section", name, tuple(everything))
    return [each for each in everything.values() if not names or each.name in names]


def plan(
    profile: str, seed: int, sections: list[Section] | None = None
) -> dict[str, Experiment]:
    """Return the experiments of sections, and of those that they use, by name.

    ``profile``: one of `PROFILES`. ``seed``: >= 0; every random number of the report
    derives from it. ``sections``: all by default.
    """
    check_name("profile", profile, PROFILES)
    check_count("seed", seed, minimum=0)
    everything = all_sections()
    needed = {each.name for each in sections or everything.values()}
    while more := {u for name in needed for u in everything[name].uses} - needed:
        needed |= more
    return {
        experiment.name: replace(experiment, seed=seed)
        for section in everything.values()
        if section.name in needed
        for experiment in section.experiments(section.sizes.get(profile, Size()))
    }
