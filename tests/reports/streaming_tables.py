"""Tables of the streaming section: errors as the theory says, or something else."""

from math import sqrt

import numpy as np
import pandas as pd

from dpaudit.reports.sections.streaming.measures import DP_PCA, MINIBATCH_OJA

ROWS = (1e5, 2e5, 4e5)
NOISES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)


def table(mechanism, against, law, count=20, seed=0, **columns):
    """Errors law(x) times log-normal numbers, as the experiments' tables have them."""
    rng = np.random.default_rng(seed)
    points, error = law
    x = np.repeat(points, count)
    columns = {"mechanism": mechanism, against: x, **columns}
    columns["formula"] = np.array([error(each) for each in x])
    for name in ("error", "noise_error"):
        noise = np.exp(0.05 * rng.standard_normal(len(x)))
        columns[name] = columns["formula"] * noise
        columns[f"{name}_null"] = 1e6
    return pd.DataFrame(columns)


def floor(noise):
    return max(7e-4, 0.03 * noise)


def streaming_tables(noise=-1.0, dimension=1.0, signal=1.0):
    """Tables of what the theory says, or something else."""
    private = table(DP_PCA, "n", (ROWS, lambda n: 2e4**-noise * n**noise), epsilon=1.0)
    sampled = table(DP_PCA, "n", (ROWS, lambda n: 9 / sqrt(n)), seed=1, epsilon=1000.0)
    lengths = (5.0, 10.0, 20.0, 40.0)
    return {
        "streaming-rates": pd.concat([private, sampled], ignore_index=True),
        "streaming-dimensions": table(
            DP_PCA, "d", (lengths, lambda d: 0.004 * d**dimension), seed=2
        ),
        "signal-in-noise": pd.concat(
            [
                table(DP_PCA, "noise", (NOISES, lambda s: 0.15 * s**signal), seed=3),
                table(MINIBATCH_OJA, "noise", (NOISES, floor), seed=4),
            ],
            ignore_index=True,
        ),
    }
