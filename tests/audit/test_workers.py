import ctypes
import os
import signal
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import parent_process
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from audit_cases import CLAIM, PAIR, audited, laplace_sum, values
from threadpoolctl import threadpool_info

from dpaudit import InputError, MechanismError, Pair, PureDP
from dpaudit.audit import Run, Store, audit, process_pool
from dpaudit.audit.sampling import workers
from dpaudit.audit.sampling.draws import Piece, Source
from dpaudit.audit.sampling.sampler import DATA, NEIGHBOUR, Sampler
from dpaudit.audit.sampling.workers import Workers
from dpaudit.errors import ExecutorError

pytestmark = pytest.mark.usefixtures("in_few_rounds")


@pytest.fixture(autouse=True)
def all_is_sent(monkeypatch):
    """Let workers draw what is drawn at home for want of worth, too."""
    monkeypatch.setattr(workers, "_WORTH", 0.0)


@pytest.fixture
def one_by_one(monkeypatch):
    """Submit each release by itself."""
    monkeypatch.setattr(workers, "_LEAST", 0.0)
    monkeypatch.setattr(workers, "_MOST", 0.0)


def mixed(data, rng):
    """Numbers of two shapes, words and failures, and one that writes to the data."""
    kind = rng.integers(6)
    if kind == 0:
        raise ArithmeticError
    if kind == 1:
        return "a word"
    if kind == 2:
        data += 1.0
    return rng.normal(size=2 if kind == 3 else 3)


@dataclass(frozen=True)
class Batched:
    """Draws batches into a buffer that it uses again; some batches fail."""

    failing: float = 0.0

    def release(self, data, *, rng):
        if rng.random() < self.failing:
            raise ArithmeticError
        return data.sum() + rng.laplace()

    def draw(self, data, size, *, rng):
        if rng.random() < size * self.failing:
            raise ArithmeticError
        buffer = _BUFFERS.setdefault(size, np.zeros(size))
        buffer[:] = data.sum() + rng.laplace(size=size)
        return buffer


_BUFFERS: dict[int, np.ndarray] = {}


def transposed(data, rng):
    """Return matrices whose memory is in an order that pickling would not keep."""
    return rng.normal(size=(3, 4)).T[:, ::2]


class Backwards(Executor):
    """Works only when somebody waits, and then on the last of its tasks first."""

    def __init__(self, workers=1):
        self.waiting, self.most, self._max_workers = [], 0, workers

    def submit(self, function, /, *arguments):
        future = Future()
        self.waiting.append((future, function, arguments))
        self.most = max(self.most, len(self.waiting))
        future.result = lambda: self.work() or Future.result(future)
        return future

    def work(self):
        while self.waiting:
            future, function, arguments = self.waiting.pop()
            try:
                future.set_result(function(*arguments))
            except Exception as error:
                future.set_exception(error)


@pytest.fixture(scope="module")
def pools():
    with (
        pytest.MonkeyPatch.context() as patch,
        ThreadPoolExecutor(1) as one,
        ThreadPoolExecutor(8) as eight,
    ):
        patch.setenv("OPENBLAS_NUM_THREADS", "2")  # of which workers must use one
        with process_pool(1) as process:
            yield SimpleNamespace(
                one=one, process=process, all=[one, eight, process, Backwards()]
            )


def rounds_of(mechanism, executor=None):
    """Return what three rounds bring, in order, and whom it came from.

    The last one is cut into more units than any executor works on at once.
    """
    sampler = Sampler(mechanism, PAIR, 3, workers=executor and Workers(executor))
    found = []
    last = (9000, 10_000) if isinstance(mechanism, Batched) else (1100, 1500)
    for sizes in [(10, 10), (700, 300), last]:
        for side, batch in sampler.round(sizes):
            found.append((side, batch))
    return found


@pytest.mark.parametrize(
    "mechanism",
    [laplace_sum, mixed, Batched(), Batched(1e-3), transposed],
    ids=["single", "mixed", "batched", "failing", "transposed"],
)
def test_outputs_are_the_same_whoever_draws(mechanism, pools):
    expected = rounds_of(mechanism)
    for pool in pools.all:
        if isinstance(mechanism, Batched) and pool is pools.all[1]:
            continue  # it has one buffer, and is not made for threads
        found = rounds_of(mechanism, pool)
        assert [side for side, _ in found] == [side for side, _ in expected]
        for (_, one), (_, other) in zip(expected, found, strict=True):
            assert one.equals(other)
            for layout, part in one.parts.items():
                if part.numbers is not None:
                    same = other.numbers(layout)
                    assert part.numbers.strides == same.strides


def test_the_cut_follows_the_round_and_the_size_of_a_release():
    def sizes(mechanism, size, first=10):
        sampler = Sampler(mechanism, PAIR, 0)
        list(sampler.round((first, first)))
        return [
            count for piece in sampler._pieces(DATA, size) for _, count in piece.units
        ]

    assert sizes(laplace_sum, 3) == [1, 1, 1]
    assert sizes(laplace_sum, 100) == [13] * 7 + [9]
    assert sizes(laplace_sum, 10_000) == [256] * 39 + [16]
    assert sizes(Batched(), 10_000) == [4096, 4096, 1808]
    assert sizes(Batched(), 10**6) == [65536] * 15 + [16960]
    # 2 MiB a release: eight make a batch, and a unit is no more than that.
    assert sizes(lambda d, rng: np.zeros(2**18), 300, 1) == [8] * 37 + [4]


@pytest.mark.parametrize(("count", "most"), [(1, 3), (20, 41)])
def test_what_is_in_flight_is_bounded(count, most, one_by_one):
    executor = Backwards(count)
    sampler = Sampler(laplace_sum, PAIR, 0, workers=Workers(executor))
    list(sampler.round((10, 10)))
    executor.most = 0
    list(sampler.round((100, 100)))
    assert executor.most == most


def refuses(data, rng):
    raise InputError("n must be >= 7, got 1")


def test_few_large_releases_are_in_flight_and_unwanted_tasks_cancelled():
    executor = Backwards(16)
    large = lambda d, rng: np.zeros(2**22)  # noqa: E731
    sampler = Sampler(large, PAIR, 0, workers=Workers(executor))
    list(sampler.round((1, 1)))
    executor.most = 0
    for _ in sampler.round((6, 6)):
        pass
    assert executor.most == 8  # of 32 MiB each

    class OneByOne(Backwards):
        def work(self):
            waiting = self.waiting[1:]
            self.waiting = self.waiting[:1]
            super().work()
            self.waiting = waiting

    executor = OneByOne()
    sampler = Sampler(refuses, PAIR, 0, workers=Workers(executor))
    with pytest.raises(InputError, match="n must be >= 7"):
        list(sampler.round((10, 10)))
    assert executor.waiting
    assert all(future.cancelled() for future, *_ in executor.waiting)


class Short:
    def draw(self, data, size, *, rng):
        return np.zeros(size - 1)


@pytest.mark.parametrize(
    ("mechanism", "error", "words"),
    [
        (refuses, InputError, "n must be >= 7, got 1"),
        (Short(), MechanismError, "7 releases instead of 8"),
    ],
)
def test_errors_of_dpaudit_pass_unchanged(mechanism, error, words, pools):
    for pool in pools.all:
        with pytest.raises(error, match=words):
            audit(mechanism, pair=PAIR, claim=CLAIM, run=Run(executor=pool))


def write_to_memory(data, rng):
    """Write to the dataset, as libraries do that are handed its memory."""
    ctypes.memset(data.ctypes.data, 0, data.nbytes)
    return data.sum() + rng.laplace()


def unlock(data, rng):
    data.setflags(write=True)
    data *= 0.5
    return data.sum() + rng.laplace()


def test_releases_may_write_into_what_they_are_given_and_not_into_the_pair(pools):
    pair = Pair([[2.0]], [[2.0], [1.0]])
    for executor in (None, pools.one, pools.process):
        workers = executor and Workers(executor)
        for mechanism in (write_to_memory, unlock):
            list(Sampler(mechanism, pair, 0, workers=workers).round((10, 10)))
    pair.check_untouched()

    def holding(data, rng):
        return write_to_memory(pair.data, rng)

    with pytest.raises(MechanismError, match="wrote to the dataset of the pair"):
        audit(holding, pair=pair, claim=CLAIM)


def test_mechanisms_that_cannot_be_sent_are_named_and_workers_deaf(pools):
    class Unsendable:
        claim = PureDP(1.0)

        def release(self, data, *, rng):
            raise AssertionError("nobody may come here")

    for mechanism in (Unsendable(), lambda d, rng: 1 / 0):
        with pytest.raises(InputError, match="define it at the top level of a module"):
            audit(mechanism, pair=PAIR, claim=CLAIM, run=Run(executor=pools.process))
    asked = pools.process.submit(signal.getsignal, signal.SIGINT)
    assert asked.result() is signal.SIG_IGN


class OwnGenerator:
    def __init__(self, generator):
        self.parts = {"noise": [generator]}

    def release(self, data, *, rng):
        return data.sum() + self.parts["noise"][0].normal()


@pytest.mark.parametrize(
    "generator",
    [np.random.default_rng(0), np.random.PCG64(0), np.random.RandomState(0), Random(0)],
    ids=lambda each: type(each).__name__,
)
def test_a_generator_is_not_copied_to_the_workers(generator, pools):
    """Every unit drew the same noise from its copy, and refuted true claims."""
    mechanism = OwnGenerator(generator)
    with pytest.raises(InputError, match=f"of its own .{type(generator).__name__}."):
        audit(mechanism, pair=PAIR, claim=CLAIM, run=Run(executor=pools.process))
    Workers(pools.one).check(mechanism)  # threads share it


class Elsewhere(Executor):
    def submit(self, function, /, *arguments):
        future = Future()
        future.set_exception(TypeError("cannot pickle '_thread.lock' object"))
        return future


def shut_down():
    with ThreadPoolExecutor(1) as pool:
        return pool


@pytest.mark.parametrize(
    ("executor", "error", "words"),
    [
        (Elsewhere(), ExecutorError, "top level of a module"),
        (shut_down(), ExecutorError, "after shutdown"),
        (4, InputError, "executor must be a concurrent"),
    ],
    ids=["cannot send", "shut down", "none"],
)
def test_an_executor_that_is_of_no_use_is_named(executor, error, words):
    with pytest.raises(error, match=words):
        audit(laplace_sum, pair=PAIR, claim=CLAIM, run=Run(executor=executor))


CALLS: list[None] = []


def ends_its_process(data, rng):
    """End the process of a worker some time, and never that of the audit."""
    if parent_process() is not None:
        CALLS.append(None)
        if len(CALLS) == 60:
            os.kill(os.getpid(), signal.SIGKILL)
    return laplace_sum(data, rng)


def test_a_worker_that_is_killed_loses_nothing_that_was_kept(tmp_path, monkeypatch):
    now, told = [0.0], []
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def tell(progress):
        now[0] += 10.0  # so that a checkpoint is due after every round
        told.append(progress)

    run = Run(store=Store(tmp_path / "audits.db"), progress=tell)
    with (
        process_pool(1) as pool,
        pytest.raises(ExecutorError, match=r"a worker was lost \(BrokenProcessPool"),
    ):
        audited(ends_its_process, budget=100, run=replace(run, executor=pool))
    kept = told[-1].samples
    assert kept > 10
    result = audited(ends_its_process, budget=100, run=run)
    assert told[-1].resumed_at == kept
    assert values(result) == values(audited(ends_its_process, budget=100))


def threads_of_blas(data, rng):
    # Others, such as those of OpenMP, belong to each thread and round nothing.
    libraries = [x for x in threadpool_info() if x["user_api"] == "blas"]
    return max(library["num_threads"] for library in libraries)


def test_blas_has_one_thread_everywhere(pools):
    source, piece = Source(threads_of_blas, PAIR, 0, 0), Piece(DATA, 0, 3, 3)
    (drawn,) = Workers(pools.process).draw(source, [piece], 10)
    assert drawn.numbers("int64, shape ()").tolist() == [1] * 3
    seen = []

    def notes(data, rng):
        seen.append(threads_of_blas(data, rng))
        return laplace_sum(data, rng)

    for pool in (None, pools.one):
        audited(notes, budget=3, run=Run(executor=pool))
        assert set(seen) == {1}


def test_units_are_drawn_side_by_side():
    """Both sides at once: all wait for each other, and none would come alone."""
    arrived, both = set(), threading.Event()

    def waits(data, rng):
        arrived.add(len(data))
        if arrived == {1, 2}:
            both.set()
        return float(both.wait(30))

    with ThreadPoolExecutor(32) as pool:
        sampler = Sampler(waits, PAIR, 0, workers=Workers(pool))
        found = list(sampler.round((3, 3)))
    assert {side for side, _ in found} == {DATA, NEIGHBOUR}
    assert all(batch.numbers("shape ()").all() for _, batch in found)
