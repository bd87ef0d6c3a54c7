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
import threading
import time

import pytest

from dpaudit.audit import audit

MODULE = """
import json, signal, sys, time
from contextlib import nullcontext
from multiprocessing import active_children
from dpaudit import Pair, PureDP
from dpaudit.attacks import Identity
from dpaudit.audit import audit, process_pool

OPTIONS = dict(
    pair=Pair([0.0], [0.0, 1.0]),
    claim=PureDP(1.0),
    attacks=[Identity()],
    max_samples=600,
    stop_when_refuted=False,
)

def mechanism(data, rng):
    return data.sum() + rng.laplace()

def main(path, workers, rounds):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rounds_left, now = iter(range(int(rounds))), [0.0]
    time.perf_counter = lambda: now[0]

    def tell(progress):
        now[0] += 10.0  # so that a checkpoint is due after every round
        told = progress.samples, progress.resumed_at, len(active_children())
        print(json.dumps(told), flush=True)
        if next(rounds_left, None) is None:
            time.sleep(3600)

    with process_pool(2) if workers == "2" else nullcontext() as pool:
        audit(mechanism, **OPTIONS, executor=pool, store=path, progress=tell)
"""
CODE = "import sys, slow_module; slow_module.main('audits.db', *sys.argv[1:])"
AHEAD = 1  # rounds that a child may be in advance of its death
HANGING = 60  # seconds after which workers have not ended with their parent


def values(result):
    transient = ("seconds", "from_store")
    return {k: v for k, v in result.to_dict().items() if k not in transient}


def kill_at_some_moment(folder, workers, rounds, delay, how):
    """End an audit after so many rounds and seconds; return where it had begun, and
    the releases after each round that was told.
    """
    said = folder / "stderr"
    command = [sys.executable, "-c", CODE, str(workers), str(rounds + AHEAD)]
    with (
        said.open("w") as stderr,
        subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        ) as child,
    ):
        lines = list(itertools.islice(child.stdout, rounds))
        time.sleep(delay)
        child.send_signal(how)
        late = threading.Timer(HANGING, os.killpg, (child.pid, signal.SIGKILL))
        late.start()
        lines += child.stdout  # which the workers hold open, too
        assert late.is_alive(), "the workers outlived their parent"
        late.cancel()
    assert child.returncode == -how, said.read_text()
    told = [json.loads(line) for line in lines]
    assert {count for _, _, count in told} == {workers if workers > 1 else 0}
    return told[0][1], [samples for samples, _, _ in told]


def sound(path):
    db = sqlite3.connect(path)
    (answer,) = db.execute("PRAGMA integrity_check").fetchone()
    db.close()
    return answer == "ok"


@pytest.mark.parametrize(
    ("workers", "kills"), [pytest.param(1, 4, marks=pytest.mark.hard), (2, 1)]
)
def test_an_audit_survives_kills(tmp_path, monkeypatch, workers, kills):
    """One in three is interrupted instead; no process gets further than 7 rounds."""
    (tmp_path / "slow_module.py").write_text(MODULE)
    rng, spans, path = random.Random(workers), [], tmp_path / "audits.db"
    for number in range(kills):
        how = signal.SIGINT if number % 3 == 1 else signal.SIGKILL
        moment = rng.randint(2, 6), rng.uniform(0.0, 0.3)
        spans.append(kill_at_some_moment(tmp_path, workers, *moment, how))
        assert sound(path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "slow_module", raising=False)
    module, told = importlib.import_module("slow_module"), []
    left = audit(module.mechanism, **module.OPTIONS, store=path, progress=told.append)
    assert values(left) == values(audit(module.mechanism, **module.OPTIONS))
    assert sound(path)
    assert not list(tmp_path.glob("*corrupt*"))
    # A round is told, then kept, and only then is the next one drawn and told. So all
    # that was told before the last word is kept, and not drawn again.
    spans.append((told[0].resumed_at, []))
    for (began, samples), (resumed, _) in itertools.pairwise(spans):
        assert resumed in [began, *samples][-2:]
        assert samples[0] > began
