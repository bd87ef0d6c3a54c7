"""Code that makes it hard to follow: followed, or not followed, and never wrong."""

import contextlib
import copy
import math
import os
import pickle
import random
import signal
import sys
import threading
import uuid
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats
from replay_cases import rows

from dpaudit import InputError, MechanismError, Pair, PureDP
from dpaudit.audit.replay import replay
from dpaudit.audit.replay.follow import foreign
from dpaudit.audit.replay.follow.reached import reached
from dpaudit.streams import FunctionMechanism

PAIR = Pair(rows(0.2, 0.7), rows(0.2, 0.7, 1.0))
OWN = np.random.default_rng(5)
HELD = [
    np.random.default_rng(),
    type("Mine", (random.Random,), {})(),
    np.random.laplace,
]
WRITTEN = np.random.default_rng(122807528840384100672342137672332424406)
BY_NAME, MADE_BY_NAME = np.random.laplace, np.random.default_rng
COIN_BY_NAME, LAW_BY_NAME = random.random, scipy.stats.laplace
BY_KEY = {"laplace": np.random.laplace, "own": np.random.default_rng()}


def total(x):
    return np.clip(x, 0, 1).sum()


def in_place(x, rng):
    counts = np.array([total(x)])
    counts += rng.laplace(0, 1.0, size=1)
    return counts


def out_argument(x, rng):
    noisy = np.empty(1)
    np.add(np.array([total(x)]), rng.laplace(0, 1.0, 1), out=noisy)
    return noisy


def out_of_draws(x, rng):
    noisy = np.zeros((1,))
    rng.standard_exponential(out=noisy)
    signs = np.sign(rng.random(1) - 0.5)
    return total(x) + noisy * signs


def view_of_noise(x, rng):
    noise = rng.laplace(0, 1.0, 3)
    first = noise[:1]
    noise *= 2
    return total(x) + first


def shared_buffer(x, rng):
    buffer = np.zeros(2)
    view = buffer[:1]
    buffer[0] = total(x) + rng.laplace(0, 1.0)
    return view


def object_array(x, rng):
    cells = np.empty(2, dtype=object)
    cells[0] = total(x) + rng.laplace(0, 1.0)
    cells[1] = "text"
    return cells


def exits_at_random(x, rng):
    if total(x) + rng.laplace(0, 1.0) > 1:
        sys.exit(3)
    return 0.0


def raises_always(x, rng):
    noise = rng.laplace(0, 1.0)
    raise RuntimeError(f"{noise}")


def catches_everything(x, rng):
    try:
        return total(x) + rng.laplace(0, -1.0)
    except BaseException:
        return total(x) + rng.laplace(0, 1.0)


def generator_function(x, rng):
    yield total(x) + rng.laplace(0, 1.0)


def beside_it(function):
    """Return what a function returns in another thread."""
    found = []
    worker = threading.Thread(target=lambda: found.append(function()))
    worker.start()
    worker.join()
    return found[0]


def module_level(x, rng):
    return total(x) + np.random.laplace(0, 1.0)  # noqa: NPY002


def spawned(x, rng):
    return total(x) + rng.spawn(2)[1].laplace(0, 1.0)


def new_generator(x, rng):
    return total(x) + np.random.default_rng().laplace(0, 1.0)


def frozen(x, rng):
    return total(x) + scipy.stats.laplace.rvs(scale=1.0, random_state=rng)


def argmax_of_canvas(x, rng):
    scores = np.zeros(3)
    scores[:] = np.array([total(x), 1.0, 0.5]) + rng.laplace(0, 2.0, 3)
    return scores.argmax()


FOLLOWED = [
    *(in_place, out_argument, object_array, spawned, module_level, new_generator),
    *(frozen, catches_everything, argmax_of_canvas),
    lambda x, rng: total(x) + copy.deepcopy(rng).laplace(0, 1.0),
    lambda x, rng: total(x) + np.random.Generator(rng.bit_generator).laplace(0, 1.0),
    lambda x, rng: int(
        np.argmax(np.array([total(x), 1.0, 0.5]) + rng.laplace(0, 2.0, 3))
    ),
    lambda x, rng: total(x) + BY_NAME(0, 1.0),
    lambda x, rng: total(x) + BY_KEY["laplace"](0, 1.0),
    lambda x, rng: total(x) + BY_KEY["own"].laplace(0, 1.0),
    lambda x, rng, noise=np.random.laplace: total(x) + noise(0, 1.0),
    lambda x, rng, *, of=np.random.laplace: total(x) + of(0, 1.0),
    lambda x, rng: total(x) + MADE_BY_NAME().laplace(0, 1.0),
    lambda x, rng: total(x) - np.log(COIN_BY_NAME()) + np.log(COIN_BY_NAME()),
    lambda x, rng: total(x) + Kept.by_name(0, 1.0),
    lambda x, rng: total(x) + Kept().noise(0, 1.0),
]
NOT_REFUTED = [
    *(out_of_draws, exits_at_random, generator_function),
    lambda x, rng: beside_it(lambda: int(total(x) + rng.laplace(0, 1.0) > 1)),
    lambda x, rng: total(x) + random.expovariate(1.0) * random.choice([-1, 1]),
    lambda x, rng: total(x) + np.log(int.from_bytes(os.urandom(6), "big") / 2**48),
]
# Of each what a finding says.
LOST = {
    lambda x, rng: total(x) + pickle.loads(pickle.dumps(rng)).laplace(0, 1.0): (
        "copied or sent away"
    ),
    lambda x, rng: total(x) + (rng.bit_generator.state["state"]["state"] & 1): (
        "bits of the generator"
    ),
    lambda x, rng: total(x) + beside_it(lambda: rng.laplace(0, 1.0)): "another thread",
    lambda x, rng: int(OWN.laplace(0, 2.0, 3).argmax()): "OWN is a generator",
    lambda x, rng: total(x) + HELD[0].laplace(0, 1.0): "was there before",
    lambda x, rng: total(x) + HELD[1].gauss(0, 1.0): "was there before",
    lambda x, rng: total(x) + WRITTEN.laplace(0, 1.0): "the system did not give",
    lambda x, rng: total(x) + Kept.one.laplace() + Kept.two.laplace(): "a copy of",
    lambda x, rng: total(x) + HELD[2](0, 1.0): "imported by name",
    shared_buffer: "another release",
    view_of_noise: "another release",
}


class Kept:
    by_name = noise = np.random.laplace
    one = np.random.default_rng()
    two = copy.deepcopy(one)

    def __init__(self):
        self.rng, self.old = np.random.default_rng(), np.random.RandomState()

    def total(self, x):
        return total(x) + self.rng.laplace(0, 4.0), len(x) - self.old.laplace(0, 4.0)


def test_defaults_are_put_back():
    def noisy(x, scale=1.0, noise=np.random.laplace, *, law=np.random.normal):
        return total(x) + noise(0, scale)

    before = noisy.__defaults__, dict(noisy.__kwdefaults__)
    assert replay(noisy, pair=PAIR, claim=PureDP(1.0)).verdict == "NOT_REFUTED"
    assert replay(noisy, pair=PAIR, claim=PureDP(0.9)).proof
    assert (noisy.__defaults__, noisy.__kwdefaults__) == before


def test_generators_of_an_object_are_followed_and_put_back():
    kept = Kept()
    before = dict(vars(kept))
    options = {"mechanism": kept.total, "pair": PAIR}
    assert replay(claim=PureDP(0.5), **options).verdict == "NOT_REFUTED"
    assert replay(claim=PureDP(0.3), **options).proof
    assert vars(kept) == before


@pytest.mark.parametrize("mechanism", [*FOLLOWED, *NOT_REFUTED, *LOST])
@pytest.mark.parametrize("sees", ["release", "transcript"])
def test_a_right_mechanism_is_never_refuted(mechanism, sees):
    # The statistical test has a false-alarm probability of 1e-3 a mechanism; seeded.
    result = replay(mechanism, pair=PAIR, claim=PureDP(1.0), sees=sees, budget=2)
    followed = mechanism in FOLLOWED and sees == "release"
    allowed = {"NOT_REFUTED"} if followed else {"NOT_REFUTED", "NOT_FOLLOWED"}
    if mechanism in LOST and sees == "release":
        allowed = {"NOT_FOLLOWED"}
        assert any(LOST[mechanism] in finding.message for finding in result.findings)
    assert result.verdict in allowed, str(result)
    if result.verdict == "NOT_FOLLOWED":
        assert any(":" in finding.where for finding in result.findings)


@pytest.mark.parametrize(
    "mechanism",
    [spawned, module_level, new_generator, frozen],
    ids=lambda m: m.__name__,
)
def test_other_ways_to_the_generator_are_held_to_the_claim(mechanism):
    result = replay(mechanism, pair=PAIR, claim=PureDP(0.9))
    assert (result.verdict, result.proof) == ("REFUTED", True)


@pytest.mark.parametrize(
    ("mechanism", "refuted"),
    [
        (lambda x, rng: math.fmod(x.sum() + rng.normal(0, 1.0), 12.0), False),
        (lambda x, rng: float(x.sum() + rng.normal()), True),
    ],
)
def test_what_compiled_code_makes_of_a_number_is_not_the_number(mechanism, refuted):
    """On a circle the loss of Gaussian noise is no more infinite; on a line it is."""
    pair = Pair(rows(0.1), rows(0.1, 0.05))
    result = replay(mechanism, pair=pair, claim=PureDP(1.0), budget=2)
    assert result.refuted == result.proof == refuted, str(result)
    assert not refuted or result.loss == math.inf


def test_mechanisms_that_only_raise_are_errors_and_failures_of_following_none():
    with pytest.raises(MechanismError, match="every time"):
        replay(raises_always, pair=PAIR, claim=PureDP(1.0), budget=2)
    result = replay(picky, pair=PAIR, claim=PureDP(1.0), budget=2)
    assert result.verdict == "NOT_FOLLOWED"
    assert "an ordinary execution" in result.findings[0].message


def test_a_failure_beside_draws_of_numpys_own_generator_is_a_proof():
    def mean(x):
        return 1 / len(x) + np.random.laplace(0, 1.0)  # noqa: NPY002

    pair = Pair(np.empty((0, 1)), rows(1.0))
    result = replay(mean, pair=pair, claim=PureDP(1.0))
    assert result.proof, str(result)
    (finding,) = result.findings
    told = (
        "an exception: ZeroDivisionError on D and a number on D', whatever the noise is"
    )
    assert (finding.kind, finding.message) == ("structure", f"the release is {told}")


def test_laws_of_scipy_draw_from_numpys_own_generator_seeded_before_or_not():
    def noisy(x):
        return total(x) + LAW_BY_NAME.rvs(scale=1.0)

    FunctionMechanism(noisy).release(PAIR.data, rng=np.random.default_rng(0))
    assert replay(noisy, pair=PAIR, claim=PureDP(1.0)).verdict == "NOT_REFUTED"
    assert replay(noisy, pair=PAIR, claim=PureDP(0.9)).proof


def test_long_releases_are_told_where_they_part():
    def words(x, rng):
        return ["c"] * 40 + ["few" if len(x) == 2 else "many", "d"]

    (finding,) = replay(words, pair=PAIR, claim=PureDP(1.0)).findings
    before = "... 'c' 'c' 'c' 'c'"
    told = f"{before} 'few' 'd' ] on D and {before} 'many' 'd' ] on D'"
    assert finding.message == f"the release is {told}, whatever the noise is"


def test_what_has_no_line_is_found_at_the_function_that_is_called():
    mechanism = FunctionMechanism(held_by_name, {"scale": 1.0})
    result = replay(mechanism, pair=PAIR, claim=PureDP(1.0), budget=2)
    assert result.verdict == "NOT_FOLLOWED"
    places = {finding.where.rpartition(":")[0] for finding in result.findings}
    assert {Path(place).name for place in places} == {Path(__file__).name}


def held_by_name(x, scale):
    return total(x) + HELD[2](0, scale)


def picky(x, rng):
    if len(x) == 3 and type(rng) is not np.random.Generator:
        raise TypeError("not a generator")
    return total(x) + rng.laplace(0, 1.0)


def test_other_threads_have_their_own_numpy():
    seen = []

    def mechanism(x, rng):
        drawn = beside_it(lambda: (np.zeros(2), np.random.random()))  # noqa: NPY002
        seen.append([type(each) for each in drawn])
        return total(x) + rng.laplace(0, 1.0)

    replay(mechanism, pair=PAIR, claim=PureDP(1.0), budget=2)
    assert seen
    assert all(each == [np.ndarray, float] for each in seen)


def refuses_many(x, rng):
    if len(x) == 3:
        raise ValueError("too many rows")
    return total(x) + rng.laplace(0, 1.0)


def test_failures_on_one_side_are_proofs_and_unreadable_releases_said():
    result = replay(refuses_many, pair=PAIR, claim=PureDP(1.0))
    assert (result.verdict, result.proof) == ("REFUTED", True)
    assert result.findings[0].kind == "structure"
    assert "an exception: ValueError on D'" in result.findings[0].message
    line = refuses_many.__code__.co_firstlineno + 1
    wheres = result.findings[0].where, result.findings[0].where_neighbour
    assert [int(each.rpartition(":")[2]) for each in wheres] == [line, line]

    def opaque(x, rng):
        return SimpleNamespace(value=total(x) + rng.laplace(), rng=rng)

    result = replay(opaque, pair=PAIR, claim=PureDP(1.0), budget=2)
    assert result.verdict == "NOT_FOLLOWED"
    assert "returns RecordingGenerator" in result.findings[0].message


@pytest.mark.parametrize(
    "kind", [ValueError, SystemExit, KeyboardInterrupt, InputError]
)
def test_patches_are_undone_after_any_exit(kind):
    def leaves(x, rng):
        rng.laplace(0, 1.0)
        raise kind("leaving")

    patched = {
        np: ("array", "asarray", "zeros", "empty", "full"),
        np.random: ("laplace", "normal", "default_rng", "seed"),
        **{random: ("random", "gauss", "choice", "_urandom"), os: ("urandom", "fork")},
    }
    before = [getattr(owner, name) for owner in patched for name in patched[owner]]
    with contextlib.suppress(InputError, MechanismError):
        replay(leaves, pair=PAIR, claim=PureDP(1.0), budget=2)
    assert before == [
        getattr(owner, name) for owner in patched for name in patched[owner]
    ]


def leaves_things(x, rng):
    np.zeros, math.sqrt = list, abs
    random.seed(int(x.sum()))
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 1e3)
    os.chdir(os.sep)
    return total(x) + rng.laplace(0, 1.0)


def process():
    handler, alarm = signal.getsignal(signal.SIGALRM), signal.getitimer(0)[0] > 0
    legacy = np.random.mtrand._rand.get_state()[1].tolist()
    found = np.zeros, math.sqrt, os.getcwd(), handler, alarm
    return *found, legacy, random.getstate()


@pytest.mark.parametrize("mechanism", [module_level, leaves_things])
def test_the_process_is_left_as_it_was(mechanism):
    before = process()
    result = replay(mechanism, pair=PAIR, claim=PureDP(1.0))
    assert process() == before
    if mechanism is leaves_things:
        told = " ".join(map(str, result.findings))
        assert result.verdict == "NOT_FOLLOWED"
        assert "random.seed is called: who knows the seed knows what is drawn" in told
        assert "and stays so" in told


def two_of_a_copy(x, rng):
    twin = copy.deepcopy(rng)
    return total(x) + rng.laplace(0, 4.0), len(x) + 2 * twin.laplace(0, 4.0)


def state_put_back(x, rng):
    state = rng.bit_generator.state
    noisy = total(x) + rng.laplace(0, 4.0)
    rng.bit_generator.state = state
    return noisy, len(x) / 2 + rng.laplace(0, 4.0)


def jumped_twice(x, rng):
    bits = np.random.Philox(int(rng.integers(2**62))).jumped()
    one, two = (np.random.Generator(each) for each in (bits.jumped(), bits.jumped()))
    return total(x) + one.laplace(0, 4.0), len(x) / 2 + two.laplace(0, 4.0)


@pytest.mark.parametrize("again", [two_of_a_copy, state_put_back, jumped_twice])
def test_bits_that_draw_twice_draw_the_same(again):
    result = replay(again, pair=PAIR, claim=PureDP(1.0))
    assert (result.verdict, result.proof) == ("REFUTED", True)
    assert "share one draw of noise" in result.findings[0].message


def own_streams(x, rng):
    """Draws of other generators go on where the state of one is put back."""
    state = rng.bit_generator.state
    noisy = total(x) + np.random.laplace(0, 2.0)  # noqa: NPY002
    rng.bit_generator.state = state
    sign = random.Random(int(rng.integers(2**62))).getrandbits(1)
    seed = int.from_bytes(os.urandom(8), "big")
    return noisy, sign, len(x) + np.random.default_rng(seed).laplace(0, 2.0)


def named_by_entropy(x, rng, kept=1):
    found = {uuid.uuid4(): total(x) + kept * rng.laplace(0, 1.0)}
    return sum(found.values())


def a_bit_of_entropy(x, rng):
    return named_by_entropy(x, rng, kept=os.urandom(1)[0] & 1)


def test_entropy_matters_only_where_it_makes_a_difference():
    for mechanism, claim, verdict in (
        *((own_streams, 1.0, "NOT_REFUTED"), (named_by_entropy, 1.0, "NOT_REFUTED")),
        *((named_by_entropy, 0.9, "REFUTED"), (a_bit_of_entropy, 1.0, "NOT_FOLLOWED")),
    ):
        result = replay(mechanism, pair=PAIR, claim=PureDP(claim), budget=2)
        assert result.verdict == verdict, str(result)
    assert "urandom is called" in result.findings[0].message
    assert "test_hostile.py" in result.findings[0].where


def test_what_a_function_says_that_it_wraps_is_reached():
    def outer(x, rng):
        return 0.0

    outer.__wrapped__ = module_level
    assert module_level in [each for each, _ in reached((outer, None))]


@pytest.mark.parametrize("told", [foreign._TWISTER, 0])
@pytest.mark.parametrize("bits", [np.random.MT19937(1), np.random.PCG64(1)])
def test_a_generator_that_was_drawn_from_is_known_by_its_state(monkeypatch, bits, told):
    monkeypatch.setattr(foreign, "_TWISTER", told)
    for made in (np.random.Generator(bits), np.random.RandomState(bits)):
        watch = foreign.ForeignGenerators([made])
        assert not watch.used()
        made.uniform()
        assert watch.used()
