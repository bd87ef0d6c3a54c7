"""The wheel holds the whole package and nothing else.

It is built in temporary folders, without the network, with the setuptools of this
environment; that it works where it is installed is seen by `make first-contact`. The
version is that of the code that runs, whether or not it is installed.
"""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit.cli import main

ROOT = Path(__file__).parents[2]
FILES = ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py")
SUBPACKAGES = ("algorithms", "attacks", "audit", "reports")

# The wheel must also be found without what a developer may have set.
CLEAN_ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name not in {"PYTHONPATH", "PYTHONHOME", "PYTHONWARNINGS"}
}


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command and return its output; fail with that output if it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=CLEAN_ENVIRONMENT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, f"{command} ended with:\n{done.stdout}"
    return done.stdout


def copy_sources(target: Path, *, links: bool = True) -> Path:
    """Copy what is built, so that the build leaves nothing in the checkout."""
    left = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")
    for name in (*SUBPACKAGES, "src"):
        shutil.copytree(ROOT / name, target / name, symlinks=True, ignore=left)
    for name in FILES:
        shutil.copy2(ROOT / name, target)
    if not links:
        for name in SUBPACKAGES:
            (target / "src" / "dpaudit" / name).unlink()
    return target


def test_the_image_is_built_of_what_the_wheel_is():
    """Docker itself runs in `make image`, where there is one."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert lines[1] == "*"
    kept = {line.removeprefix("!") for line in lines if line.startswith("!")}
    assert kept == {*SUBPACKAGES, "src", *FILES, "constraints.txt"}
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert len(bases) == 2
    assert len({re.fullmatch(r"python:3\.11\.\d+-slim-\w+", b)[0] for b in bases}) == 1
    assert text.index("USER dpaudit") < text.index('ENTRYPOINT ["dpaudit"]')
    assert text.index("pip install") < text.index("USER dpaudit")


def build_wheel(sources: Path) -> Path:
    """Build the wheel of a source tree and return its path."""
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", cwd=sources)
    (wheel,) = (sources / "dist").glob("*.whl")
    return wheel


def payload(wheel: Path) -> dict[str, int]:
    """Return the checksum of every file of a wheel, by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {member.filename: member.CRC for member in archive.infolist()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(copy_sources(tmp_path_factory.mktemp("sources")))


def expected_files() -> set[str]:
    """Return what must be in the wheel, from the folders and not from their listing."""
    roots = {"dpaudit": ROOT / "src" / "dpaudit"}
    roots |= {f"dpaudit/{name}": ROOT / name for name in SUBPACKAGES}
    shipped = {
        f"{package}/{file.relative_to(root).as_posix()}"
        for package, root in roots.items()
        for pattern in ("*.py", "py.typed", "*.j2", "*.css", "*.txt")
        for file in root.rglob(pattern)
        if file.is_file()
    }
    return {name for name in shipped if not name.startswith("dpaudit/audit/checks/")}


def test_wheel_holds_the_package_and_nothing_else(wheel):
    names = set(payload(wheel))
    metadata = {name for name in names if name.startswith("dpaudit-")}
    assert expected_files() - names == set(), "missing: listed, with an __init__.py?"
    code = {name for name in names if name.endswith(".py")}
    assert code - expected_files() == set(), "shipped by mistake"
    assert "dpaudit/py.typed" in names
    # No generic name (audit, reports, tests, ...) may land in site-packages.
    assert {name.split("/")[0] for name in names - metadata} == {"dpaudit"}
    assert any(name.endswith("/licenses/LICENSE") for name in metadata)


def test_the_description_is_the_readme_without_what_is_not_beside_it(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        head, _, page = archive.read(name).decode().partition("\n\n")
    assert "Description-Content-Type: text/markdown\n" in f"{head}\n"
    assert page.startswith("# dpaudit\n")
    assert "docs/statistics.md" in page
    targets = re.findall(r"\]\(([^)]*)\)", page)
    assert all(target.startswith("https://") for target in targets), targets
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for code in re.findall(r"```.*?```", readme, re.DOTALL):
        assert code in page


def test_checkout_without_links_builds_the_same_wheel(wheel, tmp_path):
    sources = copy_sources(tmp_path, links=False)
    assert payload(build_wheel(sources)) == payload(wheel)


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture
def nowhere_installed(monkeypatch):
    real = importlib.metadata.version

    def not_found(name):
        if name == "dpaudit":
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", not_found)


def test_a_checkout_knows_its_own_version(nowhere_installed):
    assert dpaudit._version() == PROJECT["project"]["version"]


@pytest.mark.parametrize("beside", [None, "no toml", "", '[project]\nname = "other"'])
def test_without_a_checkout_the_installed_version_counts(
    tmp_path, monkeypatch, beside, request
):
    home = tmp_path / "lib" / "dpaudit" / "__init__.py"
    monkeypatch.setattr(dpaudit, "__file__", str(home))
    if beside is not None:
        (tmp_path / "pyproject.toml").write_text(beside)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"9 of {name}")
    assert dpaudit._version() == "9 of dpaudit"
    request.getfixturevalue("nowhere_installed")
    assert dpaudit._version() == "0+unknown"


def test_a_checkout_on_the_path_audits_stores_and_writes_witnesses(
    tmp_path, monkeypatch, nowhere_installed
):
    monkeypatch.chdir(tmp_path)
    kept = ["--store", "a.db", "--json", "--refine", "0"]
    done = CliRunner().invoke(main, ["audit", "symmetric-noise", *kept])
    assert done.exit_code == 1, done.stderr
    witness = json.loads(done.stdout)["witness"]
    assert witness["versions"]["dpaudit"] == dpaudit.__version__
