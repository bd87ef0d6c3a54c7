"""Budgets add up, or do not where rows are disjoint, and roots are the claims."""

import pytest

from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.streaming.entries import STREAMING
from dpaudit.errors import InputError

A, B = BudgetTree("a", 1.0, 1e-6), BudgetTree("b", 0.5, 1e-5, note="of b")


def test_sequential_parts_add_and_parallel_ones_do_not():
    both = BudgetTree.sequential("both", A, B)
    assert (both.epsilon, both.delta) == (1.5, 1e-6 + 1e-5)
    either = BudgetTree.parallel("either", A, B)
    assert (either.epsilon, either.delta) == (1.0, 1e-5)
    known = BudgetTree.accounted("known", 1.2, 2e-6, A, B)
    assert (known.epsilon, known.delta) == (1.2, 2e-6)
    assert BudgetTree.parallel("all", both, either).leaves == (A, B, A, B)


def test_it_prints_as_an_indented_tree():
    tree = BudgetTree.parallel("all", BudgetTree.sequential("both", A, B), A, note="n")
    assert str(tree).splitlines() == [
        "all: (1.5, 1.1e-05), parts read disjoint rows; n",
        "  both: (1.5, 1.1e-05), the sum of its parts",
        "    a: (1, 1e-06)",
        "    b: (0.5, 1e-05); of b",
        "  a: (1, 1e-06)",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": -1.0}, "epsilon must be a finite number >= 0"),
        ({"epsilon": 1.0, "delta": 1.0}, r"delta must be in \[0, 1\)"),
        ({"epsilon": 1.0, "parts": (A,)}, "parts must be given unless"),
        ({"epsilon": 1.0, "rule": "parallel"}, "parts must be given unless"),
    ],
)
def test_bad_nodes_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        BudgetTree("node", **arguments)


# Forms of Oja spend all of it in one place.
WITH_TREE = [each for each in STREAMING if "oja" not in each.name]


@pytest.mark.parametrize("entry", WITH_TREE, ids=lambda entry: entry.name)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.7, 1e-6), (3.0, 1e-3)])
def test_the_root_is_the_claim(entry, epsilon, delta):
    mechanism = entry.build(epsilon=epsilon, delta=delta)
    root = mechanism.budget
    claimed = mechanism.claim.parameters
    assert root.epsilon == pytest.approx(claimed["epsilon"], rel=1e-12)
    assert root.delta == pytest.approx(claimed["delta"], rel=1e-12)
    assert (claimed["epsilon"], claimed["delta"]) == (epsilon, delta)
    for leaf in root.leaves:
        assert leaf.epsilon <= epsilon
        assert leaf.delta <= delta
