"""Fits of the estimator against fits without privacy by scikit-learn, in one run."""

import numpy as np
from sklearn.decomposition import PCA

from benchmarks.samplers import median_ratio
from dpaudit import PrivatePCA

COMPONENTS = 5


class FitRatio:
    """Time of a private fit over that of ``PCA(svd_solver="covariance_eigh")``.

    On a million rows of Covertype's 54 columns. Target: at most 1.3.
    """

    version = "1"
    unit = "ratio"
    params = ([(1_000_000, 54), (100_000, 200)],)
    param_names = ("shape",)
    timeout = 300.0

    def setup(self, shape: tuple[int, int]) -> None:
        self.rows = np.random.default_rng(0).standard_normal(shape)
        self.rows /= np.linalg.norm(self.rows, axis=1, keepdims=True)

    def ratio(self, **options: object) -> float:
        """Return the median ratio over interleaved runs."""
        private = PrivatePCA(COMPONENTS, random_state=0, **options)  # type: ignore[arg-type]
        public = PCA(COMPONENTS, svd_solver="covariance_eigh")
        return median_ratio(
            lambda: private.fit(self.rows), lambda: public.fit(self.rows)
        )

    def track_auto(self, shape: tuple[int, int]) -> float:
        """Return the ratio of the default mechanism, no row too long."""
        return self.ratio(row_norm=1.01)

    def track_clipped(self, shape: tuple[int, int]) -> float:
        """Return the ratio where every row is scaled."""
        return self.ratio(row_norm=0.5)

    def track_pure(self, shape: tuple[int, int]) -> float:
        """Return the ratio of pure differential privacy."""
        return self.ratio(row_norm=1.01, delta=0.0)

    def track_private_centre(self, shape: tuple[int, int]) -> float:
        """Return the ratio of two passes."""
        return self.ratio(row_norm=1.01, center="private")
