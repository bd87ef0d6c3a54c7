"""The page: one self-contained HTML file, and the same in Markdown without figures.

The templates in ``templates/`` hold the words that are always true; whatever depends
on the results comes from `dpaudit.reports.findings`. Whatever a template is given is
taken for text and escaped (`dpaudit.reports.escaping`), but for what is `Safe`: the
stylesheet, the figures, and the tables of the bench, all made here.
"""

import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dpaudit import __version__
from dpaudit.reports import (
    curves,
    figures,
    findings,
    formats,
    rate_figures,
    rate_findings,
    tables,
)
from dpaudit.reports.bench import page as bench_page
from dpaudit.reports.bench.summary import Summary
from dpaudit.reports.comparison import Comparison
from dpaudit.reports.escaping import Safe, markdown, plain
from dpaudit.reports.experiment import Experiment
from dpaudit.reports.lower_bounds_section import (
    lower_bounds_context,
    lower_bounds_figures_of,
)
from dpaudit.reports.profiles import Profile
from dpaudit.reports.rates import BATCHES, rates
from dpaudit.reports.recovery_section import recovery_context, recovery_figures_of
from dpaudit.reports.svg import standalone

__all__ = [
    "FIGURES",
    "SECTIONS",
    "Figures",
    "Results",
    "draw_figures",
    "render_html",
    "render_markdown",
    "render_pictures",
]

SECTIONS = {
    "answer": "What this report says",
    "verdicts": "Verdicts",
    "privacy-wall": "The privacy wall",
    "captured-variance": "What privacy costs",
    "components": "Ten components at a glance",
    "run-time": "Run time",
    "streaming": "Streaming",
    "robust": "Robust PCA",
    "online": "Online PCA",
    "tracing": "Tracing",
    "libraries": "Beside other libraries",
    "textbook-suite": "Textbook suite",
    "how-to-read": "How to read this",
    "reproduce": "Reproduce",
}
"""Every section of the page: its id and its heading."""

FIGURES = (
    "privacy-wall",
    "captured-variance",
    "run-time",
    "streaming-rates",
    "signal-in-noise",
    "robust-recovery",
    "robust-phases",
    "genotypes",
    "online-regret",
    "regret-optimum",
    "tracing",
)
"""Every figure of the page; its id starts with ``figure-``."""

Figures: TypeAlias = Mapping[str, Sequence[str]]
"""Every figure by its name: the SVG for wide screens, then that for phones."""

_TEMPLATES = Path(__file__).parent / "templates"
_PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "dp-accounting")


@dataclass(frozen=True)
class Results:
    """Everything that the page is made of.

    Parameters
    ----------
    profile : Profile
    seed : int
    experiments : tuple of Experiment
    tables : mapping of str to pandas.DataFrame
        By the name of the experiment.
    data : mapping of str to object
        What the utility experiments ran on: ``source``, ``n``, ``d``.
    bench : Summary, optional
        What ``dpaudit bench-audit`` found; None if it has not been run.
    comparison : Comparison, optional
        What ``make third-party`` found; None if it has not been run.
    """

    profile: Profile
    seed: int
    experiments: tuple[Experiment, ...]
    tables: Mapping[str, pd.DataFrame]
    data: Mapping[str, Any]
    bench: Summary | None = None
    comparison: Comparison | None = None


def render_html(results: Results, figures: Figures) -> str:
    """Return the whole page; it refers to no other resource.

    Parameters
    ----------
    results : Results
    figures : mapping of str to sequence of str
        From `draw_figures`.
    """
    context = _context(results)
    context["style"] = Safe(_stylesheet("colours.css") + _stylesheet("style.css"))
    context["figures"] = {
        name: [Safe(svg) for svg in drawn] for name, drawn in figures.items()
    }
    if results.bench is not None:
        context["bench"] = Safe(bench_page.render_html(results.bench))
    environment = _environment(autoescape=True, finalize=_if_text(plain))
    return environment.get_template("report.html.j2").render(context)


def render_markdown(results: Results) -> str:
    """Return the report as Markdown, tables instead of figures."""
    context = _context(results)
    if results.bench is not None:
        context["bench"] = Safe(bench_page.render_markdown(results.bench))
    environment = _environment(finalize=_if_text(markdown))
    return environment.get_template("report.md.j2").render(context)


def render_pictures(figures: Figures) -> dict[str, str]:
    """Return figures as SVG files of their own, for use outside the page."""
    colours = _stylesheet("colours.css")
    return {name: standalone(wide, colours) for name, (wide, _) in figures.items()}


def _stylesheet(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _environment(**options: Any) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )
    environment.filters["strong"] = lambda text: Safe(f"**{markdown(text)}**")
    environment.filters["glue"] = _glue
    environment.filters["count"] = formats.count
    environment.filters["setting"] = formats.setting
    environment.filters["delta"] = formats.delta
    return environment


def _if_text(escape: Callable[[str], str]) -> Callable[[object], object]:
    """Return what is done with a value on its way into a template.

    Numbers stay what they are, and so does what was made here.
    """

    def finalize(value: object) -> object:
        if isinstance(value, str) and not hasattr(value, "__html__"):
            return escape(value)
        return value

    return finalize


def _glue(text: str) -> str:
    """Keep formulas and percentages on one line."""
    text = re.sub(
        r"([εδ]) ([=≤≥]) ", "\\1\N{NO-BREAK SPACE}\\2\N{NO-BREAK SPACE}", text
    )
    return re.sub(r" (%|× 10)", "\N{NO-BREAK SPACE}\\1", text)


def _context(results: Results) -> dict[str, Any]:
    found = results.tables
    wall, exact = found["privacy-wall"], found["exact-privacy"]
    variance, references = found["captured-variance"], found["variance-references"]
    by_name = {experiment.name: experiment for experiment in results.experiments}
    audited = tables.records(wall)
    rows = tables.verdict_rows(wall)
    exponents = rates(found)
    return {
        "sections": SECTIONS,
        "bench": None,
        "profile": results.profile,
        "seed": results.seed,
        "experiments": results.experiments,
        "data": {**results.data, **by_name["captured-variance"].options},
        "confidence": audited[0]["confidence"],
        "headline": findings.headline(wall),
        "answer": findings.answer(wall, exact, variance),
        "wall_notes": findings.wall_notes(wall),
        "verdicts": rows,
        "witness_files": [row.witness_file for row in rows if row.witness_file],
        "rarest_event": max(row["rarest_event"] for row in audited),
        "claimed_epsilon": audited[0]["claimed_epsilon"],
        "variance_notes": findings.variance_notes(variance, exact, references),
        "components": tables.component_rows(found["components"], wall),
        "times": tables.time_rows(found["run-time"]),
        "streaming": {
            "dimensions": by_name["streaming-dimensions"].options,
            "signal": by_name["signal-in-noise"].options,
            "batches": BATCHES,
            "rows": rate_findings.rate_rows(exponents),
            "size_notes": rate_findings.size_notes(exponents),
            "miss_notes": rate_findings.miss_notes(exponents),
            "signal_notes": rate_findings.signal_notes(exponents),
        },
        "robust": recovery_context(found, by_name),
        **lower_bounds_context(found, by_name),
        "comparison": results.comparison,
        "settings": tables.settings_of(results.comparison),
        "libraries": tables.library_rows(results.comparison),
        "suite": tables.suite_rows(found["textbook-suite"]),
        "suite_notes": findings.suite_notes(found["textbook-suite"]),
        "versions": {
            "Python": platform.python_version(),
            "dpaudit": __version__,
            **{package: version(package) for package in _PACKAGES},
        },
    }


def draw_figures(results: Results) -> Figures:
    """Return the figures of the page."""
    found = results.tables
    by_name = {experiment.name: experiment for experiment in results.experiments}
    wall = found["privacy-wall"]
    refuted = findings.refuted_mechanisms(wall)
    exponents = rates(found)
    return {
        "privacy-wall": [figures.privacy_wall(wall, narrow=n) for n in (False, True)],
        "captured-variance": [
            curves.captured_variance(
                found["captured-variance"],
                found["exact-privacy"],
                found["variance-references"],
                refuted=refuted,
                narrow=n,
            )
            for n in (False, True)
        ],
        "run-time": [
            figures.run_time(found["run-time"], narrow=n) for n in (False, True)
        ],
        "streaming-rates": [
            rate_figures.error_by_size(exponents, narrow=n) for n in (False, True)
        ],
        "signal-in-noise": [
            rate_figures.error_by_spread(exponents, narrow=n) for n in (False, True)
        ],
        **recovery_figures_of(found),
        **lower_bounds_figures_of(found, by_name),
    }
