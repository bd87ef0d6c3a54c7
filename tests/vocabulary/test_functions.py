import pickle
import random
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial, wraps
from importlib import import_module
from types import FunctionType, ModuleType, SimpleNamespace

import numpy as np
import pytest
from numpy.random import default_rng
from refusals import refuses

import dpaudit
from dpaudit import ApproxDP, MechanismError, Pair, PureDP
from dpaudit.attacks import Identity
from dpaudit.audit import Run, audit, replay
from dpaudit.audit.sampling.draws import Source, draw_one
from dpaudit.object_pairs import ObjectPair
from dpaudit.seeding import generators_of
from dpaudit.streams import FunctionMechanism

PAIR = Pair([0.0], [0.0, 3.0])
pytestmark = pytest.mark.usefixtures("in_few_rounds")


def by_any_name(data, r):
    return data.sum() + r.laplace()


def by_keyword(data, *, generator):
    return data.sum() + generator.laplace()


def by_hint(data, bins=3, source: np.random.Generator = None):
    return data.sum() + source.laplace()


def by_seed(data, epsilon=1.0, seed=None):
    return data.sum() + np.random.default_rng(seed).laplace(scale=1 / epsilon)


def by_random_state(data, random_state=None):
    return data.sum() + np.random.RandomState(random_state).laplace()


def by_a_state(data, source: np.random.RandomState):
    return data.sum() + source.randn()


def by_a_python(data, *, rng: "random.Random | None" = None):
    return float(data.sum()) + rng.gauss(0, 1)


def by_the_kind_of_a_default(data, rng=random.SystemRandom()):  # noqa: B008
    return float(data.sum()) + rng.gauss(0, 1)


def by_a_module(data, rng=np.random):
    rng.seed()
    return data.sum() + rng.randn()


def by_numpy(data):
    return data.sum() + np.random.laplace()  # noqa: NPY002


def by_python(data, bins=3):
    return float(data.sum()) + random.gauss(0, 1)


def by_a_fresh_one(data, many=1):
    return data.sum() + np.random.default_rng().laplace()


def by_its_name(data):
    return data.sum() + default_rng().laplace()


def by_a_new_state(data):
    return data.sum() + np.random.RandomState().laplace()


def by_new_bits(data):
    return data.sum() + np.random.Generator(np.random.PCG64()).laplace()


def by_no_seed(data):
    np.random.seed(None)  # noqa: NPY002
    return data.sum() + np.random.laplace()  # noqa: NPY002


MADE_BEFORE = default_rng()


def laplace():
    return MADE_BEFORE.laplace()


def by_its_module(data):
    return data.sum() + laplace()


class Holder:
    of_all = default_rng()

    def __init__(self):
        self.own = default_rng()

    def by_its_object(self, data):
        return data.sum() + self.own.laplace()

    __call__ = by_its_object

    def by_its_class(self, data):
        return data.sum() + self.of_all.laplace()


HOLDER = Holder()


def by_an_object_of_its_module(data):
    return HOLDER.by_its_object(data)


def made_with(source):
    def by_what_is_around(data):
        return data.sum() + source.laplace()

    return by_what_is_around


def by_another_default(data, noise=default_rng()):  # noqa: B008
    return data.sum() + noise.laplace()


def of_a_class_of_its_own():
    class Within:
        of_all = default_rng()

        def by_method(self, data):
            return data.sum() + self.of_all.laplace()

    return Within().by_method


def by_signs(data):
    sign = -1.0 if data.sum() > 1 else 1.0
    return sign * 0.0 * MADE_BEFORE.laplace()


def by_a_holder(data, holder):
    return holder.by_its_class(data)


def by_a_new_python(data):
    return float(data.sum()) + random.Random().gauss(0, 1)


def by_python_without_a_seed(data):
    random.seed()
    return float(data.sum()) + random.gauss(0, 1)


def by_seeds_for_all(data, seed=None):
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    return data.sum() + np.random.laplace()  # noqa: NPY002


def hands_on(function):
    @wraps(function)
    def called(*args, **kwargs):
        return function(*args, **kwargs)

    return called


def adds_noise(function):
    @wraps(function)
    def noisy(data, rng):
        return function(data) + rng.laplace()

    return noisy


@hands_on
@adds_noise
def by_decorators(data):
    return data.sum()


class Sums:
    @hands_on
    def by_method(self, data, rng):
        return data.sum() + rng.laplace()


def of_epsilon(data, epsilon):
    return data.sum() + np.random.laplace(scale=1 / epsilon)  # noqa: NPY002


WAYS = [by_any_name, by_keyword, by_hint, by_seed, by_random_state, by_numpy, by_python]
WAYS += [by_its_name, by_a_new_state, by_new_bits, by_no_seed, by_a_new_python]
WAYS += [by_its_module, HOLDER.by_its_object, HOLDER.by_its_class, by_another_default]
WAYS += [by_an_object_of_its_module, made_with(default_rng()), of_a_class_of_its_own()]
WAYS += [partial(by_a_holder, holder=HOLDER)]
WAYS += [by_a_state, by_a_python, by_the_kind_of_a_default, by_a_module]
WAYS += [
    by_a_fresh_one,
    by_python_without_a_seed,
    by_decorators,
    Sums().by_method,
    partial(of_epsilon, epsilon=1.0),
]


@pytest.mark.parametrize("function", WAYS)
def test_both_audits_see_what_a_function_draws(function):
    called = FunctionMechanism.of(function)
    one, two, other = (
        called(PAIR.neighbour, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert one == two != other
    run = Run(attacks=[Identity()])
    assert audit(function, pair=PAIR, claim=PureDP(1.0), run=run).refuted
    replayed = replay(function, pair=PAIR, claim=PureDP(1.0))
    assert replayed.proof
    assert replayed.findings[0].where.startswith("tests/vocabulary/test_functions.py:")


def test_generators_of_a_seed_stay_theirs_and_copies_find_their_own():
    seeded = FunctionMechanism.of(made_with(default_rng(7)))
    one, two = (seeded(PAIR.neighbour, default_rng(1)) for _ in range(2))
    assert one != two  # it goes on from where it was
    given = FunctionMechanism(by_its_module)
    drawn = given(PAIR.neighbour, default_rng(1))
    copied = pickle.loads(pickle.dumps(given))
    assert copied(PAIR.neighbour, default_rng(1)) == drawn


def test_seeds_stay_numbers_and_what_is_lacking_is_named():
    def fixed(data, seed=42):
        return np.random.default_rng(seed).laplace()

    given = FunctionMechanism.of(fixed)
    one, two = (given([], np.random.default_rng(seed)) for seed in (1, 2))
    assert one == two
    message = (
        r"of_epsilon takes epsilon, .*functools.partial\(of_epsilon, epsilon=...\)"
    )
    for ask in (audit, replay):
        refuses(message, ask, of_epsilon, pair=PAIR, claim=PureDP(1.0))
    refuses("takes no dataset", audit, lambda: 3, pair=PAIR, claim=PureDP(1.0))


@pytest.mark.parametrize("where", [{"pair": PAIR}, {"domain": "list of 0..9"}])
def test_what_asks_a_generator_for_more_is_told_of_hints(where):
    def rolled(data, rng):
        return sum(data) + rng.randrange(6)

    with pytest.raises(MechanismError, match=r"'randrange'; a hint rng: .*another\)$"):
        audit(rolled, claim=PureDP(1.0), relation="add-remove", **where)


def test_keys_of_jax_are_made_of_the_generator(monkeypatch):
    jax = ModuleType("jax")
    jax.Array = type("Array", (), {})
    jax.random = SimpleNamespace(PRNGKey=lambda seed: ("a key", default_rng(seed)))
    monkeypatch.setitem(sys.modules, "jax", jax)

    def by_key(data, key):
        return data.sum() + key[1].laplace()

    def by_keyword(data, *, rng_key=None):
        return by_key(data, rng_key)

    def by_hint(data, rng: "jax.Array"):
        return by_key(data, rng)

    for function in map(FunctionMechanism.of, (by_key, by_keyword, by_hint)):
        one, two, other = (function(PAIR.data, default_rng(s)) for s in (1, 1, 2))
        assert one == two != other
    constant = jax.random.PRNGKey(0)
    of_a_default = FunctionMechanism.of(lambda data, key=constant: key is constant)
    assert of_a_default(PAIR.data, default_rng(0))
    beside = FunctionMechanism.of(lambda data, rng, key=None: (rng, key))
    assert beside(PAIR.data, PAIR) == (PAIR, None)
    monkeypatch.delitem(sys.modules, "jax")
    assert FunctionMechanism.of(lambda data, key: key)([], PAIR) is PAIR  # as ever


def test_a_function_may_write_into_its_rows():
    def clipped(data, rng):
        for place in range(len(data)):
            data[place] = min(data[place], 1.0)
        return data.sum() + rng.laplace()

    for pair in (
        Pair([], [3.0]),
        ObjectPair(np.array([]), np.array([3.0]), "add-remove"),
    ):
        for ask in (audit, replay):
            result = ask(clipped, pair=pair, claim=PureDP(1.0), budget=200)
            assert result.verdict == "NOT_REFUTED", str(result)
        assert pair.neighbour.tolist() == [3.0]


def test_what_is_seeded_by_others_stays_so_and_nothing_stays_replaced():
    source = np.random.bit_generator
    real = source.randbits, random.Random.seed, random.seed
    given = FunctionMechanism(lambda data: np.random.default_rng(7).laplace())
    one, two = (given([], np.random.default_rng(seed)) for seed in (1, 2))
    assert one == two
    with pytest.raises(ZeroDivisionError):
        FunctionMechanism(lambda data: 1 / 0).release([], rng=np.random.default_rng(0))
    assert (source.randbits, random.Random.seed, random.seed) == real


def states():
    before = [MADE_BEFORE, HOLDER.own, HOLDER.of_all]
    ours = [str(each.bit_generator.state) for each in before]
    return [*ours, random.getstate(), str(np.random.get_state())]  # noqa: NPY002


@pytest.mark.parametrize(
    "function",
    [by_numpy, by_python, by_its_module, by_signs, HOLDER, by_seeds_for_all],
)
def test_generators_are_put_back_as_whoever_knows_the_seed_would_know_their_noise(
    function,
):
    before = states()
    executor = ThreadPoolExecutor(3)
    for ask in (audit, replay, partial(audit, run=Run(executor=executor))):
        ask(function, pair=PAIR, claim=PureDP(1.0), budget=60)
        assert states() == before
    draw_one(function, PAIR.data, default_rng(0))
    Source(function, PAIR, seed=0, key=0).unit(0, 0, 3)
    assert states() == before

    def fails(data):
        raise KeyError(function(data))

    with pytest.raises(MechanismError, match="raises KeyError on both"):
        audit(fails, pair=PAIR, claim=PureDP(1.0))
    assert states() == before


class Generator(random.Random):
    def manual_seed(self, seed):
        self.seed(seed)
        return self


def imitated():
    """Return what stands for PyTorch: all draw from its one generator."""
    torch, own = ModuleType("torch"), Generator()

    @contextmanager
    def fork_rng(devices):
        state = own.getstate()
        yield
        own.setstate(state)

    torch.random = SimpleNamespace(fork_rng=fork_rng)
    torch.cuda = SimpleNamespace(is_initialized=lambda: False)
    torch.get_rng_state, torch.manual_seed = own.getstate, own.seed
    torch.default_generator, torch.Generator = own, Generator
    torch.randn = lambda shape, generator=own: generator.gauss(0, 1)
    return torch


@pytest.fixture(params=["real", "imitated"])
def torch(request, monkeypatch):
    if request.param == "real":
        return pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "torch", imitated())
    Generator.__module__ = "torch"  # as hints say
    return sys.modules["torch"]


@pytest.mark.parametrize("way", range(5))
def test_what_draws_from_pytorch_is_seeded_and_pytorch_put_back(torch, way):
    def its_own(data):
        return float(data.sum()) + float(torch.randn(()))

    def by_seed(data, seed=None):
        torch.manual_seed(seed)
        return its_own(data)

    def by_hint(data, noise: torch.Generator | None = None):
        return float(data.sum()) + float(torch.randn((), generator=noise))

    def by_text(data, noise: "torch.Generator"):
        return by_hint(data, noise)

    def by_default(data, rng=torch.Generator()):  # noqa: B008
        return by_hint(data, rng)

    function = (its_own, by_seed, by_hint, by_text, by_default)[way]
    called = FunctionMechanism.of(function)
    one, two, other = (called(PAIR.neighbour, default_rng(seed)) for seed in (1, 1, 2))
    assert one == two != other
    before = list(torch.get_rng_state())
    assert audit(function, pair=PAIR, claim=PureDP(1.0)).refuted
    assert list(torch.get_rng_state()) == before


def test_what_is_made_once_in_a_process_is_neither_seeded_nor_kept_noise(
    tmp_path, monkeypatch
):
    """Such are generators of modules that a first release imports, and of files."""
    (tmp_path / "made_late.py").write_text("import random\nOWN = random.Random()\n")
    monkeypatch.syspath_prepend(tmp_path)

    def by_the_way(data):
        tempfile.mktemp()
        assert import_module("made_late").OWN
        return data.sum() + np.random.laplace()  # noqa: NPY002

    drawn = set()
    for _ in range(2):
        monkeypatch.setattr(tempfile, "_name_sequence", None)
        monkeypatch.delitem(sys.modules, "made_late", raising=False)
        assert audit(by_the_way, pair=PAIR, claim=PureDP(1.0)).refuted
        drawn |= {sys.modules["made_late"].OWN.random(), tempfile.mktemp()}
    assert len(drawn) == 4


def test_replays_repeat_what_draws_from_a_generator_that_was_there():
    """By samples, of executions that no recorder stands in; none was before."""

    def powers(data):
        return np.exp(data.sum() + MADE_BEFORE.laplace())

    result = replay(powers, pair=PAIR, claim=PureDP(1.0))
    assert (result.verdict, result.proof) == ("REFUTED", False)


def test_generators_of_libraries_are_theirs(monkeypatch):
    library = ModuleType("noise_of_others")
    library.__file__ = "/lib/site-packages/noise_of_others.py"
    library.of_all = default_rng()
    monkeypatch.setitem(sys.modules, library.__name__, library)
    space = {"others": library, "own": MADE_BEFORE, "__name__": __name__}
    function = FunctionType(by_numpy.__code__, space)
    assert generators_of(function) == [MADE_BEFORE]


def test_what_one_writes_first_is_there():
    verdicts = [
        ask(by_any_name, pair=PAIR, claim=PureDP(1.0), budget=40).verdict
        for ask in (dpaudit.audit, audit)
    ]
    assert verdicts[0] == verdicts[1]
    claim = ApproxDP(1.0, 1e-5)
    assert (PureDP(2).epsilon, PureDP(2).delta, claim.epsilon) == (2.0, 0.0, 1.0)
    assert not [name for name in dir(dpaudit) if name.startswith("_")][1:]
