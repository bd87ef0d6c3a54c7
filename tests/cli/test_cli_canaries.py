import json

import numpy as np
import pandas as pd
import pytest
from cli_cases import forbid_imports, refused, run_of

from dpaudit import ApproxDP, PureDP
from dpaudit.audit.one_run.guesses import audit_guesses, audit_scores

run = run_of("canaries")

RNG = np.random.default_rng(0)
COINS = RNG.integers(0, 2, 300)
SCORES = COINS + RNG.normal(0, 0.5, 300)
GUESS = (SCORES > 0.5).astype(int)
ABSTAIN = (np.abs(SCORES - 0.5) < 0.2).astype(int)
MADE = int((ABSTAIN == 0).sum())


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frames = {
        "scores": {"score": SCORES, "included": COINS},
        "bools": {"score": SCORES, "included": COINS == 1},
        "mine": {"loss": SCORES, "member": COINS, "score": 0.0},
        "guesses": {"guess": GUESS, "truth": COINS, "abstain": ABSTAIN},
        "all": {"guess": GUESS, "truth": COINS},
        "blank": {"guess": np.where(ABSTAIN, np.nan, GUESS), "truth": COINS}
        | {"abstain": ABSTAIN},
        "nan": {"score": [1.0, None] * 20, "included": [1, 0] * 20},
        "silent": {"guess": [1.0, None] * 20, "truth": [1, 0] * 20},
        "unsure": {"guess": [1.0, None] * 20, "truth": [1, 0] * 20}
        | {"abstain": [0] * 40},
        "half": {"score": [1.0] * 40, "included": [1, 0.5] * 20},
        "ternary": {"guess": [0, 1] * 20, "truth": [1, 2] * 20},
        "one": {"score": [1.0] * 40, "included": [1] * 40},
        "words": {"score": ["x"] * 40, "included": [1, 0] * 20},
        "both": {"score": [1.0], "included": [1], "guess": [1], "truth": [1]},
        "neither": {"number": [1.0], "included": [1]},
        "lacks": {"score": [1.0], "in": [1]},
        "untrue": {"guess": [1.0], "included": [1]},
    }
    for name, columns in frames.items():
        pd.DataFrame(columns).to_csv(f"{name}.csv", index=False)
    (tmp_path / "header.csv").write_text("score,included\n")
    (tmp_path / "twice.csv").write_text("score,included,included\n1,0,1\n")
    (tmp_path / "again.csv").write_text("score,included\n1,0\nscore,included\n1,1\n")
    (tmp_path / "wide.csv").write_text("score,included\n0,1,0\n1,1,1\n")
    (tmp_path / "bare.csv").write_text("1,0\n2,1\n")
    (tmp_path / "folder.csv").mkdir()
    return tmp_path


def printed(*arguments: str):
    result = run(*arguments, "--json")
    return result.exit_code, json.loads(result.stdout)


def same(shown, result):
    """Say whether JSON is that of a result, but for its name and the time it took."""
    wanted = json.loads(json.dumps(result.to_dict()))
    rest = {"name", "seconds"}
    return {k: v for k, v in shown.items() if k not in rest} == {
        k: v for k, v in wanted.items() if k not in rest
    }


def test_scores_and_files_of_many_canaries():
    code, shown = printed("scores.csv", "--epsilon", "1")
    assert code == 1
    assert same(shown, audit_scores(SCORES, COINS, claim=PureDP(1.0)))
    text = run("scores.csv", "--epsilon", "1").stdout
    assert text.startswith("scores.csv: REFUTED at confidence 0.95 (one run")
    assert "the best of 8 ways to guess" in text
    code, shown = printed("scores.csv", "--epsilon", "9")
    assert (code, shown["verdict"]) == (0, "NOT_REFUTED")
    rng = np.random.default_rng(1)
    coins = rng.integers(0, 2, 300_000)
    lies = rng.random(300_000) < 1 / (1 + np.e)
    frame = pd.DataFrame({"score": coins ^ lies, "included": coins})
    frame.to_csv("many.csv", index=False)
    code, shown = printed("many.csv", "--epsilon", "1.05", "--delta", "1e-9")
    assert (code, shown["canaries"]) == (0, 300_000)
    assert 0.9 < shown["bound"]["value"] < 1.05


def test_all_options_of_scores_are_passed_on():
    arguments = ("--epsilon", "0.5", "--delta", "1e-5", "--relation", "replace-one")
    guesses = ("--guesses", "50", "--guesses", "100", "--threshold", "0.4")
    rest = ("--confidence", "0.99", "--seed", "3")
    code, shown = printed("scores.csv", *arguments, *guesses, *rest)
    wanted = audit_scores(
        SCORES,
        COINS,
        claim=ApproxDP(0.5, 1e-5),
        relation="replace-one",
        guesses=[50, 100],
        thresholds=[0.4],
        confidence=0.99,
        seed=3,
    )
    assert code == wanted.refuted
    assert same(shown, wanted)
    assert shown["tried"] == 2


@pytest.mark.parametrize("name", ["guesses.csv", "blank.csv"])
def test_guesses(name):
    options = ("--epsilon", "1", "--delta", "1e-5", "--guesses", str(MADE))
    code, shown = printed(name, *options)
    claim = ApproxDP(1.0, 1e-5)
    wanted = audit_guesses(GUESS, COINS, ABSTAIN, claim=claim, guesses=MADE)
    assert code == 1
    assert same(shown, wanted)
    assert (shown["guesses"], shown["canaries"]) == (MADE, 300)


def test_columns_by_name_truth_values_and_guesses_without_abstentions():
    wanted = audit_scores(SCORES, COINS, claim=PureDP(1.0))
    columns = ("--score-column", "loss", "--included-column", "member")
    assert same(printed("mine.csv", "--epsilon", "1", *columns)[1], wanted)
    assert same(printed("bools.csv", "--epsilon", "1")[1], wanted)
    _, shown = printed("all.csv", "--epsilon", "1", "--delta", "1e-5")
    assert same(shown, audit_guesses(GUESS, COINS, claim=ApproxDP(1.0, 1e-5)))


CLAIM = ("--epsilon", "1")
ERRORS = {
    ("scores.csv",): "Error: Missing option '--epsilon'",
    ("scores.csv", "--epsilon", "0"): "epsilon must be",
    ("scores.csv", *CLAIM, "--delta", "1"): "delta must be",
    ("scores.csv", *CLAIM, "--relation", "swap"): "relation",
    ("scores.csv", *CLAIM, "--confidence", "1"): "confidence must be in (0, 1)",
    ("scores.csv", *CLAIM, "--guesses", "301"): "guesses must be an integer",
    ("scores.csv", *CLAIM, "--threshold", "nan"): "thresholds must be finite",
    ("scores.csv", *CLAIM, "--seed", "-1"): "seed must be an integer >= 0",
    ("scores.csv", *CLAIM, "--score-column", "scor"): "did you mean 'score'",
    ("folder.csv", *CLAIM): "Error: Invalid value for 'FILE.csv|.parquet': File 'f",
    ("header.csv", *CLAIM): "must have both 0 and 1, got 0 canaries",
    ("twice.csv", *CLAIM): "must differ, got 'included' more than once",
    ("again.csv", *CLAIM): "must hold numbers, got 'score'",
    ("wide.csv", *CLAIM): "must have as many fields as the first line",
    ("bare.csv", *CLAIM): "must have either the columns score and included",
    ("nan.csv", *CLAIM): "'score' must not contain NaN, got it for canary 1",
    ("silent.csv", *CLAIM): "'guess' must not contain NaN",
    ("unsure.csv", *CLAIM): "guess must be 0 or 1 for every canary, got nan",
    ("half.csv", *CLAIM): "included must be 0 or 1 for every canary, got 0.5",
    ("ternary.csv", *CLAIM): "truth must be 0 or 1 for every canary, got 2",
    ("one.csv", *CLAIM): "both 0 and 1, got 40 canaries of one kind",
    ("words.csv", *CLAIM): "must hold numbers, got 'x'",
    ("both.csv", *CLAIM): "must have either the columns",
    ("neither.csv", *CLAIM): "must have either the columns",
    ("lacks.csv", *CLAIM): "unknown --included-column 'included'",
    ("untrue.csv", *CLAIM): "unknown column 'truth'",
    ("all.csv", *CLAIM, "--threshold", "0"): "--threshold does not apply to guesses",
    ("all.csv", *CLAIM, "--seed", "0"): "--seed does not apply to guesses",
    ("all.csv", *CLAIM, "--guesses", "1", "--guesses", "2"): "must be one number",
    ("guesses.csv", *CLAIM, "--delta", "1e-5"): "fixed before the run",
    ("guesses.csv", *CLAIM, "--guesses", "3"): f"how many there are, {MADE}, got 3",
}


test_errors_are_one_sentence_and_exit_code_two = refused(ERRORS, "canaries")


def test_the_help_says_what_has_to_be_true_and_needs_nothing_heavy(monkeypatch):
    forbid_imports(monkeypatch, "pandas", "dpaudit.audit")
    result = run("--help")
    assert result.exit_code == 0
    words = " ".join(result.stdout.split())
    for said in (
        *("by a fair coin of its own", "made without knowing any coin"),
        *("fixed before looking at them", "they share the error"),
        *("The best of several commands proves nothing", "may depend on each other"),
    ):
        assert said in words
