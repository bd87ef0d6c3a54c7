"""No audit is told what the store holds of other code, whatever the key says."""

import itertools
import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from unittest import mock

import pytest
from audit_cases import CLAIM, PAIR, audited, laplace_sum, values
from refusals import refuses
from store_key_cases import CASES, FEW, KINDS, audit_all

from dpaudit import InputError
from dpaudit.audit import Budget, Run, Store
from dpaudit.audit.game.freezing import freeze, thaw
from dpaudit.audit.sampling.sampler import Sampler

NOT_BELIEVED = "the audit in the store is not believed: what was drawn for it before"
pytestmark = pytest.mark.usefixtures("in_few_rounds")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two stores of audits of every case at scale 1, finished and unfinished."""
    folder = tmp_path_factory.mktemp("keys")
    with (
        mock.patch.dict(os.environ),
        mock.patch.dict(sys.modules),
        mock.patch.object(sys, "path", [*sys.path]),
    ):
        known = audit_all(folder, KINDS)
        assert len(known) == len(CASES) + len([*CASES][::6])
        assert not {name: again for name, again in known.items() if again is not False}
        yield folder


@pytest.mark.parametrize("case", CASES)
def test_other_code_is_not_told_what_is_kept(folder, case):
    """It is told apart, or refused before anything is told; its true epsilon is 10."""
    told = []
    try:
        run = Run(store=folder / "finished", progress=told.append)
        result = audited(CASES[case](0.1), budget=FEW, run=run)
    except InputError as error:
        refusal = str(error)
        assert (refusal.startswith(NOT_BELIEVED), told) == (True, [])
    else:
        assert not result.from_store
        assert told[0].resumed_at == 0


AGAIN = """
import json, sys
from store_key_cases import KINDS, audit_all

print(json.dumps(audit_all(sys.argv[1], dict.fromkeys(KINDS))))
"""


def test_the_same_code_is_known_again_in_another_process(folder):
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, str(folder)],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout)
    assert len(told) == len(CASES) + len([*CASES][::6])
    assert not {name: again for name, again in told.items() if again is not True}


@dataclass(frozen=True)
class Changed:
    """Raises, or shifts what is on one side, where no key sees it."""

    def __call__(self, data, rng):
        return globals()["CHANGE"](data, rng)


def fails(error):
    raise error


CHANGES = {
    "raises": lambda data, rng: fails(ArithmeticError()),
    "refuses": lambda data, rng: fails(InputError("no")),
    "shifted": lambda data, rng: laplace_sum(data, rng) + 1e-9 * len(data),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("should_stop", KINDS.values(), ids=KINDS)
def test_what_a_mechanism_does_now_counts(tmp_path, monkeypatch, should_stop, change):
    kept = Run(store=tmp_path / "audits.db")
    monkeypatch.setitem(globals(), "CHANGE", laplace_sum)
    run = replace(kept, should_stop=should_stop)
    first = audited(Changed(), budget=FEW, run=run)
    for _ in range(2):
        monkeypatch.setitem(globals(), "CHANGE", change)
        refuses(NOT_BELIEVED, audited, Changed(), budget=FEW, run=kept)
    monkeypatch.setitem(globals(), "CHANGE", laplace_sum)
    again = audited(Changed(), budget=FEW, run=kept)
    assert again.from_store == (not first.interrupted)
    assert values(again) == values(audited(Changed(), budget=FEW))


def test_a_nan_is_known_again(tmp_path):
    def mechanism(data, rng):
        return [rng.choice([-1, 1]) * float("nan"), laplace_sum(data, rng)]

    options = {"budget": FEW, "run": Run(store=tmp_path / "audits.db")}
    first = audited(mechanism, **options)
    assert values(audited(mechanism, **options)) == values(first)


@dataclass(frozen=True)
class Many:
    """Weak on some pairs, with a batched draw of its own; may fail in a batch."""

    fails: float = 0.0

    def release(self, data, *, rng):
        if rng.random() < self.fails:
            raise ArithmeticError
        return data.sum() + rng.laplace(scale=0.5 if len(data) == 2 else 1.0)

    def draw(self, data, size, *, rng):
        return [self.release(data, rng=rng) for _ in range(size)][::-1]


SEARCH = {"pair": None, "domain": "scalar:0,1", "relation": "add-remove"}


@pytest.mark.parametrize(("options", "fails"), [(SEARCH, 0.0), ({}, 0.1)])
def test_searches_and_batches_are_known_again(tmp_path, options, fails):
    """After a round of more releases than are looked at, and at the end."""
    options = {**options, "budget": Budget(150, stop=False)}
    kept, played = Run(store=tmp_path / "audits.db"), itertools.count()
    until = replace(kept, should_stop=lambda: next(played) == 4)
    first = audited(Many(fails), run=until, **options)
    again = audited(Many(fails), run=kept, **options)
    assert first.interrupted
    assert audited(Many(fails), run=kept, **options).from_store
    assert values(again) == values(audited(Many(fails), **options))


@pytest.mark.parametrize(("mechanism", "drawn"), [(laplace_sum, 10), (Many(), 16)])
def test_no_more_is_drawn_again_than_is_looked_at(mechanism, drawn):
    """Of a batched draw it is one batch, since the others may hang on it."""
    for opening in Sampler(mechanism, PAIR, 0).opening((1000, 1000), 10):
        assert (opening.first, sum(opening.units)) == (0, drawn)


def test_bits_are_known_by_a_few_dozen(tmp_path, monkeypatch):
    """Of which most are the same under other code: here three of four."""

    def mechanism(data, rng):
        return float(rng.random() < globals()["CHANCE"])

    options = {"budget": 100, "run": Run(store=tmp_path / "audits.db")}
    monkeypatch.setitem(globals(), "CHANCE", 0.5)
    assert audited(mechanism, **options).samples == 100
    monkeypatch.setitem(globals(), "CHANCE", 0.75)
    refuses(NOT_BELIEVED, audited, mechanism, **options)


def test_every_look_counts(tmp_path, monkeypatch):
    """At the pilot and at the last rounds, of the pair played last and of the best."""
    monkeypatch.setattr("dpaudit.audit.game.state._FINEST", 50)  # several last rounds
    options = {**SEARCH, "budget": 50}
    path = tmp_path / "audits.db"
    expected = values(audited(Many(), **options, run=Run(store=path)))
    (key,) = Store(path).to_pandas()["key"]
    result, trail = thaw(Store(path).result(key), {"claim": CLAIM})
    looks = [(arm, i) for arm, seen in trail.looks.items() for i in range(len(seen))]
    assert len({arm for arm, _ in looks}) == 2
    assert {0, 1, 2} <= {i for _, i in looks}
    for first, *_ in trail.looks.values():
        assert {opening.first for opening in first.openings} == {0}
    for number, place in enumerate([None, *looks]):
        changed = {arm: [*seen] for arm, seen in trail.looks.items()}
        if place is not None:
            arm, i = place
            changed[arm][i] = changed[arm][i]._replace(digest=bytes(32))
        store = Store(tmp_path / f"{number}.db")
        frozen = freeze((result, trail._replace(looks=changed)), {"claim": CLAIM})
        store.add_result(key, "code", result.to_dict(), frozen)
        if place is None:
            assert values(audited(Many(), **options, run=Run(store=store))) == expected
            continue
        refuses(NOT_BELIEVED, audited, Many(), **options, run=Run(store=store))
