"""What tests of the command line share: how it is run, where, and how it refuses."""

import builtins
import os
import sys
from functools import partial

import pytest
from click.testing import CliRunner
from schemas import check_printed

from dpaudit.cli import main

AT_ONCE = ("--refine", "0")  # no releases for bounds after a refutation


def run(*arguments: str):
    """Run a command; what it writes as JSON keeps to its schema."""
    result = CliRunner().invoke(main, list(arguments))
    check_printed(arguments, result)
    return result


def run_of(command):
    return partial(run, command)


def work_in(folder, monkeypatch, module, text):
    """Work in a folder where a module can be imported."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop(module, None)
    (folder / f"{module}.py").write_text(text)
    return folder


def assert_refused(result, sentence):
    """One line on standard error, or four of click's, and exit code two."""
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stderr.count("\n") == (4 if sentence.startswith("Error: ") else 1)
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def refused(errors, *command):
    """Return a test: arguments are refused with their words, and nothing is written."""

    @pytest.mark.parametrize("arguments", errors, ids=" ".join)
    def test(arguments):
        before = {*os.listdir(), "__pycache__"}
        assert_refused(run(*command, *arguments), errors[arguments])
        assert before.issuperset(os.listdir())

    return test


def forbid_imports(monkeypatch, *modules):
    real = builtins.__import__

    def guarded(name, *rest, **options):
        assert not name.startswith(modules)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", guarded)
