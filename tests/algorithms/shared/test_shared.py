import numpy as np
import pytest
from refusals import refused
from scipy import stats

from dpaudit.algorithms import build, names_of
from dpaudit.algorithms.shared.bases import gaussian_loss
from dpaudit.algorithms.shared.budget_tree import BudgetTree
from dpaudit.algorithms.shared.step_sizes import (
    ConstantSteps,
    HarmonicSteps,
    ListedSteps,
    as_step_sizes,
)
from dpaudit.codec import encode, rebuild

A, B = BudgetTree("a", 1.0, 1e-6), BudgetTree("b", 0.5, 1e-5, note="of b")


def test_budgets_add_along_sequences_and_print_as_a_tree():
    both = BudgetTree.sequential("both", A, B)
    assert (both.epsilon, both.delta) == (1.5, 1e-6 + 1e-5)
    either = BudgetTree.parallel("either", A, B)
    assert (either.epsilon, either.delta) == (1.0, 1e-5)
    known = BudgetTree.accounted("known", 1.2, 2e-6, A, B, note="")
    assert (known.epsilon, known.delta) == (1.2, 2e-6)
    assert BudgetTree.parallel("all", both, either).leaves == (A, B, A, B)
    tree = BudgetTree.parallel("all", BudgetTree.sequential("both", A, B), A, note="n")
    assert str(tree).splitlines() == [
        "all: (1.5, 1.1e-05), parts read disjoint rows; n",
        *("  both: (1.5, 1.1e-05), the sum of its parts", "    a: (1, 1e-06)"),
        *("    b: (0.5, 1e-05); of b", "  a: (1, 1e-06)"),
    ]


test_bad_nodes_are_named = refused(
    ({"epsilon": -1.0}, "epsilon must be a finite number >= 0"),
    ({"epsilon": 1.0, "delta": 1.0}, r"delta must be in \[0, 1\)"),
    ({"epsilon": 1.0, "parts": (A,)}, "parts must be given unless"),
    ({"epsilon": 1.0, "rule": "parallel"}, "parts must be given unless"),
    by=lambda arguments: BudgetTree("node", **arguments),
)


# Those before are forms of Oja, which have no tree.
@pytest.mark.parametrize("name", names_of("streaming")[5:])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.7, 1e-6), (3.0, 1e-3)])
def test_the_root_is_the_claim(name, epsilon, delta):
    mechanism = build(name, epsilon=epsilon, delta=delta)
    root = mechanism.budget
    claimed = mechanism.claim.parameters
    assert root.epsilon == pytest.approx(claimed["epsilon"], rel=1e-12)
    assert root.delta == pytest.approx(claimed["delta"], rel=1e-12)
    assert (claimed["epsilon"], claimed["delta"]) == (epsilon, delta)
    for leaf in root.leaves:
        assert leaf.epsilon <= epsilon
        assert leaf.delta <= delta


def test_step_sizes_are_what_they_say_and_may_be_numbers_and_lists():
    np.testing.assert_allclose(
        HarmonicSteps(3.0, 2.0).sizes(4), [3 / 3, 3 / 4, 3 / 5, 3 / 6]
    )
    np.testing.assert_array_equal(ConstantSteps(0.5).sizes(3), [0.5] * 3)
    np.testing.assert_array_equal(ListedSteps((3.0, 1.0, 2.0)).sizes(2), [3.0, 1.0])
    for steps in (HarmonicSteps(1.0), ConstantSteps(1.0), ListedSteps((1.0,))):
        assert steps.sizes(0).shape == (0,)
        assert rebuild(encode(steps)) == steps
    assert as_step_sizes(2) == ConstantSteps(2.0)
    assert as_step_sizes(np.float64(0.5)) == ConstantSteps(0.5)
    assert as_step_sizes([1, 2.0]) == ListedSteps((1.0, 2.0))
    assert as_step_sizes(np.array([1.0, 2.0])) == ListedSteps((1.0, 2.0))
    steps = HarmonicSteps(1.0)
    assert as_step_sizes(steps) is steps


test_bad_arguments_are_named = refused(
    (lambda: as_step_sizes(0.0), "step_sizes must be a finite number > 0, got 0.0"),
    (lambda: as_step_sizes(-1), "step_sizes must be a finite number > 0, got -1"),
    (lambda: as_step_sizes(np.nan), "step_sizes must be a finite number > 0"),
    (lambda: as_step_sizes([1.0, -2.0]), r"step_sizes\[1\] must be .* got -2.0"),
    (lambda: as_step_sizes([1.0, np.inf]), r"step_sizes\[1\] must be .* got inf"),
    (lambda: as_step_sizes(["1"]), r"step_sizes\[0\] must be a real number"),
    (lambda: as_step_sizes("1"), "step_sizes must be > 0, or a list"),
    (lambda: as_step_sizes(None), "step_sizes must be a real number, got None"),
    (lambda: as_step_sizes([[1.0]]), "step_sizes must be a real number"),
    (lambda: HarmonicSteps(0.0), "numerator must be a finite number > 0"),
    (lambda: HarmonicSteps(1.0, -1.0), "offset must be a finite number >= 0"),
    (lambda: ConstantSteps(0.0), "size must be a finite number > 0"),
    (lambda: ListedSteps((1.0,)).sizes(2), "step_sizes must be at least 2"),
    (lambda: HarmonicSteps(1.0).sizes(-1), "count must be an integer >= 0"),
)


def test_losses_of_normal_values_are_differences_of_log_densities():
    rng = np.random.default_rng(0)
    scales, shapes = {"a": 0.5, "b": 3.0}, {"a": (4,), "b": (4, 2, 3)}
    values, one, two = (
        {name: rng.standard_normal(shape) for name, shape in shapes.items()}
        for _ in range(3)
    )
    expected = np.zeros(4)
    for name, scale in scales.items():
        for mean, sign in ((one[name], 1), (two[name], -1)):
            logs = stats.norm.logpdf(values[name], mean, scale).reshape(4, -1)
            expected += sign * logs.sum(axis=1)
    found = gaussian_loss(values, one, two, scales)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
