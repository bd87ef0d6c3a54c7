"""Every mechanism of the catalogue is built, says what is true of it, and conforms.

Type-I error: `run_conformance` may fail a correct mechanism with probability 2e-9, so
less than 2e-7 for the 63 cases; the seed is fixed.
"""

import inspect
import itertools
import math
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from refusals import refuses

from dpaudit import (
    ApproxDP,
    Claim,
    InputError,
    Pair,
    PureDP,
    Relation,
    UnsupportedError,
)
from dpaudit.algorithms import CATALOGUE, Entry, build, entry, names_of
from dpaudit.algorithms.estimators.norm_quantile import (
    GaussianNormQuantile,
    LaplaceNormQuantile,
)
from dpaudit.algorithms.estimators.private_mean import GaussianMean, LaplaceMean
from dpaudit.algorithms.robust.initialisation import PowerStart
from dpaudit.algorithms.textbook.sums import Gaussian, Laplace
from dpaudit.claims import NO_LOSS
from dpaudit.codec import encode, rebuild
from dpaudit.mechanism import (
    HasExactClaim,
    HasGaussianSteps,
    HasPrivacyLoss,
    HasTranscript,
    HasTranscriptLoss,
    HasWorstCase,
    Mechanism,
)
from dpaudit.testing import run_conformance

NAMES = list(CATALOGUE)
# Of one noisy second moment; CoinPress has several, of rows that the first one changes.
COVARIANCE = [n for n in names_of("covariance") if not n.startswith("coinpress")]
EXACT = [name for name in COVARIANCE if hasattr(entry(name).owner, "exact_claim")]
TEXTBOOK = list(names_of("textbook"))
SUBSPACE = list(names_of("subspace"))
KNOWN = [*names_of("covariance"), *SUBSPACE, *TEXTBOOK]
OWN = [name for name in NAMES if entry(name).extra is None]
# The first draws no more; chains of the second are slow, and tested where they are.
# Noise that is reused is singular, and has no mu.
SUMS = [n for n in names_of("online") if not (entry(n).has_components or "reused" in n)]
ONE_COMPONENT = {"exponential-pca", "exponential-pca-gibbs"}


def several(name):
    """Return the number of components to ask for: two where it is free."""
    return 2 if entry(name).has_components and name not in ONE_COMPONENT else None


@pytest.mark.parametrize(
    ("name", "relation"),
    [(name, relation) for name in KNOWN for relation in entry(name).relations],
)
def test_every_entry_conforms(name, relation):
    mechanism = build(name, relation=relation, n_components=several(name))
    assert isinstance(mechanism, Mechanism)
    # Bases are drawn one by one, and with their loss compared elsewhere.
    run_conformance(mechanism, size=100 if name in SUBSPACE else 300)


@pytest.mark.parametrize("name", KNOWN)
def test_every_entry_promises_what_was_asked(name):
    each = entry(name)
    options = {"epsilon": 0.7, "delta": 1e-4} | (
        {"row_norm": 2.0} if each.has_row_norm else {}
    )
    for relation in each.relations:
        mechanism = each.build(relation=relation.value, **options)
        promised = ApproxDP(0.7, 1e-4) if each.approximate else PureDP(0.7)
        assert mechanism.claim == promised
        assert mechanism.relation is relation
        if each.has_row_norm:
            assert mechanism.row_norm == 2.0


def test_an_entry_reads_from_its_constructor_what_it_takes_and_refuses_the_rest():
    def made(epsilon, delta, *, relation, n_components):
        raise AssertionError("nothing is built")

    read = Entry("a", "b", "c", "d", made)
    assert (read.approximate, read.has_row_norm, read.has_components) == (1, 0, 1)
    assert read.relations == tuple(Relation)
    given = Entry("a", "b", "c", "d", made, approximate=False, has_row_norm=True)
    assert (given.approximate, given.has_row_norm) == (False, True)
    one = Entry("a", "b", "c", "d", Laplace)
    assert one.relations == (Relation.ADD_REMOVE,)
    assert not one.approximate
    assert Entry("a", "b", "c", "d", lambda epsilon: made).relations == (
        Relation.REPLACE_ONE,
    )
    with pytest.raises(InputError) as caught:
        build("svt-1", relation=Relation.ADD_REMOVE)
    assert "relation of svt-1 must be one of ['replace-one']" in str(caught.value)
    for option in ("row_norm", "n_components"):
        refuses(f"svt-1 has no {option}: .*, got 1", build, "svt-1", **{option: 1})


@pytest.mark.parametrize("name", NAMES)
def test_everything_has_a_default_and_shows_what_it_takes(name):
    mechanism, each = entry(name).build(), entry(name)
    assert rebuild(encode(mechanism)) == mechanism
    assert mechanism.relation is each.relations[0]
    assert mechanism.claim == each.claim
    assert each.claim == (
        ApproxDP(each.epsilon, 1e-5) if each.approximate else PureDP(each.epsilon)
    )
    # Those too that hand on fields of their class.
    shown = inspect.signature(entry(name).constructor).parameters
    assert not any(each.kind is each.VAR_KEYWORD for each in shown.values())
    with pytest.raises(TypeError, match="surprise"):
        entry(name).constructor(**asked(entry(name)), surprise=1)
    good = asked(entry(name))
    message = r"^{}( of [\w-]+)? must be"
    # Without noise no delta is spent.
    for option in set(good) - ({"delta"} if name == "noiseless-ggd" else set()):
        for bad in BAD[option]:
            with pytest.raises(InputError, match=message.format(option)) as caught:
                entry(name).constructor(**good | {option: bad})
            assert repr(bad) in str(caught.value)


# The textbook suite: one relation, rows of a fixed range, known truth


@pytest.mark.parametrize("name", TEXTBOOK)
def test_textbook_entries_are_expected_refuted_if_their_claim_is_false(name):
    mechanism, each = build(name), entry(name)
    assert mechanism.true_epsilon == pytest.approx(each.truth, abs=5e-5)
    assert (mechanism.true_epsilon > each.epsilon * (1 + 1e-9)) == each.expected_refuted


# What is true of the others
def keeps_its_promise(mechanism, epsilon):
    assert isinstance(mechanism, HasExactClaim)
    assert isinstance(mechanism, HasWorstCase)
    exact = mechanism.exact_claim(mechanism.worst_case())
    return exact.delta_at(epsilon) <= mechanism.claim.delta_at(epsilon) + 1e-15


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("name", [*EXACT, *SUMS])
def test_entries_are_expected_refuted_if_their_claim_is_false(name, epsilon):
    mechanism = build(name, epsilon=epsilon)
    assert keeps_its_promise(mechanism, epsilon) != entry(name).expected_refuted


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("analyze-gauss", True),
        ("goe-gaussian", True),
        # The constant of the paper is made for adding a row.
        ("analyze-gauss-published", False),
        ("symmetric-noise", False),
    ],
)
def test_what_is_true_when_a_row_is_replaced(name, kept):
    mechanism = build(name, epsilon=1.0, relation=Relation.REPLACE_ONE)
    assert keeps_its_promise(mechanism, 1.0) == kept


@pytest.mark.parametrize("name", EXACT)
def test_neighbours_with_the_same_statistic_lose_nothing(name):
    pair = Pair([[0.6, -0.8]], [[-0.6, 0.8]])
    mechanism = build(name, relation=pair.relation)
    exact = mechanism.exact_claim(pair)
    assert exact.delta_at(0.0) == 0
    assert exact.epsilon_at(0.0) == 0
    assert exact.tpr(0.3) == 0.3


@pytest.mark.parametrize("name", ["laplace", "noisy-hist-1", "symmetric-noise"])
@pytest.mark.parametrize("epsilon", [50.0, 200.0, 700.0])
def test_what_is_nearly_certain_to_show_has_an_exact_claim(name, epsilon):
    mechanism = build(name, epsilon=epsilon)
    exact = mechanism.exact_claim(mechanism.worst_case())
    assert exact.delta_at(0.0) == pytest.approx(1.0, abs=2e-11)


@pytest.mark.parametrize("name", ["goe-gaussian", "k-norm-covariance", "laplace"])
def test_rows_that_hardly_differ_have_an_exact_claim(name):
    mechanism = build(name)
    row = 1e-60 if name != "laplace" else 5e-324
    exact = mechanism.exact_claim(Pair(np.zeros((0, 1)), [[row]]))
    assert exact.epsilon_at(1e-50) == 0
    assert mechanism.exact_claim(Pair(np.zeros((0, 1)), [[0.0]])) == NO_LOSS


def test_what_no_claim_can_say_is_unsupported():
    mechanism = Gaussian(sigma=1e-9, claim=ApproxDP(1.0, 1e-5))
    with pytest.raises(UnsupportedError, match=r"mu must be from 1e-100 to 1e.07"):
        mechanism.exact_claim(mechanism.worst_case())


def test_names_are_keys_and_families_part_the_catalogue():
    for name, each in CATALOGUE.items():
        assert each.name == name
        assert entry(name) is each
        assert all([each.family, each.source, each.summary])
    families = dict.fromkeys(each.family for each in CATALOGUE.values())
    assert {"covariance", "textbook", "third-party"} <= set(families)
    assert [name for family in families for name in names_of(family)] == NAMES
    refuses("did you mean 'covariance'", names_of, "covarianse")


@pytest.mark.parametrize("find", [entry, build])
def test_unknown_names_are_met_with_a_suggestion(find):
    with pytest.raises(InputError) as caught:
        find("symetric-nois")
    message = str(caught.value)
    assert "unknown mechanism 'symetric-nois'" in message
    assert "did you mean 'symmetric-noise'?" in message
    assert all(name in message for name in NAMES)


# Data that anybody may have
DEGENERATE = {
    **{"nobody": np.empty((0, 3)), "one row": np.array([[0.6, 0.0, 0.8]])},
    "zeros": np.zeros((5, 3)),
    "one row many times": np.tile([0.6, 0.0, 0.8], (50, 1)),
    "repeated eigenvalues": np.repeat(np.eye(3), 20, axis=0),
    "beyond the norm": 1e9 * np.ones((2, 3)),
}


@pytest.mark.parametrize("data", DEGENERATE.values(), ids=list(DEGENERATE))
@pytest.mark.parametrize("name", COVARIANCE)
def test_noisy_covariances_of_degenerate_data(name, data):
    for relation in Relation:
        mechanism = build(name, relation=relation)
        releases = mechanism.draw(data, 3, rng=np.random.default_rng(0))
        assert np.isfinite(releases).all()
        np.testing.assert_array_equal(releases, releases.swapaxes(-2, -1))
        assert mechanism.components(releases, 1).shape == (3, 3, 1)
        assert mechanism.draw(data, 0, rng=np.random.default_rng(0)).shape == (0, 3, 3)


@pytest.mark.parametrize("data", DEGENERATE.values(), ids=list(DEGENERATE))
@pytest.mark.parametrize("name", SUBSPACE)
def test_bases_of_degenerate_data(name, data):
    k = several(name) or 1
    for relation in Relation:
        mechanism = build(name, relation=relation, n_components=k)
        releases = mechanism.draw(data, 20, rng=np.random.default_rng(0))
        # Two directions of no eigengap: nothing is certified.
        bottom = name == "private-subspace"
        assert np.isnan(releases).all() == bottom
        gram = releases.swapaxes(-2, -1) @ releases
        expected = np.full((k, k), np.nan) if bottom else np.eye(k)
        np.testing.assert_allclose(gram, np.tile(expected, (20, 1, 1)), atol=1e-12)
        assert mechanism.components(releases, k) is releases
        refuses(f"n_components must be the {k}", mechanism.components, releases, k + 1)
        assert mechanism.release(data, rng=np.random.default_rng(0)).shape == (3, k)
        assert mechanism.draw(data, 0, rng=np.random.default_rng(0)).shape == (0, 3, k)


@pytest.mark.parametrize("name", OWN)
def test_bad_data_and_sizes_are_named(name):
    mechanism, rng = build(name), np.random.default_rng(0)
    data = mechanism.worst_case().data
    rows = np.ones((len(data) or 1, *data.shape[1:]))
    bad = [
        (np.zeros((1, 2, 3)), "must"),
        (np.nan * rows, "must be finite, but (row|item) 0 has a NaN"),
        *((np.full(rows.shape, "a"), "must be an? .*array"), (None, "must")),
    ]
    if name not in TEXTBOOK:
        bad.append((np.zeros((2, 0)), "must"))
        if data.ndim > 1:
            bad.append((np.zeros(3), r"must have shape \(n, d\)"))
    elif mechanism.relation is Relation.REPLACE_ONE:
        bad.append((data[:0], "must"))
    draws = [mechanism.draw]
    if isinstance(mechanism, HasTranscript) and "reused" not in name:
        draws.append(mechanism.transcript)
    for each, message in bad:
        refuses(f"^data {message}", mechanism.release, each, rng=rng)
        for draw in draws:
            refuses(f"^data {message}", draw, each, 1, rng=rng)
    for size, draw in itertools.product((-1, 1.5, "2"), draws):
        refuses(f"size must be .* >= 0, got {size!r}", draw, data, size, rng=rng)
    refuses("^dimension must be", mechanism.worst_case, 0)


@pytest.mark.parametrize("name", OWN)
def test_no_releases_have_no_losses(name):
    mechanism, rng = build(name), np.random.default_rng(0)
    pair = mechanism.worst_case()
    sides = pair.data, pair.neighbour
    releases = mechanism.draw(pair.data, 0, rng=rng)
    if isinstance(mechanism, HasPrivacyLoss):
        with suppress(UnsupportedError):
            assert mechanism.privacy_loss(releases, *sides).shape == (0,)
    if isinstance(mechanism, HasTranscript):
        with suppress(UnsupportedError):
            seen = mechanism.transcript(pair.data, 0, rng=rng)
            assert all(len(value) == 0 for value in seen.values())
            if isinstance(mechanism, HasGaussianSteps):
                means = mechanism.step_means(seen, pair.data)
                assert all(len(value) == 0 for value in means.values())
            if isinstance(mechanism, HasTranscriptLoss):
                assert mechanism.transcript_loss(seen, *sides).shape == (0,)


HUGE_PAIRS = "minibatch-oja dp-pca two-stage-pca private-histogram top-eigenvalue"
HUGE_PAIRS += " mean-estimation residual-step-pca power-method private-subspace dp-ggd"


@pytest.mark.parametrize("name", HUGE_PAIRS.split())
def test_pairs_that_would_fill_the_memory_are_refused(name):
    mechanism = build(name, epsilon=1e-8, delta=1e-300)
    with pytest.raises(UnsupportedError, match="more than 10,000,000 rows"):
        mechanism.worst_case()


@pytest.mark.parametrize("row_norm", [1e-50, 1e50])
@pytest.mark.parametrize(
    "name", [n for n in COVARIANCE if hasattr(entry(n).owner, "privacy_loss")]
)
def test_losses_are_finite_at_the_ends_of_the_norms(name, row_norm):
    mechanism = build(name, row_norm=row_norm)
    pair, rng = mechanism.worst_case(), np.random.default_rng(0)
    releases = mechanism.draw(pair.data, 5, rng=rng)
    loss = mechanism.privacy_loss(releases, pair.data, pair.neighbour)
    one = build(name, row_norm=1.0)
    data, other = pair.data / row_norm, pair.neighbour / row_norm
    expected = one.privacy_loss(releases / row_norm / row_norm, data, other)
    np.testing.assert_allclose(loss, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("row_norm", [9e-51, 1.1e50])
@pytest.mark.parametrize("name", [n for n in OWN if entry(n).has_row_norm])
def test_norms_whose_powers_are_no_doubles_are_refused(name, row_norm):
    wrong = "row_norm must be from 1e-50 to 1e.50, got"
    refuses(wrong, lambda: build(name, row_norm=row_norm).worst_case())


# Bad options
BAD = {
    "epsilon": [0.0, -1.0, math.nan, math.inf, "1"],
    "delta": [0.0, -1e-9, 1.0, math.nan],
    "row_norm": [0.0, -1.0, math.nan, math.inf, "1"],
    **{"n_components": [0, 1.5, True], "relation": ["swap"]},
}


def asked(each):
    """Return the options that an entry takes, with good values."""
    options = {"epsilon": each.epsilon}
    if each.approximate:
        options["delta"] = 1e-5
    if each.has_row_norm:
        options["row_norm"] = 1.0
    if each.has_components:
        options["n_components"] = 1
    if len(each.relations) > 1:
        options["relation"] = each.relations[0]
    return options


# Labels of bins may be any integers, a rule is whatever says when an epoch ends, shares
# are several numbers, and planted batches look at nothing.
FREE = {
    "DeflationExponential.shares",
    *("PrivateHistogram.first", "UnthresholdedHistogram.first"),
    *("DoublingOnlinePCA.rule", "ExactTestDoubling.rule", "RowsInTurn.batch_size"),
}


def parts_of(made):
    """Yield a mechanism, and its noise, batches, steps, starts, ... one by one."""
    yield made
    for each in fields(made):
        part = getattr(made, each.name)
        if is_dataclass(part) and not isinstance(part, type | Claim):
            yield from parts_of(part)


# Parts that no entry has as it is built by default, and what estimators release.
BESIDE = {
    "start": lambda: PowerStart(1.0),
    "mean": lambda: GaussianMean.from_mu(1.0),
    "pure mean": lambda: LaplaceMean.calibrated(1.0),
    "norm": lambda: GaussianNormQuantile.from_mu(1.0),
    "pure norm": lambda: LaplaceNormQuantile.calibrated(1.0),
}


@pytest.mark.parametrize("name", [*OWN, *BESIDE])
def test_every_field_of_a_mechanism_and_of_its_parts_is_checked(name):
    for part in parts_of(BESIDE[name]() if name in BESIDE else build(name)):
        for each in fields(part):
            value = getattr(part, each.name)
            free = f"{type(part).__name__}.{each.name}" in FREE or not each.init
            if free or isinstance(value, bool) or type(value) is str:
                continue
            if is_dataclass(value) or isinstance(value, Claim | Relation):
                bad = object()
            elif isinstance(value, float | int | None):
                bad = math.nan if isinstance(value, float) else -1
            else:
                continue
            refuses(f"^{each.name}", replace, part, **{each.name: bad})


def test_a_claim_is_planted_or_that_of_somebody():
    """What the report counts as false, and what it keeps apart, rests on this."""
    false = [e for e in CATALOGUE.values() if e.refutation and e.family != "textbook"]
    theirs = {e.name for e in false if not e.planted and e.extra is None}
    assert theirs == {
        *("symmetric-noise", "private-subspace-published", "dp-sggd-published"),
        *("noiseless-ggd", "dp-sgd-reap-published", "dp-smd-reap-published"),
    }
    assert all(CATALOGUE[name].made_by.endswith(".as_published") for name in theirs)
    planted = [each for each in CATALOGUE.values() if each.planted]
    assert len(planted) == 17
    assert all(each.expected_refuted for each in planted)
