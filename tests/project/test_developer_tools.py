"""The files beside the code agree, and the commands for developers do what they say.

Makefile, README, constraints, asv configuration; mutants are faults, settings are
settings; benchmarks read what they measure from the catalogue, and from the studies.
"""

import ast
import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from benchmarks import errors
from benchmarks.auditing import SuiteRefutation, SuiteTightness, cases
from benchmarks.releases import NAMES, Release
from dpaudit.algorithms import CATALOGUE, build, names_of
from dpaudit.mechanism import HasComponents
from dpaudit.reports.bench.refutation import RefutationStudy

_SPOKEN = {".md", ".yml", ".py", ".j2", ".txt"}
ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]

# The extras that each file of constraints is for.
PINNED = {
    "constraints.txt": ("test", "lint", "bench", "browser", "docs", "mutants"),
    "constraints-third-party.txt": (
        *("test", "opendp", "diffprivlib", "jax-privacy", "tour"),
    ),
}


def pinned_versions(file: str) -> dict[str, str]:
    """Return the version of every package in a file of constraints."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    pins = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pins}


@pytest.mark.parametrize("file", PINNED)
def test_constraints_pin_what_is_declared(file):
    pinned = pinned_versions(file)
    declared = [*PROJECT["dependencies"]]
    for name in PINNED[file]:
        declared += PROJECT["optional-dependencies"][name]
    for requirement in map(Requirement, declared):
        version = pinned.get(canonicalize_name(requirement.name))
        assert version is not None, f"{requirement}: run `make constraints`"
        assert requirement.specifier.contains(version), "run `make constraints`"


def makefile_targets() -> set[str]:
    """Return the targets that `make help` lists."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z.-]+):.*## ", makefile, re.MULTILINE))


def test_every_target_is_in_the_help_and_one_version_everywhere():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (phony,) = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)

    assert makefile_targets() == set(phony.split())
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {PROJECT['version']}\n" in text
    text = (ROOT / "docs" / "ci" / "github-actions.yml").read_text(encoding="utf-8")
    assert f"/dpaudit-{PROJECT['version']}-py3-none-any.whl\n" in text


@pytest.mark.parametrize("name", ["README.md", ".ci/run", "asv.conf.json"])
def test_named_targets_exist(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    # As code or as a command: not the verb in a sentence.
    named = re.findall(r"(?:^|`|step |\$ )make ([a-z.-]+)", text, re.MULTILINE)
    assert named
    assert set(named) <= makefile_targets()


def test_the_workflow_tests_what_is_classified_and_installs_what_is_asked():
    """And calls targets that there are."""
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    (matrix,) = re.findall(r"python: \[(.*)\]", text)
    prefix = "Programming Language :: Python :: 3."
    versions = [c.removeprefix(prefix) for c in PROJECT["classifiers"] if prefix in c]
    assert re.findall(r'"3\.(\d+)"', matrix) == versions
    targets = set(re.findall(r"make ([a-z -]+)", text.replace("PROFILE=quick", "")))
    named = {word for words in targets for word in words.split()}
    assert named <= makefile_targets()
    # asv does so by itself, because it installs the wheel without its dependencies.
    configuration = (ROOT / "asv.conf.json").read_text(encoding="utf-8")
    # The file has comments and trailing commas, which the json module refuses.
    matrix = re.search(r'"req": \{(.*?)\}', configuration, re.DOTALL)
    assert matrix is not None
    named = set(re.findall(r'"([\w-]+)":', matrix[1]))
    required = {canonicalize_name(Requirement(t).name) for t in PROJECT["dependencies"]}
    assert named == required | {"setuptools"}
    # No page, and no message: somebody else may take the name there.
    places = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    folders = ("docs", "src", "algorithms", "attacks", "audit", "reports")
    for path in (path for name in folders for path in (ROOT / name).rglob("*")):
        if path.suffix in _SPOKEN and path.is_file():
            places.append(path)
    for place in places:
        text = place.read_text(encoding="utf-8")
        named = re.search(r"pip install [^\n]*(?<![\w/.-])dpaudit(?![\w/.-])", text)
        assert not named, f"{place}: {named}"


def test_the_changelog_is_of_this_version():
    """The version is that of the top section, or above all where that is no release."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, *others = re.findall(r"^## \[([^]]+)\](.*)$", text, re.MULTILINE)
    released = [first, *others] if first[0] != "Unreleased" else others
    for heading, date in released:
        assert re.fullmatch(r" - \d{4}-\d\d-\d\d", date), heading
    versions = [Version(name) for name, _ in released]
    assert versions == sorted(versions, reverse=True)
    if first[0] == "Unreleased":
        assert all(each < Version(PROJECT["version"]) for each in versions)
    else:
        assert first[0] == PROJECT["version"]


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


ROWS, DIMENSION = 200, 16
# Planted: streams of at most 64 rows.
SHORT = {"tree-aggregation-fresh-noise", "tree-aggregation-reused-noise"}


def timed() -> set[str]:
    """Return the mechanisms whose release is timed, each after one release."""
    found = set()
    for name in NAMES:
        release = Release()
        try:
            release.setup(ROWS, DIMENSION, name)
        except NotImplementedError:  # asv leaves these out
            continue
        release.time_release(ROWS, DIMENSION, name)
        assert np.shape(release.rows) == (ROWS, DIMENSION)
        found.add(name)
    return found


def test_studies_are_in_the_benchmarks_and_timed():
    own = [name for name, each in CATALOGUE.items() if each.extra is None]
    wanted = {name for name in own if isinstance(build(name), HasComponents)} - SHORT
    assert {"analyze-gauss", "private-oja", "dp-gd-reap", "online-pca"} <= wanted
    assert wanted <= timed()
    assert set(errors.names()) == wanted - set(errors._SHORT)
    # Noise on the moment falls like 1/n; a release without a component errs by 1.
    few, many = (errors.error("goe-gaussian", count) for count in errors.ROWS)
    assert 0.8 < np.log(few / many) / np.log(errors.ROWS[1] / errors.ROWS[0]) < 1.2
    assert errors.error("dp-pca-published", errors.ROWS[0]) == 1
    (names,) = SuiteRefutation.params
    assert set(cases(RefutationStudy(), "quick")) <= set(names)
    assert {n for n in names_of("textbook") if CATALOGUE[n].refutation} <= set(names)
    # Seeded. At confidence 0.999 the bound on Laplace noise is too large with
    # probability 0.001. The true epsilon is 2.
    name = "laplace-under-noised"
    assert 0.9 < SuiteTightness().track_epsilon_tightness(name) <= 1


@pytest.mark.parametrize("name", ["svt-5", "noisy-hist-2"])
def test_releases_to_refute_are_those_of_the_study(name):
    study = RefutationStudy()
    (unit,) = (unit for unit in study.units("quick") if unit.case == name)
    tracked = SuiteRefutation().track_samples_to_refute(name)
    assert tracked == study.measure(unit)["samples"]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_asv_finds_the_benchmarks_without_what_tests_need():
    """It installs dpaudit and what that asks for, and imports every module.

    Here a fork of this process does, which has other libraries already.
    """
    names = [f"benchmarks.{path.stem}" for path in (ROOT / "benchmarks").glob("*.py")]
    absent = ("pytest", "hypothesis", "mpmath", "yaml", "jsonschema", "playwright")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for name in [*sys.modules]:
                if name.partition(".")[0] in ("benchmarks", "dpaudit"):
                    del sys.modules[name]
            sys.modules.update(dict.fromkeys(absent))
            for name in names:
                importlib.import_module(name)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
