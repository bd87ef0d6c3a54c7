"""Code that uses diffprivlib and OpenDP, replayed, where they are installed.

The violations are properties of these versions (constraints-third-party.txt).
"""

import warnings
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

from dpaudit import ApproxDP, Pair, PureDP
from dpaudit.audit.replay import replay
from dpaudit.audit.replay.declare import libraries

diffprivlib, opendp, numba = (
    pytest.mark.skipif(find_spec(each) is None, reason=f"{each} is not installed")
    for each in ("diffprivlib", "opendp", "numba")
)
CLAIM = PureDP(1.0)
X = np.random.default_rng(5).uniform(0, 1, (20, 2))
ADDED = Pair(X, np.vstack([X, [[1.0, 1.0]]]))
REPLACED = Pair(X, np.vstack([X[:-1], [[1.0, 0.0]]]), "replace-one")


def judged(mechanism, pair, claim=CLAIM):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return replay(mechanism, pair=pair, claim=claim, sees="transcript", budget=2)


def found(result):
    """Return kind and file name of each finding."""
    return [
        (f.kind, f.where.rpartition("/")[2].partition(":")[0]) for f in result.findings
    ]


@diffprivlib
def test_every_class_of_diffprivlib_is_known():
    from diffprivlib import mechanisms

    own = {
        name
        for name, each in vars(mechanisms).items()
        if isinstance(each, type) and "randomise" in vars(each)
    } - {"DPMachine", "DPMechanism"}
    assert own == set(libraries._DIFFPRIVLIB)
    with libraries.declared_libraries():
        for name in own:
            assert hasattr(getattr(mechanisms, name).randomise, "__wrapped__"), name


def mechanisms_and_inputs():
    """Return one of each class of diffprivlib, and two inputs of it."""
    from diffprivlib import mechanisms as m

    e, s = {"epsilon": 1.0}, {"epsilon": 1.0, "sensitivity": 1}
    d, bounds = s | {"delta": 0.01}, s | {"lower": 0, "upper": 3}
    tree = {"hierarchy": [["a", "b"], ["c", "d"]]}
    square = np.diag([1.0, 0.5])
    numeric = {
        "Laplace Geometric Staircase": s,
        "LaplaceTruncated LaplaceFolded LaplaceBoundedDomain": bounds,
        "GeometricTruncated GeometricFolded Snapping": bounds,
        "LaplaceBoundedNoise Gaussian GaussianAnalytic GaussianDiscrete": d,
        "Uniform": {"delta": 0.1, "sensitivity": 1.0},
    }
    whole = {"Geometric", "GeometricTruncated", "GeometricFolded", "GaussianDiscrete"}
    return {
        "Binary": (m.Binary(**e, value0="no", value1="yes"), "no", "yes"),
        "ExponentialHierarchical": (m.ExponentialHierarchical(**e, **tree), "a", "d"),
        "Bingham": (m.Bingham(**e), square, square[::-1, ::-1].copy()),
        **{
            name: (getattr(m, name)(**made), *((1, 2) if name in whole else (1.0, 2.0)))
            for names, made in numeric.items()
            for name in names.split()
        },
    }


@diffprivlib
def test_one_call_of_every_class_is_followed():
    pair = Pair([[0.0]], [[1.0]], "replace-one")
    for name, (mechanism, one, other) in mechanisms_and_inputs().items():

        def call(x, rng, mechanism=mechanism, inputs=(one, other)):
            return mechanism.randomise(inputs[int(x[0, 0])])

        claim = ApproxDP(1.0, 0.1 if name == "Uniform" else 0.02)
        result = judged(call, pair, claim)
        assert (str(result.verdict), result.findings) == ("NOT_REFUTED", ()), name
        assert len(result.steps) == 1, name


@diffprivlib
def test_choices_of_diffprivlib_have_the_probabilities_that_it_draws_by():
    from diffprivlib import mechanisms as m

    def chances(name, **arguments):
        path = f"diffprivlib.mechanisms.{name}.randomise"
        law = libraries._OURS[path].read(arguments)
        return law, np.exp(law.log[0])

    flat = m.Exponential(
        epsilon=1.0, sensitivity=2.0, utility=[0.0, 1.0, 3.0], measure=[1.0, 2.0, 0.5]
    )
    _, found = chances("Exponential", self=flat, value=None)
    assert found == pytest.approx(np.diff(flat._probabilities, prepend=0))
    tree = m.ExponentialHierarchical(epsilon=1.0, hierarchy=[["a", "b"], ["c", "d"]])
    law, found = chances("ExponentialCategorical", self=tree, value="a")
    wanted = np.array([tree._get_prob("a", other) for other in law.names])
    assert found == pytest.approx(wanted / tree._normalising_constant["a"])


@diffprivlib
def test_a_mean_and_a_histogram_keep_their_claims():
    from diffprivlib import tools

    def mean(x, rng):
        return tools.mean(x[:, 0], epsilon=1.0, bounds=(0, 1))

    def histogram(x, rng):
        return tools.histogram(x[:, 0], epsilon=1.0, range=(0, 1), bins=4)[0]

    replaced = judged(mean, REPLACED)
    assert (str(replaced.verdict), replaced.findings) == ("NOT_REFUTED", ())
    added = judged(mean, ADDED)
    assert (str(added.verdict), found(added)) == (
        "NOT_REFUTED",
        [("scale", "utils.py")],
    )
    counts = judged(histogram, ADDED)
    assert (str(counts.verdict), counts.loss) == ("NOT_REFUTED", pytest.approx(1.0))
    # A row that moves from one bin to another changes two counts.
    two = judged(histogram, REPLACED)
    assert (two.proof, found(two)) == (True, [("budget", "histograms.py")])


@diffprivlib
def test_models_that_are_wrong_are_refuted_and_an_objective_is_not_followed():
    from diffprivlib import models

    bounds = {"bounds_X": (0, 1), "bounds_y": (0, 1)}

    def bayes(x, rng):
        made = models.GaussianNB(epsilon=1.0, bounds=(0, 1))
        made.fit(x[:, :1], (x[:, 1] > 0.5).astype(int))
        return made.theta_, made.var_

    def without_intercept(x, rng):
        made = models.LinearRegression(epsilon=1.0, fit_intercept=False, **bounds)
        return made.fit(x[:, :1], x[:, 1]).coef_

    def logistic(x, rng):
        made = models.LogisticRegression(epsilon=1.0, data_norm=1.0)
        return made.fit(x[:, :1], (x[:, 1] > 0.5).astype(int)).coef_

    # It tells how many rows there are; one that goes to the other class moves two.
    replaced, added = judged(bayes, REPLACED), judged(bayes, ADDED)
    assert (replaced.proof, added.proof) == (True, True)
    assert found(replaced) == [("budget", "naive_bayes.py")]
    assert ("scale", "naive_bayes.py") in found(added)
    # A sum without noise.
    result = judged(without_intercept, REPLACED)
    assert (result.proof, found(result)) == (
        True,
        [("release", "linear_regression.py")],
    )
    # Noise in an objective.
    result = judged(logistic, REPLACED)
    assert str(result.verdict) == "NOT_FOLLOWED"
    assert ("coin", "logistic_regression.py") in found(result)


@opendp
def test_a_count_and_a_sum_of_opendp():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    space = domain, dp.symmetric_distance()
    counts = space >> dp.t.then_count()
    sums = space >> dp.t.then_clamp((0.0, 1.0)) >> dp.t.then_sum()

    def noisy(x, rng, made=counts, scale=None):
        noise = dp.m.then_laplace(scale=float(len(x)) if scale is None else scale)
        return (made >> noise)(x[:, 0].tolist())

    for options in ({"scale": 1.0}, {"made": sums, "scale": 1.0 + 1e-6}):
        mechanism = partial(noisy, **options)
        result = judged(mechanism, ADDED)
        assert (str(result.verdict), result.findings) == ("NOT_REFUTED", ())
        assert result.loss == pytest.approx(1.0, rel=1e-5)
        assert str(judged(mechanism, ADDED, PureDP(0.9)).verdict) == "NOT_FOLLOWED"
    result = judged(noisy, ADDED)
    assert [f.kind for f in result.findings] == ["scale"]
    assert "test_real_libraries.py" in result.findings[0].where


@numba
def test_compiled_sums_are_followed_beside_noise():
    from numba import njit

    @njit
    def clipped(x):
        total = 0.0
        for value in x:
            total += min(max(value, 0.0), float(1))
        return total

    def noisy(x, rng, divided=False):
        return (clipped(x[:, 0]) + rng.laplace()) / (len(x) if divided else 1)

    result = judged(noisy, ADDED)
    assert (str(result.verdict), result.findings) == ("NOT_REFUTED", ())
    assert judged(partial(noisy, divided=True), ADDED).proof


@opendp
def test_types_are_named_within_a_function_and_metrics_made_anew():
    import opendp.prelude as dp

    dp.enable_features("contrib")

    def counts(x, rng, scale=1.0):
        rows = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
        counted = rows >> dp.t.then_count_by_categories([0, 1])
        return (counted >> dp.m.then_laplace(scale))([*map(round, x[:, 0])])

    def count(x, rng):
        space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
        return (space >> dp.m.then_laplace(1.0))(len(x))

    for mechanism in (counts, count):
        result = judged(mechanism, ADDED)
        assert (str(result.verdict), result.findings) == ("NOT_REFUTED", ())
        assert result.loss == pytest.approx(1.0)
    two = judged(partial(counts, scale=0.5), ADDED)
    assert two.findings[0].kind == "distance"
