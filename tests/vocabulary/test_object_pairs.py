import math
import pickle

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

from dpaudit import ApproxDP, InputError, PureDP
from dpaudit.audit import Budget, Run, audit, replay
from dpaudit.object_pairs import ObjectPair

pytestmark = pytest.mark.usefixtures("in_few_rounds")

PEOPLE = [{"age": 30, "tags": ["a"]}, {"age": 90, "tags": []}]
MORE = [*PEOPLE, {"age": math.nan, "tags": ["b"]}]
FRAME = pd.DataFrame({"name": ["x", "y", "z"], "paid": [0.1, 0.2, 0.9]})
KIND = [("name", "U3"), ("paid", "f8")]
TABLE = np.array([("x", 0.1), ("y", 0.2), ("z", 0.9)], dtype=KIND)


ADDED, REPLACED = "add-remove", "replace-one"
STEPS = [
    *((PEOPLE, MORE, ADDED, (None, 2)), (MORE[1:], MORE, ADDED, (None, 0))),
    (FRAME, FRAME.iloc[:2], ADDED, (2, None)),
    (FRAME, FRAME.assign(paid=[0.1, math.nan, 0.9]), REPLACED, (1, 1)),
    (TABLE, TABLE[[0, 2]], ADDED, (1, None)),
    ({"a", "b"}, {"a"}, ADDED, (None, None)),
    (frozenset("ab"), frozenset("ac"), REPLACED, (None, None)),
]
NO_STEPS = [
    (PEOPLE, MORE, REPLACED, "they have 2 and 3 rows"),
    (PEOPLE, PEOPLE[::-1], REPLACED, "2 rows differ"),
    (PEOPLE[::-1], MORE, ADDED, "differ in more than the row"),
    ({1}, {1, 2, 3}, ADDED, "2 elements"),
    (FRAME, FRAME[["name"]], ADDED, "same columns"),
    (TABLE, TABLE["paid"], ADDED, "rows of one type"),
    ("ab", "ab", ADDED, "must differ"),
    ("ab", ["ab"], ADDED, "one type, got str and list"),
    ((x for x in ()), (x for x in ()), ADDED, "copy.deepcopy"),
]


@pytest.mark.parametrize(("data", "neighbour", "relation", "changed"), STEPS)
def test_rows_are_compared_where_they_are_known(data, neighbour, relation, changed):
    pair = ObjectPair(data, neighbour, relation)
    assert (pair.checked, pair.changed) == (True, changed)
    assert pair.swapped.changed == changed[::-1]
    assert pair.swapped.is_data(pair.neighbour)
    assert pickle.loads(pickle.dumps(pair)).changed == changed


@pytest.mark.parametrize(("data", "neighbour", "relation", "message"), NO_STEPS)
def test_what_is_seen_to_be_no_step_is_refused(data, neighbour, relation, message):
    refuses(message, ObjectPair, data, neighbour, relation)


def total(people, rng):
    spent = sum(each["age"] / 100 for each in people if each["age"] > 0)
    people.clear()  # of its own copy
    return spent + rng.laplace(scale=1.0)


def mean(people, rng):
    return total(list(people), rng) / len(people)


def paid(table, rng):
    return table["paid"].sum() + rng.laplace(scale=1.0)


def letters(text, rng):
    return text.count("b") + rng.laplace(scale=0.5)


def in_batches(people, rng):
    kept = 0.0
    for _ in range(3):
        taken = rng.random(len(people)) < 0.1
        spent = sum(one["age"] for one, t in zip(people, taken, strict=True) if t)
        kept = float(spent / 100 + rng.normal(scale=5.0))
    return kept


@pytest.mark.parametrize(
    ("mechanism", "pair", "verdict", "loss"),
    [
        (total, (PEOPLE, PEOPLE[:1]), "NOT_REFUTED", 0.9),
        (mean, (PEOPLE, PEOPLE[:1]), "REFUTED", math.inf),
        (paid, (FRAME, FRAME.iloc[:2]), "NOT_REFUTED", 0.9),
        (paid, (TABLE, TABLE[:2]), "NOT_REFUTED", 0.9),
        (letters, ("abc", "abbc"), "REFUTED", 2.0),
    ],
)
def test_a_replay_follows_them(mechanism, pair, verdict, loss):
    result = replay(mechanism, pair=pair, relation="add-remove", claim=PureDP(1.0))
    assert (str(result.verdict), result.proof) == (verdict, verdict == "REFUTED")
    assert result.loss == pytest.approx(loss)
    assert result.witness is None
    assert ("neighbours" in result.assumes) == (mechanism is letters)
    if result.refuted:
        assert f"no file holds data of type {type(pair[0]).__name__}" in str(result)
    assert result.to_dict()["verdict"] == verdict


def test_secret_batches_and_black_boxes_are_of_their_rows():
    options = {"relation": "add-remove", "sees": "transcript"}
    pair = PEOPLE, PEOPLE[:1]
    result = replay(in_batches, pair=pair, claim=ApproxDP(1.0, 1e-5), **options)
    assert (str(result.verdict), result.batches) == ("NOT_REFUTED", "secret")
    options = {"relation": "add-remove", "confidence": 1 - 1e-6}
    wrong = audit(letters, pair=("abc", "abbc"), claim=PureDP(1.0), **options)
    assert (wrong.refuted, wrong.witness) == (True, None)
    claim, pair = PureDP(0.9), (PEOPLE, PEOPLE[:1])
    right = audit(total, pair=pair, claim=claim, budget=Budget(60), **options)
    assert str(right.verdict) == "NOT_REFUTED"  # wrongly with probability <= 1e-6


def test_a_scale_of_the_data_falls_in_draws_from_the_exact_laws():
    def mechanism(people, rng):
        return rng.normal(scale=max(each["age"] for each in people))

    options = {"pair": (PEOPLE, [PEOPLE[0], {"age": 9e3}]), "relation": REPLACED}
    result = replay(mechanism, claim=ApproxDP(1.0, 1e-5), **options)
    assert (str(result.verdict), result.proof) == ("REFUTED", False)


@pytest.mark.parametrize("kind", [audit, replay])
def test_what_cannot_be_done_is_said_by_name(kind, tmp_path):
    options = {"claim": PureDP(1.0), "pair": (PEOPLE, MORE)}
    refuses("relation is needed", kind, total, **options)
    options["relation"] = "add-remove"
    refuses("objects takes no store", kind, total, **options, run=Run(store=tmp_path))
    refuses(
        "pair must be a Pair where a domain", kind, total, **options, domain="box:0,1:1"
    )
    refuses("two datasets, got one of 1", kind, total, **options | {"pair": (PEOPLE,)})
    with pytest.raises(InputError, match="a tuple of two datasets of any kind"):
        kind(total, **options | {"pair": PEOPLE})
