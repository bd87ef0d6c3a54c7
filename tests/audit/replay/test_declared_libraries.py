"""Primitives of libraries by their import paths: stand-ins of the same interface.

Code that uses the real libraries is in test_real_libraries.py.
"""

import secrets
import subprocess
import sys
from functools import partial
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest
from refusals import refuses
from replay_cases import rows

from dpaudit import ApproxDP, Pair, PureDP, ZeroConcentratedDP
from dpaudit.audit.replay import register, replay
from dpaudit.audit.replay.declare import libraries
from dpaudit.audit.replay.execute.executor import execute
from dpaudit.audit.replay.laws.comparison import compare
from dpaudit.errors import MechanismError

SYSTEM = secrets.SystemRandom()
PAIR = Pair(rows(0.2, 0.5), rows(0.2, 0.5, 1.0))


class Laplace:
    """What diffprivlib's looks like: parameters are attributes, inputs arguments."""

    def __init__(self, *, epsilon, delta=0.0, sensitivity):
        self.epsilon, self.delta, self.sensitivity = epsilon, delta, sensitivity

    def randomise(self, value):
        scale = self.sensitivity / (self.epsilon - np.log(1 - self.delta))
        sign = SYSTEM.choice((-1, 1))
        return value + sign * scale * SYSTEM.expovariate(1.0)


class LaplaceTruncated(Laplace):
    def __init__(self, *, lower, upper, **rest):
        super().__init__(**rest)
        self.lower, self.upper = lower, upper

    def randomise(self, value):
        return min(max(super().randomise(value), self.lower), self.upper)


class Vector(Laplace):
    def __init__(self, *, epsilon):
        super().__init__(epsilon=epsilon, sensitivity=1.0)
        self.function_sensitivity = 1.0

    def randomise(self, value):
        return lambda x: value(x) + 1.0


class Geometric:
    """One of a version with other arguments."""

    def randomise(self, count):
        return count


class Measurement:
    """What OpenDP's looks like: a function, and a map of distances."""

    def __init__(self, function, map_, metric, measure="MaxDivergence", **made):
        self.function, self.map = function, map_
        self.input_metric, self.output_measure = metric, measure
        self.__opendp_dict__ = {"__function__": "make", "__kwargs__": made}

    def __call__(self, arg):
        return self.function(arg)

    def invoke(self, arg):
        return self.function(arg)


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    """Install the stand-ins under the names of the libraries."""
    for name in [name for name in sys.modules if name.split(".")[0] in ROOTS]:
        monkeypatch.delitem(sys.modules, name)
    for name, classes in MODULES.items():
        module = ModuleType(name)
        vars(module).update({each.__name__: each for each in classes})
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(libraries, "_yours", {})


def add_noise(self, value):
    sign, scale = SYSTEM.choice((-1, 1)), getattr(self, "diversity", 1.0)
    return value + sign * scale * SYSTEM.expovariate(1.0)


add_noise.__signature__ = "compiled code has none"


class NumericalMechanism:
    """What PyDP's looks like: compiled, and shared by its classes."""

    add_noise = add_noise


class LaplaceMechanism(NumericalMechanism):
    def __init__(self, epsilon, sensitivity=1.0):
        self.diversity = sensitivity / epsilon


class GaussianMechanism(NumericalMechanism):
    def __init__(self, std):
        self.std = std


def GRR_Client(input_data, k, epsilon):  # the library's own name
    truth = np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    if SYSTEM.random() < truth:
        return input_data
    return SYSTEM.choice([other for other in range(k) if other != input_data])


def HE_Client(input_data, k, epsilon):
    signs = [SYSTEM.choice((-1, 1)) for _ in range(k)]
    noise = [sign * SYSTEM.expovariate(epsilon / 2) for sign in signs]
    return np.eye(k)[input_data] + noise


LDP = "multi_freq_ldpy.pure_frequency_oracles"
ROOTS = ("diffprivlib", "multi_freq_ldpy", "opendp", "pydp")
MODULES = {
    **{"pydp": (), "pydp._pydp": (), "pydp._pydp._mechanisms": (NumericalMechanism,)},
    **{"multi_freq_ldpy": (), LDP: (), f"{LDP}.GRR": (GRR_Client,)},
    **{f"{LDP}.HE": (HE_Client,), "diffprivlib": ()},
    "diffprivlib.mechanisms": (Laplace, LaplaceTruncated, Vector, Geometric),
    **{"opendp": (), "opendp.mod": (Measurement,)},
}


def judged(mechanism, **options):
    options = {"claim": PureDP(1.0), "sees": "transcript", "budget": 2} | options
    return replay(mechanism, pair=PAIR, **options)


def count(x, rng, epsilon=1.0):
    return Laplace(epsilon=epsilon, sensitivity=1.0).randomise(float(len(x)))


def mean(x, rng):
    total = Laplace(epsilon=0.5, sensitivity=1.0).randomise(float(x.sum()))
    return total / LaplaceTruncated(
        epsilon=0.5, sensitivity=1.0, lower=1.0, upper=9.0
    ).randomise(float(len(x)))


def test_mechanisms_are_noisy_values_with_their_exact_losses():
    result = judged(count)
    assert (str(result.verdict), result.loss) == ("NOT_REFUTED", pytest.approx(1.0))
    assert [step.family for step in result.steps] == ["laplace"]
    both = judged(mean)
    assert (str(both.verdict), len(both.steps)) == ("NOT_REFUTED", 2)
    assert both.loss <= 1 + 1e-9
    wrong = judged(partial(count, epsilon=2.0))
    assert (wrong.proof, wrong.findings[0].kind) == (True, "distance")
    assert "test_declared_libraries.py" in wrong.findings[0].where


def test_all_is_put_back_after_any_exit():
    before = Laplace.randomise, LaplaceTruncated.randomise, Measurement.__call__
    seen = []

    def stops(x, rng):
        seen.append(Laplace.randomise)
        raise KeyboardInterrupt

    with pytest.raises(MechanismError):
        judged(stops)
    after = Laplace.randomise, LaplaceTruncated.randomise, Measurement.__call__
    assert after == before
    assert seen[0] is not before[0]


def test_what_is_not_loaded_is_not_imported_and_what_is_later_is_followed(monkeypatch):
    names = "diffprivlib", "diffprivlib.mechanisms"
    held = {name: sys.modules[name] for name in names}
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    assert libraries.loaded_libraries() == set(ROOTS) - {"diffprivlib"}
    with libraries.declared_libraries():
        assert Laplace.randomise.__qualname__ == "Laplace.randomise"
    assert "diffprivlib" not in sys.modules

    def imports_it(x, rng):
        sys.modules.update(held)
        return count(x, rng)

    tape = execute(imports_it, PAIR.data, 0).tape
    assert (len(tape.observations), tape.unfollowed) == (1, [])


DRAWS = """
import os, random
import numpy
NAME = os.urandom(8), random.random(), numpy.random.normal(), numpy.random.default_rng()
NAME[3].normal()
"""
KEPT: dict[str, float] = {}


def loads(x, rng, noise=None):
    import_module("draws_where_it_loads")  # as libraries load their parts
    first = x.sum() + (rng.laplace(scale=2.0) if noise is None else noise)
    length = np.linalg.norm([first, 1.0])  # looks at it
    return first, x.sum() / length + rng.laplace(scale=2.0)


def from_one_generator(x, rng):
    import_module("draws_where_it_loads")
    return x.sum() + np.random.laplace(), np.random.normal()  # noqa: NPY002


def keeps_as_it_loads(x, rng):
    if not KEPT:
        KEPT["noise"] = float(rng.laplace())
    return loads(x, rng, KEPT["noise"])


@pytest.mark.parametrize(
    ("folder", "mechanism", "verdict"),
    [
        ("site-packages", loads, "NOT_REFUTED"),
        ("site-packages", from_one_generator, "NOT_REFUTED"),
        ("site-packages", keeps_as_it_loads, "NOT_FOLLOWED"),
        ("own", loads, "NOT_FOLLOWED"),
    ],
)
def test_a_library_may_draw_where_it_is_loaded_and_not_ones_own_code(
    folder, mechanism, verdict, monkeypatch, tmp_path
):
    home = tmp_path / folder
    home.mkdir()
    (home / "draws_where_it_loads.py").write_text(DRAWS)
    monkeypatch.syspath_prepend(home)
    KEPT.clear()
    pair = Pair([[0.0]], [[0.0], [1.0]])
    try:
        result = replay(mechanism, pair=pair, claim=PureDP(1.0))
    finally:
        sys.modules.pop("draws_where_it_loads", None)
    assert str(result.verdict) == verdict
    assert verdict == "NOT_REFUTED" or "draws at first" in str(result)


LOADS = """
import sys
import numpy as np
from dpaudit import Pair, PureDP
from dpaudit.audit.replay import replay


def mechanism(x, rng):
    from own_helper import table  # which imports pandas

    import scipy.stats

    first = table(x).iloc[0] + scipy.stats.laplace.rvs(scale=2, random_state=rng)
    return first, x.sum() / np.linalg.norm([first, 1.0]) + rng.laplace(scale=2.0)


assert "pandas" not in sys.modules, "or there is nothing to see"
print(replay(mechanism, pair=Pair([[0.0]], [[0.0], [1.0]]), claim=PureDP(1.0)).verdict)
"""


def test_libraries_that_code_imports_as_it_runs_load_before(tmp_path):
    """Types of pandas are made of Python's own, which recorders replace."""
    (tmp_path / "own_helper.py").write_text(
        "import pandas\n\n\ndef table(x):\n    return pandas.Series([x.sum()])\n"
    )
    (tmp_path / "loads.py").write_text(LOADS)
    command = [sys.executable, "loads.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("NOT_REFUTED\n", "")


def test_what_versions_lack_and_mechanisms_that_return_functions_are_left_alone():
    with libraries.declared_libraries():
        assert not hasattr(Geometric.randomise, "__wrapped__")
        assert hasattr(Laplace.randomise, "__wrapped__")

    def objective(x, rng):
        Vector(epsilon=1.0).randomise(lambda w: w)
        return float(len(x)) + rng.laplace()

    result = judged(objective)
    assert str(result.verdict) == "NOT_FOLLOWED"
    assert "no law here" in result.findings[0].message


def test_a_compiled_method_of_pydp_has_the_law_of_its_class():
    def both(x, rng):
        total = LaplaceMechanism(0.5).add_noise(float(x.sum()))
        return total + GaussianMechanism(4.0).add_noise(float(len(x)))

    result = judged(both, claim=ApproxDP(2.0, 1e-3))
    assert [step.family for step in result.steps] == ["laplace", "gaussian"]
    assert [step.scale for step in result.steps] == [2.0, 4.0]
    assert str(result.verdict) == "NOT_REFUTED"
    wrong = judged(lambda x, rng: LaplaceMechanism(2.0).add_noise(float(len(x))))
    assert (wrong.proof, wrong.loss) == (True, pytest.approx(2.0))
    assert NumericalMechanism.add_noise is add_noise


@pytest.mark.parametrize("name", ["GRR", "HE"])
@pytest.mark.parametrize("epsilon", [1.0, 1.5])
def test_reports_of_one_person_have_their_exact_losses(name, epsilon):
    def send(x, rng):
        oracle = sys.modules[f"{LDP}.{name}"]
        return getattr(oracle, f"{name}_Client")(int(x[0]), 4, epsilon)

    traces = [execute(send, np.array([x]), 0) for x in (1.0, 2.0)]
    (one,), (other,) = (each.tape.observations for each in traces)
    assert compare(one.law, other.law).supremum == pytest.approx(epsilon)


# -- promises by a map


def noisy_count(scale, **made):
    return Measurement(
        lambda rows: len(rows) + scale * SYSTEM.gauss(0, 1),
        lambda distance: distance / scale,
        "SymmetricDistance()",
        scale=scale,
        **made,
    )


@pytest.mark.parametrize("use", [lambda m, x: m(x), lambda m, x: m.invoke(x)])
def test_the_map_of_a_measurement_bounds_its_loss(use):
    enough, over = (
        judged(lambda x, rng, scale=scale: use(noisy_count(scale), x.tolist()))
        for scale in (1.0, 0.5)
    )
    assert (str(enough.verdict), enough.findings) == ("NOT_REFUTED", ())
    assert enough.loss == pytest.approx(1.0)
    assert "1, as far as what is trusted keeps" in str(enough)
    assert str(over.verdict) == "NOT_FOLLOWED"
    assert over.findings[0].kind in ("distance", "budget")
    assert "test_declared_libraries.py" in over.findings[0].where


def test_another_measurement_on_the_neighbour_promises_nothing():
    result = judged(lambda x, rng: noisy_count(float(len(x)))(x.tolist()))
    assert (str(result.verdict), result.findings[0].kind) == ("NOT_FOLLOWED", "scale")
    # So it is if the map says the same, and only what it was made of differs.
    same_map = judged(lambda x, rng: noisy_count(1.0, rows=len(x))(x.tolist()))
    assert same_map.findings[0].kind == "scale"


@pytest.mark.parametrize(
    ("measure", "spent", "claim"),
    [
        ("MaxDivergence", 0.5, PureDP(0.5)),
        ("ZeroConcentratedDivergence", 0.5, ZeroConcentratedDP(0.5)),
        ("Approximate(MaxDivergence)", (0.5, 1e-6), ApproxDP(0.5, 1e-6)),
        *(("SmoothedMaxDivergence", object(), None), ("MaxDivergence", np.inf, None)),
    ],
)
def test_claims_of_other_measures(measure, spent, claim):
    for metric, bound in (("AbsoluteDistance(f64)", claim), ("OtherDistance()", None)):
        made = Measurement(None, lambda distance: spent, metric, measure)
        one, two = (libraries._opendp(made, value) for value in (0.0, 1.0))
        assert compare(one, two).bound == bound


@pytest.mark.parametrize(
    ("metric", "x", "y", "far"),
    [
        ("SymmetricDistance", [1, 1, 2], [3, 2], 3),
        ("SymmetricDistance", [1, 2, 1], [2, 1, 1], 0),
        ("InsertDeleteDistance", [1, 2, 1], [2, 1, 1], 2),
        ("InsertDeleteDistance", [1, 2, 3, 1], [3, 1, 2], 3),
        ("InsertDeleteDistance", [], [1, 2], 2),
        ("ChangeOneDistance", [1, 1, 2], [2, 1, 3], 1),
        ("ChangeOneDistance", [1], [1, 2], np.nan),
        ("HammingDistance", [1, 1, 2], [2, 1, 3], 2),
        ("L2Distance", [0.0, 3.0], [4.0, 0.0], 5),
        *(("L1Distance", [0.0, 3.0], [4.0, 0.0], 7), ("AbsoluteDistance", 2, 5, 3)),
    ],
)
def test_distances_of_inputs(metric, x, y, far):
    found = libraries._METRICS[metric]
    assert found(x, y) == found(y, x) == far or np.isnan([found(x, y), far]).all()


# -- one's own


class Noise:
    def __init__(self, b):
        self.b = b

    def add(self, x):
        return x + self.b * SYSTEM.choice((-1, 1)) * SYSTEM.expovariate(1.0)


def test_primitives_of_any_library_can_be_registered(monkeypatch):
    module = ModuleType("tables")
    module.Noise = Noise
    monkeypatch.setitem(sys.modules, "tables", module)
    register("tables.Noise.add", "laplace", value="x", scale="self.b")
    result = judged(lambda x, rng: Noise(2.0).add(float(len(x))))
    assert (str(result.verdict), result.loss) == ("NOT_REFUTED", pytest.approx(0.5))
    assert not hasattr(Noise.add, "__wrapped__")
    register("tables.Noise.add", "laplace", value="x", scale="b")
    refuses(r"'b', which .*lacks", judged, lambda x, rng: Noise(2.0).add(float(len(x))))


@pytest.mark.parametrize("path", ["noise", "", "a..b", "a.b()", None, 3])
def test_a_path_must_be_one(path):
    refuses("path must be", register, path, "laplace", value="x", scale=1.0)
