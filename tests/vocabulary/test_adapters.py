import operator
import os
import pickle
import sys
import threading
from functools import partial

import numpy as np
import pytest
from refusals import refused, refuses
from scipy.stats import kstest, laplace
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpaudit import ApproxDP, MechanismError, Pair, PureDP, Relation
from dpaudit.adapters import (
    BadReply,
    ProcessCrashed,
    ProcessTimedOut,
    from_command,
    from_estimator,
    process,
)
from dpaudit.attacks import PORTFOLIO
from dpaudit.audit import Run, audit, verify
from dpaudit.audit.keeping.identity import key_of
from dpaudit.codec import encode, rebuild
from dpaudit.streams import stream

PAIR = Pair([0.0], [0.0, 1.0])
pytestmark = pytest.mark.usefixtures("in_few_rounds")
FEW = Run(attacks=[a for a in PORTFOLIO if a.name in ("identity", "abnormal")])
audit_quickly = partial(
    audit, pair=PAIR, claim=PureDP(1.0), confidence=1 - 1e-6, run=FEW
)

# What every program does, before and after what it does instead of an answer.
HEAD = """
import json, random, sys, time
for line in sys.stdin:
    request = json.loads(line)
    total = sum(row for row in request["data"] if isinstance(row, float))
    seed, size = request["seed"], request.get("size")
    random.seed(seed)
    noise = [random.expovariate(1) - random.expovariate(1) for _ in range(size or 1)]
"""
TAIL = """
    answer = [total + x for x in noise]
    print(json.dumps(answer[0] if size is None else answer), flush=True)
"""


@pytest.fixture
def program(tmp_path):
    """Return a function that makes mechanisms of Python programs."""
    made = []

    def make(instead="", *, tail=TAIL, **options):
        path = tmp_path / f"program{len(made)}.py"
        path.write_text(HEAD + instead + tail)
        made.append(from_command([sys.executable, "-S", path], **options))
        return made[-1]

    yield make
    for mechanism in made:
        mechanism.close()


def releases(mechanism, size, data=(0.0,)):
    generator = stream(0)
    return [mechanism.release(np.array(data), rng=generator) for _ in range(size)]


# Programs
def test_programs_release_what_they_write_one_answer_to_a_turn(program):
    """Null: Laplace(0, 1). The p-value is below 1e-9 with probability 1e-9."""
    mechanism = program()
    drawn = releases(mechanism, 500)
    assert kstest(np.array(drawn), laplace.cdf).pvalue > 1e-9
    assert releases(mechanism, 2) == drawn[:2]
    # Two lines for a request: the second is never taken for another's answer.
    #
    # A sleep lets it arrive before the next request is made.
    tail = "    print('0'); print('1', flush=True)\n"
    mechanism, drawn = program(tail=tail), []
    for _ in range(3):
        drawn += releases(mechanism, 1)
        threading.Event().wait(0.3)
    assert drawn == [0.0, 0.0, 0.0]


def test_one_process_serves_many_releases_with_rows_as_they_are(program):
    mechanism = program(tail="    import os; print(os.getpid(), flush=True)\n")
    assert len({float(x) for x in releases(mechanism, 5)}) == 1
    mechanism.close()
    assert float(releases(mechanism, 1)[0]) > 0
    mechanism = program(tail="    print(json.dumps(request['data']), flush=True)\n")
    for rows in ([0.1, -1e-300, 3.0], [[1.0, 2.0], [0.1 + 0.2, 4.0]], []):
        assert np.array_equal(mechanism.release(rows, rng=stream(0)), rows)


def test_a_wrong_program_is_refuted_and_its_witness_starts_it_again(program):
    mechanism = program(
        "    noise = [x / 4 for x in noise]", claim=PureDP(1.0), relation="add-remove"
    )
    result = audit(mechanism, pair=PAIR, run=FEW)
    assert result.refuted
    assert verify(result.witness, seed=1).confirmed


@pytest.mark.parametrize("seedable", [True, False])
def test_a_program_with_randomness_of_its_own_has_to_say_so(program, seedable):
    own = "    noise = [x / 9 * random.SystemRandom().random() for x in noise]"
    mechanism = program(own, seedable=seedable)
    result = audit(mechanism, pair=PAIR, claim=PureDP(1.0), run=FEW)
    assert result.verdict == ("NO_VERDICT" if seedable else "REFUTED")
    if not seedable:
        assert verify(result.witness, seed=1).confirmed


def test_batches_are_looked_at_one_by_one_if_bad(program):
    mechanism = program(batched=True)
    drawn = mechanism.draw(np.array([0.0]), 500, rng=stream(0))
    assert drawn.shape == (500,)
    assert kstest(drawn, laplace.cdf).pvalue > 1e-9
    assert mechanism.release(np.array([0.0]), rng=stream(0)).shape == ()
    tail = """    print('{"a": [1, 2], "b": [[3], [4]]}', flush=True)\n"""
    drawn = program(tail=tail, batched=True).draw([0.0], 2, rng=stream(0))
    assert (drawn["a"].shape, drawn["b"].shape) == ((2,), (2, 1))
    tail = """    print('{"a": [7]}', flush=True)\n"""
    assert releases(program(tail=tail, batched=True), 1) == [{"a": 7.0}]
    mechanism = program(
        "    if seed % 8 == 0: print('[]', flush=True); continue\n", batched=True
    )
    refuses("not a list of 1 releases", releases, mechanism, 100, error=BadReply)
    assert not audit_quickly(mechanism, budget=40).refuted


@pytest.mark.parametrize(
    ("written", "released"),
    [
        *(("[1, 2.5]", [1.0, 2.5]), ("true", 1.0)),
        ("[NaN, -Infinity]", [np.nan, -np.inf]),
        ('{"mean": [1, 2], "count": 3}', {"mean": [1.0, 2.0], "count": 3.0}),
        *(("[1, 2", "[1, 2"), ("", ""), ("1 2", "1 2"), ('"word"', "word")),
        ("\\udcff\\udcfe", r"\xff\xfe"),
    ],
)
def test_numbers_become_arrays_and_all_else_is_text(program, written, released):
    tail = "    sys.stdout.reconfigure(errors='surrogateescape')\n"
    tail += f"    print('{written}', flush=True)\n"
    (release,) = releases(program(tail=tail), 1)
    np.testing.assert_equal(release, released)
    if isinstance(release, np.ndarray):
        assert release.dtype == np.float64


def test_a_crash_names_the_reason_and_is_survived(program):
    mechanism = program("    if total > 0.5: sys.exit('out of luck')\n")
    for _ in range(2):
        with pytest.raises(ProcessCrashed, match=r"^exit code 1: out of luck$"):
            releases(mechanism, 1, data=(1.0,))
        assert releases(mechanism, 1) == releases(program(), 1)
    if os.name == "posix":
        with pytest.raises(ProcessCrashed, match="signal 6"):
            releases(program("    import os; os.abort()\n"), 1)


def test_a_hanging_program_is_killed_and_started_again(program):
    """It hangs at its second request; the third is the second program's first."""
    tail = "    print('0', flush=True)\n    for line in sys.stdin: time.sleep(60)\n"
    mechanism = program(tail=tail, timeout=2.0)
    assert releases(mechanism, 1) == [0.0]
    with pytest.raises(ProcessTimedOut, match="no answer in 2 s"):
        releases(mechanism, 1)
    assert releases(mechanism, 1) == [0.0]


def test_programs_that_never_answer_or_read_hold_up_nobody():
    mechanism = from_command(["sleep", "60"], timeout=0.01)
    with pytest.raises(MechanismError, match="raises ProcessTimedOut on both datasets"):
        audit_quickly(mechanism)
    with pytest.raises(MechanismError, match="out of luck"):
        audit_quickly(from_command(["sh", "-c", "echo out of luck >&2; exit 1"]))
    with pytest.raises(MechanismError, match="cannot start 'no-such-program'"):
        audit_quickly(from_command(["no-such-program"]))
    # The request is longer than any pipe.
    sleeper = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    mechanism = from_command(sleeper, timeout=0.5)
    with pytest.raises(ProcessTimedOut):
        mechanism.release(np.zeros(100_000), rng=stream(0))


def test_lines_without_end_are_cut_off_and_fill_no_memory(program):
    mechanism = program(tail="    while True: sys.stdout.write('y' * 2**20)\n")
    assert [len(release) for release in releases(mechanism, 2)] == [2**26] * 2
    mechanism = program(tail="    while True: print('1')\n")
    assert releases(mechanism, 2) == [1.0, 1.0]


def test_closing_ends_the_program_and_what_it_has_started(program):
    """The grandchild holds the pipes open: only its end lets the threads end.

    A mechanism that is forgotten ends its program too.
    """
    before = threading.active_count()
    mechanism = program(
        "    import subprocess\n"
        "    subprocess.Popen([sys.executable, '-S', '-c', "
        "'import time; time.sleep(60)'])\n"
    )
    releases(mechanism, 1)
    assert threading.active_count() > before
    mechanism.close()
    assert threading.active_count() == before
    mechanism = from_command([sys.executable, "-S", "-c", "print(input() and 1)"])
    assert releases(mechanism, 1) == [1.0]
    del mechanism
    assert threading.active_count() == before


def test_after_a_fork_the_program_is_left_to_the_parent(program, monkeypatch):
    mechanism = program(tail="    import os; print(os.getpid(), flush=True)\n")
    (parents,) = releases(mechanism, 1)
    line_process = mechanism._talk._process
    with monkeypatch.context() as forked:
        forked.setattr(process.os, "getpid", lambda: -1)
        (childs,) = releases(mechanism, 1)
        assert childs != parents
        mechanism.close()
    assert line_process.ask(b'{"data": [], "seed": 1}\n', 60) == b"%d\n" % parents
    line_process._process.kill()
    line_process._process.wait()


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        *(("[1]", "not a list of 2"), ("[1, [2]]", "not a list of 2")),
        *(('{"a": [1, 2], "b": [1]}', "not a list of 2"), ("What?", "not JSON")),
    ],
)
def test_bad_batches(program, written, problem):
    mechanism = program(tail=f"    print('{written}', flush=True)\n", batched=True)
    refuses(problem, mechanism.draw, [0.0], 2, rng=stream(0), error=BadReply)


test_bad_arguments_are_named = refused(
    ({"argv": "python x.py"}, "argv must be a sequence of words"),
    ({"argv": []}, "argv must be a sequence of words"),
    ({"argv": ["a", 1]}, "got 1 in it"),
    ({"argv": ["a"], "timeout": 0}, "timeout must be"),
    ({"argv": ["a"], "claim": 1.0}, "claim must be a Claim"),
    ({"argv": ["a"], "relation": "cousins"}, "relation must be one of"),
    by=lambda arguments: from_command(**arguments),
)


# Estimators
class NoisySum(BaseEstimator):
    """Learns the sum of its rows, with Laplace noise, and overwrites them."""

    def __init__(self, scale=1.0, random_state=None):
        self.scale = scale
        self.random_state = random_state

    def fit(self, rows, y=None):
        generator = np.random.default_rng(self.random_state)
        self.sum_ = rows.sum() + generator.laplace(scale=self.scale)
        rows[:] = 0.0
        return self

    def total(self):
        return self.sum_


class Unseeded(BaseEstimator):
    pass


def test_an_estimator_is_fitted_anew_for_every_release():
    """Null: Laplace(1, 2). The p-value is below 1e-9 with probability 1e-9."""
    mechanism = from_estimator(
        partial(NoisySum, 2.0),
        extract=NoisySum.total,
        fit=lambda e, rows: e.fit(rows) and None,
    )
    drawn = releases(mechanism, 500, data=(0.25, 0.75))
    assert kstest(np.array(drawn), laplace(1.0, 2.0).cdf).pvalue > 1e-9


@pytest.mark.parametrize("factory", [NoisySum, NoisySum().fit(np.zeros(1))], ids=type)
def test_a_correct_estimator_is_not_refuted(factory):
    """A true claim is refuted with probability <= 1e-6."""
    mechanism = from_estimator(
        factory, extract=NoisySum.total, claim=PureDP(1.0), relation="add-remove"
    )
    result = audit_quickly(mechanism, budget=20)
    assert not result.refuted
    assert result.warnings == ()


def test_every_random_state_of_a_pipeline_is_set():
    pipeline = make_pipeline(StandardScaler(), SGDClassifier(max_iter=1, tol=None))
    seeds = set()

    def fit(estimator, rows):
        seeds.add(estimator.get_params()["sgdclassifier__random_state"])
        return estimator.fit(rows[:, :-1], rows[:, -1])

    mechanism = from_estimator(pipeline, extract=lambda p: p[-1].coef_, fit=fit)
    rows = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 1.0]])
    generator = stream(0)
    drawn = [mechanism.release(rows, rng=generator) for _ in range(3)]
    assert drawn[0].shape == (1, 1)
    assert len(seeds) == 3
    assert np.array_equal(mechanism.release(rows, rng=stream(0)), drawn[0])
    seeds_of = partial(map, operator.attrgetter("random_state"))
    pipeline = make_pipeline(PCA(1), PCA(1))
    first, second = from_estimator(pipeline, extract=seeds_of).release(
        rows, rng=stream(0)
    )
    assert first != second


def test_mechanisms_can_be_pickled_and_stored(program):
    """A store knows a program by its command, whether it runs or not."""
    promise = {"claim": ApproxDP(1.0, 1e-5), "relation": "add-remove"}
    run = program(timeout=3, **promise)
    key = key_of(mechanism=run)
    for mechanism in (run, from_estimator(NoisySum, extract=NoisySum.total, **promise)):
        expected = releases(mechanism, 1)
        assert mechanism([0.0], stream(0)) == expected[0]
        for copy in (pickle.loads(pickle.dumps(mechanism)), rebuild(encode(mechanism))):
            assert copy == mechanism
            assert copy.relation is Relation.ADD_REMOVE
            assert releases(copy, 1) == expected
            if mechanism is run:
                copy.close()
    assert key_of(mechanism=run) == key != key_of(mechanism=program())


test_bad_parts_of_an_estimator_are_named = refused(
    ({"factory": Unseeded()}, "Unseeded has no random_state"),
    ({"factory": 1.0}, "factory must be callable"),
    ({"extract": "sum_"}, "extract must be callable"),
    ({"fit": "fit"}, "fit must be callable"),
    ({"claim": 1.0}, "claim must be a Claim"),
    by=lambda arguments: from_estimator(
        **{"factory": NoisySum, "extract": NoisySum.total} | arguments
    ),
)
