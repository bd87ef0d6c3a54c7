"""Libraries of which less is audited: PyDP, PipelineDP, multi-freq-ldpy, jax_privacy.

PyDP (python-dp 1.1.5) is the wrapper of Google's C++ library. The package says "in a
differentially private manner" and names no relation. Rows are people, each in the data
once.

PipelineDP (0.3.1) aggregates in memory, over one public partition. Sensitivities are
documented as what "can [be] achieved by adding or removing one privacy unit from the
dataset" (``aggregate_params.py:805``). Each row is one privacy unit.

multi-freq-ldpy (0.2.5) is local: ``README.md`` says "under local differential privacy
(LDP) guarantees", "epsilon: privacy guarantee". What one person hands in is a dataset
of one row.

jax_privacy (2.0.0) adds noise of a standard deviation to one clipped gradient
(``noise_addition.py``), and says nothing of epsilon: that is its accountant's. One row
moves a sum of clipped gradients by at most 1 if it is added or removed, so noise of
standard deviation 1 is 1/2-zCDP.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from dpaudit.algorithms.third_party.subjects.subject import Subjects
from dpaudit.claims import ApproxDP, ZeroConcentratedDP

__all__ = ["SUBJECTS"]

_pydp = Subjects(__name__, "pydp", "python-dp")
_REAL = "scalar:0,1:rows=8"
_BOUNDS = {"lower_bound": 0.0, "upper_bound": 1.0}
_DELTA = 1e-2


def _statistic(name: str, stated: str, **arguments: Any) -> None:
    """List a statistic of numbers in [0, 1]."""

    @_pydp(
        f"algorithms.laplacian.{name}", _REAL, stated=f"algorithms/laplacian/{stated}"
    )
    def statistic(data: Any, rng: Any) -> Any:
        made = getattr(import_module("pydp.algorithms.laplacian"), name)
        algorithm = made(epsilon=1.0, **arguments, dtype="float")
        return algorithm.quick_result(data.tolist())


for _name, _line in {
    "BoundedMean": 5,
    "BoundedSum": 22,
    "BoundedStandardDeviation": 33,
    "BoundedVariance": 51,
    "Max": 74,
    "Min": 82,
    "Median": 90,
}.items():
    _statistic(_name, f"_bounded_algorithms.py:{_line}", **_BOUNDS)
_statistic("Count", "_count.py:10")
_statistic("Percentile", "_percentile.py", percentile=0.75, **_BOUNDS)


def _noise(name: str, *delta: float) -> None:
    """List noise on one number."""

    @_pydp(
        f"algorithms.numerical_mechanisms.{name}",
        "scalar:0,1:rows=1",
        claim=ApproxDP(1.0, *delta) if delta else None,
        relation="replace-one",
        stated="by its sensitivity",
    )
    def add_noise(data: Any, rng: Any) -> Any:
        made = getattr(import_module("pydp.algorithms.numerical_mechanisms"), name)
        return made(1.0, *delta, 1.0).add_noise(float(data[0]))


_noise("LaplaceMechanism")
_noise("GaussianMechanism", _DELTA)


def _selection(strategy: str) -> None:
    """List a rule that keeps a partition of enough people, or drops it."""

    @_pydp(
        f"algorithms.partition_selection.{strategy}",
        "scalar:0,1:rows=2",
        claim=ApproxDP(1.0, _DELTA),
        relation="add-remove",
        stated="algorithms/partition_selection.py:22, by its number of users",
    )
    def keep(data: Any, rng: Any) -> Any:
        made = import_module("pydp.algorithms.partition_selection")
        chosen = made.create_partition_strategy(strategy, 1.0, _DELTA, 1)
        return float(chosen.should_keep(len(data)))


for _name in ("truncated_geometric", "laplace", "gaussian"):
    _selection(_name)


_pipelines = Subjects(__name__, "pipeline_dp", "pipeline-dp")


def _metric(name: str, noise: str) -> None:
    """List a metric with one kind of noise."""

    @_pipelines(
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


_local = Subjects(__name__, "multi_freq_ldpy", "multi-freq-ldpy")
_FLAT = "pure_frequency_oracles"
_PEOPLE: dict[str, tuple[str, Callable[[Any], tuple[Any, ...]]]] = {
    _FLAT: ("codes:4:rows=1", lambda row: (int(row), 4)),
    "mdim_freq_est": ("binary:2:rows=1", lambda row: ([*map(int, row)], [2, 2], 2)),
}
"""Who answers, by where a protocol is: of one of four values, or two binary ones."""


def _sent(
    folder: str, module: str, name: str, line: int, *more: Any, how: str = ""
) -> None:
    """List what one person sends."""
    domain, given = _PEOPLE[folder]

    @_local(
        f"{module}.{name}{how}",
        domain,
        relation="replace-one",
        stated=f"{folder}/{module}.py:{line}",
    )
    def send(data: Any, rng: Any) -> Any:
        library = import_module(f"multi_freq_ldpy.{folder}.{module}")
        sent = getattr(library, name)(*given(data[0]), 1.0, *more)
        parts = sent if isinstance(sent, tuple | list) else [sent]
        return np.concatenate([np.asarray(part, dtype=float).ravel() for part in parts])


_sent(_FLAT, "GRR", "GRR_Client", 17)
_sent(_FLAT, "UE", "UE_Client", 17, True, how="(optimal)")
_sent(_FLAT, "UE", "UE_Client", 17, False, how="(symmetric)")
_sent(_FLAT, "HE", "HE_Client", 18)
_sent(_FLAT, "SS", "SS_Client", 17)
_sent(_FLAT, "LH", "LH_Client", 21)
_sent(_FLAT, "ADP", "ADP_Client", 17)
_sent("mdim_freq_est", "SPL_solution", "SPL_GRR_Client", 14)
_sent("mdim_freq_est", "SMP_solution", "SMP_GRR_Client", 14)
_sent("mdim_freq_est", "RSpFD_solution", "RSpFD_GRR_Client", 9)
_sent("mdim_freq_est", "RSpFD_solution", "RSpFD_UE_zero_Client", 41)

_jax = Subjects(__name__, "jax_privacy", "jax-privacy")


@_jax(
    "noise_addition.gaussian_privatizer",
    "scalar:0,1:rows=4",
    claim=ZeroConcentratedDP(0.5),
    relation="add-remove",
    stated="noise_addition.py, by its standard deviation",
)
def gaussian(data: Any, rng: Any) -> Any:
    """Add noise to a sum of numbers in [0, 1]."""
    noise = import_module("jax_privacy.noise_addition")
    seed = int(rng.integers(2**31))
    made = noise.gaussian_privatizer(stddev=1.0, prng_key=seed)
    total = np.full(1, data.sum(), dtype=np.float32)
    noisy, _ = made.update(total, made.init(total))
    return np.asarray(noisy, dtype=np.float64)


SUBJECTS = tuple(
    each for listed in (_pydp, _pipelines, _local, _jax) for each in listed.subjects
)
"""What is audited."""
