import itertools
import math

import numpy as np
import pytest
from refusals import refused
from scipy import stats

from dpaudit.fingerprinting import CullingGame, Proportion

SMALL, NARROW = CullingGame(43, 2, 0.049), CullingGame(10, 1, 0.0)
SIZES = [CullingGame(1000, 20, 0.02), CullingGame(10_000, 100, 0.01)]


def sphere(game):
    """All words at distance f of the word of ones."""
    wrong = list(itertools.combinations(range(game.length), game.erased))
    words = np.ones((len(wrong), game.length), dtype=np.int8)
    words[np.arange(len(wrong))[:, None], wrong] = -1
    return words


def test_the_closed_form_by_brute_force():
    """Every test set and every tie, for one erased position by symmetry."""
    n = 21
    game = CullingGame(n, 1, 0.0477)
    words = sphere(game) < 0
    won = games = 0
    tests = itertools.combinations(range(1, n), game.tested)  # position 0 is erased
    for test in itertools.islice(tests, 0, None, 997):
        found = words[:, list(test)].sum(axis=1)
        best = words[found == found.min()]
        won += np.count_nonzero(~best[:, 0])
        games += len(best)
    assert game.sphere_win_probability("random-half") == pytest.approx(won / games)
    # Of two erased, by hand: both errors among the untested that are not erased.
    outside = SMALL.length - SMALL.tested
    expected = math.comb(outside - 2, 2) / math.comb(outside, 2)
    assert SMALL.sphere_win_probability("random-half") == pytest.approx(expected)


@pytest.mark.parametrize("strategy", ["most-agreement", "random-half"])
def test_the_written_list_and_the_symmetry_agree(strategy):
    # Binomial tests at 1e-9.
    rng = np.random.default_rng(0)
    truth = rng.choice([-1, 1], SMALL.length)
    played = SMALL.play(truth, truth * sphere(SMALL), strategy, games=1500, rng=rng)
    short = SMALL.play_sphere(strategy, games=20_000, rng=rng)
    exact = SMALL.sphere_win_probability(strategy)
    for seen in (played, short):
        if exact == 0:
            assert seen.hits == 0
        else:
            assert stats.binomtest(seen.hits, seen.trials, exact).pvalue > 1e-9


@pytest.mark.parametrize("game", SIZES)
def test_the_bound_is_above_the_exact_loss_on_the_sphere(game):
    exact = 1 - game.sphere_win_probability("random-half")
    assert exact <= game.loss_bound(game.sphere_log_size)
    assert game.loss_bound(0.0) <= game.loss_bound(5.0) <= game.loss_bound(50.0)


def test_intervals_and_loss_bounds_against_their_definitions():
    game = CullingGame(120, 30, 0.01)
    n, h, size = 120, game.tested, 3.0
    best = 1.0
    for w, s in itertools.product(range(n - h), range(40)):
        third = stats.hypergeom.sf(9, n - h, w, 30)
        first = stats.hypergeom.sf(s, n, game.promised, h)
        if first + third < best:
            far = np.arange(w + 1, n + 1)
            often = stats.hypergeom.cdf(np.minimum(s, far - w - 1), n, far, h).max()
            best = min(best, first + size * often + third)
    assert best < 0.5
    assert best * (1 - 1e-9) <= game.loss_bound(math.log(size)) <= 1.5 * best
    low, high = Proportion(7, 20, 0.9).interval
    assert stats.binom.sf(6, 20, low) == pytest.approx(0.05)
    assert stats.binom.cdf(7, 20, high) == pytest.approx(0.05)
    assert Proportion(0, 5).interval[0] == 0
    assert Proportion(5, 5).interval[1] == 1
    assert Proportion(1, 4).share == 0.25


def play(truth, words):
    rng = np.random.default_rng(0)
    return SMALL.play(truth, words, "random-half", games=1, rng=rng)


test_bad_input = refused(
    (CullingGame, (2, 1, 0.0), "length must be an integer >= 3"),
    (CullingGame, (10, 0, 0.0), "erased must be an integer >= 1"),
    (CullingGame, (10, 9, 0.0), "erased must be an integer >= 1 and <= 8"),
    (CullingGame, (10, 1, 0.05), "closeness must be in"),
    (NARROW.sphere_win_probability, ("random-half",), "breaks the promise"),
    (SMALL.sphere_win_probability, ("half",), "unknown strategy 'half'"),
    (SMALL.loss_bound, (-1.0,), "log_size must be a number >= 0"),
    (play, (np.ones(43), -np.ones((2, 43))), "must have a word within 2"),
    (play, (np.ones((2, 43)), np.ones((2, 43))), "truth must be one word"),
    (play, (np.ones(43), np.broadcast_to(1, (2**20, 43))), "at most 2\\^24 symb"),
    (Proportion, (3, 2), "hits must be an integer"),
    (Proportion, (0, 0), "trials must be an integer"),
    (Proportion, (1, 2, 1.0), "confidence must be in"),
    by=lambda call, arguments: call(*arguments),
)
