"""DP-PCA: who reads what, steps by hand, privacy on pairs, utility, other parts.

With overlapping halves it breaks its promise where the right one does not; with other
parts it is the same class, each part as promised.

Type-I error: 1e-9 for each test that names a null hypothesis (the seeds are fixed).
"""

import numpy as np
import pytest
from refusals import refused, refuses
from scipy import stats
from scipy.special import ndtr
from seeded import rng

from dpaudit import ApproxDP, InputError
from dpaudit.algorithms import DPPCA, MeanEstimation, PublishedDPPCA, build
from dpaudit.algorithms.shared.step_sizes import HarmonicSteps
from dpaudit.algorithms.streaming.dp_pca import OverlappingDPPCA
from dpaudit.algorithms.streaming.mean_budget import CalibratedSplit, GaussianSplit
from dpaudit.algorithms.streaming.minibatch_pca import POWER_STEPS, scale_rows
from dpaudit.algorithms.streaming.moments import StreamedMoments
from dpaudit.algorithms.streaming.thresholded_counts import CountNoise
from dpaudit.algorithms.streaming.windows import Ball, Tail
from dpaudit.codec import encode, rebuild

MAKERS = {"corrected": DPPCA.calibrated, "published": PublishedDPPCA.as_published}
PLAIN = DPPCA.calibrated(1.0, 1e-5)
# So little noise that nothing fails on a few hundred rows.
LOUD = {"epsilon": 200.0, "delta": 0.1, "group_constant": 400.0}


def spiked(n, d, ratio=0.25, seed=0):
    """Gaussian rows whose first component is e_1."""
    rows = rng(seed).standard_normal((n, d))
    rows[:, 1:] *= np.sqrt(ratio)
    return rows


def watched_rows(count):
    """Rows, and a list of what is read of them, from where to where."""
    rows, reads = spiked(count, 3), []

    def read(where):
        reads.append((where.start, where.stop))
        return rows[where]

    return StreamedMoments(read, count=count, dimension=3), reads


def sines(vectors):
    return np.sqrt(np.clip(1 - vectors[..., 0] ** 2, 0, 1))


# Batches, halves, steps
@pytest.mark.parametrize("n", [4, 7, 100, 2000, 100_000, 10**6])
def test_batches_follow_the_rule_of_the_paper(n):
    mechanism = DPPCA.calibrated(1.0, 1e-5, batch_constant=10.0)
    size, steps = mechanism.batches(n)
    assert steps == max(1, min(int(np.log(n) ** 2 / 10), n // 4))
    assert size == n // steps
    assert size >= 4
    fixed = DPPCA.calibrated(1.0, 1e-5, batch_size=4)
    assert fixed.batches(n) == (4, n // 4)


@pytest.mark.parametrize("name", list(MAKERS))
@pytest.mark.parametrize("shape", ["rows", "matrices"])
def test_a_run_is_oja_on_the_means_of_its_transcript(name, shape):
    mechanism = MAKERS[name](**LOUD, step_sizes=HarmonicSteps(3.0, 0.5), batch_size=150)
    data = spiked(640, 3)
    if shape == "matrices":
        data = np.einsum("ia,ib->iab", data, data)
    size = 12
    runs = mechanism.transcript(data, size, rng=rng(1))
    draws = mechanism.draw(data, size, rng=rng(1))
    assert runs["starts"].shape == (size, 1, 3)
    assert runs["scales"].shape == (size, 1, 4)
    assert runs["means"].shape == (size, 1, 4, 3)
    for trial in range(size):
        w = runs["starts"][trial, 0]
        assert np.linalg.norm(w) == pytest.approx(1.0)
        for step in range(4):
            w = w + 3.0 / (0.5 + step + 1) * runs["means"][trial, 0, step]
            w = w / np.linalg.norm(w)
        w = w * np.sign(w[np.abs(w).argmax()])
        np.testing.assert_allclose(draws[trial], w, atol=1e-12)


def test_rows_are_their_matrices_which_need_not_be_symmetric():
    mechanism = DPPCA.calibrated(**LOUD)
    rows = spiked(600, 3)
    matrices = np.einsum("ia,ib->iab", rows, rows)
    one, two = (mechanism.draw(data, 5, rng=rng(1)) for data in (rows, matrices))
    np.testing.assert_allclose(one, two, atol=1e-9)
    streamed = StreamedMoments(rows.__getitem__, count=600, dimension=3)
    three = mechanism.draw(streamed, 5, rng=rng(1))
    np.testing.assert_allclose(one, three, atol=1e-12)
    # A_i = (e_1 + noise) e_2^T has the gradient e_1 w_2; the step is towards +-e_1.
    noise = 0.1 * rng().standard_normal((600, 3, 3))
    matrices = 50 * (np.outer([1.0, 0, 0], [0, 1.0, 0]) + noise)
    mechanism = DPPCA.calibrated(**LOUD, batch_size=600)
    draws = mechanism.draw(matrices, 40, rng=rng(1))
    assert np.nanmedian(np.abs(draws[:, 0])) > 0.95


@pytest.mark.parametrize("name", list(MAKERS))
def test_each_half_is_read_for_one_estimate_of_a_unit_vector_or_bottom(name):
    data, reads = watched_rows(210)
    MAKERS[name](**LOUD, batch_size=101).draw(data, 5, rng=rng(1))
    # The scale looks once, at whole groups of differences; the mean twice.
    halves = [(0, 50), (50, 101), (50, 101), (101, 151), (151, 202), (151, 202)]
    for (start, stop), (first, last) in zip(reads, halves, strict=True):
        assert start == first
        assert stop <= last
    options = {"corrected": (30.0, 1e-2), "published": (200.0, 0.1)}[name]
    mechanism = MAKERS[name](*options, batch_size=120)
    draws = mechanism.draw(spiked(240, 3), 200, rng=rng(1))
    bottom = np.isnan(draws)
    assert (bottom.any(axis=1) == bottom.all(axis=1)).all()
    assert 0 < bottom[:, 0].mean() < 1
    found = draws[~bottom[:, 0]]
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)
    assert (np.abs(found).max(axis=1) == found.max(axis=1)).all()
    assert mechanism.components(draws, 1).shape == (200, 3, 1)
    one = mechanism.release(spiked(240, 3), rng=rng(2))
    np.testing.assert_array_equal(one, mechanism.draw(spiked(240, 3), 1, rng=rng(2))[0])


@pytest.mark.parametrize(
    "rows",
    [
        *(np.zeros((400, 2)), np.ones((400, 2)), spiked(4, 2), spiked(30, 2)),
        *(1e80 * spiked(400, 2), 1e-200 * spiked(400, 2)),
    ],
)
def test_what_cannot_be_estimated_is_bottom(rows):
    draws = DPPCA.calibrated(1.0, 1e-5).draw(rows, 20, rng=rng())
    assert np.isnan(draws).all()


# Streams
@pytest.mark.parametrize("sizes", [[700], [1] * 700, [150, 0, 300, 250], [699, 1]])
def test_a_stream_is_a_release(sizes):
    mechanism = DPPCA.calibrated(**LOUD, batch_size=120)
    rows = spiked(700, 3)
    blocks = iter(np.split(rows, np.cumsum(sizes)[:-1]))
    streamed = mechanism.release_stream(blocks, count=700, rng=rng(3))
    whole = mechanism.release(rows, rng=rng(3))
    np.testing.assert_allclose(streamed, whole, atol=1e-12)
    matrices = np.einsum("ia,ib->iab", rows, rows)
    blocks = iter(np.split(matrices, np.cumsum(sizes)[:-1]))
    streamed = mechanism.release_stream(blocks, count=700, rng=rng(3))
    np.testing.assert_allclose(streamed, whole, atol=1e-9)


test_bad_streams_are_named = refused(
    ([np.zeros((50, 2))], "blocks must have 100 rows in all, got 50"),
    ([np.zeros((101, 2))], "blocks must have 100 rows in all, got 101"),
    ([np.zeros((50, 2)), np.zeros((50, 3))], "blocks must be arrays of rows"),
    ([np.zeros(100)], "blocks must be arrays of rows"),
    ([], "blocks must have 100 rows in all, got 0"),
    ([np.full((100, 2), np.inf)], "data must be finite"),
    by=lambda blocks: PLAIN.release_stream(blocks, count=100, rng=rng()),
)


# Utility
def test_the_error_vanishes_with_the_noise_of_the_data():
    # Example 4.1: x = +-v + sigma z. The error is about proportional to sigma.
    mechanism = DPPCA.calibrated(2.0, 1e-6, step_sizes=1e6)
    generator = rng(2)
    signs = generator.choice([-1.0, 1.0], size=20_000)[:, np.newaxis]
    noise = generator.standard_normal((20_000, 4))
    errors = [
        np.median(
            sines(mechanism.draw(signs * np.eye(4)[:1] + sigma * noise, 12, rng=rng(1)))
        )
        for sigma in (0.1, 0.001)
    ]
    assert errors[1] < 0.03 * errors[0]


def test_the_print_adds_more_noise_and_the_mean_may_read_whole_batches():
    # By f = 2, and the split of (epsilon/2, delta/2).
    corrected, published = (make(1.0, 1e-6) for make in MAKERS.values())
    assert published.scale_factor == 2.0
    ratio = (
        np.sqrt(2)
        * corrected.mean.split.noise(20).mu
        / (published.mean.split.noise(20).mu)
    )
    assert 6 < ratio < 7
    assert published.scale_finder.noise.scale == 2 * corrected.scale_finder.noise.scale
    data, reads = watched_rows(210)
    OverlappingDPPCA.planted(100.0, 1e-2, batch_size=101).draw(data, 5, rng=rng(1))
    starts = [start for start, _ in reads]
    assert starts == [0, 0, 0, 101, 101, 101]
    assert [stop for _, stop in reads[1:3]] == [101, 101]


@pytest.mark.parametrize("kind", list(MAKERS))
def test_means_are_truncated_at_the_factor_times_the_scale(kind, monkeypatch):
    """The eigenvalue that the mean is told is f times the one that was found."""
    mechanism, told = MAKERS[kind](**LOUD), []
    estimate = MeanEstimation.estimate

    def watched(self, vectors, eigenvalues, **options):
        told.append(eigenvalues)
        return estimate(self, vectors, eigenvalues, **options)

    monkeypatch.setattr(MeanEstimation, "estimate", watched)
    found = mechanism.transcript(spiked(4000, 3), 2, rng=rng(3))["scales"]
    factor = {"corrected": 1.0, "published": 2.0}[kind]
    assert np.array_equal(np.stack(told, axis=1), factor * found.reshape(2, -1))


# Promises
def test_rows_are_clipped_if_a_norm_is_given_and_both_parts_break_the_promise():
    mechanism = DPPCA.calibrated(**LOUD, row_norm=1.0)
    rows = 30 * spiked(300, 2)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    one, two = (mechanism.draw(data, 3, rng=rng(1)) for data in (rows, rows / lengths))
    np.testing.assert_allclose(one, two, atol=1e-9)
    refuses("data must be rows", mechanism.draw, np.ones((9, 2, 2)), 1, rng=rng())
    # The laws of the test above: both parts keep it, their product does not.
    noise = OverlappingDPPCA.planted(EPSILON, DELTA).mean.split.noise(2)
    odds = np.exp(EPSILON)
    win, lose = (np.exp(-x) * (2 + x) / 4 for x in (1.75, 5.25))
    assert win < odds * lose
    tails = np.linspace(-1, 4, 101)
    low, high = ndtr(noise.mu / 2 - tails), ndtr(-noise.mu / 2 - tails)
    assert (low - odds * high).max() < DELTA
    assert (win * low - odds * lose * high).max() > 1000 * DELTA


@pytest.mark.parametrize("norm", [None, 1.0])
@pytest.mark.parametrize("d", [None, 2, 8])
def test_the_worst_pair_shows_the_mean_at_its_full_sensitivity(d, norm):
    # Null hypothesis: w_j/w_1, j > 1, is normal about -+ W/m with the deviation s, in
    # the unit of the signal, but for what the start has left (next to nothing without
    # a norm). So its median moves by mu/sqrt d.
    constant = 25.0 if norm is None else 8.0
    mechanism = DPPCA.calibrated(8.0, 1e-2, row_norm=norm, batch_constant=constant)
    pair = mechanism.worst_case(d)
    d = pair.data.shape[1]
    assert d == 3 if d is None else True
    size = 3000 // d
    sides = [
        mechanism.draw(rows, size, rng=rng(seed))
        for seed, rows in enumerate((pair.data, pair.neighbour))
    ]
    ratios = [side[:, 1:].ravel() / np.repeat(side[:, 0], d - 1) for side in sides]
    assert not np.isnan(ratios[0]).any()
    spread = stats.median_abs_deviation(ratios[0], scale="normal")
    shift = (np.median(ratios[0]) - np.median(ratios[1])) / spread
    expected = mechanism.mean.split.noise(d).mu / np.sqrt(d)
    # 6 deviations of a difference of medians, and less by what is left of the start.
    error = 6 * 1.2533 * np.sqrt(2 / ratios[0].size)
    assert shift <= expected + error
    assert shift >= (1.0 if norm is None else 0.5) * expected - error


def test_pairs_move_one_group_and_fit_batches():
    mechanism = DPPCA.calibrated(1.0, 1e-5)
    for pair in mechanism.canonical_pairs()[1:3]:
        size, steps = mechanism.batches(len(pair.data))
        place = np.flatnonzero((pair.data != pair.neighbour).any(axis=1))
        assert len(place) == 1
        assert (steps - 1) * size <= place[0] < (steps - 1) * size + size // 2
    mechanism = DPPCA.calibrated(8.0, 1e-2, batch_size=300)
    pair = mechanism.worst_case()
    assert mechanism.batches(len(pair.data)) == (300, 2)
    assert not np.isnan(mechanism.draw(pair.data, 20, rng=rng())).any()


def test_the_second_pair_shows_in_the_direction():
    """An event of the rate 0.15 is rarer on the neighbour, by e^0.8 and more.

    In truth by about e^1.5; six deviations of both rates leave that much.
    """
    mechanism = DPPCA.calibrated(2.0, 1e-2)
    pair = mechanism.canonical_pairs()[1]
    here, there = (
        np.nan_to_num(draws[:, 1:].sum(axis=1) / draws[:, 0], nan=-np.inf)
        for draws in (
            mechanism.draw(rows, 12_000, rng=rng(seed))
            for seed, rows in enumerate((pair.data, pair.neighbour))
        )
    )
    level = np.quantile(here[6000:], 0.85)
    assert (here[:6000] > level).mean() > np.exp(0.8) * (there[:6000] > level).mean()


def test_the_last_pair_shows_in_bottom_and_balls_have_no_far_pair():
    """In truth 0.66 and 0.74; one rate less the other deviates by 0.011."""
    mechanism = DPPCA.calibrated(2.0, 1e-2)
    pair = mechanism.canonical_pairs()[2]
    here, there = (
        np.isnan(mechanism.draw(rows, 4000, rng=rng(seed))[:, 0]).mean()
        for seed, rows in enumerate((pair.data, pair.neighbour))
    )
    assert there - here > 0.015
    assert len(DPPCA.calibrated(8.0, 1e-2, row_norm=1.0).canonical_pairs()) == 3


def test_gradients_far_from_zero_show_a_row_as_near_ones_do():
    """The two directions differ by half a deviation, in truth by 0.8 or more.

    (Six deviations of the difference of two medians are 0.22.)
    """
    mechanism = DPPCA.calibrated(8.0, 1e-2, batch_size=301)
    pair = mechanism.canonical_pairs()[3]
    runs = mechanism.transcript(pair.data, 100, rng=rng())
    widths = mechanism.mean.tail.width(runs["scales"][:, 0, -1])
    assert (np.abs(runs["means"][:, 0, -1]).max(axis=1) > 2**40 * widths).all()
    sides = [
        mechanism.draw(rows, 2500, rng=rng(seed))
        for seed, rows in enumerate((pair.data, pair.neighbour))
    ]
    assert not np.isnan(sides).any()
    one, two = ((side[:, 0] + side[:, 2]) / side[:, 1] for side in sides)
    spread = stats.median_abs_deviation(one, scale="normal")
    assert np.median(one) - np.median(two) > 0.5 * spread


# Bad input
@pytest.mark.parametrize("make", list(MAKERS.values()))
def test_more_components_are_refused(make):
    refuses(r"n_components of .*PCA must be 1, got 2", make, 1.0, 1e-5, n_components=2)
    with pytest.raises(InputError, match="n_components must be the 1 that"):
        make(1.0, 1e-5).components(np.zeros((1, 3)), 2)


test_bad_data_are_named = refused(
    (np.zeros((3, 2)), "data must have at least 4 rows, got 3"),
    by=lambda use, data: use(data, 2, rng=rng()),
    each=(PLAIN.draw, PLAIN.transcript),
)


def test_too_few_rows_and_dimensions_are_named():
    many = DPPCA.calibrated(1.0, 1e-5, batch_size=30)
    message = "data must have at least 30 rows, got 9"
    refuses(message, many.draw, np.ones((9, 2)), 1, rng=rng())
    with pytest.raises(InputError, match="dimension must be an integer >= 2"):
        DPPCA.calibrated(1.0, 1e-5).worst_case(1)


@pytest.mark.parametrize(
    ("make", "half"),
    [(DPPCA.calibrated, (0.7, 1e-5)), (PublishedDPPCA.as_published, (0.35, 5e-6))],
)
def test_parts_have_their_share_of_the_budget(make, half):
    mechanism = make(0.7, 1e-5, row_norm=2.0)
    assert mechanism.step_sizes == HarmonicSteps(15.0, 1.0)
    assert mechanism.scale_finder.claim == ApproxDP(*half)
    assert mechanism.mean.claim == ApproxDP(*half)


TYPE_I_ERROR = 1e-9
EPSILON, DELTA = 3.5, 1e-5


def mean_of_columns(mechanism, rows, size):
    """The larger scale, or not, and the mean along u over that along v, of trials."""
    runs = mechanism.transcript(rows, size, rng=rng())
    first = runs["starts"][:, 0, 0]
    scales = runs["scales"][:, 0, 0] / first**2
    along_v, along_u = (
        runs["means"][:, 0, 0] @ u / first for u in ([1.0, 1.0], [1.0, -1.0])
    )
    return scales > 2.0**80, along_u / along_v


def test_on_the_pair_one_row_moves_a_group_and_the_mean():
    # Null hypothesis: two bins of 12 and 13 groups, of 11 and 14 in the neighbour,
    # with noise Lap(2/epsilon); given the larger scale, means that are mu apart.
    mechanism = OverlappingDPPCA.planted(EPSILON, DELTA)
    pair = mechanism.worst_case()
    (place,) = np.flatnonzero((pair.data != pair.neighbour).any(axis=(1, 2)))
    assert place < mechanism.batches(len(pair.data))[0] // 2
    size, means, deviations = 8000, [], []
    for rows, behind in ((pair.data, 1), (pair.neighbour, 3)):
        larger, along_u = mean_of_columns(mechanism, rows, size)
        margin = behind * EPSILON / 2
        chance = np.exp(-margin) * (2 + margin) / 4
        wins = int(larger.sum())
        assert stats.binomtest(wins, size, chance).pvalue >= TYPE_I_ERROR
        means.append(np.nanmean(along_u[larger]))
        deviations.append(np.nanstd(along_u[larger]) / np.sqrt(wins))
    noise = 0.05 * np.array([1.0, 2.0**-0.125])
    mu = mechanism.mean.split.noise(2).mu
    slack = 6.2 * np.hypot(*deviations)
    assert mu * noise.min() - slack < means[1] - means[0] < mu * noise.max() + slack


def test_the_parts_are_those_of_the_paper_or_tuned_of_the_same_class():
    mechanism = DPPCA.calibrated(1.0, 1e-6)
    assert mechanism.mean.split == CalibratedSplit(1.0, 1e-6)
    assert isinstance(mechanism.mean.split.noise(20).counts, CountNoise)
    assert mechanism.mean.tail == Tail()
    assert mechanism.scale_share == 0.5
    mechanism = DPPCA.tuned(1.0, 1e-6)
    assert type(mechanism) is DPPCA
    assert mechanism.mean.split == GaussianSplit(1.0, 1e-6)
    assert mechanism.mean.tail == Ball()
    assert mechanism.step_sizes == POWER_STEPS
    assert rebuild(encode(mechanism)) == mechanism
    assert mechanism.budget.epsilon == 1.0
    assert mechanism.budget.delta == 1e-6
    assert build("dp-pca-tuned", epsilon=0.7).claim.parameters["epsilon"] == 0.7


def test_releases_of_dp_pca_are_what_they_were():
    """Made before there were other parts; other noise, or in another order, differs.

    Sums in another order differ by 1e-13 or so.
    """
    rows = rng().standard_normal((640, 3)) * [1.0, 0.5, 0.5]
    before = {
        (150, None): [0.9977869009363315, 0.03942447101907862, 0.05354448061880221],
        (None, None): [0.7908423918185612, 0.5470165202436715, 0.27448358399584166],
        (151, 1.0): [0.9937658143593541, 0.02187637966629776, 0.10932031020531272],
    }
    for (size, norm), expected in before.items():
        mechanism = DPPCA.calibrated(**LOUD, batch_size=size, row_norm=norm)
        found = mechanism.draw(rows, 5, rng=rng(1))[0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("size", [4, 5, 101])
def test_each_row_of_a_batch_is_read_for_one_estimate(size, share):
    part = scale_rows(size, share)
    assert 2 <= part < size
    data, reads = watched_rows(2 * size)
    mechanism = DPPCA.tuned(**LOUD, batch_size=size, scale_share=share)
    mechanism.draw(data, 1, rng=rng(1))
    for first, _ in ((0, 0), (size, 1)):
        own = [r for r in reads if first <= r[0] < first + size]
        scale, *means = own
        assert scale[0] == first
        assert scale[1] <= first + part
        assert means == [(first + part, first + size)] * 2


def test_a_step_is_one_of_the_power_method_in_any_unit():
    rows = spiked(600, 3)
    draws = []
    for unit in (2.0**-20, 1.0, 2.0**30, 2.0**-219, 2.0**250):
        mechanism = DPPCA.tuned(**LOUD, batch_size=300)
        runs = mechanism.transcript(unit * rows, 5, rng=rng(1))
        draws.append(mechanism.draw(unit * rows, 5, rng=rng(1)))
        last = runs["means"][:, 0, -1]
        last = last / np.linalg.norm(last, axis=1, keepdims=True)
        np.testing.assert_allclose(np.abs(last), np.abs(draws[-1]), atol=1e-12)
    for other in draws[1:3]:
        np.testing.assert_array_equal(draws[0], other)
    for other in draws[3:]:  # at either end: ||g|| is about 2^-438, and 2^500
        np.testing.assert_allclose(draws[0], other, rtol=0, atol=2.0**-50)
    mechanism = DPPCA.tuned(**LOUD, batch_size=300)
    assert np.isnan(mechanism.draw(2.0**260 * rows, 5, rng=rng(1))).all()


@pytest.mark.parametrize("norm", [None, 1.0])
def test_the_worst_pair_shows_the_mean_at_nearly_its_full_sensitivity(norm):
    # Null hypothesis: w_u/w_1 is normal about -+ shift with the deviation s; 0.95 of
    # the diameter of the ball is what the row moves.
    mechanism = DPPCA.tuned(8.0, 1e-2, row_norm=norm)
    pair = mechanism.worst_case(4)
    size = 800
    aside = np.r_[0, np.ones(3)] / np.sqrt(3)
    ratios = []
    for seed, rows in enumerate((pair.data, pair.neighbour)):
        draws = mechanism.draw(rows, size, rng=rng(seed))
        assert not np.isnan(draws).any()
        ratios.append(draws @ aside / draws[:, 0])
    spread = stats.median_abs_deviation(ratios[0], scale="normal")
    shift = (np.median(ratios[0]) - np.median(ratios[1])) / spread
    mu = mechanism.mean.split.noise(4).mu
    # 6 deviations of the difference of medians, and 0.1 for the deviation's own.
    error = 6 * 1.2533 * np.sqrt(2 / size)
    assert shift <= 1.1 * mu + error
    assert shift >= 0.8 * mu - error
    assert mu > 2
