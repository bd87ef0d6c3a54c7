"""The page: one self-contained HTML file, and the same in Markdown without figures.

The templates in ``templates/`` hold the words that are always true; whatever depends
on the results comes from `dpaudit.reports.findings`.
"""

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

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
from dpaudit.reports.comparison import Comparison
from dpaudit.reports.experiments import Experiment, Profile
from dpaudit.reports.lower_bounds_section import (
    lower_bounds_context,
    lower_bounds_figures_of,
)
from dpaudit.reports.rates import BATCHES, rates
from dpaudit.reports.recovery_section import recovery_context, recovery_figures_of
from dpaudit.reports.svg import standalone

__all__ = [
    "FIGURES",
    "SECTIONS",
    "Results",
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
    bench : mapping of str to str
        What ``dpaudit bench-audit`` found, as fragments of the page: ``html`` and
        ``md``; empty if it has not been run.
    comparison : Comparison, optional
        What ``make third-party`` found; None if it has not been run.
    """

    profile: Profile
    seed: int
    experiments: tuple[Experiment, ...]
    tables: Mapping[str, pd.DataFrame]
    data: Mapping[str, Any]
    bench: Mapping[str, str] = field(default_factory=dict)
    comparison: Comparison | None = None


def render_html(results: Results) -> str:
    """Return the whole page; it refers to no other resource."""
    context = _context(results)
    context["style"] = _stylesheet("colours.css") + _stylesheet("style.css")
    context["figures"] = _figures(results)
    return _environment().get_template("report.html.j2").render(context)


def render_markdown(results: Results) -> str:
    """Return the report as Markdown, tables instead of figures."""
    return _environment().get_template("report.md.j2").render(_context(results))


def render_pictures(results: Results) -> dict[str, str]:
    """Return the figures as SVG files of their own, for use outside the page."""
    colours = _stylesheet("colours.css")
    return {
        name: standalone(wide, colours) for name, (wide, _) in _figures(results).items()
    }


def _stylesheet(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=lambda name: name is None or not name.endswith(".md.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["cell"] = lambda text: " ".join(
        str(text).replace("|", "\\|").split()
    )
    environment.filters["glue"] = _glue
    environment.filters["count"] = formats.count
    environment.filters["setting"] = formats.setting
    environment.filters["delta"] = formats.delta
    return environment


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
        "bench": dict(results.bench),
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


def _figures(results: Results) -> dict[str, list[str]]:
    """Return the SVGs of each figure: for wide screens, then for phones."""
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
