"""Minibatch and block Oja: sensitivities, runs by hand, transcripts, bad input.

Type-I error: 1e-9 for every test that names a null hypothesis (by Bonferroni where it
makes several); 4e-9 in all, at fixed seeds.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses
from scipy import stats
from seeded import gram_schmidt, prepared, rng

from dpaudit import ApproxDP, GaussianDP, InputError, Relation
from dpaudit.algorithms.shared.step_sizes import ConstantSteps, HarmonicSteps
from dpaudit.algorithms.streaming.minibatch_oja import BlockOja, MinibatchOja
from dpaudit.algorithms.streaming.moment_products import batch_sensitivity
from dpaudit.attacks import GaussianTranscript, Target
from dpaudit.gaussian import gaussian_delta, gaussian_mu

TYPE_I_ERROR = 1e-9
STEPS = HarmonicSteps(3.0, 1.0)
ROWS = np.random.default_rng(0).standard_normal((25, 3))
MATRICES = np.random.default_rng(1).standard_normal((25, 3, 3))
ONE = MinibatchOja(sigma=0.7, step_sizes=STEPS, claim=GaussianDP(1.0), iterations=4)
CLIPPED = replace(ONE, row_norm=None, clip=0.9)
BOTH = replace(ONE, row_norm=1.5, clip=1.6)  # reached: below the norm's square
BLOCK = BlockOja(
    n_components=2, sigma=0.7, step_sizes=STEPS, claim=GaussianDP(1.0), iterations=4
)
CLIPPED_BLOCK = replace(BLOCK, row_norm=None, clip=0.9)
FORMS = {
    **{"rows": ONE, "clipped products": CLIPPED, "both": BOTH, "block": BLOCK},
    "clipped block": CLIPPED_BLOCK,
}
forms = pytest.mark.parametrize("form", list(FORMS))


def sensitivity_of_sum(mechanism):
    return batch_sensitivity(
        mechanism.rank, row_norm=mechanism.row_norm, clip=mechanism.clip
    )


def clipped(product, bound):
    norm = np.linalg.norm(product)
    return product if bound is None or norm <= bound else product * (bound / norm)


def matrices_of(mechanism, data):
    """The matrices A_i that a mechanism sees."""
    if np.ndim(data) == 3:
        return data
    rows = prepared(mechanism, data)
    return rows[:, :, None] * rows[:, None]


# Sensitivity of a sum
def moved(first, second, basis, bound):
    return np.linalg.norm(
        clipped(first @ basis, bound) - clipped(second @ basis, bound)
    )


@given(st.integers(0, 2**32), st.integers(1, 4), st.data())
@settings(max_examples=100)
def test_no_product_moves_further(seed, d, data):
    k = data.draw(st.integers(1, d))
    generator = rng(seed)
    basis = np.linalg.qr(generator.standard_normal((d, k))).Q
    bound = data.draw(st.sampled_from([0.2, 0.6, 1.5]))
    first, second = 3 * generator.standard_normal((2, d, d))
    allowed = batch_sensitivity(k, clip=bound) * (1 + 1e-12)
    assert moved(first, second, basis, bound) <= allowed
    rows = 3 * generator.standard_normal((2, d))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True) / 1.3)
    if data.draw(st.booleans()):
        rows = rows @ basis @ basis.T
    first, second = (np.outer(row, row) for row in rows)
    for clip in (None, bound):
        allowed = batch_sensitivity(k, row_norm=1.3, clip=clip) * (1 + 1e-12)
        assert moved(first, second, basis, clip) <= allowed


def searched(d, k, row_norm, clip):
    """The furthest that a local search over two rows finds."""
    basis = np.linalg.qr(rng(d).standard_normal((d, k))).Q

    def loss(flat):
        rows = flat.reshape(2, d)
        if row_norm is not None:
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            rows = rows / np.maximum(1.0, lengths / row_norm)
        first, second = (np.outer(row, row) for row in rows)
        return -moved(first, second, basis, clip)

    generator = rng(2)
    return -min(
        scipy.optimize.minimize(
            loss, 4 * generator.standard_normal(2 * d), method="Powell"
        ).fun
        for _ in range(6)
    )


@pytest.mark.parametrize(
    ("d", "k", "clip", "share"),
    [
        (1, 1, None, 1.0),
        (3, 1, None, 1.0),
        (2, 2, None, 1.0),
        (3, 2, None, 1.0),
        # Clipped to beta: the two rows are sqrt(1 - (beta/R^2)^2) of opposite.
        (2, 1, 0.1, np.sqrt(1 - 0.1**2)),
        (3, 1, 0.4, np.sqrt(1 - 0.4**2)),
    ],
)
def test_a_local_search_over_rows_attains_the_bound(d, k, clip, share):
    found = searched(d, k, 1.0, clip)
    bound = batch_sensitivity(k, row_norm=1.0, clip=clip)
    assert share * bound * (1 - 2e-3) <= found <= bound * (1 + 1e-9)


# Calibration
@pytest.mark.parametrize("iterations", [1, 7])
@pytest.mark.parametrize(
    ("k", "options", "sensitivity"),
    [
        *((1, {"row_norm": 2.0}, 4.0), (1, {"row_norm": 2.0, "clip": 3.0}, 4.0)),
        (1, {"row_norm": 2.0, "clip": 1.0}, 2.0),
        (1, {"row_norm": None, "clip": 1.5}, 3.0),
        (3, {"row_norm": 2.0}, 4 * np.sqrt(2)),
        (3, {"row_norm": 2.0, "clip": 1.0}, 2.0),
        (3, {"row_norm": None, "clip": 1.5}, 3.0),
    ],
)
def test_the_calibration_meets_its_claim_with_equality(
    k, options, sensitivity, iterations
):
    options = options | {"iterations": iterations}
    if k == 1:
        mechanism = MinibatchOja.calibrated(0.8, 1e-6, **options)
        assert MinibatchOja.from_mu(0.5, **options).sigma == pytest.approx(
            sensitivity / 0.5
        )
    else:
        mechanism = BlockOja.calibrated(0.8, 1e-6, n_components=k, **options)
    mu = sensitivity / mechanism.sigma
    attained = float(gaussian_delta(0.8, mu))
    assert attained == pytest.approx(1e-6, rel=1e-9)
    assert attained <= 1e-6
    assert mechanism.claim == ApproxDP(0.8, 1e-6)
    assert mechanism.relation is Relation.REPLACE_ONE
    assert mechanism.iterations == iterations
    assert sensitivity_of_sum(mechanism) == pytest.approx(sensitivity)


def test_default_steps_are_in_the_unit_of_the_products_for_degenerate_data_too():
    for options, unit in (
        ({"row_norm": 2.0}, 4.0),
        ({"row_norm": 2.0, "clip": 1.0}, 1.0),
        ({"row_norm": None, "clip": 3.0}, 3.0),
    ):
        steps = MinibatchOja.calibrated(1.0, 1e-5, **options).step_sizes
        assert steps == HarmonicSteps(60.0 / unit, 1.0)
    for mechanism in FORMS.values():
        for rows in (np.zeros((8, 2)), np.ones((8, 2)), np.eye(2)[[0, 1] * 4]):
            draws = mechanism.draw(rows, 20, rng=rng())
            np.testing.assert_allclose(np.linalg.norm(draws, axis=1), 1)
    signs = ONE.draw(np.ones((8, 1)), 100, rng=rng())
    np.testing.assert_allclose(np.abs(signs), 1)


# Runs by hand
def by_hand(mechanism, data, generator, size):
    """Noise, noisy sums and ends, in the order of the paper, run by run."""
    matrices, k = matrices_of(mechanism, data), mechanism.rank
    steps, d = mechanism.iterations, matrices.shape[1]
    batch = len(matrices) // steps
    starts = generator.standard_normal((size, d, k))
    noise = mechanism.sigma * generator.standard_normal((steps, size, d, k))
    ends, sums = [], []
    for trial in range(size):
        basis, own = gram_schmidt(starts[trial]), []
        for t in range(steps):
            total = noise[t][trial].copy()
            for matrix in matrices[t * batch : (t + 1) * batch]:
                total += clipped(matrix @ basis, mechanism.clip)
            eta = mechanism.step_sizes.sizes(steps)[t]
            basis = gram_schmidt(basis + eta / batch * total)
            own.append(total)
        ends.append(basis)
        sums.append(own)
    return noise.swapaxes(0, 1), np.array(sums), np.array(ends)


DATA = {"rows": ROWS, "few rows": ROWS[:4], "matrices": MATRICES}
HANDMADE = [
    (form, data)
    for form, mechanism in FORMS.items()
    for data in DATA
    if data != "matrices" or mechanism.row_norm is None
]


@pytest.mark.parametrize(("form", "name"), HANDMADE)
def test_batches_are_many_runs_by_hand(form, name):
    mechanism, data = FORMS[form], DATA[name]
    noise, sums, ends = by_hand(mechanism, data, rng(2), 6)
    draws = mechanism.draw(data, 6, rng=rng(2))
    transcript = mechanism.transcript(data, 6, rng=rng(2))
    bases = mechanism.components(draws, mechanism.rank)
    np.testing.assert_allclose(bases, ends, atol=1e-9)
    steps = transcript["steps"].reshape(sums.shape)
    np.testing.assert_allclose(steps, sums, atol=1e-9)
    means = mechanism.step_means(transcript, data)["steps"].reshape(sums.shape)
    np.testing.assert_allclose(steps - means, noise, atol=1e-9)
    assert dict(mechanism.step_scales) == {"steps": 0.7}
    assert draws.shape[1:] == ((3,) if mechanism.rank == 1 else (3, 2))
    one = mechanism.release(data, rng=rng(3))
    np.testing.assert_array_equal(one, mechanism.draw(data, 1, rng=rng(3))[0])


# Transcripts
EXACT = {
    "rows": MinibatchOja.calibrated(4.0, 1e-3, row_norm=3.0, iterations=3),
    "matrices": MinibatchOja.calibrated(
        4.0, 1e-3, row_norm=None, clip=0.5, iterations=3
    ),
    "block": BlockOja.calibrated(4.0, 1e-3, n_components=2, iterations=3),
    "block of matrices": BlockOja.calibrated(
        4.0, 1e-3, n_components=2, row_norm=None, clip=0.5, iterations=3
    ),
}


@pytest.mark.parametrize("name", list(EXACT))
def test_the_loss_of_transcripts_is_exactly_that_of_one_normal_variable(name):
    # Null hypothesis: N(mu^2/2, mu^2) on the data and N(-mu^2/2, mu^2) on the
    # neighbour, whatever T is: no smaller noise is private.
    mechanism = EXACT[name]
    pair = mechanism.worst_case(mechanism.rank)
    target, mu = Target(mechanism, pair), gaussian_mu(4.0, 1e-3)
    for sign, data in ((1, pair.data), (-1, pair.neighbour)):
        releases = mechanism.transcript(data, 3000, rng=rng(8))
        loss = GaussianTranscript().score(target, {}, releases)
        law = stats.norm(sign * mu**2 / 2, mu)
        assert stats.kstest(loss, law.cdf).pvalue >= TYPE_I_ERROR / 2
        wrong = stats.norm(sign * mu**2 / 2, mu * 1.3)
        assert stats.kstest(loss, wrong.cdf).pvalue < TYPE_I_ERROR


# Pairs, scale, utility
@forms
def test_the_sum_moves_almost_as_far_as_it_can_on_the_worst_pair(form):
    mechanism = FORMS[form]
    k = mechanism.rank
    for d in (k + 1, k + 3):
        pair = mechanism.worst_case(d)
        assert pair.data.shape[1] == d
        assert len(pair.data) % mechanism.iterations == 0
        basis = np.eye(d)[:, :k]
        first, second = (
            matrices_of(mechanism, side)[-1] for side in (pair.data, pair.neighbour)
        )
        share = moved(first, second, basis, mechanism.clip)
        share /= sensitivity_of_sum(mechanism)
        # For k >= 2 one more row would have to be turned out of the subspace.
        assert share >= (0.95 if mechanism.row_norm is None or k == 1 else 0.7)
    assert mechanism.worst_case().data.shape[1] == k + 1
    refuses(f"dimension must be an integer >= {k}", mechanism.worst_case, k - 1)


# Bad input
def test_arguments_and_rows_that_do_not_fit_are_named():
    with pytest.raises(InputError, match="clip must be given where there is no row"):
        MinibatchOja.calibrated(1.0, 1e-5, row_norm=None)
    with pytest.raises(InputError, match="n_components of MinibatchOja must be 1"):
        MinibatchOja.calibrated(1.0, 1e-5, n_components=2)
    with pytest.raises(InputError, match=r"step_sizes must be at least 20, .* got 2"):
        MinibatchOja.calibrated(1.0, 1e-5, step_sizes=[1.0, 2.0])
    refuses("step_sizes must be > 0", replace, ONE, step_sizes="1")
    refuses("mu must be a finite number > 0", MinibatchOja.from_mu, 0.0)
    assert replace(ONE, step_sizes=ConstantSteps(1.0)).step_sizes.size == 1.0
    with pytest.raises(InputError, match="n_components must be at most the length"):
        BLOCK.draw(np.ones((9, 1)), 2, rng=rng())


@forms
def test_bad_data_are_named(form):
    mechanism = FORMS[form]
    for use in (mechanism.draw, mechanism.transcript):
        message = "data must have at least 4 rows, one for every batch, got 3"
        refuses(message, use, ROWS[:3], 2, rng=rng())
    with pytest.raises(InputError, match=f"n_components must be the {mechanism.rank}"):
        mechanism.components(mechanism.draw(ROWS, 2, rng=rng()), 3)
