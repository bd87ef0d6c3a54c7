"""Audits that are killed: nothing is lost but the time since.

A child audits with two workers, and keeps a checkpoint of every round. When it is
killed, the file stays sound, the workers end too, and the result is in the end that of
an audit which nobody disturbed.
"""

import importlib
import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace

from dpaudit.audit import audit

MODULE = """
import json, time
from dataclasses import replace
from multiprocessing import active_children
from dpaudit import Pair, PureDP
from dpaudit.attacks import Identity
from dpaudit.audit import Budget, Run, audit, process_pool

OPTIONS = dict(
    pair=Pair([0.0], [0.0, 1.0]),
    claim=PureDP(1.0),
    budget=Budget(600, stop=False),
)
RUN = Run(attacks=[Identity()])

def mechanism(data, rng):
    return data.sum() + rng.laplace()

def main(rounds):
    rounds_left, now = iter(range(rounds)), [0.0]
    time.perf_counter = lambda: now[0]

    def tell(progress):
        now[0] += 10.0  # so that a checkpoint is due after every round
        told = progress.samples, len(active_children())
        print(json.dumps(told), flush=True)
        if next(rounds_left, None) is None:
            time.sleep(3600)

    with process_pool(2) as pool:
        run = replace(RUN, executor=pool, store="audits.db", progress=tell)
        audit(mechanism, **OPTIONS, run=run)
"""
ROUNDS = 4  # until it is killed; it may be one in advance of its death
CODE = f"import slow_module; slow_module.main({ROUNDS} + 1)"
HANGING = 60  # seconds after which workers have not ended with their parent


def values(result):
    transient = ("seconds", "from_store")
    return {k: v for k, v in result.to_dict().items() if k not in transient}


def killed(folder):
    """Begin an audit and kill it; return the releases after each round it told of."""
    with subprocess.Popen(
        [sys.executable, "-c", CODE],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        lines = list(itertools.islice(child.stdout, ROUNDS))
        child.kill()
        late = threading.Timer(HANGING, os.killpg, (child.pid, signal.SIGKILL))
        late.start()
        lines += child.stdout  # which the workers hold open, too
        assert late.is_alive(), "the workers outlived their parent"
        late.cancel()
    assert child.returncode == -signal.SIGKILL
    told = [json.loads(line) for line in lines]
    assert {count for _, count in told} == {2}
    return [samples for samples, _ in told]


def sound(path):
    db = sqlite3.connect(path)
    (answer,) = db.execute("PRAGMA integrity_check").fetchone()
    db.close()
    return answer == "ok"


def test_an_audit_survives_a_kill(tmp_path, monkeypatch):
    (tmp_path / "slow_module.py").write_text(MODULE)
    path, told = tmp_path / "audits.db", []
    samples = killed(tmp_path)
    assert sound(path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "slow_module", raising=False)
    module = importlib.import_module("slow_module")
    run = replace(module.RUN, store=path, progress=told.append)
    left = audit(module.mechanism, **module.OPTIONS, run=run)
    whole = audit(module.mechanism, **module.OPTIONS, run=module.RUN)
    assert values(left) == values(whole)
    assert sound(path)
    assert not list(tmp_path.glob("*corrupt*"))
    # A round is told, then kept, and only then is the next one drawn and told. So all
    # that was told before the last word is kept, and not drawn again.
    assert told[0].resumed_at in samples[-2:]
