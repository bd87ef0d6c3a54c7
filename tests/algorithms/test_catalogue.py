"""Every mechanism of the catalogue is built, says what is true of it, and conforms.

Type-I error: `run_conformance` may fail a correct mechanism with probability 2e-9, so
2e-8 for the ten cases; the seed is fixed.
"""

import pytest

from dpaudit.algorithms import CATALOGUE, build, entry
from dpaudit.claims import ApproxDP, PureDP
from dpaudit.errors import InputError
from dpaudit.mechanism import HasExactClaim, HasWorstCase, Mechanism
from dpaudit.neighbours import Pair, Relation
from dpaudit.testing import run_conformance

NAMES = list(CATALOGUE)
RELATIONS = list(Relation)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_every_entry_conforms(name, relation):
    run_conformance(build(name, relation=relation))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_every_entry_promises_what_was_asked(name, relation):
    mechanism = build(name, epsilon=0.7, delta=1e-4, relation=relation, row_norm=2.0)
    assert isinstance(mechanism, Mechanism)
    assert mechanism.relation is relation
    assert mechanism.row_norm == 2.0
    promised = ApproxDP(0.7, 1e-4) if entry(name).approximate else PureDP(0.7)
    assert mechanism.claim == promised


@pytest.mark.parametrize("name", NAMES)
def test_the_relation_may_be_given_by_name(name):
    assert build(name, relation="replace-one").relation is Relation.REPLACE_ONE
    assert build(name).relation is Relation.ADD_REMOVE


def keeps_its_promise(mechanism, epsilon):
    assert isinstance(mechanism, HasExactClaim)
    assert isinstance(mechanism, HasWorstCase)
    exact = mechanism.exact_claim(mechanism.worst_case())
    return exact.delta(epsilon) <= mechanism.claim.delta(epsilon) + 1e-15


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("name", NAMES)
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


@pytest.mark.parametrize("name", NAMES)
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
