"""Pairs with NaN and infinite rows: no attack fails on them, and what leaks shows."""

from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

from dpaudit import InputError, Pair, PureDP, Relation
from dpaudit.attacks import BITS, PORTFOLIO, GradientBoosting, Target
from dpaudit.attacks.base import canary_rows
from dpaudit.audit import Run, Witness, audit, verify
from dpaudit.batches import Batch
from dpaudit.outputs import read

# Trees look at no data, and take longer than all others.
ATTACKS = [a for a in PORTFOLIO + BITS if not isinstance(a, GradientBoosting)]
STRANGE = [np.nan, np.inf, -np.inf]
pytestmark = pytest.mark.usefixtures("in_few_rounds")
LAYOUTS = [(2, 2), (2,), (2, 1), (2, 2), ()]


def pair_with(strange, relation):
    common = [[0.5, 0.2], [0.1, 0.3]]
    data = [*common, [0.0, 1.0]] if relation is Relation.REPLACE_ONE else common
    neighbour = [*common, [strange, 0.1]]
    return Pair(data, neighbour, relation, allow_nonfinite=True)


@dataclass(frozen=True)
class Stated:
    """A mechanism with capabilities that know finite rows only."""

    shape: tuple[int, ...]
    claim = PureDP(1.0)
    relation = Relation.ADD_REMOVE

    def release(self, data, *, rng):
        return rng.laplace(size=self.shape)

    def statistic(self, data):
        return np.full(self.shape, data.sum())

    sensitivity = None

    def privacy_loss(self, releases, data, other):
        if not np.isfinite(other).all():
            raise InputError("rows must be finite")
        return np.zeros(len(releases))

    def in_support(self, releases, data):
        return self.privacy_loss(releases, data, data) == 0

    @property
    def step_scales(self):
        return {"step": 1.0}

    def step_means(self, transcript, data):
        self.privacy_loss(transcript["step"], data, data)
        return transcript


@pytest.mark.parametrize(
    ("shape", "strange", "relation"),
    list(zip(LAYOUTS, cycle(STRANGE), cycle(Relation), strict=False)),
    ids=str,
)
def test_no_attack_fails_on_them(shape, strange, relation):
    rng = np.random.default_rng(0)
    pair = pair_with(strange, relation)
    sides = [rng.standard_normal((20, *shape)) for _ in range(2)]
    sides[1][0] = strange
    steps = [{"step": side} for side in sides]
    outputs = [Batch.gather([*map(read, side), read("no")]) for side in sides]
    for mechanism in (lambda data, rng: 0.0, Stated(shape)):
        target = Target(mechanism, pair)
        for attack in ATTACKS:
            for given in [outputs] if attack.reads == "outputs" else [sides, steps]:
                if attack.applies(target, given[0]):
                    parameters = attack.fit(target, *given)
                    scores = attack.score(target, parameters, given[1])
                    assert scores.shape in ((20,), (21,)), attack.name
                    assert not np.isnan(scores).any(), attack.name


@pytest.mark.parametrize("relation", list(Relation))
def test_the_canary_is_found_beside_rows_that_are_not_numbers(relation):
    rows = np.array([[np.nan, 1.0], [np.inf, 2.0], [0.0, np.nan]])
    other = rows[[0, 2]]
    if relation is Relation.REPLACE_ONE:
        other = rows.copy()
        other[1, 1] = np.nan
    pair = Pair(rows, other, relation, allow_nonfinite=True)
    ours, theirs = canary_rows(pair)
    np.testing.assert_array_equal(ours, rows[1:2])
    np.testing.assert_array_equal(theirs, other[1 : len(other) - 1])


def clipped_sum(data, rng):
    """Clip every entry; a NaN passes all clipping."""
    return np.clip(data, 0.0, 1.0).sum() + rng.laplace(scale=2.0)


def careful_sum(data, rng):
    return clipped_sum(np.nan_to_num(data), rng)


CLAIM = PureDP(1.0)


@pytest.mark.parametrize("relation", list(Relation))
def test_a_sum_that_lets_nan_pass_is_refuted_by_a_pair(tmp_path, relation):
    result = audit(clipped_sum, pair=pair_with(np.nan, relation), claim=CLAIM)
    assert result.refuted
    assert result.samples <= 50
    assert result.witness is not None
    path = Path(tmp_path / "w.json")
    result.witness.save(path)
    again = Witness.load(path)
    for side in ("data", "neighbour"):
        one, two = (getattr(w.pair, side) for w in (result.witness, again))
        np.testing.assert_array_equal(one, two)
    assert verify(again, mechanism=clipped_sum, seed=1).confirmed
    assert not verify(again, mechanism=careful_sum, seed=1, max_samples=50).confirmed


def test_a_store_brings_the_refutation_back(tmp_path):
    pair, store = pair_with(np.nan, Relation.ADD_REMOVE), tmp_path / "a.db"
    first, again = (
        audit(clipped_sum, pair=pair, claim=CLAIM, run=Run(store=store))
        for _ in range(2)
    )
    assert first.refuted
    assert again.from_store
    assert again.to_dict() == first.to_dict() | {"from_store": True}


def test_careful_sums_stand_and_domains_find_malformed_rows():
    """By the claim's own guarantee with probability at least 1 - 1e-6."""
    pair = pair_with(np.nan, Relation.ADD_REMOVE)
    options = {"claim": CLAIM, "budget": 150, "confidence": 1 - 1e-6}
    assert not audit(careful_sum, pair=pair, **options).refuted
    # Which is enough for the other one to fall.
    assert audit(clipped_sum, pair=pair, **options).refuted
    options = {"relation": "add-remove", "claim": CLAIM, "budget": 50}
    result = audit(clipped_sum, domain="box:0,1:1:nonfinite", **options)
    assert result.refuted
    assert result.witness is not None
    assert not result.witness.pair.finite
    assert not audit(clipped_sum, domain="box:0,1:1", **options).refuted
