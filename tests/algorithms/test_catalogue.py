"""Every mechanism of the catalogue is built, says what is true of it, and conforms.

That those of the textbook suite conform is seen in ``test_textbook_suite.py``.

Type-I error: `run_conformance` may fail a correct mechanism with probability 2e-9, so
2e-8 for the ten cases; the seed is fixed.
"""

import pytest

from dpaudit.algorithms import CATALOGUE, Entry, build, entry, names_of
from dpaudit.algorithms.textbook import Laplace
from dpaudit.claims import ApproxDP, PureDP
from dpaudit.errors import InputError
from dpaudit.mechanism import HasExactClaim, HasWorstCase, Mechanism
from dpaudit.neighbours import Pair, Relation
from dpaudit.testing import run_conformance

NAMES = list(CATALOGUE)
COVARIANCE = list(names_of("covariance"))
TEXTBOOK = list(names_of("textbook"))
BOTH = [(n, r) for n in COVARIANCE for r in CATALOGUE[n].relations]


@pytest.mark.parametrize(("name", "relation"), BOTH)
def test_every_entry_conforms(name, relation):
    run_conformance(build(name, relation=relation))


@pytest.mark.parametrize(("name", "relation"), BOTH)
def test_every_entry_promises_what_was_asked(name, relation):
    mechanism = build(name, epsilon=0.7, delta=1e-4, relation=relation, row_norm=2.0)
    assert isinstance(mechanism, Mechanism)
    assert mechanism.relation is relation
    assert mechanism.row_norm == 2.0
    promised = ApproxDP(0.7, 1e-4) if entry(name).approximate else PureDP(0.7)
    assert mechanism.claim == promised


@pytest.mark.parametrize("name", COVARIANCE)
def test_the_relation_may_be_given_by_name(name):
    assert entry(name).relations == (Relation.ADD_REMOVE, Relation.REPLACE_ONE)
    assert build(name, relation="replace-one").relation is Relation.REPLACE_ONE
    assert build(name).relation is Relation.ADD_REMOVE


def test_an_entry_reads_from_its_constructor_what_it_takes():
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


@pytest.mark.parametrize("name", NAMES)
def test_everything_has_a_default(name):
    mechanism, each = entry(name).build(), entry(name)
    assert mechanism.relation is each.relations[0]
    promised = (
        ApproxDP(each.epsilon, 1e-5) if each.approximate else PureDP(each.epsilon)
    )
    assert mechanism.claim == promised


# The textbook suite: one relation, rows of a fixed range, known truth


@pytest.mark.parametrize("name", TEXTBOOK)
def test_textbook_entries_take_what_the_suite_takes(name):
    each = entry(name)
    promised = ApproxDP(0.7, 1e-4) if each.approximate else PureDP(0.7)
    (relation,) = each.relations
    mechanism = build(name, epsilon=0.7, delta=1e-4, relation=relation.value)
    assert mechanism.claim == promised
    assert mechanism.relation is relation
    assert mechanism.worst_case().relation is relation


@pytest.mark.parametrize("name", TEXTBOOK)
def test_what_textbook_entries_do_not_have_is_refused(name):
    (relation,) = entry(name).relations
    (other,) = set(Relation) - {relation}
    with pytest.raises(InputError) as caught:
        build(name, relation=other)
    assert f"relation of {name} must be one of ['{relation}']" in str(caught.value)
    with pytest.raises(InputError, match=f"{name} has no row_norm"):
        build(name, row_norm=1.0)


@pytest.mark.parametrize("name", TEXTBOOK)
def test_textbook_entries_are_expected_refuted_if_their_claim_is_false(name):
    mechanism, each = build(name), entry(name)
    assert (mechanism.true_epsilon > each.epsilon * (1 + 1e-9)) == each.expected_refuted


# What is true of the others


def keeps_its_promise(mechanism, epsilon):
    assert isinstance(mechanism, HasExactClaim)
    assert isinstance(mechanism, HasWorstCase)
    exact = mechanism.exact_claim(mechanism.worst_case())
    return exact.delta(epsilon) <= mechanism.claim.delta(epsilon) + 1e-15


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("name", COVARIANCE)
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


@pytest.mark.parametrize("name", COVARIANCE)
def test_neighbours_with_the_same_statistic_lose_nothing(name):
    pair = Pair([[0.6, -0.8]], [[-0.6, 0.8]])
    mechanism = build(name, relation=pair.relation)
    exact = mechanism.exact_claim(pair)
    assert exact.delta(0.0) == 0
    assert exact.epsilon(0.0) == 0
    assert exact.tpr(0.3) == 0.3


def test_names_are_keys_and_every_entry_says_where_it_is_from():
    for name, each in CATALOGUE.items():
        assert each.name == name
        assert entry(name) is each
        assert all([each.family, each.source, each.summary])


def test_families_part_the_catalogue():
    families = dict.fromkeys(each.family for each in CATALOGUE.values())
    assert {"covariance", "textbook", "third-party"} <= set(families)
    assert [name for family in families for name in names_of(family)] == NAMES
    with pytest.raises(InputError, match="did you mean 'covariance'"):
        names_of("covarianse")


@pytest.mark.parametrize("find", [entry, build])
def test_unknown_names_are_met_with_a_suggestion(find):
    with pytest.raises(InputError) as caught:
        find("symetric-nois")
    message = str(caught.value)
    assert "unknown mechanism 'symetric-nois'" in message
    assert "did you mean 'symmetric-noise'?" in message
    assert all(name in message for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan")])
def test_bad_epsilons_are_named(name, epsilon):
    with pytest.raises(InputError, match=f"epsilon must be .*, got {epsilon}"):
        build(name, epsilon=epsilon)


def test_a_claim_is_planted_or_that_of_somebody():
    """What the report counts as false, and what it keeps apart, rests on this."""
    false = [e for e in CATALOGUE.values() if e.falls and e.family != "textbook"]
    theirs = {e.name for e in false if not e.planted and e.extra is None}
    assert theirs == {
        "symmetric-noise",
        "private-subspace-published",
        "dp-sggd-published",
        "noiseless-ggd",
        "dp-sgd-reap-published",
        "dp-smd-reap-published",
        "follow-perturbed-leader-published",
    }
    assert all(CATALOGUE[name].made_by.endswith(".as_published") for name in theirs)
    planted = [each for each in CATALOGUE.values() if each.planted]
    assert len(planted) == 16
    assert all(each.expected_refuted for each in planted)
