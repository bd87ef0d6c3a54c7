import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from refusals import refused

from dpaudit.fingerprinting import STRATEGIES, collude, invalid_share, unanimous

WORDS = st.tuples(st.integers(1, 5), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.int8, shape, elements=st.sampled_from([-1, 1]))
)

RNG = np.random.default_rng(0)


@given(WORDS, st.sampled_from(STRATEGIES), st.integers(0, 9))
def test_every_strategy_obeys_the_marking_condition(words, strategy, seed):
    word = collude(words, strategy, rng=np.random.default_rng(seed))
    assert set(np.unique(word)) <= {-1, 1}
    assert invalid_share(word, words) == 0
    free = unanimous(words) == 0
    total = words.sum(axis=0)[free]
    match strategy:
        case "majority":
            assert (word[free] * total >= 0).all()
        case "minority":
            assert (word[free] * total <= 0).all()
        case "all-ones":
            assert (word[free] == 1).all()
        case "all-minus-ones":
            assert (word[free] == -1).all()


def test_coins_and_interleaving_have_their_laws():
    # 20,000 positions: beyond 7 standard deviations with probability below 1e-11.
    words = np.tile(np.array([[1], [1], [1], [-1]], dtype=np.int8), 20_000)
    for strategy, mean in (("coin", 0.0), ("interleaving", 0.5)):
        word = collude(words, strategy, rng=np.random.default_rng(0))
        assert abs(word.mean() - mean) < 7 / np.sqrt(20_000)


def test_invalid_share_counts_unanimous_positions_only():
    words = [[1, 1, 1, -1, 1], [1, 1, 1, -1, -1]]
    assert unanimous(words).tolist() == [1, 1, 1, -1, 0]
    assert invalid_share([1, -1, 0, 0.5, -1], words) == 0.75
    assert invalid_share([1, -1], [[1, -1], [-1, 1]]) == 0.0


test_bad_input = refused(
    (lambda: collude([[1]], "majorty", rng=RNG), "did you mean 'majority'"),
    (lambda: collude(np.ones((0, 3)), "coin", rng=RNG), "at least one codeword"),
    (lambda: collude([[1]], "coin", rng=7), "numpy.random.Generator"),
    (lambda: invalid_share([1, 1], [[1]]), "length of the code, 1, got 2"),
)
