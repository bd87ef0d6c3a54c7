"""How few releases the audit needs, and how little time it adds."""

import time

import numpy as np

from dpaudit.algorithms import GOEGaussian, SymmetricNoise
from dpaudit.audit import audit

SEEDS = 21


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
        result = audit(mechanism, pair=pair, max_samples=200_000)
        rng, start = np.random.default_rng(0), time.perf_counter()
        for data in (pair.data, pair.neighbour):
            for _ in range(100):
                mechanism.draw(data, 2000, rng=rng)
        return result.seconds / (time.perf_counter() - start)
