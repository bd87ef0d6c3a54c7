"""The section of the report on robust PCA: what the page needs of its tables."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd

from dpaudit.reports import map_figures, recovery_figures, recovery_findings
from dpaudit.reports.experiment import Experiment
from dpaudit.reports.findings import refuted_mechanisms, standing_mechanisms

__all__ = ["recovery_context", "recovery_figures_of"]


def recovery_context(
    found: Mapping[str, pd.DataFrame], by_name: Mapping[str, Experiment]
) -> dict[str, Any]:
    """Return what the templates say of robust PCA.

    Parameters
    ----------
    found : mapping of str to pandas.DataFrame
    by_name : mapping of str to Experiment
    """
    return {
        "rows": recovery_findings.recovery_rows(
            found["robust-recovery"], found["robust-audits"]
        ),
        "notes": recovery_findings.recovery_notes(found["robust-recovery"]),
        "phase_notes": recovery_findings.phase_notes(found["robust-phases"]),
        "map_notes": recovery_findings.map_notes(found["genotypes"]),
        "setting": by_name["robust-recovery"].options,
        "genotypes": by_name["genotypes"].options,
    }


def recovery_figures_of(found: Mapping[str, pd.DataFrame]) -> dict[str, list[str]]:
    """Return the SVGs of each figure: for wide screens, then for phones."""
    audits = found["robust-audits"]
    refuted = refuted_mechanisms(audits)
    paths = partial(
        recovery_figures.error_by_step,
        refuted=refuted,
        standing=standing_mechanisms(audits),
    )
    phases = partial(recovery_figures.phases, refuted=refuted)
    # One of the maps is by a mechanism of the wall.
    everywhere = [*refuted, *refuted_mechanisms(found["privacy-wall"])]
    maps = partial(map_figures.maps, refuted=everywhere)
    drawn = {"robust-recovery": paths, "robust-phases": phases, "genotypes": maps}
    return {
        name: [draw(found[name], narrow=n) for n in (False, True)]
        for name, draw in drawn.items()
    }
