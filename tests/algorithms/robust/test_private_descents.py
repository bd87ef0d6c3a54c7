"""Private descent on GLAD and on REAPER, corrected and as published.

How noise is calibrated, what a transcript shows and how likely it is, where descent
leads, one run or several, bad input. That the claims hold, or fall, audit/checks sees.

Type-I error: 1e-9 for each test of a law, 2e-9 for each case of conformance; 8e-8 in
all, at fixed seeds.
"""

from dataclasses import replace
from functools import cache, partial
from itertools import product

import numpy as np
import pytest
import robust_objectives
from refusals import refused, refuses
from scipy import stats
from scipy.linalg import expm, logm
from seeded import rng

from dpaudit import ApproxDP, GaussianDP, Relation, UnsupportedError
from dpaudit.algorithms import (
    CATALOGUE,
    GeodesicDescent,
    PrivateGGD,
    PrivateSGGD,
    names_of,
)
from dpaudit.algorithms.robust import geometries, pairs
from dpaudit.algorithms.robust.descent import NoisyDescent
from dpaudit.algorithms.robust.initialisation import (
    GaussianStart,
    PowerStart,
    PrincipalStart,
    PublicStart,
    PublishedStart,
    RandomMatrixStart,
    WishartStart,
)
from dpaudit.algorithms.robust.objectives import Reaper, spherise
from dpaudit.algorithms.robust.parts import FixedNoise, PublishedNoise
from dpaudit.algorithms.robust.private_mechanisms import (
    PrivateGradientReaper,
    PrivateMirrorReaper,
    PrivateStochasticGradientReaper,
    PrivateStochasticMirrorReaper,
)
from dpaudit.algorithms.shared.batches import (
    AllRows,
    PoissonBatches,
    WithReplacement,
    padded_with_zeros,
    published_batch_size,
    taken,
)
from dpaudit.algorithms.shared.step_sizes import HalvingSteps, RootSteps
from dpaudit.algorithms.shared.subsampling import noise_multiplier, subsampled_delta
from dpaudit.attacks import GaussianTranscript, Target
from dpaudit.audit.layers.layer import view_transcript
from dpaudit.datasets import haystack
from dpaudit.gaussian import gaussian_delta, gaussian_mu
from dpaudit.mechanism import (
    HasCanonicalPairs,
    HasComponents,
    HasGaussianSteps,
    HasTranscript,
    HasWorstCase,
    Mechanism,
)
from dpaudit.subspace import projector_distance, top_components
from dpaudit.testing import run_conformance

ROWS = np.random.default_rng(0).standard_normal((30, 4))
PAPER = {"epsilon": 0.8, "delta": 2000**-0.5, "iterations": 2000}
KINDS = {
    "ggd": (PrivateGGD, PrivateSGGD),
    "gd-reap": (PrivateGradientReaper, PrivateStochasticGradientReaper),
    "md-reap": (PrivateMirrorReaper, PrivateStochasticMirrorReaper),
}
FULL = {"epsilon": 1.0, "delta": 1e-5, "n_components": 2, "iterations": 4}
FEW = FULL | {"rows": 30, "batch_size": 5}
FORMS = {}
for _name, (_full, _few) in KINDS.items():
    FORMS |= {
        f"dp-{_name}": partial(_full.calibrated, **FULL),
        f"dp-{_name}-published": partial(_full.as_published, **FULL),
        f"dp-s{_name}": partial(_few.calibrated, **FEW),
        f"dp-s{_name}, a row more": partial(
            _few.calibrated, **FEW, relation="add-remove"
        ),
        f"dp-s{_name}-published": partial(_few.as_published, **FULL, batch_size=5),
    }
forms = pytest.mark.parametrize("form", list(FORMS))
on_glad = pytest.mark.parametrize("form", [form for form in FORMS if "ggd" in form])
on_reaper = pytest.mark.parametrize("form", [form for form in FORMS if "reap" in form])


@cache
def made(form):
    """A mechanism: its noise takes a while to calibrate."""
    return FORMS[form]()


# The steps
@on_glad
def test_the_release_follows_from_the_transcript_on_glad(form):
    mechanism = made(form)
    transcript = mechanism.transcript(ROWS, 3, rng=rng(1))
    assert transcript["steps"].shape == (3, 4, 4, 2)
    values = {key: value for key, value in transcript.items() if key != "steps"}
    bases = mechanism.start.points(values, (3, 4, 2))
    batch = mechanism.batches.size_for(30)
    for step, eta in enumerate(HalvingSteps().sizes(4)):
        bases = geometries.polar(bases + eta / batch * transcript["steps"][:, step])
    releases = mechanism.draw(ROWS, 3, rng=rng(1))
    assert projector_distance(releases, bases).max() < 1e-7


def symmetric(values, d, ratio):
    """What the upper triangle stands for, entry by entry."""
    matrix = np.zeros((d, d))
    places = [(i, j) for i in range(d) for j in range(i, d)]
    for (i, j), value in zip(places, values, strict=True):
        matrix[i, j] = matrix[j, i] = value * (ratio if i == j else 1)
    return matrix


def step_by_hand(form, matrix, step):
    """One step in the geometry of the form, by matrix functions."""
    if "gd" in form:
        return robust_objectives.frobenius_projection(matrix + step, 2)
    logs = logm(matrix).real + step
    logs = (logs + logs.T) / 2
    if "published" in form:
        moved = expm(logs - np.eye(len(logs)) * np.linalg.eigvalsh(logs).max())
        return 2 * moved / np.trace(moved)
    return robust_objectives.bregman_projection(logs, 2)


@on_reaper
def test_the_release_follows_from_the_transcript_on_reaper(form):
    mechanism = replace(made(form), step_sizes=RootSteps(0.5))
    transcript = mechanism.transcript(ROWS, 3, rng=rng(1))
    assert transcript["steps"].shape == (3, 4, 10)
    releases = mechanism.draw(ROWS, 3, rng=rng(1))
    replayed = list(mechanism.replayed(transcript, 30, 4))
    published = "published" in form
    for trial in range(3):
        matrix = transcript["start"][trial] if published else np.eye(4) / 2
        total = np.zeros((4, 4))
        for k in range(4):
            assert np.allclose(replayed[k][trial], matrix, atol=1e-6)
            values = transcript["steps"][trial, k]
            noisy = symmetric(values, 4, 1 if published else np.sqrt(2))
            rate = 0.5 / np.sqrt(k + 1) / mechanism.batches.size_for(30)
            matrix = step_by_hand(form, matrix, rate * noisy)
            total += matrix
        basis = top_components(total / 4, 2)
        assert projector_distance(releases[trial], basis) < 1e-6


@forms
def test_releases_are_bases_of_extreme_data_and_enormous_steps_too(form):
    mechanism = made(form)
    releases = mechanism.draw(ROWS, 3, rng=rng(1))
    assert np.allclose(releases.swapaxes(1, 2) @ releases, np.eye(2), atol=1e-12)
    assert np.array_equal(mechanism.components(releases, 2), releases)
    one = mechanism.release(ROWS, rng=rng(2))
    assert np.array_equal(one, mechanism.draw(ROWS, 1, rng=rng(2))[0])
    assert mechanism.draw(ROWS, 0, rng=rng()).shape == (0, 4, 2)
    for data in (
        np.vstack([np.eye(4), -np.eye(4)]),
        rng(6).standard_normal((8, 2)) @ np.eye(4)[:2],
        np.repeat(np.eye(4)[:1], 8, axis=0),
    ):
        mechanism = made(form)
        release = mechanism.release(data, rng=rng(7))
        assert np.allclose(release.T @ release, np.eye(2), atol=1e-12)
        loud = mechanism.transcript(data, 2, rng=rng(7))
        assert all(np.isfinite(value).all() for value in loud.values())
    mechanism = replace(made(form), step_sizes=RootSteps(1e6))
    release = mechanism.release(ROWS, rng=rng(8))
    assert np.allclose(release.T @ release, np.eye(2), atol=1e-12)


@on_reaper
def test_every_matrix_is_in_the_set_or_renormalised(form):
    mechanism = made(form)
    transcript = mechanism.transcript(ROWS, 20, rng=rng(2))
    path = list(mechanism.replayed(transcript, 30, 4))
    assert len(path) == 4
    for matrices in path[1:]:
        values = np.linalg.eigvalsh(matrices)
        assert np.allclose(values.sum(axis=1), 2)
        assert values.min() > -1e-12
        if form not in ("dp-md-reap-published", "dp-smd-reap-published"):
            assert values.max() < 1 + 1e-12


@on_glad
def test_noise_is_what_it_says_on_glad(form):
    # Full batches have no other randomness; for the others all rows are in the span of
    # V_0 and add nothing, up to a term for each row that noise uncovers later.
    mechanism = replace(made(form), iterations=1, start=PublicStart())
    transcript = mechanism.transcript(ROWS, 1000, rng=rng(3))
    noisy, count = transcript["steps"][:, 0], len(ROWS)
    if isinstance(mechanism, HasGaussianSteps):
        means = mechanism.step_means(transcript, ROWS)["steps"][:, 0]
        noisy = noisy - means
        expected = (
            robust_objectives.glad_gradient(spherise(ROWS), transcript["start"])
            * -count
        )
        assert np.allclose(means, expected, atol=1e-10)
    else:
        # What lies in the span of V is noise alone.
        noisy = transcript["start"].swapaxes(1, 2) @ noisy
    assert robust_objectives.looks_standard_normal(noisy / mechanism.noise_scale(count))


@on_reaper
def test_noise_is_what_it_says_on_reaper(form):
    mechanism = replace(made(form), iterations=1)
    # One row as often as there are rows: no batch differs from another but in number.
    rows = np.repeat(ROWS[:1], 30, axis=0)
    transcript = mechanism.transcript(rows, 2000, rng=rng(4))
    noisy, count = transcript["steps"][:, 0], len(rows)
    matrices = next(mechanism.replayed(transcript, count, 4))
    term = Reaper().term_sum(spherise(rows)[:1], matrices)
    term[:, range(4), range(4)] /= 1 if "published" in form else np.sqrt(2)
    term = term[:, *np.triu_indices(4)]
    if isinstance(mechanism, HasGaussianSteps):
        means = mechanism.step_means(transcript, rows)["steps"][:, 0]
        assert np.allclose(means, count * term)
        noisy = noisy - means
        # On the diagonal as well as above it.
        diagonal = noisy[:, [0, 4, 7, 9]]
        assert robust_objectives.looks_standard_normal(
            diagonal / mechanism.noise_scale(count)
        )
    else:
        # What is orthogonal to the term is noise alone.
        along = np.sum(noisy * term, axis=1, keepdims=True)
        along = along / np.sum(term * term, axis=1, keepdims=True)
        basis = np.linalg.svd(term[:, np.newaxis]).Vh[:, 1:]
        noisy = (basis @ (noisy - along * term)[..., np.newaxis])[..., 0]
    assert robust_objectives.looks_standard_normal(noisy / mechanism.noise_scale(count))


@pytest.mark.parametrize("form", ["dp-sggd", "dp-sggd-published", "dp-sgd-reap"])
def test_the_mean_of_a_batch_is_that_of_all_rows(form):
    mechanism = replace(made(form), iterations=1)
    if "ggd" in form:
        mechanism = replace(mechanism, start=PublicStart())
    transcript = mechanism.transcript(ROWS, 10_000, rng=rng(5))
    points = next(mechanism.replayed(transcript, 30, 4))
    every = mechanism.objective.term_sum(spherise(ROWS), points) / 30
    seen = transcript["steps"][:, 0] / mechanism.batches.size_for(30)
    seen = seen - mechanism.objective.flattened(every)
    z = seen.mean(axis=0) / (seen.std(axis=0) / np.sqrt(len(seen)))
    assert np.abs(z).max() < stats.norm.isf(robust_objectives.TYPE_I_ERROR / 20)


def test_many_runs_are_made_in_parts_with_rows_of_their_own():
    # Of rows so long, two runs go side by side.
    mechanism = PrivateGGD.calibrated(1.0, 1e-5, iterations=1, start=PublicStart())
    long = np.eye(2, 2**19)
    releases = mechanism.draw(long, 5, rng=rng(6))
    assert len(np.unique(releases[:, 0, 0])) == 5
    assert np.array_equal(releases[:2], mechanism.draw(long, 2, rng=rng(6)))
    assert Reaper().point_size(7, 2) == 49
    rows = rng().standard_normal((3, 4, 2))
    batches = np.array([[0, 4], [3, 3], [1, 0]])
    padded = padded_with_zeros(rows)
    found = taken(padded, batches)
    assert found.shape == (3, 2, 2)
    assert np.array_equal(found[0], [rows[0, 0], [0, 0]])
    assert np.array_equal(found[1], [rows[1, 3], rows[1, 3]])
    assert np.array_equal(taken(padded[2], batches[2:]), found[2:])
    assert padded_with_zeros(np.empty((0, 2))).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("kind", [PrivateGradientReaper, PrivateMirrorReaper])
def test_without_noise_descent_minimises(kind):
    data = haystack(200, 6, 2, inlier_share=0.7, rng=rng(7))
    mechanism = kind(
        n_components=2, claim=GaussianDP(1.0), noise=FixedNoise(1e-9), iterations=300
    )
    values = [
        float(robust_objectives.reaper(data.rows, average[0]))
        for average in mechanism.iterates([data.rows], rng=rng(8))
    ][1:]
    # The subspace is the minimiser here, and the averages come to it like 1/sqrt k.
    least = float(robust_objectives.reaper(data.rows, data.subspace @ data.subspace.T))
    excess = (np.array(values) - least) * np.sqrt(np.arange(1, 301))
    assert excess.min() > 0
    assert excess.max() < 2
    release = mechanism.release(data.rows, rng=rng(8))
    assert geometries.squared_distance(release, data.subspace) < 1e-3


@pytest.mark.parametrize("name", list(KINDS))
def test_private_descent_finds_the_subspace_where_rows_are_many(name):
    data = haystack(20_000, 6, 2, inlier_share=0.7, rng=rng(9))
    full, few = KINDS[name]
    on_glad = HalvingSteps(0.5, period=20) if "ggd" in name else None
    options = FULL | {"epsilon": 2.0, "iterations": 50}
    for mechanism in (
        full.calibrated(**options, step_sizes=on_glad),
        few.calibrated(**options, step_sizes=on_glad or RootSteps(1.0), rows=20_000),
    ):
        # On many datasets a tenth of that was seen.
        bases = mechanism.draw(data.rows, 2, rng=rng(10))
        assert geometries.squared_distance(bases, data.subspace).max() < 0.01


# Calibration
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_full_batch_noise_on_glad_is_that_of_the_composition(share):
    mechanism = PrivateGGD.calibrated(0.7, 1e-4, iterations=9, start_share=share)
    mu = gaussian_mu(0.7, 1e-4)
    assert np.isclose(mechanism.start.mu**2, share * mu**2)
    assert mechanism.start.claim == GaussianDP(mechanism.start.mu)
    assert np.isclose(
        mechanism.start.mu**2 + 9 * (2 / mechanism.noise.sigma) ** 2, mu**2
    )
    tree = mechanism.budget
    assert (tree.epsilon, tree.delta) == (0.7, 1e-4)
    assert [part.name for part in tree.parts] == ["start", "steps"]
    assert tree.parts[0].epsilon == mechanism.start.claim.epsilon_at(1e-4) < 0.7
    assert tree.note == ""


def test_noise_on_reaper_is_that_of_the_composition_or_the_accountant():
    for kind in (PrivateGradientReaper, PrivateMirrorReaper):
        mechanism = kind.calibrated(0.7, 1e-4, iterations=9)
        assert np.isclose(mechanism.noise.sigma, 3 / gaussian_mu(0.7, 1e-4))
        assert mechanism.budget.epsilon == 0.7
        # Step 1 moves by 1 in the coordinates of the transcript, and no more.
        pair = mechanism.worst_case()
        transcript = mechanism.transcript(pair.data, 1, rng=rng(9))
        first, second = (
            mechanism.step_means(transcript, rows)["steps"][0]
            for rows in (pair.data, pair.neighbour)
        )
        moved = np.linalg.norm(first - second, axis=1)
        assert np.isclose(moved[0], 1, rtol=1e-12)
        assert moved.max() <= 1 + 1e-12
    mechanism = made("dp-sgd-reap")
    for relation, replaced in (("", "orthogonal"), (", a row more", None)):
        multiplier = noise_multiplier(
            1.0, 1e-5, rate=5 / 30, steps=4, replaced=replaced
        )
        for form in ("dp-sgd-reap", "dp-smd-reap"):
            sigma = made(form + relation).noise.sigma
            assert np.isclose(sigma, multiplier / np.sqrt(2))
    assert mechanism.batches == PoissonBatches(rate=5 / 30, batch_size=5.0)
    assert mechanism.budget.delta == 1e-5
    default = PrivateStochasticGradientReaper.calibrated(1.0, 1e-3, rows=500)
    assert default.batches.batch_size == 56


def test_other_starts_are_paid_for_and_long_sums_refused():
    mu = gaussian_mu(1.0, 1e-5)
    free = PrivateGGD.calibrated(1.0, 1e-5, iterations=9, start=PublicStart())
    assert np.isclose(free.noise.sigma, 6 / mu)
    assert free.budget.rule == "leaf"
    start = WishartStart(0.4, Relation.REPLACE_ONE)
    pure = PrivateGGD.calibrated(1.0, 1e-5, iterations=9, start=start)
    assert np.isclose(pure.noise.sigma, 6 / gaussian_mu(0.6, 1e-5))
    power = PowerStart(0.6 * mu, Relation.REPLACE_ONE)
    power = PrivateGGD.calibrated(1.0, 1e-5, iterations=9, start=power)
    assert np.isclose(power.noise.sigma, 6 / (0.8 * mu))
    for spent in (GaussianStart(mu, "replace-one"), WishartStart(1.0, "replace-one")):
        refuses("start must leave some", PrivateGGD.calibrated, 1.0, 1e-5, start=spent)
    mechanism = made("dp-sgd-reap")
    transcript = mechanism.transcript(ROWS, 1, rng=rng(9))
    with pytest.raises(UnsupportedError, match="at most 4 distinct rows, got 30"):
        mechanism.transcript_loss(transcript, ROWS, ROWS[1:])
    wishart = replace(made("dp-sggd, a row more"), start=WishartStart(0.2))
    transcript = wishart.transcript(ROWS[:3], 2, rng=rng(9))
    with pytest.raises(UnsupportedError, match="closed form"):
        wishart.transcript_loss(transcript, ROWS[:3], ROWS[:2])


@pytest.mark.parametrize(
    ("relation", "replaced"), [("replace-one", "opposite"), ("add-remove", None)]
)
def test_minibatch_noise_on_glad_is_what_the_accountant_asks_for(relation, replaced):
    mechanism = PrivateSGGD.calibrated(
        1.0, 1e-3, relation=relation, iterations=20, rows=500
    )
    assert mechanism.relation == mechanism.start.relation == relation
    assert mechanism.batches.batch_size == published_batch_size(1.0, 20, 500) == 56
    assert mechanism.batches.rate == 56 / 500
    found = subsampled_delta(
        1.0,
        mechanism.noise.sigma,
        rate=mechanism.batches.rate,
        steps=20,
        start=mechanism.start.claim,
        replaced=replaced,
    )
    assert 0.98e-3 < found <= 1e-3
    assert mechanism.budget.epsilon == 1.0
    assert mechanism.budget.leaves[0].name == "start"
    free = PrivateSGGD.calibrated(
        1.0, 1e-3, relation=relation, rows=500, start=PublicStart()
    )
    assert free.noise.sigma < mechanism.noise.sigma
    assert free.budget.rule == "leaf"


def test_small_budgets_are_not_lost_and_printed_projections_leave_the_set():
    # Under so much noise all is Gaussian: a step moves by 2 q.
    mechanism = PrivateSGGD.calibrated(1e-3, 1e-9, iterations=20, start_share=0.2)
    rest = np.sqrt(0.8) * gaussian_mu(1e-3, 1e-9)
    expected = 2 * mechanism.batches.rate * np.sqrt(20) / rest
    assert mechanism.noise.sigma == pytest.approx(expected, rel=3e-3)
    mechanism = PrivateMirrorReaper.as_published(**FULL | {"epsilon": 9, "delta": 0.5})
    rows = np.repeat(ROWS[:1], 3000, axis=0)
    *_, last = mechanism.replayed(mechanism.transcript(rows, 1, rng=rng(3)), 3000, 4)
    assert np.linalg.eigvalsh(last).max() > 1.5


def test_the_published_noise_is_the_print():
    """Variances on the mean of the terms, over T/(epsilon^2 N^2)."""
    unit, log_term = 2000 / (0.8**2 * 2000**2), np.log(2000**0.5)
    ggd = PrivateGGD.as_published(**PAPER)
    assert np.isclose((ggd.noise.sigma / 2000) ** 2, unit * log_term**2)
    full = PrivateGradientReaper.as_published(**PAPER)
    expected = 32 * unit * np.log(2000 * 2000**0.5) ** 2
    assert np.isclose((full.noise.sigma / 2000) ** 2, expected)
    for kind in (PrivateSGGD, PrivateStochasticMirrorReaper):
        few = kind.as_published(**PAPER)
        assert few.batches.size_for(2000) == published_batch_size(0.8, 2000, 2000) == 20
        sigma = few.noise_scale(2000) / 20
        assert np.isclose(sigma**2, (20 / 2000) ** 2 * unit * log_term)
        assert np.isclose(sigma, 5.4e-4, rtol=0.02)
    assert published_batch_size(0.8, 10**6, 100) == 1
    assert published_batch_size(9.0, 1, 100) == 100
    start = PublishedStart(0.8)
    assert ggd.start == PrivateSGGD.as_published(**PAPER).start == start


@pytest.mark.parametrize("delta", [1e-9, 0.05])
@pytest.mark.parametrize("epsilon", [0.1, 1.3])
def test_the_published_full_batch_steps_keep_their_promise(epsilon, delta):
    mechanism = PrivateGGD.as_published(epsilon, delta, iterations=7)
    mu = np.sqrt(7) * 2 / mechanism.noise.sigma
    assert np.isclose(mu, 2 * epsilon / np.log(1 / delta))
    assert gaussian_delta(epsilon, mu) <= delta
    mechanism = PrivateGradientReaper.as_published(epsilon, delta, iterations=20)
    mu = np.sqrt(20) * np.sqrt(2) / mechanism.noise.sigma
    assert np.isclose(mu, epsilon / (4 * np.log(20 / delta)))
    assert gaussian_delta(epsilon, mu) < 1e-12
    assert str(mechanism.budget).endswith(f"; {mu:.4g}-GDP")


# What a mechanism is
@pytest.mark.parametrize("name", names_of("robust"))
def test_entries_build_and_say_what_they_are(name):
    entry = CATALOGUE[name]
    mechanism = entry.build(epsilon=0.3, n_components=2)
    assert isinstance(mechanism, Mechanism)
    assert isinstance(mechanism, HasComponents)
    assert isinstance(mechanism, HasWorstCase)
    descends = entry.name not in ("irls-reaper", "fms")
    assert isinstance(mechanism, HasTranscript) == descends
    assert mechanism.relation is entry.relations[0]
    promised = ApproxDP(0.3, 1e-5).parameters if entry.approximate else {"epsilon": 0.3}
    assert mechanism.claim.parameters == promised
    pair = mechanism.worst_case(5)
    assert pair.relation is mechanism.relation
    assert pair.data.shape[1] == 5
    # Two further directions, where one row goes from one to the other.
    random = entry.name in ("dp-sgd-reap-published", "dp-smd-reap-published")
    apart = entry.name.endswith(("-reap", "-reap-published")) and not random
    assert entry.build().worst_case().data.shape[1] == 2 + apart
    refuses(f"an integer >= {3 + apart}, got 2", mechanism.worst_case, 2)


test_bad_data_are_named = refused(
    (np.eye(2), "n_components must be less than the length of a row, 2, got 2"),
    ([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "row 1 is zero"),
    ([[1.0, np.inf, 0.0]], "must be finite"),
    ([1.0, 0.0], "must have shape"),
    by=lambda form, data: made(form).draw(data, 1, rng=rng()),
    each=("dp-ggd", "dp-sgd-reap-published"),
)


@pytest.mark.parametrize("name", ["ggd", "md-reap"])
def test_no_row_at_all_is_a_dataset_where_one_may_be_removed(name):
    mechanism = made(f"dp-s{name}, a row more")
    assert mechanism.draw(np.empty((0, 4)), 2, rng=rng()).shape == (2, 4, 2)
    refuses("n >= 1", made(f"dp-{name}").draw, np.empty((0, 4)), 2, rng=rng())


test_bad_arguments_are_named = refused(
    (
        lambda: PrivateGGD.calibrated(**FULL, start=GaussianStart(0.1)),
        "start must be under replace-one",
    ),
    (lambda: PrivateGGD.calibrated(**FULL, start_share=1.0), "start_share must"),
    (
        lambda: PrivateSGGD.calibrated(**FEW | {"batch_size": 31}),
        "batch_size must be an integer >= 1 and <= 30, got 31",
    ),
    (lambda: PrivateSGGD.calibrated(**FEW | {"rows": 0}), "rows must be"),
    (lambda: PrivateSGGD.as_published(**FULL, batch_size=0), "batch_size must be"),
    (
        lambda: PrivateStochasticMirrorReaper.as_published(**FULL, batch_size=0),
        "batch_size must be",
    ),
    (
        lambda: made("dp-sggd-published").draw(ROWS[:4], 1, rng=rng()),
        "batch_size must be at most the number of rows, 4, got 5",
    ),
    (lambda: replace(made("dp-sggd").batches, rate=1.5), "rate must be at most 1"),
    (
        lambda: made("dp-gd-reap").components(np.eye(4)[None], 3),
        "n_components must be the 2",
    ),
    (lambda: pairs.lone_pair(1, 1, count=1), "dimension must be an integer >= 2"),
    (lambda: pairs.apart_pair(1, 2, count=1), "dimension must be an integer >= 3"),
    (lambda: pairs.apart_pair(1, 3, count=0), "count must be"),
)


def test_pairs_differ_where_they_say():
    pair = pairs.shown_pair(2, 4, count=5)
    assert np.allclose(np.linalg.norm(pair.data, axis=1), 1)
    assert np.allclose(pair.data[-1], np.sqrt([0, 0.5, 0.5, 0]))
    assert np.array_equal(pair.data[-1] * [1, 1, -1, 1], pair.neighbour[-1])
    more = pairs.added_pair(2, None, count=5)
    assert more.relation is Relation.ADD_REMOVE
    assert len(more.neighbour) == len(more.data) + 1 == 6
    odd = pairs.odd_pair(2, None, count=5)
    assert np.array_equal(odd.neighbour[-1], np.eye(3)[1])
    tie = pairs.balanced_pair(2, None, count=6)
    assert np.array_equal(tie.data[:-1], np.eye(3)[[0, 1, 2, 0, 1, 2]])
    assert np.allclose(tie.data[-1], np.sqrt([0, 0.5, 0.5]))
    assert np.array_equal(tie.neighbour[-1], tie.data[-1] * [1, 1, -1])
    for form in ("dp-ggd", "dp-gd-reap"):
        assert isinstance(made(form), HasCanonicalPairs)
        worst, turned = made(form).canonical_pairs()
        sigma = made(form).noise.sigma
        assert len(worst.data) == 2 * max(4, round(4 * sigma)) + 1
        assert np.array_equal(turned.data, pairs.shown_pair(2, None, count=4).data)
    loud = made("dp-gd-reap-published").worst_case()
    assert len(loud.data) == 201  # noise that hides so many hides one
    for form, count in (("dp-sggd", 9), ("dp-sggd-published", 100)):
        assert len(made(form).worst_case().data) == count
    for form, count in (("dp-sgd-reap", 9), ("dp-sgd-reap-published", 13)):
        assert len(made(form).worst_case().data) == count


# Likelihoods
def by_hand(mechanism, transcript, rows, batches, weights):
    """The log-likelihood of one transcript, by a sum over all batches."""
    sigma, total = mechanism.noise_scale(len(rows)), 0.0
    objective = mechanism.objective
    path = mechanism.replayed(transcript, len(rows), rows.shape[1])
    for step, points in enumerate(path):
        noisy = transcript["steps"][:, step]
        logs = []
        for batch, weight in zip(batches, weights, strict=True):
            sums = objective.term_sum(rows[list(batch)], points)
            squares = np.sum((noisy - objective.flattened(sums)) ** 2)
            logs.append(np.log(weight) - squares / (2 * sigma**2))
        total += np.logaddexp.reduce(logs)
    return total


few_rows = pytest.mark.parametrize("kind", [few for _, few in KINDS.values()])


@few_rows
def test_the_loss_of_poisson_samples_is_that_of_all_batches(kind):
    free = {"start": PublicStart()} if kind is PrivateSGGD else {}
    mechanism = kind(
        n_components=2,
        claim=ApproxDP(1.0, 1e-5),
        iterations=3,
        noise=FixedNoise(0.3),
        batches=PoissonBatches(rate=0.4, batch_size=2.0),
        **free,
    )
    rows = spherise(rng(4).standard_normal((3, 4)))[[0, 1, 1, 2]]
    other = rows[:-1]
    transcript = mechanism.transcript(rows, 1, rng=rng(5))
    sides = []
    for data in (rows, other):
        coins = list(product((False, True), repeat=len(data)))
        batches = [np.flatnonzero(coin) for coin in coins]
        weights = [np.prod(np.where(coin, 0.4, 0.6)) for coin in coins]
        sides.append(by_hand(mechanism, transcript, data, batches, weights))
    loss = mechanism.transcript_loss(transcript, rows, other)
    assert np.isclose(loss[0], sides[0] - sides[1])
    back = mechanism.transcript_loss(transcript, other, rows)
    assert np.isclose(back[0], -loss[0])


@few_rows
def test_the_loss_with_replacement_is_that_of_all_batches(kind):
    if kind is PrivateSGGD:
        free = {"start": PublicStart()}
    else:
        free = {"objective": Reaper(diagonal_ratio=1.0), "start": RandomMatrixStart()}
        free |= {"geometry": kind.printed_geometry, "step_sizes": RootSteps(0.5)}
    mechanism = kind(
        n_components=1,
        claim=ApproxDP(1.0, 1e-5),
        iterations=3,
        noise=PublishedNoise(1.2),
        batches=WithReplacement(batch_size=2),
        **free,
    )
    rows = spherise(rng(6).standard_normal((3, 3)))[[0, 0, 1]]
    other = spherise(rng(6).standard_normal((3, 3)))[[0, 0, 2]]
    transcript = mechanism.transcript(rows, 1, rng=rng(7))
    batches = list(product(range(3), repeat=2))
    sides = [
        by_hand(mechanism, transcript, data, batches, [1 / 9] * 9)
        for data in (rows, other)
    ]
    loss = mechanism.transcript_loss(transcript, rows, other)
    assert np.isclose(loss[0], sides[0] - sides[1])


@pytest.mark.parametrize(
    ("form", "pair"),
    [
        ("dp-sggd, a row more", pairs.added_pair(1, 2, count=3)),
        ("dp-sggd-published", pairs.odd_pair(1, 2, count=5)),
        ("dp-sgd-reap", pairs.apart_pair(1, 3, count=3)),
    ],
)
def test_watched_descents_conform_and_their_losses_are_theirs(form, pair):
    mechanism = replace(made(form), n_components=1, iterations=2)
    if "published" not in form:
        mechanism = replace(mechanism, noise=FixedNoise(0.8))
    watched = view_transcript(mechanism)
    assert watched.claim == mechanism.claim
    assert watched.worst_case().relation is watched.relation
    run_conformance(watched, pair=pair, size=500)


@pytest.mark.parametrize(
    ("kind", "share"), [(PrivateGGD, 0.3), (PrivateMirrorReaper, 0.8)]
)
def test_transcripts_of_full_batches_have_the_likelihood_of_gaussians(kind, share):
    mechanism = kind.calibrated(1.0, 1e-2, iterations=6)
    pair = mechanism.worst_case()
    target = Target(mechanism, pair)
    score = GaussianTranscript()
    sides = [
        mechanism.transcript(rows, 3000, rng=rng(10))
        for rows in (pair.data, pair.neighbour)
    ]
    assert score.applies(target, sides[0])
    ours, theirs = (score.score(target, {}, side) for side in sides)
    # E_Q[e^L] = 1, by Chebyshev at 6.5 standard errors and a bounded loss.
    weights = np.exp(theirs)
    assert abs(weights.mean() - 1) < 6.5 * weights.std() / np.sqrt(len(weights))
    # No transcript tells more than mu allows, and these tell much of it.
    mu = gaussian_mu(1.0, 1e-2)
    assert ours.mean() <= mu**2 / 2 + 6.5 * ours.std() / np.sqrt(len(ours))
    assert ours.mean() >= share * mu**2 / 2


# Parts
@pytest.mark.parametrize("geometry", [geometries.Polar(), geometries.Geodesic()])
@pytest.mark.parametrize(
    ("batches", "size"),
    [
        *((AllRows(), 30), (PoissonBatches(rate=0.5, batch_size=15.0), 15)),
        *((WithReplacement(batch_size=7), 7), (WithReplacement(share=0.5), 15)),
    ],
)
@pytest.mark.parametrize("noise", [None, FixedNoise(2.0), PublishedNoise(3.0)])
def test_any_parts_of_one_space_make_a_descent(geometry, batches, size, noise):
    mechanism = NoisyDescent(
        n_components=2,
        claim=None,
        geometry=geometry,
        batches=batches,
        noise=noise,
        start=PublicStart(),
        iterations=3,
    )
    transcript = mechanism.transcript(ROWS, 4, rng=rng(11))
    releases = mechanism.draw(ROWS, 4, rng=rng(11))
    *_, last = mechanism.iterates([ROWS] * 4, rng=rng(12))
    assert np.allclose(last.swapaxes(1, 2) @ last, np.eye(2), atol=1e-12)
    # One more step than there are: what the last one led to.
    longer = replace(mechanism, iterations=4)
    steps = np.concatenate([transcript["steps"], transcript["steps"][:, :1]], axis=1)
    *_, bases = longer.replayed({**transcript, "steps": steps}, len(ROWS), 4)
    assert projector_distance(releases, bases).max() < 1e-7
    assert mechanism.batches.size_for(30) == size
    expected = {"FixedNoise": 2.0, "PublishedNoise": 3.0 * (size / 30) ** 2}
    assert mechanism.noise_scale(30) == expected.get(type(noise).__name__, 0.0)


def test_parts_that_do_not_fit_are_refused():
    full, few = made("dp-ggd"), made("dp-sggd")
    for mechanism, change, message in (
        (full, {"objective": Reaper()}, "geometry must be for matrices"),
        (full, {"batches": WithReplacement()}, "batches must be AllRows"),
        (full, {"noise": None}, "noise must be a FixedNoise"),
        (full, {"relation": "add-remove"}, "relation must be replace-one"),
        (few, {"batches": AllRows()}, "batches must be RandomBatches"),
        (few, {"noise": None}, "noise must be a SumNoise"),
        (
            few,
            {"batches": WithReplacement(), "relation": "add-remove"},
            "relation must be replace-one",
        ),
        (few, {"relation": "add-remove"}, "start must be under add-remove"),
    ):
        refuses(message, replace, mechanism, **change)
    with pytest.raises(UnsupportedError, match="nothing is proven of WithReplacement"):
        _ = made("dp-sggd-published").budget


CLAIM = ApproxDP(1.0, 1e-3)
PROMISE = {"noise": FixedNoise(1e-12), "claim": CLAIM}
ALL = {**PROMISE, "batches": PoissonBatches(rate=1.0, batch_size=40.0)}


DATA = [haystack(40, 5, 2, inlier_share=0.7, rng=rng(seed)).rows for seed in (1, 2, 3)]


@pytest.mark.parametrize(
    "descent",
    [
        GeodesicDescent(n_components=2, iterations=5),
        PrivateGGD(n_components=2, start=PrincipalStart(), **PROMISE),
        PrivateSGGD(n_components=2, start=PrincipalStart(), **ALL),
    ],
    ids=["ggd", "dp-ggd", "dp-sggd"],
)
def test_descents_on_glad(descent):
    *_, together = descent.iterates(DATA, rng=rng())
    for place, data in enumerate(DATA):
        *_, alone = descent.iterates([data], rng=rng(9))
        assert np.allclose(together[place], alone[0], atol=1e-9)
        assert not np.allclose(together[place], together[place - 1], atol=1e-3)
        release = descent.release(data, rng=rng())
        projectors = [v @ v.T for v in (alone[0], release)]
        assert np.allclose(*projectors, atol=1e-9)


@pytest.mark.parametrize(
    "descent",
    [
        PrivateGradientReaper(n_components=2, **PROMISE),
        PrivateStochasticGradientReaper(n_components=2, **ALL),
        PrivateStochasticMirrorReaper(n_components=2, **ALL),
    ],
    ids=["dp-gd-reap", "dp-sgd-reap", "dp-smd-reap"],
)
def test_descents_on_reaper(descent):
    for average in descent.iterates(DATA, rng=rng()):
        together = average
    for place, data in enumerate(DATA):
        for average in descent.iterates([data], rng=rng(9)):
            alone = average[0]
        assert np.allclose(together[place], alone, atol=1e-9)
        assert not np.allclose(together[place], together[place - 1], atol=1e-3)
        release = descent.release(data, rng=rng())
        basis = top_components(alone, 2)
        assert np.allclose(basis @ basis.T, release @ release.T, atol=1e-6)


@pytest.mark.parametrize("kind", [PrivateSGGD, PrivateStochasticMirrorReaper])
def test_batches_with_replacement_are_of_the_runs_own_rows(kind):
    # The rows of each dataset are all the same one, so its batches are, too.
    mechanism = kind.as_published(1.0, 1e-3, n_components=1, iterations=3)
    mechanism = replace(mechanism, noise=PublishedNoise(0.0))
    data = [np.repeat(rows[:1], 40, axis=0) for rows in DATA]
    rows = np.stack([mechanism.rows(each) for each in data])
    start = rng(5).standard_normal((5, 5)) if kind is not PrivateSGGD else None
    if start is None:
        state = np.repeat(np.eye(5)[np.newaxis, :, :1], 3, axis=0)
    else:
        state = np.repeat((start + start.T)[np.newaxis], 3, axis=0)
    together = mechanism.summing(rows, rng())(state)
    for place in range(3):
        alone = mechanism.summing(rows[place], rng(9))(state[:1])
        assert np.allclose(together[place], alone[0], atol=1e-12)
