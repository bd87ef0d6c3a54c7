"""What is sent to workers, and what comes back."""

import pickle
import sys
from concurrent.futures import Future, ProcessPoolExecutor

import numpy as np
import pytest
from audit_cases import CLAIM, PAIR, audited, laplace_sum, values

from dpaudit import InputError, Pair
from dpaudit.algorithms.textbook.sums import Laplace
from dpaudit.attacks import Attack
from dpaudit.audit import Budget, Run
from dpaudit.audit.game.fitted import Scored
from dpaudit.audit.sampling import workers
from dpaudit.audit.sampling.draws import Piece
from dpaudit.audit.sampling.parcels import Parcel, WorkerSubject


class Post(ProcessPoolExecutor):
    """Sends all there and back again, and works in this process."""

    def __init__(self):
        super().__init__(1)
        self.sent, self.answers = [], []

    def submit(self, function, /, *arguments):
        future = Future()
        sent = pickle.dumps(arguments)
        self.sent.append(len(sent))
        try:
            answer = pickle.dumps(function(*pickle.loads(sent)))
            self.answers.append((len(answer), pickle.loads(answer)[1]))
            future.set_result(pickle.loads(answer))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.fixture
def in_large_tasks(monkeypatch):
    """Send all that is drawn, in tasks as large as may be."""
    for name, seconds in {"_WORTH": 0.0, "_LEAST": 1e9, "_MOST": 1e9}.items():
        monkeypatch.setattr(workers, name, seconds)


@pytest.mark.usefixtures("in_few_rounds", "in_large_tasks")
def test_what_is_submitted_does_not_grow_with_the_rows():
    largest = []
    for rows in (1_000, 100_000):
        pair = Pair(np.zeros(rows), np.append(np.zeros(rows), 1.0))
        with Post() as post:
            audited(laplace_sum, pair=pair, budget=30, run=Run(executor=post))
        largest.append(max(post.sent))
    assert largest[0] == largest[1] < 5_000


@pytest.mark.usefixtures("in_few_rounds", "in_large_tasks")
def test_counts_come_back_in_place_of_releases_once_these_are_many():
    options = {"pair": None, "claim": None, "budget": Budget(400_000, stop=False)}
    with Post() as post:
        sent = audited(Laplace(1.0), **options, run=Run(executor=post))
    size, answers = max(post.answers, key=lambda each: sum(x.size for x in each[1]))
    assert all(isinstance(answer, Scored) for answer in answers)
    assert size < sum(answer.size for answer in answers)
    assert values(sent) == values(audited(Laplace(1.0), **options))


class Awkward(Attack):
    """An attack that fails, or cannot be found, anywhere but at home."""

    name, learns, home = "awkward", False, [True]

    def __reduce__(self):
        return (Awkward, ()) if self.home else (_nowhere, ())

    def score(self, target, parameters, releases):
        if not self.home:
            raise AssertionError("not at home")
        return releases


def _nowhere():
    raise ImportError


@pytest.mark.usefixtures("in_few_rounds", "in_large_tasks")
@pytest.mark.parametrize("found", [True, False])
def test_releases_that_cannot_be_read_by_a_worker_are_read_at_home(found, monkeypatch):
    class Abroad(Post):
        def submit(self, function, /, *arguments):
            Awkward.home[:] = [True] * found
            sent = pickle.dumps(arguments)
            Awkward.home.clear()
            future = Future()
            future.set_result(function(*pickle.loads(sent)))
            Awkward.home.append(True)
            assert not any(isinstance(each, Scored) for each in future.result()[1])
            return future

    run = Run(attacks=[Awkward()])
    expected = audited(laplace_sum, budget=50, run=run)
    with Abroad() as post:
        run = Run(attacks=[Awkward()], executor=post)
        assert values(audited(laplace_sum, budget=50, run=run)) == values(expected)


def test_a_worker_with_other_code_or_versions_is_named(tmp_path, monkeypatch):
    (tmp_path / "sums_of_mine.py").write_text("def noisy(data, rng):\n    return 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import sums_of_mine

    parcel = Parcel.of(sums_of_mine.noisy)
    ((name, digest),) = parcel.modules
    assert name == "sums_of_mine"
    assert parcel.opened() is sums_of_mine.noisy
    other = parcel._replace(modules=((name, digest[::-1]),))
    with pytest.raises(InputError, match="another source of sums_of_mine"):
        other.opened()
    monkeypatch.delitem(sys.modules, name)
    (tmp_path / "sums_of_mine.py").write_text("import no_such_module")
    with pytest.raises(InputError, match=r"cannot import sums_of_mine.*no_such_module"):
        parcel._replace(modules=((name, "0" * 64),)).opened()
    assert Parcel.of(np.sum).modules == Parcel.of(Laplace(1.0)).modules == ()

    versions = dict(WorkerSubject.here()) | {"numpy": "1.0"}
    subject = WorkerSubject(laplace_sum, PAIR, tuple(versions.items()))
    with pytest.raises(InputError, match=r"has another numpy: .* this process 1\.0"):
        subject.draw(0, 0, [Piece(0, 0, 1, 1)], None)


def test_a_pair_that_workers_forget_is_sent_again(monkeypatch):
    """No more than a few pairs are held, as a search tries many."""
    monkeypatch.setattr(workers, "_PLACES", 1)
    monkeypatch.setattr(workers, "_WORTH", 0.0)
    options = {"pair": None, "domain": "box:0,1:1", "relation": "add-remove"}
    options |= {"claim": CLAIM, "budget": 60}
    with Post() as post:
        sent = audited(laplace_sum, **options, run=Run(executor=post))
    assert values(sent) == values(audited(laplace_sum, **options))


class Counting:
    """Keeps state, which only shows if a copy draws more than once."""

    def __init__(self):
        self.drawn = 0

    def release(self, data, *, rng):
        self.drawn += 1
        return data.sum() + rng.laplace() + self.drawn


@pytest.mark.usefixtures("in_few_rounds", "in_large_tasks")
def test_state_that_workers_keep_is_seen():
    with Post() as post:
        found = audited(Counting(), budget=50, run=Run(executor=post))
    assert found.verdict == "NO_VERDICT"
    assert any("keeps state" in warning for warning in found.warnings)
