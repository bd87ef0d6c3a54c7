import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from cli_cases import refused, run

from dpaudit.audit import audit
from dpaudit.audit.replay import auditing
from dpaudit.audit.search.cut import PairCut

FILE = '''
import numpy as np
import pandas as pd

def noisy_mean(df: pd.DataFrame, epsilon, bound=100.0):
    """The mean, of age in [0, 90]."""
    noisy = df["age"].clip(0, bound).sum() + np.random.laplace(scale=bound / epsilon)
    return noisy / max(len(df), 1)

def count(rows, lower, upper, rng):
    hits = sum(1 for row in rows if lower <= row["age"] <= upper)
    return hits + rng.laplace()

def rare(values: list[float], epsilon=1.0, seed=None):
    rng = np.random.default_rng(seed)
    return float(sum(values) > 2) * (rng.random() < 0.1) if rng.random() < 2 else 0

def clipped(df):
    return df.clip(upper=1).sum() + np.random.laplace()

def fitted(X, y, epsilon):
    return X.sum() + y.sum()

def lazy(df):
    yield df["age"].sum()

def other_way_round(prng, data):
    return data.sum() + prng.laplace()

def _private(data, rng):
    return 0

KEPT, SHIFT = {}, np.random.default_rng().laplace(scale=9.0)

def shifted(data, rng):
    return data.sum() + SHIFT + rng.laplace(scale=0.1)

def cached(data, rng):
    noise = KEPT.setdefault("noise", rng.laplace(scale=9.0))
    return data.sum() + noise + rng.laplace(scale=0.1)


class Needy:
    def __init__(self, epsilon):
        self.epsilon = epsilon
'''
DOMAIN = ("--domain", "age:0..100", "--relation", "add-remove")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "first_command.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    sys.modules.pop("first_command", None)


def test_a_function_in_a_file_is_audited_by_the_installed_command():
    script = Path(sys.executable).with_name("dpaudit")
    command = [script] if script.is_file() else [sys.executable, "-m", "dpaudit"]
    arguments = ["first_command.py:noisy_mean", "--epsilon", "1", *DOMAIN]
    arguments += ["--witness", "witness.json"]
    done = subprocess.run(
        [*command, "audit", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "first_command.py:noisy_mean: REFUTED by proof" in done.stdout
    assert "first_command.py:8: scale:" in done.stdout
    assert run("verify", "witness.json").exit_code == 1


def test_both_share_the_error_and_the_form_is_found():
    own = ["first_command:count", "--set", "lower=50", "--set", "upper=200"]
    options = ["--epsilon", "1", "--max-samples", "200", "--json"]
    told = json.loads(run("audit", *own, *DOMAIN, *options).stdout)
    assert told["verdict"] == told["replay"]["verdict"] == "NOT_REFUTED"
    assert told["confidence"] == told["replay"]["confidence"] == 0.9995
    assert told["replay"]["loss"] == pytest.approx(1.0)


def test_sampling_says_what_replay_saw_of_noise_that_is_used_again():
    pd.DataFrame({"x": [0.0, 1.0]}).to_csv("rows.csv", index=False)
    options = ["--data", "rows.csv", "--neighbour", "drop:1", "--max-samples", "99"]
    seen = {}
    for name in ("shifted", "cached"):
        done = run(
            "audit", f"first_command:{name}", "--epsilon", "1", *options, "--json"
        )
        told = json.loads(done.stdout)
        assert told["replay"]["verdict"] == "NOT_FOLLOWED"
        seen[name] = told["verdict"], done.exit_code, *told["warnings"]
    verdict, code, warning = seen["shifted"]
    assert (verdict, code) == ("REFUTED", 1)
    assert "SHIFT holds what was drawn before" in warning
    assert warning.endswith("the mechanism with it, not of one that draws it anew")
    verdict, code, warning = seen["cached"]
    assert (verdict, code) == ("NO_VERDICT", 2)
    assert "noise that an earlier execution drew is used again" in warning


def test_sampling_begins_where_replay_saw_most(monkeypatch):
    begun = []

    def spied(mechanism, **options):
        begun.append(PairCut.words(options["pair"], options["domain"]))
        return audit(mechanism, **options)

    monkeypatch.setattr("dpaudit.audit.audit", spied)
    own = ["first_command:count", "--set", "lower=50", "--set", "upper=200"]
    options = ["--epsilon", "1", "--max-samples", "200", "--json"]
    told = json.loads(run("audit", *own, *DOMAIN, *options).stdout)
    assert begun == [told["replay"]["neighbours"]]
    assert "age=" in begun[0]


def test_half_of_the_seconds_are_for_sampling(monkeypatch):
    seconds, watch = [], auditing.TimeLimit

    def spied(limit):
        seconds.append(limit)
        return watch(limit)

    monkeypatch.setattr(auditing, "TimeLimit", spied)
    own = ["first_command:rare", "--domain", "0.0..1.0", *DOMAIN[2:]]
    run("audit", *own, "--max-samples", "20", "--max-seconds", "600")
    assert seconds == [300]
    run("audit", *own, "--layer", "replay", "--max-seconds", "600")
    assert seconds == [300, 600]


def test_values_are_handed_out_as_a_series_where_nothing_else_fits():
    own = ["first_command:clipped", "--domain", "0..9", *DOMAIN[2:], "--epsilon", "1"]
    told = json.loads(run("audit", *own, "--max-samples", "20", "--json").stdout)
    assert told["replay"]["verdict"] == "NOT_REFUTED"


TABLE = f"{pd.DataFrame.__module__}.DataFrame"  # another one since pandas 3
MEAN = f"noisy_mean(df: {TABLE}, epsilon, bound=100.0) needs"
RELATION = "; --relation add-remove or --relation replace-one"
test_what_is_not_said_is_asked_for_in_one_sentence = refused(
    {
        ("first_command.py",): "as first_command.py:noisy_mean (there are noisy_mean,",
        ("first_command.py:noisy_mean",): f"{MEAN} --epsilon, what is promised; "
        f'--domain "age:0..90", what its rows may be{RELATION}',
        ("first_command:count", "--epsilon", "1", *DOMAIN): "needs --set lower=VALUE",
        ("first_command:fitted", "--epsilon", "1"): "fitted takes y beside its rows: "
        "audit a function of one dataset, as lambda data: fitted(data[:, :-1], data[:,",
        ("first_command:other_way_round",): "takes no dataset: its first parameter "
        "must be one, got other_way_round(prng, data)",
        ("first_command:lazy", *DOMAIN, "--epsilon", "1"): "its vars())\n",
        # It has an epsilon of its own.
        ("first_command:rare",): 'needs --domain "list of 0.0..1.0", what',
        ("nowhere.py:f",): "there is no file 'nowhere.py'",
        ("first_command:__doc__",): "must have a release method or be a callable",
        ("first_command:rare", "--set", "x=1"): "--set must name a parameter of rare(",
        ("first_command:Needy",): "Needy is a class of which Needy() makes no object",
        ("first_command:rare", "--set", "x"): "--set must be NAME=VALUE, got 'x'",
    },
    "audit",
)
