"""The norm that is chosen privately: its answers, what they lose, and fits with it.

Seeds are fixed. Kolmogorov-Smirnov tests fail a correct law with probability 1e-10;
there are 8. An audit at confidence 0.999 errs once in a thousand; there are 2.
"""

import warnings

import numpy as np
import pytest
from refusals import refused
from scipy import stats

from dpaudit import ApproxDP, PrivatePCA, PureDP, Relation
from dpaudit.algorithms.estimators.norm_quantile import (
    NORMS,
    GaussianNormQuantile,
    LaplaceNormQuantile,
)
from dpaudit.audit import Budget, Verdict, audit
from dpaudit.gaussian import gaussian_mu
from dpaudit.rows import clip_rows
from dpaudit.subspace import projector_distance
from dpaudit.testing import run_conformance

LEVEL = 1e-10
both = pytest.mark.parametrize("relation", list(Relation))
quantiles = pytest.mark.parametrize("quantile", [0.3, 0.8, None])


def rng(seed=0):
    return np.random.default_rng(seed)


def kinds(relation, quantile, loss=2.0):
    """Return a mechanism with normal noise, and one with Laplace noise."""
    options = {"relation": relation, "quantile": quantile}
    yield GaussianNormQuantile.from_mu(loss, **options)
    yield LaplaceNormQuantile.calibrated(loss, **options)


def lengths_of_all_kinds(size, seed):
    """Return rows of two columns: usual ones, zeros, tiny, huge ones, and of a norm."""
    lengths = np.exp(rng(seed).normal(scale=5.0, size=size))
    lengths[:6] = 0.0, 1e-320, 1e-200, 1e200, NORMS[512], 1.5e308
    return np.stack([0.6 * lengths, 0.8 * lengths], axis=1)


@both
@quantiles
def test_answers_compare_counts_of_rows_and_noise_is_that_of_the_claim(
    relation, quantile
):
    rows = lengths_of_all_kinds(300, 1)
    long = np.hypot(*rows.T)
    for mechanism in kinds(relation, quantile):
        seen = mechanism.transcript(rows, 2000, rng=rng(2))["steps"]
        norms = mechanism.draw(rows, 2000, rng=rng(2))
        in_blocks = mechanism.draw(np.array_split(rows, 3), 2000, rng=rng(2))
        np.testing.assert_array_equal(norms, in_blocks)
        often = mechanism.draw(np.repeat(rows, 3, axis=0), 2000, rng=rng(2))
        repeated = mechanism.draw_repeated(rows, 3, 2000, rng=rng(2))
        np.testing.assert_array_equal(often, repeated)
        wanted = max(150, 240 - mechanism.deviation)
        if quantile is not None:
            wanted = quantile * 300
        means = np.empty_like(seen)
        low, high = np.zeros(len(seen)), np.full(len(seen), 1024.0)
        for step, answers in enumerate(seen.T):
            middle = (low + high) // 2
            bound = 2.0 ** (middle / 4 - 128)
            means[:, step] = np.searchsorted(np.sort(long), bound, "right") - wanted
            enough = answers >= -mechanism.deviation
            low, high = np.where(enough, [low, middle], [middle, high])
        np.testing.assert_allclose(norms, 2.0 ** (high / 4 - 128), rtol=1e-14)
        gaussian = isinstance(mechanism, GaussianNormQuantile)
        noise = (seen - means) / mechanism.scale
        law = stats.norm if gaussian else stats.laplace
        assert stats.kstest(noise.ravel(), law.cdf).pvalue > LEVEL
        assert noise.std() == pytest.approx(
            mechanism.deviation / mechanism.scale, rel=0.05
        )
        if gaussian:
            found = mechanism.step_means({"steps": seen}, rows)["steps"]
            np.testing.assert_allclose(found, means, atol=1e-9)


@both
@quantiles
def test_no_row_moves_an_answer_further_than_its_share_and_the_loss_is_exact(
    relation, quantile
):
    rows = lengths_of_all_kinds(40, 3)
    removed = relation is Relation.ADD_REMOVE
    for number in range(12):
        other = np.delete(rows, number, axis=0)
        if not removed:
            other = np.concatenate([other, rows[[number - 1]]])
        for mechanism in kinds(relation, quantile):
            seen = mechanism.transcript(rows, 50, rng=rng(number))
            one, two = (mechanism.step_means(seen, x)["steps"] for x in (rows, other))
            assert np.abs(one - two).max() <= mechanism.sensitivity + 1e-9
            law = stats.norm if hasattr(mechanism, "mu") else stats.laplace
            scale = mechanism.scale
            expected = law.logpdf(seen["steps"], one, scale)
            expected -= law.logpdf(seen["steps"], two, scale)
            found = mechanism.transcript_loss(seen, rows, other)
            np.testing.assert_allclose(found, expected.sum(axis=1), atol=1e-9)


@both
@quantiles
def test_on_the_worst_pair_all_is_lost_that_is_claimed(relation, quantile):
    normal, laplace = kinds(relation, quantile, loss=0.7)
    pair, its = normal.worst_case(3), laplace.worst_case(3)
    assert pair.relation is its.relation is relation
    sides = (pair.data, pair.neighbour), (pair.neighbour, pair.data)
    for data, _ in sides:
        loss = normal.transcript_loss(
            normal.transcript(data, 5000, rng=rng(4)), *sides[0]
        )
        sign = 1 if data is pair.data else -1
        law = stats.norm(sign * 0.7**2 / 2, 0.7)
        assert stats.kstest(loss, law.cdf).pvalue > LEVEL
        far = {"steps": np.outer([1.0, -1.0], np.full(10, 1e6))}
        loss = laplace.transcript_loss(far, its.data, its.neighbour)
        np.testing.assert_allclose(np.sort(loss), [-0.7, 0.7], rtol=1e-9)
    for mechanism in kinds(relation, quantile):
        run_conformance(mechanism)


@both
def test_without_a_quantile_few_rows_have_their_median_and_many_more(relation):
    """However many rows there are, one more moves what is wanted by 0.5 to 0.8."""
    for mechanism in kinds(relation, None):
        s = mechanism.deviation
        assert mechanism.wanted(2 * s) == s
        assert mechanism.wanted(1000 * s) == pytest.approx(799 * s)
        counts = [mechanism.wanted(n) for n in range(int(20 * s))]
        grown = np.diff(counts)
        assert grown.min() == pytest.approx(0.5)
        assert grown.max() == pytest.approx(0.8)
        if relation is Relation.ADD_REMOVE:
            assert mechanism.sensitivity == 0.8
    long = np.linalg.norm(heavy(), axis=1)
    for name, asked, share in (
        ("residual-step-pca", None, 0.8),
        ("residual-step-pca", 0.4, 0.4),
        ("goe-gaussian", None, 0.5),
        ("symmetrised-wishart", None, 0.5),
    ):
        options = {"row_norm": "private", "norm_quantile": asked, "epsilon": 4.0}
        options |= {"relation": relation, "mechanism": name, "random_state": 0}
        pca = PrivatePCA(1, **options).fit(heavy())
        assert np.mean(long <= pca.row_norm_) == pytest.approx(share, abs=0.06)


@both
def test_an_audit_of_transcripts_sees_nine_tenths_of_mu(relation, here_in_few_rounds):
    result = audit(
        GaussianNormQuantile.from_mu(2.0, relation=relation),
        layer="transcript",
        confidence=0.999,
        budget=Budget(8_000, stop=False),
    )
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.mu_lower > 0.9 * 2.0


def heavy(n=20_000, factor=1.0, seed=3):
    """Rows whose lengths have no bound, with two strong directions."""
    rows = rng(seed).standard_normal((n, 12)) * [1.0, 0.8, *[0.1] * 10]
    return rows * factor * rng(seed).standard_cauchy((n, 1))


NAMES = ("goe-gaussian", "residual-step-pca", "symmetrised-wishart", "minibatch-oja")


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_clips_to_the_quantile_and_keeps_scales(name):
    options = {"mechanism": name, "relation": "replace-one", "random_state": 1}
    options |= {"n_components": 1, "row_norm": "private", "norm_quantile": 0.5}
    pca = PrivatePCA(**options).fit(heavy())
    middle = np.median(np.linalg.norm(heavy(), axis=1))
    assert middle / 1.5 < pca.row_norm_ < 1.5 * middle
    assert abs(pca.components_[0, 0]) > 0.9
    again = PrivatePCA(**options).fit(heavy(factor=2.0**20))
    assert again.row_norm_ == 2.0**20 * pca.row_norm_
    np.testing.assert_allclose(again.components_, pca.components_, atol=1e-9)
    assert [x.release for x in pca.spent_.releases] == ["norm", "components"]
    assert pca.spent_.epsilon == pytest.approx(1.0)
    if name == "minibatch-oja":
        return
    found = clip_rows(heavy(), pca.row_norm_)
    square = np.square(found @ pca.components_[0]).sum()
    assert pca.private_variance_[0] == pytest.approx(square, rel=0.05)
    share = square / np.square(found).sum()
    assert pca.explained_variance_ratio_[0] == pytest.approx(share, rel=0.05)
    ratio = again.private_variance_ / pca.private_variance_
    np.testing.assert_allclose(ratio, 2.0**40, rtol=1e-9)


@both
@pytest.mark.parametrize("name", ["goe-gaussian", "separate-covariance"])
def test_the_norm_is_of_rows_about_the_centre_and_all_shares_compose(relation, name):
    rows = heavy() + 5.0
    options = {"mechanism": name, "relation": relation, "epsilon": 2.0}
    options |= {"center": "private", "center_norm": 40.0, "row_norm": "private"}
    pca = PrivatePCA(2, norm_share=0.05, random_state=0, **options).fit(rows)
    about = np.linalg.norm(rows - pca.mean_, axis=1)
    assert np.mean(about <= pca.row_norm_) == pytest.approx(0.5, abs=0.15)
    mean, norm, components = (x.claim.parameters["mu"] for x in pca.spent_.releases)
    whole = gaussian_mu(2.0, 1e-5)
    assert np.hypot(np.hypot(mean, norm), components) == pytest.approx(whole)
    assert (norm / whole) ** 2 == pytest.approx(0.05)
    in_blocks = PrivatePCA(2, norm_share=0.05, random_state=0, **options)
    found = in_blocks.fit(np.array_split(rows, 4)).components_
    assert projector_distance(found.T, pca.components_.T) < 1e-6
    # Pure noise, and what needs a delta beside it.
    pca = PrivatePCA(2, random_state=0, **{**options, "delta": 0.0})
    pca.set_params(mechanism="symmetrised-wishart").fit(rows)
    claims = [x.claim for x in pca.spent_.releases]
    assert claims == [PureDP(0.2), PureDP(0.05), PureDP(2.0 * (1 - 0.1 - 0.025))]
    assert (pca.spent_.epsilon, pca.spent_.delta) == (pytest.approx(2.0), 0.0)
    pca.set_params(delta=1e-5, mechanism="wishart-approximate").fit(rows)
    claims = [x.claim for x in pca.spent_.releases]
    left = 1 - 0.1 - 0.025
    deltas = 0.1 * 1e-5, left * 1e-5
    expected = [ApproxDP(0.2, deltas[0]), PureDP(0.05), ApproxDP(2 * left, deltas[1])]
    assert claims == expected
    assert (pca.spent_.epsilon, pca.spent_.delta) == (pytest.approx(2.0), 1e-5)


ENDS = {
    "zeros": (np.zeros((500, 4)), NORMS[1]),
    "huge": (1e280 * np.ones((500, 4)), NORMS[-1]),
    "tiny": (1e-300 * np.ones((500, 4)), NORMS[1]),
    "alike": (np.ones((500, 4)), 2.0),
}


@pytest.mark.parametrize("name", ["goe-gaussian", "residual-step-pca"])
@pytest.mark.parametrize("kind", [*ENDS, "none", "one"])
def test_whatever_the_rows_a_fit_is_finite_and_an_end_is_told(name, kind):
    few = {"none": np.empty((0, 4)), "one": np.ones((1, 4))}
    rows, norm = ENDS.get(kind) or (few[kind], None)
    pca = PrivatePCA(1, mechanism=name, row_norm="private", random_state=0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        pca.set_params(epsilon=4.0).fit(rows)
    assert np.isfinite(pca.components_).all()
    assert np.isfinite(pca.private_variance_).all()
    if norm is not None:
        assert pca.row_norm_ == norm
        end = ["at an end of its range" in str(x.message) for x in told]
        assert any(end) is (kind != "alike")


def test_another_fit_forgets_the_norm():
    pca = PrivatePCA(1, row_norm="private", random_state=0).fit(heavy(500))
    assert hasattr(pca, "row_norm_")
    assert not hasattr(pca.set_params(row_norm=1.0).fit(heavy(500)), "row_norm_")


PRIVATE = {"row_norm": "private"}
ROWS = np.ones((3, 2))
test_what_is_refused = refused(
    ({**PRIVATE, "norm_share": 0.0}, ROWS, r"norm_share must be in \(0, 1\)"),
    ({**PRIVATE, "norm_quantile": 1.0}, ROWS, r"norm_quantile must be in \(0, 1\)"),
    (
        {**PRIVATE, "center": "private", "center_norm": 1.0, "norm_share": 0.9},
        ROWS,
        "must leave a share to the components, got 0.1 and 0.9",
    ),
    ({**PRIVATE, "center": "private"}, ROWS, "center_norm must be given"),
    (PRIVATE, iter([ROWS]), "private norm takes two passes over X"),
    (PRIVATE, [[1.0], [np.inf]], "row 1 has a NaN or infinity"),
    by=lambda options, rows: PrivatePCA(1, **options).fit(rows),
)


@pytest.mark.filterwarnings("ignore:components do not stand out")
@pytest.mark.parametrize("name", ["coinpress", "two-stage-pca", "goe-gaussian"])
def test_a_row_far_beyond_a_tiny_norm_is_clipped_and_told_by_no_error(name):
    """Over that norm it is no double; also to a mechanism that reads single rows."""
    rows = np.zeros((400, 4))
    rows[0, 0] = 1e280
    options = {"mechanism": name, "relation": "replace-one", "epsilon": 5.0}
    with pytest.warns(UserWarning, match="at an end of its range"):
        pca = PrivatePCA(1, row_norm="private", random_state=0, **options).fit(rows)
    assert pca.row_norm_ < 1e-30
    assert np.isfinite(pca.components_).all()
