import itertools
import time
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace

import numpy as np
import pytest
from audit_cases import CLAIM, PAIR, SETTINGS, attacks, audited, laplace_sum, values
from refusals import refuses

from dpaudit import GaussianDP, Pair
from dpaudit.attacks import Identity
from dpaudit.audit import Budget, Run, Store, StoreWarning
from dpaudit.audit.game.freezing import freeze, thaw
from dpaudit.audit.game.pair_audit import OnePair
from dpaudit.audit.game.state import AuditState
from dpaudit.audit.harness import _Clock
from dpaudit.audit.keeping.checkpoint import Recorder
from dpaudit.errors import ExecutorError

pytestmark = pytest.mark.usefixtures("in_few_rounds")


def mixed(data, rng):
    if rng.random() < 0.1:
        raise ArithmeticError
    return rng.normal(size=3 if rng.random() < 0.1 else 2) + data.sum()


class Every:
    """Asks an audit to end after every so many rounds."""

    def __init__(self, rounds):
        self.rounds, self.asked = rounds, 0

    def __call__(self):
        self.asked += 1
        return self.asked % self.rounds == 0


SEARCH = {"pair": None, "domain": "scalar:0,1", "relation": "add-remove"}
CASES = {
    "to-the-end": (
        lambda data, rng: data.sum() + rng.laplace(scale=0.5),
        {"budget": Budget(40, stop=False)},
        attacks("identity", "atoms"),
    ),
    "learning": (
        mixed,
        {"budget": 60},
        attacks("identity", "abnormal", "linear-discriminant"),
    ),
    "search": (
        lambda data, rng: (
            data.sum() + rng.laplace(scale=0.4 if len(data) == 2 else 1.0)
        ),
        SEARCH | {"budget": 150},
        [Identity()],
    ),
    "gaussian": (
        lambda data, rng: data.sum() + rng.normal(),
        {"claim": GaussianDP(1.0), "budget": 60},
        attacks("mean-shift", "identity"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_interrupted_audit_ends_as_it_would_have(case, tmp_path):
    mechanism, options, chosen = CASES[case]
    run, samples = Run(attacks=chosen), [0]
    expected = audited(mechanism, **options, run=run)
    kept = replace(run, store=tmp_path / "audits.db")
    until = replace(kept, should_stop=Every(3 if "domain" in options else 2))
    while (result := audited(mechanism, **options, run=until)).interrupted:
        assert result.samples > samples[-1]
        samples.append(result.samples)
    assert len(samples) > 2
    assert values(result) == values(expected)
    assert not result.from_store
    again = audited(mechanism, **options, run=replace(kept, store=str(kept.store)))
    assert again.from_store
    assert again.seconds == result.seconds
    assert values(again) == values(expected)
    assert "from the store" in str(again)
    assert "from the store" not in str(result)


@dataclass(frozen=True)
class Counted:
    """Counts its calls, which is none of its fields."""

    @cached_property
    def calls(self):
        return []

    def __call__(self, data, rng):
        self.calls.append(len(data))
        return laplace_sum(data, rng)


OPTIONS = {"budget": 40}


@pytest.mark.usefixtures("in_usual_rounds")
def test_only_what_is_missing_is_drawn(tmp_path):
    """Whoever goes on looks again at the pilot, of two, and some ten of the last."""
    store, stop, audits, counted = tmp_path / "audits.db", Every(5), 1, Counted()
    until = Run(store=store, should_stop=stop)
    while audited(counted, **OPTIONS, run=until).interrupted:
        audits += 1
        assert audits < 20
    assert audits > 2
    spent = len(counted.calls)
    looked_at = spent - 80 - (2 * 2 + 2)  # at the end there are signs of dependence
    assert 0 < looked_at <= (audits - 1) * 2 * (2 + 14)
    assert audited(counted, **OPTIONS, run=Run(store=store)).from_store
    assert 2 * (2 + 10) <= len(counted.calls) - spent <= 2 * (2 + 14)


def test_another_subject_is_another_audit_and_what_is_no_result_not_returned(tmp_path):
    """That each setting is in the key, too, is in tests/audit/test_identity.py."""
    options = {"budget": 4, "run": Run(store=tmp_path / "audits.db")}
    audited(laplace_sum, **options)
    for other in ({"pair": Pair([0.0], [0.0, 2.0])}, {"seed": 1}):
        assert not audited(laplace_sum, **(options | other)).from_store, other
    assert not audited(Counted(), **options).from_store
    assert audited(laplace_sum, **options).from_store
    store = Store(tmp_path / "audits.db")
    store.add_result("key", "code", {"drawn": [1, 1]}, freeze("no result", {}))
    refuses("holds no result under", Recorder(store, "key", CLAIM).finished, audit_of())


def audit_of(mechanism=laplace_sum, pair=PAIR):
    choice = OnePair(pair)
    settings = replace(SETTINGS, budget=Budget(60), attacks=(Identity(),))
    return AuditState(mechanism, choice, settings)


def test_a_checkpoint_does_not_hold_the_data():
    big = Pair(np.zeros((200_000, 5)), np.zeros((200_001, 5)))
    state = audit_of(lambda data, rng: rng.laplace(), big)
    next(state.rounds())
    assert len(state.freeze()) < 2e6 < big.data.nbytes


def test_a_frozen_pair_comes_back_locked_and_what_cannot_be_frozen_is_named():
    pair = thaw(freeze(PAIR, {}), {})
    assert pair is not PAIR
    assert np.array_equal(pair.neighbour, PAIR.neighbour)
    assert pair.relation is PAIR.relation
    assert not pair.data.flags.writeable
    refuses("state cannot be stored", freeze, lambda: 0, {})
    refuses("cannot be read from its store", thaw, b"nonsense", {})
    stand_in = object()
    frozen = freeze([stand_in], {"it": stand_in})
    assert thaw(frozen, {"it": 7}) == [7]
    refuses("cannot be read from its store: 'it'", thaw, frozen, {})


@pytest.fixture
def clock(monkeypatch):
    """The time, which stands still, so that no checkpoint is due unless it is moved."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    return now


class TestRecorder:
    """When it writes, and that it never ends an audit."""

    @pytest.fixture
    def recorder(self, tmp_path):
        return Recorder(Store(tmp_path / "audits.db"), "key", CLAIM)

    def test_checkpoints_take_a_hundredth_of_the_time(self, clock):
        """Even if each takes longer than the one before."""
        state = audit_of()
        written, spent = [], [0.0]

        class Slow:
            def add_checkpoint(self, key, checkpoint):
                written.append(clock[0])
                took = 0.004 * len(written)
                spent[0] += took
                clock[0] += took

        recorder = Recorder(Slow(), "key", CLAIM)
        while clock[0] < 100:
            recorder.keep(state, clock[0])
            clock[0] += 0.125
            assert len(written) < 2 or spent[0] <= 0.01 * clock[0] + 1e-9
        assert written[0] == 1.0
        assert np.diff(written).min() >= 1.0
        assert spent[0] >= 0.006 * clock[0]
        count = len(written)
        recorder.keep(state, 0.0, closing=True)
        assert len(written) == count + 1

    def test_what_cannot_be_written_is_a_warning(self, recorder, tmp_path):
        (tmp_path / "audits.db").mkdir()
        with pytest.warns(StoreWarning, match="goes on, but is not kept: cannot write"):
            recorder.keep(audit_of(), 1.0, closing=True)
        # Said once is enough.
        recorder.finish(audited(laplace_sum, **OPTIONS), audit_of())

    def test_states_that_cannot_be_frozen_are_a_warning(self, recorder):
        state = audit_of()
        state.favourite = lambda: 0
        with pytest.warns(StoreWarning, match="state cannot be stored"):
            recorder.keep(state, 1.0, closing=True)


class Kill(BaseException):
    """Ends an audit wherever it is."""


@dataclass(frozen=True)
class Own:
    """Draws now and then from a generator of its own, which goes on from run to run."""

    seed: int
    share: float = 1.0
    scale: float = 1.0

    @cached_property
    def own(self):
        return np.random.default_rng(self.seed)

    def __call__(self, data, rng):
        source = self.own if rng.random() < self.share else rng
        return data.sum() + source.laplace(scale=self.scale)


def killed(mechanism, store, clock, samples=20, step=0.0, **options):
    """Begin an audit, or go on with it, and kill it as soon as it tells of more.

    Every round takes `step` seconds; a checkpoint is due after one.
    """

    def tell(progress):
        clock[0] += step
        if progress.samples > samples:
            raise Kill

    with pytest.raises(Kill):
        audited(mechanism, **OPTIONS | options, run=Run(store=store, progress=tell))


class Short(Executor):
    """Is lost after so many tasks, in the middle of a round."""

    def __init__(self, tasks):
        self.tasks, self._max_workers = tasks, 1

    def submit(self, function, /, *arguments):
        self.tasks -= 1
        if self.tasks < 0:
            raise OSError("no more")
        future = Future()
        future.set_result(function(*arguments))
        return future


SECOND_TRY = "to draw it again would be a second try"


@pytest.mark.parametrize("share", [1.0, 0.1])
def test_own_randomness_is_not_drawn_again_after_a_kill(tmp_path, clock, share):
    """Even if it shows in one round of those that were told."""
    options = {"budget": Budget(40, stop=False)}
    store, mechanism = tmp_path / "audits.db", Own(0, share)
    killed(mechanism, store, clock, **options)
    for _ in range(2):  # nor the second time
        refuses(SECOND_TRY, audited, mechanism, **options, run=Run(store=store))
    other = audited(mechanism, **options, seed=1, run=Run(store=store))
    assert not other.from_store


@pytest.mark.parametrize("mechanism", [Own(0), laplace_sum], ids=["own", "handed"])
def test_own_randomness_is_not_drawn_again_for_a_round_that_was_lost(
    tmp_path, clock, mechanism, monkeypatch
):
    """Nobody was told of it; but it may have been lost for what it showed."""
    monkeypatch.setattr("dpaudit.audit.sampling.workers._WORTH", 0.0)
    kept = Run(store=tmp_path / "audits.db")

    def tell(progress):
        clock[0] += 10.0  # a checkpoint of every round that anybody was told of

    run = replace(kept, executor=Short(12), progress=tell)
    with pytest.raises(ExecutorError):
        audited(mechanism, **OPTIONS, run=run)
    if mechanism is laplace_sum:
        assert not audited(mechanism, **OPTIONS, run=kept).from_store
        return
    refuses(SECOND_TRY, audited, mechanism, **OPTIONS, run=kept)


@pytest.mark.parametrize("stop", [Every(2), None], ids=["ended", "finished"])
def test_own_randomness_is_not_known_again(tmp_path, stop):
    """Where nothing was lost: other code with other randomness would look the same."""
    mechanism, kept = Own(0), Run(store=tmp_path / "audits.db")
    first = audited(mechanism, **OPTIONS, run=replace(kept, should_stop=stop))
    assert first.interrupted == (stop is not None)
    for _ in range(2):
        refuses(SECOND_TRY, audited, mechanism, **OPTIONS, run=kept)


@pytest.mark.parametrize("step", [0.0, 10.0])
def test_a_mechanism_that_repeats_itself_goes_on_after_any_kill(tmp_path, clock, step):
    store = tmp_path / "audits.db"
    for samples in (15, 20):
        killed(laplace_sum, store, clock, samples=samples, step=step)
    result = audited(laplace_sum, **OPTIONS, run=Run(store=store))
    assert values(result) == values(audited(laplace_sum, **OPTIONS))


def test_seconds_are_those_of_all_processes(tmp_path, clock):
    told = []

    def tell(progress):
        clock[0] += 10.0
        told.append(progress)

    run = Run(store=tmp_path / "audits.db", progress=tell)
    first = audited(laplace_sum, **OPTIONS, run=replace(run, should_stop=Every(2)))
    assert first.interrupted
    assert first.seconds == 20.0
    second = audited(laplace_sum, **OPTIONS, run=run)
    assert second.seconds == 10.0 * len(told) > 20.0
    assert {progress.resumed_at for progress in told[2:]} == {first.samples}
    assert told[2].seconds == 20.0


def test_the_time_left_is_judged_by_this_process_alone(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr("dpaudit.audit.harness.time.perf_counter", lambda: next(clock))
    state = SimpleNamespace(
        samples=100,
        pairs=1,
        tests={"epsilon": SimpleNamespace(lower_bound=0.0)},
        at_delta=0.0,
        favourite=None,
        limit=400,
    )
    resumed = _Clock(state, before=1e6)
    state.samples = 200  # one tick for 100 releases
    resumed.lap()
    progress = resumed.progress()
    assert progress.seconds_left == pytest.approx(2.0)
    assert progress.seconds == 1e6 + 2
    state.samples = 300  # two ticks for 100 more: the last half of the releases counts
    resumed.lap()
    assert resumed.progress().seconds_left == pytest.approx(2.0)
