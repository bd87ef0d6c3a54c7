"""Audits that are killed, at any moment: nothing is lost but the time since.

A child audits, alone or with two workers, and keeps a checkpoint of every round, so
that it is killed now and then in the middle of writing one. However it is ended, the
file stays sound, the workers end too, and the result is in the end that of an audit
which nobody disturbed.
"""

import importlib
import itertools
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dpaudit.audit import audit

MODULE = """
import json, signal, sys, time
from contextlib import nullcontext
from multiprocessing import active_children
from dpaudit import Pair, PureDP
from dpaudit.attacks import PORTFOLIO
from dpaudit.audit import audit, checkpoint, process_pool

NAMES = ("identity", "atoms", "logistic")
OPTIONS = dict(
    pair=Pair([0.0], [0.0, 1.0]),
    claim=PureDP(1.0),
    attacks=[attack for attack in PORTFOLIO if attack.name in NAMES],
    max_samples={releases},
    stop_when_refuted=False,
)

def mechanism(data, rng):
    time.sleep({seconds})
    return data.sum() + rng.laplace()

def main(path, rounds):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rounds_left = iter(range(int(rounds)))

    def tell(progress):
        workers = [child.pid for child in active_children()]
        print(json.dumps([progress.samples, progress.resumed_at, workers]), flush=True)
        if next(rounds_left, None) is None:
            time.sleep(3600)

    checkpoint._EVERY, checkpoint._SHARE = {throttle}
    with process_pool(2) if {workers} == 2 else nullcontext() as pool:
        audit(mechanism, **OPTIONS, executor=pool, store=path, progress=tell)
"""
CODE = "import sys, slow_module; slow_module.main(*sys.argv[1:])"
CHILD = [sys.executable, "-c", CODE, "audits.db"]
NO_END = "1000000"


def values(result):
    transient = ("seconds", "from_store")
    return {k: v for k, v in result.to_dict().items() if k not in transient}


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().split(")")[-1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def kill_at_some_moment(folder, rounds, delay, ahead, how, workers):
    """End an audit after so many rounds and seconds; return where it had begun, and
    the releases after each round that was told.

    It waits to be killed once it is so many rounds ahead of those. None if it came to
    its end before.
    """
    told, said = [], folder / "stderr"
    with (
        said.open("w") as stderr,
        subprocess.Popen(
            [*CHILD, str(rounds + ahead)],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as child,
    ):
        for line in child.stdout:
            told.append(json.loads(line))
            if len(told) == rounds:
                break
        time.sleep(delay)
        child.send_signal(how)
        told += map(json.loads, child.stdout)
    if child.returncode == 0:
        return None
    assert child.returncode == -how, said.read_text()
    deadline = time.monotonic() + 60
    while any(alive(pid) for pid in told[-1][2]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(told[-1][2]) == (workers if workers > 1 else 0)
    assert not any(alive(pid) for pid in told[-1][2])
    return told[0][1], [samples for samples, _, _ in told]


def sound(path):
    db = sqlite3.connect(path)
    (answer,) = db.execute("PRAGMA integrity_check").fetchone()
    db.close()
    return answer == "ok"


def survive(folder, *, kills, rounds, delay, ahead, workers, **settings):
    """Kill an audit often, then let it end; return where each process began, and what
    it told.

    One in three is interrupted instead. The last one is only said to have begun.
    """
    (folder / "slow_module.py").write_text(MODULE.format(workers=workers, **settings))
    rng, spans = random.Random(workers), []
    while len(spans) < kills:
        how = signal.SIGINT if len(spans) % 3 == 1 else signal.SIGKILL
        moment = rng.randint(*rounds), rng.uniform(*delay)
        span = kill_at_some_moment(folder, *moment, ahead, how, workers)
        assert sound(folder / "audits.db")
        assert span is not None, f"it ended after {len(spans)} kills"
        spans.append(span)
    done = subprocess.run([*CHILD, NO_END], cwd=folder, capture_output=True, check=True)
    spans.append((json.loads(done.stdout.splitlines()[0])[1], []))
    assert sound(folder / "audits.db")
    assert not list(folder.glob("*corrupt*"))
    return spans


def results(folder, monkeypatch, executor=None):
    """Return the result that the killed processes left, and that of one left alone."""
    monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop("slow_module", None)
    module = importlib.import_module("slow_module")
    left = audit(module.mechanism, **module.OPTIONS, store=folder / "audits.db")
    assert left.from_store
    alone = audit(module.mechanism, **module.OPTIONS, executor=executor)
    return values(left), values(alone)


linux = pytest.mark.skipif(
    not os.path.exists("/proc"), reason="looks processes up in /proc"
)


@linux
@pytest.mark.parametrize(("workers", "kills"), [(1, 2), (2, 1)])
def test_an_audit_survives_kills(tmp_path, monkeypatch, workers, kills):
    """However fast it runs: it has 37 rounds, and no process gets further than 8."""
    spans = survive(
        tmp_path,
        kills=kills,
        rounds=(2, 6),
        delay=(0.0, 0.3),
        ahead=1,
        workers=workers,
        seconds=0.0005,
        releases=1000,
        throttle=(0.0, 1e9),
    )
    # A round is told, then kept, and only then is the next one drawn and told. So all
    # that was told before the last word is kept, and not drawn again.
    for (began, told), (resumed, _) in itertools.pairwise(spans):
        assert resumed in [began, *told][-2:]
        assert told[0] > began
    left, alone = results(tmp_path, monkeypatch)
    assert left == alone


@linux
@pytest.mark.hard
@pytest.mark.parametrize("workers", [1, 2])
def test_a_long_audit_survives_sixteen_kills(tmp_path, monkeypatch, workers):
    """With checkpoints as rare as they are in earnest."""
    spans = survive(
        tmp_path,
        kills=16,
        rounds=(1, 3),
        delay=(0.0, 3.0),
        ahead=10,
        workers=workers,
        seconds=0.001,
        releases=25_000 * workers,
        throttle=(1.0, 0.01),
    )
    began = [span[0] for span in spans]
    assert began == sorted(began)
    assert began[-1] > 1000
    with ThreadPoolExecutor(16) as executor:
        left, alone = results(tmp_path, monkeypatch, executor)
    assert left == alone
    print(f"{len(spans) - 1} kills of an audit by {workers}: the result is the same")
