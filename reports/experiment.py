"""What an experiment of the report is: a declaration, which `runner` carries out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpaudit.reports.measures import Measure

__all__ = ["CONFIDENCE", "DELTA", "Experiment"]

DELTA = 1e-5
CONFIDENCE = 0.999


@dataclass(frozen=True)
class Experiment:
    """One question, asked of several mechanisms over a grid.

    Parameters
    ----------
    name : str
        Also the name of its CSV file.
    title : str
        A few words, for headings and progress.
    question : str
        One sentence.
    source : str
        Where the experiment comes from.
    measure : callable
        From a `~dpaudit.reports.measures.Cell` to records.
    mechanisms : tuple of str
    grid : mapping of str to tuple of float
        Every combination is visited; empty for a single point.
    repetitions : int
        Independent repetitions at every point.
    seed : int
    options : mapping of str to object
        What the measure needs besides.
    effort : float
        Roughly, its share of the time of a report; for the progress bar only.
    parallel : bool
        False for what neighbours on the same machine would disturb.
    """

    name: str
    title: str
    question: str
    source: str
    measure: Measure
    mechanisms: tuple[str, ...]
    grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    repetitions: int = 1
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    effort: float = 1.0
    parallel: bool = True
