"""Who wins where: curves of errors with their bottoms, and sentences on them.

The sentences are chosen by the data.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
import pandas as pd

from dpaudit.arrays import Array
from dpaudit.reports.sections.dp_pca.measures import (
    DP_PCA,
    GOE,
    MECHANISMS,
    MINIBATCH_OJA,
    OJA,
    STREAMING,
    TUNED,
)
from dpaudit.reports.tables import Quartiles, grouped, quarters
from dpaudit.reports.words import count, listed, number, plain, setting, spelt

CLAIMS = "dp-pca-claims"
RATES = {
    "dp-pca-n": ("n", "Gaussian rows, by n", "with default steps"),
    "dp-pca-n-tuned": ("n", "Gaussian rows, by n, tuned steps", "with tuned steps"),
    "dp-pca-d": ("d", "Gaussian rows, by d", "with default steps"),
    "dp-pca-epsilon": ("epsilon", "Gaussian rows, by ε", "with default steps"),
}
EXAMPLE = {
    "dp-pca-example": ("noise", "Example 4.1, default steps", "with default steps"),
    "dp-pca-example-tuned": ("noise", "Example 4.1, tuned steps", "with tuned steps"),
}
SLOW = "-single"
"""Behind the name of an experiment: that of mechanisms that take a step a row."""

LETTERS = {"n": "n", "d": "d", "epsilon": "ε", "noise": "σ"}


@dataclass(frozen=True)
class Errors:
    """Errors of one mechanism against one variable."""

    # at every point where less than half of the releases was bottom; bottom counts as
    # an error above all others
    quartiles: Mapping[float, Quartiles]
    bottoms: tuple[float, ...]  # the other points


@dataclass(frozen=True)
class Panel:
    """Errors against one variable."""

    # heading, variable, words: the last as it is in sentences
    heading: str
    variable: str
    words: str
    table: pd.DataFrame  # of all mechanisms
    # whether it is of means, with a standard error to either side, in place of medians
    # and quartiles
    means: bool = False

    @cached_property
    def errors(self) -> dict[str, Errors]:
        """The errors by mechanism, in the order of `MECHANISMS`."""
        about = _about if self.means else quarters
        tables = dict(list(self.table.groupby("mechanism")))
        found = {}
        for name in filter(tables.__contains__, MECHANISMS):
            quartiles, bottoms = {}, []
            for x, errors in grouped(tables[name], self.variable, "error").items():
                if np.isnan(errors).mean() >= 0.5:
                    bottoms.append(float(x))
                else:
                    # A sine of 1 is above all others, and can be drawn.
                    quartiles[float(x)] = about(np.nan_to_num(errors, nan=1.0))
            found[name] = Errors(
                dict(sorted(quartiles.items())), tuple(sorted(bottoms))
            )
        return found

    @property
    def medians(self) -> dict[str, dict[float, float]]:
        """The medians, where they are not bottom."""
        return {
            name: {x: middle for x, (_, middle, _) in own.quartiles.items()}
            for name, own in self.errors.items()
        }


def panels(
    tables: Mapping[str, pd.DataFrame], which: Mapping[str, tuple[str, str, str]]
) -> list[Panel]:
    """Return a panel for each pair of experiments: of a step a batch, and a row."""
    return [
        Panel(
            heading,
            variable,
            words,
            pd.concat([tables[name], tables[name + SLOW]], ignore_index=True),
        )
        for name, (variable, heading, words) in which.items()
    ]


def winners(panel: Panel, refuted: Collection[str]) -> dict[float, str]:
    """Return who has the least median error at each point: GOE, or what takes steps.

    Who was refuted is left out.
    """
    best: dict[float, tuple[float, str]] = {}
    medians = panel.medians
    for name in {GOE, *STREAMING} - set(refuted):
        for x, middle in medians.get(name, {}).items():
            best[x] = min(best.get(x, (np.inf, "")), (middle, name))
    return {x: name for x, (_, name) in sorted(best.items())}


def head(shown: Sequence[Panel]) -> str:
    """Return in which panels the paper's point on Example 4.1 is supported.

    It is if errors of DP-PCA fall by the root of the factor of sigma or by more, and
    those of equation (7) by less than its root.
    """
    seen = []
    for panel in shown:
        own, other = (panel.medians.get(n, {}) for n in (DP_PCA, MINIBATCH_OJA))
        both = sorted(set(own) & set(other))
        if len(both) < 2:
            seen.append(f"not seen {panel.words}, where nearly all is bottom")
            continue
        least, most = both[0], both[-1]
        falls = [each[most] / each[least] for each in (own, other)]
        holds = falls[1] < sqrt(most / least) <= falls[0]
        told = (f"{number(float(f'{fall:.2g}'))}" for fall in falls)
        seen.append(
            f"{'supported' if holds else 'not seen'} {panel.words} (σ falls by a "
            f"factor of {setting(most / least)}, its error by one of {next(told)}, "
            f"that of {MINIBATCH_OJA} by one of {next(told)})"
        )
    return (
        "That the error of DP-PCA vanishes with σ in Example 4.1, where that of noise "
        f"in proportion to a gradient’s length does not, is {listed(seen)}."
    )


def rate_notes(shown: Sequence[Panel], refuted: Collection[str]) -> list[str]:
    """Return who has the least error on Gaussian rows, against each variable."""
    found = [winners(panel, refuted) for panel in shown]
    notes = [_who(panel, refuted) for panel in shown]
    if all(set(each.values()) == {GOE} for each in found):
        notes = [
            f"On Gaussian rows {GOE}, which puts noise on one matrix and has no steps "
            "to choose, has a smaller median error than every mechanism that takes "
            f"steps, at each of the {sum(map(len, found))} points that were tried."
        ]
    behind = [text for panel in shown for text in _behind(panel)]
    if behind:
        notes.append(f"The median of {DP_PCA} is {listed(behind)} that of {GOE}.")
    return notes + _bottoms(shown)


def example_notes(shown: Sequence[Panel], refuted: Collection[str]) -> list[str]:
    """Return who has the least error in Example 4.1, and what vanishes with sigma."""
    notes = [_who(panel, refuted) for panel in shown]
    for panel in shown:
        medians = {k: v for k, v in panel.medians.items() if k != OJA and len(v) > 1}
        spans = {name: max(own) / min(own) for name, own in medians.items()}
        widest, falls = max(spans.values(), default=1.0), []
        for name, own in medians.items():
            ratio = number(float(f"{own[max(own)] / own[min(own)]:.2g}"))
            short_of = f" (of {setting(spans[name])})" if spans[name] < widest else ""
            falls.append(f"{ratio}{short_of} for {name}")
        if falls:
            notes.append(
                f"{_capital(panel.words)}, as σ falls by a factor of "
                f"{setting(widest)}, median errors fall by one of {listed(falls)}."
            )
    return notes + _bottoms(shown)


def claim_notes(claims: pd.DataFrame) -> list[str]:
    """Return which claims for a replaced row fell, and how the others were held."""
    fallen = claims[claims["verdict"] == "REFUTED"]
    notes = [
        f"The claim of {row.mechanism} is false for a replaced row: its paper asks for "
        f"the noise of an added one, and the exact ε is {number(row.exact_epsilon)} at "
        "the claimed δ."
        for row in fallen.itertuples()
        if row.claim == "false"
    ]
    seen = list(fallen["mechanism"][fallen["claim"] != "false"])
    if seen:
        notes.append(f"Refuted by an audit: {listed(seen)}.")
    if OJA in seen:
        notes.append(f"{OJA} has no noise, and no claim but one that is planted.")
    standing = claims[claims["verdict"] == "NOT_REFUTED"]
    known = standing["mechanism"][standing["claim"] == "kept"]
    audited = standing[standing["claim"] == "not known"]
    if len(known):
        notes.append(f"By the exact loss {listed(known)} keep the claim.")
    if len(audited):
        notes.append(
            f"Not refuted with up to {count(audited['samples'].max())} releases a "
            f"side, which is no proof: {listed(audited['mechanism'])}."
        )
    return notes


def _who(panel: Panel, refuted: Collection[str]) -> str:
    found = winners(panel, refuted)
    if not found:
        return f"{_capital(panel.words)}, all were bottom."
    parts = []
    for name in dict.fromkeys(found.values()):
        at = [x for x, best in found.items() if best == name]
        where = f"at {LETTERS[panel.variable]} = {listed(map(plain, at))}"
        if len(at) == len(found):
            where = f"at every {LETTERS[panel.variable]}"
        parts.append(f"{name} {where}")
    return (
        f"{_capital(panel.words)}, of {GOE} and what takes steps the least median "
        f"error is that of {listed(parts)}."
    )


def _behind(panel: Panel) -> list[str]:
    """Return by how much DP-PCA is from GOE at the last point that both have."""
    own, other = (panel.medians.get(name, {}) for name in (DP_PCA, GOE))
    both = sorted(set(own) & set(other))
    if not both or TUNED in panel.words:
        return []
    ratio = own[both[-1]] / other[both[-1]]
    return [f"{number(ratio)} times (at {LETTERS[panel.variable]} = {plain(both[-1])})"]


def _about(errors: Array) -> Quartiles:
    mean, away = float(errors.mean()), 0.0
    if len(errors) > 1:
        away = float(errors.std(ddof=1)) / sqrt(len(errors))
    return max(mean - away, mean / 2), mean, mean + away


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def _bottoms(shown: Iterable[Panel]) -> list[str]:
    lost: Counter[str] = Counter()
    for panel in shown:
        lost.update({name: len(own.bottoms) for name, own in panel.errors.items()})
    found = [
        f"{name} at {spelt(n)} point{'s' * (n > 1)}" for name, n in lost.items() if n
    ]
    return [f"Bottom (⊥) is the release of {listed(found)}."] if found else []
