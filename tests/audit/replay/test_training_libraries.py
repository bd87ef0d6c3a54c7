"""Noise and batches of libraries that train: stand-ins of the same interface.

Code that uses the real libraries is in test_real_training.py.
"""

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from replay_cases import line_of

from dpaudit import ApproxDP, Pair
from dpaudit.algorithms.shared.subsampling import noise_multiplier
from dpaudit.audit.replay import replay
from dpaudit.audit.replay.declare import libraries, training
from dpaudit.audit.replay.execute.executor import execute
from dpaudit.audit.replay.follow import places
from dpaudit.audit.replay.follow.tape import LAZY

RATE, SIZE, STEPS, NORM = 0.2, 4.0, 3, 8.0
CLAIM = ApproxDP(0.5, 1e-5)
SIGMA = float(noise_multiplier(0.5, 1e-5, rate=RATE, steps=STEPS))
ROWS = np.random.default_rng(0).standard_normal((3, 2)).astype(np.float32)
FAR = np.array([[30.0, 30.0]])
PAIR = Pair(np.vstack([ROWS[:2], FAR, ROWS[2:]]), ROWS)
SYSTEM = np.random.default_rng()  # whose draws nobody can repeat


# -- what jax_privacy looks like: noise on a tree, and a sampler

COMPILED: list[bool] = []


@contextmanager
def disable_jit():
    COMPILED.append(False)
    try:
        yield
    finally:
        COMPILED.pop()


def tree_map(function, tree, *rest):
    if isinstance(tree, dict):
        return {
            key: tree_map(function, *(each[key] for each in (tree, *rest)))
            for key in tree
        }
    return function(tree, *rest)


def iid_normal_noise(prng_key, target_tree, stddev, dtype=None):
    return tree_map(
        lambda leaf: SYSTEM.normal(0, stddev, leaf.shape).astype(leaf.dtype),
        target_tree,
    )


def privatizer(stddev):
    """Return a privatizer; it finds its noise where the library does."""

    def update(sums, key):
        noise = sys.modules["jax_privacy.noise_addition"]._iid_normal_noise(
            key, sums, stddev
        )
        noisy = tree_map(lambda x, y: (x + y).astype(x.dtype), sums, noise)  # noise
        return noisy, key + 1

    return update


@dataclass(frozen=True)
class CyclicPoissonSampling:
    sampling_prob: float
    iterations: int
    truncated_batch_size: int | None = None
    cycle_length: int = 1

    def batch_iterator(self, num_examples, rng=None):
        rng = np.random.default_rng(rng)
        for _ in range(self.iterations):
            size = rng.binomial(num_examples, self.sampling_prob)
            yield rng.choice(num_examples, size, replace=False)


# -- what Opacus looks like: noise on one array, and a sampler


def generate_noise(std, reference, generator=None, secure_mode=False):
    return SYSTEM.normal(0, std, reference.shape).astype(reference.dtype)


@dataclass(frozen=True)
class UniformSampler:
    num_samples: int
    sample_rate: float
    steps: int

    def __iter__(self):
        for _ in range(self.steps):
            chosen = SYSTEM.random(self.num_samples) < self.sample_rate
            yield np.flatnonzero(chosen).tolist()


MODULES = {
    "jax": {
        "disable_jit": disable_jit,
        "random": SimpleNamespace(key_data=np.asarray),
        "tree": SimpleNamespace(map=tree_map),
        "Array": type("Array", (), {}),  # for which SciPy looks
    },
    "jax_privacy": {},
    "jax_privacy.noise_addition": {"_iid_normal_noise": iid_normal_noise},
    "jax_privacy.batch_selection": {"CyclicPoissonSampling": CyclicPoissonSampling},
    "opacus": {},
    "opacus.optimizers.optimizer": {"_generate_noise": generate_noise},
    "opacus.utils.uniform_sampler": {"UniformWithReplacementSampler": UniformSampler},
}


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    """Install the stand-ins under the names of the libraries."""
    roots = {"jax", "jax_privacy", "opacus", "torch"}
    for name in [name for name in sys.modules if name.split(".")[0] in roots]:
        monkeypatch.delitem(sys.modules, name)
    for name, members in MODULES.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)


def by_jax(total, deviation, key):
    """Return a noisy tree."""
    noisy, _ = privatizer(deviation)({"w": total}, key)
    return noisy["w"]


def by_opacus(total, deviation, key):
    optimizer = sys.modules["opacus.optimizers.optimizer"]
    return total + optimizer._generate_noise(deviation, total)  # noise


LIBRARIES = {
    "jax_privacy": (
        by_jax,
        lambda n, rng: CyclicPoissonSampling(RATE, STEPS).batch_iterator(n, rng),
    ),
    "opacus": (by_opacus, lambda n, rng: UniformSampler(n, RATE, STEPS)),
}


def clipped(gradients):
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return gradients / np.maximum(norms / NORM, 1.0)


def train(x, rng, library, *, private=False, scale=1.0, fixed=False, key=None):
    noisy, batches = LIBRARIES[library]
    x = x.astype(np.float32)
    w = x[:0].sum(axis=0)
    turns = [np.arange(len(x))[step % 2 :: 2] for step in range(STEPS)]
    for step, chosen in enumerate(turns if fixed else batches(len(x), rng)):
        gradients = x[chosen] - w
        total = clipped(gradients).sum(axis=0)
        deviation = SIGMA * NORM * scale
        total = noisy(total, deviation, step if key is None else key)
        assert total.dtype == np.float32
        w = w + np.float32(0.5 / (RATE * len(x) if private else SIZE)) * total
    return w  # release


# Of a fault: in which loop, what is done otherwise, the kind that is found, the line.
@pytest.fixture(params=LIBRARIES)
def library(request):
    return request.param


def judged(mechanism, **options):
    options = {"pair": PAIR, "claim": CLAIM, "sees": "transcript"} | options
    return replay(mechanism, **options)


@pytest.mark.parametrize(
    ("pair", "sees"), [(PAIR, "release"), (PAIR.swapped, "transcript")]
)
def test_right_training_is_followed_step_by_step(library, pair, sees):
    result = judged(partial(train, library=library), pair=pair, sees=sees)
    assert (result.verdict, result.findings) == ("NOT_REFUTED", ())
    assert [step.family for step in result.steps] == ["gaussian"] * STEPS
    assert [step.l2 for step in result.steps] == pytest.approx([NORM] * STEPS)
    assert {step.scale for step in result.steps} == {SIGMA * NORM}
    assert result.samples == 0


@pytest.mark.parametrize(
    ("library", "fault", "kind", "piece"),
    [
        ("jax_privacy", {"private": True}, "release", "# release"),
        ("opacus", {"scale": 1 / NORM}, "distance", "# noise"),
    ],
)
def test_a_fault_is_refuted_at_its_line(library, fault, kind, piece):
    # Null: the claim is true of transcripts. False-alarm probability 1e-3 each; seeded.
    result = judged(partial(train, library=library, **fault))
    assert result.verdict == "REFUTED"
    assert result.samples <= 60
    (finding,) = [each for each in result.findings if each.kind == kind]
    assert piece in line_of(finding)


def test_an_execution_is_repeated_though_the_library_cannot_be(library):
    mechanism = partial(train, library=library)
    first, second = (execute(mechanism, PAIR.data, 3) for _ in range(2))
    assert np.array_equal(first.value, second.value)
    assert not np.array_equal(first.value, execute(mechanism, PAIR.data, 4).value)
    plain = first.plainly()
    assert np.array_equal(first.value, plain.value)
    script = first.tape.observations
    assert [each.how for each in script] == ["chosen", "declared"] * STEPS
    for each in script[::2]:
        assert np.exp(each.law.log[:, 1]) == pytest.approx(
            np.full(len(PAIR.data), RATE)
        )
    # What is given back comes out to the last bit, in single precision.
    again = execute(mechanism, PAIR.data, 9, script=script, mode=LAZY)
    assert np.array_equal(first.value, again.value)


def registered():
    """Return what is there of what is replaced."""
    found = [libraries._owner(path) for path, _ in training._STAND_INS]
    there = [vars(owner).get(name) for owner, name in found if owner is not None]
    return [each for each in there if each is not None]


def test_all_is_put_back_after_any_exit():
    before = registered()
    assert len(before) == 4

    def looks(x, rng):
        assert not set(registered()) & set(before)
        assert COMPILED == [False]
        raise KeyError("anything")

    assert execute(looks, PAIR.data, 0).layout == "raises KeyError"
    assert (registered(), COMPILED) == (before, [])


def test_libraries_that_are_not_there_are_not_imported(monkeypatch):
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name)
    execute(lambda x, rng: 0.0, PAIR.data, 0)
    assert not set(MODULES) & set(sys.modules)


def test_a_key_that_makes_noise_twice_is_not_followed():
    result = judged(partial(train, library="jax_privacy", key=7), budget=2)
    assert result.verdict == "NOT_FOLLOWED"
    assert any("noise before" in finding.message for finding in result.findings)


def noise_for(numbers):
    return sys.modules["opacus.optimizers.optimizer"]._generate_noise(2.0, numbers)


def test_functions_of_libraries_are_replaced_under_any_name():
    draw = sys.modules["opacus.optimizers.optimizer"]._generate_noise

    def mechanism(x, rng):
        total = x.sum(axis=0)
        return total + draw(2.0, total)

    trace = execute(mechanism, ROWS, 0)
    (seen,) = trace.tape.observations
    assert (seen.law.ratio.tolist(), trace.tape.unfollowed) == ([2.0, 2.0], [])
    assert draw is generate_noise


OTHERWISE = {
    "twice": lambda x, noise: (x + noise) + (x + noise),
    "by itself": lambda x, noise: x.sum() + np.sum(noise.reshape(-1)),
    "in a list": lambda x, noise: x + np.cumsum([noise.sum()]),
    "in another shape": lambda x, noise: x[:1] + noise,
    "with noise before": lambda x, noise: x + (np.zeros(2) + noise),
    "times an array": lambda x, noise: x + noise * x,
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_noise_that_is_used_otherwise_is_not_followed(name):
    def mechanism(x, rng):
        total = x.sum(axis=0)
        return OTHERWISE[name](total, noise_for(total))

    trace = execute(mechanism, ROWS, 0)
    assert trace.tape.unfollowed
    assert np.isfinite(trace.value).all()


def test_multiples_of_noise_are_noise_and_noisy_arrays_the_librarys():
    def mechanism(x, rng):
        total = x.sum(axis=0)
        return total + -3 * noise_for(total)

    trace = execute(mechanism, ROWS, 0)
    (seen,) = trace.tape.observations
    assert (seen.law.ratio.tolist(), trace.tape.unfollowed) == ([6.0, 6.0], [])
    # A draw of deviation 6 is within 40 of its mean, but for 1e-10.
    assert np.abs(trace.value - ROWS.sum(axis=0)).max() < 40
    found = []

    def mechanism(x, rng):
        total = Unchangeable(x.sum(axis=0))
        found.append(total + noise_for(total))
        return found[0].numbers

    trace = execute(mechanism, ROWS, 0)
    assert (type(found[0]), trace.tape.unfollowed) == (Unchangeable, [])
    assert found[0].numbers.dtype == ROWS.dtype


class Unchangeable:
    """What an array of JAX looks like: NumPy reads it, and a change is a copy."""

    def __init__(self, numbers):
        self.numbers, self.shape, self.at = numbers, numbers.shape, self

    def __array__(self, dtype=None, copy=None):
        return self.numbers

    def __getitem__(self, place):
        return self

    def set(self, numbers):
        return Unchangeable(numbers.astype(self.numbers.dtype))


def test_batches_of_another_kind_are_those_of_the_library():
    def truncated(x, rng):
        sampler = CyclicPoissonSampling(0.5, 1, truncated_batch_size=3)
        return [float(len(chosen)) for chosen in sampler.batch_iterator(len(x), 0)]

    trace = execute(truncated, ROWS, 0)
    # By a seed, so that nothing else shows that they are random.
    assert (trace.tape.coins, len(trace.tape.unfollowed)) == ([], 1)


def test_a_line_is_that_of_the_code_which_calls_the_library():
    installed = "/somewhere/lib/python3/site-packages"
    for file in ("torch/optim/sgd.py", "opacus/optimizers/optimizer.py", "jax/a.py"):
        assert places._kind(f"{installed}/{file}") == "own"
    for file in ("diffprivlib/tools/utils.py", "torchlike/a.py"):
        assert places._kind(f"{installed}/{file}") == "code"
    assert places._kind("/home/torch/train.py") == "code"


def test_a_library_may_be_installed_anywhere(monkeypatch):
    package = ModuleType("jax")
    package.__path__ = ["/opt/wheels/jax"]
    monkeypatch.setitem(sys.modules, "jax", package)
    assert places._kind("/opt/wheels/jax/core.py") == "own"
    assert places._kind("/opt/wheels/jaxed/core.py") == "code"


def test_no_noise_at_all_is_refuted(library):
    exact = partial(train, library=library, scale=0.0, fixed=True)
    result = judged(exact, budget=2)
    assert (result.verdict, result.loss) == ("REFUTED", np.inf)
