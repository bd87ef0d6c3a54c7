"""Aggregations of PipelineDP (0.3.1) in memory, over one public partition.

Sensitivities are documented as what "can [be] achieved by adding or removing one
privacy unit from the dataset" (``aggregate_params.py:805``). Each row is one privacy
unit.
"""

from importlib import import_module
from typing import Any

from dpaudit.algorithms.third_party.subjects.shelf import Shelf
from dpaudit.claims import ApproxDP

__all__ = ["SUBJECTS"]

_of = Shelf(__name__, "pipeline_dp", "pipeline-dp")
_DELTA = 1e-2


def _metric(name: str, noise: str) -> None:
    """List a metric with one kind of noise."""

    @_of(
        f"Metrics.{name}.{noise.lower()}",
        "scalar:0,1:rows=8",
        claim=None if noise == "LAPLACE" else ApproxDP(1.0, _DELTA),
        relation="add-remove",
        stated="aggregate_params.py:805",
    )
    def aggregate(data: Any, rng: Any) -> Any:
        dp = import_module("pipeline_dp")
        metric = getattr(dp.Metrics, name)
        spent = dp.NaiveBudgetAccountant(
            total_epsilon=1.0, total_delta=0.0 if noise == "LAPLACE" else _DELTA
        )
        engine = dp.DPEngine(spent, dp.LocalBackend())
        asked = dp.AggregateParams(
            metrics=[metric(50) if name == "PERCENTILE" else metric],
            noise_kind=getattr(dp.NoiseKind, noise),
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            min_value=0.0,
            max_value=1.0,
        )
        rows = dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: 0,
            value_extractor=lambda row: row[1],
        )
        found = engine.aggregate(
            list(enumerate(data.tolist())), asked, rows, public_partitions=[0]
        )
        spent.compute_budgets()
        ((_, values),) = found
        return list(values)


for _name in ("COUNT", "PRIVACY_ID_COUNT", "SUM", "MEAN", "VARIANCE", "PERCENTILE"):
    _metric(_name, "LAPLACE")
for _name in ("COUNT", "SUM", "MEAN"):
    _metric(_name, "GAUSSIAN")

SUBJECTS = tuple(_of.subjects)
"""What is audited."""
