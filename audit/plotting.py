"""The picture of one audit: how its bound grew, and what its attack tells apart."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from dpaudit.printable import printable

__all__ = ["draw"]

_BLUE, _RED, _GREY = "#1f6fb4", "#c0392b", "#8a8a8a"


def draw(result: Any) -> Figure:
    """Return a figure of two panels on an `AuditResult`.

    Left: the lower bound on epsilon at `at_delta` after each round, and what the claim
    allows there. Right: for every event of the strongest attack the share of releases
    that hit it, on D against D' (or missed it, if it is rarer on D). A true claim keeps
    the true shares out of the grey.
    """
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    name = printable(result.name, longest=60)
    figure.suptitle(f"{name}: {result.verdict}", parse_math=False)
    bound, roc = figure.subplots(1, 2)
    _bound(bound, result)
    _roc(roc, result)
    return figure


def _bound(axes: Axes, result: Any) -> None:
    releases, lower = np.array(result.trajectory, dtype=np.float64).reshape(-1, 2).T
    if len(releases):
        axes.step(releases, lower, where="post", color=_BLUE, label="proven, at least")
    allowed = result.allowed_epsilon
    if np.isfinite(allowed):
        axes.axhline(allowed, color=_RED, linestyle="--", label="the claim allows")
    if result.refuted_at is not None:
        axes.axvline(result.refuted_at, color=_GREY, linestyle=":", label="refuted")
    if len(releases):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.10g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(bottom=0)
    axes.set_xlabel("releases a side")
    axes.set_ylabel(f"epsilon at delta = {result.at_delta:.3g}")
    axes.legend(frameon=False)


def _roc(axes: Axes, result: Any) -> None:
    fpr = np.linspace(0, 1, 401)
    allowed = result.claim.tpr(fpr)
    # The claim holds for an event and for what is left of it.
    axes.fill_between(fpr, allowed, 1, color=_GREY, alpha=0.25, linewidth=0)
    axes.fill_between(1 - fpr, 1 - allowed, 0, color=_GREY, alpha=0.25, linewidth=0)
    axes.plot(fpr, allowed, color=_RED, linestyle="--", label="the claim allows")
    if result.roc:
        assert result.attack is not None
        on_neighbour, on_data = np.array(result.roc).T
        if (on_data - on_neighbour).sum() < 0:  # what is left of events is likelier
            on_neighbour, on_data = 1 - on_neighbour, 1 - on_data
        whose = f"attack {printable(result.attack, longest=30)}, as seen"
        ends = [np.concatenate([[0], x, [1]]) for x in (on_neighbour, on_data)]
        style: Any = {"color": _BLUE, "markersize": 4, "clip_on": False}
        axes.plot(*map(np.sort, ends), "o-", label=whose, **style)
    axes.plot([0, 1], [0, 1], color=_GREY, linewidth=0.8)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.set_xlabel("share of the event on D'")
    axes.set_ylabel("share of the event on D")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
