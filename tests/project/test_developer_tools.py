"""The commands for developers in .ci/: mutants are faults, settings are settings."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def mutants(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    import mutants

    return mutants


def test_mutants_are_other_programs_that_compile(mutants):
    path = ROOT / "src" / "dpaudit" / "subspace.py"
    text = path.read_text(encoding="utf-8")
    found = mutants.mutants_of(path)
    assert {mutant["kind"] for mutant in found} > {
        "comparison",
        "condition",
        "returned",
    }
    for mutant in found:
        changed, line = mutants.planted(text, mutant)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))
        assert line == mutant["line"]


def test_a_mutant_for_another_text_is_refused(mutants):
    (mutant, *_) = mutants.mutants_of(ROOT / "src" / "dpaudit" / "subspace.py")
    with pytest.raises(ValueError, match="another"):
        mutants.planted("# one line more\n" * 2000, mutant)
    with pytest.raises(ValueError, match="2 places"):
        mutants.planted("a = 1\na = 1\n", {"old": "a = 1", "new": "a = 2"})
    assert mutants.planted("b\na", {"old": "a", "new": "c"}) == ("b\nc", 2)


def test_an_unknown_setting_is_named():
    done = subprocess.run(
        (sys.executable, ROOT / ".ci" / "portability.py", "haswell+vax"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "no setting vax: there are haswell" in done.stderr
