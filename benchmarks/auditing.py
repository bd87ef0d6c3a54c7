"""How few releases the audit needs, how tight it is, and how little time it adds."""

import math
import time

import numpy as np

from dpaudit.algorithms import CATALOGUE, GOEGaussian, SymmetricNoise, build
from dpaudit.audit import Budget, audit
from dpaudit.reports.bench.lower_bounds import Tightness
from dpaudit.reports.bench.refutation import RefutationStudy
from dpaudit.reports.bench.study import Record, Study, seed_of

SEEDS = 21


def cases(study: Study, profile: str) -> list[str]:
    """Return the cases of a study of ``dpaudit bench-audit``."""
    return list(dict.fromkeys(unit.case for unit in study.units(profile)))


def row_of(study: Study, case: str) -> Record:
    """Return a row of its tables: a quick run's, or if that has none of its first run.

    Runs have the same seeds in all profiles.
    """
    units = [unit for unit in study.units("quick") if unit.case == case]
    if not units:
        units = [unit for unit in study.units("full") if unit.case == case][:1]
    records = {unit: study.measure(unit) for unit in units}
    (row,) = (row for table in study.tables("full", records) for row in table.rows)
    return row.data


class SuiteRefutation:
    """False claims of the textbook suite, as ``dpaudit bench-audit`` refutes them."""

    params = (cases(RefutationStudy(), "full"),)
    param_names = ("mechanism",)
    version = "1"
    unit = "releases a side"
    timeout = 120.0

    def track_samples_to_refute(self, case: str) -> float:
        """Return the median number, NaN if half of the runs end without."""
        measured = row_of(RefutationStudy(), case)["measured"]
        return math.nan if measured is None else float(measured)


class StudiedTightness:
    """Laplace and Gaussian noise, as ``dpaudit bench-audit`` bounds their epsilon."""

    params = (cases(Tightness(), "quick"),)
    param_names = ("case",)
    version = "1"
    unit = "share of the true epsilon"
    timeout = 120.0

    def track_epsilon_tightness(self, case: str) -> float:
        """Return the median bound over the truth, at confidence 95 %."""
        row = row_of(Tightness(), case)
        return float(row["measured"] / row["truth"])


class SuiteTightness:
    """All mechanisms of the textbook suite whose true epsilon is known and finite."""

    params = ([n for n, e in CATALOGUE.items() if math.isfinite(e.truth or math.inf)],)
    param_names = ("mechanism",)
    version = "1"
    unit = "share of the true epsilon"

    def track_epsilon_tightness(self, name: str) -> float:
        """Return the bound from 20,000 releases a side, at confidence 0.999."""
        truth = CATALOGUE[name].truth
        assert truth is not None
        seed = seed_of("tightness", name, 0)
        budget = Budget(20_000, stop=False)
        result = audit(build(name), confidence=0.999, seed=seed, budget=budget)
        return result.epsilon_lower / truth


class SymmetricNoiseRefutation:
    """SymmetricNoise at epsilon 1, confidence 0.999. Target: a median of 60."""

    version = "1"

    def setup(self) -> None:
        self.mechanism = SymmetricNoise.as_published(1.0)

    def track_samples_to_refute(self) -> float:
        """Return the median number of releases a side over 21 seeds."""
        return float(
            np.median(
                [audit(self.mechanism, seed=seed).samples for seed in range(SEEDS)]
            )
        )

    track_samples_to_refute.unit = "releases a side"  # type: ignore[attr-defined]

    def time_refute(self) -> None:
        """Time one refutation. Target: under one second."""
        audit(self.mechanism)


class EngineShare:
    """The audit's time over the time of drawing its releases alone."""

    version = "1"
    unit = "ratio"

    def track_audit_over_sampling(self) -> float:
        """Return the ratio for GOEGaussian at d = 20 and 200,000 releases a side."""
        mechanism = GOEGaussian.calibrated(1.0, 1e-5)
        pair = mechanism.worst_case(20)
        result = audit(mechanism, pair=pair, budget=200_000)
        rng, start = np.random.default_rng(0), time.perf_counter()
        for data in (pair.data, pair.neighbour):
            for _ in range(100):
                mechanism.draw(data, 2000, rng=rng)
        return result.seconds / (time.perf_counter() - start)
