from concurrent.futures import Executor
from dataclasses import dataclass, replace
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
from executors import PickledThreads
from refusals import refuses
from scipy.stats import beta
from tiny_profile import tiny_plan

from dpaudit import ApproxDP, InputError, Pair, PureDP, Relation, UnsupportedError
from dpaudit.algorithms import CATALOGUE, Entry, names_of
from dpaudit.datasets import load_digits
from dpaudit.profiles import PROFILES
from dpaudit.reports.experiment import cells, run, run_all
from dpaudit.reports.measures import BASELINE
from dpaudit.reports.sections import all_sections, plan
from dpaudit.reports.sections.utility.measures import FIRST_COMPONENT, RANDOM_SUBSPACE

SOME = {"repetitions": 3, "max_samples": 100, "suite_samples": 60}
SOME |= {"timings": 2, "batch": 8}


def experiment(name, profile="tiny", seed=0):
    if profile == "tiny":
        return tiny_plan(seed, **SOME)[name]
    return plan(profile, seed)[name]


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


def test_all_experiments_go_where_there_are_workers(workers):
    workers.shutdown()
    with pytest.raises(RuntimeError, match="after shutdown"):
        run_all([experiment("captured-variance")], executor=workers)


def test_long_runs_are_cut_and_progress_ends_at_one():
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
    seen = []
    run(experiment("exact-privacy"), progress=seen.append)
    fractions = [step.fraction for step in seen]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0, 1)
    assert seen[-1].done == seen[-1].total == len(seen) - 1
    assert "left" in str(seen[1])
    assert "left" not in str(seen[-1])


def test_cells_have_streams_and_points_numbers_of_their_own():
    work = [cell for each in tiny_plan().values() for cell in cells(each)]

    assert len({cell.key for cell in work}) == len(work)
    whole = experiment("captured-variance")
    grid = {"epsilon": whole.grid["epsilon"][1:]}
    part = replace(whole, mechanisms=("goe-gaussian",), grid=grid)
    expected = run(whole).query("mechanism == 'goe-gaussian' and epsilon > 0.5")
    pd.testing.assert_frame_equal(run(part), expected.reset_index(drop=True))


def test_references_and_profiles_that_grow():
    table = run(experiment("variance-references"))
    shares = dict(zip(table["mechanism"], table["captured_share"], strict=True))
    rows = load_digits().rows
    values = np.linalg.svd(rows, compute_uv=False) ** 2
    best = values[:10].sum()
    assert 0.9999 < shares[BASELINE] < 1
    # Clipping tilts the first direction by next to nothing.
    assert shares[FIRST_COMPONENT] == pytest.approx(values[0] / best, rel=1e-4)
    # A random projection is 10/64 of the identity on average.
    assert shares[RANDOM_SUBSPACE] == pytest.approx(10 / 64 * values.sum() / best)
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


@dataclass(frozen=True)
class Stated:
    """Says its exact loss: so much beyond its claim, or nothing if that is None."""

    epsilon: float
    delta: float
    excess: float | None
    relation = Relation.ADD_REMOVE

    @property
    def claim(self):
        return ApproxDP(self.epsilon, self.delta)

    def worst_case(self):
        return Pair([[0.0]], [[0.0], [1.0]])

    def release(self, data, *, rng):
        raise AssertionError("nothing is drawn here")

    def exact_claim(self, pair):
        if self.excess is None:
            raise UnsupportedError("no formula")
        if self.delta == 0:
            return PureDP(self.epsilon * (1 + self.excess))
        return ApproxDP(self.epsilon, self.delta * (1 + self.excess))


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize(
    ("excess", "says"),
    [(-1e-6, "kept"), (1e-12, "kept"), (1e-8, "false"), (None, "not known")],
)
def test_a_claim_is_false_by_little_or_kept_or_not_known(
    monkeypatch, delta, excess, says
):
    # At delta = 1e-5 the first violation is one of 1e-13 in delta.
    def made(epsilon, **options):
        return Stated(epsilon, delta, excess)

    entry = Entry("stated", "covariance", "-", "-", made, approximate=True)
    monkeypatch.setitem(CATALOGUE, "stated", entry)
    table = run(replace(experiment("exact-privacy"), mechanisms=("stated",)))
    assert set(table["claim"]) == {says}
    for _, row in table.iterrows():
        found = row["exact_delta"], row["exact_epsilon"]
        if excess is None:
            assert np.isnan(found).all()
        else:
            truth = made(row["epsilon"]).exact_claim(None)
            assert found == (truth.delta_at(row["epsilon"]), truth.epsilon_at(delta))


def test_the_wall_refutes_what_is_false_and_says_how_fast():
    some = ("symmetric-noise", "symmetrised-wishart")
    table = run(replace(experiment("privacy-wall"), mechanisms=some))
    (_, broken), (_, standing) = table.iterrows()
    assert (broken["verdict"], standing["verdict"]) == ("REFUTED", "NOT_REFUTED")
    assert broken["samples_to_refute"] < broken["samples"] <= broken["max_samples"]
    assert isinstance(broken["witness"], str)
    assert np.isnan(standing["samples_to_refute"])
    # A lower bound never exceeds the truth (at confidence 0.999 each, fixed seed).
    assert (table["epsilon_lower"] <= table["exact_epsilon"]).all()
    assert (table["delta_lower"] <= table["exact_delta"]).all()


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [
        ("privacy-wall", "private-subspace-published"),
        ("robust-audits", "noiseless-ggd"),
        ("textbook-suite", "noisy-hist-2"),
    ],
)
def test_a_bound_is_what_the_counts_beside_it_prove(name, mechanism):
    """By Clopper and Pearson's limits, for the event or the other way round."""
    table = run(replace(experiment(name), mechanisms=(mechanism,)))
    (row,) = table[table["verdict"].eq("REFUTED")].to_dict("records")
    n, (x, y) = row["max_samples"], sorted((row["hits"], row["hits_neighbour"]))
    half = (1 - row["confidence"]) / 2
    p = beta.ppf(half, y, n - y + 1) if y else 0.0
    q = beta.isf(half, x + 1, n - x) if x < n else 1.0
    sides, delta = ((p, q), (1 - q, 1 - p)), row["claimed_delta"]
    epsilons = [np.log((a - delta) / b) for a, b in sides if a > delta]
    deltas = [a - np.exp(row["claimed_epsilon"]) * b for a, b in sides]
    assert row["epsilon_lower"] == pytest.approx(max(0.0, *epsilons))
    assert row["delta_lower"] == pytest.approx(max(0.0, *deltas))


def test_the_suite_is_the_textbook_family_beside_its_truth():
    suite = experiment("textbook-suite")
    assert suite.mechanisms == names_of("textbook")
    few = ("svt-3", "gaussian", "symmetric-noise")
    table = run(replace(suite, mechanisms=few)).set_index("mechanism")
    # Epsilon and the relation are the catalogue's own.
    assert list(table["claimed_epsilon"]) == [0.1, 1.0, 1.0]
    assert list(table["claimed_delta"]) == [0.0, 1e-5, 0.0]
    assert table.loc["svt-3", "relation"] == "replace-one"
    truths = [np.inf, 1, np.nan]  # the last is not stated
    np.testing.assert_allclose(table["true_epsilon"], truths, rtol=1e-9)
    assert table["witness"].notna().equals(table["verdict"].eq("REFUTED"))


def test_run_times_are_measured_here_and_compared_with_the_baseline():
    class Forbidden(Executor):
        def submit(self, *args, **kwargs):
            raise AssertionError("neighbours would disturb the measurement")

    few = replace(experiment("run-time"), mechanisms=(BASELINE, "analyze-gauss"))
    table = run(few, executor=Forbidden())
    assert table["mechanism"].iloc[0] == BASELINE
    assert len(table) == SOME["timings"] * 2
    assert (table["fit_seconds"] > 0).all()
    baseline = table["mechanism"] == BASELINE
    assert table.loc[baseline, "releases_per_second"].isna().all()
    assert (table.loc[~baseline, "releases_per_second"] > 0).all()


def failing(cell):
    raise InputError(f"no luck with {cell.mechanism}")


def test_a_failing_cell_stops_the_run_in_a_worker_too(workers):
    broken = replace(experiment("exact-privacy"), measure=pd.DataFrame)
    refuses("DataFrame constructor", run, broken, executor=workers, error=ValueError)
    refuses("no luck with analyze-gauss", run, replace(broken, measure=failing))
