"""Audits of whatever a mechanism returns: layouts, words, NaN, rare atoms.

Mechanisms that leak are refuted within the releases stated, in rounds that double;
those that keep their claim are refuted with probability at most 1e-3 an audit, over
seeds that are fixed. That scores do not depend on the company they keep is in
tests/attacks/test_contract.py.
"""

import numpy as np
import pytest
from audit_cases import attacks, audited

from dpaudit import ApproxDP, Pair, PureDP
from dpaudit.audit import Run, audit

pytestmark = pytest.mark.usefixtures("in_few_rounds")

PAIR = Pair([[0.0]], [[0.0], [1.0]])
OPTIONS = {"pair": PAIR, "claim": PureDP(1.0)}
FEW = attacks("identity", "abnormal", "atoms")


def seldom(odd, share=0.4):
    """Return a Laplace sum that gives something made of the raw sum in its place."""

    def mechanism(data, rng):
        total = float(data.sum())
        if rng.random() < share:
            return odd(total)
        return np.array([total + rng.laplace()])

    return mechanism


ODD = {
    **{"shape": lambda total: np.full(2, total), "keys": lambda total: {"raw": total}},
    "json": lambda total: f'{{"raw": {total}}}',
    "late in a text": lambda total: "x" * 100 + f" {total}",
    "late in a word": lambda total: "x" * 100 + str(int(total)),
    "which exception": lambda total: [].pop() if total else {}["no"],
    "set": lambda total: {total, 7.5},
}


@pytest.mark.parametrize("odd", ODD)
def test_what_hides_in_a_minority_layout_is_found(odd):
    assert audit(seldom(ODD[odd]), **OPTIONS, budget=500, run=Run(attacks=FEW)).refuted


@pytest.mark.parametrize("odd", ["shape", "json", "which exception", "set"])
def test_layouts_that_tell_nothing_refute_nothing(odd):
    """The same outputs, made of noise: a layout by itself is no evidence."""
    mechanism = seldom(lambda total: ODD[odd](float(total != 0)))

    def private(data, rng):
        return mechanism(np.array([float(rng.random() < 0.5)]), rng)

    options = {"pair": PAIR, "claim": PureDP(0.2), "budget": 150}
    result = audit(private, **options, run=Run(attacks=FEW))
    assert not result.refuted
    assert result.epsilon_lower < 0.2


class RawNowAndThen:
    """A Laplace sum that forgets its noise once in fifty times."""

    def draw(self, data, size, *, rng):
        sums = data.sum() + rng.laplace(size=(size, 1))
        sums[rng.random(size) < 0.02] = data.sum()
        return sums


def test_rare_atoms_are_found_and_minorities_have_attacks_of_their_own():
    """Within five times as many releases as a known event needs, which is 550.

    With p = 0.02 on its own side and 0 on the other, for each of the two atoms, the
    information limit is log(1000) / (2 p log(1 + 1/e)) = 551 a side.
    """
    options = {"pair": PAIR, "claim": ApproxDP(1.0, 1e-5), "budget": 2750}
    result = audit(RawNowAndThen(), **options)
    assert result.refuted
    assert result.attack == "atoms"

    def mechanism(data, rng):
        noise = rng.laplace()
        if rng.random() < 0.4:
            return float(data.sum()) + 0.1 * noise
        return np.array([data.sum() + noise])

    assert audited(mechanism, **OPTIONS, budget=500).refuted


def test_words_that_never_repeat_and_mere_types_are_warned_about():
    def words(data, rng):
        return f"id{rng.integers(2**60):x}"

    (warning,) = audit(words, **OPTIONS, budget=50).warnings
    assert "never occur twice" in warning

    def text(data, rng):
        return f"sum: {data.sum() + rng.laplace()}"

    assert audit(text, **OPTIONS, budget=50).warnings == ()

    def mixed(data, rng):
        return object() if rng.random() < 0.3 else rng.laplace()

    (warning,) = audit(mixed, **OPTIONS, budget=50).warnings
    assert "(object)" in warning


def test_outputs_that_are_mostly_empty_are_outputs():
    """As partition selection has them, and a mechanism that fails nine times in ten."""

    def mostly(nothing):
        def mechanism(data, rng):
            if rng.random() < 0.9:
                if nothing is ValueError:
                    raise ValueError
                return nothing
            return {"0": 1.0}

        return mechanism

    for seed, nothing in enumerate(({}, None, [], ValueError)):
        found = audit(mostly(nothing), **OPTIONS, budget=60, seed=seed)
        assert (found.refuted, found.warnings) == (False, ())

    def leaks(data, rng):
        return {"0": 1.0} if len(data) == 2 and rng.random() < 0.1 else {}

    assert audit(leaks, **OPTIONS, budget=1000).refuted


@pytest.mark.parametrize("nothing", [None, {}])
def test_who_returns_nothing_at_all_is_asked_why(nothing):
    (warning,) = audit(lambda d, g: nothing, **OPTIONS, budget=20).warnings[1:]
    assert warning.endswith("does the mechanism return its result?")


def test_no_release_of_an_audit_is_played_twice():
    """What the first round taught must not settle a bet that was learned from it."""
    drawn = []

    def noted(data, rng):
        drawn.append(data.sum() + rng.laplace())
        return drawn[-1]

    result = audit(noted, **OPTIONS, budget=60)
    played = drawn[: sum(result.drawn)]
    assert len(played) >= 100
    assert len(set(played)) == len(played)
