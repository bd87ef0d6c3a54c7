"""Tables of robust PCA as the runner makes them, with errors by formula."""

from math import exp, log

import pandas as pd

from dpaudit.reports.sections.robust.measures import (
    CORRECTED,
    MAPS,
    NOISELESS,
    PUBLISHED,
)

__all__ = ["error_after", "recovery_tables"]

STEPS = (1, 2, 4, 100, 150, 200, 300)


def error_after(name, step):
    """Return the error of a mechanism after some steps."""
    if name == "dp-ggd-published":
        return 0.9
    if name == NOISELESS:
        return exp(-log(4.0) * step / 50)
    if name == "dp-sgd-reap-published":
        return 1e-3 / step
    if name == "dp-sggd-published":
        return 1e-8 if step > 150 else 0.5 if step < 4 else 1e-4
    return 0.5 / step


def recovery_tables(wall):
    """Return a table for each experiment on robust PCA; `wall` makes that of audits."""
    paths = [
        {
            "mechanism": name,
            "repetition": i,
            "iteration": step,
            "error": scale * error_after(name, step),
            "seconds": 2.0 * step / max(STEPS),
        }
        for name in (*PUBLISHED, *CORRECTED, NOISELESS)
        for i, scale in enumerate((0.5, 1.0, 2.0))
        for step in STEPS
    ]
    phases = [
        {
            "mechanism": name,
            "rows": rows,
            "dimension": length,
            "repetition": 0,
            "error": 1e-9 if rows * reach >= 100 * length else 0.3,
            "reached": 3.0,
            "seconds": 1.0,
        }
        for name, reach in (("dp-sggd-published", 20), ("dp-sggd", 5))
        for rows in (100.0, 200.0)
        for length in (10.0, 40.0)
    ]
    maps = [
        {
            "mechanism": name,
            "epsilon": 0.8,
            "east": x - 4.5,
            "north": x % 3 - 1.0,
            "x": x - 4.0,
            "y": x % 3 - 1.0,
            "fit": 0.75,
            "error": 0.25,
            "seconds": 1.0,
        }
        for name in MAPS
        for x in range(10)
    ]
    return {
        "robust-audits": wall(
            refuted=("dp-sggd-published",), names=(*PUBLISHED, *CORRECTED)
        ),
        "robust-recovery": pd.DataFrame(paths),
        "robust-phases": pd.DataFrame(phases),
        "genotypes": pd.DataFrame(maps),
    }
