"""Tables of robust PCA as the runner makes them, with errors by formula."""

from math import exp, log, nan

import pandas as pd

from dpaudit.reports.sections import all_sections
from dpaudit.reports.sections.robust.measures import CORRECTED, NOISELESS, PUBLISHED

PAIRED = [name for both in zip(PUBLISHED, CORRECTED, strict=True) for name in both]
_ROBUST = all_sections()["robust"]
_FULL = {each.name: each for each in _ROBUST.experiments(_ROBUST.sizes["full"])}
MAPS, REAPER_MAPS = (
    _FULL[name].mechanisms for name in ("genotypes", "genotypes-reaper")
)

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
            **{"mechanism": name, "repetition": i, "iteration": step},
            "error": scale * error_after(name, step),
            "seconds": 2.0 * step / max(STEPS),
        }
        for name in (*PUBLISHED, *CORRECTED, NOISELESS)
        for i, scale in enumerate((0.5, 1.0, 2.0))
        for step in STEPS
    ]
    return {
        "robust-audits": wall(
            refuted=("dp-sggd-published",), names=(*PUBLISHED, *CORRECTED)
        ),
        "robust-constants": pd.DataFrame(
            {"mechanism": "dp-sggd-published", "constant": [1.0], "ratio": [10.0]}
            | {"noise": [0.2], "verdict": ["REFUTED"], "samples_to_refute": [82.0]}
        ),
        "robust-recovery": pd.DataFrame(paths),
        "robust-stability": pd.DataFrame(
            {
                **{"mechanism": NOISELESS, "pca_error": [1e-3, 2e-3, 0.5]},
                **{"pca_error_bound": [4e-3, 4e-3, nan], "stability": [0.1, -0.1, nan]},
                "reaper_stability": [0.1, -0.1, -0.1],
                **{"batch_stability": 0.01, "batch_stability_printed": -9.0},
            }
        ),
        "robust-phases": phases(PAIRED[:2], (100.0, 200.0), (10.0, 40.0)),
        "robust-phases-full": phases(PAIRED[2:4], (100.0, 200.0), (10.0, 40.0)),
        "robust-phases-reaper": phases(PAIRED[4:], (100.0,), (10.0,)),
        "robust-budgets": tiles(epsilon=(0.5, 2.0), delta=(1e-6, 1e-2)),
        "robust-batches": tiles(batch_size=(4.0, 32.0), inlier_share=(0.3, 0.6)),
        "robust-ranks": tiles(dimension=(10.0, 20.0), n_components=(1.0, 4.0)),
        **{"genotypes": maps(MAPS), "genotypes-reaper": maps(REAPER_MAPS)},
    }


def phases(names, rows, lengths):
    """Return errors that are small up to some length, less so as corrected."""
    cells = [
        (name, {"rows": n, "dimension": d}, n * (20 if "-pub" in name else 5) / 100 < d)
        for name in names
        for n in rows
        for d in lengths
    ]
    return runs(cells)


def tiles(**grid):
    """Return errors that are small where both coordinates are large, or published."""
    (first, xs), (second, ys) = grid.items()
    names = [name for name in PAIRED if first != "batch_size" or name[:4] == "dp-s"]
    return runs(
        (
            name,
            {first: x, second: y},
            "-published" not in name and (x < max(xs) or y < max(ys)),
        )
        for name in names
        for x in xs
        for y in ys
    )


def runs(cells):
    """Return three runs of each cell, of which those of a lost one miss."""
    return pd.DataFrame(
        {
            "mechanism": name,
            **place,
            **{"repetition": i, "error": 0.3 if lost else 1e-9},
            **{"reached": nan if lost else 3.0, "seconds": 1.0},
            "seconds_reached": nan if lost else 0.25,
        }
        for name, place, lost in cells
        for i in range(3)
    )


def maps(names):
    """Return a map of ten people for each."""
    return pd.DataFrame(
        {
            **{"mechanism": name, "epsilon": 0.8, "east": x - 4.5},
            **{"north": x % 3 - 1.0, "x": x - 4.0, "y": x % 3 - 1.0, "fit": 0.75},
            **{"error": 0.25, "seconds": 1.0},
        }
        for name in names
        for x in range(10)
    )
