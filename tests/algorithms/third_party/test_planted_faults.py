"""Faults planted into other libraries, each found; the right versions are not refuted.

A fault is one edit of the source of one function, made in memory and taken back: glue
(divisors, branches) and noise (scales, probabilities). A true claim is refuted with
probability at most 1e-5 by each of the some four tests of a visit.

    make third-party   # makes the environment
    .venv-third-party/bin/python -m pytest -m hard \
        tests/algorithms/third_party/test_planted_faults.py
"""

import inspect
import textwrap
import warnings
from dataclasses import dataclass, replace
from importlib import import_module

import pytest

from dpaudit.algorithms.third_party.subjects.subject import subjects_of
from dpaudit.neighbours import Relation
from dpaudit.reports.sections.libraries import visit as visiting
from dpaudit.reports.sections.libraries.findings import tour_rows

pytestmark = pytest.mark.hard

MODULES = "dpaudit.algorithms.third_party.subjects"
ADDED, REPLACED = Relation.ADD_REMOVE, Relation.REPLACE_ONE


@dataclass(frozen=True)
class Fault:
    listed_in: str
    subject: str
    relation: Relation
    module: str
    function: str
    right: str
    wrong: str


# Of each: where it is listed, the subject, the relation; the module and the function
# that is edited; what is there, and what is put in its place.
FAULTS = {
    name: Fault(*parts)
    for name, *parts in (
        (
            "mean-half-sensitivity",
            *("of_diffprivlib", "tools.mean", REPLACED),
            *("diffprivlib.tools.utils", "_mean"),
            *("(upper - lower) / array.size", "(upper - lower) / array.size / 2"),
        ),
        (
            "histogram-empty-bins-without-noise",
            *("of_diffprivlib", "tools.histogram", ADDED),
            *("diffprivlib.tools", "histogram"),
            "dp_mech.randomise(int(hist[i]))",
            "dp_mech.randomise(int(hist[i])) if hist[i] else 0",
        ),
        (
            "laplace-half-noise",
            *("of_diffprivlib", "mechanisms.Laplace", REPLACED),
            *("diffprivlib.mechanisms.laplace", "Laplace._laplace_sampler"),
            *("return np.log", "return 0.5 * np.log"),
        ),
        (
            "pipeline-mean-of-one-without-noise",
            *("others", "Metrics.MEAN.laplace", ADDED),
            *("pipeline_dp.dp_computations", "MeanMechanism.compute_mean"),
            "self._sum_mechanism.add_noise(normalized_sum)",
            "self._sum_mechanism.add_noise(normalized_sum)"
            " if count > 1 else normalized_sum",
        ),
        (
            "response-twice-epsilon",
            *("others", "GRR.GRR_Client", REPLACED),
            *("multi_freq_ldpy.pure_frequency_oracles.GRR", "GRR_Client"),
            "np.exp(epsilon) / (np.exp(epsilon) + k - 1)",
            "np.exp(2 * epsilon) / (np.exp(2 * epsilon) + k - 1)",
        ),
    )
}
RIGHT = {
    (each.listed_in, each.subject, each.relation): each for each in FAULTS.values()
}


def edited(fault, patch):
    """Put the edited function in the place of the right one."""
    head, _, name = fault.function.rpartition(".")
    owner = import_module(fault.module)
    owner = getattr(owner, head) if head else owner
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
    pytest.importorskip(fault.module.partition(".")[0], reason="make third-party")
    subject = subjects_of(f"{MODULES}.{fault.listed_in}")[fault.subject]
    subject = replace(subject, relation=fault.relation)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(visiting, "_REPLAY_S", 2.0)
        record = visiting.visit(
            subject, seconds=60.0, samples=20_000, confidence=0.99999, seed=0
        )
    about = {"library": subject.library, "relation": subject.relation}
    about |= {"subject": str(subject), "claim": "", "stated": "", "seconds": 0.0}
    (line,) = tour_rows([record | about])
    return line


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name, monkeypatch):
    fault = FAULTS[name]
    pytest.importorskip(fault.module.partition(".")[0], reason="make third-party")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        edited(fault, monkeypatch)
    assert verdict(fault).verdict.startswith("REFUTED")


@pytest.mark.parametrize("key", RIGHT, ids=lambda key: key[1])
def test_the_right_version_is_not_refuted(key):
    assert verdict(RIGHT[key]).verdict == "NOT_REFUTED"
