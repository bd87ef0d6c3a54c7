"""Faults planted into other libraries, each found; the right versions are not refuted.

A fault is one edit of the source of one function, made in memory and taken back: glue
(divisors, budgets, bounds, branches) and noise (scales, probabilities). A true claim is
refuted with probability at most 1e-5 by each of the some four tests of a visit.

    make third-party   # makes the environment
    .venv-third-party/bin/python -m pytest -m hard \
        tests/algorithms/third_party/test_planted_faults.py
"""

import inspect
import textwrap
import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec

import pytest

from dpaudit.algorithms.third_party.subjects.shelf import subjects_of
from dpaudit.neighbours import Relation
from dpaudit.reports.sections.libraries import visit as visiting
from dpaudit.reports.sections.libraries.tour import stops

pytestmark = pytest.mark.hard

SHELVES = "dpaudit.algorithms.third_party.subjects"
TOOLS, MECHANISMS = "diffprivlib_tools", "diffprivlib_mechanisms"
UTILS, LDP = "diffprivlib.tools.utils", "multi_freq_ldpy.pure_frequency_oracles"
COMPUTED = "pipeline_dp.dp_computations"
ADDED, REPLACED = Relation.ADD_REMOVE, Relation.REPLACE_ONE


@dataclass(frozen=True)
class Fault:
    shelf: str
    subject: str
    relation: Relation
    module: str
    function: str
    right: str
    wrong: str

    @property
    def library(self):
        return self.module.partition(".")[0]


def tools(subject, function, right, wrong, relation=REPLACED, module=UTILS):
    return Fault(TOOLS, f"tools.{subject}", relation, module, function, right, wrong)


def mechanism(name, function, right, wrong):
    module, function = f"diffprivlib.mechanisms.{name.lower()}", f"{name}.{function}"
    subject = f"mechanisms.{name}"
    return Fault(MECHANISMS, subject, REPLACED, module, function, right, wrong)


def pipeline(metric, function, right, wrong):
    subject = f"Metrics.{metric}"
    return Fault("pipelines", subject, ADDED, COMPUTED, function, right, wrong)


def local(module, function, subject, right, wrong):
    return Fault("local", subject, REPLACED, f"{LDP}.{module}", function, right, wrong)


MEAN = "(upper - lower) / array.size"
SUM = "mech.randomise(actual_sum)"
BINS = "dp_mech.randomise(int(hist[i]))"
HISTOGRAM = {"relation": ADDED, "module": "diffprivlib.tools"}
STAYS = "np.exp(epsilon) / (np.exp(epsilon) + k - 1)"
NOISY_SUM = "self._sum_mechanism.add_noise(normalized_sum)"
FAULTS = {
    "mean-half-sensitivity": tools("mean", "_mean", MEAN, MEAN + " / 2"),
    "mean-private-bounds": tools(
        "mean", "_mean", MEAN, "(array.max() - array.min()) / array.size"
    ),
    "sum-drawn-twice": tools("sum", "_sum", SUM, f"({SUM} + {SUM}) / 2"),
    "sum-small-data-without-noise": tools(
        "sum", "_sum", SUM, f"{SUM} if actual_sum > 1 else actual_sum"
    ),
    "histogram-empty-bins-without-noise": tools(
        "histogram", "histogram", BINS, f"{BINS} if hist[i] else 0", **HISTOGRAM
    ),
    "naive-bayes-budget-not-split": Fault(
        TOOLS,
        "models.GaussianNB(both classes)",
        REPLACED,
        "diffprivlib.models.naive_bayes",
        "GaussianNB._update_mean_variance",
        "self.epsilon / 3 / n_features",
        "9 * self.epsilon / n_features",
    ),
    "laplace-half-noise": mechanism(
        "Laplace", "_laplace_sampler", "return np.log", "return 0.5 * np.log"
    ),
    "geometric-half-noise": mechanism(
        "Geometric", "randomise", "/ self._scale)", "/ (2 * self._scale))"
    ),
    "exponential-factor-the-wrong-way": mechanism(
        "Exponential", "_find_probabilities", " / (2 - monotonic)", " * 2"
    ),
    "pipeline-count-half-sensitivity": pipeline(
        "COUNT.gaussian",
        "compute_sensitivities_for_count",
        "linf=params.max_contributions_per_partition",
        "linf=0.25",
    ),
    "pipeline-mean-of-one-without-noise": pipeline(
        "MEAN.laplace",
        "MeanMechanism.compute_mean",
        NOISY_SUM,
        f"{NOISY_SUM} if count > 1 else normalized_sum",
    ),
    "response-twice-epsilon": local(
        "GRR", "GRR_Client", "GRR.GRR_Client", STAYS, STAYS.replace("(e", "(2 * e")
    ),
    "histogram-encoding-half-noise": local(
        "HE", "HE_Client", "HE.HE_Client", "scale=2 / epsilon", "scale=1 / epsilon"
    ),
    "tuple-budget-not-split": replace(
        local("-", "SPL_GRR_Client", "SPL_solution.SPL_GRR_Client", "/ d", ""),
        module="multi_freq_ldpy.mdim_freq_est.SPL_solution",
    ),
}
RIGHT = {(each.shelf, each.subject, each.relation): each for each in FAULTS.values()}


def edited(fault, patch):
    """Put the edited function in the place of the right one."""
    module = import_module(fault.module)
    owner, name = module, fault.function
    if "." in name:
        head, name = name.split(".")
        owner = getattr(module, head)
    kept = vars(owner)[name]
    function = getattr(kept, "py_func", getattr(kept, "__func__", kept))
    source = textwrap.dedent(inspect.getsource(function))
    assert fault.right in source, "another version: the fault cannot be planted"
    first = inspect.getsourcelines(function)[1]
    code = "\n" * (first - 1) + source.replace(fault.right, fault.wrong)
    space = dict(function.__globals__)
    exec(compile(code, inspect.getsourcefile(function), "exec"), space)
    patch.setattr(owner, name, space[name])


def verdict(fault):
    subject = subjects_of(f"{SHELVES}.{fault.shelf}")[fault.subject]
    subject = replace(subject, relation=fault.relation)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(visiting, "_REPLAY_S", 2.0)
        record = visiting.visit(
            subject, seconds=8.0, samples=20_000, confidence=0.99999, seed=0
        )
    about = {"library": subject.library, "relation": subject.relation}
    about |= {"subject": str(subject), "claim": "", "stated": "", "seconds": 0.0}
    (line,) = stops([record | about])
    return line


def needs(fault):
    if find_spec(fault.library) is None:
        pytest.skip("make third-party")


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name, monkeypatch):
    fault = FAULTS[name]
    needs(fault)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        edited(fault, monkeypatch)
    assert verdict(fault).verdict.startswith("REFUTED")


@pytest.mark.parametrize("key", RIGHT, ids=lambda key: key[1])
def test_the_right_version_is_not_refuted(key):
    needs(RIGHT[key])
    assert verdict(RIGHT[key]).verdict == "NOT_REFUTED"
