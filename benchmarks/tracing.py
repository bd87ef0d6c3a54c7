"""Fingerprinting codes: drawing them, scoring them, and what tracing shows.

``python -m benchmarks.tracing`` scores ten thousand users at a hundred thousand
positions, a gigabyte of symbols. Targets, on one core: 10 s, and less than 2 GB.
"""

import resource
from time import perf_counter

import numpy as np

from dpaudit.attacks.tracing_attack import TracingAttack
from dpaudit.audit.one_run.canaries import audit_canaries
from dpaudit.claims import PureDP
from dpaudit.fingerprinting import CodeLength, HardInstance, TardosCode, collude


class TardosScores:
    """Ten thousand users at ten thousand positions: a tenth of a gigabyte."""

    params = ([(10_000, 10_000)],)
    param_names = ("shape",)
    timeout = 300.0
    repeat, number, warmup_time = 2, 1, 0.0

    def setup(self, shape: tuple[int, int]) -> None:
        rng = np.random.default_rng(0)
        self.code = TardosCode.generate(*shape, cutoff=1e-3, rng=rng)
        self.word = collude(self.code.codewords[:5], "interleaving", rng=rng)

    def score(self) -> None:
        """Score everybody; the pirates are found."""
        scores = self.code.scores(self.word)
        assert scores[:5].min() > scores[5:].max()

    def time_scores(self, shape: tuple[int, int]) -> None:
        """Time the scores."""
        self.score()

    def peakmem_scores(self, shape: tuple[int, int]) -> None:
        """Measure the peak of the memory, the code and the interpreter included."""
        self.score()


class TardosGeneration:
    """A thousand users at a hundred thousand positions. Target: 1 s."""

    timeout = 60.0

    def time_generate(self) -> None:
        """Time drawing biases and codewords."""
        rng = np.random.default_rng(0)
        TardosCode.generate(1_000, 100_000, cutoff=1e-3, rng=rng)


class CodeLengths:
    """How long the shortest proven codes are."""

    params = ([2, 5, 10, 20],)
    param_names = ("coalition",)
    timeout = 60.0

    def track_length(self, coalition: int) -> int:
        """Return the length for an error of 1e-4 per innocent user, and 0.1 to miss."""
        options = {"false_accusation": 1e-4, "missing": 0.1}
        return CodeLength.calibrated(coalition, **options).length

    track_length.version = "1"  # type: ignore[attr-defined]
    track_length.unit = "positions"  # type: ignore[attr-defined]


class OneRunTightness:
    """The epsilon that canaries show of principal components without noise."""

    timeout = 60.0

    def track_epsilon_lower(self) -> float:
        """Return the bound from 20 runs with 16 canaries each, at 95 % confidence."""
        rng = np.random.default_rng(0)
        instance = HardInstance.generate(16, 256, cutoff=0.01, pad_ratio=3, rng=rng)

        def components(data: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            return np.asarray(np.linalg.svd(data, full_matrices=False)[2][0])

        found = audit_canaries(
            components,
            TracingAttack(instance),
            claim=PureDP(1.0),
            relation="add-remove",
            runs=20,
        )
        return found.bound.value

    track_epsilon_lower.version = "1"  # type: ignore[attr-defined]
    track_epsilon_lower.unit = "epsilon"  # type: ignore[attr-defined]


if __name__ == "__main__":
    bench = TardosScores()
    begun = perf_counter()
    bench.setup((10_000, 100_000))
    made = perf_counter()
    bench.score()
    scored = perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"10,000 users, 100,000 positions: drawn in {made - begun:.1f} s, scored in "
        f"{scored - made:.2f} s, peak {peak:.2f} GB"
    )
