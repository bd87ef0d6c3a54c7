"""Draws of subspaces by the exponential mechanism: time, and what is accepted."""

import numpy as np

from dpaudit.algorithms.subspace.bingham import VectorBingham, log_bingham_normaliser

ROWS = 20_000


def typical_spectrum(dimension: int) -> np.ndarray:
    """Return the eigenvalues of A for unit rows: 1/i for the i-th, up to a factor."""
    values = 1 / np.arange(1, dimension + 1)
    return np.asarray(ROWS * values / values.sum())


class BinghamDraw:
    """Draws after setup, on the moment of 20,000 rows at epsilon = 1.

    Target: at most 5 ms for one at d = 54.
    """

    params = ([8, 54, 200],)
    param_names = ("dimension",)

    def setup(self, dimension: int) -> None:
        self.moment = np.diag(typical_spectrum(dimension))
        self.law = VectorBingham(self.moment)
        self.rng = np.random.default_rng(0)

    def time_draw_1(self, dimension: int) -> None:
        """Time one draw."""
        self.law.draw(1, rng=self.rng)

    def time_draw_1000(self, dimension: int) -> None:
        """Time 1000 draws."""
        self.law.draw(1000, rng=self.rng)

    def time_setup(self, dimension: int) -> None:
        """Time the eigendecomposition and the envelope."""
        VectorBingham(self.moment)

    def time_normaliser(self, dimension: int) -> None:
        """Time the normalising constant."""
        log_bingham_normaliser(np.diag(self.moment))


class BinghamAcceptance:
    """The probability that a proposal is accepted. Target: at least 0.05."""

    version = "1"
    unit = "probability"
    params = ([2, 8, 54, 100, 200],)
    param_names = ("dimension",)

    def track_typical_spectrum(self, dimension: int) -> float:
        """Return it for the moment of 20,000 rows at epsilon = 1."""
        return float(VectorBingham(np.diag(typical_spectrum(dimension))).acceptance)

    def track_one_dominant_direction(self, dimension: int) -> float:
        """Return its limit, and numerically its least value, in that dimension."""
        values = np.zeros(dimension)
        values[0] = 1e9
        return float(VectorBingham(np.diag(values)).acceptance)
