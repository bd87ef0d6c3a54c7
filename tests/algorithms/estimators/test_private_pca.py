import pickle
import traceback
from dataclasses import FrozenInstanceError, dataclass, field
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from refusals import refused, refuses
from scipy.sparse import csr_array
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpaudit import ApproxDP, Claim, GaussianDP, PrivatePCA, PureDP, Relation
from dpaudit.algorithms import (
    CATALOGUE,
    GOEGaussian,
    SymmetricNoise,
    SymmetrisedWishart,
    entry,
    names_of,
)
from dpaudit.algorithms.estimators.auto import recommended
from dpaudit.algorithms.estimators.budget import PrivacyBudget
from dpaudit.algorithms.estimators.private_mean import GaussianMean, LaplaceMean
from dpaudit.algorithms.estimators.recommendation import recommend
from dpaudit.errors import InputError, MechanismError
from dpaudit.gaussian import gaussian_delta, gaussian_mu
from dpaudit.gram import gram, row_sum
from dpaudit.subspace import captured_variance_share, projector_distance, top_components

pytestmark = pytest.mark.filterwarnings("ignore:components do not stand out")

EMPTY = "an error on no rows would tell that there are none, which is private"
RULED_OUT = {"check_estimators_empty_data_messages": EMPTY}


def rows_in(dimension=20, n=20_000, seed=0):
    """Return rows of length up to about 1 with three strong directions."""
    rng = np.random.default_rng(seed)
    scale = np.r_[0.5, 0.4, 0.3, np.full(dimension - 3, 0.05)]
    rotation, _ = np.linalg.qr(rng.standard_normal((dimension, dimension)))
    return (rng.standard_normal((n, dimension)) * scale) @ rotation


CHECKS = parametrize_with_checks(
    [
        PrivatePCA(random_state=0),
        PrivatePCA(2, center="private", mechanism="power-method", random_state=0),
    ],
    expected_failed_checks=lambda estimator: RULED_OUT,
)


# A generator before scikit-learn 1.8, which pytest no longer takes.
@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_the_contract_of_estimators(estimator, check):
    check(estimator)


@pytest.mark.parametrize("name", ["goe-gaussian", "residual-step-pca"])
@pytest.mark.parametrize("relation", list(Relation))
def test_the_ratio_is_of_what_was_released(name, relation):
    rows = rows_in()
    options = {"mechanism": name, "relation": relation, "row_norm": 2.0}
    pca = PrivatePCA(3, random_state=0, **options).fit(rows)
    public = top_components(gram(rows, row_norm=2.0).moment, 3)
    share = (np.linalg.norm(rows @ public, axis=0) / np.linalg.norm(rows)) ** 2
    np.testing.assert_allclose(pca.explained_variance_ratio_, share, atol=0.02)
    if name == "goe-gaussian":
        # The noise that was drawn moves the eigenvalues and the trace together.
        rng = np.random.default_rng(0)
        moment = gram(rows, row_norm=2.0).moment
        released = pca.mechanism_.draw_from(moment, 1, rng=rng)[0]
        expected = pca.private_variance_ / np.trace(released)
        np.testing.assert_allclose(pca.explained_variance_ratio_, expected, rtol=1e-9)


def test_there_is_no_ratio_of_what_was_not_released():
    pca = PrivatePCA(mechanism="power-method", relation="replace-one", random_state=0)
    assert not hasattr(pca, "explained_variance_ratio_")
    for name in ("power-method", "coinpress"):
        pca.set_params(mechanism=name).fit(rows_in(5, 10))
        refuses(
            "releases no sum of second moments.* such as goe-gaussian",
            lambda: pca.explained_variance_ratio_,
            error=AttributeError,
        )
    pca.set_params(mechanism="goe-gaussian").fit(rows_in(5, 1000))
    assert hasattr(pca, "explained_variance_ratio_")
    # Of no rows the trace is as often negative as not.
    signs = []
    for seed in range(20):
        ratio = pca.set_params(random_state=seed).fit(np.empty((0, 5)))
        signs.append(np.isnan(ratio.explained_variance_ratio_).all())
    assert 0 < sum(signs) < 20


@pytest.mark.parametrize("first", [2, 3, 5])
@pytest.mark.parametrize("norm", [1.0, "private"])
def test_every_pass_must_see_the_same_columns(first, norm):
    class Changing:
        """Rows that have fewer columns from some pass on."""

        passes = 0

        def __iter__(self):
            self.passes += 1
            yield rows_in(6, 500)[:, : 6 if self.passes < first else 3]

    name = "goe-gaussian" if first == 2 else "residual-step-pca"
    pca = PrivatePCA(2, mechanism=name, row_norm=norm, random_state=0)
    pca.fit(rows_in(6, 500))
    refuses("columns .*got (6 and then )?3", pca.fit, Changing())
    assert not hasattr(pca, "components_")


def test_names_of_features_in_and_out():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows_in(4, 100), columns=list("abcd"))
    pca = PrivatePCA(2, random_state=0).set_output(transform="pandas")
    found = pca.fit_transform(frame)
    assert list(found.columns) == ["privatepca0", "privatepca1"]
    assert list(pca.feature_names_in_) == list("abcd")
    assert list(pca.get_feature_names_out()) == list(found.columns)
    # A source without names forgets those of the last one.
    pca.fit(iter([frame.to_numpy()]))
    assert not hasattr(pca, "feature_names_in_")
    assert pca.n_features_in_ == 4


def test_coordinates_and_back():
    rows = rows_in()
    pca = PrivatePCA(3, center=np.full(20, 0.2), random_state=0).fit(rows)
    coordinates = pca.transform(rows)
    np.testing.assert_allclose(coordinates, (rows - 0.2) @ pca.components_.T)
    full = PrivatePCA(20, center=np.full(20, 0.2), random_state=0).fit(rows)
    back = full.inverse_transform(full.transform(rows))
    np.testing.assert_allclose(back, rows, atol=1e-12)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_components_are_those_of_the_release(delta):
    rows = rows_in(30)
    name = "goe-gaussian" if delta else "auto"
    pca = PrivatePCA(3, mechanism=name, delta=delta, random_state=7).fit(rows)
    moment = gram(rows, row_norm=1.0).moment
    release = pca.mechanism_.draw_from(moment, 1, rng=np.random.default_rng(7))[0]
    expected = top_components(release, 3)
    assert projector_distance(pca.components_.T, expected) < 1e-7
    largest = np.linalg.eigvalsh(release)[:-4:-1]
    np.testing.assert_allclose(pca.private_variance_, largest, rtol=1e-9)
    largest = np.abs(pca.components_).argmax(axis=1)
    assert (pca.components_[np.arange(3), largest] > 0).all()


def test_fits_have_fresh_noise_clipped_rows_and_nothing_exact():
    rows = rows_in(n=50)
    rows = rows[:, :5]
    first, second = (PrivatePCA(1).fit(rows).components_ for _ in range(2))
    assert (first != second).any()
    pca = PrivatePCA(1, random_state=np.random.default_rng(0))
    assert (pca.fit(rows).components_ != pca.fit(rows).components_).any()
    seeded = (PrivatePCA(1, random_state=np.random.RandomState(5)) for _ in range(2))
    np.testing.assert_array_equal(*(pca.fit(rows).components_ for pca in seeded))
    # Scaling all rows and the bound together changes nothing.
    rows = rows_in()
    small = PrivatePCA(3, row_norm=0.3, random_state=0).fit(rows)
    large = PrivatePCA(3, row_norm=30.0, random_state=0).fit(100 * rows)
    assert projector_distance(small.components_.T, large.components_.T) < 1e-6
    larger = 1e4 * small.private_variance_
    np.testing.assert_allclose(large.private_variance_, larger, rtol=1e-6)
    # No attribute tells the number of rows, and all is finite without any.
    for relation in Relation:
        pca = PrivatePCA(2, center="private", relation=relation, random_state=0)
        assert np.isfinite(pca.fit(np.empty((0, 5))).components_).all()
    assert not hasattr(pca, "n_samples_")
    one = PrivatePCA(2, random_state=0).fit(np.zeros((1, 5)))
    many = PrivatePCA(2, random_state=0).fit(np.zeros((9, 5)))
    assert pickle.dumps(one.__dict__) == pickle.dumps(many.__dict__)


@pytest.mark.parametrize("name", [*names_of("covariance"), *names_of("subspace")])
def test_every_mechanism_for_pca_can_be_named(name):
    entry = CATALOGUE[name]
    rows = rows_in(5, 200)
    relation = entry.relations[0]
    pca = PrivatePCA(1, mechanism=name, relation=relation, random_state=0)
    if entry.expected_refuted:
        refuses(f"the claim of {name} is false", pca.fit, rows)
        return
    try:
        pca.fit(rows)
    except MechanismError as error:
        assert "released no components" in str(error)  # noqa: PT017
        assert not hasattr(pca, "components_")
    else:
        assert pca.components_.shape == (1, 5)
    assert pca.spent_.epsilon == 1.0
    assert pca.spent_.delta == (1e-5 if entry.approximate else 0.0)


@dataclass(frozen=True)
class RowByRow:
    """A mechanism that wants the rows: the mean direction, with hardly any noise."""

    claim: Claim = field(default_factory=lambda: PureDP(1.0))
    relation: Relation = Relation.REPLACE_ONE

    def release(self, data, *, rng):
        assert isinstance(data, np.ndarray)
        mean = data.mean(axis=0) + 1e-9 * rng.standard_normal(data.shape[1])
        return mean / np.linalg.norm(mean)

    def components(self, releases, n_components):
        return releases[..., np.newaxis]


def test_mechanisms_that_read_rows_and_public_centres():
    rows = rows_in(4, 50) + 1.0
    options = {"relation": "replace-one", "center": [1, 1, 0, 0]}
    pca = PrivatePCA(1, mechanism=RowByRow(), **options).fit(rows)
    mean = (rows - [1, 1, 0, 0]).mean(axis=0)
    length = pytest.approx(np.linalg.norm(mean), rel=1e-6)
    assert np.abs(pca.components_[0] @ mean) == length
    assert not hasattr(pca, "private_variance_")
    pca.set_params(mechanism="auto").fit(rows)
    assert hasattr(pca, "private_variance_")
    pca.set_params(mechanism=RowByRow()).fit(rows)
    assert not hasattr(pca, "private_variance_")
    refuses("RowByRow reads single rows", pca.fit, [rows, rows])
    rows = rows_in(20) + 3.0
    pca = PrivatePCA(3, center=[3.0] * 20, random_state=0).fit(rows)
    np.testing.assert_array_equal(pca.mean_, np.full(20, 3.0))
    about_zero = PrivatePCA(3, random_state=0).fit(rows - 3.0)
    assert projector_distance(pca.components_.T, about_zero.components_.T) < 1e-6
    assert len(pca.spent_.releases) == 1


@dataclass(frozen=True)
class NothingFound(RowByRow):
    def components(self, releases, n_components):
        return np.full((len(releases), n_components), np.nan)


def test_a_mechanism_that_finds_nothing_says_so_and_has_spent():
    rows = rows_in(4, 50)
    pca = PrivatePCA(1, relation="replace-one", random_state=0).fit(rows)
    pca.set_params(mechanism=NothingFound())
    refuses("NothingFound released no components", pca.fit, rows, error=MechanismError)
    assert pca.spent_.epsilon == 1.0
    refuses("not fitted yet", pca.transform, rows, error=ValueError)


def budget(**options):
    defaults = {"epsilon": 1.0, "delta": 1e-5, "relation": "add-remove"}
    return PrivacyBudget(**{**defaults, "row_norm": 1.0, "mean_norm": 1.0, **options})


def test_one_release_spends_what_it_claims_even_falsely_and_fits_the_budget():
    spent = PrivatePCA(2, random_state=0).fit(rows_in()).spent_
    (release,) = spent.releases
    assert (spent.epsilon, spent.delta) == (1.0, 1e-5)
    assert release.release == "components"
    assert release.mechanism == "ResidualStepPCA"
    assert release.claim == ApproxDP(1.0, 1e-5)
    assert spent.relation is Relation.ADD_REMOVE
    with pytest.raises(FrozenInstanceError):
        spent.epsilon = 0.0
    pca = PrivatePCA(1, mechanism=SymmetricNoise.as_published(1.0), random_state=0)
    assert pca.fit(rows_in(5, 10)).spent_.releases[0].claim == PureDP(1.0)
    mechanism = GOEGaussian.calibrated(1.0, 1e-5)
    assert budget().plan(mechanism, 2, 30).spent.epsilon == 1.0
    assert budget(epsilon=2.0).plan(mechanism, 2, 30).spent.epsilon < 1.0 + 1e-9
    for too_small in ({"epsilon": 0.99}, {"delta": 1e-6}, {"mean_share": 0.1}):
        with pytest.raises(InputError, match="must keep to its share of the budget"):
            budget(**too_small).plan(mechanism, 2, 30)
    pure = SymmetrisedWishart.calibrated(1.0)
    assert budget(delta=0.0).plan(pure, 2, 30).spent.epsilon == pytest.approx(1.0)
    with pytest.raises(InputError, match="must keep to its share of the budget"):
        budget(delta=0.0, mean_share=0.1).plan(pure, 2, 30)
    refuses("center_share must be in", budget, mean_share=1.0)
    plan = budget(epsilon=2.0, delta=2e-5, mean_share=0.5).plan(mechanism, 2, 30)
    assert plan.spent.epsilon == pytest.approx(2.0)
    assert plan.spent.delta == 2e-5


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("name", ["analyze-gauss", "goe-gaussian"])
def test_two_gaussian_releases_compose_exactly(epsilon, share, name):
    """The joint release on the worst pairs of both is one Gaussian shift, of mu."""
    plan = budget(epsilon=epsilon, mean_share=share, mean_norm=5.0).plan(name, 2, 30)
    first = plan.mean.exact_claim(plan.mean.worst_case(30)).parameters["mu"]
    worst = plan.mechanism.worst_case(30)
    second = plan.mechanism.exact_claim(worst).parameters["mu"]
    together = sqrt(first**2 + second**2)
    assert float(gaussian_delta(epsilon, together)) == pytest.approx(1e-5, rel=1e-6)
    assert first**2 / together**2 == pytest.approx(share, rel=1e-9)
    assert (plan.spent.epsilon, plan.spent.delta) == (epsilon, 1e-5)
    claims = [release.claim for release in plan.spent.releases]
    assert all(isinstance(claim, GaussianDP) for claim in claims)
    assert plan.mean.row_norm == 5.0


@pytest.mark.parametrize(
    ("name", "delta", "mean", "components"),
    [
        # Noise as published is not counted as calibrated.
        ("analyze-gauss-published", 2**-7, (0.25, 2**-9), ApproxDP(0.75, 3 * 2**-9)),
        ("symmetrised-wishart", 0.0, None, PureDP(0.75)),
        # A mean beside pure components gets all of delta.
        ("symmetrised-wishart", 1e-5, (0.25, 1e-5), PureDP(0.75)),
    ],
)
def test_other_releases_add_up(name, delta, mean, components):
    plan = budget(delta=delta, mean_share=0.25).plan(name, 2, 30)
    assert isinstance(plan.mean, GaussianMean if mean else LaplaceMean)
    assert plan.mean.claim == (ApproxDP(*mean) if mean else PureDP(0.25))
    assert plan.mechanism.claim == components
    assert (plan.spent.epsilon, plan.spent.delta) == (pytest.approx(1.0), delta)


@pytest.mark.parametrize("relation", list(Relation))
def test_auto_takes_what_is_recommended_where_n_and_the_gap_are_unknown(relation):
    for delta, d, k in ((0.0, 30, 2), (1e-5, 2, 1), (1e-5, 20, 3), (1e-5, 3, 3)):
        known = {"epsilon": 1.0, "delta": delta, "relation": relation}
        some = names_of("covariance")
        found = recommend(d=d, k=min(k, d - 1), among=some, **known)
        best = found.choices[0].mechanism
        assert recommended(1.0, delta, relation, d, k) == best
        pca = PrivatePCA(k, delta=delta, relation=relation, random_state=0)
        made = pca.fit([np.zeros((10, d))]).mechanism_
        once = pca.fit(iter([np.zeros((10, d))])).mechanism_
        assert type(once) is type(entry(best).build(epsilon=1.0))
        assert isinstance(
            made, type(once) | type(entry("residual-step-pca").build(epsilon=1.0))
        )
    # k-norm noise takes a second there
    assert recommended(1.0, 0.0, relation, 10, 2) == "symmetrised-wishart"
    beyond = recommended(50.0, 0.01, relation, 2000, 30)
    assert beyond == recommended(10.0, 1e-5, relation, 100, 10)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_a_private_centre(relation, delta):
    rows = rows_in(20) + 2.0
    options = {"center": "private", "center_norm": 12.0, "relation": relation}
    options |= {"epsilon": 4.0, "delta": delta, "random_state": 0}
    pca = PrivatePCA(3, **options).fit(rows)
    assert np.abs(pca.mean_ - 2.0).max() < 0.1
    centred = rows - rows.mean(axis=0)
    assert captured_variance_share(pca.components_.T, centred.T @ centred) > 0.95
    assert [each.release for each in pca.spent_.releases] == ["mean", "components"]
    assert (pca.spent_.epsilon, pca.spent_.delta) == (pytest.approx(4.0), delta)


def test_a_private_centre_is_a_release_and_takes_two_passes():
    rows = rows_in(20)
    goe = {"mechanism": "goe-gaussian", "center": "private"}
    pca = PrivatePCA(2, random_state=9, **goe).fit(rows)
    rng = np.random.default_rng(9)
    mechanism = GaussianMean.from_mu(sqrt(0.1) * gaussian_mu(1.0, 1e-5))
    release = mechanism.draw_from(row_sum(rows, row_norm=1.0), 1, rng=rng)[0]
    np.testing.assert_allclose(pca.mean_, mechanism.mean(release), rtol=1e-9)
    moment = gram(rows, row_norm=1.0, centre=pca.mean_).moment
    noisy = pca.mechanism_.draw_from(moment, 1, rng=rng)[0]
    found = projector_distance(pca.components_.T, top_components(noisy, 2))
    assert found < 1e-7
    rows = rows_in()
    pca = PrivatePCA(2, random_state=0, **goe)
    expected = pca.fit(rows).components_
    found = pca.fit(np.array_split(rows, 3)).components_
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
    with pytest.raises(InputError, match=r"takes two passes over X.*got generator"):
        pca.fit(part for part in [rows])


def test_sources_give_what_the_array_gives(tmp_path):
    rows = rows_in()
    np.save(tmp_path / "rows.npy", rows)
    pca = PrivatePCA(3, mechanism="goe-gaussian", random_state=0)
    expected = pca.fit(rows).components_
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    parts = np.array_split(rows, 7)
    for source in (rows.tolist(), mapped, parts, iter(parts)):
        found = pca.fit(source).components_
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


def test_parameters_are_looked_at_before_the_data_and_its_length():
    def source():
        yield rows_in(5, 10)
        raise AssertionError("read on")

    with pytest.raises(InputError, match="did you mean 'goe-gaussian'"):
        PrivatePCA(1, mechanism="goe-gausian").fit(source())
    pca = PrivatePCA(2, random_state=0).fit(rows_in(5, 10))
    refuses("X must have 2 columns", pca.inverse_transform, np.ones((3, 5)))
    # The other half of the check that is ruled out.
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        PrivatePCA(1).fit(np.empty((12, 0)))


def goe(**changes):
    return {"mechanism": GOEGaussian.calibrated(1.0, 1e-5, **changes)}


test_bad_parameters_are_named = refused(
    ({"n_components": 6}, "n_components must be an integer >= 1 and <= 5, got 6"),
    ({"relation": "both"}, "relation must be one of"),
    ({"center": "private", "center_share": 1.0}, "center_share must be in"),
    ({"center": "private", "center_norm": 0.0}, "center_norm must be"),
    ({"center": "mean"}, r"center must be False.*sample mean depends"),
    ({"center": [1.0]}, r"center must have shape \(5,\)"),
    ({"center": [[1.0], 2.0]}, r"center must be numbers of shape \(5,\)"),
    ({"center": [np.nan] * 5}, "center must be finite"),
    ({"random_state": -1}, "random_state must be"),
    ({"mechanism": "goe-gaussian", "delta": 0.0}, "goe-gaussian needs a delta > 0"),
    ({"mechanism": "laplace"}, "does not"),
    ({"mechanism": "symmetric-noise"}, "claim of symmetric-noise is false"),
    ({"mechanism": 3}, "mechanism must release principal components, but int"),
    (goe(row_norm=2.0), "row_norm must be that of the mechanism, 2.0, got 1.0"),
    (goe(relation="replace-one"), "must be that of the mechanism, replace-one"),
    by=lambda options: PrivatePCA(**{"n_components": 1, **options}).fit(rows_in(5, 10)),
)


def test_auto_takes_steps_where_they_lose_little_and_not_of_few_columns():
    noise = 0.18, 3e-8, Relation.REPLACE_ONE
    assert recommended(*noise, 7, 2, restarts=True) == "k-norm-covariance"
    budget = 2.6, 5e-9, Relation.ADD_REMOVE, 20, 4
    assert recommended(*budget) == "symmetrised-wishart"
    assert recommended(*budget, restarts=True) == "residual-step-pca"


ROWS = rows_in(4, 6)
test_no_rows_of_numbers_are_refused_by_name = refused(
    (np.zeros(6, dtype=[("a", float), ("b", float)]), r"^X must.*entries have fields"),
    ({"a": [1.0, 2.0]}, "^X must have numbers alone.*not 'dict'"),
    ({1.0, 2.0}, "^X must have numbers alone.*not 'set'"),
    (b"rows", "^X must have numbers alone.*a text"),
    (np.array([[{}, 1.0]], dtype=object), "^X must have numbers alone.*not 'dict'"),
    (np.array([[10**400, 1]], dtype=object), "^X must have numbers alone.*too large"),
    ([[1j, 1.0]], "^X must have numbers alone.*not 'complex'"),
    (ROWS + 1j, "^X must have numbers alone.*Complex data not supported"),
    ([[1.0, 2.0], [3.0]], "^X must have numbers alone.*rows of several lengths"),
    (np.ma.masked_greater(ROWS, 0.1), "^X must have numbers alone.*a masked array"),
    (list(np.ma.masked_greater(ROWS, 0.1)), "^X must have numbers.*a masked array"),
    (csr_array(ROWS), "^Sparse data was passed for X"),
    (ROWS.view(np.matrix), "^X: np.matrix is not supported"),
    (pd.Series([1.0, 2.0]), "^X: Expected a 2-dimensional container"),
    (pd.DataFrame({"a": [1.0], 1: [2.0]}), "^Feature names are only .*X.columns"),
    (None, "^X: Expected 2D array, got scalar"),
    (np, "^X must have numbers alone.*not 'module'"),
    ("rows.csv", r"^cannot read 'rows.csv': a path must be .*\.parquet"),
    ("rows\0.npy", "^cannot read .*: a path must be of rows"),
    by=lambda rows: PrivatePCA(1, random_state=0).fit(rows),
)


@pytest.mark.parametrize(
    "rows",
    [
        np.full(9, 12345.678),
        np.array(12345.678),
        np.full((3, 2), 12345.678 + 0j),
        np.array([["12345.678 kg", 1.0]], dtype=object),
        [[12345.678, 1.0], [12345.678]],
        np.array([[12345], [54321]], dtype="M8[ns]"),
        pd.DataFrame({"a": [1.0, 2.0], "b": pd.to_timedelta([12345, 1])}),
    ],
)
def test_errors_show_no_entry_of_the_rows(rows):
    with pytest.raises(InputError, match=r"Expected|Complex|numbers|shape") as raised:
        PrivatePCA(1, epsilon=1.0, delta=1e-6).fit(rows)
    assert "12345" not in "".join(traceback.format_exception(raised.value))
