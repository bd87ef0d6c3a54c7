"""What every page needs: templates and what they may use, figures, style, versions.

All that a template is given is taken for text and escaped (`dpaudit.reports.escaping`),
but for what is `Safe`. A page by itself (`render_one`) is one HTML file that refers to
no other; those of the report are `dpaudit.reports.site`.

`GLOSSARY` has the words of the field, and ours, in the order in which a newcomer meets
them: a sentence uses no word before the list has said what it means. They stand in
``site/glossary.txt``, a paragraph each; the report and `docs/glossary.md` show them.
"""

import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dpaudit import __version__
from dpaudit.atomic import replacing
from dpaudit.audit import AuditResult, Verdict
from dpaudit.reports import words
from dpaudit.reports.escaping import Safe, markdown, plain
from dpaudit.reports.svg import element, standalone, with_classes

__all__ = ["write_page"]

_ROOT = Path(__file__).parent
TEMPLATES = (_ROOT / "site", _ROOT / "sections")
"""The folders of templates."""

Figures: TypeAlias = Mapping[str, Sequence[str] | Exception]
"""Every figure by its name: the SVG for wide screens, then that for phones."""


class Drawn(Figures):
    """Figures that are drawn where an executor works, or here when they are needed.

    ``calls``: what draws each, by its name. In place of a figure that fails is why.
    """

    def __init__(
        self,
        calls: Mapping[str, Callable[[], Sequence[str]]],
        executor: Executor | None = None,
    ) -> None:
        self._calls = calls
        self._begun: dict[str, Future[Sequence[str]]] = {}
        if executor is not None:
            with suppress(RuntimeError):  # it is broken, or shut down
                for name, call in calls.items():
                    self._begun[name] = executor.submit(call)
        self._done: dict[str, Sequence[str] | Exception] = {}

    def __getitem__(self, name: str) -> Sequence[str] | Exception:
        call = self._calls[name]
        if name not in self._done:
            with suppress(Exception):  # not begun, does not travel, fails, is lost
                self._done[name] = self._begun.pop(name).result()
        if name not in self._done:
            try:
                self._done[name] = call()
            except Exception as error:
                self._done[name] = error
        return self._done[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)


STYLES = ("colours.css", "style.css", "figures.css")
"""The stylesheets of every page."""

_PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "dp-accounting")


def environment(escape: Callable[[str], str], **options: Any) -> Environment:
    """Return where templates are filled in, given how text is escaped."""

    def finalize(value: object) -> object:
        # Numbers stay what they are, and so does what was made here.
        if isinstance(value, str) and not hasattr(value, "__html__"):
            return escape(value)
        return value

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=finalize,
        **options,
    )
    made.filters["strong"] = lambda text: Safe(f"**{markdown(text)}**")
    made.filters["glue"] = _glue
    made.filters |= words.FORMS
    return made


def _glue(text: str) -> str:
    """Keep formulas and percentages on one line."""
    text = re.sub(
        r"([εδ]) ([=≤≥]) ", "\\1\N{NO-BREAK SPACE}\\2\N{NO-BREAK SPACE}", text
    )
    return re.sub(r" (%|× 10)", "\N{NO-BREAK SPACE}\\1", text)


def render_pictures(figures: Figures) -> dict[str, str]:
    """Return figures as SVG files of their own, for use outside the page."""
    colours = stylesheet("colours.css")
    return {
        name: standalone(drawn[0], colours)
        for name, drawn in figures.items()
        if not isinstance(drawn, Exception)
    }


def render_one(template: str, context: Mapping[str, Any]) -> str:
    """Return a page of its own, from one template beside that of the report.

    ``context``: what it says; the stylesheet, the versions and the figures are there
    besides.
    """
    base = {
        "style": stylesheet(*STYLES),
        "versions": versions(),
        "figure": in_both_widths,
    }
    escaped = environment(plain, autoescape=True)
    return escaped.get_template(template).render({**base, **context})


def versions() -> dict[str, str]:
    """Return the versions of what pages are made with."""
    return {
        "Python": platform.python_version(),
        "dpaudit": __version__,
        **{package: version(package) for package in _PACKAGES},
    }


def in_both_widths(drawn: Sequence[str] | Exception) -> Safe:
    """Return a figure for wide screens and for phones, or raise what drawing raised.

    What both say stands in the first alone. There the second has its name from, and
    texts of marks by their numbers (``data-as``), which the script of the site reads.
    """
    if isinstance(drawn, Exception):
        raise drawn
    wide, end, narrow = with_classes("".join(drawn)).partition("</svg>")
    told = {text: str(i) for i, text in enumerate(_TOLD.findall(wide))}

    def short(mark: re.Match[str]) -> str:
        number = told.get(mark[1])
        return mark[0] if number is None else f' data-as="{number}"/>'

    narrow = _TOLD.sub(short, narrow)
    if _NAMED.findall(wide) == _NAMED.findall(narrow):
        narrow = _NAMED.sub("", narrow, count=1).replace("-narrow-", "-wide-")
    wide += end
    return Safe(f'<div class="wide">{wide}</div>\n<div class="narrow">{narrow}</div>\n')


_TOLD = re.compile(r"><title>([^<]*)</title></(?:circle|rect)>")
_NAMED = re.compile(r'<title id="[^"]*">([^<]*)</title><desc id="[^"]*">([^<]*)</desc>')


def stylesheet(*names: str) -> Safe:
    """Return stylesheets of the site, one after the other."""
    return Safe("".join((TEMPLATES[0] / n).read_text(encoding="utf-8") for n in names))


_TEXT = (Path(__file__).parent / "site" / "glossary.txt").read_text(encoding="utf-8")
GLOSSARY = dict(
    " ".join(each.split()).split(": ", maxsplit=1) for each in _TEXT.split("\n\n")
)


def page_of(results: Sequence[Any]) -> str:
    """Return an audit as a page: what it says, its picture, and what repeats it.

    ``results``: each an AuditResult or ReplayResult, of one claim, in the order in
    which they came; the last decides, and stands first.
    """
    told = [
        {
            "headline": str(each).partition("\n")[0],
            "rows": each.rows(),
            "picture": _picture(each),
        }
        for each in reversed(results)
    ]
    last = results[-1]
    context = {
        "name": last.name,
        "refuted": last.refuted,
        "founded": last.verdict != Verdict.NO_VERDICT,
        "verdict": last.verdict.replace("_", " "),
        "results": told,
        "seed": last.seed,
    }
    return render_one("audit.html.j2", context)


def _picture(result: Any) -> Safe | None:
    """Return what an audit by sampling shows; None if nothing follows from it."""
    if not isinstance(result, AuditResult) or result.verdict is Verdict.NO_VERDICT:
        return None
    return Safe(element(result.plot()))


def write_page(results: Sequence[Any], path: Path) -> None:
    """Write the page of `page_of`.

    Raises `InputError` if it cannot be written.
    """
    with replacing(path) as new:
        new.write_text(page_of(results), encoding="utf-8", errors="replace")
