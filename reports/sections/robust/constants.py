r"""Whether some constant saves Theorem 6 for random batches: audits as N/B grows.

Source: Maunu, Yu, Lerman, *Stochastic and private nonconvex outlier-robust PCA*, MSML
2022, Theorem 6: there are c_1 and c_2 such that for epsilon < c_1 (B/N)^2 T noise of
variance sigma^2 = c_2 (B/N)^2 T log(1/delta)/(epsilon^2 N^2) on the mean of a batch is
(epsilon, delta)-DP.

**No constant does.** Fix B and let T = t (N/B)^2 with t > epsilon/c_1, so that the
condition on epsilon is met for all N. Then sigma is sqrt(c_2 t log(1/delta)) over
epsilon N, while the mean of a batch moves by 2/B in each step that the row is in. Their
ratio,

.. math:: \frac{\sigma B}{2} = \frac{\sqrt{c_2 t \log(1/\delta)}}{2 \epsilon}
   \cdot \frac{B}{N},

falls to 0 as N/B grows, whatever c_2 is, and a row is in some of N/B steps with
probability 1 - (1 - 1/N)^N > 0.63 (B draws a step with replacement). So the loss of
these steps alone is above any epsilon with a probability near 0.63 in the end.

Measured with t = 1 are the first N/B of the T steps, which are part of what whoever
watches the run sees. The start is a random subspace, which tells nothing of the rows,
so that the steps alone are held to the claim.
"""

from dataclasses import replace
from math import nan, sqrt

import pandas as pd

from dpaudit.algorithms.robust.initialisation import PublicStart
from dpaudit.algorithms.robust.pairs import odd_pair
from dpaudit.algorithms.robust.parts import PublishedNoise
from dpaudit.algorithms.robust.private_ggd import PrivateSGGD
from dpaudit.audit import audit
from dpaudit.reports.experiment import Cell, Record
from dpaudit.reports.tables import Printed, records
from dpaudit.reports.words import count, number, setting, verdict

__all__ = ["audited_constants", "constant_rows"]

_BATCH = 5


def audited_constants(cell: Cell) -> list[Record]:
    """Audit the transcripts of dp-sggd with noise for another constant.

    The point and the options give ``constant`` (c_2), ``ratio`` (N/B), ``epsilon``,
    ``delta``, ``confidence`` and ``max_samples``.

    Returns
    -------
    list of dict
        One record: ``noise``, the deviation in units of what a row moves; ``verdict``,
        ``samples`` and ``samples_to_refute`` (NaN where the claim stands).
    """
    setting = {**cell.options, **cell.point}
    ratio = int(setting["ratio"])
    rows = _BATCH * ratio
    printed = PrivateSGGD.as_published(
        setting["epsilon"],
        setting["delta"],
        iterations=ratio**2,
        batch_size=_BATCH,
        start=PublicStart(),
    )
    assert isinstance(printed.noise, PublishedNoise)
    unit = sqrt(setting["constant"]) * printed.noise.unit
    mechanism = replace(printed, noise=PublishedNoise(unit), iterations=ratio)
    result = audit(
        mechanism,
        pair=odd_pair(1, None, count=rows - 1),
        layer="transcript",
        confidence=setting["confidence"],
        budget=setting["max_samples"],
        seed=cell.seed,
    )
    refuted_at = result.refuted_at
    return [
        {
            "noise": mechanism.noise_scale(rows) / 2,
            "verdict": result.verdict.value,
            "samples": result.samples,
            "samples_to_refute": nan if refuted_at is None else refuted_at,
        }
    ]


def constant_rows(table: pd.DataFrame) -> list[Printed]:
    """Return the table of constants, ready to print."""
    return [
        Printed(
            constant=setting(row["constant"]),
            ratio=setting(row["ratio"]),
            noise=number(row["noise"]),
            refuted=row["verdict"] == "REFUTED",
            verdict=verdict(row["verdict"]),
            runs=count(
                row["samples_to_refute"]
                if row["verdict"] == "REFUTED"
                else row["samples"]
            ),
        )
        for row in records(table)
    ]
