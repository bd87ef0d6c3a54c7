import json
import sys
from pathlib import Path

import pytest
from cli_cases import AT_ONCE, assert_refused, run

OWN = """
from dataclasses import dataclass
import numpy as np
from dpaudit import InputError, Pair, PureDP, Relation

pair = Pair([0.0], [0.0, 1.0])

def good(data, rng):
    return data.sum() + rng.laplace()

def elsewhere(data, rng, own=np.random.default_rng(0)):
    return data.sum() + own.laplace(scale=0.1)

def refusing(data, rng):
    raise InputError("two\\nlines and \\x1b[2J")

class Leaking:
    claim = PureDP(1.0)
    relation = Relation.ADD_REMOVE
    scale = 0.1

    def release(self, data, *, rng):
        return data.sum() + rng.laplace(scale=self.scale)

instance = Leaking()

@dataclass(frozen=True)
class Sum(Leaking):
    scale: float = 0.1
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in an empty folder; `sys.path` and modules are as they were afterwards."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    yield tmp_path / "work"
    sys.modules.pop("mechanism_of_mine", None)


def install(folder):
    """Put the module there, where no earlier import has it."""
    folder.mkdir(exist_ok=True)
    (folder / "mechanism_of_mine.py").write_text(OWN)
    sys.modules.pop("mechanism_of_mine", None)


def audited(name):
    given = (f"mechanism_of_mine:{name}", "--pair", "mechanism_of_mine:pair")
    return run("audit", *given, "--witness", "w.json", *AT_ONCE)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A witness that names ``mechanism_of_mine:instance``, as it is written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("written"))
        patch.setattr(sys, "path", [place for place in sys.path if place])
        install(Path())
        assert audited("instance").exit_code == 1
        sys.modules.pop("mechanism_of_mine", None)
        return Path("w.json").read_text()


@pytest.fixture
def witness(folder, written):
    install(folder)
    (folder / "w.json").write_text(written)
    return folder / "w.json"


def test_modules_of_the_current_folder_are_found(witness):
    result = run("verify", "w.json")
    assert result.exit_code == 1
    assert "WARNING" not in result.stdout


def test_modules_of_another_folder_are_found_when_it_is_named(witness, tmp_path):
    (witness.parent / "mechanism_of_mine.py").rename(tmp_path / "mechanism_of_mine.py")
    missing = run("verify", "w.json")
    assert_refused(missing, "cannot import module 'mechanism_of_mine'")
    assert run("verify", "w.json", "--import-from", str(tmp_path)).exit_code == 1
    assert run("verify", "w.json", "--import-from", "nowhere").exit_code == 2


def test_a_file_that_a_witness_names_is_found_in_another_folder(folder, tmp_path):
    install(Path("inner"))
    named = [f"inner/mechanism_of_mine.py:{name}" for name in ("instance", "pair")]
    options = ("--pair", named[1], "--epsilon", "1", "--layer", "black-box", *AT_ONCE)
    assert run("audit", named[0], *options, "--witness", "w.json").exit_code == 1
    written = json.loads((folder / "w.json").read_text())
    written["mechanism"] = {"$reference": named[0]}
    (folder / "w.json").write_text(json.dumps(written))
    (folder / "inner").rename(tmp_path / "inner")
    sys.modules.pop("mechanism_of_mine", None)
    assert_refused(run("verify", "w.json"), "there is no file")
    for place in (tmp_path, tmp_path / "inner"):
        assert run("verify", "w.json", "--import-from", str(place)).exit_code == 1
    missing = run("verify", "w.json", "--import-from", str(folder))
    assert_refused(missing, "there is no file '/")


@pytest.mark.parametrize("name", ["instance", "Leaking"])
def test_the_mechanism_may_be_named(witness, name):
    result = run("verify", "w.json", "--mechanism", f"mechanism_of_mine:{name}")
    assert result.exit_code == 1
    # An instance of the class may have any state: it is not what the witness names.
    assert ("WARNING" in result.stdout) == (name == "Leaking")


def test_a_class_is_audited_and_replayed_as_an_instance(folder):
    install(folder)
    assert audited("Sum").exit_code == 1
    mechanism = json.loads((folder / "w.json").read_text())["mechanism"]
    assert mechanism == {
        "$object": "mechanism_of_mine:Sum",
        "arguments": {"scale": 0.1},
    }
    result = run("verify", "w.json")
    assert result.exit_code == 1
    assert "WARNING" not in result.stdout


def test_another_mechanism_is_said_and_what_cannot_be_judged_not_mended(witness):
    arguments = ("--mechanism", "mechanism_of_mine:good", "--max-samples", "100")
    result = run("verify", "w.json", *arguments)
    assert result.exit_code == 0
    line = (
        "the mechanism given is mechanism_of_mine:good, the witness names "
        "mechanism_of_mine:instance"
    )
    assert f"  WARNING        {line}\n" in result.stdout
    printed = json.loads(run("verify", "w.json", *arguments, "--json").stdout)
    assert printed["warnings"] == [line]
    result = run("verify", "w.json", "--mechanism", "mechanism_of_mine:elsewhere")
    assert result.exit_code == 2
    assert "NOT JUDGED" in result.stdout


def test_errors_are_one_line_whoever_wrote_them(witness):
    refused = run("verify", "w.json", "--mechanism", "mechanism_of_mine:refusing")
    assert refused.exit_code == 2
    assert refused.stderr == "dpaudit: two\\nlines and \\x1b[2J\n"
    stored = json.loads(witness.read_text())
    for place, name in (("layer", "a\x1b[2J\nb"), ("version", "\u202e" * 10_000)):
        witness.write_text(json.dumps(stored | {place: name}))
        result = run("verify", "w.json")
        assert result.exit_code == 2
        assert result.stderr[:-1].isprintable()
        assert len(result.stderr) < 1000
