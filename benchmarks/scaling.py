"""How errors scale, against the theorems."""

import numpy as np

from dpaudit.algorithms import AnalyzeGauss
from dpaudit.datasets import spiked_gaussian
from dpaudit.rows import normalise_rows
from dpaudit.streams import stream
from dpaudit.subspace import projector_distance, second_moment, top_components

DIMENSION = 20
COMPONENTS = 2
TRIALS = 200


def projector_errors(epsilons: np.ndarray) -> np.ndarray:
    """Return the mean spectral distance of the projectors at each epsilon.

    Far from the noise (a large eigengap), where Theorem 7 of Dwork et al. 2014
    predicts an error proportional to 1/epsilon.
    """
    rows = normalise_rows(
        spiked_gaussian(20_000, DIMENSION, spikes=[30.0, 20.0], rng=stream(0, 0)).rows
    )
    best = top_components(second_moment(rows), COMPONENTS)
    errors = []
    for index, epsilon in enumerate(epsilons):
        mechanism = AnalyzeGauss.as_published(float(epsilon), 1e-5)
        releases = mechanism.draw(rows, TRIALS, rng=stream(0, 1, index))
        errors.append(projector_distance(top_components(releases, COMPONENTS), best))
    return np.mean(errors, axis=1)


class ErrorExponent:
    """Measured exponents; the theorem's value stands in the method's name."""

    version = "1"
    unit = "exponent"

    def track_analyze_gauss_epsilon_minus_one(self) -> float:
        """Return the slope of log error over log epsilon for AnalyzeGauss."""
        epsilons = np.geomspace(0.1, 10.0, 9)
        slope, _ = np.polyfit(np.log(epsilons), np.log(projector_errors(epsilons)), 1)
        return float(slope)
