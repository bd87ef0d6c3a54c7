"""What every attack owes: separation, silence under the null, and no memory."""

import json

import numpy as np
import pytest
from attack_cases import (
    CASES,
    REPLACED,
    ROWS,
    SCALARS,
    auc,
    black_box,
    case_name,
    take,
    words,
)

from dpaudit import Pair
from dpaudit.algorithms.textbook.sums import Laplace
from dpaudit.attacks import BITS, PORTFOLIO, Attack, Target
from dpaudit.batches import Batch, LayoutPart
from dpaudit.codec import decode, encode
from dpaudit.mechanism import HasPrivacyLoss, HasSupport
from dpaudit.outputs import arrays_of, read

every_case = pytest.mark.parametrize("case", CASES, ids=case_name)
every_attack = pytest.mark.parametrize(
    "attack", PORTFOLIO + BITS, ids=lambda attack: attack.name
)


def test_every_attack_has_a_case():
    names = [attack.name for attack in PORTFOLIO + BITS]
    assert len(set(names)) == len(names)
    assert {case.attack.name for case in CASES} == set(names)


@every_case
def test_applies_to_its_case_and_separates_it(case):
    """On releases that it did not learn from.

    The standard error of an area from 1000 releases a side is below 0.013, and each
    bound lies at least six of those below what the attack attains.
    """
    parameters = case.parameters
    scores = [case.score(parameters, side) for side in case.sides(1000, 1)]
    assert all(s.shape == (1000,) and s.dtype == np.float64 for s in scores)
    area = auc(*scores)
    # The sign of a score is immaterial: an audit tries both directions.
    assert max(area, 1 - area) >= case.least
    pilot = case.sides(10, 5)[0]
    assert case.attack.applies(case.target, pilot)
    assert type(case.attack.applies(case.target, pilot)) is bool


@every_case
def test_finds_nothing_where_there_is_nothing(case):
    """Fitted to noise, it does not separate fresh releases of one and the same law.

    Given the fit, the scores of both sides are independent and identically
    distributed; 7 standard errors of the Mann-Whitney statistic make a false alarm
    rarer than 1e-9 for all cases together.
    """
    parameters = case.attack.fit(case.target, *case.null_sides(300, 2))
    size = 2000
    scores = [case.score(parameters, side) for side in case.null_sides(size, 3)]
    standard_error = np.sqrt((2 * size + 1) / (12 * size**2))
    assert abs(auc(*scores) - 0.5) < 7 * standard_error


@every_case
def test_parameters_survive_storage_and_an_attack_keeps_no_state(case):
    parameters = case.parameters
    assert all(isinstance(value, np.ndarray) for value in parameters.values())
    stored = decode(json.loads(json.dumps(encode(dict(parameters)), allow_nan=False)))
    releases = case.sides(200, 4)[0]
    assert np.array_equal(
        case.score(parameters, releases), case.score(stored, releases), equal_nan=True
    )
    if case.attack.name != "exact-loss":  # the mechanism's own code
        releases = take(case.sides(60, 4)[0], slice(0))
        assert case.score(case.parameters, releases).shape == (0,)
    releases, another = case.sides(60, 4)[0], type(case.attack)()
    parameters = another.fit(case.target, *case.sides(600, 0))
    again = another.score(case.target, parameters, releases)
    assert np.array_equal(again, case.score(case.parameters, releases), equal_nan=True)


def spoilt(releases, value, every):
    """Return releases of which each `every`-th consists of one number."""
    if isinstance(releases, Batch):
        parts = releases.parts.items()
        numbers = {k: p.numbers for k, p in parts if p.numbers is not None}
        changed = {k: spoilt(n, value, every) for k, n in numbers.items()}
        return Batch(
            releases.size,
            {
                k: LayoutPart(p.places, changed.get(k))
                for k, p in releases.parts.items()
            },
        )
    if isinstance(releases, dict):
        return {key: spoilt(array, value, every) for key, array in releases.items()}
    changed = releases.copy()
    changed[::every] = value
    return changed


def same_scores(first, second):
    """Say whether scores agree up to the last bits of linear algebra."""
    np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-12)


@every_case
def test_a_score_depends_on_its_release_alone(case):
    """Whatever it is scored with: NaN, infinities, 1e150; whatever it is itself."""
    releases, kept = case.sides(21, 4)[0], np.arange(21) % 7 > 0
    with np.errstate(all="ignore"):
        usual = case.score(case.parameters, releases)
        for number in (np.nan, np.inf, -np.inf, 1e150, 1.7e308, 5e-324, 0.0):
            mixed = spoilt(releases, number, 7)
            together = case.score(case.parameters, mixed)
            if case.attack.reads == "numbers":
                same_scores(together[kept], usual[kept])
            for place in range(21):
                alone = take(mixed, slice(place, place + 1))
                same_scores(
                    case.score(case.parameters, alone), together[place : place + 1]
                )


@every_case
def test_releases_are_left_alone(case):
    def frozen(releases):
        if isinstance(releases, Batch):
            numbers = [p.numbers for p in releases.parts.values()]
            for array in (n for n in numbers if n is not None):
                frozen(array)
            return releases
        for array in arrays_of(releases):
            array.flags.writeable = False
        return releases

    sides = [frozen(side) for side in case.sides(50, 6)]
    case.score(case.attack.fit(case.target, *sides), sides[0])


@every_case
@pytest.mark.parametrize("size", [1, 2, 5])
def test_fits_on_a_handful(case, size):
    parameters = case.attack.fit(case.target, *case.sides(size, 7))
    scores = case.score(parameters, case.sides(20, 8)[0])
    assert scores.shape == (20,)
    assert not np.isnan(scores).any()


def foreign_outputs():
    rng = np.random.default_rng(0)
    wild = rng.standard_cauchy(size=(12, 3)) ** 3
    wild[::3, 0], wild[1::3, 1], wild[2::3, 2] = np.nan, np.inf, -np.inf
    constant = np.zeros((12, 3, 3))
    return {
        "numbers": rng.normal(size=12),
        "integers": rng.integers(3, size=(12, 1)).astype(float),
        "vectors": rng.normal(size=(12, 5)),
        "matching vectors": rng.normal(size=(12, 3)),
        **{"zero vectors": np.zeros((12, 3)), "no entries": np.empty((12, 0))},
        "one by one": rng.normal(size=(12, 1, 1)),
        "squares": rng.normal(size=(12, 3, 3)),
        "large squares": rng.normal(size=(12, 40, 40)),
        **{"constant squares": constant, "bases": rng.normal(size=(12, 3, 2))},
        **{"cubes": rng.normal(size=(12, 3, 3, 3)), "wild": wild},
        "wild squares": wild[:, :, np.newaxis] * wild[:, np.newaxis],
        "all missing": np.full((12, 3), np.nan),
        "huge": rng.normal(size=(12, 3)) * 1e300,
        "tiny": rng.normal(size=(12, 3)) * 1e-310,
        "mapping": {"b": rng.normal(size=(12, 2, 2)), "a": rng.normal(size=12)},
        "transcript": {"first": rng.normal(size=12)},
        "one word": words(["value 'no'"] * 12),
        "words": words(["raises ValueError", "value 'no'"] * 6),
        "mixed": Batch.gather([read(1.5), read("no"), read([1, 2]), read({})] * 3),
        "wild numbers and words": Batch.gather(
            [read(number) for number in wild[:6, 0]] + [read("no")] * 6
        ),
    }


TARGETS = {
    **{"scalars": SCALARS, "rows": ROWS, "replaced": REPLACED},
    "sign flipped": Pair([[0.0, 0.0, 1.0]], [[0.0, 0.0, -1.0]]),
    "zero row": Pair(np.zeros((1, 3)), np.zeros((0, 3))),
    "images": Pair(np.zeros((1, 2, 2)), np.ones((1, 2, 2))),
}


@every_attack
@pytest.mark.parametrize("pair", TARGETS)
def test_foreign_outputs_are_declined_or_scored(attack, pair):
    """No attack raises: where it says that it applies, it gives one score each."""
    target = Target(black_box, TARGETS[pair])
    for output, releases in foreign_outputs().items():
        if isinstance(releases, Batch) != (attack.reads == "outputs"):
            if attack.reads == "outputs":
                assert not attack.applies(target, releases), output
            continue
        applies = attack.applies(target, releases)
        assert type(applies) is bool, output
        if applies:
            sides = take(releases, slice(0, 6)), take(releases, slice(6, 12))
            parameters = attack.fit(target, *sides)
            scores = attack.score(target, parameters, releases)
            assert scores.shape == (12,), output


@pytest.mark.parametrize(
    ("states", "axes", "applies"),
    [
        *((None, 0, (True, True, True, True)), (None, 1, (False, True, True, True))),
        *((None, 2, (False, False, False, True)), (None, None, (False,) * 4)),
        (HasPrivacyLoss, 2, (True,) * 4),
        (HasSupport, 2, (False, False, False, True)),
    ],
)
def test_what_is_declared_is_asked_first(states, axes, applies):
    """Numbers, vectors, dictionaries, matrices; the mechanism knows its loss."""
    kind = type("Any", (Attack,), {"states": states, "axes": axes, "score": None})
    target = Target(Laplace(1.0), SCALARS)
    forms = np.ones(3), np.ones((3, 2)), {"a": np.ones(3)}, np.ones((3, 2, 2))
    assert tuple(kind().applies(target, each) for each in forms) == applies
