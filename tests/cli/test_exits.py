"""Exit codes mean what they say; only a command's own word is a verdict."""

import json
import signal
import sys
import types

import click
import pytest
from cli_cases import assert_refused, run, work_in
from click.testing import CliRunner

from dpaudit.cli import main
from dpaudit.cli.exits import Command, Exit, Group
from dpaudit.errors import InputError

OWN = """
import signal, sys
import click
import numpy as np
from dpaudit import ApproxDP, GaussianDP, Pair, PureDP, Relation

pair = Pair([0.0], [0.0, 1.0])
ALL = {all}

class Own(BaseException):
    pass

class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError

def raised(name):
    raise {{
        "exit": SystemExit(1), "click": click.exceptions.Exit(1),
        "usage": click.UsageError("x"), "abort": click.Abort(),
        "keyboard": KeyboardInterrupt(), "own": Own("o"), "end": EOFError(),
        "generator": GeneratorExit(), "zero": ZeroDivisionError("by\\nzero"),
        "pipe": BrokenPipeError(32, "Broken pipe"), "words": Unspeakable(),
    }}[name]

class WorstCase:
    claim = PureDP(1.0)
    relation = Relation.ADD_REMOVE

    def release(self, data, *, rng):
        return rng.laplace()

def worst_case_of(name):
    def worst_case(self, dimension=None):
        raised(name)
    return type(name, (WorstCase,), {{"worst_case": worst_case}})()

def constructor_of(name):
    def __init__(self):
        raised(name)
    return type(name, (WorstCase,), {{"__init__": __init__}})

for name in ALL:
    globals()["worst_" + name] = worst_case_of(name)
    globals()["class_" + name] = constructor_of(name)

class Exact:
    relation = Relation.ADD_REMOVE

    def release(self, data, *, rng):
        return data.sum() + rng.laplace(scale=0.5)

    def exact_claim(self, pair):
        return PureDP(2.0)

    def worst_case(self, dimension=None):
        return pair

    def draw(self, data, size, *, rng):
        return data.sum() + rng.laplace(scale=0.5, size=size)

    def privacy_loss(self, releases, data, other):
        y = np.asarray(releases)
        return 2 * (np.abs(y - other.sum()) - np.abs(y - data.sum()))

class ExactAtOnePoint(Exact):
    def exact_claim(self, pair):
        return ApproxDP(1.5, 1 - np.exp(-0.25))

exact = Exact()
at_one_point = ExactAtOnePoint()
"""
RAISED = [
    *("exit", "click", "usage", "abort", "keyboard", "own", "end", "generator"),
    *("zero", "pipe", "words"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, heeds_interrupts):
    return work_in(tmp_path, monkeypatch, "own_exits", OWN.format(all=RAISED))


def test_sentences_are_one_line_and_ctrl_c_outside_of_a_command_too(monkeypatch):
    def lines(*_, **__):
        raise InputError("two\nlines and \x1b[2J")

    monkeypatch.setattr(main, "make_context", lines)
    result = run("list")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr

    def pressed(*_, **__):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(main, "make_context", pressed)
    result = run("list")
    assert result.exit_code == Exit.INTERRUPTED == 130
    assert "stopped at once" in result.stderr


def test_every_command_ends_by_its_own_word_and_wrong_usage_by_clicks():
    commands = [*main.commands.values()]
    groups = [each for each in commands if type(each) is Group]
    assert [each.name for each in groups] == ["report"]
    commands = [each for each in commands if each not in groups]
    commands += [each for group in groups for each in group.commands.values()]
    assert all(type(command) is Command for command in commands)
    result = run("audit", "--no-such-option")
    assert result.exit_code == 2
    assert "No such option" in result.stderr
    with pytest.raises(click.UsageError):
        raise click.UsageError("as click does")


def test_a_group_that_is_a_command_ends_like_one(monkeypatch, tmp_path):
    def leave(*args, **options):
        raise SystemExit(1)

    monkeypatch.setattr("dpaudit.reports.writer.write_report", leave)
    arguments = ["report", "--workers", "1", "--output", str(tmp_path)]
    assert CliRunner().invoke(main, arguments).exit_code == 2


@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("kind", ["worst", "class"])
def test_no_exception_of_the_users_code_is_a_verdict(name, kind):
    result = run("audit", f"own_exits:{kind}_{name}", "--epsilon", "1")
    assert_refused(result, "(own_exits.py, line ")
    assert result.stderr.startswith("dpaudit: code under audit raised ")


MODULES = {
    "syntax": ("def f(:", "SyntaxError"),
    "exit": ("import sys; sys.exit(1)", "SystemExit"),
    "raising": ("1 / 0", "ZeroDivisionError"),
    "own": ("class Own(BaseException): pass\nraise Own('o')", "Own"),
    "keyboard": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "missing": ("import no_such_module_at_all", "cannot import module"),
    "nul": ("x = '\0'", "null bytes"),
    "lazy": ("def __getattr__(name): raise SystemExit(1)", "SystemExit"),
}


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize(
    "options", [("{}:x",), ("symmetric-noise", "--pair", "{}:x")], ids=["own", "pair"]
)
def test_a_module_that_cannot_be_imported_is_an_input_error(folder, name, options):
    text, words = MODULES[name]
    (folder / f"broken_{name}.py").write_text(text)
    arguments = [option.format(f"broken_{name}") for option in options]
    result = run("audit", *arguments, "--epsilon", "1")
    sys.modules.pop(f"broken_{name}", None)  # what other tests look at may mind it
    assert_refused(result, words)


def erring(error):
    def plan_audit(*_, **__):
        raise error

    # Named as dpaudit's own, so that the error counts as one of dpaudit.
    scope = {**plan_audit.__globals__, "__name__": "dpaudit.audit.planning"}
    code = plan_audit.__code__
    return types.FunctionType(code, scope, "plan_audit", None, plan_audit.__closure__)


PLAN = ("plan", "--epsilon", "1", "--true", "2")


@pytest.fixture
def failing(monkeypatch):
    def fail(error):
        monkeypatch.setattr("dpaudit.audit.planning.plan_audit", erring(error))

    return fail


@pytest.mark.parametrize("error", [RuntimeError("odd"), SystemExit(1), SystemExit(0)])
def test_an_error_of_its_own_is_told_as_such(failing, error):
    failing(error)
    result = run(*PLAN)
    assert result.exit_code == Exit.OWN_ERROR == 3
    assert result.stderr.count("\n") == 1
    assert "an error of dpaudit itself, and no verdict: please report" in result.stderr
    assert "--debug" in result.stderr


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionError(13, "Permission denied", "a.csv"), "'a.csv': Permission"),
        (OSError(28, "No space left on device"), "standard output: No space left"),
        (MemoryError(), "not enough memory"),
    ],
)
def test_what_the_machine_refuses_is_no_error_of_dpaudit(failing, error, words):
    failing(error)
    result = run(*PLAN)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "report it" not in result.stderr


def test_tracebacks_are_for_whoever_asks(failing):
    failing(RuntimeError("odd"))
    assert "Traceback" not in run(*PLAN).stderr
    for result in (
        run("--debug", *PLAN),
        CliRunner(env={"DPAUDIT_DEBUG": "1"}).invoke(main, PLAN),
    ):
        assert result.exit_code == Exit.OWN_ERROR
        assert "Traceback (most recent call last)" in result.stderr
        assert "in plan_audit" in result.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("plan", "--help")])
def test_help_ends_with_zero(arguments):
    assert run(*arguments).exit_code == 0


def test_a_help_that_was_not_heard_is_an_error(monkeypatch):
    """Where a pipe is closed before the help of a command, click leaves by itself."""
    monkeypatch.setattr(click.Group, "main", lambda *_, **__: sys.exit(1))
    assert main(["audit", "--help"], standalone_mode=False) == 2


# The layers that return a verdict of their own
def layer(name, *options, own="exact"):
    return run("audit", f"own_exits:{own}", "--layer", name, "--json", *options)


def test_the_exact_layer_and_delta_end_with_their_verdict():
    refuted = layer("exact", "--epsilon", "1.5")
    assert json.loads(refuted.stdout)["outcome"] == "REFUTED"
    assert refuted.exit_code == 1
    held = layer("exact", "--epsilon", "2.5")
    assert json.loads(held.stdout)["outcome"] == "HOLDS_ON_PAIR"
    assert held.exit_code == 0
    # At epsilon 1.5 the exact delta of Laplace noise of epsilon 2 is 0.2212.
    for delta, code in (("0.22", 1), ("0.23", 0)):
        options = ("--epsilon", "1.5", "--delta", delta)
        assert layer("exact", *options, own="at_one_point").exit_code == code


@pytest.mark.parametrize(("epsilon", "code"), [("0.5", 1), ("3", 0)])
def test_the_white_box_layer_ends_with_its_verdict(epsilon, code):
    """The true epsilon is 2; a true claim fails with probability 0.001, seeded."""
    result = layer("white-box", "--epsilon", epsilon, "--max-samples", "2000")
    assert "delta_low" in json.loads(result.stdout)
    assert result.exit_code == code


@pytest.mark.parametrize(
    ("options", "claim"),
    [
        (("--epsilon", "2.5"), "PureDP(epsilon=2.5)"),
        (("--epsilon", "2.5", "--delta", "0"), "PureDP(epsilon=2.5)"),
        (("--epsilon", "1.5", "--delta", "0.4"), "ApproxDP(epsilon=1.5, delta=0.4)"),
    ],
)
def test_the_claim_on_ones_own_mechanism_is_what_the_options_say(options, claim):
    short = ("--max-samples", "50", "--json")
    result = run("audit", "own_exits:exact", *options, *short)
    assert json.loads(result.stdout)["claim"]["text"] == claim
