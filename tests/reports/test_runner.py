from concurrent.futures import Executor
from dataclasses import dataclass, replace
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
from executors import PickledThreads
from tiny_profile import tiny_plan

from dpaudit.algorithms import CATALOGUE, build, names_of
from dpaudit.algorithms.catalogue import Entry
from dpaudit.claims import ApproxDP, PureDP
from dpaudit.datasets import load_digits
from dpaudit.errors import InputError, UnsupportedError
from dpaudit.neighbours import Pair, Relation
from dpaudit.profiles import PROFILES
from dpaudit.reports.experiment import cells, run
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.sections import all_sections, plan
from dpaudit.reports.sections.utility.measures import FIRST_COMPONENT, RANDOM_SUBSPACE

SOME = {"repetitions": 3, "max_samples": 300, "suite_samples": 150, "timings": 2}


def experiment(name, profile="tiny", seed=0):
    if profile == "tiny":
        return tiny_plan(seed, **SOME)[name]
    return plan(profile, seed)[name]


def test_every_profile_visits_the_audited_epsilon():
    for profile in PROFILES:
        grid = experiment("captured-variance", profile).grid["epsilon"]

        assert grid == experiment("exact-privacy", profile).grid["epsilon"]
        assert grid[0] == pytest.approx(0.1)
        assert grid[-1] == pytest.approx(10)
        assert any(e == pytest.approx(1) for e in grid)


def test_profiles_grow():
    for section in all_sections().values():
        if section.sizes:
            quick, standard, full = (section.sizes[name] for name in PROFILES)
            for small, large in ((quick, standard), (standard, full)):
                for name, value in vars(small).items():
                    more = getattr(large, name)
                    if isinstance(value, int):
                        assert value <= more, name
                    else:
                        assert len(value) <= len(more), name
                        assert max(value) <= max(more), name
                assert small != large


@pytest.fixture
def workers():
    """Stand-ins for two processes; real ones work in test_cli_compare.py."""
    with PickledThreads(2, mp_context=get_context("spawn")) as executor:
        yield executor


def test_same_seed_same_table_whoever_works(workers):
    variance = experiment("captured-variance", seed=5)
    wall = replace(experiment("privacy-wall"), mechanisms=("goe-gaussian",))
    for each in (variance, wall):
        alone, together = run(each), run(each, executor=workers)
        pd.testing.assert_frame_equal(alone, together, check_exact=True)
        if each is variance:
            other = run(replace(each, seed=6))
            assert not np.array_equal(alone["captured_share"], other["captured_share"])


def test_a_point_keeps_its_numbers_when_others_leave():
    whole = experiment("captured-variance")
    part = replace(
        whole, mechanisms=("goe-gaussian",), grid={"epsilon": whole.grid["epsilon"][1:]}
    )

    expected = run(whole).query("mechanism == 'goe-gaussian' and epsilon > 0.5")
    pd.testing.assert_frame_equal(run(part), expected.reset_index(drop=True))


def test_long_runs_are_cut_into_batches_with_streams_of_their_own():
    single = replace(
        experiment("captured-variance"),
        mechanisms=("goe-gaussian",),
        grid={"epsilon": (1.0,)},
        repetitions=259,
    )

    batches = [(cell.first, cell.size) for cell in cells(single)]
    assert batches == [(0, 256), (256, 3)]
    table = run(single)
    assert list(table["repetition"]) == [*range(259)]
    assert table["captured_share"].nunique() == 259


def test_every_cell_has_a_stream_of_its_own():
    work = [cell for each in tiny_plan().values() for cell in cells(each)]

    assert len({cell.key for cell in work}) == len(work)


def test_captured_variance_against_a_loop_over_releases():
    cell = next(
        c for c in cells(experiment("captured-variance")) if c.point["epsilon"] == 1.0
    )
    rows = load_digits().rows
    mechanism = build(cell.mechanism, epsilon=1.0, row_norm=cell.options["row_norm"])
    releases = mechanism.draw(rows, cell.size, rng=cell.rng())

    expected = []
    for release in releases:
        _, vectors = np.linalg.eigh(release)
        kept = np.linalg.norm(rows @ vectors[:, -10:]) ** 2
        best = np.sum(np.linalg.svd(rows, compute_uv=False)[:10] ** 2)
        expected.append(kept / best)

    table = run(experiment("captured-variance"))
    own = table[(table["mechanism"] == cell.mechanism) & (table["epsilon"] == 1.0)]
    np.testing.assert_allclose(own["captured_share"], expected, rtol=1e-10)


def test_references():
    table = run(experiment("variance-references"))
    shares = dict(zip(table["mechanism"], table["captured_share"], strict=True))

    rows = load_digits().rows
    values = np.linalg.svd(rows, compute_uv=False) ** 2
    rng = np.random.default_rng(0)
    frames = np.linalg.qr(rng.standard_normal((4000, 64, 10))).Q
    moment = rows.T @ rows
    random = np.einsum("tdk,de,tek->t", frames, moment, frames, optimize=True)
    random /= values[:10].sum()
    assert 0.9999 < shares[BASELINE] < 1
    # Clipping tilts the first direction by next to nothing.
    assert shares[FIRST_COMPONENT] == pytest.approx(
        values[0] / values[:10].sum(), rel=1e-4
    )
    # Six standard errors: fails by chance once in 5e8 times.
    error = 6 * random.std() / np.sqrt(len(random))
    assert abs(shares[RANDOM_SUBSPACE] - random.mean()) < error


def test_exact_privacy_tells_true_claims_from_false_ones():
    table = run(experiment("exact-privacy")).set_index(["mechanism", "epsilon"])

    broken = table.loc["symmetric-noise"]
    assert set(broken["claim"]) == {"false"}
    assert np.isinf(broken["exact_epsilon"]).all()
    np.testing.assert_allclose(broken["exact_delta"], 1 - np.exp(-broken.index))
    for name in ("analyze-gauss", "goe-gaussian", "symmetrised-wishart"):
        assert set(table.loc[name, "claim"]) == {"kept"}
    # The classical calibration is proven below epsilon = 1 only, and fails at 10.
    assert list(table.loc["analyze-gauss-published", "claim"]) == [
        "kept",
        "kept",
        "false",
    ]


class Opaque:
    def __init__(self, epsilon, **options):
        self._inner = CATALOGUE["symmetrised-wishart"].build(epsilon=epsilon)
        self.claim, self.relation = self._inner.claim, self._inner.relation
        self.worst_case = self._inner.worst_case

    def exact_claim(self, pair):
        raise UnsupportedError("no formula")


def test_an_unsupported_exact_claim_is_not_known(monkeypatch):
    entry = Entry("opaque", "covariance", "-", "-", Opaque, approximate=False)
    monkeypatch.setitem(CATALOGUE, "opaque", entry)

    row = run(replace(experiment("exact-privacy"), mechanisms=("opaque",))).iloc[0]

    assert row["claim"] == "not known"
    assert np.isnan(row["exact_epsilon"])
    assert np.isnan(row["exact_delta"])


@dataclass(frozen=True)
class Overdrawn:
    """Its exact loss is beyond its claim: in epsilon if that is pure, or in delta."""

    epsilon: float
    delta: float
    excess: float
    relation = Relation.ADD_REMOVE

    @property
    def claim(self):
        return ApproxDP(self.epsilon, self.delta)

    def worst_case(self):
        return Pair([[0.0]], [[0.0], [1.0]])

    def release(self, data, *, rng):
        raise AssertionError("nothing is drawn here")

    def exact_claim(self, pair):
        if self.delta == 0:
            return PureDP(self.epsilon * (1 + self.excess))
        return ApproxDP(self.epsilon, self.delta * (1 + self.excess))


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize(
    ("excess", "says"),
    [(-1e-6, "kept"), (1e-12, "kept"), (1e-8, "false"), (1e-4, "false"), (1, "false")],
)
def test_a_claim_is_false_by_little_or_by_much(monkeypatch, delta, excess, says):
    # At delta = 1e-5 the first violation is one of 1e-13 in delta.
    entry = Entry(
        "overdrawn",
        "covariance",
        "-",
        "-",
        lambda epsilon, **options: Overdrawn(epsilon, delta, excess),
        approximate=True,
    )
    monkeypatch.setitem(CATALOGUE, "overdrawn", entry)
    table = run(replace(experiment("exact-privacy"), mechanisms=("overdrawn",)))
    assert set(table["claim"]) == {says}
    for _, row in table.iterrows():
        truth = Overdrawn(row["epsilon"], delta, excess).exact_claim(None)
        assert row["exact_delta"] == truth.delta(row["epsilon"])
        assert row["exact_epsilon"] == truth.epsilon(delta)


def test_the_wall_refutes_what_is_false_and_says_how_fast():
    # All of them are audited in audit/checks.
    some = ("symmetric-noise", "symmetrised-wishart", "private-subspace-published")
    whole = experiment("privacy-wall")
    assert set(some) < set(whole.mechanisms)
    table = run(replace(whole, mechanisms=some)).set_index("mechanism")

    false = [name for name in table.index if CATALOGUE[name].expected_refuted]
    broken = table.loc[false]
    assert set(broken["verdict"]) == {"REFUTED"}
    assert (broken["samples"] == 300).all()
    assert (broken["samples_to_refute"] < 300).all()
    assert (broken["epsilon_lower"] > 1).all()
    assert all(isinstance(witness, str) for witness in broken["witness"])
    standing = table.drop(false)
    assert set(standing["verdict"]) == {"NOT_REFUTED"}
    assert standing["samples_to_refute"].isna().all()
    # A lower bound never exceeds the truth (at confidence 0.999 each, fixed seed).
    known = table[table["claim"] != "not known"]
    assert (known["epsilon_lower"] <= known["exact_epsilon"]).all()
    assert (known["delta_lower"] <= known["exact_delta"]).all()


def test_the_suite_is_the_textbook_family_beside_its_truth():
    suite = experiment("textbook-suite")
    assert suite.mechanisms == names_of("textbook")
    few = ("noisy-hist-2", "svt-3", "gaussian", "laplace-under-noised")

    table = run(replace(suite, mechanisms=few)).set_index("mechanism")

    # Epsilon and the relation are the catalogue's own.
    assert list(table["claimed_epsilon"]) == [0.1, 0.1, 1.0, 1.0]
    assert list(table["claimed_delta"]) == [0.0, 0.0, 1e-5, 0.0]
    assert table.loc["svt-3", "relation"] == "replace-one"
    np.testing.assert_allclose(table["true_epsilon"], [10, np.inf, 1, 2], rtol=1e-9)
    hist = table.loc["noisy-hist-2"]
    assert hist["verdict"] == "REFUTED"
    assert hist["samples_to_refute"] < hist["samples"] == 150
    assert 0.1 < hist["epsilon_lower"]
    assert (table["epsilon_lower"] <= table["true_epsilon"]).all()
    assert table["witness"].notna().equals(table["verdict"].eq("REFUTED"))


def test_a_truth_that_a_mechanism_does_not_state_is_not_known():
    suite = replace(experiment("textbook-suite"), mechanisms=("symmetric-noise",))

    assert run(suite)["true_epsilon"].isna().all()


def test_run_times_are_measured_here_and_compared_with_the_baseline():
    class Forbidden(Executor):
        def submit(self, *args, **kwargs):
            raise AssertionError("neighbours would disturb the measurement")

    whole = experiment("run-time")
    few = (BASELINE, "analyze-gauss", "power-method")
    assert set(few) < set(whole.mechanisms)
    table = run(replace(whole, mechanisms=few), executor=Forbidden())

    assert table["mechanism"].iloc[0] == BASELINE
    assert len(table) == SOME["timings"] * table["mechanism"].nunique()
    assert (table["fit_seconds"] > 0).all()
    baseline = table["mechanism"] == BASELINE
    assert table.loc[baseline, "releases_per_second"].isna().all()
    assert (table.loc[~baseline, "releases_per_second"] > 0).all()


def test_progress_ends_at_one():
    seen = []

    run(experiment("exact-privacy"), progress=seen.append)

    fractions = [step.fraction for step in seen]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0, 1)
    assert seen[-1].done == seen[-1].total == len(seen) - 1
    assert "left" in str(seen[1])
    assert "left" not in str(seen[-1])


def failing(cell):
    raise InputError(f"no luck with {cell.mechanism}")


def test_a_failing_cell_stops_the_run_in_a_worker_too(workers):
    broken = replace(experiment("exact-privacy"), measure=pd.DataFrame)
    with pytest.raises(ValueError, match="DataFrame constructor"):
        run(broken, executor=workers)
    with pytest.raises(InputError, match="no luck with analyze-gauss"):
        run(replace(broken, measure=failing))
