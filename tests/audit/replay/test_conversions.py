"""Draws that Python's own functions convert stay noise; nothing else changes."""

import bisect
import builtins
import copy
import decimal
import json
import math
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from decimal import Decimal
from fractions import Fraction as Exact
from types import ModuleType

import numpy as np
import pytest
from scipy import special, stats
from sklearn.utils import check_random_state

from dpaudit import Pair, PureDP
from dpaudit.audit import replay
from dpaudit.audit.replay.execute.executor import execute
from dpaudit.audit.replay.follow import places

PAIR = Pair([[0.2], [0.4], [0.9]], [[0.2], [0.4], [0.9], [1.0]])
P = 1 - math.exp(-1)


def counts(data):
    return np.histogram(np.asarray(data)[:, 0], [0, 0.3, 0.6, 1.0])[0]


def chances(data):
    weights = np.exp(counts(data) / 2)
    return weights / weights.sum()


def written(data, rng):
    made = np.zeros(3)
    for place in range(3):
        made[place] = float(rng.laplace())
    return made + counts(data)


def added_at(data, rng):
    made = rng.laplace(size=3)
    np.add.at(made, data.astype(int).ravel(), 1)
    return made


def in_a_pool(data, rng):
    """Half the noise in each of two tasks, with generators of their own."""

    def noisy(task):
        return task[0] + task[1].laplace(scale=2)

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(noisy, zip([len(data)] * 2, rng.spawn(2), strict=True)))


def as_they_end(data, rng):
    """Noise of tasks that may end in any order."""
    with ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(lambda: float(rng.laplace())) for _ in range(3)]
        found = [each.result() for each in as_completed(tasks)]
    return counts(data) + np.array(found)


def by_state(data, rng):
    """A draw of the global generator, which is seeded, and whose state is put back."""
    np.random.seed(rng.integers(2**31))  # noqa: NPY002
    state = check_random_state(check_random_state(None))
    kept = state.get_state(legacy=False)
    state.laplace()
    state.set_state(kept)
    return len(data) + float(state.laplace())


def of_a_copy(data, rng):
    """The draw of a copy, and of what it is a copy of: one draw of noise."""
    state = np.random.mtrand._rand
    copied = copy.deepcopy(state)
    return len(data) + copied.laplace(), len(data) + state.laplace()


NOISE = {
    "quantiles": lambda data, rng: len(data) + stats.laplace.ppf(rng.random()),
    "of a frozen law": lambda data, rng: (
        len(data) + stats.laplace(scale=2).isf(rng.uniform()) / 2
    ),
    "at data": lambda data, rng: stats.laplace.ppf(rng.random(), loc=len(data)),
    "on a lattice": lambda data, rng: len(data) + stats.dlaplace.ppf(rng.random(), 1.0),
    "a special function": lambda data, rng: len(data) + special.logit(rng.random()),
    **{"add.at": added_at, "threads": in_a_pool},
    "threads that end in any order": as_they_end,
    "float": lambda data, rng: len(data) + float(rng.laplace()),
    "a scale": lambda data, rng: float(len(data)) + float(rng.laplace(scale=2)) / 2,
    "floor": lambda data, rng: (
        len(data) + int(np.floor(rng.exponential())) - int(np.floor(rng.exponential()))
    ),
    "int": lambda data, rng: len(data) + int(rng.geometric(P)) - int(rng.geometric(P)),
    "astype": lambda data, rng: (
        counts(data) + (rng.geometric(P, 3) - rng.geometric(P, 3)).astype(int)
    ),
    "item": lambda data, rng: len(data) + rng.laplace(size=1).item(),
    "tolist": lambda data, rng: [
        one + noise
        for one, noise in zip(counts(data), rng.laplace(size=3).tolist(), strict=True)
    ],
    "map": lambda data, rng: (
        counts(data) + np.array([*map(float, rng.laplace(size=3))])
    ),
    "written": written,
    "fsum": lambda data, rng: math.fsum([float(len(data)), rng.laplace()]),
    "fractions": lambda data, rng: (
        (Exact(len(data)) + Exact(rng.laplace())) * Exact(2, 3)
    ),
    "decimal": lambda data, rng: decimal.Decimal(len(data)) - Decimal(rng.laplace()),
    "a text": lambda data, rng: Decimal(str(rng.laplace())) + len(data),
    "a text that is a float": lambda data, rng: len(data) + float(repr(rng.laplace())),
    **{"scikit-learn's way to NumPy's own": by_state, "of a copy": of_a_copy},
}
CHOICES = {
    "bisect": lambda data, rng: bisect.bisect(chances(data).cumsum(), rng.random()),
    # The sum of these is 1 - 1e-16 on one side: what is beyond hides nothing.
    "searchsorted": lambda data, rng: np.searchsorted(
        np.cumsum([*chances(data)[:-1], chances(data)[-1] - 1e-15]), rng.random()
    ),
    "multinomial": lambda data, rng: rng.multinomial(1, chances(data)),
    "three of them": lambda data, rng: rng.multinomial(3, chances(data)),
}


def exact(mechanism, claim):
    result = replay(mechanism, pair=PAIR, claim=PureDP(claim))
    return str(result.verdict), bool(result.proof)


@pytest.mark.parametrize("name", NOISE)
def test_converted_draws_stay_noise(name):
    assert replay(NOISE[name], pair=PAIR, claim=PureDP(1)).loss == pytest.approx(1)
    assert exact(NOISE[name], 1.001)[0] == "NOT_REFUTED"
    assert exact(NOISE[name], 0.5) == ("REFUTED", True)


@pytest.mark.parametrize("name", CHOICES)
def test_choices_that_are_made_by_other_functions_have_their_law(name):
    loss = np.abs(np.log(chances(PAIR.data) / chances(PAIR.neighbour))).max()
    loss *= 3 if name == "three of them" else 1
    assert exact(CHOICES[name], 1.001 * loss)[0] == "NOT_REFUTED"
    assert exact(CHOICES[name], 0.9 * loss) == ("REFUTED", True)


def of_a_text(data, rng):
    text = str(rng.laplace())
    return Decimal(text) + len(data), text.startswith("-")


def to_cents(data, rng):
    return (Decimal(len(data)) + Decimal(rng.laplace())).quantize(Decimal("0.01"))


def behind_a_mask(data, rng):
    several = np.array([len(data), 7.0])
    return np.ma.masked_array(several + rng.laplace(0, 2, 2), several > 3.5)


@pytest.mark.parametrize(
    ("made", "verdicts"),
    [
        (to_cents, ["NOT_REFUTED"]),
        (of_a_text, ["NOT_FOLLOWED", "REFUTED"]),  # the sign is seen
        (behind_a_mask, ["REFUTED"]),
    ],
)
def test_what_is_seen_of_noise_in_other_forms_is_no_noise(made, verdicts):
    assert exact(made, 1.001)[0] in verdicts
    assert Decimal is decimal.Decimal
    assert isinstance(Exact(1, 2), Exact)


def test_tasks_that_wait_for_what_comes_after_them_are_left_to_threads():
    told = threading.Event()

    def waits():
        return told.wait(600)

    def waiting(data, rng):
        told.clear()
        with ThreadPoolExecutor(1) as pool:
            heard = pool.submit(lambda: waits())
            told.set()
            return len(data) + rng.laplace() + 0 * heard.result()

    assert exact(waiting, 1.0)[0] != "REFUTED"


def test_a_draw_that_is_released_twice_is_no_noise():
    def twice(data, rng):
        noise = float(rng.laplace())
        return len(data) + noise, noise

    assert exact(twice, 5.0) == ("REFUTED", True)


def test_a_sum_that_noise_was_added_to_later_is_not_followed_by_itself():
    def two_sided(rng):
        return int(np.floor(rng.exponential())) - int(np.floor(rng.exponential()))

    def both(data, rng):
        first = len(data) + two_sided(rng)
        return first + two_sided(rng), first

    assert exact(lambda data, rng: both(data, rng)[0], 1.001)[0] == "NOT_REFUTED"
    assert exact(both, 1.001)[0] != "REFUTED"  # which is true
    clamped = exact(lambda data, rng: np.maximum(0, both(data, rng)[0]), 1.001)
    assert clamped[0] == "NOT_REFUTED"


def test_noise_that_is_converted_and_kept_is_told():
    kept = {}

    def keeps(data, rng):
        if "noise" not in kept:
            kept["noise"] = float(rng.laplace())
        return len(data) + kept["noise"]

    def keeps_one_of_them(data, rng):
        return len(data) + kept.setdefault("another", float(rng.laplace()))

    assert exact(keeps, 1.001)[0] == "NOT_FOLLOWED"
    assert exact(keeps_one_of_them, 1.001)[0] == "NOT_FOLLOWED"


class Dispatcher:
    """What Numba's looks like: it compiles for arguments of new types."""

    def __init__(self, function):
        self.function, self.known = function, set()

    def __call__(self, *args):
        if not {*map(type, args)} <= self.known:
            self._compile_for_args(*args)
        return self.function(*args)

    def _compile_for_args(self, *args):
        assert float is builtins.float
        assert np.random.laplace is LAPLACE
        assert {*map(type, args)} <= {builtins.float, np.float64, np.ndarray}
        self.known |= {*map(type, args)}


LAPLACE = np.random.laplace


def test_what_compiles_finds_names_and_functions_as_they_are(monkeypatch):
    core = ModuleType("numba.core.dispatcher")
    core._DispatcherBase = Dispatcher
    for name in ("numba", "numba.core", core.__name__):
        monkeypatch.setitem(sys.modules, name, core)
    whole = Dispatcher(lambda numbers: numbers.sum())

    def noisy(data, rng):
        return whole(np.clip(data, 0, 1)) + float(rng.laplace())

    def rounded(data, rng):
        return Dispatcher(np.round)(noisy(data, rng))

    assert exact(noisy, 1.001)[0] == exact(rounded, 1.001)[0] == "NOT_REFUTED"
    assert exact(noisy, 0.5) == ("REFUTED", True)
    assert Dispatcher._compile_for_args.__name__ == "_compile_for_args"  # put back
    # Nor is it ended at a limit of time, which would leave it half done.
    assert places._kind("/lib/site-packages/numba/core/compiler.py") == "own"


def test_the_names_are_python_s_own_to_all_but_draws():
    letters, seen = {float: "f", int: "i", Exact: "e", complex: "c"}, []

    def checks(data, rng):
        noise = float(rng.laplace())
        held = isinstance(1.5, float), isinstance(True, int), issubclass(bool, int)
        dtypes = np.zeros(2, dtype=float).dtype, np.array([1.5]).astype(int).dtype
        named = letters[float] + letters[int] + letters[Exact] + letters[complex]
        seen.append((held, dtypes, type(float("1")), int("ff", 16), named))
        return json.dumps({"n": len(data) + noise})

    assert replay(checks, pair=PAIR, claim=PureDP(1.0)).verdict == "NOT_REFUTED"
    assert set(seen) == {
        ((True,) * 3, (np.dtype("f8"), np.dtype("i8")), builtins.float, 255, "fiec")
    }
    assert "float" not in globals()
    assert "int" not in globals()


ENDS = {
    "item": lambda data, rng: (len(data) + rng.laplace(size=1)).item(),
    "item of one": lambda data, rng: (len(data) + rng.laplace(size=3))[1].item(),
    "float": lambda data, rng: float(len(data) + rng.laplace()),
}


@pytest.mark.parametrize("name", ENDS)
def test_what_is_returned_at_once_keeps_its_noise(name):
    result = replay(ENDS[name], pair=Pair([0.5], [0.5, 1.0]), claim=PureDP(0.9))
    assert (result.verdict, bool(result.proof)) == ("REFUTED", True)


def test_what_goes_on_or_is_one_of_several_is_looked_at():
    for mechanism in (
        lambda data, rng: (len(data) + rng.laplace(size=1)).item() * 2,
        lambda data, rng: (len(data) + rng.laplace(size=3)).item(1),
        lambda data, rng: [(len(data) + rng.laplace(size=1)).item()],
    ):
        trace = execute(mechanism, np.array([0.5]), 0)
        assert (trace.open, trace.layout) == (False, trace.plainly().layout)
