"""Whatever a mechanism raises is an output; what a signal raises in it is not."""

import signal
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from audit_cases import CLAIM, PAIR

from dpaudit import MechanismError
from dpaudit.attacks import Abnormal, Identity
from dpaudit.audit import Run, audit, process_pool, replay
from dpaudit.audit.sampling.sampler import Sampler
from dpaudit.audit.sampling.workers import Workers
from dpaudit.errors import ExecutorError

FEW = [Identity(), Abnormal()]
pytestmark = pytest.mark.usefixtures("heeds_interrupts", "in_few_rounds")


class Own(BaseException):
    pass


EXCEPTIONS = [SystemExit, KeyboardInterrupt, GeneratorExit, Own, MemoryError]


@dataclass(frozen=True)
class Raising:
    """Raises on datasets with so many rows or more."""

    error: type[BaseException]
    rows: int = 2

    def release(self, data, *, rng):
        noise = rng.laplace()
        if len(data) >= self.rows:
            raise self.error(1)
        return noise


@dataclass(frozen=True)
class RaisingInDraw(Raising):
    def draw(self, data, size, *, rng):
        return np.array([self.release(data, rng=rng) for _ in range(size)])


@pytest.mark.parametrize("error", EXCEPTIONS)
def test_what_is_raised_on_one_side_only_refutes_and_always_is_an_error(error):
    options = {"pair": PAIR, "claim": CLAIM, "budget": 60, "run": Run(attacks=FEW)}
    result = audit(RaisingInDraw(error), **options)
    assert result.refuted
    assert result.warnings == ()
    with pytest.raises(MechanismError, match=f"raises {error.__name__} on both"):
        audit(Raising(error, rows=0), **options)


async def later(data, rng):
    return data.sum() + rng.laplace()


async def one_by_one(data, rng):
    yield data.sum() + rng.laplace()


class Later:
    async def __call__(self, data, rng):
        return data.sum() + rng.laplace()

    async def release(self, data, *, rng):
        return data.sum() + rng.laplace()


class DrawnLater:
    async def draw(self, data, size, *, rng):
        return rng.laplace(size=size)


ASYNC = {
    "function": later,
    "generator": one_by_one,
    "partial": partial(later),
    "called": Later().__call__,
    "release": Later(),
    "draw": DrawnLater(),
    "hidden": lambda data, rng: later(data, rng),
    "in a list": lambda data, rng: [later(data, rng), 1.0],
}


@pytest.mark.parametrize("name", ASYNC)
@pytest.mark.parametrize("look", [audit, replay])
def test_what_nobody_awaits_is_no_release(name, look):
    """The coroutines are closed, of which Python would warn: an error here."""
    with pytest.raises(MechanismError, match=r"which nobody awaits.*asyncio\.run"):
        look(ASYNC[name], pair=PAIR, claim=CLAIM)


def layouts(mechanism, executor):
    sampler = Sampler(mechanism, PAIR, 0, workers=Workers(executor))
    batches = [batch for _, batch in sampler.round((3, 3))]
    return [layout for batch in batches for layout in batch.layouts]


def test_workers_and_threads_see_the_same():
    with process_pool(1) as executor:
        for error in EXCEPTIONS:
            expected = ["shape ()"] * 3 + [f"raises {error.__name__}"] * 3
            assert layouts(Raising(error), executor) == expected
    with ThreadPoolExecutor(1) as executor:
        assert (
            layouts(Raising(KeyboardInterrupt), executor)[3:]
            == ["raises KeyboardInterrupt"] * 3
        )


class Failing:
    """An executor whose tasks end in an exception, as where results are read back."""

    def __init__(self, error):
        self.error = error

    def submit(self, *_):
        future: Future[None] = Future()
        future.set_exception(self.error)
        return future


@pytest.mark.parametrize("error", [SystemExit(1), Own("o"), RuntimeError("r")])
def test_what_comes_from_an_executor_is_its_failure(error):
    with pytest.raises(ExecutorError, match=f"was lost .{type(error).__name__}: "):
        audit(Raising(Own), pair=PAIR, claim=CLAIM, run=Run(executor=Failing(error)))


def test_ctrl_c_ends_an_audit_wherever_it_comes():
    calls = []

    def interrupted(data, rng):
        calls.append(None)
        if len(calls) == 30:
            signal.raise_signal(signal.SIGINT)
        return rng.laplace()

    with pytest.raises(KeyboardInterrupt):
        audit(interrupted, pair=PAIR, claim=CLAIM, budget=100)
    assert len(calls) == 30
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_time_limit_that_a_signal_keeps_ends_an_audit():
    def out_of_time(*_):
        raise TimeoutError("took too long")

    def slow(data, rng):
        signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, out_of_time)
    try:
        with pytest.raises(TimeoutError, match="took too long"):
            audit(slow, pair=PAIR, claim=CLAIM)
    finally:
        signal.signal(signal.SIGUSR1, before)
