"""Tables of the theorems' own experiments, with errors by formula."""

import numpy as np
import pandas as pd

from dpaudit.reports.sections.theorems.findings import CHANCES, GRIDS, ROWS


def theorems_tables(*, off=None, count=20, points=4, spread=0.05, share=0.5, seed=0):
    """Return a table for each grid; every bound has the exponent that is proven.

    Errors are `share` of their bound, times log-normal numbers, but for rows of whose
    names `off` says by how much their exponent is another.
    """
    rng, tables = np.random.default_rng(seed), {}
    for name, grid in GRIDS.items():
        variable, x = grid["variable"], np.repeat(grid["values"][:points], count)
        parts = {}
        for row in ROWS:
            if row.experiment == name:
                first = {"mechanism": row.mechanism, variable: x}
                columns = parts.setdefault(row.mechanism, first)
                ratio = x / x[0]
                errors = share * ratio ** (row.predicted + (off or {}).get(row.name, 0))
                drawn = rng.standard_normal(count)  # the same at each point: no slope
                noise = np.exp(spread * np.tile(drawn, len(x) // count))
                columns[row.column] = errors * noise
                columns[row.null] = 1e6
                if row.bound:
                    columns[row.bound] = ratio**row.predicted
                    columns[row.bound.replace("_bound", "_printed")] = (
                        2 * ratio**row.printed
                    )
        for row in CHANCES:
            if row.experiment == name:
                columns = {"mechanism": row.mechanism, variable: x}
                blind = {f"{row.column}_null": 1.0}
                parts[row.mechanism] = {**columns, row.column: 0.0, **blind}
        tables[name] = pd.concat(map(pd.DataFrame, parts.values()))
    return tables
