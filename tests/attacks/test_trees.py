import numpy as np
from attack_cases import ROWS

from dpaudit import Pair
from dpaudit.attacks import gradient_boosting as trees
from dpaudit.attacks.gradient_boosting import _evaluate_trees, _fit_trees, _invariants


def naive_evaluation(parameters, row):
    total = parameters["prior"][0]
    for feature, threshold, value in zip(
        parameters["feature"], parameters["threshold"], parameters["value"], strict=True
    ):
        bits = "".join(
            "1" if row[f] > t else "0" for f, t in zip(feature, threshold, strict=True)
        )
        total += value[int(bits, 2)]
    return total


def test_evaluation_follows_every_tree():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(300, 6)), rng.normal(size=(200, 6)) ** 3
    parameters = _fit_trees(first, second)
    rows = rng.normal(size=(40, 6))
    rows[0, 0], rows[1, 1] = np.inf, -np.inf
    rows = np.vstack([rows, first])  # every threshold is the entry of a row
    expected = [naive_evaluation(parameters, row) for row in rows]
    np.testing.assert_allclose(_evaluate_trees(parameters, rows), expected, rtol=1e-12)


def test_the_first_split_is_the_best(monkeypatch):
    """Against all splits at observed values, with the gain of the definition."""
    monkeypatch.setattr(trees, "_TREES", 1)
    monkeypatch.setattr(trees, "_DEPTH", 1)
    rng = np.random.default_rng(1)
    first, second = rng.integers(8, size=(2, 60, 3)).astype(float)
    first[:, 2] = np.minimum(first[:, 2], 4)
    parameters = _fit_trees(first, second)
    assert parameters["feature"].tolist() == [[2]]
    rows = np.vstack([first, second])[::2]  # the half that the first tree sees
    gradient = np.vstack([np.full((60, 1), 0.5), np.full((60, 1), -0.5)])[::2, 0]

    def gain(feature, threshold):
        total = 0.0
        for side in (rows[:, feature] > threshold, rows[:, feature] <= threshold):
            total += gradient[side].sum() ** 2 / (side.sum() / 4 + trees._PENALTY)
        return total

    best = max(gain(f, t) for f in range(3) for t in range(7))
    chosen = gain(parameters["feature"][0, 0], parameters["threshold"][0, 0])
    np.testing.assert_allclose(chosen, best, rtol=1e-12)


def test_invariants_do_not_change_with_signs_and_bases():
    rng = np.random.default_rng(3)
    bases = np.linalg.qr(rng.normal(size=(7, 3, 2)))[0]
    turned = bases @ np.linalg.qr(rng.normal(size=(7, 2, 2)))[0]
    np.testing.assert_allclose(
        _invariants(ROWS, turned), _invariants(ROWS, bases), atol=1e-12
    )
    vector = _invariants(ROWS, np.array([[2.0, 0.0, 5.0, np.nan]]))[0].tolist()
    counts, summary = [1.0, 0.0, 1.0], [7.0, 2.0, 1.0, 5.0]
    assert vector == [*counts, *summary, 0.0, 0.0, 2.0, 5.0, -2.0, 5.0, -5.0]
    square = _invariants(ROWS, np.diag([1.0, 2.0, 3.0])[np.newaxis])[0]
    canary_sees = [3.0, 3.0]  # x = (0, 0, 1): its quadratic form, the length of Y x
    np.testing.assert_allclose(
        square, [0, 0, 6, 6, np.sqrt(14), 1, 2, 3, *canary_sees], rtol=1e-12
    )
    parameters = _fit_trees(np.ones((30, 2)), np.ones((10, 2)))
    scores = _evaluate_trees(parameters, np.zeros((3, 2)))
    np.testing.assert_allclose(scores, np.log(3.0))


def test_each_pair_has_the_directions_of_its_own_data():
    generator = np.random.default_rng(0)
    pairs = [Pair(rows[:-1], rows) for rows in generator.normal(size=(2, 9, 5))]
    for pair in (*pairs, *pairs):
        expected = np.linalg.eigh(pair.data.T @ pair.data)[1].T[:-4:-1]
        found = trees._principal_directions(pair)
        np.testing.assert_allclose(np.abs(found @ expected.T), np.eye(3), atol=1e-9)
