"""What tests of the command line share: how it is run, where, and how it refuses."""

import builtins
import sys
from functools import partial

from click.testing import CliRunner

from dpaudit.cli import main

AT_ONCE = ("--refine", "0")  # no releases for bounds after a refutation


def run(*arguments: str):
    return CliRunner().invoke(main, list(arguments))


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
    """One line on standard error, and exit code two."""
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr


def forbid_imports(monkeypatch, *modules):
    real = builtins.__import__

    def guarded(name, *rest, **options):
        assert not name.startswith(modules)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", guarded)
