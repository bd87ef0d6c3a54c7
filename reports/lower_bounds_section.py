"""Online PCA and tracing in the report: what the page needs of their tables."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from dpaudit.reports import regret_findings, tracing_findings
from dpaudit.reports.experiment import Experiment
from dpaudit.reports.findings import refuted_mechanisms, standing_mechanisms
from dpaudit.reports.regret import exponents
from dpaudit.reports.regret_figures import regret_by_length, regret_by_optimum
from dpaudit.reports.tracing import dimension_of
from dpaudit.reports.tracing_figures import useful_and_traced

__all__ = ["lower_bounds_context", "lower_bounds_figures_of"]

_PANELS = 3  # components without noise, and the first mechanism at two epsilons


def lower_bounds_context(
    found: Mapping[str, pd.DataFrame], by_name: Mapping[str, Experiment]
) -> dict[str, Any]:
    """Return what the templates say: ``online`` and ``tracing``.

    Parameters
    ----------
    found : mapping of str to pandas.DataFrame
    by_name : mapping of str to Experiment
    """
    regrets, audits = found["online-regret"], found["online-audits"]
    scores, shares = exponents(found), _shares(found)
    options = by_name["tracing"].options
    dimension = dimension_of(options)
    return {
        "online": {
            "rows": regret_findings.online_rows(regrets, audits),
            "notes": regret_findings.online_notes(regrets),
            "scores": regret_findings.score_rows(scores),
            "score_notes": regret_findings.score_notes(scores, found["regret-optimum"]),
            "most": int(regrets["rows"].max()),
            "setting": by_name["online-regret"].options,
            "audits": by_name["online-audits"].options,
            "optimum": by_name["regret-optimum"].options,
            "dimensions": by_name["regret-dimensions"].options,
            "components": by_name["regret-components"].options,
        },
        "tracing": {
            "rows": tracing_findings.tracing_rows(shares),
            "notes": tracing_findings.tracing_notes(shares, dimension),
            "setting": {**options, "dimension": dimension},
            "trials": by_name["tracing"].repetitions,
            "delta": 1 / options["length"] ** 2,
            "least": int(found["tracing"]["rows"].min()),
            "most": int(found["tracing"]["rows"].max()),
            "culling": tracing_findings.culling_rows(found["list-culling"]),
            "culling_notes": tracing_findings.culling_notes(found["list-culling"]),
            "game": by_name["list-culling"].options,
        },
    }


def lower_bounds_figures_of(
    found: Mapping[str, pd.DataFrame], by_name: Mapping[str, Experiment]
) -> dict[str, list[str]]:
    """Return the SVGs of each figure: for wide screens, then for phones."""
    audits = found["online-audits"]
    regret = partial(
        regret_by_length,
        refuted=refuted_mechanisms(audits),
        standing=standing_mechanisms(audits),
    )
    wall = refuted_mechanisms(found["privacy-wall"])
    shares = _shares(found)[:_PANELS]
    dimension = dimension_of(by_name["tracing"].options)
    return {
        "online-regret": [
            regret(found["online-regret"], narrow=n) for n in (False, True)
        ],
        "regret-optimum": [
            regret_by_optimum(found["regret-optimum"], narrow=n) for n in (False, True)
        ],
        "tracing": [
            useful_and_traced(shares, dimension, refuted=wall, narrow=n)
            for n in (False, True)
        ],
    }


def _shares(found: Mapping[str, pd.DataFrame]) -> Sequence[tracing_findings.Shares]:
    return tracing_findings.shares(found["tracing-references"], found["tracing"])
