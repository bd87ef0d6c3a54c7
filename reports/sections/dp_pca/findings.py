"""Who wins where: curves of errors with their bottoms, and sentences on them."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpaudit.arrays import Array
from dpaudit.reports.experiment import declarations
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
from dpaudit.reports.words import sentences

CLAIMS = "dp-pca-claims"
PANELS = declarations(Path(__file__).with_name("experiments.toml"))["panels"]
"""By what is drawn together, and the experiment: variable, heading and words."""

RATES, EXAMPLE, FLOORS, STAGES = (
    PANELS[name] for name in ("rates", "example", "floors", "stages")
)
SLOW = "-single"
"""Behind the name of an experiment: that of mechanisms that take a step a row."""

LETTERS = {"n": "n", "d": "d", "epsilon": "ε", "noise": "σ"}


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
    def quartiles(self) -> dict[str, dict[float, Quartiles | None]]:
        """Those of errors by mechanism, in the order of `MECHANISMS`, and by point.

        None where half of the releases or more was bottom. Elsewhere bottom counts as
        an error above all others.
        """
        about = _about if self.means else quarters
        tables = dict(list(self.table.groupby("mechanism")))
        found: dict[str, dict[float, Quartiles | None]] = {}
        for name in filter(tables.__contains__, MECHANISMS):
            found[name] = {}
            points = grouped(tables[name], self.variable, "error")
            for x, errors in sorted(points.items()):
                lost = np.isnan(errors)
                # A sine of 1 is above all others, and can be drawn.
                three = about(np.where(lost, 1.0, errors))
                found[name][float(x)] = None if lost.mean() >= 0.5 else three
        return found

    @property
    def medians(self) -> dict[str, dict[float, float]]:
        """The medians, where they are not bottom."""
        return {
            name: {x: three[1] for x, three in own.items() if three}
            for name, own in self.quartiles.items()
        }


def panels(
    tables: Mapping[str, pd.DataFrame], which: Mapping[str, Sequence[str]]
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
    seen: list[tuple[Any, ...]] = []
    for panel in shown:
        own, other = (panel.medians.get(n, {}) for n in (DP_PCA, MINIBATCH_OJA))
        both = sorted(set(own) & set(other))
        if len(both) < 2:
            seen.append((panel.words,))
            continue
        least, most = both[0], both[-1]
        falls = [each[most] / each[least] for each in (own, other)]
        holds = falls[1] < sqrt(most / least) <= falls[0]
        two = [float(f"{fall:.2g}") for fall in falls]
        seen.append((panel.words, holds, most / least, *two))
    (said,) = sentences("dp_pca", "head", seen=seen, other=MINIBATCH_OJA)
    return said


def rate_notes(shown: Sequence[Panel], refuted: Collection[str]) -> list[str]:
    """Return who has the least error on Gaussian rows, against each variable."""
    found = [winners(panel, refuted) for panel in shown]
    alone = all(set(each.values()) == {GOE} for each in found)
    return sentences(
        *("dp_pca", "rate_notes"),
        **{"goe": GOE, "dp_pca": DP_PCA, "points": sum(map(len, found)) * alone},
        best=[_who(panel, refuted) for panel in shown],
        behind=[each for panel in shown for each in _behind(panel)],
        bottoms=_bottoms(shown),
    )


def example_notes(shown: Sequence[Panel], refuted: Collection[str]) -> list[str]:
    """Return who has the least error in Example 4.1, and what vanishes with sigma."""
    falls = []
    for panel in shown:
        medians = {k: v for k, v in panel.medians.items() if k != OJA and len(v) > 1}
        spans = {name: max(own) / min(own) for name, own in medians.items()}
        if medians:
            ratios = [
                (float(f"{own[max(own)] / own[min(own)]:.2g}"), name, spans[name])
                for name, own in medians.items()
            ]
            falls.append((panel.words, max(spans.values()), ratios))
    best, bottoms = [_who(panel, refuted) for panel in shown], _bottoms(shown)
    told = {"goe": GOE, "best": best, "falls": falls, "bottoms": bottoms}
    return sentences("dp_pca", "example_notes", **told)


def claim_notes(claims: pd.DataFrame) -> list[str]:
    """Return which claims for a replaced row fell, and how the others were held."""
    fell = claims["verdict"] == "REFUTED"
    stands, false = claims["verdict"] == "NOT_REFUTED", claims["claim"] == "false"
    audited = claims[stands & claims["claim"].eq("not known")]
    wrong = claims[fell & false]
    return sentences(
        *("dp_pca", "claim_notes"),
        wrong=list(zip(wrong["mechanism"], wrong["exact_epsilon"], strict=True)),
        seen=list(claims["mechanism"][fell & ~false]),
        oja=OJA,
        known=list(claims["mechanism"][stands & claims["claim"].eq("kept")]),
        audited=list(audited["mechanism"]),
        most=audited["samples"].max(),
    )


def _who(panel: Panel, refuted: Collection[str]) -> tuple[str, str, list[Any]]:
    """Return the words of a panel, its letter, and who is best at which points."""
    found = winners(panel, refuted)
    parts = []
    for name in dict.fromkeys(found.values()):
        at = [x for x, best in found.items() if best == name]
        parts.append((name, [] if len(at) == len(found) else at))
    return panel.words, LETTERS[panel.variable], parts


def _behind(panel: Panel) -> list[tuple[float, str, float]]:
    """Return by how much DP-PCA is from GOE at the last point that both have."""
    own, other = (panel.medians.get(name, {}) for name in (DP_PCA, GOE))
    both = sorted(set(own) & set(other))
    if not both or TUNED in panel.words:
        return []
    return [(own[both[-1]] / other[both[-1]], LETTERS[panel.variable], both[-1])]


def _about(errors: Array) -> Quartiles:
    mean, away = float(errors.mean()), 0.0
    if len(errors) > 1:
        away = float(errors.std(ddof=1)) / sqrt(len(errors))
    return max(mean - away, mean / 2), mean, mean + away


def _bottoms(shown: Iterable[Panel]) -> list[tuple[str, int]]:
    lost: Counter[str] = Counter()
    for panel in shown:
        for name, own in panel.quartiles.items():
            lost[name] += list(own.values()).count(None)
    return [each for each in lost.items() if each[1]]
